//! Transposes past the caches whose rows start anywhere in a line, groups and pixels among them,
//! and short rows of one element: made slab by slab in memory that stays in the second-level cache,
//! and put from there to whole lines, in order. Where rows are short, or columns few, squares and
//! tiles lose much of each line to others, or wait for lines to be read that are written in parts;
//! and the buffer is more work than they are. A slab is one run of the destination; if that takes
//! too little of each line of the source, a box, which has long runs on both sides.
use core::ops::Range;

use super::engine::{Sides, once};
use super::fills;
use super::level;
use super::ops::{Ops, Rows};
use super::staged::Memory;
use super::stream::Joined;
use super::tuning::tuning;
use super::walk::walk;
use super::way::Way;
use crate::device::part::Part;
use crate::device::plan::{Dim, Item, Plan};

/// Bytes of a slab, and slabs of an output at least.
const SLAB: u64 = 256 << 10;
const MANY: u64 = 4;

/// Bytes that a slab's source has without gaps, at least; where the next slab's do not follow them;
/// and of those that the processor fetches ahead by itself.
const RUN: i64 = 128;
const ALONE: i64 = 2048;
const LONG: i64 = 8192;

/// Bytes that a box has without gaps at least, in the source and in the destination.
const BOX: (i64, i64) = (384, 480);

/// Bytes of rows of one element, a line or more, that the buffer is slower for: at most.
const FILLED: i64 = 384;

/// What slabs are parts of.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    /// All of some dimensions, and so many of another one.
    all: u64,
    i: usize,
    n: i64,
    /// What of its source, and of its output, has no gaps.
    src: Dense,
    dst: Dense,
    /// Whether the next slab's source is asked for.
    asks: bool,
}

/// Bytes without gaps, and the dimensions that they are made of.
#[derive(Clone, Copy)]
struct Dense(i64, u64);

/// How to cut a plan whose output goes past the caches, if slabs are the fastest way.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) fn of(plan: &Part) -> Option<Cut> {
    let (ops, mut sides) = (level::ops(), Sides::default());
    let Item::Bytes(size @ 1..=16) = plan.item else { return None };
    if !(ops.streams && tuning().slabs) {
        return None;
    }
    let (way, size) = (Way::of(ops, plan, true, &mut sides), size as i64);
    let run = Cut::of(plan, size, false).and_then(|cut| cut.run(plan, size, &way));
    run.or_else(|| Cut::of(plan, size, true)?.even(plan, size, (&way, &sides)))
}

impl Cut {
    /// Slabs that are one run of the destination; or `even` ones, of which the shorter one of the
    /// runs on both sides is made longer, in turn.
    fn of(plan: &Part, size: i64, even: bool) -> Option<Cut> {
        let most = SLAB.min(plan.whole_bytes() / MANY) as i64;
        let (mut src, mut dst, mut all, mut nbytes) = (Dense(size, 0), Dense(size, 0), 0, size);
        loop {
            let from = src.next(plan, all, |dim| dim.src.abs());
            let to = dst.next(plan, all, |dim| dim.dst);
            // Of two that do not fit together the smaller one comes first: single bytes, for of
            // larger elements either may be the faster.
            let with = |i: Option<usize>, n: i64| n.saturating_mul(i.map_or(1, |i| plan.dim(i).n));
            let smaller = with(from, 1) < with(to, 1) && with(from, with(to, nbytes)) > most;
            let first = src.0 < dst.0 || src.0 == dst.0 && smaller && size == 1;
            let (short, long) = if first { (from, to) } else { (to, from) };
            let fits = |&i: &usize| with(Some(i), nbytes) <= most;
            // What does not fit is the last one: before it what does, where both are short.
            let brief = src.0.max(dst.0) < BOX.1 && !short.is_some_and(|i| fits(&i));
            let before = long.filter(|i| brief && fits(i));
            let i = if even { before.or(short).or(long) } else { to }?;
            let Dim { n, src: stride, .. } = plan.dim(i);
            if fits(&i) {
                (all, nbytes) = (all | bit(i), nbytes.saturating_mul(n));
                continue;
            }
            let (some, line) = (most.checked_div(nbytes)?, 64i64.checked_div(size)?);
            // Slabs share no line of the source, if they need not.
            let lined = stride.abs() == size && some > line;
            let n = some - if lined { some.checked_rem(line)? } else { 0 };
            for (run, next) in [(&mut src, from), (&mut dst, to)] {
                if next == Some(i) {
                    run.add(i, n);
                }
            }
            return Some(Cut { all, i, n, src, dst, asks: false });
        }
    }

    /// The dimensions that slabs are parts of.
    fn dims(&self) -> u64 {
        self.all | bit(self.i)
    }

    /// Whether slabs that are runs of the destination are the fastest for a plan that goes some
    /// `way`, and whether to ask for the next one's source. Measured (on a Xeon, benches/notes.md).
    fn run(mut self, plan: &Part, size: i64, way: &Way) -> Option<Cut> {
        let dims = || in_set(plan, self.dims()).map(|j| plan.dim(j));
        // Rows are where the source is dense.
        let column = dims().find(|dim| dim.src.abs() == size);
        let row = column.map_or(i64::MAX, |dim| dim.dst);
        let (short, many) = (row <= longest(size), row > 64 * size && matches!(size, 1 | 4 | 8));
        // The next slab's source goes on where this one's ends, or has long runs, too.
        let on = self.src.1 & bit(self.i) > 0;
        let runs = self.src.0 >= if on { RUN } else { ALONE };
        let (able, asks) = match way {
            Way::Transpose | Way::OddSquares(_) | Way::Braid(_) => {
                (short && runs && row & 63 > 0, many)
            }
            Way::Slim => (short && runs, many),
            Way::Tables | Way::Nest => (size == 16 && self.src.0 >= ALONE, false),
            Way::Fill => {
                let total = plan.inner().n.saturating_mul(size);
                (fills::lined(size as usize, total as usize) && total <= FILLED, row > total)
            }
            _ => (false, false),
        };
        self.asks = asks && self.far(plan, LONG);
        able.then_some(self)
    }

    /// Likewise slabs that are boxes, for faces of some `sides`.
    fn even(mut self, plan: &Part, size: i64, (way, (dst, src)): (&Way, &Sides)) -> Option<Cut> {
        let runs = self.src.0 >= BOX.0 && self.dst.0 >= BOX.1;
        let (row, column) = (dst.n.saturating_mul(size), src.n.saturating_mul(size));
        let short = row <= longest(size);
        let able = match (way, size) {
            (Way::Transpose | Way::OddSquares(_), 1 | 2) => short || column <= 100,
            (Way::OddSquares(_), 3) => short || column <= 64,
            // Rows of whole lines go to them as they are. Few columns: of matrices that fit.
            (Way::Transpose | Way::OddSquares(_), 4) => {
                let few = column <= 170 && self.dims() == self.dst.1;
                (short && row > 64 || few) && row & 63 > 0
            }
            (Way::Transpose, 8) => (short && row > 64 || column <= 200) && row & 63 > 0,
            (Way::Deal(_), 4 | 8) | (Way::Groups(_), _) => self.dims() != self.dst.1,
            (Way::Tables | Way::Nest, 16) => self.src.0 >= ALONE,
            _ => false,
        };
        self.asks = self.far(plan, if size == 8 { i64::MAX } else { LONG });
        (runs && able).then_some(self)
    }

    /// Whether a slab's source is in runs that are worth asking for, of so many bytes at most.
    fn far(&self, plan: &Part, most: i64) -> bool {
        let forwards = in_set(plan, self.dims()).all(|j| plan.dim(j).src >= 0);
        forwards && (RUN..=most).contains(&self.src.0)
    }
}

impl Dense {
    /// The dimension that goes on where it ends, with those that are in slabs already.
    fn next(&mut self, plan: &Part, all: u64, stride: impl Fn(Dim) -> i64) -> Option<usize> {
        loop {
            let goes_on = |&i: &usize| self.1 & bit(i) == 0 && stride(plan.dim(i)) == self.0;
            let i = (0..plan.ndim).rev().find(goes_on)?;
            if all & bit(i) == 0 {
                return Some(i);
            }
            self.add(i, plan.dim(i).n);
        }
    }

    /// Adds so many of a dimension.
    fn add(&mut self, i: usize, n: i64) {
        *self = Dense(self.0.saturating_mul(n), self.1 | bit(i));
    }
}

/// The set of dimension `i`, and those in a set of them, the innermost first.
const fn bit(i: usize) -> u64 {
    1 << (i & 63)
}

fn in_set(plan: &Part, set: u64) -> impl Iterator<Item = usize> {
    (0..plan.ndim).rev().filter(move |&i| set & bit(i) > 0)
}

/// Bytes of the longest rows of elements of so many, up to which slabs are faster than what turns
/// them.
fn longest(size: i64) -> i64 {
    match size {
        1 => 1536,
        2 | 3 => 3072,
        4 | 8 => 2048,
        5..=7 => 6144,
        _ => 0,
    }
}

/// Copies such a plan, past the caches; as any other, if there is no memory.
///
/// # Safety
/// As [`super::copy`].
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(part: &Part, cut: &Cut) {
    let mut memory = Memory::none();
    let Some(room) = memory.lines(WORK + 2 * PLAN + 128 + SLAB as usize) else {
        // SAFETY: the caller's plan.
        return unsafe { once(part, true) };
    };
    // SAFETY: there is room for all of it; slabs are parts of the caller's plan.
    unsafe {
        let work = Work::begin(part, cut, room);
        for at in 0..work.count {
            work.turn(at);
            once(&work.dense, false);
            work.put(at);
        }
        work.joined.flush();
        (work.ops.fence)();
    }
}

/// Bytes of the memory that [`Work`] takes, and each of two plans after it. Then there is a line
/// for what is left of a slab, and one more than a slab, which begins where it will in a line.
const WORK: usize = size_of::<Work>().next_multiple_of(64);
const PLAN: usize = size_of::<Plan>().next_multiple_of(64);

/// A plan that is made slab by slab. It lies in the memory that slabs take: what they are made by
/// takes nearly all of a small stack.
struct Work<'a> {
    ops: &'static Ops,
    /// The plan, and how it is cut, into how many slabs, of which so many lie in a row.
    part: Part<'a>,
    cut: Cut,
    count: usize,
    row: usize,
    /// A slab where the plan begins, and the one that is made, without gaps.
    one: Part<'a>,
    dense: Part<'a>,
    joined: Joined<'static>,
    /// The line, and where the slab that is made begins.
    kept: *mut u8,
    from: *mut u8,
}

impl<'a> Work<'a> {
    /// # Safety
    /// At `room` there is room for all of it, as long as this lives.
    #[inline(never)] // a frame of its own: stacks may be small
    unsafe fn begin(part: &Part<'a>, cut: &Cut, room: *mut u8) -> &'a mut Work<'a> {
        let (ops, plan) = (level::ops(), room.wrapping_add(WORK).cast::<Plan>());
        let kept = room.wrapping_add(WORK + 2 * PLAN);
        let row = part.dim(cut.i).n.checked_add(cut.n - 1).and_then(|n| n.checked_div(cut.n));
        let row = row.unwrap_or(0) as usize;
        let outer = in_set(part, !cut.dims()).map(|j| part.dim(j).n as usize);
        let count = outer.fold(row, |n, extent| n.saturating_mul(extent));
        // SAFETY: the caller's room.
        let one = unsafe {
            plan.write(part.plan());
            &mut *plan
        };
        for (i, dim) in one.dims.iter_mut().enumerate() {
            dim.n = if cut.dims() & bit(i) > 0 { dim.n } else { 1 };
        }
        let one = Part::whole(one);
        let (joined, from) = (Joined::new(ops), kept);
        let (part, cut, dense) = (*part, *cut, one);
        let work = Work { ops, part, cut, count, row, one, dense, joined, kept, from };
        // SAFETY: likewise.
        unsafe {
            room.cast::<Work>().write(work);
            &mut *room.cast()
        }
    }

    /// Where the `at`-th slab is, and how many of the dimension it has.
    fn slab(&self, at: usize) -> (*const u8, *mut u8, i64) {
        let (outer, Cut { i, n, .. }) = (at.checked_div(self.row).unwrap_or(0), self.cut);
        let first = at.checked_rem(self.row).unwrap_or(0) as i64 * n;
        let Dim { n: all, src, dst } = self.part.dim(i);
        let (from, to) = places(&self.part, !self.cut.dims(), outer);
        let from = from + (first * src) as isize;
        let to = to + (first * dst) as isize;
        let (src, dst) = (self.part.src.wrapping_offset(from), self.part.dst.wrapping_offset(to));
        (src, dst, n.min(all - first))
    }

    /// Turns to the `at`-th slab: as a plan of its own, in the memory, where it begins as in the
    /// destination's line.
    #[inline(never)] // as above
    fn turn(&mut self, at: usize) {
        let (src, dst, n) = self.slab(at);
        self.from = self.kept.wrapping_add(64 + (dst as usize & 63));
        let room = self.kept.wrapping_sub(PLAN).cast::<Plan>();
        self.dense = self.one;
        // SAFETY: there is room for a plan before the line, and nobody has the one that was there.
        let plan = unsafe {
            room.write(self.one.of_dim(self.cut.i, 0, n).plan());
            &mut *room
        };
        (plan.src, plan.dst) = (src, self.from);
        let mut nbytes = if let Item::Bytes(size) = plan.item { size as i64 } else { 0 };
        for dim in plan.dims.iter_mut().rev() {
            dim.dst = nbytes;
            nbytes = nbytes.saturating_mul(dim.n);
        }
        plan.simplify();
        self.dense = Part::whole(plan);
    }

    /// Puts the `at`-th slab to the destination, and asks for the next one's source meanwhile.
    ///
    /// # Safety
    /// It is made; of all before, `joined` has what is left.
    #[inline(never)] // as above
    unsafe fn put(&mut self, at: usize) {
        let (_, dst, n) = self.slab(at);
        let (of, run) = (self.one.of_dim(self.cut.i, 0, n), self.cut.src.0 as usize);
        let (mut pieces, fetch) = (Pieces::new(&of, &self.cut, (self.from, dst)), self.ops.fetch);
        let (src, _, n) = self.slab(at + 1);
        // SAFETY: a slab and its places, which are the caller's; a prefetch touches nothing.
        unsafe {
            if self.cut.asks && at + 1 < self.count {
                walk(&self.one.of_dim(self.cut.i, 0, n), self.cut.src.1, |at, _| {
                    fetch(src.wrapping_offset(at), Rows::Apart([0]), 1, run / 64 + 1);
                    pieces.put(run, &mut self.joined);
                });
            }
            pieces.put(usize::MAX, &mut self.joined);
            self.joined.keep(self.kept);
        }
    }
}

/// What of a slab is to be put to the destination: pieces of so many bytes, one after the other.
struct Pieces<'a> {
    of: &'a Part<'a>,
    dims: u64,
    nbytes: usize,
    from: *const u8,
    dst: *mut u8,
    /// Pieces that are left, and the next one's bytes that were put.
    left: Range<usize>,
    done: usize,
}

impl Pieces<'_> {
    fn new<'a>(of: &'a Part<'a>, cut: &Cut, (from, dst): (*const u8, *mut u8)) -> Pieces<'a> {
        let size = if let Item::Bytes(size) = of.item { size } else { 0 };
        let count = |set| in_set(of, set).fold(1, |n, j| n * of.dim(j).n as usize);
        let dims = cut.dims() & !cut.dst.1;
        let (nbytes, left) = (size * count(cut.dst.1), 0..count(dims));
        Pieces { of, dims, nbytes, from, dst, left, done: 0 }
    }

    /// Puts so many bytes, or more: whole lines, but for a piece's first time and its last.
    ///
    /// # Safety
    /// They are a slab's.
    unsafe fn put(&mut self, mut most: usize, joined: &mut Joined) {
        while most > 0 && !self.left.is_empty() {
            let dst = self.dst.wrapping_offset(places(self.of, self.dims, self.left.start).1);
            let head = if self.done == 0 { (dst as usize).wrapping_neg() & 63 } else { 0 };
            let lines = most.checked_next_multiple_of(64).unwrap_or(most);
            let n = lines.saturating_add(head).min(self.nbytes - self.done);
            let from = self.from.wrapping_add(self.left.start * self.nbytes + self.done);
            // SAFETY: a part of a piece.
            unsafe { joined.push(dst.wrapping_add(self.done), from, n) };
            (self.done, most) = (self.done + n, most.saturating_sub(n));
            if self.done == self.nbytes {
                (self.left.start, self.done) = (self.left.start + 1, 0);
            }
        }
    }
}

/// Both offsets of the `at`-th index of a set of dimensions, of which the innermost runs fastest.
fn places(part: &Part, set: u64, mut at: usize) -> (isize, isize) {
    let (mut from, mut to) = (0, 0);
    for Dim { n, src, dst } in in_set(part, set).map(|j| part.dim(j)) {
        let index = at.checked_rem(n as usize).unwrap_or(0) as i64;
        from += (index * src) as isize;
        to += (index * dst) as isize;
        at = at.checked_div(n as usize).unwrap_or(0);
    }
    (from, to)
}

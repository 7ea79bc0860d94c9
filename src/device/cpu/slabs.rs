//! Transposes past the caches whose rows start anywhere in a line, and short rows of one element:
//! made slab by slab in memory that stays in the second-level cache, and put from there to whole
//! lines, in order. Where rows are short, or columns few, squares and tiles lose much of each line
//! to others, or wait for lines to be read that are written in parts; and the buffer is more work
//! than they are. A slab is one run of the destination; if that takes too little of each line of
//! the source, a box, which has long runs on both sides.
use core::ops::Range;

use super::engine::{Sides, once};
use super::fills;
use super::level;
use super::ops::Rows;
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

/// One of them: its source, its place in the destination, and how many of the dimension.
#[derive(Clone, Copy)]
struct Slab(*const u8, *mut u8, i64);

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
            // Rows of whole lines go to them as they are.
            (Way::Transpose | Way::OddSquares(_), 4) => short && row > 64 && row & 63 > 0,
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
pub(super) unsafe fn copy(part: &Part, cut: Cut) {
    let (ops, dim, mut memory) = (level::ops(), part.dim(cut.i), Memory::none());
    let Some(room) = memory.lines(2 * ROOM + 128 + SLAB as usize) else {
        // SAFETY: the caller's plan.
        return unsafe { once(part, true) };
    };
    // SAFETY: there is room.
    let plan = unsafe { one(part, &cut, room.cast()) };
    let (whole, room) = (Part::whole(plan), room.wrapping_add(ROOM));
    let (mut joined, mut waits) = (Joined::new(ops), None);
    let mut after = |slab| {
        if let Some(last) = waits.replace(slab) {
            // SAFETY: a slab of the caller's plan; there is room for one.
            unsafe { make(&whole, &cut, (last, Some(slab)), room, &mut joined) };
        }
    };
    walk(part, cut.dims(), |src_at, dst_at| {
        let mut first = 0;
        while first < dim.n {
            let n = cut.n.min(dim.n - first);
            let src = part.src.wrapping_offset(src_at + (first * dim.src) as isize);
            let dst = part.dst.wrapping_offset(dst_at + (first * dim.dst) as isize);
            after(Slab(src, dst, n));
            first += n;
        }
    });
    // SAFETY: likewise, and its end.
    unsafe {
        if let Some(last) = waits {
            make(&whole, &cut, (last, None), room, &mut joined);
        }
        joined.flush();
        (ops.fence)();
    }
}

/// Bytes of the memory that a plan takes. After it there is a line for what is left of a slab, and
/// one more than a slab, which begins where it will in a line.
const ROOM: usize = size_of::<Plan>().next_multiple_of(64);

/// Makes a slab in the memory at `room`, and puts it to the destination while it asks for the next
/// one's source.
///
/// # Safety
/// Both are slabs of a plan as in [`super::copy`], and `part` is [`one`] of them, in any place; of
/// all that were made before, `joined` has what is left.
#[inline(never)] // as above
unsafe fn make(
    part: &Part,
    cut: &Cut,
    (slab, next): (Slab, Option<Slab>),
    room: *mut u8,
    joined: &mut Joined,
) {
    let (Slab(src, dst, n), ops) = (slab, level::ops());
    let (kept, from) = (room.wrapping_add(ROOM), room.wrapping_add(ROOM + 64));
    let from = from.wrapping_add(dst as usize & 63);
    let (of, run) = (part.of_dim(cut.i, 0, n), cut.src.0 as usize);
    let mut pieces = Pieces::new(&of, cut, (from, dst));
    // SAFETY: there is room for the slab's plan and output, and what is left of the one before is
    // elsewhere; a prefetch touches nothing.
    unsafe {
        once(&Part::whole(dense(part, cut, Slab(src, from, n), room.cast())), false);
        if let Some(Slab(src, _, n)) = next.filter(|_| cut.asks) {
            walk(&part.of_dim(cut.i, 0, n), cut.src.1, |at, _| {
                (ops.fetch)(src.wrapping_offset(at), Rows::Apart([0]), 1, run / 64 + 1);
                pieces.put(run, joined);
            });
        }
        pieces.put(usize::MAX, joined);
        joined.keep(kept);
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
            let dst = self.dst.wrapping_offset(self.place());
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

    /// Where in the destination the next one is.
    fn place(&self) -> isize {
        let (mut at, mut place) = (self.left.start, 0);
        for Dim { n, dst, .. } in in_set(self.of, self.dims).map(|j| self.of.dim(j)) {
            place += at.checked_rem(n as usize).unwrap_or(0) as isize * dst as isize;
            at = at.checked_div(n as usize).unwrap_or(0);
        }
        place
    }
}

/// A slab of a plan where the plan begins.
///
/// # Safety
/// There is room for it, and it lives as long as it is used.
#[inline(never)] // as above
unsafe fn one<'a>(part: &Part, cut: &Cut, room: *mut Plan) -> &'a Plan {
    // SAFETY: the caller's room.
    let plan = unsafe {
        room.write(part.plan());
        &mut *room
    };
    for (i, dim) in plan.dims.iter_mut().enumerate() {
        dim.n = if cut.dims() & bit(i) > 0 { dim.n } else { 1 };
    }
    plan
}

/// A slab that has no gaps.
///
/// # Safety
/// As [`one`], which `part` is.
#[inline(never)] // as above
unsafe fn dense<'a>(part: &Part, cut: &Cut, slab: Slab, room: *mut Plan) -> &'a Plan {
    // SAFETY: the caller's room.
    let plan = unsafe {
        room.write(part.of_dim(cut.i, 0, slab.2).plan());
        &mut *room
    };
    (plan.src, plan.dst) = (slab.0, slab.1);
    let mut nbytes = if let Item::Bytes(size) = plan.item { size as i64 } else { 0 };
    for dim in plan.dims.iter_mut().rev() {
        dim.dst = nbytes;
        nbytes = nbytes.saturating_mul(dim.n);
    }
    plan.simplify();
    plan
}

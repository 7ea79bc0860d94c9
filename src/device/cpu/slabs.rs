//! Transposes past the caches whose rows start anywhere in a line, and short rows of one element:
//! made slab by slab in memory that stays in the second-level cache, and put from there to whole
//! lines, in order. Where rows are short, squares and tiles lose much of each line to others, or
//! wait for lines to be read that are written in parts; and the buffer is more work than they are.
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

/// Bytes of rows of one element, a line or more, that the buffer is slower for: at most.
const FILLED: i64 = 384;

/// What slabs are parts of.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    /// A dimension, and so many of it.
    i: usize,
    n: i64,
    /// Bytes that a slab's source has without gaps. The dimensions that they are made of, and those
    /// outside of it.
    run: i64,
    inside: u64,
    /// Whether the next slab's source is asked for.
    asks: bool,
}

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
    let mut cut = Cut::of(plan, size as i64)?;
    let way = Way::of(ops, plan, true, &mut sides);
    cut.suits(plan, size as i64, &way).then_some(cut)
}

impl Cut {
    /// Where one run of the destination is longer than a slab.
    fn of(plan: &Part, size: i64) -> Option<Cut> {
        let most = SLAB.min(plan.whole_bytes() / MANY) as i64;
        let mut nbytes = size;
        let i = (0..plan.ndim).rev().find(|&i| {
            let Dim { n, dst, .. } = plan.dim(i);
            let dense = dst == nbytes;
            nbytes = nbytes.saturating_mul(n);
            !dense || nbytes > most
        })?;
        let Dim { n, src, dst } = plan.dim(i);
        let (some, line) = (most.checked_div(dst)?, 64i64.checked_div(size)?);
        // Slabs share no line of the source, if they need not.
        let over = if src.abs() == size && some > line { some.checked_rem(line)? } else { 0 };
        let dense = n.saturating_mul(dst) == nbytes && some > 0;
        let outer = 1u64.wrapping_shl(i as u32) - 1;
        let cut = Cut { i, n: some - over, run: size, inside: outer, asks: false };
        dense.then(|| cut.with_run(plan))
    }

    /// With what of the source has no gaps.
    fn with_run(mut self, plan: &Part) -> Cut {
        let next = |cut: &Cut| {
            let mut dims = cut.i..plan.ndim;
            dims.find(|&j| plan.dim(j).src.abs() == cut.run && cut.inside >> (j & 63) & 1 == 0)
        };
        while let Some(j) = next(&self) {
            let n = if j == self.i { self.n } else { plan.dim(j).n };
            (self.run, self.inside) = (self.run.saturating_mul(n), self.inside | 1 << (j & 63));
        }
        self
    }

    /// Whether slabs are the fastest for a plan that goes some `way`, and whether to ask for the
    /// next one's source. Measured (on a Xeon, benches/notes.md).
    fn suits(&mut self, plan: &Part, size: i64, way: &Way) -> bool {
        // Rows are where the source is dense.
        let column = (self.i..plan.ndim).map(|j| plan.dim(j)).find(|dim| dim.src.abs() == size);
        let row = column.map_or(i64::MAX, |dim| dim.dst);
        let (short, many) = (row <= longest(size), row > 64 * size && matches!(size, 1 | 4 | 8));
        // The next slab's source goes on where this one's ends, or has long runs, too.
        let on = self.inside >> (self.i & 63) & 1 > 0;
        let runs = self.run >= if on { RUN } else { ALONE };
        let (able, asks) = match way {
            Way::Transpose | Way::OddSquares(_) | Way::Braid(_) => {
                (short && runs && row & 63 > 0, many)
            }
            Way::Slim => (short && runs, many),
            Way::Tables | Way::Nest => (size == 16 && self.run >= ALONE, false),
            Way::Fill => {
                let total = plan.inner().n.saturating_mul(size);
                (fills::lined(size as usize, total as usize) && total <= FILLED, row > total)
            }
            _ => (false, false),
        };
        let forwards = (self.i..plan.ndim).all(|j| plan.dim(j).src >= 0);
        self.asks = asks && forwards && (RUN..=LONG).contains(&self.run);
        able
    }
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
    let Some(room) = memory.lines(ROOM + 128 + SLAB as usize) else {
        // SAFETY: the caller's plan.
        return unsafe { once(part, true) };
    };
    let (mut joined, mut waits) = (Joined::new(ops), None);
    let mut after = |slab| {
        if let Some(last) = waits.replace(slab) {
            // SAFETY: a slab of the caller's plan; there is room for one.
            unsafe { make(part, &cut, (last, Some(slab)), room, &mut joined) };
        }
    };
    walk(part, u64::MAX << (cut.i & 63), |src_at, dst_at| {
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
            make(part, &cut, (last, None), room, &mut joined);
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
/// Both are slabs of a plan as in [`super::copy`]; of all that were made before, `joined` has what
/// is left.
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
    let nbytes = (n * part.dim(cut.i).dst) as usize;
    // So much is put at a time: whole lines, after the first time.
    let (run, mut done) = (cut.run as usize, 0);
    let mut put = |most: usize| {
        let head = if done == 0 { (dst as usize).wrapping_neg() & 63 } else { 0 };
        let some = (most.next_multiple_of(64) + head).min(nbytes - done);
        if some > 0 {
            // SAFETY: a part of the slab.
            unsafe { joined.push(dst.wrapping_add(done), from.wrapping_add(done), some) };
        }
        done += some;
    };
    // SAFETY: there is room for the slab's plan and output, and what is left of the one before is
    // elsewhere; a prefetch touches nothing.
    unsafe {
        once(&Part::whole(plan(part, cut.i, Slab(src, from, n), room.cast())), false);
        if let Some(Slab(src, _, n)) = next.filter(|_| cut.asks) {
            walk(&part.of_dim(cut.i, 0, n), cut.inside, |at, _| {
                (ops.fetch)(src.wrapping_offset(at), Rows::Apart([0]), 1, run / 64 + 1);
                put(run);
            });
        }
        put(nbytes);
        joined.keep(kept);
    }
}

/// A slab of dimension `i` as a plan of its own.
///
/// # Safety
/// There is room for it, and it lives as long as it is used.
#[inline(never)] // as above
unsafe fn plan<'a>(part: &Part, i: usize, slab: Slab, room: *mut Plan) -> &'a Plan {
    // SAFETY: the caller's room.
    let plan = unsafe {
        room.write(part.plan());
        &mut *room
    };
    let n;
    Slab(plan.src, plan.dst, n) = slab;
    for dim in plan.dims.iter_mut().take(i) {
        dim.n = 1;
    }
    if let Some(dim) = plan.dims.get_mut(i) {
        dim.n = n;
    }
    plan.simplify();
    plan
}

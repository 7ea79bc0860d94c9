//! What is repeated is made once, and copied from there: blocks of the destination that follow one
//! another and are the same, of elements that do not follow one another in the source.
use super::engine::once;
use super::ops::WINDOW;
use super::staged::Memory;
use crate::device::part::Part;
use crate::device::plan::{Dim, Item, Plan};

/// Bytes of an output from which two more plans are worth their time.
const LEAST: u64 = 4096;

/// Blocks of the fewest that are worth it: the first of them is made, and read again; and of the
/// fewest small ones, which groups make as fast.
const MANY: i64 = 4;
const MORE: i64 = 16;

/// Bytes of the smallest block, and of the largest one, which is to stay in the second-level cache.
const BLOCK: core::ops::RangeInclusive<i64> = 128..=512 << 10;

/// Bytes of blocks that are made before they are copied: they are near then.
const PIECE: i64 = 64 << 10;

/// The outermost dimension along which such blocks are repeated.
#[inline(never)]
pub(super) fn of(plan: &Part) -> Option<usize> {
    let Item::Bytes(size) = plan.item else { return None };
    let (mut block, mut found) = (size as i64, None);
    for i in (0..plan.ndim).rev() {
        let Dim { n, src, dst } = plan.dim(i);
        if dst != block {
            break;
        }
        let many = if block <= WINDOW as i64 { MORE } else { MANY };
        if src == 0 && n >= many && i + 1 < plan.ndim && BLOCK.contains(&block) {
            found = Some(i);
        }
        block = block.saturating_mul(n);
    }
    found.filter(|_| plan.whole_bytes() >= LEAST)
}

/// Copies a plan that repeats blocks along dimension `i`; past the caches, if it is `large`. It is
/// copied as any without memory for another plan, for which stacks may be too small.
///
/// # Safety
/// As [`super::copy`].
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(part: &Part, i: usize, large: bool) {
    let (outer, repeated, mut memory) = (part.dim(0), part.dim(i), Memory::none());
    let blocks = outer.dst.checked_div(repeated.n).unwrap_or(1).max(1);
    let each = if i > 0 { (PIECE / blocks).max(1) } else { outer.n };
    let room = memory.lines(size_of::<Plan>()).map(|room| room.cast::<Plan>());
    // SAFETY: parts of the caller's plan; what the second one of a piece reads, the first one has
    // written, and it writes none of that. There is room for a plan, and a line is aligned for it.
    unsafe {
        let Some(room) = room else { return once(part, large) };
        let mut first = 0;
        while first < outer.n {
            let n = each.min(outer.n - first);
            make(piece(part, (first, n), room), i);
            once(&Part::whole(&*room), false);
            spread(piece(part, (first, n), room), i);
            once(&Part::whole(&*room), large);
            first += n;
        }
    }
}

/// `n` of the outermost dimension of a plan, from `first` on.
///
/// # Safety
/// There is room for it, and it lives as long as it is used.
#[inline(never)] // as above
unsafe fn piece<'a>(part: &Part, (first, n): (i64, i64), room: *mut Plan) -> &'a mut Plan {
    // SAFETY: the caller's room.
    let plan = unsafe {
        room.write(part.plan());
        &mut *room
    };
    if let Some(dim) = plan.dims.get_mut(0) {
        dim.n = n;
        plan.src = plan.src.wrapping_offset((first * dim.src) as isize);
        plan.dst = plan.dst.wrapping_offset((first * dim.dst) as isize);
    }
    plan
}

/// Leaves the first of the blocks.
fn make(plan: &mut Plan, i: usize) {
    if let Some(dim) = plan.dims.get_mut(i) {
        dim.n = 1;
    }
    plan.simplify();
}

/// Leaves the others, copied from it.
fn spread(plan: &mut Plan, i: usize) {
    for dim in plan.dims.iter_mut() {
        dim.src = dim.dst;
    }
    plan.src = plan.dst.cast_const();
    if let Some(dim) = plan.dims.get_mut(i) {
        plan.dst = plan.dst.wrapping_offset(dim.dst as isize);
        (dim.n, dim.src) = (dim.n - 1, 0);
    }
    plan.simplify();
}

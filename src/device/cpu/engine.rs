//! One thread's work: from the plan's way to its driver.
use super::face::{Face, Side};
use super::staged::Memory;
use super::stream::Joined;
use super::transpose::{Away, transpose};
use super::walk::{set, walk};
use super::way::Way;
use super::{
    bits, braid, deal, fills, groups, level, lines, nest, odd, odd_staged, ops::Ops, picked,
    planes, repeat, slabs, slim, small, strided, tables,
};
use crate::device::part::{Part, Run};
use crate::device::plan::{Dim, Item};

/// The destination's side of faces, and the source's.
pub(super) type Sides = (Run, Run);

/// Carries out a simplified plan on the calling thread.
///
/// # Safety
/// As [`super::copy`].
pub(super) unsafe fn serial(plan: &Part, large: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(dim) = repeat::of(plan) {
            repeat::copy(plan, dim, large);
        } else if let Some(found) = picked::of(plan) {
            picked::copy(plan, found, large);
        } else if large && let Some(cut) = slabs::of(plan) {
            slabs::copy(plan, &cut);
        } else {
            once(plan, large);
        }
    }
}

/// Likewise, whatever is repeated or to be picked first.
///
/// # Safety
/// As [`super::copy`].
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn once(plan: &Part, large: bool) {
    let ops = level::ops();
    let streams = large & ops.streams;
    let mut sides = Sides::default();
    let way = Way::of(ops, plan, streams, &mut sides);
    // SAFETY: the caller's promise; each driver gets the kind of plan that it asks for.
    unsafe {
        go(ops, plan, (&way, &sides), streams);
        // Whoever did it: what went past the caches comes before whatever follows.
        if streams | matches!(way, Way::Bits | Way::Planes(..)) {
            (ops.fence)();
        }
    }
}

/// The name of the way that [`serial`] goes.
pub(super) fn named(plan: &Part, large: bool) -> &'static str {
    if repeat::of(plan).is_some() {
        return "repeat";
    }
    if picked::of(plan).is_some() {
        return "picked";
    }
    if large && slabs::of(plan).is_some() {
        return "slabs";
    }
    let ops = level::ops();
    Way::of(ops, plan, large & ops.streams, &mut Sides::default()).name()
}

/// Goes the way of a plan.
unsafe fn go(ops: &Ops, plan: &Part, (way, sides): (&Way, &Sides), streams: bool) {
    let size = if let Item::Bytes(size) = plan.item { size } else { 0 };
    // SAFETY: the caller's promise.
    unsafe {
        match way {
            Way::Memcpy if streams => {
                let mut joined = Joined::new(ops);
                joined.push(plan.dst, plan.src, size);
                joined.flush();
            }
            Way::Memcpy => core::ptr::copy_nonoverlapping(plan.src, plan.dst, size),
            Way::Blocks => lines::blocks(ops, plan, size, streams),
            Way::Nest => nest::copy(plan, size),
            Way::Strided => strided::copy(plan, size),
            Way::Tables => tables::copy(plan, size),
            Way::Gather => lines::gather(ops, plan, size, streams),
            Way::Fill => fills::copy(ops, plan, size, streams),
            Way::Step(step) => lines::step(ops, plan, size, *step, streams),
            Way::Interleave => lines::interleave(ops, plan, size, streams),
            Way::Transpose => turned(ops, plan, size, sides, streams),
            Way::Slim => slim::copy(ops, plan, size, sides),
            Way::Small(squares) => small::copy(ops, plan, size, (*squares, sides), streams),
            Way::OddSquares(turn) => odd::squares(turn, plan, size, sides),
            Way::OddStaged(turn, stage) => odd_staged::copy((turn, stage), plan, size, sides),
            Way::OddTiles(turn) => odd::tiles(ops, *turn, plan, size, sides),
            Way::Braid(braid) => braid::copy(plan, size, *braid),
            Way::Planes(step, split) => planes::copy(ops, plan, size, (*step, *split)),
            Way::Deal(found) => deal::copy(plan, size, found),
            Way::Groups(found) => groups::copy(ops, plan, found, streams),
            Way::Bits => bits::copy(ops, plan, streams),
        }
    }
}

/// The transposes of elements of 1, 2, 4, 8 and 16 bytes.
unsafe fn turned(ops: &Ops, plan: &Part, size: usize, sides: &Sides, streams: bool) {
    // SAFETY: the caller's plan.
    unsafe {
        let away = Away::new(ops, plan.whole_bytes(), size.trailing_zeros(), streams);
        let mut memory = Memory::none();
        faces(plan, size, sides, &mut |face| transpose(ops, face, away, &mut memory));
        away.fence(ops);
    }
}

/// Turns a face.
pub(super) type Turn<'a> = dyn FnMut(&mut Face) + 'a;

/// Has the transposes of a plan turned, one by one: of the dimensions in which the destination is
/// dense against those in which the source is.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) fn faces(plan: &Part, size: usize, (row, column): &Sides, turn: &mut Turn) {
    let (mut rows, mut columns) = (Side::new(), Side::new());
    let (src, dst) = sides(plan, (row, column), (&mut rows, &mut columns));
    let n = (row.n as usize, column.n as usize);
    let face = Face::new((src, dst), n, (&rows, &columns), size.trailing_zeros());
    // Faces side by side in the source follow one another, of each only a few that are side by
    // side in the destination: runs on both sides, as within a large face. All of them, if these
    // are nearer to one another in the source, too.
    let inside = row.set() | column.set();
    let others = || (0..plan.ndim).filter(|i| inside >> (i & 63) & 1 == 0);
    let below = others().next_back();
    let beside = others().filter(|&i| Some(i) != below).min_by_key(|&i| plan.dim(i).src.abs());
    let dim = |i: Option<usize>| i.map_or(Dim::NONE, |i| plan.dim(i));
    let (outer, inner) = (dim(beside), dim(below));
    let near = inner.src.abs() <= outer.src.abs();
    let few = if near { inner.n } else { (256 / (n.0 * size).max(1)).clamp(1, 16) as i64 };
    walk(plan, inside | set(&[below, beside]), |src_at, dst_at| {
        let mut from = 0;
        while from < inner.n {
            for i in 0..outer.n {
                for j in from..inner.n.min(from + few) {
                    let src_at = src_at + (i * outer.src + j * inner.src) as isize;
                    let dst_at = dst_at + (i * outer.dst + j * inner.dst) as isize;
                    let (src, dst) = (src.wrapping_offset(src_at), dst.wrapping_offset(dst_at));
                    turn(&mut face.at(src, dst));
                }
            }
            from += few;
        }
    });
}

/// Both sides of a plan's faces, and where the first face is.
fn sides(
    plan: &Part,
    (row, column): (&Run, &Run),
    (rows, columns): (&mut Side, &mut Side),
) -> (*const u8, *mut u8) {
    let (mut src, mut dst) = (plan.src, plan.dst);
    for Dim { n, src, .. } in row.dims().map(|i| plan.dim(i)) {
        rows.push(n as usize, src as isize);
    }
    for dim in column.dims().map(|i| plan.dim(i)) {
        // A source that runs backwards: start at the other end on both sides.
        let back = if dim.src < 0 { (dim.n - 1) as isize } else { 0 };
        src = src.wrapping_offset(back * dim.src as isize);
        dst = dst.wrapping_offset(back * dim.dst as isize);
        columns.push(dim.n as usize, if dim.src < 0 { -dim.dst } else { dim.dst } as isize);
    }
    (src, dst)
}

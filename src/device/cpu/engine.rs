//! One thread's work: from the plan's kernel to its driver.
use super::face::{Face, Side};
use super::stream::Joined;
use super::transpose::{Away, transpose};
use super::walk::{set, walk};
use super::{
    bits, braid, groups, level, lines, odd, ops::Ops, planes, slim, small, strided, tables,
};
use crate::device::part::{Part, Run};
use crate::device::plan::{Dim, Item, Kernel};

/// The destination's side of faces, and the source's.
pub(super) type Sides = (Run, Run);

/// Carries out a simplified plan on the calling thread.
///
/// # Safety
/// As [`super::copy`].
pub(super) unsafe fn serial(plan: &Part, large: bool) {
    let ops = level::ops();
    let streams = large && ops.streams;
    // SAFETY: the caller's promise.
    unsafe {
        let Item::Bytes(size) = plan.item else {
            bits::copy(ops, plan, streams);
            return (ops.fence)();
        };
        bytes(ops, plan, size, streams);
        // Whoever did it: what went past the caches comes before whatever follows.
        if streams {
            (ops.fence)();
        }
    }
}

/// Copies elements of whole bytes.
unsafe fn bytes(ops: &Ops, plan: &Part, size: usize, streams: bool) {
    // SAFETY: the caller's promise; each driver gets the kind of plan that it asks for.
    unsafe {
        let (kernel, sides) = plan.way();
        if kernel == Kernel::Few {
            return strided::copy(plan, size);
        }
        if rare(ops, plan, (kernel, &sides), size, streams) {
            return;
        }
        if tiny(plan, kernel, size, &sides, streams) {
            if !sides.is_some_and(|sides| odd::short(plan, size, &sides)) {
                tables::copy(plan, size);
            }
            return;
        }
        match kernel {
            Kernel::Memcpy if streams => {
                let mut joined = Joined::new(ops);
                joined.push(plan.dst, plan.src, size);
                joined.flush();
            }
            Kernel::Memcpy => core::ptr::copy_nonoverlapping(plan.src, plan.dst, size),
            Kernel::Rows | Kernel::Gather => lines::gather(ops, plan, size, streams),
            Kernel::Fill => lines::fill(ops, plan, size, streams),
            Kernel::Step(step) => lines::step(ops, plan, size, step, streams),
            Kernel::Interleave => lines::interleave(ops, plan, size, streams),
            Kernel::Transpose => turned(ops, plan, size, &sides.unwrap_or_default(), streams),
            Kernel::Slim => slim::copy(ops, plan, size, &sides.unwrap_or_default()),
            Kernel::Few | Kernel::Scatter | Kernel::Bits => strided::copy(plan, size),
        }
    }
}

/// Copies a plan for which few levels have kernels, if the level in use does.
#[inline(never)] // a frame of its own: stacks may be small
unsafe fn rare(
    ops: &Ops,
    plan: &Part,
    (kernel, sides): (Kernel, &Option<Sides>),
    size: usize,
    streams: bool,
) -> bool {
    // SAFETY: the caller's plan.
    unsafe {
        match kernel {
            Kernel::Rows
            | Kernel::Fill
            | Kernel::Step(_)
            | Kernel::Gather
            | Kernel::Scatter
            | Kernel::Transpose
            | Kernel::Slim
                if groups::copy(ops, plan, kernel, size, streams) =>
            {
                true
            }
            Kernel::Rows => odd::copy(ops, plan, size),
            Kernel::Interleave if !streams => braid::copy(plan, size) || square(ops, plan, size),
            Kernel::Gather => braid::copy(plan, size),
            Kernel::Step(step) if planes::copy(ops, plan, size, step, streams) => true,
            // Picking is for long runs.
            Kernel::Step(_) if size <= 2 && plan.inner().n < 128 => {
                let sides = plan.sides(size as i64).filter(|s| odd::uneven(plan, size, s));
                sides.is_some_and(|sides| odd::short(plan, size, &sides))
            }
            Kernel::Transpose | Kernel::Slim => {
                let uneven = sides.filter(|sides| odd::uneven(plan, size, sides));
                braid::copy(plan, size)
                    || sides.is_some_and(|sides| small::copy(ops, plan, size, &sides, streams))
                    || uneven.is_some_and(|s| odd::short(plan, size, &s))
            }
            _ => false,
        }
    }
}

/// Copies planes in squares, if they are so many and their runs so short that it is faster than to
/// weave them.
unsafe fn square(ops: &Ops, plan: &Part, size: usize) -> bool {
    let brief = plan.inner().n >= 5 && plan.dim(plan.ndim.wrapping_sub(2)).n <= 64;
    let sides = if brief && size >= 4 { plan.sides(size as i64) } else { None };
    // SAFETY: the caller's plan.
    sides.is_some_and(|sides| unsafe {
        small::copy(ops, plan, size, &sides, false) || odd::short(plan, size, &sides)
    })
}

/// Whether a plan goes element by element, through tables of offsets.
fn tiny(plan: &Part, kernel: Kernel, size: usize, sides: &Option<Sides>, streams: bool) -> bool {
    match kernel {
        // Rows that use most of the source's lines: in the buffer, and past the caches.
        Kernel::Gather if size == 16 && streams && plan.inner().src.abs() <= 64 => {
            plan.inner().n < 32 || plan.source_inner().is_some()
        }
        // Long lines need no table.
        Kernel::Gather | Kernel::Scatter => plan.inner().n < 64 || plan.source_inner().is_some(),
        // Larger ones if their rows are not the source's.
        Kernel::Rows => size <= 16 || (size <= 80 && plan.source_inner().is_some()),
        Kernel::Step(_) => (plan.inner().n < 16 || size == 8) && plan.ndim >= 3,
        // Of faces that are a few elements wide, tiles would be mostly edges, and runs mostly
        // their beginning; small faces cost more to set up.
        Kernel::Transpose => sides.is_some_and(|(dst, src)| {
            let few = match size {
                16 => 12,
                8 if level::ops().odd_squares.is_none() => 4,
                _ => 8,
            };
            size >= 4
                && (dst.n.min(src.n) <= few
                    || dst.n.saturating_mul(src.n) < if size >= 8 { 512 } else { 64 })
        }),
        // A few short planes.
        Kernel::Interleave => {
            let (planes, run) = (plan.inner().n, plan.dim(plan.ndim.wrapping_sub(2)).n);
            size == 8 && planes.saturating_mul(run) <= 64
        }
        _ => false,
    }
}

/// The transposes of elements of 1, 2, 4, 8 and 16 bytes.
unsafe fn turned(ops: &Ops, plan: &Part, size: usize, sides: &Sides, streams: bool) {
    // SAFETY: the caller's plan.
    unsafe {
        let away = Away::new(ops, plan.whole_bytes(), size.trailing_zeros(), streams);
        faces(plan, size, sides, &mut |face| transpose(ops, face, away));
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
    // side in the destination: runs on both sides, as within a large face.
    let inside = row.set() | column.set();
    let others = || (0..plan.ndim).filter(|i| inside >> (i & 63) & 1 == 0);
    let below = others().next_back();
    let beside = others().filter(|&i| Some(i) != below).min_by_key(|&i| plan.dim(i).src.abs());
    let near = |i: Option<usize>| i.map_or(Dim::NONE, |i| plan.dim(i));
    let (outer, inner) = (near(beside), near(below));
    let few = (256 / (n.0 * size).max(1)).clamp(1, 16) as i64;
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

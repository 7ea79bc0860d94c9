//! One thread's work: from the plan's kernel to its driver.
use super::transpose::{Face, transpose};
use super::walk::walk;
use super::{bits, level, lines, ops::Ops, stream, strided};
use crate::device::part::Part;
use crate::device::plan::{Item, Kernel};

/// Carries out a simplified plan on the calling thread.
///
/// # Safety
/// As [`super::copy`].
pub(super) unsafe fn serial(plan: &Part, large: bool) {
    let ops = level::ops();
    let streams = large && ops.streams;
    let Item::Bytes(size) = plan.item else {
        // SAFETY: the caller's promise.
        unsafe {
            bits::copy(ops, plan, streams);
            return (ops.fence)();
        }
    };
    // SAFETY: the caller's promise; each driver gets the kind of plan that it asks for.
    unsafe {
        match plan.kernel() {
            Kernel::Memcpy if streams => stream::block(ops, plan.dst, plan.src, size),
            Kernel::Memcpy => core::ptr::copy_nonoverlapping(plan.src, plan.dst, size),
            Kernel::Rows | Kernel::Gather => lines::gather(ops, plan, size, streams),
            Kernel::Fill => lines::fill(ops, plan, size, streams),
            Kernel::Step(step) => lines::step(ops, plan, size, step, streams),
            Kernel::Interleave => lines::interleave(ops, plan, size, streams),
            Kernel::Transpose { dense } => faces(ops, plan, size, dense, streams),
            Kernel::Scatter | Kernel::Bits => strided::copy(plan, size),
        }
        if streams {
            (ops.fence)();
        }
    }
}

/// The transposes of a plan: the innermost dimension against `dense`.
#[inline(never)] // a frame of its own: stacks may be small
unsafe fn faces(ops: &Ops, plan: &Part, size: usize, dense: usize, streams: bool) {
    let (last, row, column) = (plan.ndim.wrapping_sub(1), plan.inner(), plan.dim(dense));
    // A source that runs backwards along its rows: start at the other end on both sides.
    let back = if column.src < 0 { column.n - 1 } else { 0 };
    let sign = if column.src < 0 { -1 } else { 1 };
    let first_src = (back * column.src) as isize;
    let first_dst = (back * column.dst) as isize;
    walk(plan, [Some(last), Some(dense)], |src_at, dst_at| {
        let face = Face {
            src: plan.src.wrapping_offset(src_at + first_src),
            dst: plan.dst.wrapping_offset(dst_at + first_dst),
            n_dst: row.n as usize,
            n_src: column.n as usize,
            src_stride: row.src as isize,
            dst_stride: (sign * column.dst) as isize,
            log: size.trailing_zeros(),
        };
        // SAFETY: elements of the caller's plan.
        unsafe { transpose(ops, &face, streams) };
    });
}

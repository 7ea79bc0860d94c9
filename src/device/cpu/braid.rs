//! Few source rows of elements of 1 and 2 bytes that are planes in the destination: element by
//! element in turn, where there are instructions that bring bytes into any order.
use super::engine::faces;
use super::ops::{Braid, Ops, Strands};
use crate::device::part::{Part, Run};

/// What copies a plan of such rows, if there is a kernel for them and they are long enough.
pub(super) fn of(ops: &Ops, plan: &Part, size: usize) -> Option<Braid> {
    let next = plan.ndim.wrapping_sub(2);
    let (bytes, row, column) = (size as i64, plan.inner(), plan.dim(next));
    let few = matches!(row.n, 5..=16) && row.dst == bytes && matches!(size, 1 | 2);
    // Of short runs, loads are mostly empty.
    let long = column.n * bytes >= 8;
    let dense = column.src == bytes && column.dst == row.n * bytes && long;
    ops.braid.filter(|_| few && dense)
}

/// Copies a plan by what [`of`] names for it.
///
/// # Safety
/// As [`super::copy`].
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(plan: &Part, size: usize, braid: Braid) {
    let (last, next) = (plan.ndim.wrapping_sub(1), plan.ndim.wrapping_sub(2));
    let row = plan.dim(last);
    let (how, mut rows) = (Strands::new(size, row.n as usize), [0; 16]);
    for (i, at) in (0..row.n).zip(rows.iter_mut()) {
        *at = (i * row.src) as isize;
    }
    let sides = (Run::alone(plan, last), Run::alone(plan, next));
    faces(plan, size, &sides, &mut |face| {
        // SAFETY: a face of the caller's plan; rows that are not there are the first one.
        unsafe { braid(face.src, &rows, face.dst, face.n_src, &how) }
    });
}

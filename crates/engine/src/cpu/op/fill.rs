//! One item, repeated along the innermost loop.
use dlpack_kernels::Fill;

use super::super::level::kernels;
use super::super::policy::Reach;
use crate::nest::{Nest, only};

/// Bytes of an item beyond which repeating it is a copy of runs.
pub(crate) use dlpack_kernels::FILL_MOST;

/// Copies a nest whose source stride is 0 in the innermost loop, and whose destination is dense
/// there.
///
/// # Safety
/// As [`super::super::copy`].
pub(crate) unsafe fn copy(nest: &Nest, reach: Reach) {
    let kernels = kernels();
    let (rows, inner) = (nest.inner(1), nest.inner(0));
    let last = nest.len().wrapping_sub(1);
    let inside = only(last) | only(last.wrapping_sub(1));
    nest.each(inside, &mut |src, dst| {
        let fill = Fill {
            src,
            dst,
            bytes: nest.bytes(),
            n: [rows.n, inner.n],
            by_src: rows.src,
            by_dst: rows.dst,
            stream: reach.stream,
        };
        // SAFETY: some of the nest's rows: their items are readable, and the rows writable.
        unsafe { (kernels.fill)(&fill) }
    });
}

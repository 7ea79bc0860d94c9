//! Runs that are dense on both sides: contiguous copies, slices, rows, moved axes.
use dlpack_kernels::{LINE, Rows};

use super::super::level::kernels;
use super::super::policy::Reach;
use crate::nest::{Nest, only};

/// Bytes of the source that are prefetched ahead of the current run: enough to cover the latency of
/// memory, few enough to stay in L1.
const AHEAD: usize = 2048;

/// Whether runs of so many bytes are written by non-temporal stores: no line lies within a shorter
/// one, so each would be put together in a buffer.
pub(crate) fn streams(bytes: usize, reach: Reach) -> bool {
    reach.stream && bytes >= LINE
}

/// Copies a nest of runs of 16 bytes or more.
///
/// # Safety
/// As [`super::super::copy`].
pub(crate) unsafe fn copy(nest: &Nest, reach: Reach) {
    let kernels = kernels();
    let (outer, inner) = (nest.inner(1), nest.inner(0));
    let bytes = nest.bytes();
    let stream = streams(bytes, reach);
    if nest.is_empty() && !stream {
        // SAFETY: the nest is one run: `bytes` bytes are readable and writable, without overlap.
        return unsafe { core::ptr::copy_nonoverlapping(nest.src, nest.dst, bytes) };
    }
    // The hardware prefetches contiguous runs; of long runs only the first lines need a prefetch.
    let apart = inner.src.unsigned_abs() != bytes && inner.src != 0;
    let ahead = if reach.prefetch && apart { AHEAD.div_ceil(bytes.max(1)) } else { 0 };
    let rows = Rows {
        src: nest.src,
        dst: nest.dst,
        bytes,
        n: [outer.n, inner.n],
        by_src: [outer.src, inner.src],
        by_dst: [outer.dst, inner.dst],
        stream,
        ahead,
    };
    let last = nest.len().wrapping_sub(1);
    let inside = only(last) | only(last.wrapping_sub(1));
    if nest.len() < 3 {
        // SAFETY: the runs of the nest, readable in the source and writable in the destination.
        return unsafe { (kernels.rows)(&rows) };
    }
    nest.each(inside, &mut |src, dst| {
        // SAFETY: some of the nest's runs, readable in the source and writable in the destination.
        unsafe { (kernels.rows)(&Rows { src, dst, ..rows }) }
    });
}

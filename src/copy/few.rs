//! Copies to dense memory that need no plan: of dense elements, and of few.

use super::{DENSE_PLAIN, Options, apart, is_opaque};
use crate::abi::DLPACK_FLAG_BITMASK_READ_ONLY;
use crate::device::cpu;
use crate::device_type::CPU;
use crate::dtype;
use crate::layout::{self, Order};
use crate::validate::Snapshot;

/// A small copy to a dense tensor, on the CPU, from a dense one or of few elements, when the two
/// share nothing: needs no plan. What it takes suffices for all checks; false, and nothing is done,
/// of any other.
#[inline]
pub(super) fn copied_usual(src: &Snapshot, dst: &Snapshot, options: &Options) -> bool {
    let usual = src.device == CPU
        && dst.device == CPU
        && src.dtype == dst.dtype
        && !is_opaque(src.dtype)
        && src.shape() == dst.shape()
        && dst.flags & DLPACK_FLAG_BITMASK_READ_ONLY == 0
        && !options.streams.any();
    let item_nbytes = dtype::plain_bytes(src.dtype) as usize;
    let numel = layout::plain_numel(src.shape()).filter(|&numel| numel < DENSE_PLAIN as i64);
    let nbytes = numel.and_then(|numel| item_nbytes.checked_mul(numel as usize));
    let (true, Some(nbytes @ 1..DENSE_PLAIN)) = (usual, nbytes) else { return false };
    if !is_dense(src) {
        let runs = src.strides().last() == Some(&1) || nbytes <= RUNS_MOST * item_nbytes;
        return runs && nbytes <= NBYTES_MOST && is_dense(dst) && copied_few(src, dst);
    }
    if !is_dense(dst) {
        return false;
    }
    let (from, to) = (src.first(), dst.first());
    if from.addr().abs_diff(to.addr()) < nbytes {
        return false;
    }
    // SAFETY: both are dense, so the elements are `nbytes` bytes from the first on, which the
    // caller vouched for; they do not touch.
    unsafe { to.copy_from_nonoverlapping(from, nbytes) };
    true
}

/// Copies few elements of whole bytes, wherever they lie, to a dense destination of their shape and
/// dtype, when the CPU reaches both and they lie apart; false, and nothing is done, of others.
#[inline(never)]
pub(super) fn copied_few(src: &Snapshot, dst: &Snapshot) -> bool {
    let mut few = Few::none();
    let item_nbytes = dtype::plain_bytes(src.dtype) as usize;
    if item_nbytes == 0 || !few.find(src, item_nbytes) || !apart(src, dst) {
        return false;
    }
    // SAFETY: the caller vouched for the elements; the destination is dense and apart.
    unsafe { few.gather(src.first(), dst.first()) };
    true
}

/// Whether the elements follow one another in memory.
#[inline]
pub(super) fn is_dense(tensor: &Snapshot) -> bool {
    layout::is_contiguous(tensor.shape(), tensor.strides(), Order::C)
}

/// Bytes, runs of them and rows of runs that are moved so: of more, a plan's kernels are faster.
const NBYTES_MOST: usize = 4096;
const RUNS_MOST: usize = 512;
const ROWS_MOST: usize = 32;
/// Rows of runs of 4 or 8 bytes.
const WORD_ROWS_MOST: usize = 64;

/// Runs of bytes in up to four dimensions.
struct Few {
    run: usize,
    /// How many and how many bytes apart, innermost first.
    dims: [(usize, isize); 4],
}

impl Few {
    /// To be found out.
    #[inline(always)]
    const fn none() -> Few {
        Few { run: 0, dims: [(1, 0); 4] }
    }

    /// The elements of a tensor, of so many bytes each, in row-major order; false if they are not
    /// few. There are elements, and all of them are within memory. In its place: a move would read
    /// at once, and wait for, what has just been written in parts.
    fn find(&mut self, tensor: &Snapshot, item_nbytes: usize) -> bool {
        let (mut used, mut run, mut count) = (0, item_nbytes, 1usize);
        for (&extent, &stride) in tensor.shape().iter().rev().zip(tensor.strides().iter().rev()) {
            // Where the extent is above 1, the stride is one of bytes in memory: nothing wraps.
            let step = stride.wrapping_mul(item_nbytes as i64) as isize;
            let extent = extent as usize;
            if extent == 1 {
                continue;
            }
            if used == 0 && step == run as isize {
                run = run.saturating_mul(extent);
                continue;
            }
            let Some(dim) = self.dims.get_mut(used) else { return false };
            *dim = (extent, step);
            (used, count) = (used + 1, count.saturating_mul(extent));
        }
        self.run = run;
        let rows_most = if matches!(run, 4 | 8) { WORD_ROWS_MOST } else { ROWS_MOST };
        let few_rows = count <= self.dims[0].0.saturating_mul(rows_most);
        few_rows && count <= RUNS_MOST && run.saturating_mul(count) <= NBYTES_MOST
    }

    /// Copies them.
    ///
    /// # Safety
    /// `src` is the first element of the tensor, whose elements are live; `dst` has room for all,
    /// which shares no byte with them.
    #[inline(always)]
    unsafe fn gather(&self, src: *const u8, dst: *mut u8) {
        // SAFETY: the caller's word.
        unsafe { cpu::gather(self.run, &self.dims, src, dst) }
    }
}

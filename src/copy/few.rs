//! Copies to dense memory that need no plan: of dense elements, and of few.

use super::{DENSE_PLAIN, Options, apart, is_opaque};
use crate::abi::DLPACK_FLAG_BITMASK_READ_ONLY;
use crate::device::cpu;
use crate::device_type::CPU;
use crate::dtype;
use crate::layout::{self, Order};
use crate::validate::Snapshot;

/// A way without a plan.
enum Plain {
    /// So many bytes in one go.
    Dense(usize),
    /// The runs that were found.
    Few,
}

/// How a small copy to a dense tensor goes, on the CPU, from a dense one or of few elements, when
/// the two share nothing. What it takes suffices for all checks; `None` of any other.
#[inline(always)]
fn plain(src: &Snapshot, dst: &Snapshot, options: &Options, few: &mut Few) -> Option<Plain> {
    let usual = src.device == CPU
        && dst.device == CPU
        && src.dtype == dst.dtype
        && !is_opaque(src.dtype)
        && dst.flags & DLPACK_FLAG_BITMASK_READ_ONLY == 0
        && !options.streams.any();
    if !usual {
        return None;
    }
    let item_nbytes = dtype::plain_bytes(src.dtype) as usize;
    if let Some(numel) = dense_numel(src, dst) {
        let nbytes = item_nbytes.checked_mul(numel).filter(|n| (1..DENSE_PLAIN).contains(n))?;
        let apart = src.first().addr().abs_diff(dst.first().addr()) >= nbytes;
        return apart.then_some(Plain::Dense(nbytes));
    }
    let same = src.shape() == dst.shape() && item_nbytes > 0;
    let numel = layout::plain_numel(src.shape()).filter(|_| same)?;
    // What these bound is far less than a multiplication holds.
    let few_bytes = (1..=NBYTES_MOST as i64).contains(&numel)
        && numel as usize * item_nbytes <= NBYTES_MOST
        && (src.strides().last() == Some(&1) || numel as usize <= RUNS_MOST);
    (few_bytes && found(src, dst, few)).then_some(Plain::Few)
}

/// Copies what needs no plan; false, and nothing is done, of any other.
#[inline]
pub(super) fn copied_usual(src: &Snapshot, dst: &Snapshot, options: &Options) -> bool {
    let mut few = Few::none();
    match plain(src, dst, options, &mut few) {
        // SAFETY: both are dense, so the elements are `nbytes` bytes from the first on, which the
        // caller vouched for; they do not touch.
        Some(Plain::Dense(nbytes)) => unsafe {
            dst.first().copy_from_nonoverlapping(src.first(), nbytes);
        },
        // SAFETY: the caller vouched for the elements; the destination is dense and apart.
        Some(Plain::Few) => unsafe { few.gather(src.first(), dst.first()) },
        None => return false,
    }
    true
}

/// The name, as the engine's ways have, of the way of a copy that needs no plan.
#[inline(never)]
pub(super) fn named(src: &Snapshot, dst: &Snapshot, options: &Options) -> Option<&'static str> {
    match plain(src, dst, options, &mut Few::none())? {
        Plain::Dense(_) => Some("memcpy"),
        Plain::Few => Some("strided"),
    }
}

/// Elements of two tensors of one shape that are both dense in row-major order; `None` for none, or
/// [`DENSE_PLAIN`] and more.
#[inline(always)]
pub(super) fn dense_numel(src: &Snapshot, dst: &Snapshot) -> Option<usize> {
    const MOST: i64 = DENSE_PLAIN as i64;
    let mut numel = 1i64;
    let from = src.shape().iter().rev().zip(src.strides().iter().rev());
    let to = dst.shape().iter().rev().zip(dst.strides().iter().rev());
    for ((n, from), (other, to)) in from.zip(to) {
        if n != other || *n != 1 && (*from != numel || *to != numel) {
            return None;
        }
        // Both are below 1 << 20.
        numel = if (1..MOST).contains(n) { numel.wrapping_mul(*n) } else { 0 };
        if !(1..MOST).contains(&numel) {
            return None;
        }
    }
    (src.shape().len() == dst.shape().len()).then_some(numel as usize)
}

/// Copies few elements of whole bytes, wherever they lie, to a destination of their shape and
/// dtype, when the CPU reaches both; false, and nothing is done, of others.
#[inline(never)]
pub(super) fn copied_few(src: &Snapshot, dst: &Snapshot) -> bool {
    let mut few = Few::none();
    let able = dtype::plain_bytes(src.dtype) > 0 && found(src, dst, &mut few);
    if able {
        // SAFETY: as above.
        unsafe { few.gather(src.first(), dst.first()) };
    }
    able
}

/// Finds the runs of elements that are few, to a dense destination apart from them.
#[inline(never)]
fn found(src: &Snapshot, dst: &Snapshot, few: &mut Few) -> bool {
    let dense = layout::is_contiguous(dst.shape(), dst.strides(), Order::C);
    dense && few.find(src, dtype::plain_bytes(src.dtype) as usize) && apart(src, dst)
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

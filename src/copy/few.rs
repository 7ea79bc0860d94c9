//! Copies to dense memory of the CPU, where a few questions take the place of all checks: of dense
//! elements and of few, which need no plan, and of others, whose plan is simple from the start.

use super::{DENSE_PLAIN, Job, Options, apart, is_opaque};
use crate::abi::DLPACK_FLAG_BITMASK_READ_ONLY;
use crate::device::cpu::{self, NEST_DIMS, Stores};
use crate::device::plan::{Dim, Item, Plan};
use crate::device_type::CPU;
use crate::dtype;
use crate::layout::{self, Order};
use crate::validate::Snapshot;

/// A way past the checks.
enum Plain {
    /// So many bytes in one go.
    Dense(usize),
    /// The runs that were found, which are few.
    Few,
    /// The runs that were found.
    Runs,
}

/// How a copy to a dense tensor goes, on the CPU, from a small dense one or of runs in a few
/// dimensions, when the two share nothing. What it takes suffices for all checks; `None` of others.
#[inline(always)]
fn plain(src: &Snapshot, dst: &Snapshot, options: &Options, runs: &mut Runs) -> Option<Plain> {
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
    let same = src.shape() == dst.shape() && item_nbytes > 0 && !src.empty;
    match same && found(src, dst, runs) {
        true if runs.few() => Some(Plain::Few),
        true => Some(Plain::Runs),
        false => None,
    }
}

/// Copies what needs no plan: then nothing is left to do. True: `job` is made, and is to be carried
/// out. `None`: neither, of any other copy.
#[inline]
pub(super) fn begun(
    src: &Snapshot,
    dst: &Snapshot,
    options: &Options,
    job: &mut Job,
) -> Option<bool> {
    let mut runs = Runs::none();
    match plain(src, dst, options, &mut runs)? {
        // SAFETY: both are dense, so the elements are `nbytes` bytes from the first on, which the
        // caller vouched for; they do not touch.
        Plain::Dense(nbytes) => unsafe {
            dst.first().copy_from_nonoverlapping(src.first(), nbytes);
        },
        // SAFETY: the caller vouched for the elements; the destination is dense and apart.
        Plain::Few => unsafe { runs.copy(src.first(), dst.first()) },
        Plain::Runs => {
            runs.fill(src, dst, &mut job.transfer.plan);
            job.simple = true;
            return Some(true);
        }
    }
    Some(false)
}

/// The name, as the engine's ways have, of the way of a copy that needs no plan.
#[inline(never)]
pub(super) fn named(src: &Snapshot, dst: &Snapshot, options: &Options) -> Option<&'static str> {
    match plain(src, dst, options, &mut Runs::none())? {
        Plain::Dense(_) => Some("memcpy"),
        Plain::Few => Some("nest"),
        Plain::Runs => None,
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
    let mut runs = Runs::none();
    let able = dtype::plain_bytes(src.dtype) > 0 && found(src, dst, &mut runs) && runs.few();
    if able {
        // SAFETY: as above.
        unsafe { runs.copy(src.first(), dst.first()) };
    }
    able
}

/// Finds the runs of elements, to a dense destination apart from them.
#[inline(never)]
fn found(src: &Snapshot, dst: &Snapshot, runs: &mut Runs) -> bool {
    let dense = layout::is_contiguous(dst.shape(), dst.strides(), Order::C);
    dense && runs.find(src, dtype::plain_bytes(src.dtype) as i64) && apart(src, dst)
}

/// Runs of bytes in a few dimensions, to dense memory.
struct Runs {
    run: i64,
    count: i64,
    /// Innermost first.
    dims: [Dim; NEST_DIMS],
    ndim: usize,
}

impl Runs {
    /// To be found out.
    #[inline(always)]
    const fn none() -> Runs {
        Runs { run: 0, count: 1, dims: [Dim::NONE; NEST_DIMS], ndim: 0 }
    }

    /// The elements of a tensor, of so many bytes each, in row-major order; false if that takes
    /// more dimensions. There are elements, and all of them are within memory. In its place: a move
    /// would read at once, and wait for, what has just been written in parts.
    fn find(&mut self, tensor: &Snapshot, item_nbytes: i64) -> bool {
        let (mut run, mut count, mut ndim) = (item_nbytes, 1i64, 0usize);
        for (&n, &stride) in tensor.shape().iter().rev().zip(tensor.strides().iter().rev()) {
            // Where the extent is above 1, the stride is one of bytes in memory: nothing wraps. So
            // is the destination, of as many elements.
            let src = stride.wrapping_mul(item_nbytes);
            if n == 1 {
                continue;
            }
            if ndim == 0 && src == run {
                run = run.wrapping_mul(n);
                continue;
            }
            let inner = self.dims.get_mut(ndim.wrapping_sub(1));
            if let Some(dim) = inner.filter(|dim| dim.src.wrapping_mul(dim.n) == src) {
                dim.n = dim.n.wrapping_mul(n);
            } else {
                let Some(dim) = self.dims.get_mut(ndim) else { return false };
                *dim = Dim { n, src, dst: run.wrapping_mul(count) };
                ndim += 1;
            }
            count = count.wrapping_mul(n);
        }
        (self.run, self.count, self.ndim) = (run, count, ndim);
        true
    }

    /// Whether they are so few that a plan costs more than its kernels save.
    #[inline(always)]
    fn few(&self) -> bool {
        cpu::few(self.run, self.run.saturating_mul(self.count), &self.dims)
    }

    /// The plan, in its normal form.
    fn fill(&self, src: &Snapshot, dst: &Snapshot, plan: &mut Plan) {
        *plan = Plan::new(src.first(), dst.first(), Item::Bytes(self.run as usize));
        for &dim in self.dims.iter().take(self.ndim).rev() {
            plan.push(dim);
        }
    }

    /// Copies them.
    ///
    /// # Safety
    /// `src` is the first element of the tensor, whose elements are live; `dst` has room for all,
    /// which shares no byte with them.
    #[inline(always)]
    unsafe fn copy(&mut self, src: *const u8, dst: *mut u8) {
        // SAFETY: the caller's word.
        unsafe { cpu::nested(self.run as usize, &mut self.dims, src, dst, Stores::Plain) }
    }
}

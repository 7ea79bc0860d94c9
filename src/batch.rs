//! Several copies in one call, and copies from and to plain bytes.

use core::ptr::NonNull;

use crate::abi::DLManagedTensorVersioned as Managed;
use crate::copy::{self, Job, Options, Scratch};
use crate::dtype;
use crate::error::{Arg, Error, Result, Status::*};
use crate::layout;
use crate::numbers;
use crate::validate::Snapshot;

/// One copy of several.
pub type Pair = (NonNull<Managed>, NonNull<Managed>);

/// Copies `n` pairs; all but a device's fault is found out before the first byte is written.
/// On failure tells which pair it was.
///
/// # Safety
/// Every pair is live and stays as it is during the call.
pub unsafe fn copy_batch(
    n: usize,
    pair: &dyn Fn(usize) -> Result<Pair>,
    args: [Arg; 2],
    options: &Options,
) -> core::result::Result<(), (usize, Error)> {
    let mut nbytes = None;
    // SAFETY: the caller's word.
    let make = |index, job: &mut Job| unsafe { read(pair(index)?, args, options, job) };
    let mut job = Job::none();
    for index in 0..n {
        if make(index, &mut job).map_err(|error| (index, error))? {
            nbytes = nbytes.max(job.scratch_nbytes);
        }
    }
    let scratch = Scratch::new(nbytes).map_err(|error| (n, error))?;
    for index in 0..n {
        let copied = make(index, &mut job).and_then(|moves| match moves {
            // SAFETY: the caller's word; what was found before is found again.
            true if job.scratch_nbytes <= nbytes => unsafe {
                copy::run(&mut job, &scratch, options)
            },
            _ => Ok(()), // nothing to move
        });
        copied.map_err(|error| (index, error))?;
    }
    Ok(())
}

/// # Safety
/// Both are live.
#[inline(never)]
unsafe fn read(
    (src, dst): Pair,
    [source, target]: [Arg; 2],
    options: &Options,
    job: &mut Job,
) -> Result<bool> {
    let [mut from, mut to] = [Snapshot::new(), Snapshot::new()];
    // SAFETY: the caller's word.
    unsafe {
        from.read_managed(src.as_ptr(), options.rules()).map_err(|e| e.of(source))?;
        to.read_managed(dst.as_ptr(), options.rules()).map_err(|e| e.of(target))?;
    }
    copy::check(&from, &to, options, job).map_err(|e| e.of(target))
}

/// Bytes of a tensor's elements, packed.
fn packed_nbytes(tensor: &Snapshot) -> Result<u64> {
    layout::packed_nbytes(tensor.numel()?, dtype::item_bits(tensor.dtype))
}

/// Begins to copy packed elements in row-major order to `dst`: what is left to do is in `job`, if
/// anything is, for [`copy::finish`] with the same options.
///
/// # Safety
/// `bytes` points to `nbytes` readable bytes.
pub unsafe fn begin_from_bytes(
    bytes: *const u8,
    nbytes: u64,
    dst: &Snapshot,
    options: &Options,
    job: &mut Job,
) -> Result<bool> {
    let needed = packed_nbytes(dst)?;
    if nbytes != needed {
        let error = Error::new(if nbytes < needed { DLRS_BUF_SMALL } else { DLRS_BAD_ARG });
        let error = error.detail("nbytes is not the size of the packed elements");
        return Err(error.value(nbytes as i64).limit(needed as i64));
    }
    let mut src = Snapshot::new();
    let place = (bytes.cast_mut(), None); // only read
    // SAFETY: as many bytes as the elements need.
    unsafe { numbers::view(dst.shape(), dst.dtype, place, 0, &mut src)? };
    copy::check(&src, dst, options, job)
}

/// Bits at the end of bytes that belong to no element.
#[derive(Clone, Copy)]
pub struct Rest {
    last: *mut u8,
    kept: u32,
}

impl Rest {
    /// Makes them 0.
    ///
    /// # Safety
    /// The elements have been copied to the bytes.
    pub unsafe fn clear(self) {
        if self.kept != 0 {
            // SAFETY: the last byte of elements that do not fill it.
            unsafe { self.last.write(self.last.read() & ((1 << self.kept) - 1)) };
        }
    }
}

/// As [`begin_from_bytes`], of the elements of `src` to packed ones; `None` if there are none.
///
/// # Safety
/// `bytes` points to `nbytes` writable bytes.
pub unsafe fn begin_to_bytes(
    src: &Snapshot,
    bytes: *mut u8,
    nbytes: u64,
    options: &Options,
    job: &mut Job,
) -> Result<Option<Rest>> {
    let needed = packed_nbytes(src)?;
    if nbytes < needed {
        let error =
            Error::new(DLRS_BUF_SMALL).detail("room for fewer bytes than the elements have");
        return Err(error.value(nbytes as i64).limit(needed as i64));
    }
    let mut dst = Snapshot::new();
    // SAFETY: as many bytes as the elements need.
    unsafe { numbers::view(src.shape(), src.dtype, (bytes, None), 0, &mut dst)? };
    let last = bytes.wrapping_add((needed as usize).wrapping_sub(1));
    let bits = (src.numel()? as u64).wrapping_mul(dtype::item_bits(src.dtype).into());
    let moves = copy::check(src, &dst, options, job)?;
    Ok(moves.then_some(Rest { last, kept: (bits % 8) as u32 }))
}

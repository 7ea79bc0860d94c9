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
        // SAFETY: the caller's word; what was found before is found again.
        unsafe {
            match make(index, &mut job) {
                Ok(true) if job.scratch_nbytes <= nbytes => {
                    copy::run(&mut job, &scratch, options).map_err(|error| (index, error))?;
                }
                _ => {} // nothing to move
            }
        }
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

/// Copies packed elements in row-major order to `dst`.
///
/// # Safety
/// `bytes` points to `nbytes` readable bytes.
pub unsafe fn copy_from_bytes(
    bytes: *const u8,
    nbytes: u64,
    dst: &Snapshot,
    options: &Options,
) -> Result<()> {
    let needed = packed_nbytes(dst)?;
    if nbytes != needed {
        let error = Error::new(if nbytes < needed { DLRS_BUF_SMALL } else { DLRS_BAD_ARG });
        let error = error.detail("nbytes is not the size of the packed elements");
        return Err(error.value(nbytes as i64).limit(needed as i64));
    }
    let mut src = Snapshot::new();
    let place = (bytes.cast_mut(), None); // only read
    // SAFETY: as many bytes as the elements need.
    unsafe { numbers::view(dst, dst.dtype, place, 0, &mut src)? };
    copy::repack(&src, dst, options)
}

/// Copies the elements of `src`, packed, in row-major order. The last bits of the last byte are 0.
///
/// # Safety
/// `bytes` points to `nbytes` writable bytes.
pub unsafe fn copy_to_bytes(
    src: &Snapshot,
    bytes: *mut u8,
    nbytes: u64,
    options: &Options,
) -> Result<()> {
    let needed = packed_nbytes(src)?;
    if nbytes < needed {
        let error =
            Error::new(DLRS_BUF_SMALL).detail("room for fewer bytes than the elements have");
        return Err(error.value(nbytes as i64).limit(needed as i64));
    }
    let mut dst = Snapshot::new();
    // SAFETY: as many bytes as the elements need; the last one is inside.
    unsafe {
        numbers::view(src, src.dtype, (bytes, None), 0, &mut dst)?;
        let (mut job, options) = (Job::none(), &Options { repack: true, ..*options });
        if copy::check(src, &dst, options, &mut job)? {
            let scratch = Scratch::new(job.scratch_nbytes)?;
            copy::run(&mut job, &scratch, options)?;
            let rest = (src.numel()? as u64).wrapping_mul(dtype::item_bits(src.dtype).into()) % 8;
            if rest != 0 {
                let last = bytes.wrapping_add(needed as usize - 1);
                last.write(last.read() & ((1 << rest) - 1));
            }
        }
    }
    Ok(())
}

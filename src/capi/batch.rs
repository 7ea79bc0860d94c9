//! Batched copies, and copies from and to plain bytes.

use core::ffi::c_void;
use core::ptr::{NonNull, null};

use super::arg;
use super::copy::{Room, copy_options, dlrs_copy_options};
use super::error::{dlrs_error, dlrs_status, run_given};
use crate::abi::*;
use crate::batch::{self, Bytes};
use crate::copy::{Given, Options, Pair};
use crate::error::{Arg, Of, Result};

/// Copy several tensors; nothing is written unless every pair can be copied.
///
/// Shape:     src and dst are arrays of n tensors, possibly NULL when n is 0; each pair as in
///            dlrs_copy.
/// Bytes:     as dlrs_copy. No dst may share memory with a tensor of another pair: this is not
///            checked, and the order of the pairs is undefined.
/// Device:    as dlrs_copy. Successive pairs of the same devices, streams and dlrs_ready_record are
///            ordered once and waited for once, whatever their number.
/// Ownership: unchanged.
/// Flags:     as dlrs_copy.
/// Errors:    as dlrs_copy for every pair, in the order of the pairs. When a pair is at fault and
///            failed is not NULL, *failed is its index; else *failed is n or not modified.
///            On any error but a device's nothing has been written. After a device's any dst may
///            have been; nothing is pending, unless DLRS_COPY_ASYNC was given.
/// Threads:   as dlrs_copy.
/// Source:    this library.
///
/// # Safety
/// As dlrs_copy, for every pair; no other thread modifies the structs meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_copy_batch(
    n: u64,
    src: *const *const DLManagedTensorVersioned,
    dst: *const *mut DLManagedTensorVersioned,
    options: *const dlrs_copy_options,
    failed: *mut u64,
    error: *mut dlrs_error,
) -> dlrs_status {
    let pointers = [
        arg::need_if(n > 0, src, Arg::src),
        arg::need_if(n > 0, dst, Arg::dst),
        arg::may(options, Arg::options),
        arg::may(failed, Arg::failed),
    ];
    run_given("dlrs_copy_batch", error, pointers, || {
        let (args, mut room): ([Arg; 2], _) = ([Arg::src, Arg::dst], Room::uninit());
        // SAFETY: arrays of live tensors, and live options, by the preface.
        unsafe {
            let (from, to) = (arg::array(src, n, args[0])?, arg::array(dst, n, args[1])?);
            let options = copy_options(options, Arg::options, 0, &mut room)?;
            let pair = |index: usize| {
                let src = arg::required(from.get(index).unwrap_or(null()), args[0])?;
                let dst = to.get(index).map_or(null(), <*mut _>::cast_const);
                Ok(Given { src, dst: arg::required(dst, args[1])? })
            };
            batch::copy_batch(from.len(), pair, args, options).map_err(|(index, error)| {
                arg::report(failed, index as u64);
                error
            })
        }
    })
}

/// The tensor, the bytes and the options of the two functions below, which go between packed and
/// padded elements too.
struct Asked {
    tensor: NonNull<DLManagedTensorVersioned>,
    bytes: Bytes,
    options: Options,
}

/// # Safety
/// The preface's contract for every pointer.
#[inline(never)]
unsafe fn asked(
    (tensor, argument): (*const DLManagedTensorVersioned, Arg),
    (bytes, nbytes): (*const c_void, u64),
    [bytes_arg, nbytes_arg]: [Arg; 2],
    options: *const dlrs_copy_options,
) -> Result<Asked> {
    let tensor = arg::required(tensor, argument)?;
    let first = arg::place(bytes, nbytes, [bytes_arg, nbytes_arg])?.as_ptr();
    let mut room = Room::uninit();
    // SAFETY: the caller's word.
    let options = unsafe { copy_options(options, Arg::options, 0, &mut room)? };
    let bytes = Bytes { first, nbytes, nbytes_arg };
    Ok(Asked { tensor, bytes, options: Options { repack: true, ..*options } })
}

/// Copy plain bytes into the elements of a tensor.
///
/// Shape:     the bytes are the elements in row-major order, without gaps; any strides in dst.
/// Bytes:     nbytes must be that of dlrs_nbytes for flags 0: sub-byte elements are packed in the
///            bytes also when dst is padded. Native byte order. NULL is allowed when nbytes is 0.
/// Device:    dst accessible by the CPU: CPU, pinned, managed.
/// Ownership: unchanged; the bytes are not kept.
/// Flags:     dst must not be READ_ONLY. No flag is changed.
/// Errors:    as dlrs_copy, the bytes being src. DLRS_BUF_SMALL: nbytes is too small.
///            DLRS_BAD_ARG: nbytes is too large. On any error nothing has been written.
/// Threads:   as dlrs_copy.
/// Source:    this library.
///
/// # Safety
/// See the preface; no other thread writes the bytes or accesses the elements of dst meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_copy_from_bytes(
    bytes: *const c_void,
    nbytes: u64,
    dst: *mut DLManagedTensorVersioned,
    options: *const dlrs_copy_options,
    error: *mut dlrs_error,
) -> dlrs_status {
    let pointers = [
        arg::need_if(nbytes > 0, bytes.cast::<u8>(), Arg::bytes),
        arg::need(dst, Arg::dst),
        arg::may(options, Arg::options),
    ];
    run_given("dlrs_copy_from_bytes", error, pointers, || {
        let [source, nbytes_arg, target]: [Arg; 3] = [Arg::bytes, Arg::nbytes, Arg::dst];
        let mut pair = Pair::new([source, target]);
        // SAFETY: the preface's contract for every pointer.
        unsafe {
            let Asked { tensor, bytes, options } =
                asked((dst, target), (bytes, nbytes), [source, nbytes_arg], options)?;
            pair.dst.read_managed(tensor.as_ptr(), options.rules()).of(target)?;
            batch::copy_from_bytes(bytes, &mut pair, &options)
        }
    })
}

/// Copy the elements of a tensor into plain bytes.
///
/// Shape:     the bytes become the elements in row-major order, without gaps; any strides in src.
/// Bytes:     nbytes is the capacity; as many as dlrs_nbytes returns for flags 0 are written:
///            sub-byte elements are packed also when src is padded, and unused bits of the last
///            byte are 0. Native byte order. NULL is allowed when nbytes is 0.
/// Device:    src accessible by the CPU: CPU, pinned, managed.
/// Ownership: unchanged.
/// Flags:     only IS_SUBBYTE_TYPE_PADDED is used.
/// Errors:    as dlrs_copy, the bytes being dst. DLRS_BUF_SMALL: nbytes is too small.
///            On any error nothing has been written.
/// Threads:   as dlrs_copy.
/// Source:    this library.
///
/// # Safety
/// See the preface; no other thread writes the elements of src or accesses the bytes meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_copy_to_bytes(
    src: *const DLManagedTensorVersioned,
    bytes: *mut c_void,
    nbytes: u64,
    options: *const dlrs_copy_options,
    error: *mut dlrs_error,
) -> dlrs_status {
    let pointers = [
        arg::need(src, Arg::src),
        arg::need_if(nbytes > 0, bytes.cast::<u8>(), Arg::bytes),
        arg::may(options, Arg::options),
    ];
    run_given("dlrs_copy_to_bytes", error, pointers, || {
        let [source, target, nbytes_arg]: [Arg; 3] = [Arg::src, Arg::bytes, Arg::nbytes];
        let mut pair = Pair::new([source, target]);
        // SAFETY: the preface's contract for every pointer.
        unsafe {
            let bytes = (bytes.cast_const(), nbytes);
            let Asked { tensor, bytes, options } =
                asked((src, source), bytes, [target, nbytes_arg], options)?;
            pair.src.read_managed(tensor.as_ptr(), options.rules()).of(source)?;
            batch::copy_to_bytes(bytes, &mut pair, &options)
        }
    })
}

//! Several copies in one call, and copies from and to plain bytes.

use core::ffi::c_void;
use core::ptr::{NonNull, null};

use super::arg;
use super::copy::{CopyArgs, dlrs_copy_options};
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::batch::{self, Rest};
use crate::copy::{Job, Options, finish};
use crate::error::{Arg, Parameter, Result};
use crate::validate::Snapshot;

/// Copy several tensors; nothing is written unless every pair can be copied.
///
/// Shape:     src and dst are arrays of n tensors, possibly NULL when n is 0; each pair as in
///            dlrs_copy.
/// Bytes:     as dlrs_copy. No dst may share memory with a tensor of another pair: that is not
///            checked, and the order of the pairs is not defined.
/// Device:    as dlrs_copy.
/// Ownership: unchanged.
/// Flags:     as dlrs_copy.
/// Errors:    as dlrs_copy for every pair, in the order of the pairs. When a pair is at fault and
///            failed is not NULL, *failed is its index; else *failed is n or untouched.
///            On any error nothing has been written.
/// Threads:   as dlrs_copy.
/// Source:    this library.
///
/// # Safety
/// As dlrs_copy, for every pair; nobody changes the structs meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_copy_batch(
    n: u64,
    src: *const *const DLManagedTensorVersioned,
    dst: *const *mut DLManagedTensorVersioned,
    options: *const dlrs_copy_options,
    failed: *mut u64,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_copy_batch", error, || {
        let args: [Arg; 2] = [&Parameter(2, "src"), &Parameter(3, "dst")];
        // SAFETY: arrays of live tensors, and live options, by the preface.
        unsafe {
            let (from, to) = (arg::array(src, n, args[0])?, arg::array(dst, n, args[1])?);
            let options = CopyArgs::read(options, &Parameter(4, "options"))?;
            let pair = |index: usize| {
                let src = arg::required(from.get(index).map_or(null(), |&src| src), args[0])?;
                let dst = to.get(index).map_or(null(), |dst| dst.cast_const());
                Ok((src, arg::required(dst, args[1])?))
            };
            batch::copy_batch(from.len(), &pair, args, &options).map_err(|(index, error)| {
                arg::report(failed, index as u64);
                error
            })
        }
    })
}

/// The tensor, the bytes and the options of the two functions below, which go between packed and
/// padded elements too.
struct Given {
    tensor: NonNull<DLManagedTensorVersioned>,
    bytes: NonNull<u8>,
    nbytes: u64,
    options: Options,
}

/// # Safety
/// The preface's contract for every pointer.
#[inline(never)]
unsafe fn given(
    (tensor, argument): (*const DLManagedTensorVersioned, Arg),
    (bytes, nbytes, bytes_argument): (*const c_void, u64, Arg),
    options: *const dlrs_copy_options,
) -> Result<Given> {
    let tensor = arg::required(tensor, argument)?;
    let bytes = arg::place(bytes, nbytes, bytes_argument)?;
    // SAFETY: the caller's word.
    let options = unsafe { CopyArgs::read(options, &Parameter(4, "options"))? };
    Ok(Given { tensor, bytes, nbytes, options: Options { repack: true, ..options } })
}

/// Copy plain bytes into the elements of a tensor.
///
/// Shape:     the bytes are the elements in row-major order, without gaps; any strides in dst.
/// Bytes:     nbytes must be what dlrs_nbytes gives for flags 0: sub-byte elements are packed in
///            the bytes also when dst is padded. The machine's byte order. NULL when nbytes is 0.
/// Device:    dst reachable by the CPU: CPU, pinned, managed.
/// Ownership: unchanged; the bytes are not kept.
/// Flags:     dst must not be READ_ONLY. No flag is changed.
/// Errors:    as dlrs_copy, the bytes being src. DLRS_BUF_SMALL: nbytes is too small.
///            DLRS_BAD_ARG: nbytes is too large. On any error nothing has been written.
/// Threads:   as dlrs_copy.
/// Source:    this library.
///
/// # Safety
/// See the preface; nobody writes the bytes or touches the elements of dst meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_copy_from_bytes(
    bytes: *const c_void,
    nbytes: u64,
    dst: *mut DLManagedTensorVersioned,
    options: *const dlrs_copy_options,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_copy_from_bytes", error, || {
        let (source, target) = (&Parameter(1, "bytes"), &Parameter(3, "dst"));
        let mut job = Job::none();
        // SAFETY: the preface's contract for every pointer.
        unsafe {
            let given = given((dst, target), (bytes, nbytes, source), options)?;
            let moves = from_bytes(&given, &mut job).map_err(|e| e.of(target))?;
            if moves { finish(&mut job, &given.options).map_err(|e| e.of(target)) } else { Ok(()) }
        }
    })
}

/// Reads the tensor and begins; its extents and strides are gone when elements move.
///
/// # Safety
/// All is live.
#[inline(never)]
unsafe fn from_bytes(given: &Given, job: &mut Job) -> Result<bool> {
    let (mut to, options) = (Snapshot::new(), &given.options);
    // SAFETY: the caller's word.
    unsafe {
        to.read_managed(given.tensor.as_ptr(), options.rules())?;
        batch::begin_from_bytes(given.bytes.as_ptr(), given.nbytes, &to, options, job)
    }
}

/// Copy the elements of a tensor into plain bytes.
///
/// Shape:     the bytes become the elements in row-major order, without gaps; any strides in src.
/// Bytes:     nbytes is the room; as many as dlrs_nbytes gives for flags 0 are written: sub-byte
///            elements are packed also when src is padded, and unused bits of the last byte are 0.
///            The machine's byte order. NULL when nbytes is 0.
/// Device:    src reachable by the CPU: CPU, pinned, managed.
/// Ownership: unchanged.
/// Flags:     none matters but IS_SUBBYTE_TYPE_PADDED.
/// Errors:    as dlrs_copy, the bytes being dst. DLRS_BUF_SMALL: nbytes is too small.
///            On any error nothing has been written.
/// Threads:   as dlrs_copy.
/// Source:    this library.
///
/// # Safety
/// See the preface; nobody writes the elements of src or touches the bytes meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_copy_to_bytes(
    src: *const DLManagedTensorVersioned,
    bytes: *mut c_void,
    nbytes: u64,
    options: *const dlrs_copy_options,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_copy_to_bytes", error, || {
        let (source, target) = (&Parameter(1, "src"), &Parameter(2, "bytes"));
        let mut job = Job::none();
        // SAFETY: the preface's contract for every pointer.
        unsafe {
            let bytes = (bytes.cast_const(), nbytes, target as Arg);
            let given = given((src, source), bytes, options)?;
            if let Some(rest) = to_bytes(&given, &mut job).map_err(|e| e.of(source))? {
                finish(&mut job, &given.options).map_err(|e| e.of(source))?;
                rest.clear();
            }
        }
        Ok(())
    })
}

/// As [`from_bytes`], to bytes.
///
/// # Safety
/// All is live.
#[inline(never)]
unsafe fn to_bytes(given: &Given, job: &mut Job) -> Result<Option<Rest>> {
    let (mut from, options) = (Snapshot::new(), &given.options);
    // SAFETY: the caller's word.
    unsafe {
        from.read_managed(given.tensor.as_ptr(), options.rules())?;
        batch::begin_to_bytes(&from, given.bytes.as_ptr(), given.nbytes, options, job)
    }
}

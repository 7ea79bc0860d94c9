//! References: release, retain, flags, the caller's own pointer.

use core::ptr::NonNull;

use super::arg::{live, result};
use super::error::{dlrs_error, dlrs_status, run, run_usual};
use crate::abi::*;
use crate::error::{Arg, Of};
use crate::tensor::{block, share};

/// Release the caller's reference to a versioned tensor, ours or a foreign one.
///
/// Ownership: the pointer is invalid afterwards. The deleter is called once; a tensor without one
///            is not modified. NULL does nothing.
/// Errors:    none.
/// Threads:   any, without any interpreter's lock.
/// Source:    dlpack.h: the deleter may be called on any major version.
///
/// # Safety
/// A second release of the same reference cannot be detected.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_release(tensor: *mut DLManagedTensorVersioned) {
    if let Some(tensor) = NonNull::new(tensor) {
        // SAFETY: tensor is live, by the preface, and its reference is given up here.
        unsafe { share::release_here(tensor) }
    }
}

/// Release the caller's reference to a legacy tensor, ours or a foreign one.
///
/// Source:    dlpack.h. All else as dlrs_release.
///
/// # Safety
/// A second release of the same reference cannot be detected.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_release_legacy(tensor: *mut DLManagedTensor) {
    if let Some(tensor) = NonNull::new(tensor) {
        // SAFETY: tensor is live, by the preface, and its reference is given up here.
        unsafe { share::release_legacy(tensor) }
    }
}

/// Share a tensor of this library: one more reference to the same struct.
///
/// Shape:     unchanged: *out is tensor itself.
/// Ownership: *out is a separate reference and must be released too; the data is freed with the
///            last one.
/// Flags:     IS_COPIED is cleared: a shared tensor is not solely owned.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or out.
///            DLRS_VERSION: major version is not 1. DLRS_FOREIGN: not made here: a foreign
///            tensor is boxed once by dlrs_import_take. DLRS_REFCOUNT: too many references, or
///            none: a callback of the tensor that is being freed.
/// Threads:   any; the count is atomic, in signal handlers too.
/// Source:    this library; the meaning of IS_COPIED is dlpack.h's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_retain(
    tensor: *mut DLManagedTensorVersioned,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    let pointers = (live(tensor, Arg::tensor), result(out, Arg::out));
    // SAFETY: tensor and error are NULL or live, out is NULL or a writable variable, by the
    // preface.
    unsafe {
        run_usual(
            "dlrs_retain",
            error,
            pointers,
            |(tensor, out)| {
                share::retain_own(tensor.get()).then(|| out.give(tensor.get())).ok_or(())
            },
            |(tensor, out), ()| {
                out.give(share::retain(tensor.get()).of(Arg::tensor)?);
                Ok(())
            },
        )
    }
}

/// Return the reference count of a tensor of this library.
///
/// Ownership: unchanged. The number may be outdated when it is read, unless it is 1.
/// Errors:    none: 0 for NULL and for a tensor that was not made here.
/// Threads:   any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_ref_count(tensor: *const DLManagedTensorVersioned) -> i64 {
    match NonNull::new(tensor.cast_mut()) {
        // SAFETY: tensor is live, by the preface.
        Some(tensor) => unsafe { share::references(tensor) as i64 },
        None => 0,
    }
}

/// Return whether a tensor was made by this loaded copy of the library.
///
/// Ownership: unchanged.
/// Errors:    none: 1 for yes, 0 for no and for NULL.
/// Threads:   any.
/// Source:    this library: its tensors are recognised by their deleter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_is_own(tensor: *const DLManagedTensorVersioned) -> i32 {
    match NonNull::new(tensor.cast_mut()) {
        // SAFETY: tensor is live, by the preface.
        Some(tensor) => unsafe { block::of_versioned(tensor).is_some().into() },
        None => 0,
    }
}

/// Set and clear flags of a tensor of this library, where they remain correct.
///
/// Ownership: unchanged.
/// Flags:     READ_ONLY can always be set; it is cleared only with one reference and no base.
///            IS_COPIED is set under the same condition, and can always be cleared.
///            IS_SUBBYTE_TYPE_PADDED is a property of the data and cannot be changed.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor. DLRS_VERSION, DLRS_FOREIGN: tensor.
///            DLRS_FLAGS: unknown bits, the same bit set and cleared, or padding changed.
///            DLRS_REFCOUNT: IS_COPIED set without sole ownership.
///            DLRS_READ_ONLY: READ_ONLY cleared without sole ownership.
/// Threads:   any; consumers that already read the flags do not see the change.
/// Source:    dlpack.h: IS_COPIED means solely owned by the consumer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_set_flags(
    tensor: *mut DLManagedTensorVersioned,
    set: u64,
    clear: u64,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: tensor and error are NULL or live, by the preface; a block lives as long as its
    // tensor.
    unsafe {
        run("dlrs_set_flags", error, (live(tensor, Arg::tensor),), |(tensor,)| {
            let block = share::own(tensor.get()).of(Arg::tensor)?;
            share::set_flags(block.as_ref(), set, clear).of(Arg::tensor)
        })
    }
}

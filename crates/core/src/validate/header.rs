//! The header of a managed tensor: its version and flags.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::abi::*;
use crate::error::{Error, Field::*, Result, Status::*};

/// The flags of a tensor of major 1.
///
/// # Safety
/// `tensor` is aligned and points to a live versioned struct of major 1.
pub unsafe fn flags_of(tensor: *const DLManagedTensorVersioned) -> u64 {
    // SAFETY: `tensor` is a live struct of major 1, which has the member `flags`.
    let flags = unsafe { &raw const (*tensor).flags }.cast_mut();
    // On 32-bit x86 a struct of C may be aligned to 4 only; on others this is always true.
    let aligned = align_of::<u64>() == align_of::<AtomicU64>() || flags.addr().is_multiple_of(8);
    // SAFETY: an aligned u64. Atomic, because `dlrs_set_flags` and `dlrs_retain` may change the
    // flags of a shared tensor of ours, which malloc aligned, on another thread.
    unsafe {
        if aligned { AtomicU64::from_ptr(flags).load(Relaxed) } else { flags.read_volatile() }
    }
}

/// Reads the header of a versioned tensor; accesses nothing after `flags` unless the major is 1.
///
/// # Safety
/// `tensor` is aligned and points to a versioned struct of any major.
pub unsafe fn check_version(tensor: *const DLManagedTensorVersioned) -> Result<DLPackVersion> {
    // SAFETY: `tensor` is aligned and readable; `version` is its first member in every major.
    let version = unsafe { (&raw const (*tensor).version).read_volatile() };
    if version.major == DLPACK_MAJOR_VERSION {
        return Ok(version);
    }
    const MAJOR: &str = "\0Request version 1, or is it a DLManagedTensor? See \
                         dlrs_from_legacy_take.\0Ask the producer for max_version=(1, 0).";
    let error = Error::new(DLRS_VERSION).field(DLRS_FIELD_VERSION);
    // Without the value: of a legacy struct, it is half of an address.
    let error = error.limit(DLPACK_MAJOR_VERSION.into());
    Err(error.detail(MAJOR))
}

/// The error of a legacy struct; of one that begins as a versioned one does, without numbers, which
/// are of its addresses.
///
/// # Safety
/// `tensor` is aligned and points to a legacy or a versioned struct.
#[cold]
pub unsafe fn of_legacy(tensor: NonNull<DLManagedTensor>, error: Error) -> Error {
    // SAFETY: `tensor` is aligned, and readable for more bytes than a version has.
    let version = unsafe { tensor.cast::<DLPackVersion>().as_ptr().read_volatile() };
    match version {
        DLPackVersion { major: DLPACK_MAJOR_VERSION, minor: 0..=255 } => Error::new(error.status())
            .detail(
                "the struct is a DLManagedTensorVersioned\0Pass it to the function for those, such \
                 as dlrs_import_take or dlrs_validate_managed.\0Name its capsule \
                 dltensor_versioned.",
            ),
        _ => error,
    }
}

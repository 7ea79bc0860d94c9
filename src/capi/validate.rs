//! Validation.

use core::ffi::c_void;

use super::arg::{Live, live};
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::copy;
use crate::error::{Arg, Error, Of, Result, Status::*};
use crate::validate::{Level, Level::*, Rules, Snapshot, of_legacy};

/// A `dlrs_level` of C.
#[inline]
pub(super) fn level_of(level: i32) -> Result<Level> {
    const STRUCT: i32 = DLRS_LEVEL_STRUCT as i32;
    const LAYOUT: i32 = DLRS_LEVEL_LAYOUT as i32;
    const STRICT: i32 = DLRS_LEVEL_STRICT as i32;
    const DEVICE: i32 = DLRS_LEVEL_DEVICE as i32;
    match level {
        STRUCT => Ok(DLRS_LEVEL_STRUCT),
        LAYOUT => Ok(DLRS_LEVEL_LAYOUT),
        STRICT => Ok(DLRS_LEVEL_STRICT),
        DEVICE => Ok(DLRS_LEVEL_DEVICE),
        _ => Err(no_level(level)),
    }
}

#[cold]
fn no_level(level: i32) -> Error {
    const LEVEL: &str = "is not a dlrs_level\0Give DLRS_LEVEL_STRUCT to DLRS_LEVEL_DEVICE.";
    let error = Error::new(DLRS_BAD_ARG).detail(LEVEL).value(level.into());
    error.limit(DLRS_LEVEL_DEVICE as i64)
}

#[inline(never)]
fn check(tensor: Live<DLTensor>, flags: u64, level: Level) -> Result<()> {
    let rules = Rules::of(level);
    let mut snapshot = Snapshot::new();
    tensor.read(flags, rules, &mut snapshot).of(Arg::tensor)?;
    copy::check_pointer(&snapshot, rules).of(Arg::tensor)
}

/// Check a bare tensor.
///
/// Shape:     read once, at most 64 dimensions; NULL strides are compact row-major.
/// Bytes:     sizes and addresses from DLRS_LEVEL_LAYOUT on; the data itself is never read.
/// Device:    known codes from DLRS_LEVEL_STRICT on; on opaque-handle devices (OpenCL, Vulkan,
///            Metal, WebGPU) addresses are not checked.
/// Ownership: unchanged.
/// Flags:     those of its managed tensor, or 0.
/// Errors:    in this order:
///            DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor. DLRS_BAD_ARG: level.
///            DLRS_FLAGS (strict): unknown bits. Padding on a type of whole bytes is ignored.
///            DLRS_NDIM: below 0 or above 64. DLRS_SHAPE_NULL: NULL with ndim above 0.
///            DLRS_MISALIGNED_STRUCT: shape. DLRS_DTYPE_BITS, DLRS_DTYPE_LANES: 0.
///            DLRS_DTYPE_CODE, DLRS_DTYPE_BITS (strict): unknown, or not of the code.
///            DLRS_DEVICE_TYPE, DLRS_DEVICE_ID (strict): unknown, negative, or not 0 for host,
///            pinned and managed memory. DLRS_SHAPE_NEG: an extent.
///            DLRS_MISALIGNED_STRUCT: strides. DLRS_SIZE_OVERFLOW: they are NULL, and compact ones
///            do not fit.
///            DLRS_SIZE_OVERFLOW, DLRS_EXTENT_OVERFLOW (layout): sizes and strides.
///            DLRS_SUBBYTE (strict): packed elements are neither row-major without gaps, nor rows
///            without gaps that start on whole bytes.
///            DLRS_DATA_NULL, DLRS_OFFSET, DLRS_EXTENT_OVERFLOW (layout): the addresses.
///            DLRS_DEVICE_TYPE, DLRS_DEVICE_ID, DLRS_OUT_OF_BOUNDS (device): the driver reports
///            other memory; limit is its value. Classes 5 and 6: the driver.
/// Threads:   any; a struct that another thread modifies meanwhile is read once.
/// Source:    "Consumer" rules of dlpack.h and python_spec.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_validate(
    tensor: *const DLTensor,
    flags: u64,
    level: i32,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: tensor and error are NULL or live, by the preface.
    unsafe {
        run("dlrs_validate", error, (live(tensor, Arg::tensor),), |(tensor,)| {
            let level = level_of(level).of(Arg::level)?;
            match level != DLRS_LEVEL_DEVICE && tensor.is_plain(flags) {
                true => Ok(()),
                false => check(tensor, flags, level),
            }
        })
    }
}

/// Check a versioned tensor.
///
/// Shape:     as dlrs_validate; DLRS_LEVEL_STRICT requires strides from version 1.2 on.
/// Flags:     its own.
/// Errors:    DLRS_VERSION, before all others of the tensor: the major version is not 1; no member
///            after flags is read then. DLRS_STRIDES_NULL (strict): see Shape. A NULL deleter is
///            legal. All else as dlrs_validate.
/// Source:    "Consumer" rules of dlpack.h and python_spec.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_validate_managed(
    tensor: *const DLManagedTensorVersioned,
    level: i32,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: tensor and error are NULL or live, by the preface.
    unsafe {
        run("dlrs_validate_managed", error, (live(tensor, Arg::tensor),), |(tensor,)| {
            let rules = Rules::of(level_of(level).of(Arg::level)?);
            let mut snapshot = Snapshot::new();
            tensor.read(rules, &mut snapshot).of(Arg::tensor)?;
            copy::check_pointer(&snapshot, rules).of(Arg::tensor)
        })
    }
}

/// Check a legacy tensor.
///
/// Flags:     none.
/// Errors:    a NULL deleter is legal. All else as dlrs_validate.
/// Source:    "Consumer" rules of dlpack.h and python_spec.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_validate_legacy(
    tensor: *const DLManagedTensor,
    level: i32,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: tensor and error are NULL or live, by the preface.
    unsafe {
        run("dlrs_validate_legacy", error, (live(tensor, Arg::tensor),), |(tensor,)| {
            let level = level_of(level).of(Arg::level)?;
            let found = check(tensor.bare(), 0, level);
            found.map_err(|error| of_legacy(tensor.get(), error).of(Arg::tensor))
        })
    }
}

/// Check that a tensor stays inside an allocation known to the caller.
///
/// Shape:     as dlrs_validate at DLRS_LEVEL_LAYOUT.
/// Bytes:     every byte of every element must lie in [base, base + nbytes).
/// Device:    any whose data is an address.
/// Ownership: unchanged.
/// Flags:     those of its managed tensor, or 0.
/// Errors:    DLRS_OUT_OF_BOUNDS: value is the offset farthest outside, limit is nbytes; or base +
///            nbytes wraps. value is not set where base is below 65,536, or 2^46 bytes and more
///            away: it would be an address. DLRS_UNSUPPORTED: data is an opaque handle. A tensor of
///            size zero uses no byte, so it is inside.
///            The rest as dlrs_validate.
/// Threads:   any.
/// Source:    this library: no tensor carries the size of its allocation.
///
/// # Safety
/// `base` is never dereferenced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_validate_within(
    tensor: *const DLTensor,
    flags: u64,
    base: *const c_void,
    nbytes: u64,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: tensor and error are NULL or live, by the preface.
    unsafe {
        run("dlrs_validate_within", error, (live(tensor, Arg::tensor),), |(tensor,)| {
            let mut snapshot = Snapshot::new();
            tensor
                .read(flags, Rules::of(DLRS_LEVEL_LAYOUT), &mut snapshot)
                .and_then(|()| snapshot.check_addressed())
                .and_then(|()| snapshot.check_within(base.cast(), nbytes))
                .of(Arg::tensor)
        })
    }
}

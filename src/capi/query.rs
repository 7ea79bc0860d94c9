//! Queries on a tensor.

use super::arg;
use super::convert::order_of;
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::error::{Arg, Error, Of, Result, Status::*};
use crate::layout;
use crate::tensor::alloc::ALIGN_BYTES_MAX;
use crate::validate::{Level, Rules, Snapshot};

/// Reads `tensor`, asks, and hands the answer over.
///
/// # Safety
/// `tensor` is NULL or a live tensor, `out` is NULL or a writable variable.
unsafe fn ask<T>(
    (tensor, flags, level): (*const DLTensor, u64, Level),
    (out, argument): (*mut T, Arg),
    question: impl FnOnce(&Snapshot) -> Result<T>,
) -> Result<()> {
    arg::pointers([arg::need(tensor, Arg::tensor), arg::need(out, argument)])?;
    let tensor = arg::required(tensor, Arg::tensor)?;
    let out = arg::required(out, argument)?;
    let mut snapshot = Snapshot::new();
    // SAFETY: tensor is live, and found to be neither NULL nor misaligned.
    unsafe { snapshot.read(tensor.as_ptr(), flags, Rules::of(level)) }.of(Arg::tensor)?;
    let answer = question(&snapshot).of(Arg::tensor)?;
    // SAFETY: out is a writable variable, and found to be neither NULL nor misaligned.
    unsafe { out.write(answer) };
    Ok(())
}

/// Count the elements of a tensor.
///
/// Shape:     the product of the extents; 1 when ndim is 0.
/// Ownership: unchanged.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or out; DLRS_SIZE_OVERFLOW: too many;
///            what dlrs_validate reports at DLRS_LEVEL_STRUCT. On any error *out is not modified.
/// Threads:   any.
/// Source:    dlpack.h.
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_numel(
    tensor: *const DLTensor,
    out: *mut i64,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_numel", error, || {
        let given = (tensor, 0, Level::DLRS_LEVEL_STRUCT);
        // SAFETY: tensor is NULL or live, out is NULL or a writable variable.
        unsafe { ask(given, (out, Arg::out), Snapshot::numel) }
    })
}

/// Compute the bits from one element to the next in a compact tensor.
///
/// Shape:     shape and strides are ignored.
/// Bytes:     bits times lanes of the dtype; padded sub-byte elements fill whole bytes each.
/// Ownership: unchanged.
/// Flags:     those of its managed tensor, or 0; only IS_SUBBYTE_TYPE_PADDED is used.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or out;
///            what dlrs_validate reports at DLRS_LEVEL_STRUCT. On any error *out is not modified.
/// Threads:   any.
/// Source:    dlpack.h; NumPy's itemsize, in bits.
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_itemsize_bits(
    tensor: *const DLTensor,
    flags: u64,
    out: *mut u64,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_itemsize_bits", error, || {
        let given = (tensor, flags, Level::DLRS_LEVEL_STRUCT);
        // SAFETY: tensor is NULL or live, out is NULL or a writable variable.
        unsafe { ask(given, (out, Arg::out), |tensor| Ok(tensor.slot_bits().into())) }
    })
}

/// Compute the bytes of the elements of a tensor without gaps.
///
/// Shape:     strides are ignored: this is the size of a compact copy.
/// Bytes:     packed sub-byte types round up to whole bytes; padded ones fill whole bytes each.
/// Ownership: unchanged.
/// Flags:     those of its managed tensor, or 0; only IS_SUBBYTE_TYPE_PADDED is used.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or out; DLRS_SIZE_OVERFLOW: too many;
///            what dlrs_validate reports at DLRS_LEVEL_STRUCT. On any error *out is not modified.
/// Threads:   any.
/// Source:    dlpack.h; its GetDataSize is the padded size.
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_nbytes(
    tensor: *const DLTensor,
    flags: u64,
    out: *mut u64,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_nbytes", error, || {
        let given = (tensor, flags, Level::DLRS_LEVEL_STRUCT);
        // SAFETY: tensor is NULL or live, out is NULL or a writable variable.
        unsafe { ask(given, (out, Arg::out), Snapshot::nbytes) }
    })
}

/// Return whether a tensor is dense in a memory order.
///
/// Shape:     strides of extents of 1, and of empty tensors, are ignored.
/// Ownership: unchanged.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or out.
///            DLRS_BAD_ARG: order is not 'C' (row-major), 'F' (column-major), 'A' (either) or 'K'
///            (dense in some order of the dimensions).
///            what dlrs_validate reports at DLRS_LEVEL_STRUCT. On any error *out is not modified.
/// Threads:   any.
/// Source:    the orders of NumPy.
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_is_contiguous(
    tensor: *const DLTensor,
    order: i32,
    out: *mut i32,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_is_contiguous", error, || {
        let given = (tensor, 0, Level::DLRS_LEVEL_STRUCT);
        // SAFETY: tensor is NULL or live, out is NULL or a writable variable.
        unsafe {
            ask(given, (out, Arg::out), |tensor| {
                let order = order_of(order).of(Arg::order)?;
                Ok(layout::is_contiguous(tensor.shape(), tensor.strides(), order).into())
            })
        }
    })
}

/// Return whether the first element of a tensor is aligned.
///
/// Bytes:     data + byte_offset is a multiple of align_bytes; a tensor of size zero always is.
/// Device:    any whose data is an address.
/// Ownership: unchanged.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or out.
///            DLRS_BAD_ARG: align_bytes is not a power of two up to 2^30.
///            DLRS_UNSUPPORTED: data is an opaque handle.
///            what dlrs_validate reports at DLRS_LEVEL_LAYOUT. On any error *out is not modified.
/// Threads:   any.
/// Source:    dlpack.h requires 256 bytes; consumers may not rely on it.
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_is_aligned(
    tensor: *const DLTensor,
    align_bytes: u64,
    out: *mut i32,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_is_aligned", error, || {
        const ALIGNMENT: &str =
            "is no power of two, or too large\0Give a power of two up to the limit.";
        let given = (tensor, 0, Level::DLRS_LEVEL_LAYOUT);
        // SAFETY: tensor is NULL or live, out is NULL or a writable variable.
        unsafe {
            ask(given, (out, Arg::out), |tensor| {
                if !align_bytes.is_power_of_two() || align_bytes > ALIGN_BYTES_MAX {
                    let error = Error::new(DLRS_BAD_ARG).detail(ALIGNMENT);
                    let error = error.of(Arg::align_bytes).value_u64(align_bytes);
                    return Err(error.limit(ALIGN_BYTES_MAX as i64));
                }
                tensor.check_addressed()?;
                Ok(tensor.check_aligned(align_bytes as usize).is_ok().into())
            })
        }
    })
}

//! Queries on a tensor.

use super::arg::{live, variable};
use super::convert::order_of;
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::error::{Arg, Of, Result};
use crate::layout;
use crate::validate::{Level::DLRS_LEVEL_STRUCT, Rules, Snapshot};

/// Reads `tensor`, its struct alone, asks, and hands the answer over.
///
/// # Safety
/// `tensor` and `error` are NULL or live, `out` is NULL or a writable variable.
#[inline(always)]
unsafe fn ask<T: Copy>(
    function: &'static str,
    (tensor, flags): (*const DLTensor, u64),
    out: *mut T,
    error: *mut dlrs_error,
    question: impl FnOnce(&Snapshot) -> Result<T>,
) -> dlrs_status {
    let pointers = (live(tensor, Arg::tensor), variable(out, Arg::out));
    // SAFETY: tensor and error are NULL or live, out is NULL or a writable variable.
    unsafe {
        run(function, error, pointers, |(tensor, out)| {
            let mut snapshot = Snapshot::new();
            tensor.read(flags, Rules::of(DLRS_LEVEL_STRUCT), &mut snapshot).of(Arg::tensor)?;
            out.set(question(&snapshot).of(Arg::tensor)?);
            Ok(())
        })
    }
}

/// Count the elements of a tensor.
///
/// Shape:     the product of the extents; 1 when ndim is 0.
/// Ownership: unchanged.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or out; DLRS_SIZE_OVERFLOW: too many;
///            what dlrs_validate reports at DLRS_LEVEL_STRUCT. On any error *out is not modified.
/// Threads:   any.
/// Source:    dlpack.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_numel(
    tensor: *const DLTensor,
    out: *mut i64,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: tensor is NULL or live, out is NULL or a writable variable.
    unsafe { ask("dlrs_numel", (tensor, 0), out, error, Snapshot::numel) }
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_itemsize_bits(
    tensor: *const DLTensor,
    flags: u64,
    out: *mut u64,
    error: *mut dlrs_error,
) -> dlrs_status {
    let question = |tensor: &Snapshot| Ok(tensor.slot_bits().into());
    // SAFETY: tensor is NULL or live, out is NULL or a writable variable.
    unsafe { ask("dlrs_itemsize_bits", (tensor, flags), out, error, question) }
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_nbytes(
    tensor: *const DLTensor,
    flags: u64,
    out: *mut u64,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: tensor is NULL or live, out is NULL or a writable variable.
    unsafe { ask("dlrs_nbytes", (tensor, flags), out, error, Snapshot::nbytes) }
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_is_contiguous(
    tensor: *const DLTensor,
    order: i32,
    out: *mut i32,
    error: *mut dlrs_error,
) -> dlrs_status {
    let question = |tensor: &Snapshot| {
        let order = order_of(order).of(Arg::order)?;
        Ok(layout::is_contiguous(tensor.shape(), tensor.strides(), order).into())
    };
    // SAFETY: tensor is NULL or live, out is NULL or a writable variable.
    unsafe { ask("dlrs_is_contiguous", (tensor, 0), out, error, question) }
}

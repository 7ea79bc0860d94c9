//! Views: changing shape or dtype.

use super::arg::values;
use super::error::{dlrs_error, dlrs_status};
use super::view::one;
use crate::abi::*;
use crate::array::Array;
use crate::error::Arg;
use crate::view::Step;

/// Move byte_offset into data.
pub const DLRS_NORMALIZE_OFFSET: u32 = 1 << 0;
/// Give every extent of 1, and all of an empty tensor, its compact row-major stride.
pub const DLRS_NORMALIZE_STRIDES: u32 = 1 << 1;
/// Drop extents of 1 and merge dimensions that are contiguous with each other.
pub const DLRS_NORMALIZE_MERGE: u32 = 1 << 2;

/// View a tensor's memory with any shape, strides and offset inside it.
///
/// Shape:     shape and strides, ndim values each; strides and offset count elements.
/// Bytes:     element (0, ..., 0) is offset elements after base's; only memory between the first
///            and the last byte that base uses, or bit where types are packed, is accessed.
/// Flags:     as dlrs_view_apply; READ_ONLY where elements share
///            memory, or that cannot be decided.
/// Errors:    DLRS_SHAPE_NULL, DLRS_MISALIGNED_STRUCT: shape, strides. DLRS_NDIM: ndim.
///            DLRS_SHAPE_NEG, DLRS_SIZE_OVERFLOW: an extent, all of them.
///            DLRS_EXTENT_OVERFLOW, DLRS_OUT_OF_BOUNDS: value is the byte farthest outside, limit
///            the base's, both from base's first element; in bits, as the message says, inside a
///            byte. DLRS_SUBBYTE: the first element would start inside a byte.
///            All else as dlrs_view_apply.
/// Source:    the as_strided of NumPy and torch, with the bounds that they leave to the caller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_view_as_strided(
    base: *mut DLManagedTensorVersioned,
    shape: *const i64,
    strides: *const i64,
    ndim: i32,
    offset: i64,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    let mut room = [Array::new(), Array::new()];
    let [shape_room, strides_room] = &mut room;
    // SAFETY: shape and strides are NULL or hold ndim values, base is NULL or a live tensor, out
    // and error are NULL or writable.
    unsafe {
        let shape = values(shape, ndim, [Arg::shape, Arg::ndim], shape_room);
        let strides = values(strides, ndim, [Arg::strides, Arg::ndim], strides_room);
        let step = shape.and_then(|shape| Ok(Step::AsStrided { shape, strides: strides?, offset }));
        one("dlrs_view_as_strided", base, step, out, error)
    }
}

/// View the elements of a tensor, in row-major order, in another shape.
///
/// Shape:     ndim extents with as many elements; one may be -1 and is then computed. {-1}
///            flattens.
/// Bytes:     the same elements; byte_offset does not change.
/// Errors:    DLRS_SHAPE_NULL, DLRS_MISALIGNED_STRUCT: shape. DLRS_NDIM: ndim. DLRS_SHAPE_NEG,
///            DLRS_SIZE_OVERFLOW: an extent, all of them.
///            DLRS_SHAPE_MISMATCH: another number of elements. DLRS_BAD_ARG: more than one -1, or
///            one beside an extent of 0.
///            DLRS_NOT_VIEWABLE: no strides give this shape; copy first (dlrs_contiguous).
///            All else as dlrs_view_apply.
/// Source:    the reshape of NumPy with copy=False, view of torch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_view_reshape(
    base: *mut DLManagedTensorVersioned,
    shape: *const i64,
    ndim: i32,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    let mut room = Array::new();
    // SAFETY: shape is NULL or holds ndim values, base is NULL or a live tensor, out and error are
    // NULL or writable.
    unsafe {
        let shape = values(shape, ndim, [Arg::shape, Arg::ndim], &mut room);
        one("dlrs_view_reshape", base, shape.map(|shape| Step::Reshape { shape }), out, error)
    }
}

/// View a tensor repeated along axes of extent 1, and along new first axes.
///
/// Shape:     ndim extents, right-aligned to base's; an extent of 1 of base becomes any, other
///            extents must be equal; -1 keeps base's.
/// Bytes:     repeated elements have stride 0; nothing is copied.
/// Flags:     as dlrs_view_apply; READ_ONLY where elements repeat.
/// Errors:    DLRS_SHAPE_NULL, DLRS_MISALIGNED_STRUCT: shape. DLRS_NDIM: ndim. DLRS_SHAPE_NEG,
///            DLRS_SIZE_OVERFLOW: an extent, all of them.
///            DLRS_SHAPE_MISMATCH: fewer dimensions than base, or an extent that is not 1 would
///            change. All else as dlrs_view_apply.
/// Source:    the broadcast_to of NumPy, expand of torch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_view_expand(
    base: *mut DLManagedTensorVersioned,
    shape: *const i64,
    ndim: i32,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    let mut room = Array::new();
    // SAFETY: shape is NULL or holds ndim values, base is NULL or a live tensor, out and error are
    // NULL or writable.
    unsafe {
        let shape = values(shape, ndim, [Arg::shape, Arg::ndim], &mut room);
        one("dlrs_view_expand", base, shape.map(|shape| Step::Expand { shape }), out, error)
    }
}

/// View the same bits as elements of another dtype.
///
/// Shape:     unchanged for elements of the same size; else the last axis must be dense and its
///            extent is scaled: complex64 becomes twice as many float32, and float4 pairs become
///            uint8. Elements of 8 bits are all bytes that the last axis touches.
/// Bytes:     the same; the result may be less aligned than its dtype.
/// Flags:     as dlrs_view_apply; READ_ONLY where the last byte of a
///            row has bits behind base's elements.
/// Errors:    DLRS_DTYPE_CODE, DLRS_DTYPE_BITS, DLRS_DTYPE_LANES: dtype. DLRS_DTYPE_MISMATCH: one
///            of the two is an opaque handle.
///            DLRS_NOT_VIEWABLE: the last axis is not dense, or it or a stride is no whole number
///            of new elements; no axis in a 0-d tensor.
///            DLRS_SIZE_OVERFLOW, DLRS_EXTENT_OVERFLOW: the new extent, a new stride.
///            All else as dlrs_view_apply.
/// Source:    the view of NumPy and torch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_view_bitcast(
    base: *mut DLManagedTensorVersioned,
    dtype: DLDataType,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: base is NULL or a live tensor, out and error are NULL or writable.
    unsafe { one("dlrs_view_bitcast", base, Ok(Step::Bitcast { dtype }), out, error) }
}

/// View lanes as a last axis, or a last axis as lanes.
///
/// Shape:     when lanes is 1, dtype.lanes becomes the extent of a new last axis; else base has 1
///            lane and a dense last axis of extent lanes, which is dropped.
/// Bytes:     the same elements; byte_offset does not change.
/// Errors:    DLRS_BAD_ARG: lanes is not between 1 and 65535. DLRS_SHAPE_MISMATCH: base has lanes
///            already, or no last axis of that extent.
///            DLRS_NOT_VIEWABLE: the last axis is not dense, or a stride is no whole number of new
///            elements. DLRS_FLAGS: padded sub-byte elements. DLRS_NDIM: base has 64 dimensions.
///            All else as dlrs_view_apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_view_lanes(
    base: *mut DLManagedTensorVersioned,
    lanes: i32,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: base is NULL or a live tensor, out and error are NULL or writable.
    unsafe { one("dlrs_view_lanes", base, Ok(Step::Lanes { lanes }), out, error) }
}

/// View a tensor that consumers must not write.
///
/// Shape:     unchanged.
/// Bytes:     the same elements; byte_offset does not change.
/// Flags:     READ_ONLY is set; base loses IS_COPIED.
/// Source:    DLPACK_FLAG_BITMASK_READ_ONLY of dlpack.h. All else as dlrs_view_apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_view_read_only(
    base: *mut DLManagedTensorVersioned,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: base is NULL or a live tensor, out and error are NULL or writable.
    unsafe { one("dlrs_view_read_only", base, Ok(Step::ReadOnly), out, error) }
}

/// View the same elements in a form that strict consumers accept.
///
/// Shape:     unchanged, unless DLRS_NORMALIZE_MERGE drops extents of 1 and merges contiguous
///            dimensions; elements stay in row-major order.
/// Bytes:     DLRS_NORMALIZE_OFFSET moves byte_offset into data. DLRS_NORMALIZE_STRIDES gives every
///            extent of 1, and all of an empty tensor, the strides of a compact row-major tensor.
/// Errors:    DLRS_BAD_ARG: what has other bits. DLRS_UNSUPPORTED: data is an opaque handle and
///            byte_offset cannot be moved into it. All else as dlrs_view_apply.
/// Source:    bugs of consumers that ignore byte_offset or use strides of extents of 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_view_normalize(
    base: *mut DLManagedTensorVersioned,
    what: u32,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: base is NULL or a live tensor, out and error are NULL or writable.
    unsafe { one("dlrs_view_normalize", base, Ok(Step::Normalize { what }), out, error) }
}

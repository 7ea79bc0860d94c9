//! Views: selecting elements along an axis.

use super::error::{dlrs_error, dlrs_status};
use super::view::one;
use crate::abi::*;
use crate::view::Step;

/// View every step-th element of an axis from start on, stop excluded: Python's a[start:stop:step].
///
/// Shape:     along axis, as many elements as the slice has; start and stop count from the end when
///            negative and are then clamped, so INT64_MAX and INT64_MIN stand for omitted bounds.
/// Bytes:     byte_offset changes to that of the first element selected.
/// Errors:    DLRS_BAD_ARG: there is no such axis; step is 0. All else as dlrs_view_apply.
/// Source:    Python's slice.indices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_view_slice(
    base: *mut DLManagedTensorVersioned,
    axis: i32,
    start: i64,
    stop: i64,
    step: i64,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: base is NULL or a live tensor, out and error are NULL or writable.
    unsafe { one("dlrs_view_slice", base, Ok(Step::Slice { axis, start, stop, step }), out, error) }
}

/// View one index of an axis, and drop the axis: a[index].
///
/// Shape:     without axis; index counts from the end when negative.
/// Bytes:     byte_offset changes to that of the first element selected.
/// Errors:    DLRS_BAD_ARG: there is no such axis or index. All else as dlrs_view_apply.
/// Source:    the select of torch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_view_select(
    base: *mut DLManagedTensorVersioned,
    axis: i32,
    index: i64,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: base is NULL or a live tensor, out and error are NULL or writable.
    unsafe { one("dlrs_view_select", base, Ok(Step::Select { axis, index }), out, error) }
}

/// View count elements of an axis from start on, exactly: nothing is clamped.
///
/// Shape:     count along axis; start counts from the end when negative.
/// Bytes:     byte_offset changes to that of the first element selected.
/// Errors:    DLRS_BAD_ARG: there is no such axis or start, or count is not between 0 and the
///            number of elements left (limit). All else as dlrs_view_apply.
/// Source:    the narrow of torch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_view_narrow(
    base: *mut DLManagedTensorVersioned,
    axis: i32,
    start: i64,
    count: i64,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: base is NULL or a live tensor, out and error are NULL or writable.
    unsafe { one("dlrs_view_narrow", base, Ok(Step::Narrow { axis, start, count }), out, error) }
}

/// View an axis, or with DLRS_ALL_AXES every axis, in the opposite direction.
///
/// Shape:     unchanged; strides change sign.
/// Bytes:     byte_offset changes to that of the first element selected.
/// Errors:    DLRS_BAD_ARG: there is no such axis. All else as dlrs_view_apply.
/// Source:    the flip of NumPy; torch copies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_view_flip(
    base: *mut DLManagedTensorVersioned,
    axis: i32,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: base is NULL or a live tensor, out and error are NULL or writable.
    unsafe { one("dlrs_view_flip", base, Ok(Step::Flip { axis }), out, error) }
}

/// View the windows of an axis: window elements each, step apart.
///
/// Shape:     axis indexes the windows, 1 + (extent - window) / step; a new last axis of extent
///            window indexes the elements in one.
/// Bytes:     the same elements; byte_offset does not change.
/// Flags:     as dlrs_view_apply; READ_ONLY where windows overlap.
/// Errors:    DLRS_BAD_ARG: there is no such axis, window is not between 1 and the extent, or step
///            is not above 0.
///            DLRS_NDIM: base has 64 dimensions. All else as dlrs_view_apply.
/// Source:    the unfold of torch, sliding_window_view of NumPy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_view_unfold(
    base: *mut DLManagedTensorVersioned,
    axis: i32,
    window: i64,
    step: i64,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: base is NULL or a live tensor, out and error are NULL or writable.
    unsafe { one("dlrs_view_unfold", base, Ok(Step::Unfold { axis, window, step }), out, error) }
}

/// View the diagonal of two axes, as a last axis.
///
/// Shape:     without axis_a and axis_b; the new last axis begins at index (0, offset) of the two,
///            or at (-offset, 0) when offset is negative; 0 elements where there is no diagonal.
/// Bytes:     byte_offset changes to that of the first element selected.
/// Errors:    DLRS_BAD_ARG: there is no such axis, or both are the same.
///            All else as dlrs_view_apply.
/// Source:    the diagonal of NumPy and torch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_view_diagonal(
    base: *mut DLManagedTensorVersioned,
    axis_a: i32,
    axis_b: i32,
    offset: i64,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: base is NULL or a live tensor, out and error are NULL or writable.
    unsafe {
        one("dlrs_view_diagonal", base, Ok(Step::Diagonal { axis_a, axis_b, offset }), out, error)
    }
}

//! Views: permuting, dropping and adding axes.

use super::arg::values;
use super::error::{dlrs_error, dlrs_status};
use super::view::one;
use crate::abi::*;
use crate::array::Array;
use crate::error::Arg;
use crate::view::Step;

/// View a tensor with its axes in another order.
///
/// Shape:     axis axes[k] of base becomes axis k; ndim axes, as many as base has, each once;
///            negative ones count from the end.
/// Bytes:     the same elements; byte_offset does not change.
/// Errors:    DLRS_SHAPE_NULL, DLRS_MISALIGNED_STRUCT: axes. DLRS_NDIM: ndim.
///            DLRS_BAD_ARG: ndim is not base's; an axis does not exist or is repeated.
///            All else as dlrs_view_apply.
/// Source:    the transpose of NumPy, permute of torch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_view_permute(
    base: *mut DLManagedTensorVersioned,
    axes: *const i64,
    ndim: i32,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    let mut room = Array::new();
    // SAFETY: axes is NULL or holds ndim values, base is NULL or a live tensor, out and error are
    // NULL or writable.
    unsafe {
        let axes = values(axes, ndim, [Arg::axes, Arg::ndim], &mut room);
        one("dlrs_view_permute", base, axes.map(|axes| Step::Permute { axes }), out, error)
    }
}

/// View a tensor with two axes swapped.
///
/// Shape:     the extents of axis_a and axis_b change places.
/// Bytes:     the same elements; byte_offset does not change.
/// Errors:    DLRS_BAD_ARG: there is no such axis. All else as dlrs_view_apply.
/// Source:    the swapaxes of NumPy, transpose of torch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_view_transpose(
    base: *mut DLManagedTensorVersioned,
    axis_a: i32,
    axis_b: i32,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: base is NULL or a live tensor, out and error are NULL or writable.
    unsafe { one("dlrs_view_transpose", base, Ok(Step::Transpose { axis_a, axis_b }), out, error) }
}

/// View a tensor without an axis of extent 1, or with DLRS_ALL_AXES without any such axis.
///
/// Shape:     without the axis.
/// Bytes:     the same elements; byte_offset does not change.
/// Errors:    DLRS_BAD_ARG: there is no such axis.
///            DLRS_SHAPE_MISMATCH: its extent is not 1. All else as dlrs_view_apply.
/// Source:    the squeeze of NumPy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_view_squeeze(
    base: *mut DLManagedTensorVersioned,
    axis: i32,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: base is NULL or a live tensor, out and error are NULL or writable.
    unsafe { one("dlrs_view_squeeze", base, Ok(Step::Squeeze { axis }), out, error) }
}

/// View a tensor with one more axis, of extent 1.
///
/// Shape:     the new axis has index axis in the result; -1 is after the last.
/// Bytes:     the same elements; byte_offset does not change.
/// Errors:    DLRS_BAD_ARG: axis is not between -ndim - 1 and ndim.
///            DLRS_NDIM: base has 64 dimensions. All else as dlrs_view_apply.
/// Source:    the expand_dims of NumPy, unsqueeze of torch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_view_unsqueeze(
    base: *mut DLManagedTensorVersioned,
    axis: i32,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: base is NULL or a live tensor, out and error are NULL or writable.
    unsafe { one("dlrs_view_unsqueeze", base, Ok(Step::Unsqueeze { axis }), out, error) }
}

//! DLPack's C exchange API: the allocator of this library.

use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};

use super::alloc::dlrs_tensor_new_like;
use super::error::{dlrs_error, dlrs_error_forward, dlrs_set_error_fn};
use crate::abi::*;
use crate::error::Status::*;

/// Allocate a tensor like a prototype: the managed_tensor_allocator of an exchange API table.
///
/// Shape:     as dlrs_tensor_new_like.
/// Bytes:     as dlrs_tensor_new_like.
/// Device:    as dlrs_tensor_new_like; no stream waits.
/// Ownership: on 0 the caller owns *out; on -1 *out is NULL.
/// Flags:     0.
/// Errors:    -1, after SetError(error_ctx, kind, message) was called once, if it is not NULL; the
///            kinds are those of dlrs_error_forward. Python is not called.
/// Threads:   any, attached to Python or not.
/// Source:    DLPackManagedTensorAllocator in dlpack.h.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn dlrs_managed_tensor_allocator(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    error_ctx: *mut c_void,
    SetError: dlrs_set_error_fn,
) -> c_int {
    let mut failure = dlrs_error::NONE;
    // SAFETY: prototype is NULL or live, out NULL or a writable variable, by the preface; `failure`
    // is ours; SetError is NULL or a function that takes error_ctx.
    unsafe {
        if dlrs_tensor_new_like(prototype, null(), out, &raw mut failure) == DLRS_OK as i32 {
            return 0;
        }
        dlrs_error_forward(&raw const failure, error_ctx, SetError, null_mut());
    }
    -1
}

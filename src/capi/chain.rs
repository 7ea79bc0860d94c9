//! Deleter chains.

use core::ffi::c_void;

use super::arg;
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::error::{Arg, Error, Of, Result, Status::*};
use crate::tensor::block::{Block, dlrs_free_fn};
use crate::tensor::chain::{self, Callback};
use crate::tensor::share;

/// Run the callback while the data is still there, before it is freed.
pub const DLRS_BEFORE_FREE: i32 = 0;
/// Run the callback when the data of this tensor has been freed. A view has no data of its own: its
/// base's may stay.
pub const DLRS_AFTER_FREE: i32 = 1;

const TENSOR: Arg = Arg::tensor;

/// # Safety
/// `tensor` is NULL or live.
#[inline(always)]
unsafe fn own<'a>(tensor: *mut DLManagedTensorVersioned) -> Result<&'a Block> {
    let tensor = arg::required(tensor, TENSOR)?;
    // SAFETY: the caller's word; a block is there as long as its tensor.
    unsafe { Ok(share::own(tensor).of(TENSOR)?.as_ref()) }
}

fn given(callback: dlrs_free_fn) -> Result<Callback> {
    callback.ok_or(Error::new(DLRS_NULL_ARG).of(Arg::callback))
}

/// Attach a callback to a tensor of this library, to run once when its last reference is released.
///
/// Ownership: context is the callback's. Callbacks of one order run last in, first out: those of
///            DLRS_BEFORE_FREE, then the data is freed, then those of DLRS_AFTER_FREE. A foreign
///            tensor takes callbacks after dlrs_import_take has boxed it. Memory of callbacks that
///            were detached is used again.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT, DLRS_VERSION, DLRS_FOREIGN: tensor.
///            DLRS_NULL_ARG: callback. DLRS_BAD_ARG: order. DLRS_NOMEM: no memory.
///            On error the chain is as it was and the callback will not run.
/// Threads:   any, also beside other attaches; the callback runs on the thread of the last
///            release. It may use and release other tensors. With DLRS_BEFORE_FREE it may even
///            call the deleter of this very tensor again, which does nothing, attach callbacks to
///            it, which run too, and detach others. It cannot share the tensor any more, nor view
///            it, nor give it to a function that takes: that is DLRS_REFCOUNT. The tensor's own
///            free_fn is too late to attach.
/// Source:    this library.
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_attach(
    tensor: *mut DLManagedTensorVersioned,
    callback: dlrs_free_fn,
    context: *mut c_void,
    order: i32,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_attach", error, || {
        // SAFETY: NULL or live, by the preface.
        let block = unsafe { own(tensor) }?;
        let callback = given(callback)?;
        if order != DLRS_BEFORE_FREE && order != DLRS_AFTER_FREE {
            let error = Error::new(DLRS_BAD_ARG).of(Arg::order);
            return Err(error.value(order.into()).limit(DLRS_AFTER_FREE.into()));
        }
        chain::attach(block, order == DLRS_AFTER_FREE, callback, context)
    })
}

/// Detach the callback that was attached last with this function and context.
///
/// Ownership: context is the caller's again; the callback will not run. Of both orders, the one
///            that was attached last is taken. All callbacks of the tensor are looked through.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT, DLRS_VERSION, DLRS_FOREIGN: tensor.
///            DLRS_NULL_ARG: callback. DLRS_BAD_ARG: no such callback is attached.
/// Threads:   any, while the caller holds the tensor or is one of its DLRS_BEFORE_FREE callbacks.
/// Source:    this library.
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_detach(
    tensor: *mut DLManagedTensorVersioned,
    callback: dlrs_free_fn,
    context: *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_detach", error, || {
        // SAFETY: NULL or live, by the preface.
        let block = unsafe { own(tensor) }?;
        let callback = given(callback)?;
        if chain::detach(block, callback, context) {
            return Ok(());
        }
        let error = Error::new(DLRS_BAD_ARG).of(Arg::callback);
        Err(error.detail("is not attached with this context"))
    })
}

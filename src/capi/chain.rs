//! Deleter chains.

use core::ffi::c_void;

use super::arg::{Live, live};
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::error::{Arg, Error, Of, Result, Status::*};
use crate::tensor::block::{Block, dlrs_free_fn};
use crate::tensor::chain::Callback;
use crate::tensor::share;

/// Run the callback before the data is freed.
pub const DLRS_BEFORE_FREE: i32 = 0;
/// Run the callback after the data of this tensor is freed. A view has no own data: that of its
/// base may stay.
pub const DLRS_AFTER_FREE: i32 = 1;

/// The block of a tensor of this library.
///
/// # Safety
/// The block is used as long as the tensor lives.
#[inline(always)]
unsafe fn own<'a>(tensor: Live<DLManagedTensorVersioned>) -> Result<&'a Block> {
    // SAFETY: tensor is live, and its block is there as long as the tensor.
    unsafe { Ok(share::own(tensor.get()).of(Arg::tensor)?.as_ref()) }
}

fn given(callback: dlrs_free_fn) -> Result<Callback> {
    callback.ok_or(Error::new(DLRS_NULL_ARG).of(Arg::callback))
}

/// # Safety
/// The tensor stays live meanwhile.
#[inline(never)] // its arguments stay in registers
unsafe fn attach(
    tensor: Live<DLManagedTensorVersioned>,
    callback: dlrs_free_fn,
    context: *mut c_void,
    order: i32,
) -> Result<()> {
    // SAFETY: the block is used as long as the tensor lives.
    let (block, callback) = (unsafe { own(tensor) }?, given(callback)?);
    if order != DLRS_BEFORE_FREE && order != DLRS_AFTER_FREE {
        const ORDER: &str = "is no such order\0Give DLRS_BEFORE_FREE or DLRS_AFTER_FREE.";
        let error = Error::new(DLRS_BAD_ARG).detail(ORDER).of(Arg::order);
        return Err(error.value(order.into()).limit(DLRS_AFTER_FREE.into()));
    }
    block.attach(order == DLRS_AFTER_FREE, callback, context)
}

/// Attach a callback to a tensor of this library, to run once when its last reference is released.
///
/// Ownership: context is passed to the callback. Callbacks of one order run last in, first out:
///            those of DLRS_BEFORE_FREE, then the data is freed, then those of DLRS_AFTER_FREE. A
///            foreign tensor must be boxed by dlrs_import_take first. Memory of detached callbacks
///            is reused.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT, DLRS_VERSION, DLRS_FOREIGN: tensor.
///            DLRS_NULL_ARG: callback. DLRS_BAD_ARG: order. DLRS_NOMEM: no memory.
///            On error the chain is unchanged and the callback will not run.
/// Threads:   any, concurrently too; the callback runs on the thread of the last release. It may
///            use and release other tensors. With DLRS_BEFORE_FREE it may also call the deleter of
///            this tensor, which does nothing, attach callbacks to it, which run too, and detach
///            others. It cannot retain or view the tensor, nor pass it to a `_take` function:
///            DLRS_REFCOUNT. The tensor's free_fn can no longer attach.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_attach(
    tensor: *mut DLManagedTensorVersioned,
    callback: dlrs_free_fn,
    context: *mut c_void,
    order: i32,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: tensor and error are NULL or live, by the preface, and the block as long as its
    // tensor.
    unsafe {
        run("dlrs_attach", error, (live(tensor, Arg::tensor),), |(tensor,)| {
            attach(tensor, callback, context, order)
        })
    }
}

/// Detach the callback that was attached last with this function and context.
///
/// Ownership: context is the caller's again; the callback will not run. All callbacks of both
///            orders are searched, the last attached first.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT, DLRS_VERSION, DLRS_FOREIGN: tensor.
///            DLRS_NULL_ARG: callback. DLRS_BAD_ARG: no such callback is attached.
/// Threads:   any, while the caller has a reference or is one of the tensor's DLRS_BEFORE_FREE
///            callbacks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_detach(
    tensor: *mut DLManagedTensorVersioned,
    callback: dlrs_free_fn,
    context: *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: tensor and error are NULL or live, by the preface, and the block as long as its
    // tensor.
    unsafe {
        run("dlrs_detach", error, (live(tensor, Arg::tensor),), |(tensor,)| {
            let (block, callback) = (own(tensor)?, given(callback)?);
            if block.chains().detach(callback, context) {
                return Ok(());
            }
            const PAIR: &str =
                "is not attached with this context\0Give the pair that was attached.";
            Err(Error::new(DLRS_BAD_ARG).of(Arg::callback).detail(PAIR))
        })
    }
}

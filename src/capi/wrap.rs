//! Wrapping memory that the caller owns.

use core::ffi::c_void;

use super::arg;
use super::error::{dlrs_error, dlrs_status, run_rest};
use crate::abi::*;
use crate::error::{Arg, Error, Field::DLRS_FIELD_FLAGS, Status::DLRS_OK};
use crate::tensor::block::{self, Block, Left, Owner, dlrs_free_fn};
use crate::tensor::wrap;
use crate::validate::{Level, Rules};

const RULES: Rules = Rules::of(Level::DLRS_LEVEL_LAYOUT);

/// Wrap memory of the caller into a managed tensor.
///
/// Shape:     shape and strides are copied; NULL strides become compact row-major.
/// Bytes:     data and byte_offset are not modified; a tensor of size zero has data NULL.
/// Device:    any, known or not.
/// Ownership: the caller owns *out. When its last reference is released, free_fn(context) is called
///            once, on that thread; with a NULL free_fn the memory is only borrowed. On error
///            free_fn is not called.
/// Flags:     exactly flags, but IS_SUBBYTE_TYPE_PADDED only for a dtype below whole bytes.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or out.
///            DLRS_FLAGS: flags has unknown bits.
///            what dlrs_validate reports at DLRS_LEVEL_LAYOUT.
///            DLRS_NOMEM: no memory for the header.
/// Threads:   any.
/// Source:    "Producer" rules of dlpack.h.
///
/// # Safety
/// See the preface; the memory stays valid until `free_fn` is called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_tensor_wrap(
    tensor: *const DLTensor,
    flags: u64,
    free_fn: dlrs_free_fn,
    context: *mut c_void,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    let mut left = Left::Unusual;
    if let Some((tensor, out)) = arg::usual(tensor, out) {
        let owner = Owner::Callback(free_fn, context);
        // SAFETY: tensor is live, by the preface.
        match unsafe { block::around(tensor.as_ptr(), flags, owner) } {
            Ok(block) => {
                out.set(Block::versioned(block));
                return DLRS_OK as dlrs_status;
            }
            Err(why) => left = why,
        }
    }
    run_rest("dlrs_tensor_wrap", error, move || {
        // Made again: one for both would pass through memory.
        let owner = Owner::Callback(free_fn, context);
        // SAFETY: out is NULL or a writable variable.
        let (tensor, out) = unsafe { arg::with_out(tensor, Arg::tensor, out, Arg::out) }?;
        // SAFETY: tensor is live, by the preface.
        let block = unsafe { wrap::wrap_checked(tensor.as_ptr(), flags, owner, RULES, left) };
        out.set(Block::versioned(block.map_err(blamed)?));
        Ok(())
    })
}

/// Flags are an argument of their own here; all else is the tensor's.
#[cold]
fn blamed(error: Error) -> Error {
    match error.member() {
        DLRS_FIELD_FLAGS => error.of(Arg::flags),
        _ => error.of(Arg::tensor),
    }
}

//! Wrapping memory that the caller owns.

use core::ffi::c_void;

use super::arg::{live, result};
use super::error::{dlrs_error, dlrs_status, run_usual};
use crate::abi::*;
use crate::error::{Arg, Error, Field::DLRS_FIELD_FLAGS};
use crate::tensor::block::{self, Block, Owner, dlrs_free_fn};
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
/// The memory stays valid until `free_fn` is called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_tensor_wrap(
    tensor: *const DLTensor,
    flags: u64,
    free_fn: dlrs_free_fn,
    context: *mut c_void,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    let owner = move || Owner::Callback(free_fn, context);
    let pointers = (live(tensor, Arg::tensor), result(out, Arg::out));
    // SAFETY: tensor and error are NULL or live, out is NULL or a writable variable, by the
    // preface.
    unsafe {
        run_usual(
            "dlrs_tensor_wrap",
            error,
            pointers,
            |(tensor, out)| {
                let block = block::around(tensor.as_ptr(), flags, owner())?;
                out.give(Block::versioned(block));
                Ok(())
            },
            |(tensor, out), left| {
                let block = wrap::wrap_checked(tensor.as_ptr(), flags, owner(), RULES, left);
                out.give(Block::versioned(block.map_err(blamed)?));
                Ok(())
            },
        )
    }
}

/// Flags are an argument of their own here; all else is the tensor's.
#[cold]
pub(super) fn blamed(error: Error) -> Error {
    error.of(if error.member() == DLRS_FIELD_FLAGS { Arg::flags } else { Arg::tensor })
}

//! Wrapping foreign memory: a tensor over borrowed data.

use core::ffi::c_void;
use core::ptr::NonNull;

use super::block::{self, Block, Data, Left, Owner, Spec};
use crate::abi::DLTensor;
use crate::error::Result;
use crate::validate::{Rules, Snapshot, check_flags};

/// A block with exactly `flags` over the memory that `tensor` describes, with all checks in order:
/// for tensors that [`block::around`] does not support. Extents and strides are copied, NULL
/// strides filled. An invalid tensor is reported before exhausted memory. On error the owner still
/// belongs to the caller.
///
/// # Safety
/// As [`Snapshot::read`].
pub unsafe fn wrap_checked(
    tensor: *const DLTensor,
    flags: u64,
    owner: Owner,
    rules: Rules,
    left: Left,
) -> Result<NonNull<Block>> {
    check_flags(flags)?;
    let mut snapshot = Snapshot::new();
    // SAFETY: `tensor` points to a readable `DLTensor`; shape and strides, where not NULL, hold
    // `ndim` values.
    unsafe { snapshot.read(tensor, flags, rules) }?;
    match left {
        Left::Unusual => block::new(&spec_of(&snapshot, flags, owner)),
        Left::NoMemory => Err(block::no_memory(Some(block::nbytes_of(snapshot.shape().len())))),
    }
}

/// As [`wrap_checked`], of a tensor that has been read.
pub fn wrap(tensor: &Snapshot, owner: Owner) -> Result<NonNull<Block>> {
    check_flags(tensor.flags)?;
    block::new(&spec_of(tensor, tensor.flags, owner))
}

/// The contents of a block around the memory of `tensor`.
#[inline(always)]
pub fn spec_of(tensor: &Snapshot, flags: u64, owner: Owner) -> Spec<'_> {
    Spec {
        shape: tensor.shape(),
        strides: Some(tensor.strides()),
        dtype: tensor.dtype,
        device: tensor.device,
        flags,
        data: Data::At(data_of(tensor), tensor.byte_offset),
        owner,
    }
}

/// `data`, except that a tensor of size zero has none.
fn data_of(tensor: &Snapshot) -> *mut c_void {
    if tensor.empty { core::ptr::null_mut() } else { tensor.data.cast() }
}

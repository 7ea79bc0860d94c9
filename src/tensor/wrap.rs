//! Wrapping foreign memory: a tensor of ours over data that somebody else lends.

use core::ffi::c_void;
use core::ptr::NonNull;

use super::block::{self, Block, Data, Owner, Spec};
use crate::error::Result;
use crate::validate::{Snapshot, check_flags};

/// A tensor over the memory that `tensor` describes. Extents and strides are copied, NULL strides
/// filled, flags taken as given. On error the owner still belongs to the caller.
#[inline]
pub fn wrap(tensor: &Snapshot, owner: Owner) -> Result<NonNull<Block>> {
    check_flags(tensor.flags)?;
    block::new(&spec_of(tensor, tensor.flags, owner))
}

/// What a block around the memory of `tensor` says.
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

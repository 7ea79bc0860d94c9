//! Wrapping foreign memory: a tensor of ours over data that somebody else lends.

use core::ffi::c_void;
use core::ptr::NonNull;

use super::block::{self, Block, Data, Left, Owner, Spec};
use crate::abi::DLTensor;
use crate::error::{Error, Result};
use crate::validate::{Rules, Snapshot, check_flags};

/// Gives a block of ours with exactly `flags` over the memory that `tensor` describes. Extents and
/// strides are copied, NULL strides filled. On error the owner still belongs to the caller. `give`
/// is here twice when it is compiled, so that the usual tensor's way meets no other.
///
/// # Safety
/// As [`Snapshot::read`].
#[inline(always)]
pub unsafe fn wrap_to(
    tensor: *const DLTensor,
    flags: u64,
    owner: impl Fn() -> Owner,
    rules: Rules,
    mut give: impl FnMut(NonNull<Block>),
) -> Result<()> {
    // SAFETY: the caller's word.
    let block = unsafe {
        match block::around(tensor, flags, &owner) {
            Ok(block) => {
                give(block);
                return Ok(());
            }
            Err(Left::Unusual) => wrap_checked(tensor, flags, owner(), rules),
            Err(Left::Late(block)) => wrap_late(block, tensor, rules),
            Err(Left::NoMemory(ndim)) => Err(unserved(tensor, ndim, flags, rules)),
        }
    };
    give(block?);
    Ok(())
}

/// The block that [`wrap_to`] gives.
///
/// # Safety
/// As [`wrap_to`].
pub unsafe fn wrap_tensor(
    tensor: *const DLTensor,
    flags: u64,
    owner: impl Fn() -> Owner,
    rules: Rules,
) -> Result<NonNull<Block>> {
    let mut block = NonNull::dangling();
    // SAFETY: the caller's word.
    unsafe { wrap_to(tensor, flags, owner, rules, |made| block = made) }?;
    Ok(block)
}

/// # Safety
/// As [`wrap_to`].
#[cold]
#[inline(never)]
unsafe fn wrap_late(
    block: NonNull<Block>,
    tensor: *const DLTensor,
    rules: Rules,
) -> Result<NonNull<Block>> {
    // SAFETY: the caller's word.
    unsafe {
        let (flags, owner) = block::undo(block);
        wrap_checked(tensor, flags, owner, rules)
    }
}

/// What is wrong with the tensor comes before want of memory.
///
/// # Safety
/// As [`wrap_to`].
#[cold]
#[inline(never)]
unsafe fn unserved(tensor: *const DLTensor, ndim: usize, flags: u64, rules: Rules) -> Error {
    let mut snapshot = Snapshot::new();
    // SAFETY: the caller's word.
    let checked = check_flags(flags).and_then(|()| unsafe { snapshot.read(tensor, flags, rules) });
    checked.err().unwrap_or(block::no_memory(Some(block::nbytes_of(ndim))))
}

/// In the order of the checks.
///
/// # Safety
/// As [`wrap_to`].
#[cold]
#[inline(never)]
unsafe fn wrap_checked(
    tensor: *const DLTensor,
    flags: u64,
    owner: Owner,
    rules: Rules,
) -> Result<NonNull<Block>> {
    check_flags(flags)?;
    let mut snapshot = Snapshot::new();
    // SAFETY: the caller's word.
    unsafe { snapshot.read(tensor, flags, rules) }?;
    block::new(&spec_of(&snapshot, flags, owner))
}

/// As [`wrap_tensor`], of a tensor that has been read.
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

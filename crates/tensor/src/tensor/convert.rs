//! Legacy ⇄ versioned, and boxing foreign tensors in blocks of ours.
//!
//! One of our tensors has both structs, so only the pointer changes; a foreign one is put into a
//! block that owns it and calls its deleter once.

use core::ptr::NonNull;
use core::sync::atomic::Ordering::Relaxed;

use super::block::{self, Block, Left, Owner};
use super::{Legacy, Versioned, wrap};
use crate::abi::*;
use crate::dtype;
use crate::error::{Error, Field::*, Result, Status::*};
use crate::validate::{Level, Rules, Snapshot, check_flags, check_version, flags_of, of_legacy};

const RULES: Rules = Rules::of(Level::DLRS_LEVEL_STRUCT);

/// Handling of a flag that the legacy struct lacks.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(non_camel_case_types)]
pub enum LegacyPolicy {
    /// Reject a read-only tensor.
    DLRS_LEGACY_REFUSE = 0,
    /// Drop the flag: the consumer must know that the data is read-only.
    DLRS_LEGACY_DROP = 1,
    /// Copy a read-only tensor.
    DLRS_LEGACY_COPY = 2,
}

/// As [`from_legacy`], if `tensor` is ours or a common one and nothing fails; else no ownership is
/// taken.
///
/// # Safety
/// As [`from_legacy`].
#[inline(always)]
pub unsafe fn from_usual_legacy(
    tensor: Legacy,
    flags: u64,
) -> core::result::Result<Versioned, Left> {
    // SAFETY: `tensor` is a live legacy struct, whose reference goes to the result.
    unsafe {
        match own_legacy(tensor, flags) {
            Some(versioned) => Ok(versioned),
            None => {
                let made = block::around(described(tensor), flags, Owner::Legacy(tensor));
                made.map(Block::versioned)
            }
        }
    }
}

/// The versioned tensor of a block of ours with these flags: the legacy reference becomes its.
///
/// # Safety
/// `tensor` is live.
#[inline(always)]
unsafe fn own_legacy(tensor: Legacy, flags: u64) -> Option<Versioned> {
    // SAFETY: `tensor` is live, and a block of ours lives as long as its tensor.
    unsafe {
        let block = block::of_legacy(tensor)?;
        (block.as_ref().flags().load(Relaxed) == flags).then(|| Block::versioned(block))
    }
}

/// A versioned tensor with exactly `flags` that owns `tensor`.
///
/// # Safety
/// `tensor` is live; on success the result owns the caller's reference.
pub unsafe fn from_legacy(tensor: Legacy, flags: u64) -> Result<Versioned> {
    // SAFETY: `tensor` is a live legacy struct, whose reference goes to the result.
    unsafe {
        match own_legacy(tensor, flags) {
            Some(versioned) => Ok(versioned),
            None => boxed_legacy(tensor, flags).map(Block::versioned),
        }
    }
}

/// A new block that owns the legacy `tensor`.
///
/// # Safety
/// `tensor` is live; on success the block owns the caller's reference.
#[inline(never)]
pub unsafe fn boxed_legacy(tensor: Legacy, flags: u64) -> Result<NonNull<Block>> {
    // SAFETY: `tensor` is a live legacy struct, whose reference goes to the block.
    unsafe {
        let made = block::around(described(tensor), flags, Owner::Legacy(tensor));
        made.or_else(|left| checked_legacy(tensor, flags, left))
    }
}

/// As [`boxed_legacy`], for tensors that [`block::around`] does not support.
///
/// # Safety
/// As [`boxed_legacy`].
pub unsafe fn checked_legacy(tensor: Legacy, flags: u64, left: Left) -> Result<NonNull<Block>> {
    // SAFETY: `tensor` is a live legacy struct, whose reference goes to the block.
    unsafe {
        let owner = Owner::Legacy(tensor);
        let made = wrap::wrap_checked(described(tensor), flags, owner, RULES, left);
        made.map_err(|error| of_legacy(tensor, error))
    }
}

/// What `tensor` describes.
#[inline(always)]
fn described(tensor: Legacy) -> *const DLTensor {
    // SAFETY: a place in the struct that `tensor` points to.
    unsafe { &raw const (*tensor.as_ptr()).dl_tensor }
}

/// Whether the flags of a tensor can be dropped; `READ_ONLY` where only a copy could.
pub fn check_droppable(flags: u64, dtype: DLDataType, policy: LegacyPolicy) -> Result<()> {
    let padded = flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED != 0;
    if padded && dtype::is_subbyte(dtype) {
        let error = Error::new(DLRS_FLAGS).field(DLRS_FIELD_FLAGS).value_u64(flags);
        const PADDED: &str = "the legacy struct cannot express that sub-byte data is padded\0\
                              Convert to packed elements with dlrs_cast.\0\
                              Convert to packed elements by astype().";
        return Err(error.detail(PADDED));
    }
    if flags & DLPACK_FLAG_BITMASK_READ_ONLY != 0 && policy != LegacyPolicy::DLRS_LEGACY_DROP {
        let error = Error::new(DLRS_READ_ONLY).field(DLRS_FIELD_FLAGS);
        return Err(error.detail("the legacy struct cannot express that data is read-only"));
    }
    Ok(())
}

/// A legacy tensor that owns `tensor`.
///
/// # Safety
/// `tensor` is live; on success the result owns the caller's reference.
#[inline(always)]
pub unsafe fn to_legacy(tensor: Versioned, policy: LegacyPolicy) -> Result<Legacy> {
    // SAFETY: `tensor` is live, and its reference goes to the result.
    match unsafe { to_usual_legacy(tensor) } {
        Some(legacy) => Ok(legacy),
        // SAFETY: `tensor` is live; its reference was not taken yet, and goes to the result.
        None => unsafe { to_any_legacy(tensor, policy) },
    }
}

/// # Safety
/// As [`to_legacy`].
#[inline(never)]
unsafe fn to_any_legacy(tensor: Versioned, policy: LegacyPolicy) -> Result<Legacy> {
    // SAFETY: `tensor` is live, and its reference goes to the result.
    let legacy = unsafe { to_legacy_read(tensor, policy, &mut Snapshot::new())? };
    legacy.ok_or(Error::new(DLRS_READ_ONLY).field(DLRS_FIELD_FLAGS))
}

/// One of our tensors, without a flag that the legacy struct lacks or that is unknown: it was
/// checked when it was made.
///
/// # Safety
/// As [`to_legacy`].
#[inline(always)]
unsafe fn to_usual_legacy(tensor: Versioned) -> Option<Legacy> {
    // SAFETY: `tensor` is live; past the check the struct is of major 1.
    unsafe {
        let block = block::of_versioned(tensor)?;
        check_version(tensor.as_ptr()).ok()?;
        let known = flags_of(tensor.as_ptr()) & !DLPACK_FLAG_BITMASK_IS_COPIED == 0;
        known.then(|| Block::legacy(block))
    }
}

/// As [`to_legacy`], or `None` where only a copy may be exported. `snapshot` is read of the tensor
/// once: the values checked are those boxed or copied.
///
/// # Safety
/// `tensor` is live; on success the result owns the caller's reference, without a result it does
/// not.
pub unsafe fn to_legacy_read(
    tensor: Versioned,
    policy: LegacyPolicy,
    snapshot: &mut Snapshot,
) -> Result<Option<Legacy>> {
    // SAFETY: `tensor` is live; past the version check all members are at their places.
    let own = unsafe {
        let own = block::of_versioned(tensor);
        check_version(tensor.as_ptr())?;
        let flags = flags_of(tensor.as_ptr());
        check_flags(flags)?;
        snapshot.read(&raw const (*tensor.as_ptr()).dl_tensor, flags, RULES)?;
        own
    };
    match check_droppable(snapshot.flags, snapshot.dtype, policy) {
        Err(error) if error.status() == DLRS_READ_ONLY => match policy {
            LegacyPolicy::DLRS_LEGACY_COPY => Ok(None),
            _ => Err(error),
        },
        done => {
            done?;
            let block = own.map_or_else(|| box_snapshot(snapshot, tensor), Ok)?;
            Ok(Some(Block::legacy(block)))
        }
    }
}

/// The block of `tensor`: its own, or a new one that owns it.
///
/// # Safety
/// `tensor` is live, of major 1; on success the block owns the caller's reference.
pub unsafe fn boxed(tensor: Versioned) -> Result<NonNull<Block>> {
    // SAFETY: `tensor` is a live struct.
    if let Some(block) = unsafe { block::of_versioned(tensor) } {
        return Ok(block);
    }
    let mut snapshot = Snapshot::new();
    // SAFETY: `tensor` is a live struct of major 1, with its shape and strides.
    unsafe { snapshot.read_managed(tensor.as_ptr(), RULES) }?;
    box_snapshot(&snapshot, tensor)
}

/// A new block that owns the foreign `tensor`, read as `snapshot`.
pub fn box_snapshot(snapshot: &Snapshot, tensor: Versioned) -> Result<NonNull<Block>> {
    // The reference moves from the caller to the block: a sole copy stays one.
    block::new(&wrap::spec_of(snapshot, snapshot.flags, Owner::Versioned(tensor)))
}

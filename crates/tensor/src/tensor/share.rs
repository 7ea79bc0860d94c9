//! Releasing and sharing references, and flags that stay true.

use core::ptr::NonNull;
use core::sync::atomic::Ordering::*;

use super::block::{self, Block, Owner};
use super::{Legacy, Versioned};
use crate::abi::*;
use crate::error::{Error, Field::*, Result, Status::*};
use crate::validate::{check_flags, check_version};

pub use super::block::{release, release_legacy};

/// As [`release`], without a call of the deleter for one of our tensors.
///
/// # Safety
/// `tensor` is live and not used again.
#[inline(always)]
pub unsafe fn release_here(tensor: Versioned) {
    // SAFETY: `tensor` is a live struct.
    match unsafe { block::of_versioned(tensor) } {
        // SAFETY: a live block of ours, whose reference is released once, here.
        Some(block) => unsafe { block::drop_reference(block.as_ptr()) },
        // SAFETY: `tensor` is live and not used again: its reference is released once, here.
        None => unsafe { release(tensor) },
    }
}

/// The block of one of our tensors; `DLRS_VERSION` or `DLRS_FOREIGN` for others.
///
/// # Safety
/// `tensor` is live.
pub unsafe fn own(tensor: Versioned) -> Result<NonNull<Block>> {
    // SAFETY: `tensor` is a live struct of any major.
    match unsafe { block::of_versioned(tensor) } {
        Some(block) => Ok(block),
        // SAFETY: `tensor` is a live struct of any major.
        None => Err(unsafe { not_own(tensor) }),
    }
}

/// # Safety
/// As [`own`].
#[cold]
#[inline(never)]
unsafe fn not_own(tensor: Versioned) -> Error {
    // SAFETY: `tensor` is a live struct; the place of the version is the same in every major.
    let version = unsafe { check_version(tensor.as_ptr()) };
    version.err().unwrap_or(Error::new(DLRS_FOREIGN))
}

/// Changes flags of one of our tensors, if they remain correct. Other owners may change them at the
/// same time: no change is lost.
pub fn set_flags(block: &Block, set: u64, clear: u64) -> Result<()> {
    check_flags(set | clear)?;
    if set & clear != 0 {
        let error = Error::new(DLRS_FLAGS).field(DLRS_FIELD_FLAGS).value_u64(set | clear);
        return Err(error.detail("the same flag is both set and cleared\0Do one of the two."));
    }
    let mut now = block.flags().load(Relaxed);
    loop {
        check_change(block, now, set, clear)?;
        let flags = (now | set) & !clear;
        match block.flags().compare_exchange_weak(now, flags, Relaxed, Relaxed) {
            Ok(_) => return Ok(()),
            Err(changed) => now = changed,
        }
    }
}

/// Whether the flags, which are `now`, remain correct when these are set and cleared.
fn check_change(block: &Block, now: u64, set: u64, clear: u64) -> Result<()> {
    let (set, clear) = (set & !now, clear & now);
    if (set | clear) & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED != 0 {
        let error = Error::new(DLRS_FLAGS).field(DLRS_FIELD_FLAGS).value_u64(set | clear);
        const PADDING: &str = "padding is a property of the data and cannot be changed\0\
                               Convert with dlrs_cast.\0Convert by astype().";
        return Err(error.detail(PADDING));
    }
    let own_data = !matches!(block.owner(), Owner::Versioned(_) | Owner::Legacy(_));
    let sole = block.references() == 1;
    // Only a sole owner can guarantee that no other code sees the data, or permit writing.
    if set & DLPACK_FLAG_BITMASK_IS_COPIED != 0 && !(own_data && sole) {
        let error = Error::new(DLRS_REFCOUNT).field(DLRS_FIELD_FLAGS);
        return Err(error.detail("IS_COPIED needs one reference and no base"));
    }
    if clear & DLPACK_FLAG_BITMASK_READ_ONLY != 0 && !(own_data && sole) {
        let error = Error::new(DLRS_READ_ONLY).field(DLRS_FIELD_FLAGS);
        return Err(error.detail("READ_ONLY can be cleared only with one reference and no base"));
    }
    Ok(())
}

/// One more reference to the same tensor.
///
/// # Safety
/// `tensor` is live.
pub unsafe fn retain(tensor: Versioned) -> Result<Versioned> {
    // SAFETY: `tensor` is live, and a block of ours lives as long as its tensor.
    unsafe { own(tensor)?.as_ref() }.hold()?;
    Ok(tensor)
}

/// As [`retain`], for one of our tensors; false where that fails.
///
/// # Safety
/// `tensor` is live.
#[inline(always)]
pub unsafe fn retain_own(tensor: Versioned) -> bool {
    // SAFETY: `tensor` is live, and a block of ours lives as long as its tensor.
    unsafe { block::of_versioned(tensor).is_some_and(|block| block.as_ref().hold_usual()) }
}

/// A managed struct of either kind.
pub trait Managed {
    /// Whether it is one of our tensors, that is being freed: a callback is running.
    ///
    /// # Safety
    /// `tensor` is live.
    unsafe fn dying(tensor: NonNull<Self>) -> bool;
}

impl Managed for DLManagedTensorVersioned {
    #[inline(always)]
    unsafe fn dying(tensor: Versioned) -> bool {
        // SAFETY: `tensor` is a live struct; a block of ours is there as long as its tensor.
        unsafe { block::of_versioned(tensor).is_some_and(|block| block.as_ref().references() == 0) }
    }
}

impl Managed for DLManagedTensor {
    #[inline(always)]
    unsafe fn dying(tensor: Legacy) -> bool {
        // SAFETY: `tensor` is a live struct; a block of ours is there as long as its tensor.
        unsafe { block::of_legacy(tensor).is_some_and(|block| block.as_ref().references() == 0) }
    }
}

/// The reference count of one of our tensors, 0 for a foreign one.
///
/// # Safety
/// `tensor` is live.
pub unsafe fn references(tensor: Versioned) -> usize {
    // SAFETY: `tensor` is live, and a block of ours lives as long as its tensor.
    unsafe {
        block::of_versioned(tensor).map_or(0, |block: NonNull<Block>| block.as_ref().references())
    }
}

/// The last of our blocks on the path of bases to the owner of the memory.
///
/// # Safety
/// `block` is live.
pub unsafe fn keeper(mut block: NonNull<Block>) -> NonNull<Block> {
    loop {
        // SAFETY: `block` is live, and each block holds its owner: every step of the way is live.
        let base = unsafe {
            match block.as_ref().owner() {
                Owner::Versioned(base) => block::of_versioned(base),
                Owner::Legacy(base) => block::of_legacy(base),
                _ => None,
            }
        };
        match base {
            Some(base) => block = base,
            None => return block,
        }
    }
}

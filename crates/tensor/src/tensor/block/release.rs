//! Releases references to tensors; and frees a block of ours with the last one.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::*};

use super::head::{Block, Kept, Owner, of_legacy, of_versioned};
use crate::platform;
use crate::tensor::chain::{self, Rest};
use crate::tensor::{Legacy, Versioned};

/// Prevents a tail call: a frame of the library then stays below the callback, and an exception
/// thrown there calls std::terminate, as everywhere, instead of passing through.
#[inline(always)]
fn keep_frame() {
    core::hint::black_box(());
}

/// Releases one reference to a tensor of any major, ours or foreign: calls its deleter, if any.
///
/// # Safety
/// `tensor` is live and not used again.
pub unsafe fn release(tensor: Versioned) {
    // SAFETY: the place of `deleter` is the same in every major.
    if let Some(deleter) = unsafe { (&raw const (*tensor.as_ptr()).deleter).read() } {
        // SAFETY: the producer's deleter, called once per reference.
        unsafe { deleter(tensor.as_ptr()) }
        keep_frame();
    }
}

/// As [`release`], for a legacy tensor.
///
/// # Safety
/// `tensor` is live and not used again.
pub unsafe fn release_legacy(tensor: Legacy) {
    // SAFETY: `tensor` is a live legacy struct.
    if let Some(deleter) = unsafe { (&raw const (*tensor.as_ptr()).deleter).read() } {
        // SAFETY: the producer's deleter, called once per reference.
        unsafe { deleter(tensor.as_ptr()) }
        keep_frame();
    }
}

/// Releases one reference; the last one runs the callbacks and frees.
///
/// # Safety
/// The caller has one reference to a live block and does not use it again.
#[inline(always)]
pub unsafe fn drop_reference(block: *mut Block) {
    // SAFETY: one reference to a live block is ours; `free` takes the object it was given with.
    unsafe { drop_reference_by(block, |kept| (kept.free)(kept.object, kept.runtime)) }
}

/// As [`drop_reference`], for a caller with a cheaper way to release a runtime's object.
///
/// # Safety
/// As [`drop_reference`]; `let_go` does what the block would.
#[inline(always)]
pub unsafe fn drop_reference_by(block: *mut Block, let_go: impl FnOnce(Kept)) {
    // SAFETY: the reference that is released keeps the block alive until here; with the last one
    // nobody else holds it any more.
    unsafe {
        if leave(&(*block).references) {
            match (*block).chains.before.is_empty() & (*block).chains.after.is_empty() {
                true => free_block(block, let_go),
                false => drop_linked(block),
            }
        }
    }
}

/// As [`drop_last`], for a block without callbacks; common owners are checked first.
///
/// # Safety
/// As [`drop_last`].
#[inline(always)]
unsafe fn free_block(block: *mut Block, let_go: impl FnOnce(Kept)) {
    // SAFETY: each owner was given to the block to be called once, when the last reference is
    // released; the block came from `platform::memory`, and is not used again.
    unsafe {
        match (*block).owner {
            Owner::Callback(Some(free), context) => free(context),
            Owner::Callback(None, _) | Owner::Block => {}
            Owner::Object(kept) => let_go(kept),
            Owner::Legacy(base) if of_legacy(base).is_none() => release_legacy(base),
            _ => return drop_last(block),
        }
        platform::give_back(NonNull::new_unchecked(block.cast()));
    }
}

/// The rest of [`drop_reference`] where callbacks may be attached.
///
/// # Safety
/// The block has no reference any more.
#[cold]
#[inline(never)]
unsafe fn drop_linked(block: *mut Block) {
    // SAFETY: no reference is left: only callbacks reach the block, which may attach others.
    unsafe {
        chain::run(&(*block).chains.before);
        drop_last(block);
    }
}

/// Frees, from wrapper to base, and runs the callbacks that are left.
///
/// # Safety
/// The last reference to the block is released, and its first callbacks have run.
#[inline(never)]
unsafe fn drop_last(block: *mut Block) {
    let mut block = block;
    let mut after = Rest::NONE;
    loop {
        // The block is freed after its owner: a `free` that calls this tensor's deleter again sees
        // 0 references and is ignored.
        // SAFETY: nobody else holds the block any more; the owner's reference belonged to this
        // block.
        let base = unsafe {
            if !(*block).chains.after.is_empty() {
                after = after.behind(&(*block).chains.after);
            }
            free_owner(&(*block).owner)
        };
        // SAFETY: the block came from `platform::memory`, and `block` is not used again.
        unsafe { platform::give_back(NonNull::new_unchecked(block.cast())) };
        match base {
            // SAFETY: this block's reference to it is released.
            Some(base) if unsafe { leave(&(*base.as_ptr()).references) } => block = base.as_ptr(),
            _ => break,
        }
        // SAFETY: `leave` said that no reference to this block is left, so only callbacks reach it.
        unsafe {
            if !(*block).chains.before.is_empty() {
                chain::run(&(*block).chains.before);
            }
        }
    }
    after.run();
}

/// Whether that was the last reference. A sole reference needs no read-modify-write. 0 references
/// means that a callback of this very tensor is calling its deleter: that is ignored.
#[inline(always)]
fn leave(references: &AtomicUsize) -> bool {
    // Acquire: what other owners did with the data happens before it is freed.
    match references.load(Acquire) {
        0 => false,
        1 => {
            references.store(0, Relaxed);
            true
        }
        _ => references.fetch_sub(1, AcqRel) == 1,
    }
}

/// Frees the data; or returns the base if it is one of our blocks, for the loop.
unsafe fn free_owner(owner: &Owner) -> Option<NonNull<Block>> {
    // SAFETY: each owner was given to the block to be called once, when the last reference is
    // released.
    unsafe {
        match *owner {
            Owner::Block | Owner::Callback(None, _) => {}
            Owner::Callback(Some(free), context) => free(context),
            Owner::Object(kept) => (kept.free)(kept.object, kept.runtime),
            Owner::Allocator(allocation) => allocation.give_back(),
            Owner::Versioned(base) => match of_versioned(base) {
                Some(block) => return Some(block),
                None => release(base),
            },
            Owner::Legacy(base) => match of_legacy(base) {
                Some(block) => return Some(block),
                None => release_legacy(base),
            },
        }
    }
    None
}

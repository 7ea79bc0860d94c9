//! How a holder of a block goes, and with the last one the block.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

use super::super::chain::{self, Link};
use super::super::share;
use super::{Block, Owner, of_legacy, of_versioned};
use crate::platform;

/// Gives up one holder; the last one runs the callbacks and frees.
///
/// # Safety
/// The caller has one holder of a live block and does not use it again.
#[inline(always)]
pub unsafe fn drop_holder(block: *mut Block) {
    // SAFETY: the holder that is given up keeps the block alive until here.
    let holders = unsafe { &(*block).holders };
    // As in `leave`, which see: the usual case of a sole holder comes first.
    let count = holders.load(Acquire);
    if count != 1 {
        if count != 0 && leave_others(holders, count) {
            // SAFETY: that was the last holder.
            unsafe { drop_linked(block) };
        }
        return;
    }
    holders.store(0, Relaxed);
    // SAFETY: nobody else holds the block any more.
    unsafe {
        let (before, after) = ((*block).before.load(Relaxed), (*block).after.load(Relaxed));
        match before.is_null() & after.is_null() {
            true => free_block(block),
            false => drop_linked(block),
        }
    }
}

/// As [`drop_last`], for a block without callbacks; the usual owners are asked for first.
///
/// # Safety
/// As [`drop_last`].
#[inline(always)]
unsafe fn free_block(block: *mut Block) {
    // SAFETY: each owner was given to the block to be called once, when the last holder goes; the
    // block came from `platform::memory`, and is not used again.
    unsafe {
        match (*block).owner {
            Owner::Callback(Some(free), context) => free(context),
            Owner::Callback(None, _) | Owner::Block => {}
            Owner::Legacy(base) if of_legacy(base).is_none() => share::release_legacy(base),
            _ => return drop_owned(block),
        }
        platform::give_back(NonNull::new_unchecked(block.cast()));
    }
}

/// The rest of [`drop_holder`] where callbacks may be attached.
///
/// # Safety
/// Nobody holds the block any more.
#[cold]
#[inline(never)]
unsafe fn drop_linked(block: *mut Block) {
    // SAFETY: the caller's word. A callback may still attach others.
    unsafe {
        chain::run_here(&(*block).before);
        match (*block).after.load(Relaxed).is_null() {
            true => free_block(block),
            false => drop_last(block),
        }
    }
}

/// The rest of [`free_block`]: other owners.
///
/// # Safety
/// As [`drop_last`].
#[inline(never)]
unsafe fn drop_owned(block: *mut Block) {
    // SAFETY: the owner's holder was this block's; the block came from `platform::memory`, and is
    // not used again.
    let base = unsafe {
        let base = match (*block).owner {
            Owner::Versioned(base) if of_versioned(base).is_some() => of_versioned(base),
            _ => free_owner(&(*block).owner),
        };
        platform::give_back(NonNull::new_unchecked(block.cast()));
        base
    };
    if let Some(base) = base {
        // SAFETY: this block's holder of it is given up.
        unsafe { drop_base(base) }
    }
}

/// Gives up a wrapper's holder of its base.
///
/// # Safety
/// As [`drop_holder`].
#[inline(never)]
unsafe fn drop_base(base: NonNull<Block>) {
    // SAFETY: the caller's word.
    unsafe {
        if leave(&base.as_ref().holders) {
            chain::run(&base.as_ref().before);
            drop_last(base.as_ptr());
        }
    }
}

/// Frees, from wrapper to base, and runs the callbacks that are left.
///
/// # Safety
/// The last holder of the block has gone, and its first callbacks have run.
#[inline(never)]
unsafe fn drop_last(block: *mut Block) {
    let mut block = block;
    let mut after: *mut Link = null_mut();
    loop {
        // SAFETY: nobody else holds the block any more; both lists are ours alone now.
        after = unsafe { chain::join((*block).after.load(Relaxed), after) };
        // The block goes after its owner: a `free` that calls this tensor's deleter again finds 0
        // holders and is ignored.
        // SAFETY: the owner's holder was this block's.
        let base = unsafe { free_owner(&(*block).owner) };
        // SAFETY: the block came from `platform::memory`, and `block` is not used again.
        unsafe { platform::give_back(NonNull::new_unchecked(block.cast())) };
        match base {
            // SAFETY: this block's holder of it is given up.
            Some(base) if unsafe { leave(&base.as_ref().holders) } => block = base.as_ptr(),
            _ => break,
        }
        // SAFETY: as above.
        unsafe { chain::run(&(*block).before) };
    }
    // SAFETY: these links belonged to blocks that are gone.
    unsafe { chain::run(&AtomicPtr::new(after)) };
}

/// Whether the caller was the last holder. A sole holder needs no read-modify-write. 0 holders
/// means that a callback of this very tensor is calling its deleter: that is ignored.
#[inline]
fn leave(holders: &AtomicUsize) -> bool {
    // Acquire: what other holders did with the data happens before it is freed.
    match holders.load(Acquire) {
        0 => false,
        1 => {
            holders.store(0, Relaxed);
            true
        }
        count => leave_others(holders, count),
    }
}

/// As [`leave`], where `count`, more than one, were seen: whether they have gone since.
#[inline(always)]
fn leave_others(holders: &AtomicUsize, count: usize) -> bool {
    if platform::alone() {
        holders.store(count - 1, Relaxed);
        return false;
    }
    holders.fetch_sub(1, AcqRel) == 1
}

/// Gives the data back; returns the base instead when it is a block of ours, for the loop.
#[inline]
unsafe fn free_owner(owner: &Owner) -> Option<NonNull<Block>> {
    // SAFETY: each owner was given to the block to be called once, when the last holder goes.
    unsafe {
        match *owner {
            Owner::Block | Owner::Callback(None, _) => {}
            Owner::Callback(Some(free), context) => free(context),
            Owner::Allocator(a) => (a.free)(a.context, a.data, a.nbytes, a.align_bytes, a.device),
            Owner::Versioned(base) => match of_versioned(base) {
                Some(block) => return Some(block),
                None => share::release(base),
            },
            Owner::Legacy(base) => match of_legacy(base) {
                Some(block) => return Some(block),
                None => share::release_legacy(base),
            },
        }
    }
    None
}

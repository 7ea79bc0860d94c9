//! Deleter chains: callbacks that run when the last holder of a tensor goes, last in, first out.
//!
//! A chain is a list that only grows while the tensor lives: attaching pushes with one
//! compare-and-swap (a store where there is one thread), detaching turns a link into a dead one.
//! So both are safe beside each other on several threads, and no lock can be held while a callback
//! runs. When the tensor goes, one link after the other is taken off and run; only callbacks can
//! change the list then.

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};

use super::block::{Block, dlrs_free_fn};
use crate::error::{Error, Result, Status::*};
use crate::platform;

/// One callback.
pub struct Link {
    next: *mut Link,
    callback: dlrs_free_fn,
    context: *mut c_void,
    live: AtomicBool,
}

/// Adds a callback in front of the chain `links`.
pub fn attach(links: &AtomicPtr<Link>, callback: dlrs_free_fn, context: *mut c_void) -> Result<()> {
    let Some(memory) = platform::memory(size_of::<Link>()) else {
        return Err(Error::new(DLRS_NOMEM).value(size_of::<Link>() as i64));
    };
    let link: NonNull<Link> = memory.cast();
    let mut next = links.load(Relaxed);
    loop {
        // SAFETY: fresh memory of the right size, not yet seen by anyone.
        unsafe { link.write(Link { next, callback, context, live: AtomicBool::new(true) }) };
        if platform::alone() {
            links.store(link.as_ptr(), Relaxed);
            return Ok(());
        }
        platform::look_for_threads();
        // Release: whoever finds the link finds it written.
        match links.compare_exchange_weak(next, link.as_ptr(), Release, Relaxed) {
            Ok(_) => return Ok(()),
            Err(now) => next = now,
        }
    }
}

/// Kills the callback attached last with this function and context; tells whether there was one.
pub fn detach(block: &Block, callback: dlrs_free_fn, context: *mut c_void) -> bool {
    let same = |link: &Link| {
        link.callback.map(|f| f as usize) == callback.map(|f| f as usize) && link.context == context
    };
    for after in [false, true] {
        let mut next = block.links(after).load(Acquire);
        // SAFETY: links are freed only with the block, which the caller holds.
        while let Some(link) = unsafe { next.as_ref() } {
            if same(link) && link.live.swap(false, AcqRel) {
                return true;
            }
            next = link.next;
        }
    }
    false
}

/// `first` with `rest` behind it.
///
/// # Safety
/// Both are chains that nobody else can reach.
pub unsafe fn join(first: *mut Link, rest: *mut Link) -> *mut Link {
    let mut last: *mut Link = null_mut();
    let mut link = first;
    while !link.is_null() {
        last = link;
        // SAFETY: a link of a chain that is ours.
        link = unsafe { (*link).next };
    }
    if last.is_null() {
        return rest;
    }
    // SAFETY: as above.
    unsafe { (*last).next = rest };
    first
}

/// Runs and frees the callbacks of a list, front to back. Each has left the list when it runs, so
/// it may attach others, which are next, and detach those that wait.
///
/// # Safety
/// Nobody but the callbacks can reach the list.
#[inline(always)]
pub unsafe fn run(links: &AtomicPtr<Link>) {
    if !links.load(Relaxed).is_null() {
        // SAFETY: the caller's word.
        unsafe { run_all(links) }
    }
}

/// # Safety
/// As [`run`].
#[inline(never)]
unsafe fn run_all(links: &AtomicPtr<Link>) {
    // SAFETY: the caller's word.
    unsafe { run_here(links) }
}

/// As [`run`], compiled into its caller.
///
/// # Safety
/// As [`run`].
#[inline(always)]
pub unsafe fn run_here(links: &AtomicPtr<Link>) {
    while let Some(memory) = NonNull::new(links.load(Acquire)) {
        // SAFETY: a link of the list; it is read out, taken off and freed before its callback runs,
        // so the callback may do anything, even not return.
        let Link { next, callback, context, live } = unsafe { memory.read() };
        links.store(next, Relaxed);
        // SAFETY: links come from `platform::memory`.
        unsafe { platform::give_back(memory.cast()) };
        if let (Some(callback), true) = (callback, live.into_inner()) {
            // SAFETY: the caller of `attach` vouched for the callback and its context.
            unsafe { callback(context) };
        }
    }
}

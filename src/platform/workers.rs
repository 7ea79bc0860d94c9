//! Threads for one call: made, used, joined. Nothing outlives it.

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::os;
use crate::array::Array;

/// The most threads that [`side_by_side`] uses.
pub const WORKERS_MOST: usize = 64;

/// Stack of a worker; it touches less than 16 KiB of it.
pub(super) const STACK: usize = 256 << 10;

/// What a worker does: `body(context, i)`.
pub type Body = unsafe extern "C" fn(context: *mut c_void, i: usize);

/// Parts are taken one by one by whoever is free: a worker that could not be made is not missed.
pub(super) struct Queue {
    body: Body,
    context: *mut c_void,
    parts: usize,
    next: AtomicUsize,
}

impl Queue {
    /// What a new thread does with its argument: takes parts until there are none.
    ///
    /// # Safety
    /// `queue` points to the Queue of a [`side_by_side`] that joins the calling thread.
    pub(super) unsafe fn work(queue: *mut c_void) {
        // SAFETY: the caller's word.
        let Queue { body, context, parts, next } = unsafe { &*queue.cast::<Queue>() };
        loop {
            let i = next.fetch_add(1, Relaxed);
            if i >= *parts {
                return;
            }
            // SAFETY: the word of `side_by_side`'s caller; each part is taken once.
            unsafe { body(*context, i) };
        }
    }
}

/// Calls `body(context, i)` once for every `i` below `parts`, on the calling thread and on as many
/// others as there are parts for and can be had, below [`WORKERS_MOST`].
///
/// # Safety
/// The body may be called so, on any threads at the same time.
pub unsafe fn side_by_side(parts: usize, body: Body, context: *mut c_void) {
    const FEW: usize = 15;
    // SAFETY: the caller's word.
    unsafe {
        match parts {
            ..=FEW => among::<FEW>(parts, body, context),
            _ => among::<WORKERS_MOST>(parts, body, context),
        }
    }
}

/// As [`side_by_side`], on at most `N` other threads.
///
/// # Safety
/// As there.
#[inline(never)] // a frame of its own, and a small one where that will do: stacks may be small
unsafe fn among<const N: usize>(parts: usize, body: Body, context: *mut c_void) {
    let queue = Queue { body, context, parts, next: AtomicUsize::new(0) };
    let argument: *mut c_void = (&raw const queue).cast_mut().cast();
    let mut threads = Array::<os::Thread, N>::new();
    // SAFETY: `queue` stays as it is until every thread is joined; the rest is the caller's word.
    unsafe {
        start(argument, parts.min(N + 1), &mut |thread| threads.push(thread));
        Queue::work(argument);
        for &thread in threads.iter() {
            os::thread_join(thread);
        }
    }
}

/// Starts as many threads as there are parts for besides the calling thread's, and can be had.
///
/// # Safety
/// `queue` is a [`Queue`] that stays as it is until every thread is joined.
#[inline(never)] // as above
unsafe fn start(queue: *mut c_void, parts: usize, more: &mut dyn FnMut(os::Thread) -> bool) {
    os::with_thread_maker(|maker| {
        for _ in 1..parts {
            // SAFETY: the caller's word.
            let started = unsafe { os::thread_start(maker, queue) };
            if !started.is_some_and(&mut *more) {
                break;
            }
        }
    });
}

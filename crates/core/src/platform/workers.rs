//! Threads for one call: made, used, joined. Nothing outlives it.

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::os;
use crate::array::Array;

/// The most threads that [`side_by_side`] uses.
pub const WORKERS_MOST: usize = 64;

/// Stack of a worker. This library touches less than 16 KiB of it; a driver that it calls may more.
pub(super) const STACK: usize = 1 << 20;

/// What a worker does: `body(context, i)`.
pub type Body = unsafe extern "C" fn(context: *mut c_void, i: usize);

/// What a new thread does. A pointer to it is in front of the argument.
pub(super) type Work = unsafe fn(argument: *mut c_void);

/// Parts are taken one by one by whoever is free: a worker that could not be made is not missed.
#[repr(C)]
struct Queue {
    work: Work,
    body: Body,
    context: *mut c_void,
    parts: usize,
    next: AtomicUsize,
    /// Threads that the first worker is to start: it has more stack to note them on.
    more: AtomicUsize,
}

impl Queue {
    /// What a new thread does with its argument: takes parts until there are none.
    ///
    /// # Safety
    /// `queue` points to the Queue of a [`side_by_side`] that joins the calling thread.
    unsafe fn work(queue: *mut c_void) {
        // SAFETY: `queue` points to the live Queue of a `side_by_side` that joins this thread.
        unsafe {
            match (*queue.cast::<Queue>()).more.swap(0, Relaxed) {
                0 => Queue::take(queue),
                more => among::<WORKERS_MOST>(queue, more),
            }
        }
    }

    /// # Safety
    /// As [`Queue::work`].
    unsafe fn take(queue: *mut c_void) {
        // SAFETY: `queue` points to a Queue that lives until this thread is joined; it is only
        // shared.
        let Queue { body, context, parts, next, .. } = unsafe { &*queue.cast::<Queue>() };
        loop {
            let i = next.fetch_add(1, Relaxed);
            if i >= *parts {
                return;
            }
            // SAFETY: `body` may be called with `context` on any thread; `next` gives each `i` out
            // once.
            unsafe { body(*context, i) };
        }
    }
}

/// Calls `body`, which waits for other threads that use its caller's stack, so that the calling
/// thread is not cancelled meanwhile. A body that a cancelled thread left would leave them behind.
pub fn uncancelled<R>(body: impl FnOnce() -> R) -> R {
    let cancellation = os::Cancellation::hold();
    let answer = body();
    cancellation.release();
    answer
}

/// Calls `body(context, i)` once for every `i` below `parts`, on the calling thread and on as many
/// others as there are parts for and can be had, at most [`WORKERS_MOST`].
///
/// # Safety
/// The body may be called so, on several threads at a time.
pub unsafe fn side_by_side(parts: usize, body: Body, context: *mut c_void) {
    const FEW: usize = 15;
    let others = parts.saturating_sub(1).min(WORKERS_MOST);
    let (own, more) = if others <= FEW { (others, 0) } else { (1, others - 1) };
    let (next, more) = (AtomicUsize::new(0), AtomicUsize::new(more));
    let queue = Queue { work: Queue::work, body, context, parts, next, more };
    // SAFETY: `queue` outlives the threads: `among` joins all of them before it returns.
    unsafe { among::<FEW>((&raw const queue).cast_mut().cast(), own) };
}

/// Takes parts on the calling thread, and on `others` more, at most `N`.
///
/// # Safety
/// As [`Queue::work`].
unsafe fn among<const N: usize>(queue: *mut c_void, others: usize) {
    let mut threads = Array::<os::Thread, N>::new();
    // SAFETY: the queue outlives the threads: each one that was noted is joined here, once.
    unsafe {
        start(queue, others.min(N), &mut |thread| threads.push(thread));
        Queue::take(queue);
        for &thread in threads.iter() {
            os::thread_join(thread);
        }
    }
}

/// Starts so many threads, or as many as can be had.
///
/// # Safety
/// A [`Work`] is in front of `argument`, and may be called with it on other threads.
#[inline(never)]
pub(super) unsafe fn start(
    argument: *mut c_void,
    n: usize,
    note: &mut dyn FnMut(os::Thread) -> bool,
) {
    os::with_thread_maker(|maker| {
        for _ in 0..n {
            // SAFETY: `maker` is that of this `with_thread_maker`; the Work in front of `argument`
            // may be called on another thread.
            let started = unsafe { os::thread_start(maker, argument) };
            if !started.is_some_and(&mut *note) {
                break;
            }
        }
    });
}

//! Threads for one call: made, used, joined. Nothing outlives it.
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::os;

/// The most threads that [`side_by_side`] makes, and one.
pub const WORKERS_MOST: usize = 64;

/// Stack of a worker; it touches less than 16 KiB of it.
pub(super) const STACK: usize = 256 << 10;

/// One part of the work: `body(context, i)`.
pub type Body = unsafe extern "C" fn(context: *mut c_void, i: usize);

/// Parts are taken one by one by whoever is free: a worker that could not be made is not missed.
pub(super) struct Queue {
    body: Body,
    context: *mut c_void,
    parts: usize,
    next: AtomicUsize,
}

impl Queue {
    unsafe fn work(&self) {
        loop {
            let i = self.next.fetch_add(1, Relaxed);
            if i >= self.parts {
                return;
            }
            // SAFETY: the word of `side_by_side`'s caller; each part is taken once.
            unsafe { (self.body)(self.context, i) };
        }
    }

    /// What a new thread does with its argument.
    ///
    /// # Safety
    /// `queue` points to a Queue of [`side_by_side`], which joins the calling thread.
    pub(super) unsafe fn run(queue: *mut c_void) {
        // SAFETY: the caller's word; the queue is only read, its counter is atomic.
        unsafe { (*queue.cast::<Queue>()).work() };
    }
}

/// Calls `body(context, i)` once for every `i` below `parts`: on the calling thread, and on as
/// many others as there are parts and can be had.
///
/// # Safety
/// The body may be called so, on any threads at the same time.
#[inline(never)] // a frame of its own: stacks may be small
pub unsafe fn side_by_side(parts: usize, body: Body, context: *mut c_void) {
    let queue = Queue { body, context, parts, next: AtomicUsize::new(0) };
    let mut threads = [const { MaybeUninit::<os::Thread>::uninit() }; WORKERS_MOST - 1];
    let mut made = 0;
    // SAFETY: `queue` outlives the threads, which are joined here; the first `made` handles are
    // initialised. The rest is the caller's word.
    unsafe {
        os::with_thread_maker(|maker| {
            for place in threads.iter_mut().take(parts.saturating_sub(1)) {
                let Some(thread) = os::thread_start(maker, (&raw const queue).cast_mut().cast())
                else {
                    break;
                };
                place.write(thread);
                made += 1;
            }
        });
        queue.work();
        for thread in threads.iter().take(made) {
            os::thread_join(thread.assume_init());
        }
    }
}

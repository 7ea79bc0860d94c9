//! Threads for one call: made, used, joined. Nothing outlives it.
use core::ffi::c_void;

use super::os;

/// The most parts that [`side_by_side`] runs.
pub const WORKERS_MOST: usize = 64;

/// Stack of a worker; it touches less than 16 KiB of it.
pub(super) const STACK: usize = 256 << 10;

/// What a worker does: `body(context, i)`.
pub type Body = unsafe extern "C" fn(context: *mut c_void, i: usize);

/// One worker's share.
#[derive(Clone, Copy)]
pub(super) struct Task {
    body: Body,
    context: *mut c_void,
    i: usize,
}

impl Task {
    /// What a new thread does with its argument.
    ///
    /// # Safety
    /// `task` points to a Task of [`side_by_side`], which joins the calling thread.
    pub(super) unsafe fn run(task: *mut c_void) {
        // SAFETY: the caller's word; the task stays as it is until this thread is joined.
        unsafe {
            let Task { body, context, i } = *task.cast::<Task>();
            body(context, i);
        }
    }
}

/// Calls `body(context, i)` once for every `i` below `parts`, at most [`WORKERS_MOST`]: part 0 on
/// the calling thread, the others on threads of their own where they can be had.
///
/// # Safety
/// The body may be called so, on any threads at the same time.
pub unsafe fn side_by_side(parts: usize, body: Body, context: *mut c_void) {
    let parts = parts.min(WORKERS_MOST);
    let mut tasks = [Task { body, context, i: 0 }; WORKERS_MOST];
    let mut threads = [None; WORKERS_MOST];
    for (i, task) in tasks.iter_mut().enumerate() {
        task.i = i;
    }
    // SAFETY: `tasks` stays as it is until every thread is joined; the rest is the caller's word.
    unsafe {
        os::with_thread_maker(|maker| {
            for (task, thread) in tasks.iter().zip(&mut threads).take(parts).skip(1) {
                *thread = os::thread_start(maker, (&raw const *task).cast_mut().cast());
            }
        });
        body(context, 0);
        for (i, thread) in (1..parts).zip(threads.iter().skip(1)) {
            match *thread {
                Some(thread) => os::thread_join(thread),
                None => body(context, i),
            }
        }
    }
}

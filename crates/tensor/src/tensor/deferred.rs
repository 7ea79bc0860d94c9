//! Deferred release of tensors: after an event of a device, or on a thread that may release.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering::*};

use super::{Versioned, ready, share};
use crate::backend::Queue;
use crate::error::{Error, Result, Status::*};
use crate::platform;
use crate::ready::Ready;
use crate::registry;

/// A tensor to release.
struct Waiting {
    next: *mut Waiting,
    tensor: Versioned,
    /// The event to wait for, if any.
    event: Option<Ready>,
}

/// All tensors to release, the last one first.
static WAITING: AtomicPtr<Waiting> = AtomicPtr::new(null_mut());

fn push(waiting: NonNull<Waiting>) {
    let mut next = WAITING.load(Relaxed);
    loop {
        // SAFETY: ours alone until it is in the list.
        unsafe { (*waiting.as_ptr()).next = next };
        match WAITING.compare_exchange_weak(next, waiting.as_ptr(), Release, Relaxed) {
            Ok(_) => return,
            Err(now) => next = now,
        }
    }
}

/// Takes the caller's reference, for [`drain`] to release: after the work enqueued on `stream` so
/// far, or at any time without a stream. On error no ownership is taken.
///
/// # Safety
/// `tensor` is live; `stream` is the device's.
pub unsafe fn release_later(tensor: Versioned, on: Option<Queue>) -> Result<()> {
    let Some(memory) = platform::memory(size_of::<Waiting>()) else {
        return Err(Error::new(DLRS_NOMEM).value(size_of::<Waiting>() as i64));
    };
    let record = |on: Queue| {
        let backend = registry::required(on.0.device_type)?;
        // SAFETY: the stream is one of its device, whose type `backend` serves.
        unsafe { Ready::record(backend, on) }
    };
    let event = match on.map(record).transpose() {
        Ok(event) => event,
        Err(error) => {
            // SAFETY: just allocated.
            unsafe { platform::give_back(memory) };
            return Err(error);
        }
    };
    let waiting: NonNull<Waiting> = memory.cast();
    // SAFETY: fresh memory of the right size.
    unsafe { waiting.write(Waiting { next: null_mut(), tensor, event }) };
    push(waiting);
    Ok(())
}

/// Releases the tensors that are due; returns how many remain.
pub fn drain() -> u64 {
    let mut left = 0;
    let mut list = WAITING.swap(null_mut(), Acquire);
    while let Some(waiting) = NonNull::new(list) {
        // SAFETY: the list was taken whole, so its links are ours alone.
        let Waiting { next, tensor, event } = unsafe { waiting.read() };
        list = next;
        // SAFETY: the event was recorded by `release_later`, and what the tensor waits for by its
        // producer; the reference that `release_later` took is released; the link came from
        // `platform::memory`.
        unsafe {
            if ![event.as_ref(), ready::of(tensor)].iter().flatten().all(|it| it.is_over()) {
                push(waiting);
                left += 1;
                continue;
            }
            if let Some(event) = event {
                event.end();
            }
            platform::give_back(waiting.cast());
            share::release(tensor);
        }
    }
    left
}

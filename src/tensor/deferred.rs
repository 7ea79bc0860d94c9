//! Tensors whose release waits: for an event of a device, or for a thread that may release.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering::*};

use super::{Versioned, share};
use crate::abi::DLDevice;
use crate::device::backend::{Backend, Event, Stream};
use crate::device::registry;
use crate::error::{Error, Result, Status::*};
use crate::platform;

/// One tensor that waits.
struct Waiting {
    next: *mut Waiting,
    tensor: Versioned,
    /// What it waits for, if it is a device.
    event: Option<(&'static dyn Backend, DLDevice, Event)>,
}

/// All that wait, the last one first.
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

/// Takes the caller's holder, to be released by [`drain`]: once `stream` has got here, or at any
/// time when there is none. Nothing is taken on error.
///
/// # Safety
/// `tensor` is live; `stream` is the device's.
pub unsafe fn release_later(tensor: Versioned, on: Option<(DLDevice, Stream)>) -> Result<()> {
    let Some(memory) = platform::memory(size_of::<Waiting>()) else {
        return Err(Error::new(DLRS_NOMEM).value(size_of::<Waiting>() as i64));
    };
    // SAFETY: the caller's word.
    let event = match unsafe { on.map(|(device, stream)| record(device, stream)).transpose() } {
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

/// An event that happens when the stream has got here.
///
/// # Safety
/// `stream` is the device's.
unsafe fn record(
    device: DLDevice,
    stream: Stream,
) -> Result<(&'static dyn Backend, DLDevice, Event)> {
    let backend = registry::required(device.device_type)?;
    // What a stream is given while it is captured has no end: graphs are launched again.
    // SAFETY: the caller's word.
    unsafe { backend.stream_waitable(device, stream)? };
    let event = backend.event_create(device)?.as_ptr();
    // SAFETY: a fresh event, and the caller's word.
    unsafe {
        if let Err(error) = backend.event_record(device, event, stream) {
            let _ = backend.event_destroy(device, event);
            return Err(error);
        }
    }
    Ok((backend, device, event))
}

/// Whether an event has happened. A fault of the device counts as its end: nothing of the tensor is
/// in use after it; an answer that a capture forbids does not. A backend that cannot be asked is
/// waited for.
///
/// # Safety
/// The event is the device's, and was recorded.
unsafe fn over(backend: &dyn Backend, device: DLDevice, event: Event) -> bool {
    // SAFETY: the caller's word.
    let answer = unsafe {
        match backend.event_query(device, event) {
            Err(error) if matches!(error.status, DLRS_UNSUPPORTED | DLRS_DRV_SYMBOL) => {
                backend.event_sync(device, event).map(|()| true)
            }
            answer => answer,
        }
    };
    match answer {
        Ok(happened) => happened,
        Err(error) => error.status != DLRS_CAPTURING,
    }
}

/// Releases what need not wait any more; returns how many still wait.
pub fn drain() -> u64 {
    let mut left = 0;
    let mut list = WAITING.swap(null_mut(), Acquire);
    while let Some(waiting) = NonNull::new(list) {
        // SAFETY: the list was taken whole, so its links are ours alone.
        let Waiting { next, tensor, event } = unsafe { waiting.read() };
        list = next;
        if let Some((backend, device, event)) = event {
            // SAFETY: the event was recorded by `release_later`.
            if !unsafe { over(backend, device, event) } {
                push(waiting);
                left += 1;
                continue;
            }
            // SAFETY: it has happened, and nobody else has it.
            let _ = unsafe { backend.event_destroy(device, event) };
        }
        // SAFETY: the holder that `release_later` took; the link came from `platform::memory`.
        unsafe {
            platform::give_back(waiting.cast());
            share::release(tensor);
        }
    }
    left
}

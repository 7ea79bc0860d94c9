//! A point in a device's work after which memory is ready.

use super::backend::{Backend, Event, Queue};
use crate::abi::DLDevice;
use crate::error::{Result, Status::*};

/// An event that was recorded on a stream, and its device. Copies share the event.
#[derive(Clone, Copy)]
pub struct Ready {
    backend: &'static dyn Backend,
    device: DLDevice,
    event: Event,
}

impl PartialEq for Ready {
    fn eq(&self, other: &Ready) -> bool {
        self.event == other.event && self.is_of(other.backend)
    }
}

/// # Safety
/// For all calls of a driver: the event was not destroyed, and the stream is its device's.
#[allow(clippy::missing_safety_doc)]
impl Ready {
    /// Records an event after the work on the stream so far.
    pub unsafe fn record(backend: &'static dyn Backend, (device, stream): Queue) -> Result<Ready> {
        // SAFETY: `stream` is a stream of `device`.
        let event = unsafe { backend.mark(device, stream)? };
        Ok(Ready { backend, device, event })
    }

    /// Records it again, after the work on the stream so far.
    pub unsafe fn again(&self, (device, stream): Queue) -> Result<()> {
        // SAFETY: the event is not destroyed; `stream` is a stream of its device.
        unsafe { self.backend.mark_again(device, self.event, stream) }
    }

    fn is_of(&self, backend: &dyn Backend) -> bool {
        core::ptr::addr_eq(self.backend, backend)
    }

    /// The event, where streams of the backend can wait for it.
    pub fn event(&self, backend: &dyn Backend) -> Option<Event> {
        self.is_of(backend).then_some(self.event)
    }

    /// Makes later work of a stream wait for it; where the stream cannot, the call waits.
    pub unsafe fn before(&self, backend: &dyn Backend, (device, stream): Queue) -> Result<()> {
        // SAFETY: the event is not destroyed; `stream` is a stream of `device`, which is
        // `backend`'s.
        unsafe {
            let Some(event) = self.event(backend) else { return self.sync() };
            match backend.mark_wait(device, event, stream) {
                Err(error) if error.status() == DLRS_UNSUPPORTED => self.sync(),
                done => done,
            }
        }
    }

    /// Waits for it.
    pub unsafe fn sync(&self) -> Result<()> {
        // SAFETY: the event is not destroyed, and is the device's.
        unsafe { self.backend.event_sync(self.device, self.event) }
    }

    /// Whether it has completed. A device error counts as completion: nothing is in use after it;
    /// an error because of a capture does not. Without event_query the call waits.
    pub unsafe fn is_over(&self) -> bool {
        // SAFETY: the event is not destroyed, and is the device's.
        let answer = unsafe {
            match self.backend.event_query(self.device, self.event) {
                Err(error) if matches!(error.status(), DLRS_UNSUPPORTED | DLRS_DRV_SYMBOL) => {
                    self.sync().map(|()| true)
                }
                answer => answer,
            }
        };
        match answer {
            Ok(happened) => happened,
            Err(error) => error.status() != DLRS_CAPTURING,
        }
    }

    /// Destroys the event; pending waits for it are not affected. If the driver fails, at the end
    /// of the process or after a fork, it is leaked.
    pub unsafe fn end(self) {
        // SAFETY: the event is not destroyed yet, and is the device's.
        let _ = unsafe { self.backend.event_destroy(self.device, self.event) };
    }
}

//! Dependencies of a stream's work: other streams' work, and recorded events.

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};

use super::codes::NOT_READY;
use super::context::{Current, is_handle, is_legacy};
use super::driver::Driver;
use super::gpu::Gpu;
use super::vendor::{DISABLE_TIMING, Memory, Vendor, given};
use crate::error::{Error, Result, Status::*};
use dlpack_device::backend::{Event, Order, Queue, Stream};

const UNREADY: &str = "the tensor is not ready yet, and a graph cannot wait for it";

/// A point in a stream's work, for another one to wait for. Waits for a destroyed event still
/// complete.
struct Mark<'a> {
    driver: &'a Driver,
    event: NonNull<c_void>,
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `marked`.
        let _ = unsafe { self.driver.event_destroy(self.event.as_ptr()) };
    }
}

impl Driver {
    /// A new event that completes after the work enqueued so far on a stream of the current
    /// context.
    ///
    /// # Safety
    /// `stream` is one.
    pub(super) unsafe fn event_at(&self, stream: Stream) -> Result<NonNull<c_void>> {
        let mut event = null_mut();
        // SAFETY: a valid output pointer; `stream` is a stream of the current context.
        unsafe {
            self.event_create(&mut event, DISABLE_TIMING)?;
            let event = given(event)?;
            self.event_record(event.as_ptr(), stream).inspect_err(|_| {
                let _ = self.event_destroy(event.as_ptr());
            })?;
            Ok(event)
        }
    }
}

impl Gpu {
    /// A mark on the stream `producer` of the current context, for the stream `own` to wait for. If
    /// one of them is the legacy stream, `producer` must not be captured.
    ///
    /// # Safety
    /// `producer` is a stream of the current context.
    unsafe fn marked(&self, producer: Stream, own: Stream) -> Result<Mark<'_>> {
        let driver = &self.0;
        if is_legacy(producer) || is_legacy(own) {
            driver.not_capturing(producer)?;
        }
        // SAFETY: `producer` is a stream of the current context.
        Ok(Mark { driver, event: unsafe { driver.event_at(producer)? } })
    }

    /// Makes a stream of the current context wait for an event that was recorded outside of
    /// captures; an error for one that is being `captured`, unless the event has completed.
    ///
    /// # Safety
    /// As [`Backend::mark_wait`](dlpack_device::backend::Backend::mark_wait).
    pub(super) unsafe fn wait_for(
        &self,
        event: Event,
        stream: Stream,
        captured: bool,
    ) -> Result<()> {
        if !captured {
            // SAFETY: `event` is not destroyed; `stream` is a stream of the current context.
            return unsafe { self.0.stream_wait(stream, event, 0) };
        }
        let _relaxed = self.0.relaxed();
        // SAFETY: `event` is an event of this driver that is not destroyed.
        match done(unsafe { self.0.event_query(event) })? {
            true => Ok(()),
            false => Err(Error::new(DLRS_CAPTURING).detail(UNREADY)),
        }
    }

    /// Makes the device of a stream current, and the stream wait for its dependencies.
    ///
    /// # Safety
    /// Both are streams of their devices, and the marks events.
    pub(super) unsafe fn enter_after(&self, own: Queue, order: &Order) -> Result<Current<'_>> {
        let &Order { after, marks, waits } = order;
        let exact = self.memory(own.0.device_type) == Some(Memory::Device);
        let beside = |of: &Queue| exact && own.0 == of.0 && !is_handle(of.1);
        let early = match after.filter(|after| !beside(after)) {
            // Default streams belong to the context that was current before.
            Some((device, producer)) => {
                let _there = self.enter(device, producer)?;
                // SAFETY: `producer` is a stream of `device`, which is current.
                Some(unsafe { self.marked(producer, own.1)? })
            }
            None => None,
        };
        let here = self.enter(own.0, own.1)?;
        if waits {
            self.0.not_capturing(own.1)?;
        }
        if marks.iter().any(Option::is_some) {
            let captured = !waits && self.0.capturing(own.1)?;
            for &mark in marks.iter().flatten() {
                // SAFETY: `mark` is an event that is not destroyed; `own.1` is a stream of the
                // current device.
                unsafe { self.wait_for(mark, own.1, captured)? };
            }
        }
        let Some((_, producer)) = after else { return Ok(here) };
        // A thread's default streams wait for one another in CUDA; and a graph cannot wait for work
        // that is not captured.
        let default = early.is_none() && !is_handle(own.1) && self.0.vendor() == Vendor::Cuda;
        let graph = |own| is_legacy(producer) && !is_legacy(own) && !waits;
        if default || graph(own.1) && self.0.capturing(own.1)? {
            return Ok(here);
        }
        // SAFETY: `own.1` is a stream of the current device, and so is `producer` without an early
        // mark, which is an event of this driver.
        unsafe {
            let mark = match early {
                Some(mark) => mark,
                None => self.marked(producer, own.1)?,
            };
            self.0.stream_wait(own.1, mark.event.as_ptr(), 0)?;
        }
        Ok(here)
    }
}

/// Converts the result of a query: whether the work is done.
pub(super) fn done(answer: Result<()>) -> Result<bool> {
    match answer {
        Err(error) if error.driver_code() == NOT_READY => Ok(false),
        answer => answer.map(|()| true),
    }
}

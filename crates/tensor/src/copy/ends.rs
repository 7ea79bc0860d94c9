//! The two ends of a transfer: the memory of each side, and the stream that it is ordered on.

use core::ptr::null_mut;

use super::options::Streams;
use crate::abi::DLDevice;
use crate::backend::{Backend, Queue, Side, Stream, Transfer};
use crate::device_type::{CPU, has_default_stream, host_reachable};
use crate::error::{Error, Result, Status::*};
use crate::ready::Ready;
use crate::registry;
use crate::tensor::ready;
use crate::validate::Snapshot;

/// The side of host memory.
pub const HOST: Side = Side { device: CPU, handle: null_mut(), ready: None };

pub(super) fn on_host(side: &Side) -> bool {
    host_reachable(side.device.device_type)
}

/// A stream, of a device of a backend.
#[derive(Clone, Copy)]
pub(super) struct Worker {
    pub(super) backend: &'static dyn Backend,
    device: DLDevice,
    stream: Stream,
}

impl Worker {
    /// A stream of a device that has a backend; else an error.
    pub(super) fn required(device: DLDevice, stream: Stream) -> Result<Worker> {
        let backend = registry::required(device.device_type)?;
        Ok(Worker { backend, device, stream })
    }

    pub(super) fn queue(&self) -> Queue {
        (self.device, self.stream)
    }

    /// Whether the two are of one backend, so that their streams can wait for each other.
    pub(super) fn beside(&self, other: &Worker) -> bool {
        core::ptr::addr_eq(self.backend, other.backend)
    }

    /// Whether the two are one stream.
    pub(super) fn is(&self, other: &Worker) -> bool {
        self.beside(other) && self.backend.one_stream(self.queue(), other.queue())
    }

    /// # Safety
    /// As [`Backend::copy`].
    pub(super) unsafe fn copy(&self, transfer: &Transfer) -> Result<()> {
        // SAFETY: both sides are live until the work is done; no destination element is a source's.
        unsafe { self.backend.copy(transfer, self.device, self.stream) }
    }

    /// Rejects a stream that cannot be waited for, before anything is enqueued on it.
    pub(super) fn waitable(&self) -> Result<()> {
        // SAFETY: `stream` is NULL or the device's own.
        unsafe { self.backend.stream_waitable(self.device, self.stream) }
    }

    /// Records that the memory of a destination is ready after the work on this stream so far;
    /// where that cannot be recorded, the call waits. Captured work has written nothing.
    ///
    /// # Safety
    /// As [`Ready::again`].
    pub(super) unsafe fn ready_again(&self, ready: &Ready) -> Result<()> {
        if ready.event(self.backend).is_none() {
            return self.sync();
        }
        // SAFETY: the stream is this worker's device's; the destination keeps the event.
        match unsafe { ready.again(self.queue()) } {
            Err(error) if error.status() != DLRS_CAPTURING => self.sync(),
            _ => Ok(()),
        }
    }

    /// Waits, and once more after an error: memory that enqueued work uses may be freed afterwards.
    pub(super) fn sync(&self) -> Result<()> {
        // SAFETY: `stream` is NULL or the device's own.
        let wait = || unsafe { self.backend.stream_sync(self.device, self.stream) };
        wait().inspect_err(|_| {
            let _ = wait();
        })
    }
}

impl PartialEq for Worker {
    fn eq(&self, other: &Worker) -> bool {
        self.beside(other) && self.queue() == other.queue()
    }
}

/// The stream of each side, where it has one: the rule of `dlrs_copy_options`, in one place.
///
/// | memory | without a name | with one |
/// |---|---|---|
/// | of a device | the device's default stream | that one |
/// | managed | the default stream of the device that the driver says it is on | that one |
/// | pinned | none | that one |
/// | of the CPU | none | that one, a stream of the other side's device; the host waits for it |
///
/// The record of a side's memory is waited for in any case. It replaces the stream of a source
/// where none is given; readers of a destination are known to its stream only.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Ends {
    pub(super) src: Option<Worker>,
    pub(super) dst: Option<Worker>,
    /// The source's stream is not waited for.
    pub(super) idle: bool,
    pub(super) ready: [Option<&'static Ready>; 2],
}

impl Ends {
    pub(super) fn of(src: &Memory, dst: &Memory, streams: &Streams) -> Result<Ends> {
        let once = if src.ready == dst.ready { None } else { dst.ready };
        Ok(Ends {
            src: stream_of(src, streams.src, dst)?,
            dst: stream_of(dst, streams.dst, src)?,
            idle: streams.src.is_null() && src.ready.is_some(),
            ready: [src.ready, once],
        })
    }

    /// Waits until both are ready, and the CPU may read the source and write the destination if it
    /// can access them.
    pub(super) fn host_access(&self, src: DLDevice, dst: DLDevice) -> Result<()> {
        // SAFETY: the streams are the devices' own; the memory is kept, and with it the events.
        unsafe {
            for ready in self.ready.iter().flatten() {
                ready.sync()?;
            }
            for (end, device, idle) in [(&self.src, src, self.idle), (&self.dst, dst, false)] {
                if let Some(end) = end.as_ref().filter(|_| host_reachable(device.device_type)) {
                    end.backend.host_access(device, end.queue(), idle)?;
                }
            }
        }
        Ok(())
    }
}

/// Where a side's memory is, and its first element.
#[derive(Clone, Copy)]
pub struct Memory {
    /// The device.
    pub device: DLDevice,
    /// Its address; unused where that is an offset into a handle's object.
    pub first: *const u8,
    /// When its elements are ready, if that was recorded.
    pub ready: Option<&'static Ready>,
}

impl Memory {
    pub(super) fn is_cpu(&self) -> bool {
        self.device == CPU
    }
}

pub(super) fn memories(transfer: &Transfer) -> [Memory; 2] {
    let Transfer { plan, src, dst, .. } = transfer;
    [(src, plan.src), (dst, plan.dst.cast_const())].map(|(side, first)| Memory {
        device: side.device,
        first,
        ready: side.ready,
    })
}

/// When a tensor is ready, if that was recorded; CPU memory always is.
#[inline(always)]
pub(super) fn ready_of(tensor: &Snapshot) -> Option<&'static Ready> {
    if tensor.device.device_type == CPU.device_type { None } else { recorded(tensor) }
}

#[inline(never)]
fn recorded(tensor: &Snapshot) -> Option<&'static Ready> {
    // SAFETY: what was read is live.
    unsafe { ready::of_described(tensor.managed) }
}

/// The stream of one side of a copy.
fn stream_of(memory: &Memory, named: Stream, other: &Memory) -> Result<Option<Worker>> {
    let code = memory.device.device_type;
    if named.is_null() {
        if !has_default_stream(code) {
            return Ok(None);
        }
        let Some(backend) = registry::find(code) else { return Ok(None) };
        return match backend.home(memory.device, memory.first.cast()) {
            Ok(device) => Ok(Some(Worker { backend, device, stream: named })),
            // Without a driver nothing is pending.
            Err(error) if host_reachable(code) && without_driver(&error) => Ok(None),
            Err(error) => Err(error),
        };
    }
    // A stream given for CPU memory is one of the other side's.
    let device = if memory.is_cpu() { other.device } else { memory.device };
    if device == CPU {
        return Err(
            Error::new(DLRS_STREAM).detail("the CPU has no streams\0Pass NULL.\0Pass None.")
        );
    }
    Worker::required(device, named).map(Some)
}

fn without_driver(error: &Error) -> bool {
    matches!(error.status(), DLRS_DRV_MISSING | DLRS_DRV_STUB | DLRS_NO_DEVICE)
}

/// Waits until the CPU may read the source and write the destination, both accessible to it.
pub fn host_access(src: &Memory, dst: &Memory, streams: &Streams) -> Result<()> {
    match pending(src.device, dst.device, streams) || src.ready.is_some() || dst.ready.is_some() {
        true => Ends::of(src, dst, streams)?.host_access(src.device, dst.device),
        false => Ok(()),
    }
}

/// Whether work of a device can be pending on either side.
pub(super) fn pending(src: DLDevice, dst: DLDevice, streams: &Streams) -> bool {
    let named = !streams.src.is_null() || !streams.dst.is_null();
    named || has_default_stream(src.device_type) || has_default_stream(dst.device_type)
}

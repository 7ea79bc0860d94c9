//! What a device can do, as the rest of the library asks for it: bytes, handles, no tensors.
//!
//! [`Backend`] is the interface; CUDA and ROCm carry it out, and [`super::plugged`] is it for a
//! table of C functions. Every slot may answer `DLRS_UNSUPPORTED`, before it has done anything: the
//! caller then looks for another way.

use core::ffi::c_void;
use core::ptr::NonNull;

use super::cpu::Parallel;
use super::plan::Plan;
use super::ready::Ready;
use crate::abi::{DLDevice, DeviceCode};
use crate::error::{Error, Result, Status::*};

/// A stream of a backend, by its own handle; NULL is the device's default stream.
pub type Stream = *mut c_void;
/// An event of a backend, by its own handle.
pub type Event = *mut c_void;

/// Where one side of a transfer lives.
#[derive(Clone, Copy)]
pub struct Side {
    /// The device.
    pub device: DLDevice,
    /// The memory object on devices where `data` is an opaque handle, else NULL.
    pub handle: *mut c_void,
    /// When its elements are ready, where that was recorded; it lives as long as they do.
    pub ready: Option<&'static Ready>,
}

/// A copy between devices. Where a side has a handle, the plan's address of that side is the
/// offset into it, in bytes.
#[derive(Clone, Copy)]
pub struct Transfer {
    /// What to copy.
    pub plan: Plan,
    /// The source's side.
    pub src: Side,
    /// The destination's side.
    pub dst: Side,
    /// The host's threads that may take part.
    pub parallel: Parallel,
}

impl Transfer {
    /// An empty one.
    #[inline(always)]
    pub const fn none() -> Transfer {
        let device = DLDevice { device_type: 0, device_id: 0 };
        let side = Side { device, handle: core::ptr::null_mut(), ready: None };
        Transfer { plan: Plan::none(), src: side, dst: side, parallel: Parallel::ANY }
    }
}

/// A stream, and the device that it belongs to.
pub type Queue = (DLDevice, Stream);

/// What a copy comes after, and whether the host waits for it then.
#[derive(Clone, Copy)]
pub struct Order {
    /// What another stream of the backend has been given until now.
    pub after: Option<Queue>,
    /// Events of the backend, made by [`Backend::mark`].
    pub marks: [Option<Event>; 2],
    /// Who waits for the copy afterwards is refused a stream that cannot be waited for.
    pub waits: bool,
}

/// What a driver reports about an address.
#[derive(Clone, Copy)]
pub struct Pointer {
    /// The kind of memory and its device.
    pub device: DLDevice,
    /// Start of its allocation; NULL when the driver does not report it.
    pub base: *mut c_void,
    /// Size of that allocation in bytes; 0 when the driver does not report it.
    pub nbytes: u64,
}

/// What a backend may lack, in words.
pub struct Lack;

impl Lack {
    /// Allocation.
    pub const MEMORY: &str = "this device's backend does not allocate";
    /// This kind of copy.
    pub const COPIES: &str = "this device's backend does not copy so";
    /// Streams.
    pub const STREAMS: &str = "this device's backend has no streams";
    /// Events.
    pub const EVENTS: &str = "this device's backend has no events";
    /// Answers about devices and memory.
    pub const QUESTIONS: &str = "this device's backend does not tell";
    /// Access from one device to another's memory.
    pub const PEERS: &str = "this device's backend does not tell of access between devices";
    /// Registering memory of the host.
    pub const REGISTRATION: &str = "this device's backend does not register memory of the host";
}

/// "This backend does not do that": nothing was done.
#[cold]
pub fn unsupported<T>(lack: &'static str) -> Result<T> {
    Err(Error::new(DLRS_UNSUPPORTED).detail(lack))
}

/// What was done, or another way if the backend does not do that.
fn or_else(done: Result<()>, other: impl FnOnce() -> Result<()>) -> Result<()> {
    match done {
        Err(error) if error.status == DLRS_UNSUPPORTED => other(),
        done => done,
    }
}

/// A device's driver. Streams and events belong to the device that is named with them.
///
/// Work may be asynchronous: whoever enqueues a copy keeps both sides alive until the stream has
/// been waited for, or an event recorded behind it.
#[allow(unused_variables)]
pub trait Backend: Sync {
    /// Its name, for messages and explanations.
    fn name(&self) -> &'static str;

    /// Number of devices of a type. The driver is looked for here if it was not yet.
    fn device_count(&self, device_type: DeviceCode) -> Result<i32>;

    /// `nbytes` (above 0) bytes on a device. `stream`: usable there at once, everywhere when NULL.
    fn alloc(
        &self,
        device: DLDevice,
        nbytes: u64,
        align_bytes: u64,
        stream: Stream,
    ) -> Result<NonNull<c_void>> {
        unsupported(Lack::MEMORY)
    }

    /// Gives memory back, after the work on `stream`, or all work of the device when NULL.
    ///
    /// # Safety
    /// `data` came from `alloc` for the same values.
    unsafe fn free(
        &self,
        device: DLDevice,
        data: NonNull<c_void>,
        nbytes: u64,
        align_bytes: u64,
        stream: Stream,
    ) -> Result<()> {
        unsupported(Lack::MEMORY)
    }

    /// Enqueues a copy on `stream` of `device`, which is one of the two sides' and this backend's.
    ///
    /// # Safety
    /// Both sides stay alive until the stream has got here; elements of the destination are
    /// distinct and none of the source's.
    unsafe fn copy(&self, transfer: &Transfer, device: DLDevice, stream: Stream) -> Result<()>;

    /// As [`Backend::copy`], on the stream `own`, in this order.
    ///
    /// # Safety
    /// As [`Backend::copy`]; both are streams of their devices, the marks events.
    unsafe fn copy_after(&self, transfer: &Transfer, own: Queue, order: &Order) -> Result<()> {
        // SAFETY: the caller's word.
        unsafe {
            if order.waits {
                self.stream_waitable(own.0, own.1)?;
            }
            if let Some(after) = order.after {
                // Without events the host waits.
                or_else(self.stream_wait(own, after), || self.stream_sync(after.0, after.1))?;
            }
            for &mark in order.marks.iter().flatten() {
                let waited = self.mark_wait(own.0, mark, own.1);
                or_else(waited, || self.event_sync(own.0, mark))?;
            }
            self.copy(transfer, own.0, own.1)
        }
    }

    /// How [`Backend::copy`] would do it, in a few words.
    fn explain(&self, transfer: &Transfer) -> Result<&'static str> {
        Ok("asked when it is carried out")
    }

    /// Free and total bytes.
    fn memory_info(&self, device: DLDevice) -> Result<(u64, u64)> {
        unsupported(Lack::QUESTIONS)
    }

    /// What kind of memory an address is in.
    fn pointer(&self, data: *const c_void) -> Result<Pointer> {
        unsupported(Lack::QUESTIONS)
    }

    /// Makes the driver know memory of the host, for faster and asynchronous copies.
    ///
    /// # Safety
    /// `nbytes` bytes from `data` on stay allocated until `host_unregister`.
    unsafe fn host_register(&self, data: NonNull<c_void>, nbytes: u64) -> Result<()> {
        unsupported(Lack::REGISTRATION)
    }

    /// Undoes [`Backend::host_register`].
    ///
    /// # Safety
    /// `data` is registered.
    unsafe fn host_unregister(&self, data: NonNull<c_void>) -> Result<()> {
        unsupported(Lack::REGISTRATION)
    }

    /// Whose default stream orders the memory at `data`, which was given as `device`'s.
    fn home(&self, device: DLDevice, data: *const c_void) -> Result<DLDevice> {
        Ok(device)
    }

    /// Whether two streams are one.
    fn one_stream(&self, a: Queue, b: Queue) -> bool {
        a == b
    }

    /// Waits until the CPU may read and write memory of `device` whose work is on a stream;
    /// `idle`: what the stream was given does not concern it.
    ///
    /// # Safety
    /// As [`Backend::stream_sync`].
    unsafe fn host_access(&self, device: DLDevice, work: Queue, idle: bool) -> Result<()> {
        // SAFETY: the caller's word.
        if idle { Ok(()) } else { unsafe { self.stream_sync(work.0, work.1) } }
    }

    /// A stream that does not wait for the default stream.
    fn stream_create(&self, device: DLDevice) -> Result<NonNull<c_void>> {
        unsupported(Lack::STREAMS)
    }

    /// Destroys a stream; work on it still completes.
    ///
    /// # Safety
    /// `stream` is the device's, made by `stream_create`.
    unsafe fn stream_destroy(&self, device: DLDevice, stream: Stream) -> Result<()> {
        unsupported(Lack::STREAMS)
    }

    /// Waits for all work of a stream.
    ///
    /// # Safety
    /// `stream` is NULL or the device's.
    unsafe fn stream_sync(&self, device: DLDevice, stream: Stream) -> Result<()>;

    /// Whether the stream could be waited for: not while it is being captured.
    ///
    /// # Safety
    /// As [`Backend::stream_sync`].
    unsafe fn stream_waitable(&self, device: DLDevice, stream: Stream) -> Result<()> {
        Ok(())
    }

    /// Whether all work of a stream is done.
    ///
    /// # Safety
    /// `stream` is NULL or the device's.
    unsafe fn stream_query(&self, device: DLDevice, stream: Stream) -> Result<bool> {
        unsupported(Lack::STREAMS)
    }

    /// An event.
    fn event_create(&self, device: DLDevice) -> Result<NonNull<c_void>> {
        unsupported(Lack::EVENTS)
    }

    /// Destroys an event.
    ///
    /// # Safety
    /// `event` is the device's.
    unsafe fn event_destroy(&self, device: DLDevice, event: Event) -> Result<()> {
        unsupported(Lack::EVENTS)
    }

    /// The event happens when `stream` has got here.
    ///
    /// # Safety
    /// Both are the device's.
    unsafe fn event_record(&self, device: DLDevice, event: Event, stream: Stream) -> Result<()> {
        unsupported(Lack::EVENTS)
    }

    /// Later work of `stream` starts after the event.
    ///
    /// # Safety
    /// `stream` is the device's; the event is one of this backend.
    unsafe fn event_wait(&self, device: DLDevice, event: Event, stream: Stream) -> Result<()> {
        unsupported(Lack::EVENTS)
    }

    /// Later work of the consumer starts after what the producer has been given until now. For a
    /// consumer that is being captured, a default stream has nothing pending.
    ///
    /// # Safety
    /// Both are streams of their devices, which are this backend's.
    unsafe fn stream_wait(
        &self,
        (consumer_device, consumer): Queue,
        (producer_device, producer): Queue,
    ) -> Result<()> {
        let event = self.event_create(producer_device)?.as_ptr();
        // SAFETY: a fresh event, and the caller's word for the streams. Drivers keep what a
        // destroyed event still has to say.
        unsafe {
            let waited = self
                .event_record(producer_device, event, producer)
                .and_then(|()| self.event_wait(consumer_device, event, consumer));
            waited.and(self.event_destroy(producer_device, event))
        }
    }

    /// An event that happens when `stream` has got here. What is captured never happens, so a
    /// stream that is being captured is refused.
    ///
    /// # Safety
    /// `stream` is the device's.
    unsafe fn mark(&self, device: DLDevice, stream: Stream) -> Result<Event> {
        // SAFETY: the caller's word, and a fresh event.
        unsafe {
            self.stream_waitable(device, stream)?;
            let event = self.event_create(device)?.as_ptr();
            match self.event_record(device, event, stream) {
                Ok(()) => Ok(event),
                Err(error) => {
                    let _ = self.event_destroy(device, event);
                    Err(error)
                }
            }
        }
    }

    /// Moves an event of [`Backend::mark`] to where `stream` is now.
    ///
    /// # Safety
    /// As [`Backend::mark`].
    unsafe fn mark_again(&self, device: DLDevice, event: Event, stream: Stream) -> Result<()> {
        // SAFETY: the caller's word.
        unsafe {
            self.stream_waitable(device, stream)?;
            self.event_record(device, event, stream)
        }
    }

    /// Later work of `stream` starts after an event of [`Backend::mark`]. A stream that is being
    /// captured cannot wait for it, and is refused unless it has happened.
    ///
    /// # Safety
    /// As [`Backend::event_wait`].
    unsafe fn mark_wait(&self, device: DLDevice, event: Event, stream: Stream) -> Result<()> {
        // SAFETY: the caller's word.
        unsafe { self.event_wait(device, event, stream) }
    }

    /// Whether a device reaches the memory of another one: 0 it cannot, 1 it could, 2 it does.
    fn peer_access(&self, device: DLDevice, peer: DLDevice) -> Result<i32> {
        unsupported(Lack::PEERS)
    }

    /// Lets a device reach the memory of another one, or ends that.
    fn peer_access_set(&self, device: DLDevice, peer: DLDevice, enabled: bool) -> Result<()> {
        unsupported(Lack::PEERS)
    }

    /// Waits for an event.
    ///
    /// # Safety
    /// `event` is the device's.
    unsafe fn event_sync(&self, device: DLDevice, event: Event) -> Result<()> {
        unsupported(Lack::EVENTS)
    }

    /// Whether an event has happened.
    ///
    /// # Safety
    /// `event` is the device's.
    unsafe fn event_query(&self, device: DLDevice, event: Event) -> Result<bool> {
        unsupported(Lack::EVENTS)
    }
}

//! The interface of a device: bytes and handles, no tensors.
//!
//! [`Backend`] is the interface; CUDA and ROCm implement it, and [`super::plugged`] adapts a table
//! of C functions. Every function may return `DLRS_UNSUPPORTED`, before it has done anything: the
//! caller then uses another method.

use core::ffi::c_void;
use core::ptr::NonNull;

use super::cpu::Parallel;
use super::plan::Plan;
use super::ready::Ready;
use crate::abi::{DLDevice, DeviceCode};
use crate::error::{Error, Result, Status::*};

/// A stream of a backend, by the backend's handle; NULL is the device's default stream.
pub type Stream = *mut c_void;
/// An event of a backend, by the backend's handle.
pub type Event = *mut c_void;

/// The location of one side of a transfer.
#[derive(Clone, Copy)]
pub struct Side {
    /// The device.
    pub device: DLDevice,
    /// The memory object on devices where `data` is an opaque handle, else NULL.
    pub handle: *mut c_void,
    /// When its elements are ready, if that was recorded; valid as long as they are.
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

/// Transfers to be executed one after the other, all in one order.
pub trait Transfers {
    /// The current one.
    fn current(&mut self) -> &mut Transfer;

    /// Its index.
    fn at(&self) -> usize;

    /// At most so many come after it.
    fn left(&self) -> usize;

    /// Makes the one at an index, or the first one after it, current; false if there is none in
    /// this order.
    fn go_to(&mut self, index: usize) -> bool;
}

/// One transfer.
impl Transfers for Transfer {
    fn current(&mut self) -> &mut Transfer {
        self
    }

    fn at(&self) -> usize {
        0
    }

    fn left(&self) -> usize {
        0
    }

    fn go_to(&mut self, _: usize) -> bool {
        false
    }
}

/// A stream, and the device that it belongs to.
pub type Queue = (DLDevice, Stream);

/// The work that a copy waits for, and whether the host waits for the copy.
#[derive(Clone, Copy)]
pub struct Order {
    /// The work enqueued so far on another stream of the backend.
    pub after: Option<Queue>,
    /// Events of the backend, made by [`Backend::mark`].
    pub marks: [Option<Event>; 2],
    /// The caller waits for the copy: a stream that cannot be waited for is an error.
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

/// Texts for functions that a backend lacks.
pub struct Lack;

impl Lack {
    /// Allocation.
    pub const MEMORY: &str =
        "this device's backend does not allocate\0Allocate with the device's own library.";
    /// This kind of copy.
    pub const COPIES: &str =
        "this device's backend does not copy so\0Make it compact first, or copy through the host.";
    /// Streams.
    pub const STREAMS: &str = "this device's backend has no streams\0Leave the stream out.";
    /// Events.
    pub const EVENTS: &str = "this device's backend has no events\0Wait for the stream instead.";
    /// Queries of devices and memory.
    pub const QUESTIONS: &str =
        "this device's backend does not tell\0Ask the device's own library.";
    /// Registration of host memory.
    pub const REGISTRATION: &str = "this device's backend does not register host memory\0\
                                    Copy the memory instead.";
}

/// DLRS_UNSUPPORTED: nothing was done.
#[cold]
pub fn unsupported<T>(lack: &'static str) -> Result<T> {
    Err(Error::new(DLRS_UNSUPPORTED).detail(lack))
}

/// The result, or that of `other` if it is DLRS_UNSUPPORTED.
fn or_else(done: Result<()>, other: impl FnOnce() -> Result<()>) -> Result<()> {
    match done {
        Err(error) if error.status() == DLRS_UNSUPPORTED => other(),
        done => done,
    }
}

/// A device's driver. Streams and events belong to the device given with them.
///
/// Work may be asynchronous: the caller of a copy keeps both sides allocated until it has waited
/// for the stream, or for an event recorded after it.
#[allow(unused_variables)]
pub trait Backend: Sync {
    /// Its name, for messages and explanations.
    fn name(&self) -> &'static str;

    /// Number of devices of a type. Loads the driver if it was not loaded yet.
    fn device_count(&self, device_type: DeviceCode) -> Result<i32>;

    /// Allocates `nbytes` (above 0) bytes on a device, usable on `stream` at once; NULL: on all
    /// streams.
    fn alloc(
        &self,
        device: DLDevice,
        nbytes: u64,
        align_bytes: u64,
        stream: Stream,
    ) -> Result<NonNull<c_void>> {
        unsupported(Lack::MEMORY)
    }

    /// Frees memory, after the work on `stream`, or all work of the device when NULL.
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
    /// Both sides stay allocated until the stream has completed it; elements of the destination are
    /// distinct and none of the source's.
    unsafe fn copy(&self, transfer: &Transfer, device: DLDevice, stream: Stream) -> Result<()>;

    /// As [`Backend::copy`], for the current transfer and those that follow, on the stream `own`,
    /// all in this order. After an error the current one is at fault, and has not been enqueued;
    /// earlier ones may have been.
    ///
    /// # Safety
    /// As [`Backend::copy`], for each; no destination shares memory with another transfer's sides.
    /// `own` and that of `order` are streams of their devices, the marks events.
    unsafe fn copy_after(
        &self,
        transfers: &mut dyn Transfers,
        own: Queue,
        order: &Order,
    ) -> Result<()> {
        // SAFETY: both are streams of their devices, the marks events; all sides stay allocated
        // until the stream has completed the copies.
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
            loop {
                self.copy(transfers.current(), own.0, own.1)?;
                let next = transfers.at().wrapping_add(1);
                if !transfers.go_to(next) {
                    return Ok(());
                }
            }
        }
    }

    /// How [`Backend::copy`] would copy, as text.
    fn explain(&self, transfer: &Transfer) -> Result<&'static str> {
        Ok("asked when it is carried out")
    }

    /// The kind of memory of an address.
    fn pointer(&self, data: *const c_void) -> Result<Pointer> {
        unsupported(Lack::QUESTIONS)
    }

    /// Registers (pins) host memory, for faster and asynchronous copies.
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

    /// The device whose default stream orders accesses to `data`, which is exported as `device`'s.
    fn home(&self, device: DLDevice, data: *const c_void) -> Result<DLDevice> {
        Ok(device)
    }

    /// Whether two streams are one.
    fn one_stream(&self, a: Queue, b: Queue) -> bool {
        a == b
    }

    /// Waits until the CPU may access memory of `device` whose work is on a stream; `idle`: no work
    /// on the stream uses it.
    ///
    /// # Safety
    /// As [`Backend::stream_sync`].
    unsafe fn host_access(&self, device: DLDevice, work: Queue, idle: bool) -> Result<()> {
        // SAFETY: the stream is NULL or one of its device.
        if idle { Ok(()) } else { unsafe { self.stream_sync(work.0, work.1) } }
    }

    /// Creates a stream that does not synchronize with the default stream.
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

    /// Whether the stream can be waited for: not while it is being captured.
    ///
    /// # Safety
    /// As [`Backend::stream_sync`].
    unsafe fn stream_waitable(&self, device: DLDevice, stream: Stream) -> Result<()> {
        Ok(())
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

    /// Records an event: it completes after the work enqueued on `stream` so far.
    ///
    /// # Safety
    /// Both are the device's.
    unsafe fn event_record(&self, device: DLDevice, event: Event, stream: Stream) -> Result<()> {
        unsupported(Lack::EVENTS)
    }

    /// Makes later work of `stream` wait for the event.
    ///
    /// # Safety
    /// `stream` is the device's; the event is one of this backend.
    unsafe fn event_wait(&self, device: DLDevice, event: Event, stream: Stream) -> Result<()> {
        unsupported(Lack::EVENTS)
    }

    /// Makes later work of the consumer wait for the work enqueued on the producer so far. For a
    /// consumer that is being captured, a default stream counts as idle.
    ///
    /// # Safety
    /// Both are streams of their devices, which are this backend's.
    unsafe fn stream_wait(
        &self,
        (consumer_device, consumer): Queue,
        (producer_device, producer): Queue,
    ) -> Result<()> {
        let event = self.event_create(producer_device)?.as_ptr();
        // SAFETY: a fresh event, and streams of their devices. Waits for a destroyed event still
        // complete.
        unsafe {
            let waited = self
                .event_record(producer_device, event, producer)
                .and_then(|()| self.event_wait(consumer_device, event, consumer));
            waited.and(self.event_destroy(producer_device, event))
        }
    }

    /// An event that completes after the work on `stream` so far. A captured event never completes,
    /// so a stream that is being captured is an error.
    ///
    /// # Safety
    /// `stream` is the device's.
    unsafe fn mark(&self, device: DLDevice, stream: Stream) -> Result<Event> {
        unsupported(Lack::EVENTS)
    }

    /// Records an event of [`Backend::mark`] again on `stream`.
    ///
    /// # Safety
    /// Both are the device's.
    unsafe fn mark_again(&self, device: DLDevice, event: Event, stream: Stream) -> Result<()> {
        // SAFETY: `event` was made by `mark`; it and `stream` are the device's.
        unsafe { self.event_record(device, event, stream) }
    }

    /// Makes later work of `stream` wait for an event of [`Backend::mark`]. A stream that is being
    /// captured cannot wait for it: an error unless it has completed.
    ///
    /// # Safety
    /// As [`Backend::event_wait`].
    unsafe fn mark_wait(&self, device: DLDevice, event: Event, stream: Stream) -> Result<()> {
        // SAFETY: `stream` is the device's; `event` is one of this backend.
        unsafe { self.event_wait(device, event, stream) }
    }

    /// Waits for an event.
    ///
    /// # Safety
    /// `event` is the device's.
    unsafe fn event_sync(&self, device: DLDevice, event: Event) -> Result<()> {
        unsupported(Lack::EVENTS)
    }

    /// Whether an event has completed.
    ///
    /// # Safety
    /// `event` is the device's.
    unsafe fn event_query(&self, device: DLDevice, event: Event) -> Result<bool> {
        unsupported(Lack::EVENTS)
    }
}

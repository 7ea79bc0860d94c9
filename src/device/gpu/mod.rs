//! CUDA and ROCm: one backend over two drivers that hardly differ.
//!
//! ```text
//!   Gpu      │ the trait Backend: enters the device, asks the driver
//!   copy     │ which way a copy goes: the driver's copies, kernels, pinned buffers
//!   memory   │ allocation, what the driver knows about addresses
//!   context  │ the current context or device, changed and put back
//!   driver   │ the library, its functions by both vendors' names; codes: what they answer
//!   launch   │ kernels loaded and launched; kernels.rs chooses them; hiprtc compiles for ROCm;
//!            │ packed keeps their text small
//!   stage    │ pinned buffers between a device and pageable memory, by several threads
//!   peers    │ strided copies between two devices, by what is compact on one of them
//!   cuda, rocm  what only one of them has
//! ```
//! No library is loaded before a function of a device is called. What fails then is tried again by
//! the next call. The driver is started once; in a process forked later every call is refused.
//!
//! CUDA's context is the caller's current one if it is the device's, that of the stream if there is
//! a stream, else the device's primary one, which is retained when it is first needed and kept.
//! What was current before a call is current after it.
//!
//! A stream that is being captured is refused before anything breaks the capture; contiguous copies
//! and kernels on it, asynchronous, are captured. What waits, asks or allocates breaks other
//! threads' captures too, unless it is done in the relaxed mode ([`Driver::relaxed`]).
//!
//! Peer access is never enabled here: it would change the caller's contexts. Contiguous copies
//! between two devices are given to the driver's call that names both, which copies directly where
//! the caller enabled it, and through the host elsewhere; kernels touch the current device's memory
//! only, by the addresses that the driver names for it.
//!
//! Kernels and kept buffers live in primary contexts only, and only there several threads work: in
//! a context of the caller's own, strided copies go through memory of the host. Green contexts of
//! CUDA, which are current to one thread only, take kernels from the primary one.
//!
//! CUDA was run on an H200 and an H100 (docs/devices.md), ROCm on stand-in drivers only.

pub mod codes;
mod context;
mod copy;
mod cuda;
pub mod driver;
mod hiprtc;
pub mod kernels;
mod launch;
pub mod launches;
mod memory;
pub mod packed;
mod peers;
mod rocm;
mod stage;

use core::ffi::{c_char, c_void};
use core::ptr::{NonNull, null_mut};

use self::codes::NOT_READY;
use self::context::{is_handle, is_legacy};
use self::driver::{Driver, Kept, Vendor};
use super::backend::{Backend, Event, Lack, Order, Pointer, Queue, Stream, Transfer, unsupported};
use super::registry;
use crate::abi::{DLDevice, DLDeviceType, DLDeviceType::*, DeviceCode};
use crate::error::{Error, Result, Status::*};
use crate::platform;

/// A vendor's devices.
pub struct Gpu(Driver);

/// The vendors that are built in.
static VENDORS: [Gpu; cfg!(feature = "cuda") as usize + cfg!(feature = "rocm") as usize] = [
    #[cfg(feature = "cuda")]
    Gpu(Driver::new(Vendor::Cuda, platform::CUDA, {
        static KEPT: Kept = Kept::new();
        &KEPT
    })),
    #[cfg(feature = "rocm")]
    Gpu(Driver::new(Vendor::Rocm, platform::HIP, {
        static KEPT: Kept = Kept::new();
        &KEPT
    })),
];

const UNREADY: &str = "the tensor is not ready yet, and a graph cannot wait for it";
const NONBLOCKING: u32 = 1; // CU_STREAM_NON_BLOCKING
const DISABLE_TIMING: u32 = 2; // CU_EVENT_DISABLE_TIMING

/// Kinds of memory of a vendor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// A device's own.
    Device,
    /// The host's, page-locked.
    Pinned,
    /// The driver moves it.
    Managed,
}

/// Rows of bytes, a pitch apart.
pub struct Pitched {
    /// First row of the source.
    pub src: *const u8,
    /// Bytes from row to row of the source.
    pub src_pitch: usize,
    /// First row of the destination.
    pub dst: *mut u8,
    /// Bytes from row to row of the destination.
    pub dst_pitch: usize,
    /// Bytes of a row.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
}

fn vendor(device_type: DeviceCode) -> Option<&'static Gpu> {
    VENDORS.iter().find(|gpu| gpu.memory(device_type).is_some())
}

/// The backend of a kind of device, if it is one of these.
pub fn of(device_type: DeviceCode) -> Option<&'static dyn Backend> {
    vendor(device_type).map(|gpu| gpu as &dyn Backend)
}

/// The driver's file to load for a kind of device, in place of those that the system knows; NULL
/// for those. Refused once the driver is loaded.
///
/// # Safety
/// `path` is NULL or a text that stays.
pub unsafe fn set_path(device_type: DeviceCode, path: *const c_char) -> Result<()> {
    let Some(gpu) = vendor(device_type) else { return Err(registry::no_driver(device_type)) };
    // SAFETY: the caller's word.
    match unsafe { gpu.0.set_path(path) } {
        true => Ok(()),
        false => Err(Error::new(DLRS_BAD_ARG).detail("the driver is loaded already")),
    }
}

impl Gpu {
    /// The kind of memory that a device's type stands for; `None`: not of this vendor.
    fn memory(&self, device_type: DeviceCode) -> Option<Memory> {
        const fn is(known: DLDeviceType) -> DeviceCode {
            known as DeviceCode
        }
        let (device, pinned, managed) = match self.0.vendor() {
            Vendor::Cuda => (is(kDLCUDA), is(kDLCUDAHost), is(kDLCUDAManaged)),
            Vendor::Rocm => (is(kDLROCM), is(kDLROCMHost), -1),
        };
        match device_type {
            code if code == device => Some(Memory::Device),
            code if code == pinned => Some(Memory::Pinned),
            code if code == managed => Some(Memory::Managed),
            _ => None,
        }
    }

    /// The type for a kind of memory.
    fn device(&self, memory: Memory, ordinal: i32) -> DLDevice {
        let (code, device_id) = match (memory, self.0.vendor()) {
            (Memory::Device, Vendor::Cuda) => (kDLCUDA, ordinal),
            (Memory::Pinned, Vendor::Cuda) => (kDLCUDAHost, 0),
            (Memory::Managed, Vendor::Cuda) => (kDLCUDAManaged, 0),
            (Memory::Pinned, Vendor::Rocm) => (kDLROCMHost, 0),
            // DLPack has no name for ROCm's managed memory, which its devices reach as their own.
            (Memory::Device | Memory::Managed, Vendor::Rocm) => (kDLROCM, ordinal),
        };
        DLDevice { device_type: code as DeviceCode, device_id }
    }

    /// Makes a device current; any will do for pinned and managed memory.
    fn enter(&self, device: DLDevice, stream: Stream) -> Result<context::Current<'_>> {
        let exact = self.memory(device.device_type) == Some(Memory::Device);
        self.0.enter(exact.then_some(device.device_id), stream)
    }
}

/// A point in a stream's work, for another one to wait for. What a destroyed event has yet to say,
/// it says.
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
    /// A fresh event that happens when a stream of the current context has got here.
    ///
    /// # Safety
    /// `stream` is one.
    unsafe fn event_at(&self, stream: Stream) -> Result<NonNull<c_void>> {
        let mut event = null_mut();
        // SAFETY: a place for the event, and the caller's word.
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
    /// The number of a device that has memory of its own.
    fn ordinal(&self, device: DLDevice) -> Result<i32> {
        match self.memory(device.device_type) {
            Some(Memory::Device) => Ok(device.device_id),
            _ => unsupported(Lack::PEERS),
        }
    }

    /// Where the stream `producer` of the current context is now, for the stream `own` to wait for:
    /// neither of them can be the legacy stream next to what is captured.
    ///
    /// # Safety
    /// `producer` is a stream of the current context.
    unsafe fn marked(&self, producer: Stream, own: Stream) -> Result<Mark<'_>> {
        let driver = &self.0;
        if is_legacy(producer) || is_legacy(own) {
            driver.not_capturing(producer)?;
        }
        // SAFETY: the caller's word.
        Ok(Mark { driver, event: unsafe { driver.event_at(producer)? } })
    }

    /// Has a stream of the current context wait for an event that was recorded outside of captures;
    /// one that is being `captured` cannot, unless it has happened.
    ///
    /// # Safety
    /// As [`Backend::mark_wait`].
    unsafe fn wait_for(&self, event: Event, stream: Stream, captured: bool) -> Result<()> {
        if !captured {
            // SAFETY: the caller's word.
            return unsafe { self.0.stream_wait(stream, event, 0) };
        }
        let _relaxed = self.0.relaxed();
        // SAFETY: as above.
        match done(unsafe { self.0.event_query(event) })? {
            true => Ok(()),
            false => Err(Error::new(DLRS_CAPTURING).detail(UNREADY)),
        }
    }

    /// Enters the device of a stream, and has the stream wait for what it comes after.
    ///
    /// # Safety
    /// Both are streams of their devices, and the marks events.
    unsafe fn enter_after(&self, own: Queue, order: &Order) -> Result<context::Current<'_>> {
        let &Order { after, marks, waits } = order;
        let exact = self.memory(own.0.device_type) == Some(Memory::Device);
        let beside = |of: &Queue| exact && own.0 == of.0 && !is_handle(of.1);
        let early = match after.filter(|after| !beside(after)) {
            // Default streams are those of what was current before.
            Some((device, producer)) => {
                let _there = self.enter(device, producer)?;
                // SAFETY: the caller's word.
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
                // SAFETY: the caller's word.
                unsafe { self.wait_for(mark, own.1, captured)? };
            }
        }
        let Some((_, producer)) = after else { return Ok(here) };
        // A thread's default streams wait for one another in CUDA; and a graph cannot wait for
        // what nobody captures.
        let default = early.is_none() && !is_handle(own.1) && self.0.vendor() == Vendor::Cuda;
        let graph = |own| is_legacy(producer) && !is_legacy(own) && !waits;
        if default || graph(own.1) && self.0.capturing(own.1)? {
            return Ok(here);
        }
        // SAFETY: the caller's word; a mark of this driver.
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

fn size(nbytes: u64) -> Result<usize> {
    usize::try_from(nbytes).map_err(|_| Error::new(DLRS_NOMEM).value(nbytes as i64))
}

fn given(handle: *mut c_void) -> Result<NonNull<c_void>> {
    let nothing = Error::new(DLRS_INTERNAL).detail("the driver reports success and gives nothing");
    NonNull::new(handle).ok_or(nothing)
}

/// The answer to "is it done?".
fn done(answer: Result<()>) -> Result<bool> {
    match answer {
        Err(error) if error.driver_code() == NOT_READY => Ok(false),
        answer => answer.map(|()| true),
    }
}

impl Backend for Gpu {
    fn name(&self) -> &'static str {
        match self.0.vendor() {
            Vendor::Cuda => "cuda",
            Vendor::Rocm => "rocm",
        }
    }

    fn device_count(&self, device_type: DeviceCode) -> Result<i32> {
        let count = self.0.count()?;
        Ok(if self.memory(device_type) == Some(Memory::Device) { count } else { 1 })
    }

    fn alloc(
        &self,
        device: DLDevice,
        nbytes: u64,
        align_bytes: u64,
        stream: Stream,
    ) -> Result<NonNull<c_void>> {
        let memory = self.memory(device.device_type).unwrap_or(Memory::Device);
        let _here = self.enter(device, stream)?;
        self.0.alloc(memory, size(nbytes)?, align_bytes, stream)
    }

    unsafe fn free(
        &self,
        device: DLDevice,
        data: NonNull<c_void>,
        _: u64,
        _: u64,
        stream: Stream,
    ) -> Result<()> {
        let memory = self.memory(device.device_type).unwrap_or(Memory::Device);
        let _here = self.enter(device, stream)?;
        // SAFETY: the caller's word.
        unsafe { self.0.free(memory, data, stream) }
    }

    unsafe fn copy(&self, transfer: &Transfer, device: DLDevice, stream: Stream) -> Result<()> {
        let here = &self.enter(device, stream)?;
        // SAFETY: the caller's word.
        unsafe { self.carry_out(transfer, here, stream) }
    }

    unsafe fn copy_after(&self, transfer: &Transfer, own: Queue, order: &Order) -> Result<()> {
        // SAFETY: the caller's word.
        unsafe {
            let here = self.enter_after(own, order)?;
            self.carry_out(transfer, &here, own.1)
        }
    }

    fn explain(&self, transfer: &Transfer) -> Result<&'static str> {
        self.way(transfer)
    }

    fn memory_info(&self, device: DLDevice) -> Result<(u64, u64)> {
        if self.memory(device.device_type) != Some(Memory::Device) {
            return unsupported(Lack::QUESTIONS);
        }
        let _here = self.enter(device, null_mut())?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: places for the answers.
        unsafe { self.0.mem_info(&mut free, &mut total)? };
        Ok((free as u64, total as u64))
    }

    fn pointer(&self, data: *const c_void) -> Result<Pointer> {
        self.0.ready()?;
        let Some((memory, ordinal)) = self.0.known(data)? else {
            let device = DLDevice { device_type: kDLCPU as DeviceCode, device_id: 0 };
            return Ok(Pointer { device, base: null_mut(), nbytes: 0 });
        };
        let _here = self.0.enter(Some(ordinal), null_mut())?;
        let (base, nbytes) = self.0.allocation(data);
        Ok(Pointer { device: self.device(memory, ordinal), base, nbytes })
    }

    unsafe fn host_register(&self, data: NonNull<c_void>, nbytes: u64) -> Result<()> {
        let _here = self.0.enter(None, null_mut())?;
        // SAFETY: the caller's word.
        unsafe { self.0.register(data, size(nbytes)?) }
    }

    unsafe fn host_unregister(&self, data: NonNull<c_void>) -> Result<()> {
        let _here = self.0.enter(None, null_mut())?;
        let _relaxed = self.0.relaxed();
        // SAFETY: the caller's word.
        unsafe { self.0.host_unregister(data.as_ptr()) }
    }

    fn home(&self, device: DLDevice, data: *const c_void) -> Result<DLDevice> {
        if self.memory(device.device_type) != Some(Memory::Managed) {
            return Ok(device);
        }
        self.0.ready()?;
        let ordinal = self.0.ordinal(data)?;
        Ok(ordinal.map_or(device, |ordinal| self.device(Memory::Device, ordinal)))
    }

    fn one_stream(&self, a: Queue, b: Queue) -> bool {
        let same = a.1 == b.1 || is_legacy(a.1) && is_legacy(b.1);
        same && (a.0 == b.0 || is_handle(a.1))
    }

    unsafe fn host_access(&self, device: DLDevice, (of, stream): Queue, idle: bool) -> Result<()> {
        let managed = self.memory(device.device_type) == Some(Memory::Managed);
        if idle && !managed {
            return Ok(());
        }
        let here = self.enter(of, stream)?;
        self.0.not_capturing(stream)?;
        let _relaxed = self.0.relaxed();
        let shared = !managed || self.0.shares_managed(here.ordinal)?;
        // SAFETY: the caller's word.
        unsafe {
            match shared {
                true if idle => {}
                true => self.0.stream_sync(stream)?,
                // The CPU may not touch it while any kernel runs.
                false => self.0.synchronize()?,
            }
        }
        self.0.works();
        Ok(())
    }

    fn stream_create(&self, device: DLDevice) -> Result<NonNull<c_void>> {
        let _here = self.enter(device, null_mut())?;
        let mut stream = null_mut();
        // SAFETY: a place for the answer.
        unsafe { self.0.stream_create(&mut stream, NONBLOCKING)? };
        given(stream)
    }

    unsafe fn stream_destroy(&self, device: DLDevice, stream: Stream) -> Result<()> {
        let _here = self.enter(device, stream)?;
        self.0.not_capturing(stream)?;
        // SAFETY: the caller's word.
        unsafe { self.0.stream_destroy(stream) }
    }

    unsafe fn stream_sync(&self, device: DLDevice, stream: Stream) -> Result<()> {
        let _here = self.enter(device, stream)?;
        self.0.not_capturing(stream)?;
        let _relaxed = self.0.relaxed();
        // SAFETY: the caller's word.
        unsafe { self.0.stream_sync(stream)? };
        self.0.works();
        Ok(())
    }

    unsafe fn stream_waitable(&self, device: DLDevice, stream: Stream) -> Result<()> {
        let _here = self.enter(device, stream)?;
        self.0.not_capturing(stream)
    }

    unsafe fn stream_query(&self, device: DLDevice, stream: Stream) -> Result<bool> {
        let _here = self.enter(device, stream)?;
        self.0.not_capturing(stream)?;
        let _relaxed = self.0.relaxed();
        // SAFETY: the caller's word.
        done(unsafe { self.0.stream_query(stream) })
    }

    fn event_create(&self, device: DLDevice) -> Result<NonNull<c_void>> {
        let _here = self.enter(device, null_mut())?;
        let mut event = null_mut();
        // SAFETY: a place for the answer.
        unsafe { self.0.event_create(&mut event, DISABLE_TIMING)? };
        given(event)
    }

    unsafe fn event_destroy(&self, device: DLDevice, event: Event) -> Result<()> {
        // Drivers destroy an event whatever is current.
        self.0.ready()?;
        let _here = self.enter(device, null_mut());
        // SAFETY: the caller's word.
        unsafe { self.0.event_destroy(event) }
    }

    unsafe fn event_record(&self, device: DLDevice, event: Event, stream: Stream) -> Result<()> {
        let _here = self.enter(device, stream)?;
        // SAFETY: the caller's word.
        unsafe { self.0.event_record(event, stream) }
    }

    unsafe fn event_wait(&self, device: DLDevice, event: Event, stream: Stream) -> Result<()> {
        let _here = self.enter(device, stream)?;
        // SAFETY: the caller's word.
        unsafe { self.0.stream_wait(stream, event, 0) }
    }

    unsafe fn stream_wait(&self, consumer: Queue, producer: Queue) -> Result<()> {
        let order = Order { after: Some(producer), marks: [None; 2], waits: false };
        // SAFETY: the caller's word.
        unsafe { self.enter_after(consumer, &order).map(|_| ()) }
    }

    unsafe fn mark(&self, device: DLDevice, stream: Stream) -> Result<Event> {
        let _here = self.enter(device, stream)?;
        self.0.not_capturing(stream)?;
        // SAFETY: the caller's word; the stream's context is current.
        unsafe { self.0.event_at(stream) }.map(NonNull::as_ptr)
    }

    unsafe fn mark_again(&self, device: DLDevice, event: Event, stream: Stream) -> Result<()> {
        let _here = self.enter(device, stream)?;
        self.0.not_capturing(stream)?;
        // SAFETY: the caller's word.
        unsafe { self.0.event_record(event, stream) }
    }

    unsafe fn mark_wait(&self, device: DLDevice, event: Event, stream: Stream) -> Result<()> {
        let _here = self.enter(device, stream)?;
        let captured = self.0.capturing(stream)?;
        // SAFETY: the caller's word.
        unsafe { self.wait_for(event, stream, captured) }
    }

    fn peer_access(&self, device: DLDevice, peer: DLDevice) -> Result<i32> {
        self.0.peer_access(self.ordinal(device)?, self.ordinal(peer)?)
    }

    fn peer_access_set(&self, device: DLDevice, peer: DLDevice, enabled: bool) -> Result<()> {
        self.0.peer_access_set(self.ordinal(device)?, self.ordinal(peer)?, enabled)
    }

    unsafe fn event_sync(&self, device: DLDevice, event: Event) -> Result<()> {
        let _here = self.enter(device, null_mut())?;
        let _relaxed = self.0.relaxed();
        // SAFETY: the caller's word.
        unsafe { self.0.event_sync(event) }
    }

    unsafe fn event_query(&self, device: DLDevice, event: Event) -> Result<bool> {
        let _here = self.enter(device, null_mut())?;
        let _relaxed = self.0.relaxed();
        // SAFETY: the caller's word.
        done(unsafe { self.0.event_query(event) })
    }
}

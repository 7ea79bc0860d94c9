//! The `Backend` trait for a GPU: each function makes the device current and calls the driver.

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};

use super::context::{is_handle, is_legacy};
use super::gpu::Gpu;
use super::memory::PORTABLE;
use super::order::done;
use super::place::Place;
use super::vendor::{DISABLE_TIMING, Memory, Vendor, given};
use crate::abi::{DLDevice, DLDeviceType::kDLCPU, DeviceCode};
use crate::error::{Error, Result, Status::*};
use dlpack_device::backend::{Backend, Event, Order, Pointer, Queue, Stream, Transfer, Transfers};

const NONBLOCKING: u32 = 1; // CU_STREAM_NON_BLOCKING, hipStreamNonBlocking

fn size(nbytes: u64) -> Result<usize> {
    usize::try_from(nbytes).map_err(|_| Error::new(DLRS_NOMEM).value(nbytes as i64))
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
        // SAFETY: `data` came from `alloc` on this device, and was not freed yet.
        unsafe { self.0.free(memory, data, stream) }
    }

    unsafe fn copy(&self, transfer: &Transfer, device: DLDevice, stream: Stream) -> Result<()> {
        let place = &Place { here: &self.enter(device, stream)?, stream, host: false };
        // SAFETY: both sides stay allocated until the stream has completed the copy; they share no
        // element.
        unsafe { self.carry_out(transfer, place, None) }
    }

    unsafe fn copy_after(
        &self,
        transfers: &mut dyn Transfers,
        own: Queue,
        order: &Order,
    ) -> Result<()> {
        // SAFETY: `own` and the order's are streams of their devices, the marks events; all sides
        // stay allocated until the stream has completed the copies.
        unsafe {
            let here = &self.enter_after(own, order)?;
            self.carry_out_all(transfers, &Place { here, stream: own.1, host: false }, order.waits)
        }
    }

    fn explain(&self, transfer: &Transfer) -> Result<&'static str> {
        self.way(transfer)
    }

    fn pointer(&self, data: *const c_void) -> Result<Pointer> {
        self.0.ready()?;
        let Some((memory, ordinal)) = self.0.known(data)? else {
            let device = DLDevice { device_type: kDLCPU as DeviceCode, device_id: 0 };
            return Ok(Pointer { device, base: null_mut(), nbytes: 0 });
        };
        // Host memory of a driver's pool has no device: -1.
        let _here = self.0.enter((ordinal >= 0).then_some(ordinal), null_mut())?;
        let (mut base, mut nbytes) = (null_mut(), 0);
        // SAFETY: valid output pointers.
        let found = unsafe { self.0.address_range(&mut base, &mut nbytes, data.cast_mut()) };
        let (base, nbytes) = found.map_or((null_mut(), 0), |()| (base, nbytes as u64));
        Ok(Pointer { device: self.device(memory, ordinal), base, nbytes })
    }

    unsafe fn host_register(&self, data: NonNull<c_void>, nbytes: u64) -> Result<()> {
        let _here = self.0.enter(None, null_mut())?;
        let _relaxed = self.0.relaxed();
        // SAFETY: `nbytes` bytes at `data` stay allocated until they are unregistered.
        unsafe { self.0.host_register(data.as_ptr(), size(nbytes)?, PORTABLE) }
    }

    unsafe fn host_unregister(&self, data: NonNull<c_void>) -> Result<()> {
        let _here = self.0.enter(None, null_mut())?;
        let _relaxed = self.0.relaxed();
        // SAFETY: `data` is registered.
        unsafe { self.0.host_unregister(data.as_ptr()) }
    }

    fn home(&self, device: DLDevice, data: *const c_void) -> Result<DLDevice> {
        if self.memory(device.device_type) != Some(Memory::Managed) {
            return Ok(device);
        }
        self.0.ready()?;
        let ordinal = self.0.ordinal(data)?.filter(|&ordinal| ordinal >= 0);
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
        // SAFETY: `stream` is NULL or a stream of the current device.
        unsafe {
            match shared {
                true if idle => {}
                true => self.0.stream_sync(stream)?,
                // The CPU may not access it while any kernel runs.
                false => self.0.synchronize()?,
            }
        }
        self.0.works();
        Ok(())
    }

    fn stream_create(&self, device: DLDevice) -> Result<NonNull<c_void>> {
        let _here = self.enter(device, null_mut())?;
        let mut stream = null_mut();
        // SAFETY: a valid output pointer.
        unsafe { self.0.stream_create(&mut stream, NONBLOCKING)? };
        given(stream)
    }

    unsafe fn stream_destroy(&self, device: DLDevice, stream: Stream) -> Result<()> {
        let _here = self.enter(device, stream)?;
        self.0.not_capturing(stream)?;
        // SAFETY: `stream` was made by `stream_create` on the current device, and is not destroyed.
        unsafe { self.0.stream_destroy(stream) }
    }

    unsafe fn stream_sync(&self, device: DLDevice, stream: Stream) -> Result<()> {
        let _here = self.enter(device, stream)?;
        self.0.not_capturing(stream)?;
        let _relaxed = self.0.relaxed();
        // SAFETY: `stream` is NULL or a stream of the current device.
        unsafe { self.0.stream_sync(stream)? };
        self.0.works();
        Ok(())
    }

    unsafe fn stream_waitable(&self, device: DLDevice, stream: Stream) -> Result<()> {
        let _here = self.enter(device, stream)?;
        self.0.not_capturing(stream)
    }

    fn event_create(&self, device: DLDevice) -> Result<NonNull<c_void>> {
        let _here = self.enter(device, null_mut())?;
        let mut event = null_mut();
        // SAFETY: a valid output pointer.
        unsafe { self.0.event_create(&mut event, DISABLE_TIMING)? };
        given(event)
    }

    unsafe fn event_destroy(&self, device: DLDevice, event: Event) -> Result<()> {
        // Drivers destroy an event in any context.
        self.0.ready()?;
        let _here = self.enter(device, null_mut());
        // SAFETY: `event` is an event of the device that is not destroyed.
        unsafe { self.0.event_destroy(event) }
    }

    unsafe fn event_record(&self, device: DLDevice, event: Event, stream: Stream) -> Result<()> {
        let _here = self.enter(device, stream)?;
        // SAFETY: `event` and `stream` are of the current device, and not destroyed.
        unsafe { self.0.event_record(event, stream) }
    }

    unsafe fn event_wait(&self, device: DLDevice, event: Event, stream: Stream) -> Result<()> {
        let _here = self.enter(device, stream)?;
        // SAFETY: `stream` is of the current device; `event` is one of this driver, and not
        // destroyed.
        unsafe { self.0.stream_wait(stream, event, 0) }
    }

    unsafe fn stream_wait(&self, consumer: Queue, producer: Queue) -> Result<()> {
        let order = Order { after: Some(producer), marks: [None; 2], waits: false };
        // SAFETY: both are streams of their devices; there are no marks.
        unsafe { self.enter_after(consumer, &order).map(|_| ()) }
    }

    unsafe fn mark(&self, device: DLDevice, stream: Stream) -> Result<Event> {
        let _here = self.enter(device, stream)?;
        self.0.not_capturing(stream)?;
        // SAFETY: `stream` is of the device, whose context is current.
        unsafe { self.0.event_at(stream) }.map(NonNull::as_ptr)
    }

    unsafe fn mark_again(&self, device: DLDevice, event: Event, stream: Stream) -> Result<()> {
        let _here = self.enter(device, stream)?;
        self.0.not_capturing(stream)?;
        // SAFETY: `event` was made by `mark`; it and `stream` are of the current device.
        unsafe { self.0.event_record(event, stream) }
    }

    unsafe fn mark_wait(&self, device: DLDevice, event: Event, stream: Stream) -> Result<()> {
        let _here = self.enter(device, stream)?;
        let captured = self.0.capturing(stream)?;
        // SAFETY: `stream` is of the current device; `event` is one of this driver, and not
        // destroyed.
        unsafe { self.wait_for(event, stream, captured) }
    }

    unsafe fn event_sync(&self, device: DLDevice, event: Event) -> Result<()> {
        let _here = self.enter(device, null_mut())?;
        let _relaxed = self.0.relaxed();
        // SAFETY: `event` is an event of the device that is not destroyed.
        unsafe { self.0.event_sync(event) }
    }

    unsafe fn event_query(&self, device: DLDevice, event: Event) -> Result<bool> {
        let _here = self.enter(device, null_mut())?;
        let _relaxed = self.0.relaxed();
        // SAFETY: `event` is an event of the device that is not destroyed.
        done(unsafe { self.0.event_query(event) })
    }
}

//! A backend of the caller: a table of C functions, as a [`Backend`].

use core::ffi::{CStr, c_char, c_void};
use core::ptr::{NonNull, null, null_mut};

use super::backend::{Backend, Event, Lack, Pointer, Side, Stream, Transfer, unsupported};
use super::plan::{Item, MAX_NDIM};
use crate::abi::DLDevice;
use crate::device_type;
use crate::error::{Error, Result, Status, Status::*};

/// Details of a failure, from a function of a backend. All 0 when it is called.
#[repr(C)]
#[allow(non_camel_case_types)]
pub struct dlrs_fault {
    /// The driver's own code.
    pub driver_code: i32,
    /// Must stay 0.
    pub reserved: u32,
    /// The error, as static ASCII text; NULL for that of the status.
    pub detail: *const c_char,
}

/// A copy in bytes: `shape` items of `item_nbytes` contiguous bytes each. Normalised: no extent is
/// 1, destination strides are positive and sorted, outermost first, and bytes contiguous on both
/// sides are one item; so a contiguous copy has `ndim` 0.
#[repr(C)]
#[allow(non_camel_case_types)]
pub struct dlrs_byte_plan {
    /// `sizeof(dlrs_byte_plan)`.
    pub struct_size: u32,
    /// Number of dimensions, 0 to 64.
    pub ndim: i32,
    /// Device of the source.
    pub src_device: DLDevice,
    /// Device of the destination.
    pub dst_device: DLDevice,
    /// Address of the first item of the source, or the opaque handle.
    pub src: *const c_void,
    /// Address of the first item of the destination, or the opaque handle.
    pub dst: *mut c_void,
    /// Bytes from `src` to the first item: 0 unless it is a handle.
    pub src_offset: u64,
    /// Bytes from `dst` to the first item: 0 unless it is a handle.
    pub dst_offset: u64,
    /// Contiguous bytes of one item.
    pub item_nbytes: u64,
    /// Extents, `ndim` of them.
    pub shape: *const i64,
    /// Strides of the source in bytes: any, 0 and negative included.
    pub src_strides: *const i64,
    /// Strides of the destination in bytes.
    pub dst_strides: *const i64,
}

/// A device's driver, supplied by the caller. Members that are NULL are not supported.
///
/// Every function returns 0 or a `dlrs_status_code` and may be called on any thread.
/// `DLRS_UNSUPPORTED` means that nothing was done: the library then copies through host memory, for
/// which contiguous copies between the device and
/// `kDLCPU` (plans with `ndim` 0) are enough. `fault` is never NULL. `device` is always one of a
/// type that the table was registered for.
#[repr(C)]
#[derive(Clone, Copy, PartialEq)]
#[allow(unpredictable_function_pointer_comparisons)] // another address: another table
#[allow(non_camel_case_types)]
pub struct dlrs_backend {
    /// `sizeof(dlrs_backend)`.
    pub struct_size: u32,
    /// Must be 0.
    pub reserved: u32,
    /// Name of the backend, static ASCII text; NULL for none.
    pub name: *const c_char,
    /// Passed to every function.
    pub context: *mut c_void,
    /// Number of devices.
    pub device_count: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device_type: i32,
            out_count: *mut i32,
            fault: *mut dlrs_fault,
        ) -> i32,
    >,
    /// Allocates `nbytes` (above 0) bytes, aligned to `align_bytes`. `stream` uses them first;
    /// NULL: any stream.
    pub alloc: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: DLDevice,
            nbytes: u64,
            align_bytes: u64,
            stream: *mut c_void,
            out_data: *mut *mut c_void,
            fault: *mut dlrs_fault,
        ) -> i32,
    >,
    /// Frees memory after the work on `stream`; NULL: after all work of the device.
    pub free: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: DLDevice,
            data: *mut c_void,
            nbytes: u64,
            align_bytes: u64,
            stream: *mut c_void,
            fault: *mut dlrs_fault,
        ) -> i32,
    >,
    /// Enqueues a copy on a stream of `device`, or copies before it returns. Both sides stay
    /// allocated until `stream_sync`.
    pub copy: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: DLDevice,
            plan: *const dlrs_byte_plan,
            stream: *mut c_void,
            fault: *mut dlrs_fault,
        ) -> i32,
    >,
    /// Waits for all work of a stream; NULL when `copy` is synchronous.
    pub stream_sync: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: DLDevice,
            stream: *mut c_void,
            fault: *mut dlrs_fault,
        ) -> i32,
    >,
    /// Creates a stream that does not synchronize with the default stream.
    pub stream_create: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: DLDevice,
            out_stream: *mut *mut c_void,
            fault: *mut dlrs_fault,
        ) -> i32,
    >,
    /// Destroys a stream; work on it still completes.
    pub stream_destroy: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: DLDevice,
            stream: *mut c_void,
            fault: *mut dlrs_fault,
        ) -> i32,
    >,
    /// Creates an event.
    pub event_create: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: DLDevice,
            out_event: *mut *mut c_void,
            fault: *mut dlrs_fault,
        ) -> i32,
    >,
    /// Destroys an event.
    pub event_destroy: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: DLDevice,
            event: *mut c_void,
            fault: *mut dlrs_fault,
        ) -> i32,
    >,
    /// Records an event: it completes after the work enqueued on the stream so far.
    pub event_record: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: DLDevice,
            event: *mut c_void,
            stream: *mut c_void,
            fault: *mut dlrs_fault,
        ) -> i32,
    >,
    /// Makes later work of the stream wait for the event.
    pub event_wait: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: DLDevice,
            event: *mut c_void,
            stream: *mut c_void,
            fault: *mut dlrs_fault,
        ) -> i32,
    >,
    /// Waits for an event.
    pub event_sync: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: DLDevice,
            event: *mut c_void,
            fault: *mut dlrs_fault,
        ) -> i32,
    >,
    /// Whether an event has completed: 0 or 1.
    pub event_query: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: DLDevice,
            event: *mut c_void,
            out_done: *mut i32,
            fault: *mut dlrs_fault,
        ) -> i32,
    >,
    /// The kind of memory of an address, and its allocation (NULL and 0 when not known).
    pub pointer: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            data: *const c_void,
            out_device: *mut DLDevice,
            out_base: *mut *mut c_void,
            out_nbytes: *mut u64,
            fault: *mut dlrs_fault,
        ) -> i32,
    >,
}

/// A registered table.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq)]
pub struct Plugged(pub dlrs_backend);

// SAFETY: a registered table says that its functions may be called on any thread.
unsafe impl Sync for Plugged {}

/// Calls a function of the table with the context first and the fault last, and reads the result.
macro_rules! ask {
    ($table:expr, $slot:ident, $lack:ident $(, $argument:expr)*) => {{
        let Some(slot) = $table.$slot else { return unsupported(Lack::$lack) };
        let mut fault = dlrs_fault { driver_code: 0, reserved: 0, detail: null() };
        // SAFETY: the table's function for this slot gets its own context; every place is live
        // during the call.
        let status = unsafe { slot($table.context $(, $argument)*, &mut fault) };
        answer(status, &fault)
    }};
}

/// The error of a status and a fault.
fn answer(status: i32, fault: &dlrs_fault) -> Result<()> {
    if status == DLRS_OK as i32 {
        return Ok(());
    }
    Err(match Status::ALL.iter().find(|&&known| known as i32 == status) {
        Some(&known) => {
            let error = Error::new(known).driver(fault.driver_code);
            match fault.detail.is_null() {
                true => error,
                // SAFETY: `dlrs_fault` holds NULL or static text that ends with NUL; it is not
                // NULL.
                false => error.detail_of_backend(unsafe { CStr::from_ptr(fault.detail) }),
            }
        }
        None => Error::new(DLRS_CALLBACK)
            .value(status.into())
            .driver(fault.driver_code)
            .detail("the backend returned a number that is no status"),
    })
}

/// A handle that must not be NULL.
fn handle(handle: *mut c_void) -> Result<NonNull<c_void>> {
    let nothing =
        Error::new(DLRS_INTERNAL).detail("the backend reported success and returned nothing");
    NonNull::new(handle).ok_or(nothing)
}

/// Address or handle and offset of one side.
fn place(side: &Side, first: *const u8) -> (*mut c_void, u64) {
    match side.handle.is_null() {
        true => (first.cast_mut().cast(), 0),
        false => (side.handle, first.addr() as u64),
    }
}

impl Backend for Plugged {
    fn name(&self) -> &'static str {
        if self.0.name.is_null() {
            return "registered";
        }
        // SAFETY: a name in a `dlrs_backend` that is not NULL is static text that ends with NUL.
        let name = unsafe { CStr::from_ptr(self.0.name) }.to_str().unwrap_or("");
        if name.is_empty() { "registered" } else { name }
    }

    fn device_count(&self, device_type: i32) -> Result<i32> {
        let mut count = 0;
        ask!(self.0, device_count, QUESTIONS, device_type, &mut count)?;
        if count < 0 {
            let error = Error::new(DLRS_CALLBACK).value(count.into());
            return Err(error.detail("the backend reports a negative number of devices"));
        }
        Ok(count)
    }

    fn alloc(
        &self,
        device: DLDevice,
        nbytes: u64,
        align_bytes: u64,
        stream: Stream,
    ) -> Result<NonNull<c_void>> {
        let mut data = null_mut();
        if self.0.free.is_none() {
            return unsupported(Lack::MEMORY);
        }
        ask!(self.0, alloc, MEMORY, device, nbytes, align_bytes, stream, &mut data)?;
        let data = handle(data)?;
        let off = data.addr().get() as u64 & align_bytes.wrapping_sub(1);
        if off != 0 && !device_type::opaque_handle(device.device_type) {
            // SAFETY: what was just allocated, for the same values.
            let _ = unsafe { self.free(device, data, nbytes, align_bytes, stream) };
            let off = off & off.wrapping_neg();
            let error = Error::new(DLRS_MISALIGNED).value(off as i64).limit(align_bytes as i64);
            return Err(
                error.detail("the backend returned memory that is not aligned as requested")
            );
        }
        Ok(data)
    }

    unsafe fn free(
        &self,
        device: DLDevice,
        data: NonNull<c_void>,
        nbytes: u64,
        align_bytes: u64,
        stream: Stream,
    ) -> Result<()> {
        let data = data.as_ptr();
        ask!(self.0, free, MEMORY, device, data, nbytes, align_bytes, stream)
    }

    unsafe fn copy(&self, transfer: &Transfer, device: DLDevice, stream: Stream) -> Result<()> {
        let Item::Bytes(item_nbytes) = transfer.plan.item else {
            return unsupported(Lack::COPIES);
        };
        let (src, src_offset) = place(&transfer.src, transfer.plan.src);
        let (dst, dst_offset) = place(&transfer.dst, transfer.plan.dst);
        let [mut shape, mut src_strides, mut dst_strides] = [[0; MAX_NDIM]; 3];
        let arrays = shape.iter_mut().zip(src_strides.iter_mut().zip(&mut dst_strides));
        for (dim, (n, (src, dst))) in transfer.plan.dims.iter().zip(arrays) {
            (*n, *src, *dst) = (dim.n, dim.src, dim.dst);
        }
        let plan = dlrs_byte_plan {
            struct_size: size_of::<dlrs_byte_plan>() as u32,
            ndim: transfer.plan.ndim() as i32,
            src_device: transfer.src.device,
            dst_device: transfer.dst.device,
            src,
            dst,
            src_offset,
            dst_offset,
            item_nbytes: item_nbytes as u64,
            shape: shape.as_ptr(),
            src_strides: src_strides.as_ptr(),
            dst_strides: dst_strides.as_ptr(),
        };
        ask!(self.0, copy, COPIES, device, &plan, stream)
    }

    fn pointer(&self, data: *const c_void) -> Result<Pointer> {
        let mut device = DLDevice { device_type: 0, device_id: 0 };
        let (mut base, mut nbytes) = (null_mut(), 0);
        ask!(self.0, pointer, QUESTIONS, data, &mut device, &mut base, &mut nbytes)?;
        Ok(Pointer { device, base, nbytes })
    }

    fn stream_create(&self, device: DLDevice) -> Result<NonNull<c_void>> {
        let mut stream = null_mut();
        ask!(self.0, stream_create, STREAMS, device, &mut stream)?;
        handle(stream)
    }

    unsafe fn stream_destroy(&self, device: DLDevice, stream: Stream) -> Result<()> {
        ask!(self.0, stream_destroy, STREAMS, device, stream)
    }

    unsafe fn stream_sync(&self, device: DLDevice, stream: Stream) -> Result<()> {
        if self.0.stream_sync.is_none() && stream.is_null() {
            return Ok(()); // copies are carried out at once
        }
        ask!(self.0, stream_sync, STREAMS, device, stream)
    }

    fn event_create(&self, device: DLDevice) -> Result<NonNull<c_void>> {
        let mut event = null_mut();
        ask!(self.0, event_create, EVENTS, device, &mut event)?;
        handle(event)
    }

    unsafe fn event_destroy(&self, device: DLDevice, event: Event) -> Result<()> {
        ask!(self.0, event_destroy, EVENTS, device, event)
    }

    unsafe fn event_record(&self, device: DLDevice, event: Event, stream: Stream) -> Result<()> {
        ask!(self.0, event_record, EVENTS, device, event, stream)
    }

    unsafe fn event_wait(&self, device: DLDevice, event: Event, stream: Stream) -> Result<()> {
        ask!(self.0, event_wait, EVENTS, device, event, stream)
    }

    unsafe fn mark(&self, device: DLDevice, stream: Stream) -> Result<Event> {
        // One that cannot be waited for or destroyed is an error.
        let waits = self.0.event_wait.is_some() || self.0.event_sync.is_some();
        if self.0.event_record.is_none() || self.0.event_destroy.is_none() || !waits {
            return unsupported(Lack::EVENTS);
        }
        let event = self.event_create(device)?.as_ptr();
        // SAFETY: a fresh event of the device, and a stream of it.
        unsafe {
            self.event_record(device, event, stream).inspect_err(|_| {
                let _ = self.event_destroy(device, event);
            })?;
        }
        Ok(event)
    }

    unsafe fn event_sync(&self, device: DLDevice, event: Event) -> Result<()> {
        ask!(self.0, event_sync, EVENTS, device, event)
    }

    unsafe fn event_query(&self, device: DLDevice, event: Event) -> Result<bool> {
        let mut done = 0;
        ask!(self.0, event_query, EVENTS, device, event, &mut done)?;
        Ok(done != 0)
    }
}

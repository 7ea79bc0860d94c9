//! Devices and their memory.

use core::ffi::{c_char, c_void};
use core::ptr::NonNull;

use super::arg::{self, live, result, variable};
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::backend::{Backend, Pointer};
use crate::device_type;
use crate::error::{Arg, Error, Field::*, Of, Result, Status::*};
use crate::registry;
use crate::tensor::alloc;

/// What a driver reports about an address.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct dlrs_pointer_info {
    /// `sizeof(dlrs_pointer_info)`.
    pub struct_size: u32,
    /// Must be 0.
    pub reserved: u32,
    /// The kind of memory and its device, as in a DLTensor.
    pub device: DLDevice,
    /// Start of its allocation; NULL when the driver does not report it.
    pub base: *mut c_void,
    /// Size of that allocation in bytes; 0 when the driver does not report it.
    pub nbytes: u64,
}

// SAFETY: plain data, u32 first.
unsafe impl arg::Sized32 for dlrs_pointer_info {}

/// The backend of a known device.
pub(super) fn backend(device: DLDevice, argument: Arg) -> Result<&'static dyn Backend> {
    device_type::check(device).of(argument)?;
    registry::required(device.device_type).of(argument)
}

/// Count the devices of a type; this loads the driver, if it was not loaded yet.
///
/// Device:    any type that has a backend; 1 for the CPU and host memory.
/// Ownership: *out is the caller's; it is 0 on error.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out. DLRS_DEVICE_TYPE: unknown, or without a
///            backend. Classes 5 and 6: why the driver cannot be used, with the names tried:
///            DLRS_DRV_MISSING, DLRS_DRV_STUB, DLRS_DRV_OLD, DLRS_DRV_SYMBOL, DLRS_DRV_INIT,
///            DLRS_NO_DEVICE, DLRS_FORKED.
/// Threads:   any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_device_count(
    device_type: i32,
    out: *mut i32,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: out is NULL or a writable variable, error NULL or live, by the preface.
    unsafe {
        run("dlrs_device_count", error, (variable(out, Arg::out),), |(out,)| {
            out.set(0);
            let backend = backend(DLDevice { device_type, device_id: 0 }, Arg::device_type)?;
            out.set(backend.device_count(device_type).of(Arg::device_type)?);
            Ok(())
        })
    }
}

/// Set the file to load as the driver of a device type, in place of the usual names (libcuda.so.1,
/// libamdhip64.so.7, ...), for the whole process.
///
/// Device:    kDLCUDA and its kinds, or kDLROCM and its kinds.
/// Ownership: path is not copied and must stay valid until the process ends or another one is set;
///            NULL restores the usual names. On Windows path is in the ANSI code page, which is
///            UTF-8 only if the program's manifest or the system sets it.
/// Errors:    DLRS_DEVICE_TYPE: no driver is loaded for it. DLRS_BAD_ARG: it is loaded already. A
///            missing file is reported when the driver is loaded.
/// Threads:   any; call it before the first use of a device.
///
/// # Safety
/// path ends with NUL, and names a driver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_driver_path_set(
    device_type: i32,
    path: *const c_char,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: path is NULL or a text that ends with NUL and is never freed, error NULL or live.
    unsafe {
        run("dlrs_driver_path_set", error, (), |()| {
            registry::set_driver_path(device_type, path)
                .map_err(|e| e.field(DLRS_FIELD_NONE).of(Arg::device_type))
        })
    }
}

/// Allocate memory on a device.
///
/// Bytes:     nbytes, aligned to align_bytes (a power of two, 0 for 256); none for 0 bytes, and
///            then *out is NULL.
/// Device:    any that has a backend. stream uses the memory first, for drivers with stream-ordered
///            allocation; other devices' kernels and other processes (IPC) cannot access such
///            memory. NULL: any stream.
/// Ownership: the caller owns *out and frees it by dlrs_mem_free.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out. DLRS_DEVICE_TYPE, DLRS_DEVICE_ID: the
///            device. DLRS_BAD_ARG: align_bytes. DLRS_NOMEM, DLRS_DEV_OOM: no memory;
///            DLRS_MISALIGNED with argument 0: the backend's was less aligned than requested.
///            DLRS_UNSUPPORTED: the backend does not allocate. Classes 5 and 6: its driver.
/// Threads:   any.
/// Source:    this library; stream order as cuMemAllocAsync has it.
///
/// # Safety
/// stream is NULL or a live stream of the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_mem_alloc(
    device: DLDevice,
    nbytes: u64,
    align_bytes: u64,
    stream: *mut c_void,
    out: *mut *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: out is NULL or a writable variable, error NULL or live, by the preface.
    unsafe {
        run("dlrs_mem_alloc", error, (result(out, Arg::out),), |(out,)| {
            let backend = backend(device, Arg::device)?;
            let align_bytes = alloc::check_align(align_bytes).of(Arg::align_bytes)?;
            if nbytes > 0 {
                out.give(backend.alloc(device, nbytes, align_bytes as u64, stream)?);
            }
            Ok(())
        })
    }
}

/// Free memory of a device.
///
/// Bytes:     nbytes and align_bytes as they were allocated.
/// Device:    as it was allocated. The memory is freed after the work on stream; with NULL after
///            all work of the device.
/// Ownership: data is invalid afterwards; NULL does nothing.
/// Errors:    as dlrs_mem_alloc; then data is still allocated.
/// Threads:   any.
/// Source:    this library; stream order as cuMemFreeAsync has it.
///
/// # Safety
/// data came from dlrs_mem_alloc for the same values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_mem_free(
    device: DLDevice,
    data: *mut c_void,
    nbytes: u64,
    align_bytes: u64,
    stream: *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: data is NULL or came from dlrs_mem_alloc for the same device, nbytes and alignment,
    // and is not used again; stream is NULL or a live one of the device, error NULL or live.
    unsafe {
        run("dlrs_mem_free", error, (), |()| {
            let backend = backend(device, Arg::device)?;
            let align_bytes = alloc::check_align(align_bytes).of(Arg::align_bytes)?;
            let Some(data) = NonNull::new(data) else { return Ok(()) };
            backend.free(device, data, nbytes, align_bytes as u64, stream)
        })
    }
}

/// Return the kind of memory of an address, as a driver reports it.
///
/// Device:    device_type selects the backend; the result may be another type, such as
///            kDLCUDAManaged, or kDLCPU for memory unknown to the driver.
/// Ownership: unchanged. out->struct_size is set by the caller; members of *out that only a newer
///            version has are set to 0.
/// Errors:    DLRS_NULL_ARG: data or out. DLRS_MISALIGNED_STRUCT, DLRS_STRUCT_SIZE: out.
///            DLRS_BAD_ARG: its reserved is not 0. DLRS_DEVICE_TYPE: it has no backend.
///            DLRS_UNSUPPORTED: its backend does not report it. Classes 5 and 6: its driver.
/// Threads:   any.
/// Source:    cuPointerGetAttribute, hipPointerGetAttributes.
///
/// # Safety
/// data is not dereferenced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_pointer_device(
    device_type: i32,
    data: *const c_void,
    out: *mut dlrs_pointer_info,
    error: *mut dlrs_error,
) -> dlrs_status {
    let pointers = (live(data.cast::<u8>(), Arg::data), variable(out, Arg::out));
    // SAFETY: out is NULL or a writable struct of the size that it says, error NULL or live.
    unsafe {
        run("dlrs_pointer_device", error, pointers, |(_, out)| {
            let dlrs_pointer_info { struct_size, reserved, .. } = out.given(Arg::out)?;
            if reserved != 0 {
                let error = Error::new(DLRS_BAD_ARG).option(arg::RESERVED).of(Arg::out);
                return Err(error.value(reserved.into()));
            }
            let backend = backend(DLDevice { device_type, device_id: 0 }, Arg::device_type)?;
            let Pointer { device, base, nbytes } = backend.pointer(data.cast_mut())?;
            let info = dlrs_pointer_info { struct_size, reserved, device, base, nbytes };
            out.fill(info, struct_size);
            Ok(())
        })
    }
}

/// Register (pin) host memory with a driver, for faster and asynchronous copies.
///
/// Bytes:     nbytes (above 0) from data on.
/// Device:    device_type selects the backend.
/// Ownership: unchanged; call dlrs_mem_unregister_host before freeing the memory.
/// Errors:    DLRS_NULL_ARG: data. DLRS_DEVICE_TYPE: it has no backend. DLRS_UNSUPPORTED: its
///            backend cannot register. Classes 5 and 6: its driver.
/// Threads:   any.
/// Source:    cuMemHostRegister, hipHostRegister.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_mem_register_host(
    device_type: i32,
    data: *mut c_void,
    nbytes: u64,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: nbytes bytes from data on stay allocated until they are unregistered, and error is
    // NULL or live, by the preface.
    unsafe {
        run("dlrs_mem_register_host", error, (live(data.cast::<u8>(), Arg::data),), |(data,)| {
            let device = DLDevice { device_type, device_id: 0 };
            backend(device, Arg::device_type)?.host_register(data.get().cast(), nbytes)
        })
    }
}

/// Undo dlrs_mem_register_host.
///
/// Device:    as it was registered.
/// Ownership: unchanged.
/// Errors:    as dlrs_mem_register_host.
/// Threads:   any.
/// Source:    cuMemHostUnregister, hipHostUnregister.
///
/// # Safety
/// No device uses the memory any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_mem_unregister_host(
    device_type: i32,
    data: *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: data is registered, no device uses the memory any more, and error is NULL or live.
    unsafe {
        run("dlrs_mem_unregister_host", error, (live(data.cast::<u8>(), Arg::data),), |(data,)| {
            let device = DLDevice { device_type, device_id: 0 };
            backend(device, Arg::device_type)?.host_unregister(data.get().cast())
        })
    }
}

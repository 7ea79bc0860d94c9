//! Readiness of tensors, and access between devices.

use core::ffi::c_void;

use super::arg::live;
use super::device::backend;
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::copy;
use crate::error::{Arg, Of};
use crate::tensor::ready;
use crate::validate::{Level, Rules, Snapshot};

/// Record that the data of a tensor, and of all tensors that share its memory, is ready after the
/// work enqueued on a stream so far. A later call replaces it.
///
/// DLPack's structs have no stream: a consumer can wait for a tensor that is still being computed
/// only if its producer records this. These wait for the record: dlrs_ready_wait and
/// dlrs_ready_sync; every function that takes copy options or compares, when it reads or writes the
/// tensor (as a managed struct: a bare DLTensor does not identify its memory); dlrs_py_export,
/// whose consumer's stream waits for it instead of for work_stream; dlrs_release_drain, which keeps
/// a tensor until it is ready. For a copy it replaces the source's stream where none is given, and
/// is waited for before the destination's. A copy with DLRS_COPY_ASYNC records again for its
/// destination, if that had a record. Without a record nothing changes.
///
/// Device:    of the tensor; NULL is its default stream. Pinned memory: a stream of the driver, and
///            later ones of the same device and context. On the CPU only NULL, and nothing is
///            recorded.
/// Ownership: one event of the driver, created at the first call, destroyed with the memory.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor. DLRS_FOREIGN: tensor is not this
///            library's. DLRS_REFCOUNT: a callback of the tensor that is being freed.
///            DLRS_DEVICE_TYPE: its device has no backend. DLRS_UNSUPPORTED: the backend has no
///            events. DLRS_STREAM: not a stream of the device. DLRS_CAPTURING: the stream is being
///            captured, and its graph has not begun. DLRS_NOMEM: no memory. Classes 5 and 6: its
///            driver. On any error the previous record stays.
/// Threads:   any, also on the same tensor; one of two concurrent calls is the later.
/// Source:    sync_event of Arrow's C device data interface; dmlc/dlpack#175.
///
/// # Safety
/// stream is NULL or a live stream of the tensor's device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_ready_record(
    tensor: *mut DLManagedTensorVersioned,
    stream: *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: tensor and error are NULL or live and stream is NULL or one of its device: the
    // preface.
    unsafe {
        run("dlrs_ready_record", error, (live(tensor, Arg::tensor),), |(tensor,)| {
            ready::record(tensor.get(), stream).of(Arg::tensor)
        })
    }
}

/// Make later work of a stream wait until a tensor is ready, as its producer recorded; without a
/// record nothing happens.
///
/// Device:    of the stream; NULL is its default stream. On the CPU, and where another backend has
///            recorded, the call waits. A stream that is being captured cannot wait for work
///            outside the capture: the tensor must be ready.
/// Ownership: unchanged.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor. DLRS_DEVICE_TYPE, DLRS_DEVICE_ID: the
///            device. DLRS_FOREIGN: tensor is not this library's, so has no record. DLRS_STREAM:
///            not a stream of the device. DLRS_CAPTURING: the stream is being captured, and the
///            tensor not ready. DLRS_UNSUPPORTED: the backend cannot wait. Classes 5 and 6: its
///            driver.
/// Threads:   any, also on the same tensor.
/// Source:    as dlrs_ready_record.
///
/// # Safety
/// stream is NULL or a live stream of the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_ready_wait(
    tensor: *const DLManagedTensorVersioned,
    device: DLDevice,
    stream: *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: tensor and error are NULL or live and stream is NULL or one of the device: the
    // preface.
    unsafe {
        run("dlrs_ready_wait", error, (live(tensor, Arg::tensor),), |(tensor,)| {
            backend(device, Arg::device)?;
            ready::wait(tensor.get(), device, stream)
        })
    }
}

/// Wait until a tensor is ready, as its producer recorded; return at once without a record.
/// When the call returns, the CPU may access managed memory: without a record, it waits for the
/// default stream of its device.
///
/// Device:    any.
/// Ownership: unchanged.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor. DLRS_FOREIGN: tensor is not this
///            library's, and not in managed memory: it has no record. DLRS_UNSUPPORTED: the
///            backend cannot wait. Classes 5 and 6: its driver.
/// Threads:   any, also on the same tensor.
/// Source:    as dlrs_ready_record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_ready_sync(
    tensor: *const DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: tensor and error are NULL or live, by the preface.
    unsafe {
        run("dlrs_ready_sync", error, (live(tensor, Arg::tensor),), |(tensor,)| {
            let mut memory = Snapshot::new();
            let read = tensor.read(Rules::of(Level::DLRS_LEVEL_STRUCT), &mut memory);
            let managed = memory.device.device_type == DLDeviceType::kDLCUDAManaged as DeviceCode;
            match read.is_ok() && managed {
                true => copy::host_read(&memory, &copy::Streams::NONE),
                false => ready::sync(tensor.get()),
            }
            .of(Arg::tensor)
        })
    }
}

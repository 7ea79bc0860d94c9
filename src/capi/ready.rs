//! When tensors are ready, and access from device to device.

use core::ffi::c_void;

use super::arg;
use super::device::backend;
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::copy;
use crate::device::backend::Backend;
use crate::error::{Arg, Error, Field::*, Of, Result, Status::*};
use crate::tensor::ready;
use crate::validate::{Level, Rules, Snapshot};

const TENSOR: Arg = Arg::tensor;

/// Say that the data of a tensor, and of all tensors that share its memory, is ready when a stream
/// has got here. A later call replaces it.
///
/// DLPack's structs have no stream: who takes a tensor that is still being made can wait for it
/// only if its producer records this. What then orders itself by it: dlrs_ready_wait and
/// dlrs_ready_sync; every function that takes copy options or compares, when it reads or writes the
/// tensor (by a managed struct, a bare DLTensor tells nobody's memory); dlrs_py_export, which has
/// the consumer's stream wait for it instead of for work_stream; dlrs_release_drain, which keeps a
/// tensor until it is ready. For a copy it stands for the source's stream where none is named, and
/// comes before the destination's. A copy with DLRS_COPY_ASYNC records again for its destination,
/// where something was recorded. Without it nothing changes.
///
/// Device:    of the tensor; NULL is its default stream. Pinned memory: a stream of the driver; all
///            later ones of the same device and context. On the CPU only NULL, and nothing is
///            recorded.
/// Ownership: one event of the driver, made at the first call, destroyed with the memory.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor. DLRS_FOREIGN: tensor is not this
///            library's. DLRS_REFCOUNT: a callback of the tensor that is being freed.
///            DLRS_DEVICE_TYPE: no backend serves its device. DLRS_UNSUPPORTED: the backend has no
///            events. DLRS_STREAM: not a stream of the device. DLRS_CAPTURING: the stream is being
///            captured, and its graph has not begun. DLRS_NOMEM: no memory. Classes 5 and 6: its
///            driver. On any error what was recorded before stays.
/// Threads:   any, also on the same tensor; of two calls at a time one is the later.
/// Source:    sync_event of Arrow's C device data interface; dmlc/dlpack#175.
///
/// # Safety
/// See the preface; stream is NULL or a live stream of the tensor's device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_ready_record(
    tensor: *mut DLManagedTensorVersioned,
    stream: *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_ready_record", error, || {
        let tensor = arg::required(tensor, TENSOR)?;
        // SAFETY: a live tensor and a stream of its device, by the preface.
        unsafe { ready::record(tensor, stream) }.of(TENSOR)
    })
}

/// Make later work of a stream wait until a tensor is ready, as its producer recorded; nothing is
/// done where nothing was recorded.
///
/// Device:    of the stream; NULL is its default stream. On the CPU, and where another backend has
///            recorded, the call waits. A stream that is being captured cannot wait for what nobody
///            captures: the tensor must be ready.
/// Ownership: unchanged.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor. DLRS_DEVICE_TYPE, DLRS_DEVICE_ID: the
///            device. DLRS_FOREIGN: tensor is not this library's, and nothing is known of it.
///            DLRS_STREAM: not a stream of the device. DLRS_CAPTURING: the stream is being
///            captured, and the tensor not ready. DLRS_UNSUPPORTED: the backend cannot wait.
///            Classes 5 and 6: its driver.
/// Threads:   any, also on the same tensor.
/// Source:    as dlrs_ready_record.
///
/// # Safety
/// See the preface; stream is NULL or a live stream of the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_ready_wait(
    tensor: *const DLManagedTensorVersioned,
    device: DLDevice,
    stream: *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_ready_wait", error, || {
        let tensor = arg::required(tensor, TENSOR)?;
        backend(device, Arg::device)?;
        // SAFETY: a live tensor and a stream of the device, by the preface.
        unsafe { ready::wait(tensor, device, stream) }
    })
}

/// Wait until a tensor is ready, as its producer recorded; at once where nothing was recorded.
/// When the call returns, the CPU may touch managed memory: where nothing was recorded, it waits
/// for what the default stream of its device was given.
///
/// Device:    any.
/// Ownership: unchanged.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor. DLRS_FOREIGN: tensor is not this
///            library's, and not in managed memory: nothing is known of it. DLRS_UNSUPPORTED: the
///            backend cannot wait. Classes 5 and 6: its driver.
/// Threads:   any, also on the same tensor.
/// Source:    as dlrs_ready_record.
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_ready_sync(
    tensor: *const DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_ready_sync", error, || {
        let tensor = arg::required(tensor, TENSOR)?;
        let mut memory = Snapshot::new();
        // SAFETY: a live tensor, by the preface.
        unsafe {
            let read = memory.read_managed(tensor.as_ptr(), Rules::of(Level::DLRS_LEVEL_STRUCT));
            let managed = memory.device.device_type == DLDeviceType::kDLCUDAManaged as DeviceCode;
            match read.is_ok() && managed {
                true => copy::host_read(&memory, &copy::Streams::NONE),
                false => ready::sync(tensor),
            }
        }
        .of(TENSOR)
    })
}

const DEVICE: Arg = Arg::device;
const PEER: Arg = Arg::peer;

/// The backend of two devices, if it is one.
fn common(device: DLDevice, peer: DLDevice) -> Result<Option<&'static dyn Backend>> {
    let (own, other) = (backend(device, DEVICE)?, backend(peer, PEER)?);
    Ok(core::ptr::addr_eq(own, other).then_some(own))
}

/// Tell whether a device may read and write the memory of another one directly.
///
/// Device:    both of one backend; devices of two backends reach nothing of each other.
/// Ownership: *out is 0: it cannot; 1: it could; 2: it does, as far as it was allowed by
///            dlrs_peer_access_set of this process, or found to be. Drivers do not tell what other
///            libraries allowed. A device reaches its own memory. On error *out is 0.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out. DLRS_DEVICE_TYPE, DLRS_DEVICE_ID: device
///            or peer. DLRS_UNSUPPORTED: the backend does not tell, as of memory of the host.
///            Classes 5 and 6: its driver.
/// Threads:   any.
/// Source:    cuDeviceCanAccessPeer, hipDeviceCanAccessPeer.
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_peer_access_query(
    device: DLDevice,
    peer: DLDevice,
    out: *mut i32,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_peer_access_query", error, || {
        let out = arg::required(out, Arg::out)?;
        // SAFETY: a variable of the caller's.
        unsafe { out.write(0) };
        let reach = match common(device, peer)? {
            Some(backend) => backend.peer_access(device, peer)?,
            None => 0,
        };
        // SAFETY: as above.
        unsafe { out.write(reach) };
        Ok(())
    })
}

/// Let a device read and write the memory of another one directly, or end that, for the process.
///
/// Copies between the two then need no way around, and the caller's kernels on the one may use
/// addresses of the other. The library never does this by itself: every later allocation of the
/// peer is mapped for the device too, and takes longer.
///
/// Device:    both of one backend; CUDA's primary contexts. One direction: the other is a call of
///            its own. Memory of pools and what was mapped by hand needs the driver's own calls.
/// Ownership: enabled is 1, or 0 to end it; what is so already is no failure.
/// Errors:    DLRS_BAD_ARG: enabled. DLRS_DEVICE_TYPE, DLRS_DEVICE_ID: device or peer. DLRS_PEER:
///            there is no way between the two, or they have different backends, or a device is to
///            lose its own memory. DLRS_UNSUPPORTED: the backend has no such thing, as for memory
///            of the host. Classes 5 and 6: its driver.
/// Threads:   any; not beside work that needs the access which is ended.
/// Source:    cuCtxEnablePeerAccess, hipDeviceEnablePeerAccess.
///
/// # Safety
/// See the preface; ending it: no work that needs it is pending.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_peer_access_set(
    device: DLDevice,
    peer: DLDevice,
    enabled: i32,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_peer_access_set", error, || {
        if !matches!(enabled, 0 | 1) {
            let error = Error::new(DLRS_BAD_ARG).of(Arg::enabled);
            return Err(error.value(enabled.into()).limit(1));
        }
        match common(device, peer)? {
            Some(backend) => backend.peer_access_set(device, peer, enabled == 1),
            None => {
                let error = Error::new(DLRS_PEER).field(DLRS_FIELD_DEVICE_TYPE).of(PEER);
                let error = error.value(peer.device_type.into());
                Err(error.detail("the two devices have different backends"))
            }
        }
    })
}

//! Stream numbers, as the array API standard defines them for `__dlpack__(stream=...)`.
//!
//! | device | `None` | -1 | 0 | 1 | 2 | above 2 |
//! |---|---|---|---|---|---|---|
//! | CUDA, pinned | legacy default | no wait | refused | legacy | per thread | handle |
//! | ROCm, pinned | default | no wait | default | refused | refused | handle |
//! | other devices | default | no wait | refused | handle | handle | handle |
//! | other host memory | nothing to wait for | no wait | refused | refused | refused | refused |

use core::ffi::c_void;
use core::ptr::{null_mut, with_exposed_provenance_mut};

use crate::abi::{DLDevice, DLDeviceType::*, DeviceCode};
use crate::device_type::host_reachable;
use crate::error::{Error, Result, Status::*};
use crate::ready::Ready;
use crate::{Python, detached, registry};

/// The number that stands for Python's `None`.
pub const NONE: i64 = i64::MIN;
/// The number that requests no synchronization.
const NO_SYNC: i64 = -1;
/// CUDA's handles of its two default streams; the numbers are the same.
const CUDA_LEGACY: usize = 1;
const CUDA_PER_THREAD: usize = 2;

/// The stream argument of a consumer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Nothing shall wait.
    NoSync,
    /// The data shall be ready for work on this stream; 0 is the device's default stream.
    Handle(usize),
}

#[derive(PartialEq, Eq)]
enum Rules {
    Host,
    Cuda,
    Rocm,
    Other,
}

fn rules(device: DeviceCode) -> Rules {
    match device {
        code if [kDLCUDA, kDLCUDAManaged, kDLCUDAHost].map(|kind| kind as i32).contains(&code) => {
            Rules::Cuda
        }
        code if code == kDLROCM as i32 || code == kDLROCMHost as i32 => Rules::Rocm,
        code if host_reachable(code) => Rules::Host,
        _ => Rules::Other,
    }
}

/// Whether streams order the use of a device's memory, so that one can be named to whoever exports
/// it: all but memory of the CPU and pinned memory.
pub fn has_streams(device: DeviceCode) -> bool {
    // Managed memory is written by kernels on streams, although the host can access it.
    device == kDLCUDAManaged as i32 || !host_reachable(device)
}

/// Makes the consumer's stream wait for the work on the producer's: the one place where an exchange
/// orders work. `data` is the memory that is exchanged.
///
/// # Safety
/// Both are streams of the device.
pub unsafe fn order(
    device: DLDevice,
    data: *const c_void,
    consumer: Stream,
    producer: *mut c_void,
) -> Result<()> {
    let rules = rules(device.device_type);
    let Stream::Handle(consumer) = consumer else { return Ok(()) };
    if !has_streams(device.device_type) {
        return Ok(());
    }
    // CUDA's legacy default stream has two handles.
    let fold = |handle| if rules == Rules::Cuda && handle == CUDA_LEGACY { 0 } else { handle };
    if fold(consumer) == fold(producer.addr()) {
        return Ok(()); // one stream is in order with itself
    }
    let backend = registry::required(device.device_type)?;
    let consumer = match consumer {
        0 => null_mut(),
        handle => with_exposed_provenance_mut(handle),
    };
    let queue = |stream: *mut c_void| {
        let home = if stream.is_null() { backend.home(device, data)? } else { device };
        Ok((home, stream))
    };
    // SAFETY: both streams are the device's, or default streams of the device that has the memory.
    unsafe { backend.stream_wait(queue(consumer)?, queue(producer)?) }
}

/// As [`order`], for memory whose producer has recorded when it is ready. A consumer in host memory
/// has no stream: it is waited for here.
///
/// # Safety
/// As [`order`]; `ready` is of that memory.
pub unsafe fn after(
    python: Python,
    ready: &Ready,
    (device, data): (DLDevice, *const c_void),
    consumer: Stream,
) -> Result<()> {
    match consumer {
        Stream::NoSync => Ok(()),
        // SAFETY: the memory is kept, and its block keeps the event of `ready`; waiting calls
        // nothing of Python.
        _ if !has_streams(device.device_type) => unsafe {
            detached(python, u64::MAX, || ready.sync())
        },
        Stream::Handle(handle) => {
            let backend = registry::required(device.device_type)?;
            let stream = with_exposed_provenance_mut(handle);
            let home = if handle == 0 { backend.home(device, data)? } else { device };
            // SAFETY: the memory's block keeps the event, and the stream is one of `home`.
            unsafe { ready.before(backend, (home, stream)) }
        }
    }
}

/// What a number means on a device.
pub fn from_python(number: i64, device: DeviceCode) -> Result<Stream> {
    let handle = usize::try_from(number).ok();
    match (rules(device), number, handle) {
        (Rules::Cuda, NONE, _) => Ok(Stream::Handle(CUDA_LEGACY)),
        (_, NONE, _) => Ok(Stream::Handle(0)),
        (_, NO_SYNC, _) => Ok(Stream::NoSync),
        (Rules::Host, ..) => {
            Err(refuse(number, "tensors in host memory take stream None or -1 only\0Pass None."))
        }
        (Rules::Rocm, 0, _) => Ok(Stream::Handle(0)),
        (Rules::Rocm, 1 | 2, _) => {
            Err(refuse(number, "1 and 2 are no streams of ROCm\0Pass 0 or None."))
        }
        (_, 0, _) => Err(refuse(number, "0 is ambiguous\0Pass 1 or None for the default stream.")),
        (_, _, Some(handle)) => Ok(Stream::Handle(handle)),
        _ => Err(refuse(number, "is no stream number\0Give None, -1, or the stream's handle.")),
    }
}

/// The number of a stream on a device.
pub fn to_python(stream: Stream, device: DeviceCode) -> Result<i64> {
    match (rules(device), stream) {
        (_, Stream::NoSync) => Ok(NO_SYNC),
        (Rules::Host, Stream::Handle(0)) => Ok(NONE),
        (Rules::Host, _) => {
            Err(Error::new(DLRS_STREAM)
                .detail("host memory has no streams\0Pass NULL.\0Pass None."))
        }
        (Rules::Cuda, Stream::Handle(0)) => Ok(CUDA_LEGACY as i64),
        (Rules::Other, Stream::Handle(0)) => Ok(NONE),
        (Rules::Rocm, Stream::Handle(CUDA_LEGACY | CUDA_PER_THREAD)) => {
            Err(Error::new(DLRS_STREAM).detail("ROCm has no number for this stream"))
        }
        (_, Stream::Handle(handle)) => match i64::try_from(handle) {
            Ok(number) => Ok(number),
            Err(_) => Err(Error::new(DLRS_STREAM).detail("is no handle of a stream")),
        },
    }
}

#[cold]
fn refuse(number: i64, detail: &'static str) -> Error {
    let error = Error::new(DLRS_STREAM).detail(detail);
    // Another number is a handle, an address.
    if (NO_SYNC..=CUDA_PER_THREAD as i64).contains(&number) { error.value(number) } else { error }
}

//! Stream numbers of `__dlpack__`.

use core::ffi::c_void;
use core::ptr::{null_mut, with_exposed_provenance_mut};

use super::arg::variable;
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::DLDevice;
use crate::error::{Arg, Of};
use crate::python::stream::{self, Stream};

/// The stream number that stands for Python's `None`.
pub const DLRS_PY_STREAM_NONE: i64 = i64::MIN;

/// Convert the `stream` argument of `__dlpack__` into a stream handle.
///
/// Device:    CUDA, its managed and pinned memory: None and 1 are the legacy default stream, 2 the
///            per-thread one. ROCm, its pinned memory: None and 0 are the default stream; 1 and 2
///            are errors. Elsewhere None is the default. Larger numbers are the handle; -1 requests
///            no synchronization. In other host memory there are only None and -1.
/// Ownership: *out is a handle of the device's API; NULL is its default stream. For CUDA's default
///            streams it is the handle 1 or 2, independent of compiler flags.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out or sync.
///            DLRS_STREAM: the number is invalid on this device. On any error nothing is written.
/// Threads:   any; needs no Python.
/// Source:    the array API standard's `__dlpack__`. *sync is 0 for -1, else 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_stream_from_py(
    number: i64,
    device: DLDevice,
    out: *mut *mut c_void,
    sync: *mut i32,
    error: *mut dlrs_error,
) -> dlrs_status {
    let pointers = (variable(out, Arg::out), variable(sync, Arg::sync));
    // SAFETY: out and sync are NULL or writable variables, error is NULL or live, by the preface.
    unsafe {
        run("dlrs_stream_from_py", error, pointers, |(out, sync)| {
            let found = stream::from_python(number, device.device_type).of(Arg::number)?;
            let (handle, wait) = match found {
                Stream::NoSync => (null_mut(), 0),
                Stream::Handle(handle) => (with_exposed_provenance_mut(handle), 1),
            };
            out.set(handle);
            sync.set(wait);
            Ok(())
        })
    }
}

/// Convert a stream handle into a `stream` argument of `__dlpack__`.
///
/// Device:    as dlrs_stream_from_py; NULL is the device's default stream.
/// Ownership: nothing is kept.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out.
///            DLRS_STREAM: the stream has no number on this device. *out is then not modified.
/// Threads:   any; needs no Python.
/// Source:    the array API standard's `__dlpack__`. DLRS_PY_STREAM_NONE is to be passed as None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_stream_to_py(
    stream: *mut c_void,
    device: DLDevice,
    out: *mut i64,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: out is NULL or a writable variable, error NULL or live, by the preface.
    unsafe {
        run("dlrs_stream_to_py", error, (variable(out, Arg::out),), |(out,)| {
            let stream = Stream::Handle(stream.addr());
            out.set(stream::to_python(stream, device.device_type).of(Arg::stream)?);
            Ok(())
        })
    }
}

//! Streams, events, and stream-ordered release of tensors.

use core::ffi::c_void;

use super::arg::{Taken, live, optional, result, variable};
use super::device::backend;
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::error::{Arg, Of};
use crate::tensor::deferred;

/// Create a stream that does not synchronize with the default stream.
///
/// Device:    any whose backend has streams.
/// Ownership: the caller owns *out and frees it by dlrs_stream_destroy.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out. DLRS_DEVICE_TYPE, DLRS_DEVICE_ID:
///            the device. DLRS_UNSUPPORTED: its backend has none. Classes 5 and
///            6: its driver.
/// Threads:   any.
/// Source:    CU_STREAM_NON_BLOCKING.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_stream_create(
    device: DLDevice,
    out: *mut *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: out is NULL or a writable variable, error NULL or live, by the preface.
    unsafe {
        run("dlrs_stream_create", error, (result(out, Arg::out),), |(out,)| {
            out.give(backend(device, Arg::device)?.stream_create(device).of(Arg::device)?);
            Ok(())
        })
    }
}

/// Destroy a stream; work enqueued on it still completes.
///
/// Device:    of the stream.
/// Ownership: stream is invalid afterwards.
/// Errors:    DLRS_NULL_ARG: stream. DLRS_DEVICE_TYPE, DLRS_DEVICE_ID: the device.
///            DLRS_UNSUPPORTED: its backend has none. Classes 5 and 6: its driver.
/// Threads:   any.
///
/// # Safety
/// stream came from dlrs_stream_create for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_stream_destroy(
    device: DLDevice,
    stream: *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: stream is NULL or one of the device that is not used again, error is NULL or live, by
    // the preface.
    unsafe {
        run("dlrs_stream_destroy", error, (live(stream.cast::<u8>(), Arg::stream),), |_| {
            backend(device, Arg::device)?.stream_destroy(device, stream)
        })
    }
}

/// Wait for all work of a stream.
///
/// Device:    of the stream; NULL is its default stream. On the CPU, where nothing is pending,
///            only NULL.
/// Ownership: unchanged.
/// Errors:    DLRS_DEVICE_TYPE, DLRS_DEVICE_ID: the device. DLRS_UNSUPPORTED: its backend has none.
///            DLRS_STREAM: not a stream of the device. Classes 5 and 6: its driver.
/// Threads:   any.
///
/// # Safety
/// stream is NULL or a live stream of the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_stream_sync(
    device: DLDevice,
    stream: *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: stream is NULL or a live one of the device, error NULL or live, by the preface.
    unsafe {
        run("dlrs_stream_sync", error, (), |()| {
            backend(device, Arg::device)?.stream_sync(device, stream).of(Arg::stream)
        })
    }
}

/// Make later work of one stream wait for the work enqueued on another so far.
///
/// Device:    of both streams; the host does not wait. On the CPU both must be NULL, and nothing
///            happens. A consumer that is being captured does not wait for a default stream.
/// Ownership: unchanged.
/// Errors:    as dlrs_stream_sync.
/// Threads:   any.
/// Source:    __dlpack__(stream=...) of the array API: the producer does this for the consumer.
///
/// # Safety
/// Both are NULL or live streams of the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_stream_wait(
    device: DLDevice,
    consumer: *mut c_void,
    producer: *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: consumer and producer are NULL or live streams of the device, error is NULL or live.
    unsafe {
        run("dlrs_stream_wait", error, (), |()| {
            let backend = backend(device, Arg::device)?;
            let cpu = device.device_type == DLDeviceType::kDLCPU as i32;
            if consumer == producer && !cpu {
                return Ok(()); // one stream is in order with itself
            }
            backend.stream_wait((device, consumer), (device, producer))
        })
    }
}

/// Create an event.
///
/// Device:    any whose backend has events.
/// Ownership: the caller owns *out and frees it by dlrs_event_destroy.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out; others as dlrs_stream_create.
/// Threads:   any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_event_create(
    device: DLDevice,
    out: *mut *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: out is NULL or a writable variable, error NULL or live, by the preface.
    unsafe {
        run("dlrs_event_create", error, (result(out, Arg::out),), |(out,)| {
            out.give(backend(device, Arg::device)?.event_create(device).of(Arg::device)?);
            Ok(())
        })
    }
}

/// Destroy an event; pending waits for it are not affected.
///
/// Device:    of the event.
/// Ownership: event is invalid afterwards.
/// Errors:    DLRS_NULL_ARG: event; others as dlrs_stream_sync.
/// Threads:   any.
///
/// # Safety
/// event came from dlrs_event_create for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_event_destroy(
    device: DLDevice,
    event: *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: event is NULL or one of the device that is not used again, error is NULL or live, by
    // the preface.
    unsafe {
        run("dlrs_event_destroy", error, (live(event.cast::<u8>(), Arg::event),), |_| {
            backend(device, Arg::device)?.event_destroy(device, event)
        })
    }
}

/// Record an event: it completes after the work enqueued on a stream so far.
///
/// Device:    of both.
/// Ownership: unchanged.
/// Errors:    DLRS_NULL_ARG: event; others as dlrs_stream_sync.
/// Threads:   any.
///
/// # Safety
/// event and stream are the device's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_event_record(
    device: DLDevice,
    event: *mut c_void,
    stream: *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: event is NULL or live, as is stream, both of the device, error is NULL or live, by
    // the preface.
    unsafe {
        run("dlrs_event_record", error, (live(event.cast::<u8>(), Arg::event),), |_| {
            backend(device, Arg::device)?.event_record(device, event, stream)
        })
    }
}

/// Make later work of a stream wait for an event; the host does not wait.
///
/// Device:    of the stream; the event may be another device's of the same backend.
/// Ownership: unchanged.
/// Errors:    DLRS_NULL_ARG: event; others as dlrs_stream_sync.
/// Threads:   any.
///
/// # Safety
/// event and stream are live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_event_wait(
    device: DLDevice,
    event: *mut c_void,
    stream: *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: event is NULL or live, and stream too, one of the device, error is NULL or live, by
    // the preface.
    unsafe {
        run("dlrs_event_wait", error, (live(event.cast::<u8>(), Arg::event),), |_| {
            backend(device, Arg::device)?.event_wait(device, event, stream)
        })
    }
}

/// Wait for an event.
///
/// Device:    of the event.
/// Ownership: unchanged.
/// Errors:    DLRS_NULL_ARG: event; others as dlrs_stream_sync.
/// Threads:   any.
///
/// # Safety
/// event came from dlrs_event_create for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_event_sync(
    device: DLDevice,
    event: *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: event is NULL or a live one of the device, error is NULL or live, by the preface.
    unsafe {
        run("dlrs_event_sync", error, (live(event.cast::<u8>(), Arg::event),), |_| {
            backend(device, Arg::device)?.event_sync(device, event)
        })
    }
}

/// Release a tensor after the work enqueued on a stream so far, and after its readiness event
/// (dlrs_ready_record).
///
/// Device:    of the stream, which may still use the tensor.
/// Ownership: the caller's reference is taken and *tensor set to NULL. dlrs_release_drain releases
///            it later; nothing else does, so call it now and then.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or *tensor. DLRS_REFCOUNT: a callback
///            of the tensor that is being freed. DLRS_NOMEM: no memory. DLRS_CAPTURING: the stream
///            is being captured, and its graph may use the tensor at any time; others as
///            dlrs_stream_sync. On any error no ownership is taken.
/// Threads:   any.
/// Source:    dlpack.h: keep the tensor alive until asynchronous work on it is done.
///
/// # Safety
/// stream is NULL or a live stream of the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_release_after_take(
    tensor: *mut *mut DLManagedTensorVersioned,
    device: DLDevice,
    stream: *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: tensor is NULL or a writable variable, whose tensor is live and its reference ours
    // once this succeeds; stream is NULL or a live stream of the device, error NULL or live.
    unsafe {
        run("dlrs_release_after_take", error, (), |()| {
            let taken = Taken::only(tensor, Arg::tensor)?;
            backend(device, Arg::device)?;
            deferred::release_later(taken.tensor, device_order(device, stream))?;
            taken.empty();
            Ok(())
        })
    }
}

/// What to wait for: nothing on the CPU, where work is done when the call returns.
fn device_order(device: DLDevice, stream: *mut c_void) -> Option<(DLDevice, *mut c_void)> {
    let cpu = device.device_type == DLDeviceType::kDLCPU as i32;
    (!cpu || !stream.is_null()).then_some((device, stream))
}

/// Release the tensors of dlrs_release_after_take whose streams have done their work, and which are
/// ready.
///
/// Device:    any.
/// Ownership: their references are released: deleters run, on this thread.
/// Errors:    DLRS_MISALIGNED_STRUCT: out. A device that reports an error counts as done. For a
///            backend without event_query the call waits.
/// Threads:   any; several may drain concurrently.
/// Source:    this library; for threads on which deleters may run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_release_drain(
    out_waiting: *mut u64,
    error: *mut dlrs_error,
) -> dlrs_status {
    let pointers = (optional(variable(out_waiting, Arg::out_waiting)),);
    // SAFETY: out_waiting is NULL or a writable variable, error NULL or live, by the preface.
    unsafe {
        run("dlrs_release_drain", error, pointers, |(out,)| {
            let waiting = deferred::drain();
            if let Some(out) = out {
                out.set(waiting);
            }
            Ok(())
        })
    }
}

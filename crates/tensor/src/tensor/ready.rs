//! When the memory of a tensor is ready, as its producer recorded it: DLPack's structs have no
//! stream, so a consumer could not wait for a tensor that is still being computed.
//!
//! The record belongs to the block that owns the memory, for all its views: as a callback that
//! destroys the event with it, so that blocks without one have no cost.

use core::ffi::c_void;
use core::ptr::NonNull;

use super::block::{self, Block};
use super::{Versioned, share};
use crate::abi::*;
use crate::backend::Stream;
use crate::device_type::CPU;
use crate::error::{Error, Result, Status::*};
use crate::platform;
use crate::ready::Ready;
use crate::registry;

/// Destroys the event with the memory. A tensor's record is recognised by this function's address.
#[inline(never)]
unsafe extern "C" fn end(kept: *mut c_void) {
    let Some(kept) = NonNull::new(kept.cast::<Ready>()) else { return };
    // SAFETY: `keep` wrote it, and gave it to the block to be called once, when nobody waits.
    unsafe {
        let ready = kept.read();
        platform::give_back(kept.cast());
        ready.end();
    }
}

/// # Safety
/// `kept` is the context of [`end`], of a block that outlives the result.
unsafe fn read(kept: *mut c_void) -> Option<&'static Ready> {
    // SAFETY: `kept` is NULL or a `Ready` that lives as long as the block; nothing writes it again.
    unsafe { kept.cast::<Ready>().as_ref() }
}

/// # Safety
/// `block` outlives the result.
unsafe fn of_block(block: NonNull<Block>) -> Option<&'static Ready> {
    // SAFETY: `block` and its keeper outlive the result; what goes with [`end`] is a `Ready`.
    unsafe { read(share::keeper(block).as_ref().chains().attached(end)?) }
}

/// The record for the memory of a tensor, ours or foreign.
///
/// # Safety
/// `tensor` outlives the result.
pub unsafe fn of(tensor: Versioned) -> Option<&'static Ready> {
    // SAFETY: `tensor` is live and outlives the result, and so does its block.
    unsafe { of_block(block::of_versioned(tensor)?) }
}

/// As [`of`], for a struct that may be a copy of another one's bytes.
///
/// # Safety
/// `tensor` is NULL, or of major 1 and outlives the result.
pub unsafe fn of_described(tensor: *const DLManagedTensorVersioned) -> Option<&'static Ready> {
    // SAFETY: `tensor` is of major 1, for it is not NULL; it and its block outlive the result.
    unsafe { of_block(block::of_itself(NonNull::new(tensor.cast_mut())?)?) }
}

/// Stores a record; returns one that another thread has stored meanwhile.
fn keep(block: &Block, ready: Ready) -> Result<Option<*mut c_void>> {
    let Some(memory) = platform::memory(size_of::<Ready>()) else {
        return Err(Error::new(DLRS_NOMEM).value(size_of::<Ready>() as i64));
    };
    // SAFETY: fresh memory of the right size.
    unsafe { memory.cast::<Ready>().write(ready) };
    let kept = block.chains().attach_once(end, memory.as_ptr().cast());
    if !matches!(kept, Ok(None)) {
        // SAFETY: nobody else has seen it.
        unsafe { platform::give_back(memory) };
    }
    kept
}

/// Records that the memory of one of our tensors is ready after the work on the stream so far.
///
/// # Safety
/// `tensor` is live; `stream` is its device's.
pub unsafe fn record(tensor: Versioned, stream: Stream) -> Result<()> {
    // SAFETY: `tensor` is live and holds its keeper; past `own` it is ours, of major 1.
    let (block, DLTensor { device, data, .. }) = unsafe {
        let block = share::keeper(share::own(tensor)?);
        (block.as_ref(), (&raw const (*tensor.as_ptr()).dl_tensor).read())
    };
    let backend = registry::required(device.device_type)?;
    if device.device_type == CPU.device_type {
        // SAFETY: the CPU has no streams; all work is done when the call returns.
        return unsafe { backend.stream_sync(device, stream) };
    }
    if block.references() == 0 {
        return Err(block::dying());
    }
    let home = if stream.is_null() { backend.home(device, data)? } else { device };
    // SAFETY: the stream is that of `home`; what was kept lives as long as the block.
    unsafe {
        if let Some(ready) = of_block(block.into()) {
            return ready.again((home, stream));
        }
        let ready = Ready::record(backend, (home, stream))?;
        match keep(block, ready) {
            Ok(None) => Ok(()),
            Ok(Some(other)) => {
                ready.end();
                read(other).map_or(Ok(()), |other| other.again((home, stream)))
            }
            Err(error) => {
                ready.end();
                Err(error)
            }
        }
    }
}

/// Makes later work of a stream wait until a tensor is ready; on the CPU, and where the stream
/// cannot wait for it, the call waits.
///
/// # Safety
/// `tensor` is live; `stream` is the device's.
pub unsafe fn wait(tensor: Versioned, device: DLDevice, stream: Stream) -> Result<()> {
    // SAFETY: `tensor` is live, past `own` ours, and keeps the record; the stream is the device's.
    unsafe {
        let block = share::own(tensor)?;
        let backend = registry::required(device.device_type)?;
        if device.device_type == CPU.device_type {
            backend.stream_sync(device, stream)?; // which is NULL
        }
        let Some(ready) = of_block(block) else { return Ok(()) };
        let data = (&raw const (*tensor.as_ptr()).dl_tensor.data).read();
        let home = if stream.is_null() { backend.home(device, data)? } else { device };
        ready.before(backend, (home, stream))
    }
}

/// Waits until a tensor is ready.
///
/// # Safety
/// `tensor` is live.
pub unsafe fn sync(tensor: Versioned) -> Result<()> {
    // SAFETY: `tensor` is live, and its block keeps the record and the event.
    unsafe { of_block(share::own(tensor)?).map_or(Ok(()), |ready| ready.sync()) }
}

//! The CPU as a backend: all functions are synchronous, so it needs no streams.

use core::ffi::c_void;
use core::ptr::NonNull;

use super::backend::{Backend, Lack, Pointer, Side, Stream, Transfer, unsupported};
use super::cpu::{self, Parallel};
use crate::abi::{DLDevice, DeviceCode};
use crate::device_type;
use crate::error::{Error, Result, Status::*};
use crate::platform;

/// Host memory.
pub struct Host;

fn no_stream(stream: Stream) -> Result<()> {
    match stream.is_null() {
        true => Ok(()),
        false => {
            Err(Error::new(DLRS_STREAM).detail("the CPU has no streams\0Pass NULL.\0Pass None."))
        }
    }
}

impl Backend for Host {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn device_count(&self, _: DeviceCode) -> Result<i32> {
        Ok(1)
    }

    fn alloc(
        &self,
        _: DLDevice,
        nbytes: u64,
        align_bytes: u64,
        stream: Stream,
    ) -> Result<NonNull<c_void>> {
        no_stream(stream)?;
        let error = Error::new(DLRS_NOMEM).value_u64(nbytes).detail("out of memory, bytes");
        // The start of the memory is stored before the data.
        let head = size_of::<NonNull<u8>>() as u64;
        let total = nbytes.checked_add(align_bytes).and_then(|n| n.checked_add(head));
        let total = total.and_then(|n| isize::try_from(n).ok()).ok_or(error)?;
        let memory = platform::memory(total as usize).ok_or(error)?;
        let first = memory.as_ptr().wrapping_add(head as usize);
        let up = first.addr().wrapping_neg() & (align_bytes as usize).wrapping_sub(1);
        // SAFETY: `total` has room for the pointer, the alignment and the data.
        unsafe {
            let data = NonNull::new_unchecked(first.add(up));
            data.cast::<NonNull<u8>>().sub(1).write_unaligned(memory);
            Ok(data.cast())
        }
    }

    unsafe fn free(
        &self,
        _: DLDevice,
        data: NonNull<c_void>,
        _: u64,
        _: u64,
        stream: Stream,
    ) -> Result<()> {
        no_stream(stream)?;
        // SAFETY: `alloc` wrote where the memory starts in front of the data.
        unsafe { platform::give_back(data.cast::<NonNull<u8>>().sub(1).read_unaligned()) };
        Ok(())
    }

    unsafe fn copy(&self, transfer: &Transfer, _: DLDevice, stream: Stream) -> Result<()> {
        no_stream(stream)?;
        self.explain(transfer)?;
        // SAFETY: `explain` has checked that the CPU reaches both sides, which are allocated and
        // share no element.
        unsafe { cpu::copy(&mut { transfer.plan }, &Parallel::ANY) }
    }

    fn explain(&self, transfer: &Transfer) -> Result<&'static str> {
        let reached = |side: Side| device_type::host_reachable(side.device.device_type);
        match reached(transfer.src) && reached(transfer.dst) {
            true => Ok("the copy engine"),
            false => unsupported(Lack::COPIES),
        }
    }

    fn pointer(&self, _: *const c_void) -> Result<Pointer> {
        unsupported(Lack::QUESTIONS)
    }

    unsafe fn stream_sync(&self, _: DLDevice, stream: Stream) -> Result<()> {
        no_stream(stream)
    }

    unsafe fn stream_wait(
        &self,
        (_, consumer): (DLDevice, Stream),
        (_, producer): (DLDevice, Stream),
    ) -> Result<()> {
        no_stream(consumer).and_then(|()| no_stream(producer))
    }
}

//! Copies between a device and pageable memory of the host: through two pinned buffers, of which
//! the CPU fills or empties one while the device works with the other.
//!
//! The buffers of a device are kept, and belong to one call at a time: a call that finds none makes
//! its own. A buffer that the device may still read is kept too: whoever takes it next waits for
//! the event behind that work.

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering::*};

use super::context::Current;
use super::driver::{Device, Driver, Ptr};
use super::{DISABLE_TIMING, Memory, copy::Place};
use crate::device::cpu::{self, Parallel};
use crate::device::pieces;
use crate::device::plan::Plan;
use crate::error::{Error, Result, Status::*};

/// Bytes of a buffer: enough for several threads to fill it.
const BUFFER_NBYTES: usize = 16 << 20;
/// What stands behind the bytes of a buffer.
#[derive(Clone, Copy)]
struct Tail {
    event: Ptr,
    lost: bool,
}
const ALIGN_BYTES: u64 = 64;
const PARALLEL: Parallel = Parallel { threads: 0, hook: None };

/// A buffer that nobody uses, or NULL.
pub struct Stage(AtomicPtr<c_void>);

impl Stage {
    /// No buffer yet.
    pub const fn new() -> Stage {
        Stage(AtomicPtr::new(null_mut()))
    }
}

/// One pinned buffer.
struct Buffer {
    memory: NonNull<c_void>,
    event: Ptr,
    /// Work that uses it may not be done; the event tells.
    pending: bool,
    /// Work that uses it may not be done, and nothing tells.
    lost: bool,
}

impl Buffer {
    fn bytes(&self) -> *mut u8 {
        self.memory.as_ptr().cast()
    }

    fn tail(memory: Ptr) -> *mut Tail {
        memory.wrapping_byte_add(BUFFER_NBYTES).cast()
    }

    fn new(driver: &Driver) -> Result<Buffer> {
        let memory = driver.alloc(
            Memory::Pinned,
            BUFFER_NBYTES + size_of::<Tail>(),
            ALIGN_BYTES,
            null_mut(),
        )?;
        let mut event = null_mut();
        // SAFETY: a place for the answer; memory that nobody uses.
        unsafe {
            if let Err(error) = driver.event_create(&mut event, DISABLE_TIMING) {
                let _ = driver.free(Memory::Pinned, memory, null_mut());
                return Err(error);
            }
        }
        Ok(Buffer { memory, event, pending: false, lost: false })
    }

    /// A kept one.
    fn kept(device: &Device) -> Option<Buffer> {
        let memory = device
            .stages
            .iter()
            .find_map(|stage| NonNull::new(stage.0.swap(null_mut(), AcqRel)))?;
        // SAFETY: `put_away` wrote it, and the buffer is this call's now.
        let Tail { event, lost } = unsafe { Buffer::tail(memory.as_ptr()).read_unaligned() };
        Some(Buffer { memory, event, pending: true, lost })
    }

    fn wait(&mut self, driver: &Driver) -> Result<()> {
        if self.lost {
            // SAFETY: no precondition.
            unsafe { driver.synchronize()? };
            (self.lost, self.pending) = (false, false);
        }
        if self.pending {
            let _relaxed = driver.relaxed();
            // SAFETY: the buffer's own event.
            unsafe { driver.event_sync(self.event)? };
            self.pending = false;
        }
        Ok(())
    }

    /// From here on the buffer is used until the stream has got here.
    fn record(&mut self, driver: &Driver, stream: Ptr) -> Result<()> {
        self.lost = true;
        // SAFETY: the buffer's own event; a stream of the current context.
        unsafe {
            if let Err(error) = driver.event_record(self.event, stream) {
                let _relaxed = driver.relaxed();
                driver.stream_sync(stream)?;
                self.lost = false;
                return Err(error);
            }
        }
        (self.lost, self.pending) = (false, true);
        Ok(())
    }

    /// Keeps the buffer, or gives it back once it is not used.
    fn put_away(mut self, driver: &Driver, keeper: Option<&Device>) {
        let memory = self.memory.as_ptr();
        // SAFETY: the bytes behind the buffer's own.
        unsafe {
            let tail = Tail { event: self.event, lost: self.lost };
            Buffer::tail(memory).write_unaligned(tail);
        }
        let mut free = keeper.iter().flat_map(|device| &device.stages);
        if free.any(|stage| stage.0.compare_exchange(null_mut(), memory, AcqRel, Relaxed).is_ok()) {
            return;
        }
        if self.wait(driver).is_ok() {
            // SAFETY: the buffer's own event and memory, and nobody uses them any more.
            unsafe {
                let _ = driver.event_destroy(self.event);
                let _ = driver.free(Memory::Pinned, self.memory, null_mut());
            }
        }
    }
}

/// The two buffers of a call.
struct Buffers<'a> {
    driver: &'a Driver,
    /// Where they are kept; not those of a context of the caller's, which may go.
    keeper: Option<&'a Device>,
    pair: [Option<Buffer>; 2],
    next: usize,
}

impl<'a> Buffers<'a> {
    fn new(driver: &'a Driver, here: &Current) -> Result<Buffers<'a>> {
        let device = driver.device(here.ordinal)?;
        let keeper = here.is_primary()?.then_some(device);
        Ok(Buffers { driver, keeper, pair: [None, None], next: 0 })
    }

    /// The buffer whose turn it is, which nobody uses; and the other one.
    fn turn(&mut self) -> Result<(&mut Buffer, &mut Option<Buffer>)> {
        let [first, second] = &mut self.pair;
        let (mine, other) = if self.next & 1 == 0 { (first, second) } else { (second, first) };
        self.next += 1;
        let buffer = match mine {
            Some(buffer) => buffer,
            None => {
                let kept = self.keeper.and_then(Buffer::kept);
                mine.insert(match kept {
                    Some(buffer) => buffer,
                    None => Buffer::new(self.driver)?,
                })
            }
        };
        buffer.wait(self.driver)?;
        Ok((buffer, other))
    }
}

impl Drop for Buffers<'_> {
    fn drop(&mut self) {
        for buffer in self.pair.iter_mut().filter_map(Option::take) {
            buffer.put_away(self.driver, self.keeper);
        }
    }
}

/// No pinned memory: there is another way.
fn or_another_way(error: Error) -> Error {
    match error.status {
        DLRS_NOMEM => Error::new(DLRS_UNSUPPORTED).driver(error.driver_code),
        _ => error,
    }
}

impl Driver {
    /// Host to device. The source has been read when the call returns.
    ///
    /// # Safety
    /// The plan is simplified, of bytes; the source is memory of the host; the destination stays
    /// until the stream has got here.
    pub(super) unsafe fn upload(&self, here: &Current, plan: &Plan, stream: Ptr) -> Result<()> {
        let mut buffers = Buffers::new(self, here)?;
        // In the order of the host's memory, which the CPU reads fastest, where the device can turn
        // it round; else in that of the device's.
        let turn = plan.ndim() > 0 && self.has_kernels(here);
        let mut order = if turn { pieces::reversed(plan) } else { *plan };
        order.simplify();
        pieces::each(&order, BUFFER_NBYTES, |piece| {
            let (buffer, _) = buffers.turn().map_err(or_another_way)?;
            let (mut into, mut back) = pieces::through(piece, buffer.bytes());
            if turn {
                (into, back) = (pieces::reversed(&back), pieces::reversed(&into));
                back.simplify();
            }
            // SAFETY: the buffer is large enough and this call's; the rest is the caller's word.
            unsafe {
                cpu::copy(&mut into, &PARALLEL);
                let enqueued = self.on_device(&back, &Place { here, stream, host: true });
                // An error may come after some of it was enqueued.
                buffer.record(self, stream).and(enqueued)
            }
        })
    }

    /// Device to host. Done when the call returns.
    ///
    /// # Safety
    /// The plan is simplified, of bytes; the destination is memory of the host.
    pub(super) unsafe fn download(&self, here: &Current, plan: &Plan, stream: Ptr) -> Result<()> {
        let mut buffers = Buffers::new(self, here)?;
        let mut former: Option<Plan> = None;
        pieces::each(plan, BUFFER_NBYTES, |piece| {
            let (buffer, other) = buffers.turn().map_err(or_another_way)?;
            let (into, back) = pieces::through(piece, buffer.bytes());
            // SAFETY: the buffer is large enough and this call's; the rest is the caller's word.
            unsafe {
                let enqueued = self.on_device(&into, &Place { here, stream, host: true });
                buffer.record(self, stream).and(enqueued)?;
            }
            let Some(mut empty) = former.replace(back) else { return Ok(()) };
            if let Some(other) = other {
                other.wait(self)?;
            }
            // SAFETY: the plan's source is the other buffer, which the device has filled.
            unsafe { cpu::copy(&mut empty, &PARALLEL) };
            Ok(())
        })?;
        for buffer in buffers.pair.iter_mut().flatten() {
            buffer.wait(self)?;
        }
        if let Some(mut empty) = former {
            // SAFETY: as above.
            unsafe { cpu::copy(&mut empty, &PARALLEL) };
        }
        Ok(())
    }
}

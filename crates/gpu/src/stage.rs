//! Copies between a device and pageable host memory, through pinned staging buffers. A thread has
//! two: it fills or empties one while the device uses the other. Of large copies several threads
//! copy the pieces in turn: one cannot saturate the device's bus. The bus is idle before the first
//! transfer to the device and after the last one from it: each thread splits that piece into parts.
//!
//! The buffers of a device are reused, by one thread at a time; a thread that finds none allocates
//! one. A buffer that the device may still read is stored too: its next user waits for the event
//! after that work.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ops::Range;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

use super::context::Current;
use super::driver::Driver;
use super::place::Place;
use super::state::{Device, STAGES};
use super::vendor::{DISABLE_TIMING, Memory, Ptr};
use crate::cpu::{self, Parallel};
use crate::error::{Error, Result, Status::*};
use crate::pieces::{self, Pieces};
use crate::plan::Plan;
use crate::platform;

/// Bytes of a buffer: large compared with the cost of a driver call, small compared with the
/// caches.
const BUFFER_NBYTES: usize = 2 << 20;
/// Maximum threads of a call: more do not speed up the device's bus.
const THREADS_MOST: usize = STAGES / 2;
/// Parts of a piece during which the bus would be idle.
const PARTS: usize = 8;
/// The struct after the bytes of a buffer.
#[derive(Clone, Copy)]
struct Tail {
    event: Ptr,
    lost: bool,
}
const ALIGN_BYTES: u64 = 64;
/// CUDA's and HIP's handle of the calling thread's default stream.
const PER_THREAD: usize = 2;

/// One pinned buffer.
struct Buffer {
    memory: NonNull<c_void>,
    event: Ptr,
    /// Work that uses it may be pending; the event tracks it.
    pending: bool,
    /// Work that uses it may be pending, without an event.
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
        // SAFETY: a valid output pointer; unused memory.
        unsafe {
            if let Err(error) = driver.event_create(&mut event, DISABLE_TIMING) {
                let _ = driver.free(Memory::Pinned, memory, null_mut());
                return Err(error);
            }
        }
        Ok(Buffer { memory, event, pending: false, lost: false })
    }

    /// Takes a stored buffer.
    fn kept(device: &Device) -> Option<Buffer> {
        let mut stages = device.stages.iter();
        let memory = stages.find_map(|stage| NonNull::new(stage.swap(null_mut(), AcqRel)))?;
        // SAFETY: `put_away` wrote it, and this call owns the buffer now.
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
            // SAFETY: the buffer's event.
            unsafe { driver.event_sync(self.event)? };
            self.pending = false;
        }
        Ok(())
    }

    /// Marks the buffer as used until the stream has completed the work so far.
    fn record(&mut self, driver: &Driver, stream: Ptr) -> Result<()> {
        self.lost = true;
        // SAFETY: the buffer's event; a stream of the current context.
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

    /// Stores the buffer, or frees it once it is unused.
    fn put_away(mut self, driver: &Driver, keeper: Option<&Device>) {
        let memory = self.memory.as_ptr();
        // SAFETY: the buffer was allocated with room for the struct.
        unsafe {
            let tail = Tail { event: self.event, lost: self.lost };
            Buffer::tail(memory).write_unaligned(tail);
        }
        let mut free = keeper.iter().flat_map(|device| &device.stages);
        if free.any(|stage| stage.compare_exchange(null_mut(), memory, AcqRel, Relaxed).is_ok()) {
            return;
        }
        if self.wait(driver).is_ok() {
            // SAFETY: the buffer's event and memory, which are no longer used.
            unsafe {
                let _ = driver.event_destroy(self.event);
                let _ = driver.free(Memory::Pinned, self.memory, null_mut());
            }
        }
    }
}

/// The two buffers of a thread.
struct Buffers<'a> {
    driver: &'a Driver,
    /// Where they are stored; `None` in a context that the caller may destroy.
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

    /// The next buffer, which is unused; and the other one.
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

/// Without pinned memory another strategy is used.
fn or_another_way(error: Error) -> Error {
    match error.status() {
        DLRS_NOMEM => Error::new(DLRS_UNSUPPORTED).driver(error.driver_code()),
        _ => error,
    }
}

/// A copy by several threads, piece by piece.
struct Team<'a> {
    driver: &'a Driver,
    /// The calling thread's current context or device.
    here: &'a Current<'a>,
    stream: Ptr,
    /// Host to device; else device to host.
    up: bool,
    /// The device transposes; the CPU copies in the order of the host's memory.
    turn: bool,
    pieces: Pieces<'a>,
    /// The pieces that are split into parts.
    in_parts: Range<u64>,
    /// The number of the next piece.
    next: AtomicUsize,
    /// Whether a thread has failed and may write `failure`.
    failed: AtomicBool,
    failure: UnsafeCell<Option<Error>>,
}

/// The next piece of a failed copy: none.
const NONE: usize = usize::MAX >> 1;

impl Team<'_> {
    /// The next piece, and the maximum bytes of its parts.
    fn piece(&self) -> Option<(Plan, usize)> {
        let at = self.next.fetch_add(1, Relaxed) as u64;
        let parts = if self.in_parts.contains(&at) { PARTS } else { 1 };
        Some((self.pieces.get(at)?, BUFFER_NBYTES / parts))
    }

    /// Copies a piece into the buffer: from the host, and enqueues the copy to the device; or from
    /// the device. Returns the plan from the buffer to the host, if any.
    ///
    /// # Safety
    /// As [`Driver::through_host`]; this thread owns the buffer.
    unsafe fn bring(
        &self,
        piece: &Plan,
        buffer: &mut Buffer,
        here: &Current,
    ) -> Result<Option<Plan>> {
        let (mut into, mut back) = pieces::through(piece, buffer.bytes());
        let place = &Place { here, stream: self.stream, host: true };
        if self.up && self.turn {
            (into, back) = (pieces::reversed(&back), pieces::reversed(&into));
            back.simplify();
        }
        // SAFETY: this thread owns the buffer, which has room for the piece; the host's side is
        // allocated, and the device's stays so until the stream has completed the work.
        unsafe {
            let enqueued = if self.up {
                cpu::copy(&mut into, &Parallel::ALONE)?;
                self.driver.on_device(&back, place)
            } else {
                self.driver.on_device(&into, place)
            };
            // Part of it may be enqueued before an error.
            buffer.record(self.driver, self.stream).and(enqueued)?;
        }
        Ok((!self.up).then_some(back))
    }

    /// The work of a thread on which `here` is current; with others `beside` it, it may return
    /// early for lack of memory.
    ///
    /// # Safety
    /// As [`Driver::through_host`].
    unsafe fn work(&self, here: &Current, beside: bool) -> Result<()> {
        let mut buffers = Buffers::new(self.driver, here)?;
        let mut former: Option<Plan> = None;
        // Each of several threads allocates both buffers before it takes a piece.
        for _ in 0..if self.in_parts.is_empty() { 0 } else { 2 } {
            match buffers.turn() {
                // Other threads have buffers.
                Err(error) if beside && error.status() == DLRS_NOMEM => return Ok(()),
                turn => turn.map_err(or_another_way)?,
            };
        }
        while let Some((piece, most)) = self.piece() {
            // SAFETY: both sides are allocated, and the buffers this thread's; a plan from a buffer
            // is executed after the device has filled the buffer.
            pieces::each(&piece, most, |part| unsafe {
                let (buffer, other) = buffers.turn().map_err(or_another_way)?;
                let Some(back) = self.bring(part, buffer, here)? else { return Ok(()) };
                let Some(mut empty) = former.replace(back) else { return Ok(()) };
                if let Some(other) = other {
                    other.wait(self.driver)?;
                }
                cpu::copy(&mut empty, &Parallel::ALONE)
            })?;
        }
        let Some(mut empty) = former else { return Ok(()) };
        for buffer in buffers.pair.iter_mut().flatten() {
            buffer.wait(self.driver)?;
        }
        // SAFETY: the host's side is allocated; the device has filled this thread's buffers: both
        // were waited for.
        unsafe { cpu::copy(&mut empty, &Parallel::ALONE) }
    }

    /// [`Team::work`] number `i`, on any thread; an error ends the work of all threads.
    unsafe extern "C" fn body(team: *mut c_void, i: usize) {
        // SAFETY: `through_host` made it from a Team, which outlives the threads, as the host's
        // side does; the device's stays allocated until the stream has completed the work.
        unsafe {
            let team = &*team.cast::<Team>();
            let done = match team.driver.enter_beside(team.here) {
                Ok(here) => team.work(&here, i > 0),
                // The other threads copy the pieces of one that cannot start.
                Err(_) if i > 0 => return,
                Err(error) => Err(error),
            };
            let Err(error) = done else { return };
            team.next.store(NONE, Relaxed);
            if !team.failed.swap(true, AcqRel) {
                *team.failure.get() = Some(error);
            }
        }
    }
}

impl Driver {
    /// Copies between the device and pageable memory. Host memory has been read, or written, when
    /// the call returns.
    ///
    /// # Safety
    /// The plan is simplified, of bytes; one side is host memory, the destination if not `up`; the
    /// other stays allocated until the stream has completed the work.
    pub(super) unsafe fn through_host(
        &self,
        plan: &Plan,
        place: &Place,
        up: bool,
        parallel: &Parallel,
    ) -> Result<()> {
        let Place { here, stream, .. } = *place;
        // In the order of the host's memory, which the CPU reads fastest, if the device can
        // transpose; else in the order of the device's memory.
        let turn = up && plan.ndim() > 0 && self.has_kernels(here, stream, plan);
        let mut order = if turn { pieces::reversed(plan) } else { *plan };
        order.simplify();
        let pieces = Pieces::new(&order, BUFFER_NBYTES);
        let enough = plan.nbytes().div_ceil(BUFFER_NBYTES as u64).min(THREADS_MOST as u64) as usize;
        let threads = match parallel.threads {
            _ if stream.addr() == PER_THREAD => 1,
            // A green context may be current to one thread only.
            _ if !here.is_primary()? => 1,
            0 if parallel.hook.is_none() => platform::processors().min(enough),
            0 => enough,
            most => most.min(enough),
        };
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let failure = UnsafeCell::new(None);
        let driver = self;
        // A single thread is always slower than the bus.
        let alone = if threads > 1 { threads as u64 } else { 0 };
        let count = pieces.count();
        let in_parts = if up { 0..alone } else { count.saturating_sub(alone)..count };
        let in_parts = if alone > 0 { in_parts } else { 0..0 };
        let team = Team { driver, here, stream, up, turn, pieces, in_parts, next, failed, failure };
        let context = (&raw const team).cast_mut().cast();
        // SAFETY: the team outlives the call, its shared members are atomic or written by one
        // thread only; the device's side stays allocated until the stream has completed the work.
        unsafe {
            if threads < 2 || !cpu::side_by_side(parallel, threads, Team::body, context)? {
                Team::body(context, 0);
            }
        }
        team.failure.into_inner().map_or(Ok(()), Err)
    }
}

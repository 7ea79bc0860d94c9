//! Who carries a transfer out: the CPU, the destination's backend, the source's, or both by way of
//! memory of the host.

use core::fmt::{self, Write};
use core::ptr::null_mut;

use super::Options;
use super::stage::staged;
use crate::abi::{DLDevice, DLDeviceType};
use crate::device::backend::{Backend, Side, Stream, Transfer};
use crate::device::cpu::{self, Parallel};
use crate::device::plan::{Dim, Item};
use crate::device::registry;
use crate::device_type;
use crate::error::{Result, Status::*};

/// The side of memory of the host.
pub const HOST: Side = Side {
    device: DLDevice { device_type: DLDeviceType::kDLCPU as i32, device_id: 0 },
    handle: null_mut(),
};

/// Where source and destination expect work to be ordered.
#[derive(Clone, Copy)]
pub struct Streams {
    /// Stream of the source's device, on which its elements are being made.
    pub src: Stream,
    /// Stream of the destination's device, on which they will be used.
    pub dst: Stream,
    /// Return once the work is enqueued.
    pub enqueue_only: bool,
}

impl Streams {
    /// Default streams, and the work is done when the call returns.
    pub const NONE: Streams = Streams { src: null_mut(), dst: null_mut(), enqueue_only: false };

    /// Whether the caller asked for any order.
    pub fn any(&self) -> bool {
        self.enqueue_only || !self.src.is_null() || !self.dst.is_null()
    }
}

pub(super) fn on_host(side: &Side) -> bool {
    device_type::host_reachable(side.device.device_type)
}

/// A backend, and the stream of its device on which it is to work.
#[derive(Clone, Copy)]
pub(super) struct Worker {
    backend: &'static dyn Backend,
    device: DLDevice,
    stream: Stream,
}

impl Worker {
    /// The backend of a side that the CPU does not serve alone.
    fn of(side: &Side, stream: Stream) -> Option<Worker> {
        let backend = registry::find(side.device.device_type)?;
        Some(Worker { backend, device: side.device, stream })
    }

    /// As `of`, or why there is none.
    pub(super) fn required(side: &Side, stream: Stream) -> Result<Worker> {
        let backend = registry::required(side.device.device_type)?;
        Ok(Worker { backend, device: side.device, stream })
    }

    /// # Safety
    /// As [`Backend::copy`].
    pub(super) unsafe fn copy(&self, transfer: &Transfer) -> Result<()> {
        // SAFETY: the caller's word.
        unsafe { self.backend.copy(transfer, self.device, self.stream) }
    }

    /// Refuses a stream that cannot be waited for, before anything is enqueued on it.
    pub(super) fn waitable(&self) -> Result<()> {
        // SAFETY: the caller of the copy named the device's own stream.
        unsafe { self.backend.stream_waitable(self.device, self.stream) }
    }

    /// Waits, and once more after an error: memory that enqueued work uses may go afterwards.
    pub(super) fn sync(&self) -> Result<()> {
        // SAFETY: the caller of the copy named the device's own stream.
        let wait = || unsafe { self.backend.stream_sync(self.device, self.stream) };
        wait().inspect_err(|_| {
            let _ = wait();
        })
    }
}

/// A backend that is asked to carry a transfer out alone.
struct Asked<'a> {
    worker: Worker,
    /// The other side, and its stream.
    peer: (&'a Side, Stream),
    /// The worker's side is the destination.
    writes: bool,
}

/// Whom to ask, in this order: the backend of the destination's device, then the source's. Memory
/// of the host has no streams of its own unless the caller names one: then the device is asked.
fn asked<'a>(transfer: &'a Transfer, streams: &Streams) -> [Option<Asked<'a>>; 2] {
    let (src, dst) = ((&transfer.src, streams.src), (&transfer.dst, streams.dst));
    [(dst, src, true), (src, dst, false)].map(|((side, stream), peer, writes)| {
        if stream.is_null() && on_host(side) && !on_host(peer.0) {
            return None;
        }
        Worker::of(side, stream).map(|worker| Asked { worker, peer, writes })
    })
}

/// Carries out a transfer that moves something, and leaves its plan simplified.
///
/// # Safety
/// Every element of the plan is live on its side; elements of the destination are distinct and
/// none of the source's. With `enqueue_only` all stays so until the stream has got here.
pub unsafe fn execute(transfer: &mut Transfer, options: &Options) -> Result<()> {
    let host = on_host(&transfer.src) && on_host(&transfer.dst);
    if host && !options.streams.any() {
        // SAFETY: the caller's word; the CPU reaches both sides.
        unsafe { cpu::copy(&mut transfer.plan, &options.parallel) };
        return Ok(());
    }
    transfer.plan.simplify();
    // SAFETY: as this function's contract.
    unsafe { elsewhere(transfer, host, options) }
}

/// A transfer that a device takes part in, or whose streams a device has.
///
/// # Safety
/// As [`execute`]; the plan is simplified.
#[inline(never)]
unsafe fn elsewhere(transfer: &mut Transfer, host: bool, options: &Options) -> Result<()> {
    transfer.parallel = options.parallel;
    for asked in asked(transfer, &options.streams).into_iter().flatten() {
        // SAFETY: as this function's contract.
        match unsafe { direct(&asked, transfer, &options.streams) } {
            Err(error) if error.status == DLRS_UNSUPPORTED => {}
            done => return done,
        }
    }
    // SAFETY: as above.
    unsafe {
        if host {
            cpu::copy(&mut transfer.plan, &options.parallel);
            return Ok(());
        }
        staged(transfer, options)
    }
}

/// The way of a transfer, to be put into words.
pub struct Way {
    by: &'static str,
    how: Option<&'static str>,
}

/// Finds out which way a transfer that moves something would go, without doing it; its plan is
/// simplified.
pub fn explain(transfer: &Transfer, options: &Options) -> Result<Way> {
    let host = on_host(&transfer.src) && on_host(&transfer.dst);
    let (mut by, mut how) = (if host { "cpu" } else { "memory of the host" }, None);
    if !host || options.streams.any() {
        for asked in asked(transfer, &options.streams).into_iter().flatten() {
            match asked.worker.backend.explain(transfer) {
                Err(error) if error.status == DLRS_UNSUPPORTED => continue,
                said => (by, how) = (asked.worker.backend.name(), Some(said?)),
            }
            break;
        }
    }
    Ok(Way { by, how })
}

impl Way {
    /// `cpu: transpose, 1 at a time, avx2; 4 bytes x 1024 (4096 <- 4) x 1024 (4 <- 4096)`. What is
    /// `plain` needs no plan.
    pub fn write(
        &self,
        transfer: &Transfer,
        parallel: &Parallel,
        plain: Option<&'static str>,
        out: &mut dyn Write,
    ) -> fmt::Result {
        let Transfer { plan, src, dst, .. } = transfer;
        match self.how {
            Some(how) => write!(out, "{}: {how}", self.by)?,
            None if self.by == "cpu" => {
                let (parts, [first, last]) = match plain {
                    Some(name) => (1, [name; 2]),
                    None => cpu::parts(plan, parallel),
                };
                write!(out, "cpu: {first}")?;
                if last != first {
                    write!(out, " ({last} at the end)")?;
                }
                write!(out, ", {parts} at a time, {}", cpu::level().name())?;
            }
            None => {
                let (src, dst) = (device_type::Name(src.device), device_type::Name(dst.device));
                write!(out, "through {}: {src} to cpu to {dst}", self.by)?;
            }
        }
        match plan.item {
            Item::Bytes(nbytes) => write!(out, "; {nbytes} bytes")?,
            Item::Bits { width, .. } => write!(out, "; {width} bits")?,
        }
        for Dim { n, src, dst } in plan.dims.iter() {
            write!(out, " x {n} ({dst} <- {src})")?;
        }
        Ok(())
    }
}

/// One backend does it all: after the other side's stream has got here, and before it goes on.
///
/// # Safety
/// As [`execute`].
unsafe fn direct(asked: &Asked, transfer: &Transfer, streams: &Streams) -> Result<()> {
    let Asked { worker, peer: (peer, stream), writes } = asked;
    let same = registry::find(peer.device.device_type)
        .is_some_and(|other| core::ptr::addr_eq(other, worker.backend));
    let waits = !stream.is_null() && same && *stream != worker.stream;
    let (own, other) = ((worker.device, worker.stream), (peer.device, *stream));
    // SAFETY: both streams are the devices' own, by the caller's word; one backend serves both.
    unsafe {
        if !streams.enqueue_only {
            worker.waitable()?;
        }
        if waits && *writes {
            worker.backend.stream_wait(own, other)?;
        }
        worker.copy(transfer)?;
        if waits && !*writes {
            // The caller of a refused copy may free both sides.
            worker.backend.stream_wait(other, own).inspect_err(|_| {
                let _ = worker.sync();
            })?;
        }
    }
    if streams.enqueue_only { Ok(()) } else { worker.sync() }
}

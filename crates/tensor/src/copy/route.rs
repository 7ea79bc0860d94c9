//! Chooses who executes a transfer: the CPU, the destination's backend, the source's, or both
//! through host memory.

use core::fmt::{self, Write};

use super::alike::Alike;
use super::ends::{Ends, Worker, memories, on_host, pending};
use super::options::{Options, Streams};
use super::stage::staged;
use crate::backend::{Order, Transfer, Transfers};
use crate::cpu::{self, Parallel};
use crate::device_type::{self, CPU};
use crate::error::{Result, Status::*};
use crate::integer_text::{signed, unsigned};
use crate::plan::{Dim, Item};
use crate::ready::Ready;

/// A stream whose backend may execute the whole transfer.
struct Asked {
    worker: Worker,
    /// The other side's stream, if it must be waited for.
    peer: Option<Worker>,
    /// When the two sides are ready.
    ready: [Option<&'static Ready>; 2],
    /// The other side is CPU memory, which is accessed independent of streams: the host waits for
    /// any stream.
    by_host: bool,
    /// The worker's side is the destination.
    writes: bool,
}

/// The candidates in order: the backend of the destination's stream, then the source's. If both
/// sides are in host memory the CPU copies, unless a driver can access both and the copy is only
/// enqueued.
fn asked(transfer: &Transfer, streams: &Streams) -> Result<(Ends, [Option<Asked>; 2])> {
    let [src, dst] = memories(transfer);
    let ends = Ends::of(&src, &dst, streams)?;
    let host = on_host(&transfer.src) && on_host(&transfer.dst);
    if host && (!streams.enqueue_only || src.is_cpu() || dst.is_cpu()) {
        return Ok((ends, [None, None]));
    }
    let busy = ends.src.filter(|_| !ends.idle);
    let ways = [(ends.dst, busy, src, true), (ends.src, ends.dst, dst, false)];
    let ways = ways.map(|(worker, peer, other, writes)| {
        let worker = worker?;
        let by_host = other.is_cpu();
        let peer = peer.filter(|peer| by_host || !worker.is(peer));
        Some(Asked { worker, peer, ready: ends.ready, by_host, writes })
    });
    Ok((ends, ways))
}

/// Executes a transfer that is not empty; its plan is in normal form, and stays so.
///
/// # Safety
/// Every element of the plan is live on its side; elements of the destination are distinct and
/// none of the source's. With `enqueue_only` all stays so until the stream has completed the work.
#[inline(always)]
pub unsafe fn execute(transfer: &mut Transfer, options: &Options) -> Result<()> {
    // SAFETY: every element is live, none is on both sides; the CPU reaches those of a simple one.
    unsafe {
        match is_simple(transfer, options) {
            true => cpu::copy_simple(&transfer.plan, &options.parallel),
            false => elsewhere(transfer, options),
        }
    }
}

/// Whether a transfer involves no device and no stream.
#[inline(always)]
pub fn is_simple(transfer: &Transfer, options: &Options) -> bool {
    let Transfer { src, dst, .. } = transfer;
    let streams = &options.streams;
    let cpu =
        src.device.device_type == CPU.device_type && dst.device.device_type == CPU.device_type;
    let unnamed = streams.src.is_null() && streams.dst.is_null();
    let recorded = || src.ready.is_some() || dst.ready.is_some();
    unnamed && cpu || !pending(src.device, dst.device, streams) && !recorded()
}

/// Executes the current one, which is not [`is_simple`], and with it those after it that are
/// ordered alike. Then the current one is the first that was not executed, or the one at fault;
/// after an error that is due to none of them there is none.
///
/// # Safety
/// As [`execute`], for each; no destination shares memory with another transfer's sides.
#[inline(never)]
pub unsafe fn elsewhere(all: &mut dyn Transfers, options: &Options) -> Result<()> {
    all.current().parallel = options.parallel;
    let (ends, ways) = asked(all.current(), &options.streams)?;
    let mut alike = Alike::of(all, ends, options);
    for asked in ways.into_iter().flatten() {
        // SAFETY: every element is live on its side, and none is on both.
        match unsafe { direct(&asked, &mut alike) } {
            Err(error) if error.status() == DLRS_UNSUPPORTED && !alike.over => alike.alone = true,
            done => return done,
        }
    }
    let [(src, _), (dst, _)] = alike.sides;
    ends.host_access(src, dst)?;
    loop {
        let transfer = alike.current();
        let host = on_host(&transfer.src) && on_host(&transfer.dst);
        // SAFETY: every element is live, none is on both sides, and host memory is the CPU's now.
        unsafe {
            match host {
                true => cpu::copy(&mut transfer.plan, &options.parallel)?,
                false => staged(transfer, options)?,
            }
        }
        let next = alike.at().wrapping_add(1);
        if !(alike.go_to(next) && host) {
            return Ok(());
        }
    }
}

/// How a transfer would be done.
pub struct Way {
    by: &'static str,
    how: Option<&'static str>,
}

/// Plans a transfer that is not empty, without executing it; its plan is simplified.
pub fn explain(transfer: &Transfer, options: &Options) -> Result<Way> {
    let host = on_host(&transfer.src) && on_host(&transfer.dst);
    let (mut by, mut how) = (if host { "cpu" } else { "host memory" }, None);
    if pending(transfer.src.device, transfer.dst.device, &options.streams) {
        for asked in asked(transfer, &options.streams)?.1.into_iter().flatten() {
            match asked.worker.backend.explain(transfer) {
                Err(error) if error.status() == DLRS_UNSUPPORTED => continue,
                said => (by, how) = (asked.worker.backend.name(), Some(said?)),
            }
            break;
        }
    }
    Ok(Way { by, how })
}

impl Way {
    /// `cpu: turn by non-temporal stores, 1 thread, avx2; 4 bytes x 99 (396 <- 4) x 99 (4 <- 396)`.
    pub fn write(
        &self,
        transfer: &Transfer,
        parallel: &Parallel,
        out: &mut dyn Write,
    ) -> fmt::Result {
        let Transfer { plan, src, dst, .. } = transfer;
        match self.how {
            Some(how) => write!(out, "{}: {how}", self.by)?,
            None if self.by == "cpu" => {
                let (parts, [first, last]) = cpu::parts(plan, parallel);
                write!(out, "cpu: {first}{}", cpu::outlet(plan))?;
                if last != first {
                    write!(out, " ({last} at the end)")?;
                }
                let threads = if parts == 1 { "thread" } else { "threads" };
                write!(out, ", {} {threads}, {}", unsigned(parts as u64), cpu::level().name())?;
            }
            None => {
                let (src, dst) = (device_type::Name(src.device), device_type::Name(dst.device));
                write!(out, "through {}: {src} to cpu to {dst}", self.by)?;
            }
        }
        match plan.item {
            Item::Bytes(nbytes) => write!(out, "; {} bytes", unsigned(nbytes as u64))?,
            Item::Bits { width, .. } => write!(out, "; {} bits", unsigned(width as u64))?,
        }
        for &Dim { n, src, dst } in plan.dims.iter() {
            write!(out, " x {} ({} <- {})", signed(n), signed(dst), signed(src))?;
        }
        Ok(())
    }
}

/// One backend does it all: on the stream of its side, after the other side's, and before later
/// work of the destination's. After an error the current transfer has not been executed, but
/// earlier ones may have been.
///
/// # Safety
/// As [`elsewhere`].
unsafe fn direct(asked: &Asked, transfers: &mut Alike) -> Result<()> {
    let Asked { worker, peer, ready, by_host, writes } = asked;
    let enqueue_only = transfers.options.streams.enqueue_only;
    transfers.begun = false;
    let (beside, apart) = match peer {
        Some(peer) if worker.beside(peer) && !by_host => (Some(peer), None),
        peer => (None, peer.as_ref()),
    };
    // The destination's stream sees the result: for one of another backend, the call waits for it.
    let waits = !enqueue_only || apart.is_some() && !*writes;
    let marks = ready.map(|ready| ready?.event(worker.backend));
    let foreign = ready.iter().zip(&marks).filter(|(_, mark)| mark.is_none());
    let foreign = foreign.filter_map(|(ready, _)| *ready);
    // SAFETY: the streams are the devices' own; the memory is kept until their work is done.
    unsafe {
        if waits && (apart.is_some() || foreign.clone().next().is_some()) {
            worker.waitable()?;
        }
        if let Some(peer) = apart {
            peer.waitable()?;
            peer.sync()?;
        }
        for ready in foreign {
            ready.sync()?;
        }
        let order = Order { after: beside.map(Worker::queue), marks, waits };
        let copied = worker.backend.copy_after(transfers, worker.queue(), &order);
        if let Err(error) = copied {
            let unsupported = error.status() == DLRS_UNSUPPORTED;
            if transfers.begun && !unsupported {
                // The caller of a failed copy may free both sides.
                let _ = worker.sync();
            }
            if !(transfers.begun && unsupported) {
                return Err(error);
            }
        }
        let after = beside.filter(|_| !*writes && !waits);
        let seen = after.map_or(Ok(()), |peer| {
            let waited = worker.backend.stream_wait(peer.queue(), worker.queue());
            // Without events the host waits.
            waited.or_else(|error| match (worker.sync(), error.status()) {
                (synced, DLRS_UNSUPPORTED) => synced,
                _ => Err(error),
            })
        });
        let [_, (_, ready)] = transfers.sides;
        let finished = seen.and_then(|()| match (waits, ready) {
            (true, _) => worker.sync(),
            (false, None) => Ok(()),
            // The destination's stream comes after the worker's.
            (false, Some(ready)) => after.unwrap_or(worker).ready_again(ready),
        });
        if finished.is_err() {
            transfers.over = true;
            transfers.go_to(usize::MAX);
        }
        finished.and(copied)
    }
}

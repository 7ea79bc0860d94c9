//! Who carries a transfer out: the CPU, the destination's backend, the source's, or both by way of
//! memory of the host.

use core::ptr::{NonNull, null_mut};

use super::{Options, Scratch};
use crate::abi::{DLDevice, DLDeviceType};
use crate::device::backend::{Backend, Side, Stream, Transfer};
use crate::device::plan::{Dim, Item, Plan};
use crate::device::{cpu, registry};
use crate::device_type;
use crate::error::{Result, Status::*};

/// The side of memory of the host.
pub const HOST: Side = Side {
    device: DLDevice { device_type: DLDeviceType::kDLCPU as i32, device_id: 0 },
    handle: null_mut(),
};

/// At most so much is brought to the host at a time, unless one item alone is larger.
const STAGE_NBYTES: u64 = 32 << 20;
/// A span of device memory is fetched as a whole where it is at most so many times its elements.
const SPAN_FACTOR: u64 = 4;

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

/// The way a transfer goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// The CPU engine.
    Cpu,
    /// The backend of the destination's device.
    Destination,
    /// The backend of the source's device.
    Source,
    /// Through memory of the host.
    Staged,
}

fn on_host(side: &Side) -> bool {
    device_type::host_reachable(side.device.device_type)
}

/// A backend, and the stream of its device on which it is to work.
#[derive(Clone, Copy)]
struct Worker {
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

    /// # Safety
    /// As [`Backend::copy`].
    unsafe fn copy(&self, transfer: &Transfer) -> Result<()> {
        // SAFETY: the caller's word.
        unsafe { self.backend.copy(transfer, self.device, self.stream) }
    }

    fn sync(&self) -> Result<()> {
        // SAFETY: the caller of the copy named the device's own stream.
        unsafe { self.backend.stream_sync(self.device, self.stream) }
    }
}

/// Carries out a transfer that moves something. Tells which way it went.
///
/// # Safety
/// Every element of the plan is live on its side; elements of the destination are distinct and
/// none of the source's. With `enqueue_only` all stays so until the stream has got here.
pub unsafe fn execute(transfer: &Transfer, options: &Options) -> Result<Way> {
    let host = on_host(&transfer.src) && on_host(&transfer.dst);
    if host && !options.streams.any() {
        // SAFETY: the caller's word; the CPU reaches both sides.
        unsafe { cpu::copy(&transfer.plan, &options.parallel) };
        return Ok(Way::Cpu);
    }
    let mut transfer = *transfer;
    transfer.plan.simplify();
    // SAFETY: as this function's contract.
    unsafe { elsewhere(&transfer, host, options) }
}

/// A transfer that a device takes part in, or whose streams a device has.
///
/// # Safety
/// As [`execute`]; the plan is simplified.
#[inline(never)]
unsafe fn elsewhere(transfer: &Transfer, host: bool, options: &Options) -> Result<Way> {
    let streams = &options.streams;
    for (way, side, own, other) in [
        (Way::Destination, &transfer.dst, streams.dst, streams.src),
        (Way::Source, &transfer.src, streams.src, streams.dst),
    ] {
        let peer = if way == Way::Destination { &transfer.src } else { &transfer.dst };
        let Some(mut worker) = Worker::of(side, own) else { continue };
        if own.is_null() && on_host(side) && !on_host(peer) {
            continue; // the other side's device is the one with streams
        }
        // SAFETY: as this function's contract.
        match unsafe { direct(&mut worker, transfer, (peer, other), way, streams) } {
            Err(error) if error.status == DLRS_UNSUPPORTED => {}
            done => return done.map(|()| way),
        }
    }
    if host {
        // SAFETY: as above.
        unsafe { cpu::copy(&transfer.plan, &options.parallel) };
        return Ok(Way::Cpu);
    }
    // SAFETY: as this function's contract.
    unsafe { staged(transfer, options) }.map(|()| Way::Staged)
}

/// One backend does it all: after the other side's stream has got here, and before it goes on.
///
/// # Safety
/// As [`execute`].
unsafe fn direct(
    worker: &mut Worker,
    transfer: &Transfer,
    (peer, stream): (&Side, Stream),
    way: Way,
    streams: &Streams,
) -> Result<()> {
    let same = registry::find(peer.device.device_type)
        .is_some_and(|other| core::ptr::addr_eq(other, worker.backend));
    let waits = !stream.is_null() && same && !core::ptr::eq(stream, worker.stream);
    // SAFETY: both streams are the devices' own, by the caller's word; one backend serves both.
    unsafe {
        if waits && way == Way::Destination {
            stream_wait(worker.backend, (worker.device, worker.stream), (peer.device, stream))?;
        }
        worker.copy(transfer)?;
        if waits && way == Way::Source {
            stream_wait(worker.backend, (peer.device, stream), (worker.device, worker.stream))?;
        }
    }
    if streams.enqueue_only { Ok(()) } else { worker.sync() }
}

/// Later work of the consumer starts after what the producer has been given until now.
///
/// # Safety
/// Both streams are the backend's.
pub unsafe fn stream_wait(
    backend: &dyn Backend,
    (consumer_device, consumer): (DLDevice, Stream),
    (producer_device, producer): (DLDevice, Stream),
) -> Result<()> {
    let event = backend.event_create(producer_device)?.as_ptr();
    // SAFETY: a fresh event, and the caller's word for the streams. Drivers keep what a destroyed
    // event still has to say.
    unsafe {
        let waited = backend
            .event_record(producer_device, event, producer)
            .and_then(|()| backend.event_wait(consumer_device, event, consumer));
        let destroyed = backend.event_destroy(producer_device, event);
        waited.and(destroyed)
    }
}

/// By way of the host, a piece at a time.
///
/// # Safety
/// As [`execute`].
unsafe fn staged(transfer: &Transfer, options: &Options) -> Result<()> {
    let streams = &options.streams;
    let fetch =
        if on_host(&transfer.src) { None } else { Some(worker(&transfer.src, streams.src)?) };
    let store =
        if on_host(&transfer.dst) { None } else { Some(worker(&transfer.dst, streams.dst)?) };
    let Item::Bytes(nbytes) = transfer.plan.item else {
        // SAFETY: the caller's word.
        return unsafe { stage_bits(transfer, fetch, store, options) };
    };
    let mut first = 0;
    while first < nbytes {
        let n = (nbytes - first).min(STAGE_NBYTES as usize);
        let mut part = transfer.plan;
        part.item = Item::Bytes(n);
        (part.src, part.dst) = (part.src.wrapping_add(first), part.dst.wrapping_add(first));
        let mut pieces = Pieces::of(&part);
        while let Some(plan) = pieces.next() {
            // SAFETY: a piece of the plan.
            unsafe { stage(&Transfer { plan, ..*transfer }, fetch, store, options)? };
        }
        first += n;
    }
    Ok(())
}

fn worker(side: &Side, stream: Stream) -> Result<Worker> {
    let backend = registry::required(side.device.device_type)?;
    Ok(Worker { backend, device: side.device, stream })
}

/// One piece, through compact memory of the host.
///
/// # Safety
/// As [`execute`].
unsafe fn stage(
    piece: &Transfer,
    fetch: Option<Worker>,
    store: Option<Worker>,
    options: &Options,
) -> Result<()> {
    let scratch = Scratch::new(Some(piece.plan.nbytes()))?;
    let Some(memory) = scratch.memory() else { return Ok(()) };
    let mut compact = piece.plan;
    compact.dst = memory.as_ptr();
    let mut step = if let Item::Bytes(nbytes) = compact.item { nbytes as i64 } else { 1 };
    for i in (0..compact.ndim).rev() {
        let dim = compact.dim(i);
        compact.set(i, Dim { dst: step, ..dim });
        step = step.wrapping_mul(dim.n);
    }
    let into = Transfer { plan: compact, src: piece.src, dst: HOST };
    let mut back = Transfer { plan: piece.plan, src: HOST, dst: piece.dst };
    back.plan.src = memory.as_ptr();
    for i in 0..back.plan.ndim {
        let (dim, from) = (back.plan.dim(i), compact.dim(i));
        back.plan.set(i, Dim { src: from.dst, ..dim });
    }
    // SAFETY: the memory is compact and large enough; the rest is the caller's word.
    unsafe {
        match fetch {
            None => cpu::copy(&into.plan, &options.parallel),
            Some(worker) => bring(worker, &into, options)?,
        }
        match store {
            None => cpu::copy(&back.plan, &options.parallel),
            Some(worker) => each_item(worker, &back)?,
        }
    }
    Ok(())
}

/// Device to compact memory of the host, and waits for it.
///
/// # Safety
/// As [`execute`].
unsafe fn bring(worker: Worker, into: &Transfer, options: &Options) -> Result<()> {
    // SAFETY: the caller's word, for all of this function.
    match unsafe { worker.copy(into) } {
        Err(error) if error.status == DLRS_UNSUPPORTED => {}
        done => return done.and_then(|()| worker.sync()),
    }
    let span = Span::of(&into.plan, |dim| dim.src);
    if span.nbytes > into.plan.nbytes().saturating_mul(SPAN_FACTOR) {
        // SAFETY: as above.
        return unsafe { each_item(worker, into) };
    }
    let scratch = Scratch::new(Some(span.nbytes))?;
    let Some(memory) = scratch.memory() else { return Ok(()) };
    let mut local = into.plan;
    // SAFETY: the span holds every element of the source.
    unsafe {
        fetch_span(worker, (into.src, into.plan.src), &span, memory)?;
        local.src = memory.as_ptr().wrapping_offset(span.before as isize);
        cpu::copy(&local, &options.parallel);
    }
    Ok(())
}

/// The copy as it is, or item by item where the backend knows contiguous copies only; waits.
///
/// # Safety
/// As [`execute`].
unsafe fn each_item(worker: Worker, transfer: &Transfer) -> Result<()> {
    // SAFETY: the caller's word.
    match unsafe { worker.copy(transfer) } {
        Err(error) if error.status == DLRS_UNSUPPORTED && transfer.plan.ndim > 0 => {}
        done => return done.and_then(|()| worker.sync()),
    }
    let mut one = Transfer { plan: transfer.plan, ..*transfer };
    one.plan.ndim = 0;
    for index in 0..transfer.plan.count() {
        let (mut rest, mut src, mut dst) = (index as i64, 0i64, 0i64);
        for i in (0..transfer.plan.ndim).rev() {
            let dim = transfer.plan.dim(i);
            let at = rest.checked_rem(dim.n).unwrap_or(0);
            rest = rest.checked_div(dim.n).unwrap_or(0);
            src = src.wrapping_add(at.wrapping_mul(dim.src));
            dst = dst.wrapping_add(at.wrapping_mul(dim.dst));
        }
        one.plan.src = transfer.plan.src.wrapping_offset(src as isize);
        one.plan.dst = transfer.plan.dst.wrapping_offset(dst as isize);
        // SAFETY: one item of the transfer. What was enqueued is waited for before an error goes
        // on, for the host's memory goes with it.
        unsafe { worker.copy(&one) }.inspect_err(|_| {
            let _ = worker.sync();
        })?;
    }
    worker.sync()
}

/// Packed elements that do not start on whole bytes: the bytes around them are brought to the
/// host, and those of the destination back.
///
/// # Safety
/// As [`execute`]; nobody else uses the bytes that the destination's elements share.
unsafe fn stage_bits(
    piece: &Transfer,
    fetch: Option<Worker>,
    store: Option<Worker>,
    options: &Options,
) -> Result<()> {
    let mut local = piece.plan;
    let (src, dst) = (Span::of(&local, |dim| dim.src), Span::of(&local, |dim| dim.dst));
    let from = Scratch::new(fetch.map(|_| src.nbytes))?;
    let to = Scratch::new(store.map(|_| dst.nbytes))?;
    // SAFETY: the spans hold every element; the rest is the caller's word.
    unsafe {
        if let (Some(worker), Some(memory)) = (fetch, from.memory()) {
            fetch_span(worker, (piece.src, piece.plan.src), &src, memory)?;
            local.src = memory.as_ptr().wrapping_offset(src.before as isize);
        }
        if let (Some(worker), Some(memory)) = (store, to.memory()) {
            fetch_span(worker, (piece.dst, piece.plan.dst), &dst, memory)?;
            local.dst = memory.as_ptr().wrapping_offset(dst.before as isize);
        }
        cpu::copy(&local, &options.parallel);
        if let (Some(worker), Some(memory)) = (store, to.memory()) {
            let first = piece.plan.dst.wrapping_offset(-(dst.before as isize));
            let plan = Plan::new(memory.as_ptr(), first, Item::Bytes(dst.nbytes as usize));
            each_item(worker, &Transfer { plan, src: HOST, dst: piece.dst })?;
        }
    }
    Ok(())
}

/// Brings a span to the host, and waits for it.
///
/// # Safety
/// The span is live on its side, and `memory` has room for it.
unsafe fn fetch_span(
    worker: Worker,
    (side, first): (Side, *const u8),
    span: &Span,
    memory: NonNull<u8>,
) -> Result<()> {
    let first = first.wrapping_offset(-(span.before as isize));
    let plan = Plan::new(first, memory.as_ptr(), Item::Bytes(span.nbytes as usize));
    // SAFETY: the caller's word.
    unsafe { each_item(worker, &Transfer { plan, src: side, dst: HOST }) }
}

/// The bytes from the lowest to the highest that one side of a plan uses.
struct Span {
    /// Bytes before the first element's.
    before: i64,
    /// Bytes in all.
    nbytes: u64,
}

impl Span {
    fn of(plan: &Plan, stride: impl Fn(Dim) -> i64) -> Span {
        // Units of bytes or bits, as a power of two.
        let (shift, item) = match plan.item {
            Item::Bytes(nbytes) => (0, nbytes as i64),
            Item::Bits { dst_slot, .. } => (3, dst_slot as i64),
        };
        let up = |units: i64| units.wrapping_add((1 << shift) - 1) >> shift;
        let (mut low, mut high) = (0i64, item);
        for dim in (0..plan.ndim).map(|i| plan.dim(i)) {
            let reach = (dim.n - 1).wrapping_mul(stride(dim));
            low = low.wrapping_add(reach.min(0));
            high = high.wrapping_add(reach.max(0));
        }
        let before = up(low.wrapping_neg());
        Span { before, nbytes: before.wrapping_add(up(high)) as u64 }
    }
}

/// A plan of bytes in pieces of at most [`STAGE_NBYTES`]: blocks of one dimension, inside loops
/// over the outer ones.
struct Pieces<'a> {
    plan: &'a Plan,
    /// The dimension that is cut; outer ones are looped over. `ndim` when an item alone is large.
    cut: usize,
    /// Extent of a block in that dimension.
    block: i64,
    /// Pieces that were given out.
    next: u64,
}

impl<'a> Pieces<'a> {
    fn of(plan: &'a Plan) -> Pieces<'a> {
        let mut inner = if let Item::Bytes(nbytes) = plan.item { nbytes as u64 } else { 1 };
        let (mut cut, mut block) = (plan.ndim, 1);
        while cut > 0 && inner <= STAGE_NBYTES {
            cut -= 1;
            let n = plan.dim(cut).n;
            let fits = STAGE_NBYTES.checked_div(inner).unwrap_or(1) as i64;
            block = n.min(fits.max(1));
            if block < n {
                break;
            }
            inner = inner.saturating_mul(n as u64);
        }
        Pieces { plan, cut, block, next: 0 }
    }

    fn next(&mut self) -> Option<Plan> {
        let dim = self.plan.dim(self.cut);
        let blocks = (dim.n - 1).checked_div(self.block).unwrap_or(0) as u64 + 1;
        let mut at = self.next;
        self.next = at.wrapping_add(1);
        let mut piece = *self.plan;
        let block = at.checked_rem(blocks).unwrap_or(0) as i64;
        at = at.checked_div(blocks).unwrap_or(0);
        let first = block.wrapping_mul(self.block);
        piece.set(self.cut, Dim { n: self.block.min(dim.n - first), ..dim });
        let (mut src, mut dst) = (first.wrapping_mul(dim.src), first.wrapping_mul(dim.dst));
        for i in (0..self.cut).rev() {
            let dim = self.plan.dim(i);
            let index = at.checked_rem(dim.n as u64).unwrap_or(0) as i64;
            at = at.checked_div(dim.n as u64).unwrap_or(0);
            src = src.wrapping_add(index.wrapping_mul(dim.src));
            dst = dst.wrapping_add(index.wrapping_mul(dim.dst));
            piece.set(i, Dim { n: 1, ..dim });
        }
        piece.src = piece.src.wrapping_offset(src as isize);
        piece.dst = piece.dst.wrapping_offset(dst as isize);
        piece.simplify();
        (at == 0).then_some(piece)
    }
}

//! Copies between devices that cannot access each other: through a staging buffer in host memory.

use core::ptr::NonNull;

use super::ends::{HOST, Worker, on_host};
use super::options::Options;
use crate::backend::{Side, Transfer};
use crate::error::{Error, Result, Status::*};
use crate::plan::{Dim, Item, Plan};
use crate::{cpu, pieces, platform};

/// Size of the staging buffer.
const STAGE_NBYTES: usize = 32 << 20;
/// A span of device memory is copied as a whole if it is at most so many times its elements.
const SPAN_FACTOR: u64 = 4;

/// Memory allocated during a call.
pub struct Scratch(Option<NonNull<u8>>);

impl Scratch {
    /// The requested size, or none.
    pub fn new(nbytes: Option<u64>) -> Result<Scratch> {
        let Some(nbytes) = nbytes else { return Ok(Scratch(None)) };
        match usize::try_from(nbytes).ok().and_then(platform::memory) {
            Some(memory) => Ok(Scratch(Some(memory))),
            None => {
                let error = Error::new(DLRS_NOMEM).value_u64(nbytes);
                Err(error.detail("no memory for a staging buffer"))
            }
        }
    }

    /// Where it is.
    pub fn memory(&self) -> Option<NonNull<u8>> {
        self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(memory) = self.0 {
            // SAFETY: it came from `platform::memory` and goes with its owner.
            unsafe { platform::give_back(memory) }
        }
    }
}

/// Through the host, in pieces. Each is read on the source's stream, written on the destination's,
/// and waited for: so it comes after earlier work of both. The CPU accesses sides in host memory
/// directly.
///
/// # Safety
/// As [`super::route::execute`].
pub(super) unsafe fn staged(transfer: &Transfer, options: &Options) -> Result<()> {
    let streams = &options.streams;
    let fetch = if on_host(&transfer.src) {
        None
    } else {
        Some(Worker::required(transfer.src.device, streams.src)?)
    };
    let store = if on_host(&transfer.dst) {
        None
    } else {
        Some(Worker::required(transfer.dst.device, streams.dst)?)
    };
    for worker in [fetch, store].iter().flatten() {
        worker.waitable()?;
    }
    if !matches!(transfer.plan.item, Item::Bytes(_)) {
        // SAFETY: every element is live on its side, and the destination's are distinct and none of
        // the source's.
        return unsafe { stage_bits(transfer, fetch, store, options) };
    }
    pieces::each(&transfer.plan, STAGE_NBYTES, |plan| {
        // SAFETY: a piece of the plan.
        unsafe { stage(&Transfer { plan: *plan, ..*transfer }, fetch, store, options) }
    })
}

/// One piece, through compact host memory.
///
/// # Safety
/// As [`super::route::execute`].
unsafe fn stage(
    piece: &Transfer,
    fetch: Option<Worker>,
    store: Option<Worker>,
    options: &Options,
) -> Result<()> {
    let scratch = Scratch::new(Some(piece.plan.nbytes()))?;
    let Some(memory) = scratch.memory() else { return Ok(()) };
    let (into, back) = pieces::through(&piece.plan, memory.as_ptr());
    let mut into = Transfer { plan: into, dst: HOST, ..*piece };
    let mut back = Transfer { plan: back, src: HOST, ..*piece };
    // SAFETY: the memory has room for the compact elements; each is live on its side.
    unsafe {
        match fetch {
            None => cpu::copy(&mut into.plan, &options.parallel)?,
            Some(worker) => bring(worker, &into, options)?,
        }
        match store {
            None => cpu::copy(&mut back.plan, &options.parallel)?,
            Some(worker) => each_item(worker, &back)?,
        }
    }
    Ok(())
}

/// Device to compact host memory, and waits for it.
///
/// # Safety
/// As [`super::route::execute`].
unsafe fn bring(worker: Worker, into: &Transfer, options: &Options) -> Result<()> {
    // SAFETY: every source element is live on the worker's device; the destination is host memory
    // apart from it.
    match unsafe { worker.copy(into) } {
        Err(error) if error.status() == DLRS_UNSUPPORTED => {}
        done => return done.and_then(|()| worker.sync()),
    }
    let span = Span::of(&into.plan, |dim| dim.src);
    if span.nbytes > into.plan.nbytes().saturating_mul(SPAN_FACTOR) {
        // SAFETY: the source is live on the worker's device; the host memory has room for all.
        return unsafe { each_item(worker, into) };
    }
    let scratch = Scratch::new(Some(span.nbytes))?;
    let Some(memory) = scratch.memory() else { return Ok(()) };
    let mut local = into.plan;
    // SAFETY: the span holds every element of the source.
    unsafe {
        fetch_span(worker, into, (into.src, into.plan.src), &span, memory)?;
        local.src = memory.as_ptr().wrapping_offset(span.before as isize);
        cpu::copy(&mut local, &options.parallel)?;
    }
    Ok(())
}

/// The copy as a whole, or item by item if the backend supports contiguous copies only; waits.
///
/// # Safety
/// As [`super::route::execute`].
unsafe fn each_item(worker: Worker, transfer: &Transfer) -> Result<()> {
    // SAFETY: every element is live on its side until `sync` has returned, and no destination
    // element is a source's.
    match unsafe { worker.copy(transfer) } {
        Err(error) if error.status() == DLRS_UNSUPPORTED && transfer.plan.ndim() > 0 => {}
        done => return done.and_then(|()| worker.sync()),
    }
    let mut one = Transfer { plan: transfer.plan, ..*transfer };
    one.plan.dims.truncate(0);
    for index in 0..transfer.plan.count() {
        let (mut rest, mut src, mut dst) = (index as i64, 0i64, 0i64);
        for i in (0..transfer.plan.ndim()).rev() {
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

/// Packed elements that do not start on whole bytes: the bytes around them are copied to the host,
/// and those of the destination back.
///
/// # Safety
/// As [`super::route::execute`]; no other thread uses the bytes that the destination's elements
/// share.
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
    // SAFETY: the spans hold every element, and each is live on its side.
    unsafe {
        if let (Some(worker), Some(memory)) = (fetch, from.memory()) {
            fetch_span(worker, piece, (piece.src, piece.plan.src), &src, memory)?;
            local.src = memory.as_ptr().wrapping_offset(src.before as isize);
        }
        if let (Some(worker), Some(memory)) = (store, to.memory()) {
            fetch_span(worker, piece, (piece.dst, piece.plan.dst), &dst, memory)?;
            local.dst = memory.as_ptr().wrapping_offset(dst.before as isize);
        }
        cpu::copy(&mut local, &options.parallel)?;
        if let (Some(worker), Some(memory)) = (store, to.memory()) {
            let first = piece.plan.dst.wrapping_offset(-(dst.before as isize));
            let plan = Plan::new(memory.as_ptr(), first, Item::Bytes(dst.nbytes as usize));
            each_item(worker, &Transfer { plan, src: HOST, ..*piece })?;
        }
    }
    Ok(())
}

/// Copies a span to the host, and waits for it.
///
/// # Safety
/// The span is live on its side, and `memory` has room for it.
unsafe fn fetch_span(
    worker: Worker,
    piece: &Transfer,
    (side, first): (Side, *const u8),
    span: &Span,
    memory: NonNull<u8>,
) -> Result<()> {
    let first = first.wrapping_offset(-(span.before as isize));
    let plan = Plan::new(first, memory.as_ptr(), Item::Bytes(span.nbytes as usize));
    // SAFETY: the span is live on its side, and `memory` has room for its bytes.
    unsafe { each_item(worker, &Transfer { plan, src: side, dst: HOST, ..*piece }) }
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
        for &dim in plan.dims.iter() {
            let reach = (dim.n - 1).wrapping_mul(stride(dim));
            low = low.wrapping_add(reach.min(0));
            high = high.wrapping_add(reach.max(0));
        }
        let before = up(low.wrapping_neg());
        Span { before, nbytes: before.wrapping_add(up(high)) as u64 }
    }
}

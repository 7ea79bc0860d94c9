//! Copies between devices of which neither reaches the other: by way of memory of the host.

use core::ptr::NonNull;

use super::route::{HOST, Worker, on_host};
use super::{Options, Scratch};
use crate::device::backend::{Side, Transfer};
use crate::device::cpu;
use crate::device::plan::{Dim, Item, Plan};
use crate::error::{Result, Status::*};

/// At most so much is brought to the host at a time, unless one item alone is larger.
const STAGE_NBYTES: u64 = 32 << 20;
/// A span of device memory is fetched as a whole where it is at most so many times its elements.
const SPAN_FACTOR: u64 = 4;

/// By way of the host, a piece at a time.
///
/// # Safety
/// As [`super::route::execute`].
pub(super) unsafe fn staged(transfer: &Transfer, options: &Options) -> Result<()> {
    let streams = &options.streams;
    let fetch = if on_host(&transfer.src) {
        None
    } else {
        Some(Worker::required(&transfer.src, streams.src)?)
    };
    let store = if on_host(&transfer.dst) {
        None
    } else {
        Some(Worker::required(&transfer.dst, streams.dst)?)
    };
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

/// One piece, through compact memory of the host.
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
/// As [`super::route::execute`].
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
/// As [`super::route::execute`].
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
/// As [`super::route::execute`]; nobody else uses the bytes that the destination's elements share.
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

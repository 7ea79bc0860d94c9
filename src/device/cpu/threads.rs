//! Parts of a copy side by side: on threads made for this call and joined, or on the caller's.
//!
//! No pool: nothing outlives the call, so fork and dlclose need no care.
use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::engine::{named, serial};
use super::level::{stream_from, thread_from};
use crate::device::part::Part;
use crate::device::plan::{Dim, Item, Plan};
use crate::error::{Error, Result, Status::*};
use crate::platform::{self, WORKERS_MOST};

/// The caller's way to run `n` bodies at once: it calls `body(body_ctx, i)` once for every `i`
/// below `n`, on any threads, and returns 0 after the last. Nonzero: it could not, and has run
/// none; the calling thread then does all the work.
#[derive(Clone, Copy)]
pub struct ParallelFor {
    /// The function.
    pub run: unsafe extern "C" fn(
        ctx: *mut c_void,
        n: usize,
        body: unsafe extern "C" fn(*mut c_void, usize),
        body_ctx: *mut c_void,
    ) -> i32,
    /// Its first argument.
    pub ctx: *mut c_void,
}

/// How many threads a copy may use, and whose.
#[derive(Clone, Copy)]
pub struct Parallel {
    /// 0: decide by size and processors; 1: the calling thread only; otherwise at most so many.
    pub threads: usize,
    /// The caller's pool, in place of threads made here.
    pub hook: Option<ParallelFor>,
}

impl Parallel {
    /// As many as the copy is worth.
    pub const ANY: Parallel = Parallel { threads: 0, hook: None };
    /// The calling thread only.
    pub const ALONE: Parallel = Parallel { threads: 1, hook: None };
}

/// Where the number of threads is ours to decide: memory is saturated beyond.
const DECIDED_MOST: usize = 16;

/// Which units of a plan are dealt out, and how many to each part.
struct Deal<'a> {
    plan: Part<'a>,
    /// The dimension dealt out; `None`: the bytes of the element.
    dim: Option<usize>,
    units: usize,
    each: usize,
    large: bool,
}

// A Deal is only read by the parts; its pointers are the caller's, who vouches for them.
impl Deal<'_> {
    fn parts(&self) -> usize {
        self.units.div_ceil(self.each.max(1))
    }

    /// Part `i`, if there is anything in it.
    fn part(&self, i: usize) -> Option<Part<'_>> {
        let first = i.saturating_mul(self.each).min(self.units);
        let n = self.each.min(self.units - first);
        let part = match self.dim {
            None => self.plan.of_bytes(first, n),
            Some(dim) => self.plan.of_dim(dim, first as i64, n as i64),
        };
        (n > 0).then_some(part)
    }

    /// Carries out part `i`.
    unsafe fn carry_out(&self, i: usize) {
        if let Some(part) = &self.part(i) {
            // SAFETY: a part of the caller's plan; parts share no element, and `deal` sees to it
            // that they share no byte.
            unsafe { serial(part, self.large) };
        }
    }
}

/// How many threads an output of so many bytes is worth.
pub(in crate::device) fn worth(nbytes: u64, parallel: &Parallel) -> usize {
    let useful = nbytes.checked_div(thread_from()).unwrap_or(1).min(WORKERS_MOST as u64) as usize;
    let threads = match parallel.threads {
        0 if useful > 1 && parallel.hook.is_none() => platform::processors().min(DECIDED_MOST),
        0 => DECIDED_MOST,
        n => n,
    };
    threads.min(useful)
}

/// Parts that are given to the caller's pool, and which of them have been taken.
struct Given {
    body: platform::Body,
    context: *mut c_void,
    parts: usize,
    taken: AtomicU64,
}

/// Carries out a part, the first time it is asked for.
unsafe extern "C" fn given(context: *mut c_void, i: usize) {
    // SAFETY: `side_by_side` gave it to the pool, which is done with it before that returns.
    let given = unsafe { &*context.cast::<Given>() };
    let bit = 1u64.wrapping_shl(i as u32);
    if i < given.parts && given.taken.fetch_or(bit, Relaxed) & bit == 0 {
        // SAFETY: the word of `side_by_side`'s caller.
        unsafe { (given.body)(given.context, i) }
    }
}

/// Calls `body(context, i)` for every `i` below `parts`, side by side; false if the caller's pool
/// cannot: then the caller does all. A pool that says that it did and did not is an error.
///
/// # Safety
/// The body may be called so, on any threads at the same time.
pub(in crate::device) unsafe fn side_by_side(
    parallel: &Parallel,
    parts: usize,
    body: platform::Body,
    context: *mut c_void,
) -> Result<bool> {
    let Some(hook) = parallel.hook else {
        // SAFETY: the caller's word.
        platform::uncancelled(|| unsafe { platform::side_by_side(parts, body, context) });
        return Ok(true);
    };
    if !(1..=WORKERS_MOST).contains(&parts) {
        return Ok(false);
    }
    let all = Given { body, context, parts, taken: AtomicU64::new(0) };
    let context = (&raw const all).cast_mut().cast();
    // SAFETY: the caller's word; the hook is the caller's. Nonzero says that no body ran.
    let ran = platform::uncancelled(|| unsafe { (hook.run)(hook.ctx, parts, given, context) == 0 });
    let taken = all.taken.into_inner().count_ones();
    if ran && taken as usize != parts {
        let error = Error::new(DLRS_CALLBACK).value(taken.into()).limit(parts as i64);
        return Err(error.detail("parallel_for returned before all parts were done, parts"));
    }
    Ok(ran)
}

const _: () = assert!(WORKERS_MOST <= u64::BITS as usize);

/// Whether a simplified plan's output goes past the caches. What is dense goes as fast through them
/// for a little longer.
fn large(plan: &Plan) -> bool {
    let from = stream_from();
    plan.nbytes() >= if plan.ndim() == 0 { from.saturating_add(from / 4) } else { from }
}

/// How a simplified plan is dealt out; `None`: one thread does it.
fn dealt<'a>(plan: &'a Plan, parallel: &Parallel) -> Option<Deal<'a>> {
    let nbytes = plan.nbytes();
    // Whatever is not dense takes twice as long.
    let threads = worth(if plan.ndim() == 0 { nbytes } else { nbytes.saturating_mul(2) }, parallel);
    let large = large(plan);
    if threads > 1 { deal(Part::whole(plan), threads, large) } else { None }
}

/// In how many parts a simplified plan is carried out side by side, and which way the first of them
/// goes, and the last, of which there may be less.
pub fn parts(plan: &Plan, parallel: &Parallel) -> (usize, [&'static str; 2]) {
    let (whole, deal) = (Part::whole(plan), dealt(plan, parallel));
    let parts = deal.as_ref().map_or(1, |deal| deal.parts());
    let way = |i: usize| {
        let part = deal.as_ref().and_then(|deal| deal.part(i));
        named(part.as_ref().unwrap_or(&whole), large(plan))
    };
    (parts, [way(0), way(parts.saturating_sub(1))])
}

/// Carries out a simplified plan.
///
/// # Safety
/// As [`super::copy`].
pub(super) unsafe fn run(plan: &Plan, parallel: &Parallel) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        // Less than twice what a thread is worth.
        if plan.nbytes() < thread_from() || !shared(plan, parallel)? {
            serial(&Part::whole(plan), large(plan));
        }
    }
    Ok(())
}

/// Carries out a simplified plan in parts, if it is worth that and the parts can be run.
///
/// # Safety
/// As [`super::copy`].
#[inline(never)] // a frame of its own: stacks may be small
unsafe fn shared(plan: &Plan, parallel: &Parallel) -> Result<bool> {
    let deal = dealt(plan, parallel);
    let Some(deal) = &deal else { return Ok(false) };
    let context = (&raw const *deal).cast_mut().cast();
    // SAFETY: the caller's promise; the parts make up the plan.
    unsafe { side_by_side(parallel, deal.parts(), body, context) }
}

unsafe extern "C" fn body(deal: *mut c_void, i: usize) {
    // SAFETY: `run` made it from a Deal, which is only read.
    unsafe { (*deal.cast::<Deal>()).carry_out(i) }
}

/// Chooses what to deal out in `parts`: the element's bytes if it is large, else of the dimensions
/// that have enough to deal the one that is farthest apart on both sides (of bits: the outermost),
/// else the longest.
fn deal(plan: Part, parts: usize, large: bool) -> Option<Deal> {
    let even = |units: usize, grain: usize| {
        let each = units.div_ceil(parts.max(1));
        each.div_ceil(grain.max(1)).saturating_mul(grain.max(1))
    };
    match plan.item {
        Item::Bytes(units) if units >= 1 << 18 => {
            return Some(Deal { plan, dim: None, units, each: even(units, 4096), large });
        }
        Item::Bits { .. } if !nested(&plan) => return None,
        _ => {}
    }
    let n = |i: usize| plan.dim(i).n as usize;
    // The farther apart on both sides, the less a dimension is missed where runs are made.
    let apart = |i: usize| plan.dim(i).src.unsigned_abs().min(plan.dim(i).dst.unsigned_abs());
    let mut enough = (0..plan.ndim).filter(|&i| n(i) >= 8 * parts || n(i) == parts).rev();
    let dim = match plan.item {
        Item::Bytes(_) => enough.max_by_key(|&i| apart(i)),
        Item::Bits { .. } => enough.next_back(),
    };
    let dim = dim.or_else(|| (0..plan.ndim).max_by_key(|&i| n(i)))?;
    let whole_bytes = match plan.item {
        Item::Bytes(_) => 1,
        // Parts begin whole bytes apart on both sides.
        Item::Bits { .. } => {
            let odd = (plan.dim(dim).dst | plan.dim(dim).src).trailing_zeros().min(3);
            8usize >> odd
        }
    };
    if matches!(plan.item, Item::Bits { .. }) && dim != 0 {
        return None;
    }
    let grain = if n(dim) >= 64 * parts { 64 } else { whole_bytes };
    Some(Deal { plan, dim: Some(dim), units: n(dim), each: even(n(dim), grain), large })
}

/// Whether each step of the outermost destination dimension lies beyond all that the inner ones
/// reach: then parts of it that are whole bytes apart share no byte. If the first one starts in the
/// middle of a byte, all do, and what comes before must end before that byte.
fn nested(plan: &Part) -> bool {
    let Item::Bits { dst_slot, .. } = plan.item else { return true };
    let mut reach = (plan.dst_bit & 7).saturating_add(dst_slot as i64);
    for i in 1..plan.ndim {
        let Dim { n, dst, .. } = plan.dim(i);
        reach = reach.saturating_add((n - 1).saturating_mul(dst));
    }
    plan.dim(0).dst >= reach
}

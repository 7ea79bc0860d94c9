//! Parallel parts of a copy: on threads created for this call and joined, or on the caller's.
//!
//! No pool: nothing outlives the call, so fork and dlclose need no care.
use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::choose::{self, serial};
use super::policy::{part_from, thread_from};
use crate::error::{Error, Result, Status::*};
use crate::nest::Nest;
use crate::plan::{Dim, Item, Plan};
use crate::platform::workers::{self, Body, WORKERS_MOST};
use crate::platform::{self, pool::Pool};

/// The caller's parallel loop: it calls `body(body_ctx, i)` once for every `i` below `n`, on
/// threads of its choice, and returns 0 after the last. Nonzero: it has called none; the calling
/// thread then does all the work.
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
    /// Threads of a [`Pool`], which start in a microsecond; 0: it is another pool.
    pub warm: usize,
}

impl ParallelFor {
    /// A pool of this library's.
    ///
    /// # Safety
    /// `pool` is NULL or points to a live Pool.
    pub unsafe fn of(pool: *mut Pool) -> ParallelFor {
        // SAFETY: a live pool, or none.
        let warm = unsafe { pool.as_ref() }.map_or(0, Pool::threads);
        ParallelFor { run: Pool::run, ctx: pool.cast(), warm }
    }
}

/// The number of threads that a copy may use, and their provider.
#[derive(Clone, Copy)]
pub struct Parallel {
    /// 0: decide by size and processors; 1: the calling thread only; otherwise the maximum.
    pub threads: usize,
    /// The caller's pool, instead of new threads.
    pub hook: Option<ParallelFor>,
}

impl Parallel {
    /// Decided by size and processors.
    pub const ANY: Parallel = Parallel { threads: 0, hook: None };
    /// The calling thread only.
    pub const ALONE: Parallel = Parallel { threads: 1, hook: None };
}

/// Maximum threads if the library decides: more do not increase the memory bandwidth.
const DECIDED_MOST: usize = 16;

/// A copy and its split: into parts of `each` iterations of a loop, or bytes of the item.
struct Split<'a> {
    nest: Nest<'a>,
    /// `None`: the bytes of the item.
    i: Option<usize>,
    units: usize,
    each: usize,
}

// The parts only read a Split; its pointers are guaranteed by the caller.
impl<'a> Split<'a> {
    /// Splits into at most `parts` parts: of the item's bytes if it is large, else of the loop,
    /// among those long enough, with the largest strides on both sides, so that the inner ones stay
    /// whole for the kernels; of bits, of the outermost loop. `None`: there is nothing to split.
    fn of(nest: Nest<'a>, parts: usize) -> Option<Split<'a>> {
        let even = |units: usize, grain: usize| {
            let each = units.div_ceil(parts.max(1));
            each.div_ceil(grain.max(1)).saturating_mul(grain.max(1))
        };
        if let Item::Bytes(units) = nest.item
            && units >= 1 << 18
        {
            return Some(Split { nest, i: None, units, each: even(units, 4096) });
        }
        let n = |i: usize| nest.dim(i).n as usize;
        let Item::Bits { .. } = nest.item else {
            let apart = |&i: &usize| {
                let Dim { src, dst, .. } = nest.dim(i);
                src.unsigned_abs().min(dst.unsigned_abs())
            };
            let long = (0..nest.len()).rev().filter(|&i| n(i) >= 8 * parts || n(i) == parts);
            let i = long.max_by_key(apart).or_else(|| (0..nest.len()).max_by_key(|&i| n(i)))?;
            // Whole tiles, as long as the last part is at most an eighth smaller.
            let grain = 1 << (n(i) / (8 * parts).max(1)).clamp(1, 64).ilog2();
            return Some(Split { nest, i: Some(i), units: n(i), each: even(n(i), grain) });
        };
        let i = bits_loop(&nest, parts)?;
        // Parts of bits begin whole bytes apart on both sides.
        let Dim { src, dst, .. } = nest.dim(i);
        let grain = 8usize >> (src | dst).trailing_zeros().min(3);
        let split = Split { nest, i: Some(i), units: n(i), each: even(n(i), grain) };
        (split.parts() > 1).then_some(split)
    }

    fn parts(&self) -> usize {
        self.units.div_ceil(self.each.max(1))
    }

    /// Part `i`, unless it is empty.
    fn part(&self, i: usize) -> Option<Nest<'a>> {
        let first = i.saturating_mul(self.each).min(self.units);
        let n = self.each.min(self.units - first);
        let part = match self.i {
            None => self.nest.slice(first, n),
            Some(i) => self.nest.split(i, first, n),
        };
        (n > 0).then_some(part)
    }
}

/// The bytes that are worth a part.
fn part_nbytes(parallel: &Parallel) -> u64 {
    match parallel.hook {
        Some(ParallelFor { warm: 1.., .. }) => part_from(),
        _ => thread_from(),
    }
}

/// The number of parts for an output of so many bytes.
pub fn worth(nbytes: u64, parallel: &Parallel) -> usize {
    let useful = nbytes.checked_div(part_nbytes(parallel)).unwrap_or(1);
    let useful = useful.min(WORKERS_MOST as u64) as usize;
    let parts = match (parallel.threads, parallel.hook) {
        (0, None) if useful > 1 => platform::processors().min(DECIDED_MOST),
        // Of a large copy two parts for each: a thread without a processor delays it by half a one.
        (0, Some(ParallelFor { warm: warm @ 1.., .. })) if nbytes >= thread_from() => 2 * warm,
        (0, Some(ParallelFor { warm: warm @ 1.., .. })) => warm,
        (0, _) => DECIDED_MOST,
        (n, _) => n,
    };
    parts.min(useful)
}

/// Parts for the caller's pool, and which of them have been started.
struct Given {
    body: Body,
    context: *mut c_void,
    parts: usize,
    taken: AtomicU64,
}

/// Executes a part, only once.
unsafe extern "C" fn given(context: *mut c_void, i: usize) {
    // SAFETY: `side_by_side` passed it to the pool, which has finished with it before that returns.
    let given = unsafe { &*context.cast::<Given>() };
    let bit = 1u64.wrapping_shl(i as u32);
    if i < given.parts && given.taken.fetch_or(bit, Relaxed) & bit == 0 {
        // SAFETY: `body` may be called with this context and `i` on any thread; `taken` admits it
        // once.
        unsafe { (given.body)(given.context, i) }
    }
}

/// Calls `body(context, i)` for every `i` below `parts`, in parallel; false if the caller's pool
/// called none: then the caller does all. A pool that returns 0 without having called all is an
/// error.
///
/// # Safety
/// The body may be called so, on several threads at a time.
pub unsafe fn side_by_side(
    parallel: &Parallel,
    parts: usize,
    body: Body,
    context: *mut c_void,
) -> Result<bool> {
    let Some(hook) = parallel.hook else {
        // SAFETY: `body` may be called with `context` and every `i` below `parts`, on several
        // threads.
        workers::uncancelled(|| unsafe { workers::side_by_side(parts, body, context) });
        return Ok(true);
    };
    if !(1..=WORKERS_MOST).contains(&parts) {
        return Ok(false);
    }
    let all = Given { body, context, parts, taken: AtomicU64::new(0) };
    let context = (&raw const all).cast_mut().cast();
    // SAFETY: `hook.run` is called with its own context; `all`, which `given` shares among threads,
    // outlives the call. Nonzero means that no body ran.
    let ran = workers::uncancelled(|| unsafe { (hook.run)(hook.ctx, parts, given, context) == 0 });
    let taken = all.taken.into_inner().count_ones();
    if ran && taken as usize != parts {
        let error = Error::new(DLRS_CALLBACK).value(taken.into()).limit(parts as i64);
        return Err(error.detail("parallel_for returned before all parts were done, parts"));
    }
    Ok(ran)
}

const _: () = assert!(WORKERS_MOST <= u64::BITS as usize);

/// The loop of bits that is split: the outermost one that is long enough, else the longest. Each
/// iteration of it and of the outer loops is beyond the extent of the inner ones in the
/// destination, and the outer ones have strides of whole bytes: then parts whole bytes apart share
/// no byte. If the first item starts in the middle of a byte, all do, and the preceding data must
/// end before that byte.
fn bits_loop(nest: &Nest, parts: usize) -> Option<usize> {
    let Item::Bits { dst_slot, .. } = nest.item else { return None };
    let whole = |i: usize| nest.dim(i).dst & 7 == 0;
    // Loops that may be split are the outermost ones.
    let mut fit = (0..nest.len()).find(|&i| !whole(i)).map_or(nest.len(), |i| i + 1);
    let mut reach = (nest.dst_bit & 7).saturating_add(dst_slot as i64);
    for i in (0..nest.len()).rev() {
        let Dim { n, dst, .. } = nest.dim(i);
        if dst < reach {
            fit = fit.min(i);
        }
        reach = reach.saturating_add((n - 1).saturating_mul(dst));
    }
    let long = |&i: &usize| nest.dim(i).n as usize >= 8 * parts;
    (0..fit).find(long).or_else(|| (0..fit).max_by_key(|&i| nest.dim(i).n))
}

/// The split of a nest; `None`: one thread.
fn split<'a>(nest: &Nest<'a>, parallel: &Parallel) -> Option<Split<'a>> {
    let threads = worth(nest.whole_bytes, parallel);
    if threads > 1 { Split::of(*nest, threads) } else { None }
}

/// The number of parallel parts of a simplified plan, and the ops of the first and of the last,
/// which may be smaller.
pub fn parts(plan: &Plan, parallel: &Parallel) -> (usize, [&'static str; 2]) {
    let nest = Nest::new(plan);
    let split = split(&nest, parallel);
    let parts = split.as_ref().map_or(1, |split| split.parts());
    let name = |i: usize| {
        let part = split.as_ref().and_then(|split| split.part(i));
        choose::op(part.as_ref().unwrap_or(&nest)).name()
    };
    (parts, [name(0), name(parts.saturating_sub(1))])
}

/// Executes a simplified plan.
///
/// # Safety
/// As [`super::copy`].
#[inline(never)]
pub(super) unsafe fn run(plan: &Plan, parallel: &Parallel) -> Result<()> {
    let nest = Nest::new(plan);
    // SAFETY: all elements are readable or writable, the two sides apart, and the destination's
    // distinct.
    unsafe {
        // Too small for a thread.
        if nest.whole_bytes < part_nbytes(parallel) || !shared(&nest, parallel)? {
            serial(&nest);
        }
    }
    Ok(())
}

/// Executes a nest in parallel parts, if it is large enough and they can be run.
///
/// # Safety
/// As [`super::copy`].
#[inline(never)]
unsafe fn shared(nest: &Nest, parallel: &Parallel) -> Result<bool> {
    let split = split(nest, parallel);
    let Some(split) = &split else { return Ok(false) };
    let context = (&raw const *split).cast_mut().cast();
    // SAFETY: `split` outlives the call; its parts make up the nest and share no byte of the
    // destination.
    unsafe { side_by_side(parallel, split.parts(), body, context) }
}

unsafe extern "C" fn body(split: *mut c_void, i: usize) {
    // SAFETY: `shared` made it from a Split, which is only read; parts share no byte.
    unsafe {
        if let Some(part) = (*split.cast::<Split>()).part(i) {
            serial(&part);
        }
    }
}

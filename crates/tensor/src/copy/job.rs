//! The checks of a copy, the conversion of a pair of tensors into a byte plan, and its execution.

use core::ptr::{NonNull, null_mut};

use super::ends::{HOST, ready_of};
use super::one::{bit_strides, check_copyable, is_handle, is_opaque};
use super::options::{Options, Streams};
use super::pair::{Pair, Places, check_distinct, check_shared, same_slots};
use super::route;
use super::stage::Scratch;
use crate::backend::{Side, Transfer};
use crate::device_type::CPU;
use crate::error::{Of, Result};
use crate::plan::{Dim, Item, Plan};
use crate::validate::Snapshot;
use crate::{cpu, dtype, pieces};

/// A copy that has been checked: it can only fail because memory is exhausted, or by a device
/// error.
pub struct Job {
    /// The copy.
    pub transfer: Transfer,
    /// Bytes of the temporary, where source and destination share memory.
    pub scratch_nbytes: Option<u64>,
}

impl Job {
    /// An empty one.
    #[inline(always)]
    pub const fn none() -> Job {
        Job { transfer: Transfer::none(), scratch_nbytes: None }
    }
}

/// Copies a pair that was checked with [`Options::rules`].
#[inline]
pub fn copy(pair: &Pair, options: &Options) -> Result<()> {
    if let Some(nbytes) = compact(pair, options) {
        let (src, dst) = (pair.src.first(), pair.dst.first());
        // SAFETY: just checked: all bytes of two tensors, which are live, apart.
        unsafe { dst.copy_from_nonoverlapping(src, nbytes) };
        return Ok(());
    }
    planned(pair, options)
}

/// The bytes of two compact tensors in CPU memory that any copy would only hand to memcpy, if they
/// are that and nothing is to be said against it; the errors are `check`'s.
#[inline(always)]
fn compact(pair: &Pair, options: &Options) -> Option<usize> {
    let Pair { src, dst, .. } = pair;
    let strides = src.strides().iter().zip(dst.strides());
    let mut next = 1i64;
    for ((&n, &to), (&from, &by)) in src.shape().iter().zip(dst.shape()).zip(strides).rev() {
        if n != to || n != 1 && (from != next || by != next) {
            return None;
        }
        next = next.wrapping_mul(n);
    }
    let plain = src.device == CPU && dst.device == CPU && src.flags | dst.flags == 0;
    let alike = src.dtype == dst.dtype && src.dims.len() == dst.dims.len();
    if !plain || !alike || src.empty || is_opaque(src.dtype) || options.streams.any() {
        return None;
    }
    let nbytes = src.byte_extent.1 as usize;
    let apart = (src.first() as usize).abs_diff(dst.first() as usize) >= nbytes;
    let whole = src.slot_bits() & 7 == 0;
    (whole && apart && cpu::near(nbytes)).then_some(nbytes)
}

#[inline(always)]
fn planned(pair: &Pair, options: &Options) -> Result<()> {
    let mut job = Job::none();
    match check(pair, options, &mut job)? {
        true if job.scratch_nbytes.is_some() => finish(&mut job, options).of(pair.args[1]),
        // SAFETY: just checked.
        true => unsafe { route::execute(&mut job.transfer, options) }.of(pair.args[1]),
        false => Ok(()),
    }
}

/// As [`copy`], between packed and padded elements too.
#[inline(never)]
pub fn repack(pair: &Pair, options: &Options) -> Result<()> {
    copy(pair, &Options { repack: true, ..*options })
}

/// Executes a checked copy.
#[inline]
pub fn finish(job: &mut Job, options: &Options) -> Result<()> {
    // SAFETY: just checked, and the scratch memory is what it asked for.
    unsafe {
        match job.scratch_nbytes {
            None => route::execute(&mut job.transfer, options),
            nbytes => run(job, &Scratch::new(nbytes)?, options),
        }
    }
}

/// All checks of a copy; false when there is nothing to copy, else `job` is filled.
#[inline(never)]
pub fn check(pair: &Pair, options: &Options, job: &mut Job) -> Result<bool> {
    pair.check_target()?;
    pair.check_same_dtype()?;
    if !options.repack {
        pair.check_same_padding()?;
    }
    pair.check_each(|tensor| check_copyable(tensor, options))?;
    let Pair { src, dst, args: [_, target] } = pair;
    if src.empty {
        return Ok(false);
    }
    let places = Places::of(src, dst);
    let same = places.same(src, dst);
    let filled = fill_transfer(src, dst, &places, &mut job.transfer);
    // Checks that the normal form does not imply.
    if filled.is_err() || !job.transfer.plan.is_nested() {
        check_distinct(dst).of(*target)?;
    }
    let shared = match places.apart(src, dst) {
        true => false,
        false => check_shared(src, dst, options.allow_overlap || same).of(*target)?,
    };
    if same {
        return Ok(false);
    }
    filled.of(*target)?;
    job.scratch_nbytes = if shared { Some(dst.nbytes()?) } else { None };
    Ok(true)
}

/// Executes a copy.
///
/// # Safety
/// `job` was checked, for tensors that are live; `scratch` has at least the bytes it needs.
#[inline(never)]
pub unsafe fn run(job: &mut Job, scratch: &Scratch, options: &Options) -> Result<()> {
    // SAFETY: every element is in the memory of a live tensor, elements of the destination
    // are distinct, and source and destination do not touch, or go through memory of their own.
    unsafe {
        match scratch.memory() {
            Some(memory) if job.scratch_nbytes.is_some() => {
                through(&mut job.transfer, memory, options)
            }
            _ => route::execute(&mut job.transfer, options),
        }
    }
}

/// A copy between two tensors of the same shape and dtype.
pub(super) fn fill_transfer(
    src: &Snapshot,
    dst: &Snapshot,
    places: &Places,
    transfer: &mut Transfer,
) -> Result<()> {
    (transfer.src, transfer.dst) = (side(src), side(dst));
    transfer.plan = Plan::new(places.src, places.dst, item(src, dst));
    fill_plan(src, dst, &mut transfer.plan)
}

/// The device of a tensor's elements, and their address space.
#[inline(always)]
pub(super) fn side(tensor: &Snapshot) -> Side {
    let handle = if is_handle(tensor) { tensor.data.cast() } else { null_mut() };
    Side { device: tensor.device, handle, ready: ready_of(tensor) }
}

/// One element of two tensors of the same dtype.
#[inline(always)]
fn item(src: &Snapshot, dst: &Snapshot) -> Item {
    let dst_slot = dst.slot_bits() as usize;
    match same_slots(src, dst) {
        true if dst_slot.is_multiple_of(8) => Item::Bytes(dst_slot / 8),
        true => Item::Bits { width: dst_slot, dst_slot },
        false => Item::Bits { width: dtype::item_bits(dst.dtype) as usize, dst_slot },
    }
}

/// The byte plan of two tensors of the same shape, in normal form: the dimensions of one element's.
#[inline(always)]
fn fill_plan(src: &Snapshot, dst: &Snapshot, plan: &mut Plan) -> Result<()> {
    let (by_src, by_dst) = match plan.item {
        // None overflows, as their sums have been checked to be addresses.
        Item::Bytes(nbytes) => (nbytes as i64, nbytes as i64),
        Item::Bits { dst_slot, .. } => {
            bit_strides(src).chain(bit_strides(dst)).try_for_each(|stride| stride.map(|_| ()))?;
            (src.slot_bits().into(), dst_slot as i64)
        }
    };
    let strides = src.strides().iter().zip(dst.strides());
    plan.fill(src.shape().iter().zip(strides).map(|(&n, (src, dst))| {
        let (src, dst) = (src.wrapping_mul(by_src), dst.wrapping_mul(by_dst));
        Dim { n, src, dst }
    }));
    Ok(())
}

/// Copies to compact memory and from there.
///
/// # Safety
/// As [`run`]; `memory` has room for the compact elements of the destination.
#[inline(never)]
unsafe fn through(into: &mut Transfer, memory: NonNull<u8>, options: &Options) -> Result<()> {
    let mut back = *into;
    halve(into, memory.as_ptr(), false);
    halve(&mut back, memory.as_ptr(), true);
    // SAFETY: the memory is large enough and shared with nobody.
    unsafe {
        route::execute(into, &half(options, false))?;
        route::execute(&mut back, &half(options, true))
    }
}

/// Reduces a transfer to that to compact host memory, or `back` from there.
pub(super) fn halve(transfer: &mut Transfer, memory: *mut u8, back: bool) {
    pieces::halve(&mut transfer.plan, memory, back);
    *(if back { &mut transfer.src } else { &mut transfer.dst }) = HOST;
}

/// The options of a copy to compact memory, or `back` from there. The memory has no stream, and is
/// freed when the call ends, so the call waits.
pub(super) fn half(options: &Options, back: bool) -> Options {
    let Streams { src, dst, .. } = options.streams;
    let streams = match back {
        false => Streams { src, ..Streams::NONE },
        true => Streams { dst, ..Streams::NONE },
    };
    Options { streams, ..*options }
}

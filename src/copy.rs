//! Copies: what is checked, how a pair of tensors becomes a byte plan, and who runs it.

mod clone;
mod explain;
mod pair;
pub mod route;
mod stage;

use core::ptr::{NonNull, null_mut};

use crate::abi::*;
use crate::device::backend::{Side, Transfer};
use crate::device::cpu::Parallel;
use crate::device::pieces;
use crate::device::plan::{Dim, Item, Plan};
use crate::device::ready::Ready;
use crate::device_type::CPU;
use crate::dtype;
use crate::error::{Error, Of, Result, Status::*};
use crate::platform;
use crate::tensor::ready;
use crate::validate::{Rules, Snapshot};

pub use clone::*;
pub use explain::{Explained, explain};
pub use pair::*;
pub use route::Streams;

/// How a copy is to be done.
#[derive(Clone, Copy)]
pub struct Options {
    /// Source and destination may share memory: the result is as if through a temporary.
    pub allow_overlap: bool,
    /// Elements are moved as bytes: their dtype need not be known.
    pub raw_bytes: bool,
    /// Between packed and padded elements too.
    pub repack: bool,
    /// Of conversions: what is too large becomes the largest finite value.
    pub saturate: bool,
    /// Threads.
    pub parallel: Parallel,
    /// Order with other work of devices.
    pub streams: Streams,
}

impl Options {
    /// As careful and as parallel as the library decides, and done when the call returns.
    pub const DEFAULT: Options = Options {
        allow_overlap: false,
        raw_bytes: false,
        repack: false,
        saturate: false,
        parallel: Parallel { threads: 0, hook: None },
        streams: Streams::NONE,
    };

    /// What source and destination must satisfy.
    pub fn rules(&self) -> Rules {
        if self.raw_bytes { Rules::RAW } else { Rules::COPY }
    }
}

/// May a copy be made?
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CopyPolicy {
    /// No: fail instead.
    Never,
    /// Only when something that was asked for cannot be had without.
    IfNeeded,
    /// Always.
    Always,
}

const PADDED: u64 = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;

/// A copy that has been checked: it can only fail because memory is exhausted, or with its device.
pub struct Job {
    transfer: Transfer,
    /// Bytes to copy through, where source and destination share memory.
    pub scratch_nbytes: Option<u64>,
}

impl Job {
    /// An empty one.
    #[inline(always)]
    pub const fn none() -> Job {
        Job { transfer: Transfer::none(), scratch_nbytes: None }
    }
}

/// Memory for the length of a call.
pub struct Scratch(Option<NonNull<u8>>);

impl Scratch {
    /// As much as asked for, or none.
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

/// Copies a pair that was read and checked with [`Options::rules`].
#[inline]
pub fn copy(pair: &Pair, options: &Options) -> Result<()> {
    let mut job = Job::none();
    match check(pair, options, &mut job)? {
        true => finish(&mut job, options).of(pair.args[1]),
        false => Ok(()),
    }
}

/// As [`copy`], between packed and padded elements too.
#[inline(never)]
pub fn repack(pair: &Pair, options: &Options) -> Result<()> {
    copy(pair, &Options { repack: true, ..*options })
}

/// Carries out what a check has left to do.
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

/// Everything that a copy checks; false when there is nothing to move, else `job` is made.
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
    // What the normal form does not show is found out.
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

/// Carries a copy out.
///
/// # Safety
/// `job` was checked, for tensors that are live; `scratch` has at least the bytes it asks for.
#[inline(never)]
pub unsafe fn run(job: &mut Job, scratch: &Scratch, options: &Options) -> Result<()> {
    // SAFETY: every element is in memory that the caller vouched for, elements of the destination
    // are distinct, and source and destination do not touch, or go through memory of their own.
    unsafe {
        match scratch.0 {
            Some(memory) if job.scratch_nbytes.is_some() => {
                through(&mut job.transfer, memory, options)
            }
            _ => route::execute(&mut job.transfer, options),
        }
    }
}

/// What is to be copied between two tensors of the same shape and dtype.
fn fill_transfer(
    src: &Snapshot,
    dst: &Snapshot,
    places: &Places,
    transfer: &mut Transfer,
) -> Result<()> {
    (transfer.src, transfer.dst) = (side(src), side(dst));
    transfer.plan = Plan::new(places.src, places.dst, item(src, dst));
    fill_plan(src, dst, &mut transfer.plan)
}

/// The device that has a tensor's elements, and what they are in there.
#[inline(always)]
fn side(tensor: &Snapshot) -> Side {
    let handle = if is_handle(tensor) { tensor.data.cast() } else { null_mut() };
    Side { device: tensor.device, handle, ready: ready_of(tensor) }
}

/// When a tensor is ready, where that was recorded; memory of the CPU is so at once.
#[inline(always)]
fn ready_of(tensor: &Snapshot) -> Option<&'static Ready> {
    if tensor.device.device_type == CPU.device_type { None } else { recorded(tensor) }
}

#[inline(never)]
fn recorded(tensor: &Snapshot) -> Option<&'static Ready> {
    // SAFETY: what was read is live.
    unsafe { ready::of_described(tensor.managed) }
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
        // They all fit, for their sums have been checked to be addresses.
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

/// What is left of a transfer is that to compact memory of the host, or `back` from there.
fn halve(transfer: &mut Transfer, memory: *mut u8, back: bool) {
    pieces::halve(&mut transfer.plan, memory, back);
    *(if back { &mut transfer.src } else { &mut transfer.dst }) = route::HOST;
}

/// The options of a copy to compact memory, or `back` from there. The memory has no stream, and
/// goes when the call ends, so the call waits.
fn half(options: &Options, back: bool) -> Options {
    let Streams { src, dst, .. } = options.streams;
    let streams = match back {
        false => Streams { src, ..Streams::NONE },
        true => Streams { dst, ..Streams::NONE },
    };
    Options { streams, ..*options }
}

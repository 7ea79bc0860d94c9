//! Copies: what is checked, how a pair of tensors becomes a byte plan, and who runs it.

mod clone;
mod explain;
mod few;
mod pair;
pub mod route;
mod stage;

use core::ptr::{NonNull, null_mut};

use crate::abi::*;
use crate::device::backend::{Side, Transfer};
use crate::device::cpu::{self, Parallel};
use crate::device::pieces;
use crate::device::plan::{Dim, Item, Plan};
use crate::dtype;
use crate::error::{Error, Result, Status::*};
use crate::platform;
use crate::validate::{Rules, Snapshot};

pub use clone::*;
pub use explain::{Explained, explain};
use few::begun;
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

/// A dense copy or clone of fewer bytes needs no plan: one thread moves it, through the caches.
const DENSE_PLAIN: usize = 1 << 20;

const PADDED: u64 = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;

/// A copy that has been checked: it can only fail for want of memory, or with its device.
pub struct Job {
    transfer: Transfer,
    /// Bytes to copy through, where source and destination share memory.
    pub scratch_nbytes: Option<u64>,
    /// The plan is simplified, and the CPU's.
    simple: bool,
}

impl Job {
    /// One to be made: of no byte.
    #[inline(always)]
    pub const fn none() -> Job {
        Job { transfer: Transfer::none(), scratch_nbytes: None, simple: false }
    }
}

/// Memory for the length of a call, with room for a transfer before it.
pub struct Scratch(Option<NonNull<u8>>);

impl Scratch {
    const HEAD: usize = size_of::<Transfer>().next_multiple_of(64);

    /// No memory.
    pub const fn none() -> Scratch {
        Scratch(None)
    }

    /// As much as asked for, or none.
    pub fn new(nbytes: Option<u64>) -> Result<Scratch> {
        let Some(nbytes) = nbytes else { return Ok(Scratch(None)) };
        let all = usize::try_from(nbytes).ok().and_then(|nbytes| nbytes.checked_add(Self::HEAD));
        match all.and_then(platform::memory) {
            Some(memory) => Ok(Scratch(Some(memory))),
            None => {
                let error = Error::new(DLRS_NOMEM).value(nbytes as i64);
                Err(error.detail("no memory to copy through"))
            }
        }
    }

    /// Where it is.
    pub fn memory(&self) -> Option<NonNull<u8>> {
        // SAFETY: the head is inside.
        self.0.map(|memory| unsafe { memory.add(Self::HEAD) })
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

/// Copies `src` to `dst`, both read and checked with [`Options::rules`], as far as it can be done
/// at once. True: `job` is made, and [`finish`] is to carry it out, for which neither is needed.
#[inline]
pub fn begin(src: &Snapshot, dst: &Snapshot, options: &Options, job: &mut Job) -> Result<bool> {
    match begun(src, dst, options, job) {
        Some(left) => Ok(left),
        None => check(src, dst, options, job),
    }
}

/// As a copy, between packed and padded elements too.
#[inline(never)]
pub fn repack(src: &Snapshot, dst: &Snapshot, options: &Options) -> Result<()> {
    let (mut job, options) = (Job::none(), &Options { repack: true, ..*options });
    if check(src, dst, options, &mut job)? { finish(&mut job, options) } else { Ok(()) }
}

/// Carries out what [`begin`] or a check has left to do.
#[inline(never)]
pub fn finish(job: &mut Job, options: &Options) -> Result<()> {
    if job.simple {
        debug_assert!(job.transfer.plan.is_simple());
        // SAFETY: just checked, and both sides are the CPU's.
        unsafe { cpu::copy_simple(&job.transfer.plan, &options.parallel) };
        return Ok(());
    }
    let scratch = Scratch::new(job.scratch_nbytes)?;
    // SAFETY: just checked, and the scratch memory is what it asked for.
    unsafe { run(job, &scratch, options) }
}

/// Everything that a copy checks; false when there is nothing to move, else `job` is made.
#[inline(never)]
pub fn check(src: &Snapshot, dst: &Snapshot, options: &Options, job: &mut Job) -> Result<bool> {
    check_pair(src, dst)?;
    check_same_dtype(src, dst)?;
    if !options.repack {
        check_same_padding(src, dst)?;
    }
    check_copyable(src, options)?;
    check_copyable(dst, options)?;
    if src.empty {
        return Ok(false);
    }
    let same = same_place(src, dst) && src.slot_bits() == dst.slot_bits();
    let shared = check_memory(src, dst, options.allow_overlap || same)?;
    if same {
        return Ok(false);
    }
    job.scratch_nbytes = if shared { Some(dst.nbytes()?) } else { None };
    fill_transfer(src, dst, &mut job.transfer)?;
    Ok(true)
}

/// Carries a copy out.
///
/// # Safety
/// `job` was checked, for tensors that are live; `scratch` has at least the bytes it asks for.
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
fn fill_transfer(src: &Snapshot, dst: &Snapshot, transfer: &mut Transfer) -> Result<()> {
    let side = |tensor: &Snapshot| {
        let handle = if is_handle(tensor) { tensor.data.cast() } else { null_mut() };
        Side { device: tensor.device, handle }
    };
    (transfer.src, transfer.dst) = (side(src), side(dst));
    fill_plan(src, dst, &mut transfer.plan)
}

/// The byte plan of two tensors of the same shape and dtype.
pub fn fill_plan(src: &Snapshot, dst: &Snapshot, plan: &mut Plan) -> Result<()> {
    let slot_bits = dst.slot_bits();
    let same = src.slot_bits() == slot_bits;
    let (item, unit_bits) = if same && slot_bits.is_multiple_of(8) {
        (Item::Bytes(slot_bits as usize / 8), 8)
    } else {
        let width = if same { slot_bits } else { dtype::item_bits(dst.dtype) };
        (Item::Bits { width: width as usize, dst_slot: slot_bits as usize }, 1)
    };
    *plan = Plan::new(place(src), place(dst), item);
    let strides = unit_strides(src, unit_bits).zip(unit_strides(dst, unit_bits));
    for (&n, (src, dst)) in src.shape().iter().zip(strides) {
        plan.push(Dim { n, src: src?, dst: dst? });
    }
    Ok(())
}

/// Copies to compact memory and from there; the way back waits in it too, for stacks may be small.
///
/// # Safety
/// As [`run`]; `memory` is that of a [`Scratch`] with room for the compact elements of the
/// destination.
#[inline(never)]
unsafe fn through(into: &mut Transfer, memory: NonNull<u8>, options: &Options) -> Result<()> {
    let options = &waiting(options);
    // SAFETY: the memory is large enough and shared with nobody; it begins with a transfer.
    unsafe {
        let back = memory.cast::<Transfer>().as_ptr();
        back.copy_from_nonoverlapping(into, 1);
        let (back, compact) = (&mut *back, memory.add(Scratch::HEAD).as_ptr());
        halve(into, compact, false);
        halve(back, compact, true);
        route::execute(into, options)?;
        route::execute(back, options)
    }
}

/// What is left of a transfer is that to compact memory of the host, or `back` from there.
fn halve(transfer: &mut Transfer, memory: *mut u8, back: bool) {
    pieces::halve(&mut transfer.plan, memory, back);
    *(if back { &mut transfer.src } else { &mut transfer.dst }) = route::HOST;
}

/// The memory goes when the call ends, so the call waits.
fn waiting(options: &Options) -> Options {
    Options { streams: Streams { enqueue_only: false, ..options.streams }, ..*options }
}

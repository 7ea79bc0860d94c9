//! Deep copies of tensors, or the tensor itself if it meets the requirements.

use super::ends::{HOST, ready_of};
use super::job::{Job, fill_transfer, finish, side};
use super::one::{check_copyable, host_read, is_opaque, place};
use super::options::{CopyPolicy, Options, PADDED, Streams};
use super::pair::Places;
use super::route;
use crate::abi::*;
use crate::backend::Transfer;
use crate::device_type::{self, CPU, has_default_stream};
use crate::error::{Arg, Error, Field::*, Of, Result, Status::*};
use crate::layout::{self, Order};
use crate::plan::{Item, Plan};
use crate::registry;
use crate::tensor::alloc::{self, ALIGN_BYTES, Request};
use crate::tensor::block::{self, Block, Owner, Spec};
use crate::tensor::{Versioned, share, wrap};
use crate::validate::{Rules, Snapshot};

/// Bytes of a dense clone that one thread copies through the caches, on any machine.
const CLONE_USUAL: usize = 1 << 20;

/// The result, and whether a [`Job`] is still to fill it.
pub struct Made {
    tensor: Versioned,
    moves: bool,
}

impl Made {
    /// A result without a copy.
    pub fn found(tensor: Versioned) -> Made {
        Made { tensor, moves: false }
    }
}

/// Requirements on a copy: memory order, device, least alignment.
#[derive(Clone, Copy)]
pub struct Wanted {
    /// Of the elements.
    pub order: Order,
    /// Where.
    pub device: DLDevice,
    /// A power of two, 256 or more.
    pub align_bytes: usize,
}

impl Wanted {
    /// Aligned as every tensor of ours.
    pub const fn new(order: Order, device: DLDevice) -> Wanted {
        Wanted { order, device, align_bytes: ALIGN_BYTES }
    }
}

/// Calls `begin` for a tensor, and executes the copy that fills it; the stack of `begin` is free
/// then.
#[inline(never)]
pub fn made(
    options: &Options,
    begin: &mut dyn FnMut(&mut Job) -> Result<Made>,
) -> Result<Versioned> {
    made_here(options, begin)
}

/// As [`made`], inlined.
#[inline(always)]
pub fn made_here(
    options: &Options,
    begin: impl FnOnce(&mut Job) -> Result<Made>,
) -> Result<Versioned> {
    let mut job = Job::none();
    let Made { tensor, moves } = begin(&mut job)?;
    if moves {
        // SAFETY: on failure nobody else has the tensor.
        finish(&mut job, options).inspect_err(|_| unsafe { share::release(tensor) })?;
    }
    Ok(tensor)
}

/// A deep copy, dense in `order`: IS_COPIED set, READ_ONLY clear, PADDED kept.
#[inline(never)]
pub fn clone(
    src: &Snapshot,
    order: Order,
    device: DLDevice,
    options: &Options,
) -> Result<Versioned> {
    made_here(options, |job| begin_clone(src, &Wanted::new(order, device), options, job))
}

/// As [`clone`], for [`made`].
pub fn begin_clone(
    src: &Snapshot,
    wanted: &Wanted,
    options: &Options,
    job: &mut Job,
) -> Result<Made> {
    match clone_usual(src, wanted, options)? {
        Some(tensor) => Ok(Made::found(tensor)),
        None => clone_any(src, wanted, options, job),
    }
}

/// A dense source that the CPU can access, to a CPU tensor too small for threads: needs no plan.
#[inline(always)]
fn clone_usual(src: &Snapshot, wanted: &Wanted, options: &Options) -> Result<Option<Versioned>> {
    let usual = wanted.order == Order::C
        && wanted.align_bytes == ALIGN_BYTES
        && !options.streams.any()
        && !has_default_stream(src.device.device_type)
        && ready_of(src).is_none()
        && !is_opaque(src.dtype)
        && !src.empty
        && layout::is_contiguous(src.shape(), src.strides(), Order::C);
    if !usual {
        return Ok(None);
    }
    let flags = src.flags & PADDED | DLPACK_FLAG_BITMASK_IS_COPIED;
    let made = alloc::new_usual(src.shape(), src.dtype, wanted.device, flags, CLONE_USUAL)?;
    Ok(made.map(|(tensor, nbytes)| {
        // SAFETY: both are dense, so the elements are `nbytes` bytes from the first on.
        unsafe {
            let data: *mut u8 = (*tensor.as_ptr()).dl_tensor.data.cast();
            data.copy_from_nonoverlapping(src.first(), nbytes);
        }
        tensor
    }))
}

/// As [`begin_clone`], for any tensor.
#[inline(never)]
fn clone_any(src: &Snapshot, wanted: &Wanted, options: &Options, job: &mut Job) -> Result<Made> {
    check_copyable(src, options)?;
    // Where no target was given, the source's device has no backend. A shape is the source's.
    let device = wanted.device;
    let blamed = |error: Error| match error.member() {
        DLRS_FIELD_SHAPE => error,
        _ if device == src.device => error,
        _ => error.of(Arg::device),
    };
    check_target(device).map_err(blamed)?;
    let nbytes = src.nbytes()?;
    let tensor = new_wanted(src, wanted, nbytes).map_err(blamed)?;
    let moves = !src.empty;
    if moves {
        // SAFETY: a fresh tensor of ours, of the source's shape and element size, all its own; on
        // failure nobody else has it.
        unsafe {
            clear_rest(src, wanted, tensor, options)
                .and_then(|()| fill_clone(src, tensor, job))
                .inspect_err(|_| share::release(tensor))?
        }
    }
    Ok(Made { tensor, moves })
}

/// A fresh tensor of the source's shape and dtype, whose elements take `nbytes` bytes.
fn new_wanted(src: &Snapshot, wanted: &Wanted, nbytes: u64) -> Result<Versioned> {
    let strides;
    let request = Request {
        shape: src.shape(),
        strides: match wanted.order {
            Order::C => None,
            order => {
                strides = alloc::strides_for(src.shape(), order, src.strides());
                strides.get(..src.shape().len())
            }
        },
        dtype: src.dtype,
        device: wanted.device,
        flags: src.flags & PADDED | DLPACK_FLAG_BITMASK_IS_COPIED,
        align_bytes: wanted.align_bytes,
        allocator: None,
    };
    alloc::new_sized(&request, nbytes as usize)
}

/// Clears the unused bits of the last byte: else they would be undefined. Where elements are
/// written one by one into bytes that they share, all bytes are cleared first, since each write
/// keeps the other bits.
///
/// # Safety
/// `tensor` is fresh, of ours, with the shape and element size of `src`, and not empty.
unsafe fn clear_rest(
    src: &Snapshot,
    wanted: &Wanted,
    tensor: Versioned,
    options: &Options,
) -> Result<()> {
    if src.slot_bits().is_multiple_of(8) {
        return Ok(());
    }
    let bits = u128::from(src.numel()? as u64) * u128::from(src.slot_bits());
    let nbytes = src.nbytes()? as usize;
    let whole = nbytes.wrapping_sub(usize::from(!bits.is_multiple_of(8)));
    let dense = layout::is_contiguous(src.shape(), src.strides(), wanted.order);
    // Whether the CPU may access the memory without waiting for a stream.
    let host = !has_default_stream(wanted.device.device_type);
    let from = if dense || !host { whole } else { 0 };
    let mut fresh = Snapshot::new();
    // SAFETY: `tensor` is a live tensor that nobody else has seen; its data has `nbytes` bytes.
    unsafe {
        fresh.read_managed(tensor.as_ptr(), Rules::RAW)?;
        let first = place(&fresh).wrapping_add(from);
        if host {
            first.write_bytes(0, nbytes.wrapping_sub(from));
            return Ok(());
        }
        if from == nbytes {
            return Ok(());
        }
        static ZERO: u8 = 0;
        let mut transfer = Transfer::none();
        (transfer.src, transfer.dst) = (HOST, side(&fresh));
        transfer.plan = Plan::new((&raw const ZERO).cast_mut(), first, Item::Bytes(1));
        let streams = Streams { dst: options.streams.dst, ..Streams::NONE };
        route::execute(&mut transfer, &Options { streams, ..*options })
    }
}

/// Makes the `job` of a clone.
///
/// # Safety
/// `tensor` is fresh, of ours, with the shape and element size of `src`.
unsafe fn fill_clone(src: &Snapshot, tensor: Versioned, job: &mut Job) -> Result<()> {
    let mut dst = Snapshot::new();
    // SAFETY: `tensor` is a live tensor of ours.
    unsafe { dst.read_managed(tensor.as_ptr(), Rules::RAW)? };
    fill_transfer(src, &dst, &Places::of(src, &dst), &mut job.transfer)
}

/// Rejects a device that does not exist, or whose backend does not allocate.
fn check_target(device: DLDevice) -> Result<()> {
    device_type::check(device)?;
    if alloc::served(device.device_type) {
        return Ok(());
    }
    registry::required(device.device_type).map(|_| ())
}

/// `tensor` itself with one more reference when it is already dense in `order`, else a dense copy;
/// for [`made`].
///
/// # Safety
/// `tensor` is live and `src` was read from it.
pub unsafe fn contiguous(
    src: &Snapshot,
    tensor: Versioned,
    order: Order,
    options: &Options,
    job: &mut Job,
) -> Result<Made> {
    if layout::is_contiguous(src.shape(), src.strides(), order) {
        // SAFETY: `tensor` is live.
        return unsafe { found(tensor) };
    }
    let order = if order == Order::A { Order::C } else { order };
    begin_clone(src, &Wanted::new(order, src.device), options, job)
}

/// `tensor` itself with one more reference.
///
/// # Safety
/// `tensor` is live.
unsafe fn found(tensor: Versioned) -> Result<Made> {
    // SAFETY: `tensor` is live.
    Ok(Made { tensor: unsafe { share::retain(tensor)? }, moves: false })
}

/// Pinned or managed memory as the CPU's, which reads it at its address, once its device has
/// written it: a tensor that keeps `tensor` alive.
///
/// # Safety
/// `tensor` is live and `src` was read from it.
pub unsafe fn as_cpu(src: &Snapshot, tensor: Versioned, streams: &Streams) -> Result<Versioned> {
    // SAFETY: `tensor` is live.
    let block = unsafe { share::own(tensor)? };
    host_read(src, streams)?;
    let flags = src.flags & !DLPACK_FLAG_BITMASK_IS_COPIED; // shared with `tensor`
    let spec = Spec { device: CPU, ..wrap::spec_of(src, flags, Owner::Versioned(tensor)) };
    // SAFETY: a live block.
    unsafe { block::shared(&spec, block) }.map(Block::versioned)
}

/// `tensor` on `device`: itself with one more reference if it is there, as the CPU's if the CPU can
/// access it, or a copy; for [`made`].
///
/// # Safety
/// `tensor` is live and `src` was read from it.
pub unsafe fn to_device(
    src: &Snapshot,
    tensor: Versioned,
    device: DLDevice,
    policy: CopyPolicy,
    options: &Options,
    job: &mut Job,
) -> Result<Made> {
    device_type::check(device).of(Arg::device)?;
    let there = src.device == device;
    // SAFETY: `tensor` is live.
    let shared =
        || device_type::serves_cpu(src.device, device) && unsafe { share::own(tensor) }.is_ok();
    match policy {
        // SAFETY: `tensor` is live.
        CopyPolicy::IfNeeded | CopyPolicy::Never if there => unsafe { found(tensor) },
        CopyPolicy::IfNeeded | CopyPolicy::Never if shared() => {
            // SAFETY: `tensor` is live, and `src` was read from it.
            unsafe { as_cpu(src, tensor, &options.streams) }.map(Made::found)
        }
        CopyPolicy::Never => {
            let error = Error::new(DLRS_COPY_NEEDED).field(DLRS_FIELD_DEVICE_TYPE);
            Err(error.value(src.device.device_type.into()).limit(device.device_type.into()))
        }
        _ => begin_clone(src, &Wanted::new(Order::C, device), options, job),
    }
}

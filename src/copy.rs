//! Copies: what is checked, how a pair of tensors becomes a byte plan, and who runs it.

use core::ptr::NonNull;

use crate::abi::*;
use crate::device::cpu::{self, Parallel};
use crate::device::plan::{Item, Plan};
use crate::device_type;
use crate::dtype;
use crate::error::{Error, Field::*, Result, Status::*};
use crate::layout::{self, MAX_NDIM, Order};
use crate::overlap::{self, Strided, Verdict};
use crate::platform;
use crate::tensor::alloc::{self, ALIGN_BYTES, Request};
use crate::tensor::{Versioned, block, convert, share};
use crate::validate::{Rules, Snapshot};

/// How a copy is to be done.
#[derive(Clone, Copy)]
pub struct Options {
    /// Source and destination may share memory: the result is as if through a temporary.
    pub allow_overlap: bool,
    /// Elements are moved as bytes: their dtype need not be known.
    pub raw_bytes: bool,
    /// Threads.
    pub parallel: Parallel,
}

impl Options {
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

/// A dense clone of fewer bytes needs no plan.
const DENSE_PLAIN: usize = 1 << 16;

const PADDED: u64 = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;

/// A copy that has been checked and can only fail for want of memory.
pub struct Job {
    plan: Plan,
    /// Bytes to copy through, where source and destination share memory.
    pub scratch_nbytes: Option<u64>,
}

/// Memory for the length of a call.
pub struct Scratch(Option<NonNull<u8>>);

impl Scratch {
    /// As much as asked for, or none.
    pub fn new(nbytes: Option<u64>) -> Result<Scratch> {
        let Some(nbytes) = nbytes else { return Ok(Scratch(None)) };
        match platform::memory(nbytes as usize) {
            Some(memory) => Ok(Scratch(Some(memory))),
            None => {
                let error = Error::new(DLRS_NOMEM).value(nbytes as i64);
                Err(error.detail("no memory to copy through"))
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

/// Copies `src` to `dst`, both read and checked with [`Options::rules`].
pub fn copy(src: &Snapshot, dst: &Snapshot, options: &Options) -> Result<()> {
    finish(check(src, dst, options)?, options)
}

/// As [`copy`], between packed and padded elements too.
pub fn repack(src: &Snapshot, dst: &Snapshot, options: &Options) -> Result<()> {
    finish(check_repack(src, dst, options)?, options)
}

#[inline(never)]
fn finish(job: Option<Job>, options: &Options) -> Result<()> {
    if let Some(job) = job {
        let scratch = Scratch::new(job.scratch_nbytes)?;
        // SAFETY: just checked, and the scratch memory is what it asked for.
        unsafe { run(&job, &scratch, options) };
    }
    Ok(())
}

/// Everything that [`copy`] checks; `None` when there is nothing to move.
pub fn check(src: &Snapshot, dst: &Snapshot, options: &Options) -> Result<Option<Job>> {
    check_pair(src, dst)?;
    check_same_dtype(src, dst)?;
    check_same_padding(src, dst)?;
    check_job(src, dst, options)
}

/// Everything that [`repack`] checks.
#[inline(never)]
pub fn check_repack(src: &Snapshot, dst: &Snapshot, options: &Options) -> Result<Option<Job>> {
    check_pair(src, dst)?;
    check_same_dtype(src, dst)?;
    check_job(src, dst, options)
}

/// A destination that may be written, of the source's shape.
pub fn check_pair(src: &Snapshot, dst: &Snapshot) -> Result<()> {
    if dst.flags & DLPACK_FLAG_BITMASK_READ_ONLY != 0 {
        let error = Error::new(DLRS_READ_ONLY).field(DLRS_FIELD_FLAGS);
        return Err(error.value(dst.flags as i64));
    }
    check_same_shape(src, dst)
}

#[inline(never)]
fn check_job(src: &Snapshot, dst: &Snapshot, options: &Options) -> Result<Option<Job>> {
    check_copyable(src, options)?;
    check_copyable(dst, options)?;
    if src.empty {
        return Ok(None);
    }
    let same = same_place(src, dst) && src.slot_bits() == dst.slot_bits();
    let shared = check_memory(src, dst, options.allow_overlap || same)?;
    if same {
        return Ok(None);
    }
    let scratch_nbytes = if shared { Some(dst.nbytes()?) } else { None };
    Ok(Some(Job { plan: plan(src, dst)?, scratch_nbytes }))
}

/// Carries a copy out.
///
/// # Safety
/// `job` was checked, for tensors that are live; `scratch` has at least the bytes it asks for.
pub unsafe fn run(job: &Job, scratch: &Scratch, options: &Options) {
    // SAFETY: every element has an address in memory that the caller vouched for, elements of
    // the destination are distinct, and source and destination do not touch, or go through memory
    // of their own.
    unsafe {
        match scratch.memory() {
            Some(memory) if job.scratch_nbytes.is_some() => through(&job.plan, memory, options),
            _ => cpu::copy(&job.plan, &options.parallel),
        }
    }
}

/// Whether source and destination share memory; refused unless allowed.
#[inline(never)]
pub fn check_memory(src: &Snapshot, dst: &Snapshot, allowed: bool) -> Result<bool> {
    let whole = (src.slot_bits() | dst.slot_bits()).is_multiple_of(8);
    let unit_bits = if whole { 8 } else { 1 };
    let [mut from, mut to] = [[0; MAX_NDIM]; 2];
    let from = strided(src, unit_bits, &mut from)?;
    let to = strided(dst, unit_bits, &mut to)?;
    if !layout::is_contiguous(dst.shape(), dst.strides(), Order::C) {
        match overlap::self_overlap(&to) {
            Verdict::Disjoint => {}
            verdict => {
                return Err(overlap_error(DLRS_OVERLAP_DST, verdict).field(DLRS_FIELD_STRIDES));
            }
        }
    }
    match overlap::pair_overlap(&from, &to) {
        Verdict::Disjoint => Ok(false),
        _ if allowed => Ok(true),
        verdict => Err(overlap_error(DLRS_OVERLAP_SRC_DST, verdict)),
    }
}

fn overlap_error(status: crate::error::Status, verdict: Verdict) -> Error {
    match verdict {
        Verdict::Undecided => {
            Error::new(status).detail("sharing of memory is undecided within bounds, so refused")
        }
        _ => Error::new(status),
    }
}

/// Refuses different shapes.
pub fn check_same_shape(src: &Snapshot, dst: &Snapshot) -> Result<()> {
    let error = Error::new(DLRS_SHAPE_MISMATCH);
    let (from, to) = (src.shape(), dst.shape());
    if from.len() != to.len() {
        let error = error.field(DLRS_FIELD_NDIM).detail("ranks differ");
        return Err(error.value(to.len() as i64).limit(from.len() as i64));
    }
    match from.iter().zip(to).enumerate().find(|(_, (from, to))| from != to) {
        None => Ok(()),
        Some((dim, (&from, &to))) => {
            Err(error.field(DLRS_FIELD_SHAPE).dim(dim).value(to).limit(from))
        }
    }
}

/// Refuses different dtypes; padding apart.
pub fn check_same_dtype(src: &Snapshot, dst: &Snapshot) -> Result<()> {
    let error = Error::new(DLRS_DTYPE_MISMATCH);
    let (from, to) = (src.dtype, dst.dtype);
    for (field, from, to) in [
        (DLRS_FIELD_DTYPE_CODE, i64::from(from.code), i64::from(to.code)),
        (DLRS_FIELD_DTYPE_BITS, from.bits.into(), to.bits.into()),
        (DLRS_FIELD_DTYPE_LANES, from.lanes.into(), to.lanes.into()),
    ] {
        if from != to {
            return Err(error.field(field).value(to).limit(from));
        }
    }
    Ok(())
}

fn check_same_padding(src: &Snapshot, dst: &Snapshot) -> Result<()> {
    if src.slot_bits() == dst.slot_bits() {
        return Ok(());
    }
    let error = Error::new(DLRS_DTYPE_MISMATCH);
    let error = error.field(DLRS_FIELD_FLAGS).detail("one is packed and the other padded");
    Err(error.value((dst.flags & PADDED) as i64).limit((src.flags & PADDED) as i64))
}

/// Whether the elements can be reached and moved by the CPU.
pub fn check_copyable(tensor: &Snapshot, options: &Options) -> Result<()> {
    if tensor.dtype.code == DLDataTypeCode::kDLOpaqueHandle as u8 && !options.raw_bytes {
        let error = Error::new(DLRS_UNSUPPORTED).field(DLRS_FIELD_DTYPE_CODE);
        let error = error.detail("opaque handles are copied only as raw bytes");
        return Err(error.value(tensor.dtype.code.into()));
    }
    if device_type::host_reachable(tensor.device.device_type) {
        return Ok(());
    }
    let error = Error::new(DLRS_DEVICE_TYPE).field(DLRS_FIELD_DEVICE_TYPE);
    let error = error.detail("no backend of this build copies to or from this device");
    Err(error.value(tensor.device.device_type.into()))
}

/// Strides in units of `unit_bits` bits, 0 where the extent is 1.
pub fn unit_strides(tensor: &Snapshot, unit_bits: u32, out: &mut [i64; MAX_NDIM]) -> Result<()> {
    let slots = i64::from(tensor.slot_bits() / unit_bits);
    let pairs = tensor.shape().iter().zip(tensor.strides());
    for (dim, ((&extent, &stride), out)) in pairs.zip(out).enumerate() {
        *out = match stride.checked_mul(slots) {
            _ if extent == 1 => 0,
            Some(stride) => stride,
            None => {
                let error = Error::new(DLRS_EXTENT_OVERFLOW).field(DLRS_FIELD_STRIDES);
                return Err(error.dim(dim).value(stride));
            }
        };
    }
    Ok(())
}

/// The byte plan of two tensors of the same shape and dtype.
pub fn plan(src: &Snapshot, dst: &Snapshot) -> Result<Plan> {
    let slot_bits = dst.slot_bits();
    let same = src.slot_bits() == slot_bits;
    let (item, unit_bits) = if same && slot_bits.is_multiple_of(8) {
        (Item::Bytes(slot_bits as usize / 8), 8)
    } else {
        let width = if same { slot_bits } else { dtype::item_bits(dst.dtype) };
        (Item::Bits { width: width as usize, dst_slot: slot_bits as usize }, 1)
    };
    let mut plan = Plan {
        src: src.first(),
        dst: dst.first(),
        item,
        ndim: src.shape().len().min(MAX_NDIM),
        shape: [1; MAX_NDIM],
        src_strides: [0; MAX_NDIM],
        dst_strides: [0; MAX_NDIM],
    };
    for (to, from) in plan.shape.iter_mut().zip(src.shape()) {
        *to = *from;
    }
    unit_strides(src, unit_bits, &mut plan.src_strides)?;
    unit_strides(dst, unit_bits, &mut plan.dst_strides)?;
    Ok(plan)
}

/// The memory of a tensor, as the overlap decisions want it.
fn strided<'a>(
    tensor: &'a Snapshot,
    unit_bits: u32,
    strides: &'a mut [i64; MAX_NDIM],
) -> Result<Strided<'a>> {
    unit_strides(tensor, unit_bits, strides)?;
    let shape = tensor.shape();
    Ok(Strided {
        base: tensor.first() as i128 * i128::from(8 / unit_bits),
        shape,
        strides: strides.get(..shape.len()).unwrap_or(&[]),
        item: i128::from(tensor.slot_bits() / unit_bits),
    })
}

/// Whether both are the same view of the same memory, so that there is nothing to move.
fn same_place(src: &Snapshot, dst: &Snapshot) -> bool {
    let mut dims = src.shape().iter().zip(src.strides().iter().zip(dst.strides()));
    src.first() == dst.first() && dims.all(|(&extent, (from, to))| extent == 1 || from == to)
}

/// Copies to compact memory and from there.
///
/// # Safety
/// As [`run`]; `memory` has room for the compact elements of the destination.
unsafe fn through(plan: &Plan, memory: NonNull<u8>, options: &Options) {
    let mut compact = [0; MAX_NDIM];
    let shape = plan.shape.get(..plan.ndim).unwrap_or(&[]);
    layout::compact_strides(shape, Order::C, &mut compact);
    let unit = match plan.item {
        Item::Bytes(nbytes) => nbytes as i64,
        Item::Bits { dst_slot, .. } => dst_slot as i64,
    };
    for stride in &mut compact {
        *stride = stride.wrapping_mul(unit);
    }
    let out = Plan { dst: memory.as_ptr(), dst_strides: compact, ..*plan };
    let back = Plan { src: memory.as_ptr(), src_strides: compact, ..*plan };
    // SAFETY: the memory is compact, large enough and shared with nobody.
    unsafe {
        cpu::copy(&out, &options.parallel);
        cpu::copy(&back, &options.parallel);
    }
}

/// A deep copy, dense in `order`: IS_COPIED set, READ_ONLY clear, PADDED kept.
pub fn clone(
    src: &Snapshot,
    order: Order,
    device: DLDevice,
    options: &Options,
) -> Result<Versioned> {
    check_copyable(src, options)?;
    check_target(device)?;
    let strides;
    let dense = order == Order::C && layout::is_contiguous(src.shape(), src.strides(), Order::C);
    let request = Request {
        shape: src.shape(),
        strides: match order {
            Order::C => None,
            order => {
                strides = alloc::strides_for(src.shape(), order, src.strides());
                strides.get(..src.shape().len())
            }
        },
        dtype: src.dtype,
        device,
        flags: src.flags & PADDED | DLPACK_FLAG_BITMASK_IS_COPIED,
        align_bytes: ALIGN_BYTES,
        allocator: None,
    };
    let nbytes = src.nbytes()? as usize;
    let tensor = alloc::new_sized(&request, nbytes)?;
    if src.empty {
        return Ok(tensor);
    }
    if dense && nbytes < DENSE_PLAIN {
        // SAFETY: both are dense, so the elements are `nbytes` bytes from the first on.
        unsafe {
            let data: *mut u8 = (*tensor.as_ptr()).dl_tensor.data.cast();
            data.copy_from_nonoverlapping(src.first(), nbytes);
        }
        return Ok(tensor);
    }
    // SAFETY: a fresh tensor of ours, of the source's shape and element size, all its own.
    let copied = unsafe { copy_into(src, tensor, options) };
    // SAFETY: on failure nobody else has the tensor.
    copied.inspect_err(|_| unsafe { share::release(tensor) })?;
    Ok(tensor)
}

/// # Safety
/// `tensor` is fresh, of ours, with the shape and element size of `src`.
unsafe fn copy_into(src: &Snapshot, tensor: Versioned, options: &Options) -> Result<()> {
    let mut dst = Snapshot::new();
    // SAFETY: the caller's word.
    unsafe { dst.read_managed(tensor.as_ptr(), Rules::RAW)? };
    let plan = plan(src, &dst)?;
    // SAFETY: the source was checked, the destination is fresh.
    unsafe { cpu::copy(&plan, &options.parallel) };
    Ok(())
}

/// Refuses a device to which this build cannot copy.
fn check_target(device: DLDevice) -> Result<()> {
    device_type::check(device)?;
    if device.device_type == DLDeviceType::kDLCPU as i32 {
        return Ok(());
    }
    let error = Error::new(DLRS_DEVICE_TYPE).field(DLRS_FIELD_DEVICE_TYPE);
    let error = error.detail("no backend of this build copies to this device");
    Err(error.value(device.device_type.into()))
}

/// `tensor` itself with one more holder when it is already dense in `order`, else a dense copy.
///
/// # Safety
/// `tensor` is live and `src` was read from it.
pub unsafe fn contiguous(
    src: &Snapshot,
    tensor: Versioned,
    order: Order,
    options: &Options,
) -> Result<Versioned> {
    if layout::is_contiguous(src.shape(), src.strides(), order) {
        // SAFETY: the caller's word.
        return unsafe { share::retain(tensor) };
    }
    let order = if order == Order::A { Order::C } else { order };
    clone(src, order, src.device, options)
}

/// `tensor` on `device`: itself with one more holder where it is, or a copy.
///
/// # Safety
/// `tensor` is live and `src` was read from it.
pub unsafe fn to_device(
    src: &Snapshot,
    tensor: Versioned,
    device: DLDevice,
    policy: CopyPolicy,
    options: &Options,
) -> Result<Versioned> {
    device_type::check(device)?;
    let there = src.device == device;
    match policy {
        // SAFETY: the caller's word.
        CopyPolicy::IfNeeded | CopyPolicy::Never if there => unsafe { share::retain(tensor) },
        CopyPolicy::Never => {
            let error = Error::new(DLRS_COPY_NEEDED).field(DLRS_FIELD_DEVICE_TYPE);
            Err(error.value(src.device.device_type.into()).limit(device.device_type.into()))
        }
        _ => clone(src, Order::C, device, options),
    }
}

/// What an imported tensor must be.
#[derive(Clone, Copy)]
pub struct Import {
    /// What is checked.
    pub rules: Rules,
    /// Alignment of the first element, 0 for any, else a power of two.
    pub align_bytes: usize,
    /// Dense in this order, or any layout.
    pub order: Option<Order>,
    /// The data must be writable.
    pub writable: bool,
    /// Whether a copy may serve what the tensor itself does not.
    pub policy: CopyPolicy,
    /// How it is copied.
    pub options: Options,
}

/// Takes a tensor in: itself when it is ours and as wanted, else boxed, else copied.
///
/// # Safety
/// `tensor` is live; on success the result owns the caller's holder.
pub unsafe fn import(tensor: Versioned, import: &Import) -> Result<Versioned> {
    let mut src = Snapshot::new();
    // SAFETY: the caller's word.
    unsafe { src.read_managed(tensor.as_ptr(), import.rules)? };
    let lacking = lacking(&src, import);
    match (lacking, import.policy) {
        (Some(error), CopyPolicy::Never) => Err(error),
        (None, CopyPolicy::Never | CopyPolicy::IfNeeded) => {
            // SAFETY: the caller's word.
            match unsafe { block::of_versioned(tensor) } {
                Some(_) => Ok(tensor),
                None => convert::box_snapshot(&src, tensor).map(NonNull::cast),
            }
        }
        _ => {
            let order = import.order.unwrap_or(Order::C);
            let order = if order == Order::A { Order::C } else { order };
            let device = DLDevice { device_type: DLDeviceType::kDLCPU as i32, device_id: 0 };
            let copy = clone(&src, order, device, &import.options)?;
            // SAFETY: the copy stands for the caller's holder, which is now given up.
            unsafe { share::release(tensor) };
            Ok(copy)
        }
    }
}

/// The first thing asked for that the tensor itself does not give.
fn lacking(src: &Snapshot, import: &Import) -> Option<Error> {
    let needed = Error::new(DLRS_COPY_NEEDED);
    if import.writable && src.flags & DLPACK_FLAG_BITMASK_READ_ONLY != 0 {
        let error = Error::new(DLRS_READ_ONLY).field(DLRS_FIELD_FLAGS);
        return Some(error.value(src.flags as i64));
    }
    if let Some(order) = import.order
        && !layout::is_contiguous(src.shape(), src.strides(), order)
    {
        return Some(needed.field(DLRS_FIELD_STRIDES).detail("the layout is not dense as asked"));
    }
    if import.align_bytes > 1 {
        return src.check_aligned(import.align_bytes).err();
    }
    None
}

//! Import of a foreign tensor: itself if it is ours and meets the requirements, else boxed, else
//! copied.

use crate::abi::*;
use crate::copy::{
    CopyPolicy, Job, Made, Options, Wanted, begin_clone, check_pointer, host_read, made_here,
};
use crate::device_type::{self, CPU};
use crate::error::{Error, Field::*, Result, Status::*};
use crate::layout::{self, Order};
use crate::tensor::alloc::ALIGN_BYTES;
use crate::tensor::block::Block;
use crate::tensor::{Versioned, block, convert, share};
use crate::validate::limits::Limits;
use crate::validate::{Level, Plain, Rules, Snapshot, check_version, flags_of};

/// Requirements on an imported tensor.
#[derive(Clone, Copy)]
pub struct Import {
    /// The rules of validation.
    pub rules: Rules,
    /// Alignment of the first element, 0 for any, else a power of two.
    pub align_bytes: usize,
    /// Dense in this order, or any layout.
    pub order: Option<Order>,
    /// The device on which it must be, or wherever it is.
    pub device: Option<DLDevice>,
    /// The data must be writable.
    pub writable: bool,
    /// Whether a copy may be made.
    pub policy: CopyPolicy,
    /// How it is copied.
    pub options: Options,
    /// What is accepted at all.
    pub limits: Limits,
}

impl Import {
    /// Any tensor that obeys the rules.
    pub const DEFAULT: Import = Import {
        rules: Rules::of_import(Level::DLRS_LEVEL_STRICT),
        align_bytes: 0,
        order: None,
        device: None,
        writable: false,
        policy: CopyPolicy::IfNeeded,
        options: Options::DEFAULT,
        limits: Limits::NONE,
    };
}

/// Imports a tensor: itself if it is ours and meets the requirements, else boxed, else copied.
///
/// # Safety
/// `tensor` is live; on success the result owns the caller's reference.
#[inline(never)]
pub unsafe fn import(tensor: Versioned, import: &Import) -> Result<Versioned> {
    // SAFETY: `tensor` is live, and its reference goes to the result.
    unsafe { import_here(tensor, import) }
}

/// As [`import`], inlined.
///
/// # Safety
/// As [`import`].
#[inline(always)]
pub unsafe fn import_here(tensor: Versioned, import: &Import) -> Result<Versioned> {
    let mut snapshot = Snapshot::new();
    // SAFETY: `tensor` is live, and its reference goes to the result.
    unsafe {
        snapshot.read_managed(tensor.as_ptr(), import.rules)?;
        import_read(tensor, &mut snapshot, import)
    }
}

/// As [`import`], of a tensor from which `src` was read by the rules of the import.
///
/// # Safety
/// As [`import`].
pub unsafe fn import_read(
    tensor: Versioned,
    src: &mut Snapshot,
    import: &Import,
) -> Result<Versioned> {
    let mut copied = false;
    // SAFETY: `tensor` is live; its reference goes to the result, or is released after a copy.
    unsafe {
        import.limits.check(src, import.device)?;
        let taken = made_here(&import.options, |job| begin(tensor, src, import, &mut copied, job))?;
        if copied {
            share::release(tensor);
        }
        Ok(taken)
    }
}

/// Imports any tensor within rules and limits: itself if it is ours, else boxed.
///
/// # Safety
/// As [`import`].
pub unsafe fn as_is(tensor: Versioned, rules: Rules, limits: &Limits) -> Result<Versioned> {
    // SAFETY: `tensor` is live.
    match unsafe { serves_as_is(tensor, rules, limits) } {
        true => Ok(tensor),
        // SAFETY: `tensor` is live; its reference was not taken yet, and goes to the result.
        false => unsafe { any_as_is(tensor, rules, limits) },
    }
}

/// Whether a tensor is ours, a common one of major 1, and accepted: then nothing is to do.
///
/// # Safety
/// As [`import`].
#[inline(always)]
unsafe fn serves_as_is(tensor: Versioned, rules: Rules, limits: &Limits) -> bool {
    // SAFETY: `tensor` is live; past the check the struct is of major 1.
    unsafe {
        if block::of_versioned(tensor).is_none() || check_version(tensor.as_ptr()).is_err() {
            return false;
        }
        let (place, flags) = (&raw const (*tensor.as_ptr()).dl_tensor, flags_of(tensor.as_ptr()));
        Plain::of(place, flags).is_some_and(|Plain { device, ndim, .. }| {
            let known = device.device_type == CPU.device_type || !rules.driver;
            known && limits.take(device, ndim)
        })
    }
}

/// As [`as_is`], for any tensor.
///
/// # Safety
/// As [`import`].
#[inline(never)]
unsafe fn any_as_is(tensor: Versioned, rules: Rules, limits: &Limits) -> Result<Versioned> {
    let mut src = Snapshot::new();
    // SAFETY: `tensor` is live, and its reference goes to the result.
    unsafe {
        src.read_managed(tensor.as_ptr(), rules)?;
        limits.check(&src, None)?;
        check_pointer(&src, rules)?;
        boxed(&src, tensor)
    }
}

/// The tensor that was read, itself when it is ours, else boxed.
///
/// # Safety
/// As [`import`].
unsafe fn boxed(src: &Snapshot, tensor: Versioned) -> Result<Versioned> {
    // SAFETY: `tensor` is live.
    match unsafe { block::of_versioned(tensor) } {
        Some(_) => Ok(tensor),
        None => convert::box_snapshot(src, tensor).map(Block::versioned),
    }
}

/// The tensor itself, or a copy that is still to be filled.
///
/// # Safety
/// As [`import`].
unsafe fn begin(
    tensor: Versioned,
    src: &mut Snapshot,
    import: &Import,
    copied: &mut bool,
    job: &mut Job,
) -> Result<Made> {
    check_pointer(src, import.rules)?;
    let lacking = lacking(src, import);
    match (lacking, import.policy) {
        (Some(error), CopyPolicy::Never) => Err(error),
        (None, CopyPolicy::Never | CopyPolicy::IfNeeded) => {
            if import.device.is_some_and(|device| device_type::serves_cpu(src.device, device)) {
                host_read(src, &import.options.streams)?;
                src.device = CPU;
                return convert::box_snapshot(src, tensor).map(Block::versioned).map(Made::found);
            }
            // SAFETY: `tensor` is live, and its reference goes to the result.
            unsafe { boxed(src, tensor) }.map(Made::found)
        }
        _ => {
            check_for_copy(src, import)?;
            let order = import.order.unwrap_or(Order::C);
            let order = if order == Order::A { Order::C } else { order };
            // If the CPU can access the data, a copy is on the CPU; else on the same device.
            let host = device_type::host_reachable(src.device.device_type);
            let device = import.device.unwrap_or(if host { CPU } else { src.device });
            *copied = true;
            let align_bytes = import.align_bytes.max(ALIGN_BYTES);
            begin_clone(src, &Wanted { order, device, align_bytes }, &import.options, job)
        }
    }
}

/// Where a copy requires more than the import: elements with addresses, a known dtype and known
/// flags.
fn check_for_copy(src: &mut Snapshot, import: &Import) -> Result<()> {
    let (asked, due) = (import.rules, import.options.rules());
    if (asked.layout || !due.layout) && (asked.known || !due.known) {
        return Ok(());
    }
    src.check(due)
}

/// The first requirement that the tensor does not meet.
fn lacking(src: &Snapshot, import: &Import) -> Option<Error> {
    let needed = Error::new(DLRS_COPY_NEEDED);
    let there = |device| device == src.device || device_type::serves_cpu(src.device, device);
    if let Some(device) = import.device.filter(|&device| !there(device)) {
        let error = needed.field(DLRS_FIELD_DEVICE_TYPE).detail("the tensor is on another device");
        let error = error.value(src.device.device_type.into());
        return Some(error.limit(device.device_type.into()));
    }
    if import.writable && src.flags & DLPACK_FLAG_BITMASK_READ_ONLY != 0 {
        let error = Error::new(DLRS_READ_ONLY).field(DLRS_FIELD_FLAGS);
        return Some(error.value_u64(src.flags));
    }
    if let Some(order) = import.order
        && !layout::is_contiguous(src.shape(), src.strides(), order)
    {
        return Some(
            needed.field(DLRS_FIELD_STRIDES).detail("the layout is not dense as requested"),
        );
    }
    if import.align_bytes > 1 {
        let addressed = src.check_addressed();
        return addressed.and_then(|()| src.check_aligned(import.align_bytes)).err();
    }
    None
}

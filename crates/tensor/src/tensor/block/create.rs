//! Makes blocks: from a description, around memory that a tensor describes, or beside a base.

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::AtomicUsize;

use super::head::{Block, LegacyRest, Owner, delete_legacy, delete_versioned};
use crate::abi::*;
use crate::error::{Error, Field::*, Result, Status::*};
use crate::tensor::chain::Chains;
use crate::validate::{Plain, Rank};
use crate::{dtype, platform};

/// The contents of a new block.
pub struct Spec<'a> {
    /// Extents, at most `MAX_NDIM`, none negative.
    pub shape: &'a [i64],
    /// Strides in elements, one per extent, or `None` for compact row-major.
    pub strides: Option<&'a [i64]>,
    /// Element type.
    pub dtype: DLDataType,
    /// Device of the data.
    pub device: DLDevice,
    /// `DLPACK_FLAG_BITMASK_*`.
    pub flags: u64,
    /// Where the data is.
    pub data: Data,
    /// Its owner.
    pub owner: Owner,
}

/// Where the data of a new block is.
#[derive(Clone, Copy)]
pub enum Data {
    /// Elsewhere: `data` and `byte_offset`.
    At(*mut c_void, u64),
    /// In the block: bytes and alignment (a power of two).
    Inside(usize, usize),
}

fn align_up(address: usize, align_bytes: usize) -> usize {
    address.wrapping_add(align_bytes - 1) & !(align_bytes - 1)
}

/// Allocates a block with one reference. On error no ownership is taken: `spec.owner` still belongs
/// to the caller.
#[inline(never)]
pub fn new(spec: &Spec) -> Result<NonNull<Block>> {
    new_here(spec)
}

/// As [`new`], inlined: for the most frequent callers.
#[inline(always)]
pub fn new_here(spec: &Spec) -> Result<NonNull<Block>> {
    let head = nbytes_of(spec.shape.len());
    let total = match spec.data {
        Data::At(..) | Data::Inside(0, _) => Some(head),
        Data::Inside(nbytes, align_bytes) => head.checked_add(nbytes + (align_bytes - 1)),
    };
    let total = total.filter(|&total| isize::try_from(total).is_ok());
    let Some(memory) = total.and_then(platform::memory) else { return Err(no_memory(total)) };
    let block: NonNull<Block> = memory.cast();
    let (data, byte_offset) = match spec.data {
        Data::At(data, byte_offset) => (data, byte_offset),
        Data::Inside(0, _) => (null_mut(), 0),
        Data::Inside(_, align_bytes) => {
            let start = memory.as_ptr() as usize;
            let at = align_up(start + head, align_bytes) - start;
            // SAFETY: `total` has room for the alignment and the data behind `head`.
            (unsafe { memory.add(at) }.as_ptr().cast(), 0)
        }
    };
    // SAFETY: `memory` is fresh, malloc-aligned, and holds `head` bytes.
    unsafe { write(block, spec, data, byte_offset) };
    Ok(block)
}

/// Memory is exhausted, or the size exceeds the address space.
#[cold]
pub fn no_memory(total: Option<usize>) -> Error {
    match total {
        Some(total) => {
            Error::new(DLRS_NOMEM).value_u64(total as u64).detail("out of memory, bytes")
        }
        None => Error::new(DLRS_SIZE_OVERFLOW).field(DLRS_FIELD_SHAPE),
    }
}

/// As [`sharing`], not inlined.
///
/// # Safety
/// As [`sharing`].
#[inline(never)]
pub unsafe fn shared(spec: &Spec, base: NonNull<Block>) -> Result<NonNull<Block>> {
    // SAFETY: `base` is a live block.
    unsafe { sharing(spec, base) }
}

/// As [`new`], for a block whose owner is `base`: it gets its own reference to `base`.
///
/// # Safety
/// `base` is live.
#[inline(always)]
pub unsafe fn sharing(spec: &Spec, base: NonNull<Block>) -> Result<NonNull<Block>> {
    let block = new_here(spec)?;
    // SAFETY: `base` is a live block.
    match unsafe { base.as_ref() }.hold() {
        Ok(()) => Ok(block),
        Err(error) => {
            // SAFETY: nobody else has seen the block; only its memory goes, for it holds nothing.
            unsafe { platform::give_back(block.cast()) };
            Err(error)
        }
    }
}

/// # Safety
/// `block` has room for a block and two arrays of `spec.shape.len()` values behind it.
#[inline(always)]
unsafe fn write(block: NonNull<Block>, spec: &Spec, data: *mut c_void, byte_offset: u64) {
    let ndim = spec.shape.len();
    // SAFETY: the arrays stand right behind the block, whose size is a multiple of 8; all lies in
    // the room of `block`, which nobody else has seen yet.
    unsafe {
        let shape = block.add(1).cast::<i64>();
        let strides = shape.add(ndim);
        match spec.strides {
            // In one loop: for so few values a call of memcpy is slower.
            Some(from) => {
                for (dim, (&extent, &stride)) in spec.shape.iter().zip(from).enumerate() {
                    shape.add(dim).write(extent);
                    strides.add(dim).write(stride);
                }
            }
            None => {
                // As `layout::compact_strides`, which needs initialised memory to write to.
                let mut step: i64 = 1;
                for (back, &extent) in spec.shape.iter().rev().enumerate() {
                    let dim = ndim - 1 - back;
                    shape.add(dim).write(extent);
                    strides.add(dim).write(step);
                    step = step.saturating_mul(extent.max(1));
                }
            }
        }
        // A 0-d tensor has no arrays, as consumers expect.
        let array = |at: NonNull<i64>| if ndim == 0 { null_mut() } else { at.as_ptr() };
        let dl_tensor = DLTensor {
            data,
            device: spec.device,
            ndim: ndim as i32,
            dtype: spec.dtype,
            shape: array(shape),
            strides: array(strides),
            byte_offset,
        };
        (&raw mut (*Block::versioned(block).as_ptr()).dl_tensor).write(dl_tensor);
        write_rest(block, dtype::flags_of(spec.dtype, spec.flags), spec.owner);
    }
}

/// All of a block except its DLTensor. `manager_ctx` only must not be NULL: consumers may have
/// written to it, so only `of_itself` reads it.
///
/// # Safety
/// `block` has room for a block.
#[inline(always)]
unsafe fn write_rest(block: NonNull<Block>, flags: u64, owner: Owner) {
    const VERSION: DLPackVersion =
        DLPackVersion { major: DLPACK_MAJOR_VERSION, minor: DLPACK_MINOR_VERSION };
    let (at, manager_ctx) = (block.as_ptr(), block.as_ptr().cast());
    // SAFETY: `at` has room for a block, which nobody else has seen yet.
    unsafe {
        let managed: *mut DLManagedTensorVersioned = at.cast();
        (&raw mut (*managed).version).write(VERSION);
        (&raw mut (*managed).manager_ctx).write(manager_ctx);
        (&raw mut (*managed).deleter).write(Some(delete_versioned));
        (&raw mut (*managed).flags).write(flags);
        (&raw mut (*at).legacy).write(LegacyRest { manager_ctx, deleter: Some(delete_legacy) });
        (&raw mut (*at).references).write(AtomicUsize::new(1));
        (&raw mut (*at).chains).write(Chains::new());
        (&raw mut (*at).owner).write(owner);
    }
}

/// Why [`around`] made no block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The tensor is not a common one.
    Unusual,
    /// There was no memory.
    NoMemory,
}

/// A block around the memory that `tensor` describes, if that is a common one ([`Plain`]): extents
/// and strides are written directly to the block. Else the owner still belongs to the caller.
///
/// # Safety
/// As [`Snapshot::read`](crate::validate::Snapshot::read).
#[inline(always)]
pub unsafe fn around(
    tensor: *const DLTensor,
    flags: u64,
    owner: Owner,
) -> core::result::Result<NonNull<Block>, Left> {
    // SAFETY: `tensor` points to a readable `DLTensor`.
    let rank = unsafe { Plain::rank(tensor) }.ok_or(Left::Unusual)?;
    let memory = platform::memory(nbytes_of(rank.ndim())).ok_or(Left::NoMemory)?;
    let block: NonNull<Block> = memory.cast();
    // SAFETY: fresh memory, malloc-aligned, with room for a block and its arrays.
    unsafe {
        write_rest(block, flags, owner);
        if describe(block, tensor, rank, flags) {
            return Ok(block);
        }
        platform::give_back(block.cast());
    }
    Err(Left::Unusual)
}

/// Writes a common tensor's values into the block; returns whether it is one.
///
/// # Safety
/// As [`around`]; `block` has room for a block and two arrays behind it.
#[inline(always)]
unsafe fn describe(block: NonNull<Block>, tensor: *const DLTensor, rank: Rank, flags: u64) -> bool {
    // SAFETY: `tensor`, its shape and its strides are readable; `block` has room for two such
    // arrays behind it.
    unsafe {
        let Some(plain) = Plain::head(tensor, rank, flags) else { return false };
        let shape = block.add(1).cast::<i64>().as_ptr();
        let strides = shape.add(rank.ndim());
        let Plain { data, byte_offset, device, dtype, .. } = plain;
        let ndim = rank.ndim() as i32;
        let dl_tensor = DLTensor { data, device, ndim, dtype, shape, strides, byte_offset };
        let managed = Block::versioned(block).as_ptr();
        (&raw mut (*managed).dl_tensor).write(dl_tensor);
        (&raw mut (*managed).flags).write(dtype::flags_of(dtype, flags));
        let put = |dim, extent, stride| {
            shape.add(dim).write(extent);
            strides.add(dim).write(stride);
        };
        plain.arrays(put).is_some()
    }
}

/// Bytes of a block and its arrays, of at most `MAX_NDIM` values each.
#[inline(always)]
pub fn nbytes_of(ndim: usize) -> usize {
    size_of::<Block>() + ndim * 2 * size_of::<i64>()
}

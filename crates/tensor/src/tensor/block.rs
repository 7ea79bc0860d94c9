//! The block: one allocation with a versioned and a legacy struct.
//!
//! Every block has both structs, so converting one of our tensors to the other kind neither
//! allocates nor can fail. They overlap: the versioned one ends with the DLTensor with which the
//! legacy one begins. Each pointer returned, of either kind, is one reference; the last deleter
//! call frees. Freeing walks from wrapper to base in a loop, never by recursion, so a chain of a
//! million wrappers needs no stack. No lock is held while a caller's callback runs.

mod release;

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::mem::offset_of;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

use super::chain::{Callback, Chains};
use super::{Legacy, Versioned};
use crate::abi::*;
use crate::error::{Error, Field::*, Result, Status::*};
use crate::validate::{Plain, Rank};
use crate::{dtype, platform};

pub use release::{drop_reference, drop_reference_by, release, release_legacy};

/// Frees borrowed memory: called with the context given, exactly once, on any thread.
#[allow(non_camel_case_types)]
pub type dlrs_free_fn = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// The owner of the data, and how it is freed with the last reference.
#[derive(Clone, Copy)]
pub enum Owner {
    /// The data is in the block, or there is none, or it is only borrowed.
    Block,
    /// The caller: `free(context)`.
    Callback(dlrs_free_fn, *mut c_void),
    /// A user's allocator.
    Allocator(Allocation),
    /// An object of a runtime.
    Object(Kept),
    /// A versioned tensor, ours or foreign.
    Versioned(Versioned),
    /// A legacy tensor, foreign (ours never needs a wrapper).
    Legacy(Legacy),
}

/// Data from a user's allocator, with the arguments of its `free`.
#[derive(Clone, Copy)]
pub struct Allocation {
    /// The allocator's `free`.
    pub free: unsafe extern "C" fn(*mut c_void, *mut c_void, u64, u64, DLDevice),
    /// The allocator's context.
    pub context: *mut c_void,
    /// The memory.
    pub data: *mut c_void,
    /// The requested size.
    pub nbytes: u64,
    /// The requested alignment.
    pub align_bytes: u64,
    /// The requested device.
    pub device: DLDevice,
}

/// An object that keeps the data, and its runtime, which may be gone before the block is.
#[derive(Clone, Copy)]
pub struct Kept {
    /// Releases the reference: `free(object, runtime)`.
    pub free: unsafe fn(*mut c_void, *const c_void),
    /// The object, an own reference of the block.
    pub object: *mut c_void,
    /// The runtime's record.
    pub runtime: *const c_void,
}

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

/// See the module's comment. `managed` is first: its address is the block's.
#[repr(C)]
pub struct Block {
    managed: UnsafeCell<DLManagedTensorVersioned>,
    legacy: LegacyRest,
    references: AtomicUsize,
    chains: Chains,
    owner: Owner,
    // Extents, strides and data follow.
}

/// The members of a legacy struct after its DLTensor.
#[repr(C)]
struct LegacyRest {
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// The offset of the legacy struct: its members are at those of a `DLManagedTensor`.
const LEGACY: usize = offset_of!(DLManagedTensorVersioned, dl_tensor);
const _: () = {
    let (rest, of) = (offset_of!(Block, legacy) - LEGACY, offset_of!(DLManagedTensor, manager_ctx));
    assert!(rest == of && LEGACY.is_multiple_of(align_of::<DLManagedTensor>()));
    let deleter = offset_of!(DLManagedTensor, deleter) - of;
    assert!(offset_of!(LegacyRest, deleter) == deleter);
};

/// The limit of the reference count, so that it can never wrap.
const REFERENCES_MAX: usize = isize::MAX as usize;

// Tensors are recognised by the addresses of these two: each must be one function, with one
// address.
#[inline(never)]
unsafe extern "C" fn delete_versioned(tensor: *mut DLManagedTensorVersioned) {
    if !tensor.is_null() {
        // SAFETY: this deleter stands only in structs at the head of a live block.
        unsafe { drop_reference(tensor.cast()) }
    }
}

#[inline(never)]
unsafe extern "C" fn delete_legacy(tensor: *mut DLManagedTensor) {
    if !tensor.is_null() {
        // SAFETY: this deleter stands only in the legacy struct of a live block.
        unsafe { drop_reference(tensor.byte_sub(LEGACY).cast()) }
    }
}

/// The block of a versioned tensor, when it is ours.
///
/// # Safety
/// `tensor` points to a live versioned struct of any major.
#[inline]
pub unsafe fn of_versioned(tensor: Versioned) -> Option<NonNull<Block>> {
    // SAFETY: the place of `deleter` is the same in every major; nothing else is read.
    let deleter = unsafe { (&raw const (*tensor.as_ptr()).deleter).read() };
    (deleter.map(|f| f as usize) == Some(delete_versioned as *const () as usize))
        .then(|| tensor.cast())
}

/// As [`of_versioned`], where the struct may be a copy at another address, such as on a stack: that
/// is in no block.
///
/// # Safety
/// As [`of_versioned`], of major 1.
#[inline]
pub unsafe fn of_itself(tensor: Versioned) -> Option<NonNull<Block>> {
    // SAFETY: `tensor` is a live struct of major 1, so `manager_ctx` is at its place.
    let context = unsafe { (&raw const (*tensor.as_ptr()).manager_ctx).read() };
    // SAFETY: `tensor` is a live struct.
    unsafe { of_versioned(tensor) }.filter(|block| block.as_ptr().cast() == context)
}

/// The block of a legacy tensor, when it is ours.
///
/// # Safety
/// `tensor` points to a live legacy struct.
#[inline]
pub unsafe fn of_legacy(tensor: Legacy) -> Option<NonNull<Block>> {
    // SAFETY: `tensor` is a live legacy struct.
    let deleter = unsafe { (&raw const (*tensor.as_ptr()).deleter).read() };
    if deleter.map(|f| f as usize) != Some(delete_legacy as *const () as usize) {
        return None;
    }
    // SAFETY: with this deleter the struct is the legacy one of a block.
    Some(unsafe { tensor.byte_sub(LEGACY) }.cast())
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

/// Writes extents and strides after the block, and returns their addresses. A 0-d tensor has none:
/// NULL, as consumers expect.
///
/// # Safety
/// `block` has room for a block and two arrays of `spec.shape.len()` values behind it.
#[inline(always)]
unsafe fn write_arrays(block: NonNull<Block>, spec: &Spec) -> (*mut i64, *mut i64) {
    let ndim = spec.shape.len();
    if ndim == 0 {
        return (null_mut(), null_mut());
    }
    // SAFETY: the arrays stand right behind the block, whose size is a multiple of 8; both lie in
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
        (shape.as_ptr(), strides.as_ptr())
    }
}

/// # Safety
/// As [`write_arrays`].
#[inline(always)]
unsafe fn write(block: NonNull<Block>, spec: &Spec, data: *mut c_void, byte_offset: u64) {
    // SAFETY: `block` has room for a block and two arrays of `spec.shape.len()` values behind it.
    let (shape, strides) = unsafe { write_arrays(block, spec) };
    let dl_tensor = DLTensor {
        data,
        device: spec.device,
        ndim: spec.shape.len() as i32,
        dtype: spec.dtype,
        shape,
        strides,
        byte_offset,
    };
    // SAFETY: `block` has room for a block, which nobody else has seen yet.
    unsafe {
        (&raw mut (*Block::versioned(block).as_ptr()).dl_tensor).write(dl_tensor);
        write_rest(block, dtype::flags_of(spec.dtype, spec.flags), spec.owner);
    }
}

/// All of a block except its DLTensor. `manager_ctx` only must not be NULL: consumers may have
/// written to it, so only [`of_itself`] reads it.
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

/// The last reference has been released: a callback can neither share nor give away the tensor.
#[cold]
pub fn dying() -> Error {
    const DYING: &str = "the last reference has been released, and the tensor is being freed\0\
                         Take a reference before the last one is released.";
    Error::new(DLRS_REFCOUNT).detail(DYING)
}

/// Bytes of a block and its arrays, of at most `MAX_NDIM` values each.
#[inline(always)]
pub fn nbytes_of(ndim: usize) -> usize {
    size_of::<Block>() + ndim * 2 * size_of::<i64>()
}

impl Block {
    /// The versioned struct; it takes the caller's reference.
    #[inline]
    pub fn versioned(block: NonNull<Block>) -> Versioned {
        block.cast()
    }

    /// The legacy struct; it takes the caller's reference.
    #[inline]
    pub fn legacy(block: NonNull<Block>) -> Legacy {
        // SAFETY: `block` points to a block, which is larger.
        unsafe { block.byte_add(LEGACY) }.cast()
    }

    /// The flags, which owners on several threads may read and change.
    #[inline]
    pub fn flags(&self) -> &AtomicU64 {
        // SAFETY: an aligned u64 inside the block; every access of ours is atomic.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.managed.get()).flags) }
    }

    /// The reference count.
    #[inline]
    pub fn references(&self) -> usize {
        self.references.load(Acquire)
    }

    /// Adds a reference. A shared tensor is not solely owned, so IS_COPIED is cleared.
    #[inline]
    pub fn hold(&self) -> Result<()> {
        if self.hold_usual() {
            return Ok(());
        }
        let error = Error::new(DLRS_REFCOUNT);
        match self.references() {
            0 => Err(dying()),
            references => {
                let error = error.detail("too many references").value(references as i64);
                Err(error.limit(REFERENCES_MAX as i64))
            }
        }
    }

    /// As [`Block::hold`]; false, and nothing is modified, where that fails.
    #[inline(always)]
    pub fn hold_usual(&self) -> bool {
        // One comparison checks both limits: a callback of a block that is being freed has no
        // reference to share, and 0 references stay 0. Several threads may exceed the other limit
        // together; it has room for them.
        if self.references.load(Relaxed).wrapping_sub(1) >= REFERENCES_MAX - 1 {
            return false;
        }
        // Relaxed, as in every reference count: the caller's own reference keeps the block alive.
        self.references.fetch_add(1, Relaxed);
        if self.flags().load(Relaxed) & DLPACK_FLAG_BITMASK_IS_COPIED != 0 {
            self.flags().fetch_and(!DLPACK_FLAG_BITMASK_IS_COPIED, Relaxed);
        }
        true
    }

    /// The owner of the data.
    #[inline]
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// The callbacks that run with the last reference.
    #[inline]
    pub fn chains(&self) -> &Chains {
        &self.chains
    }

    /// [`Chains::attach`].
    #[inline]
    pub fn attach(&self, after: bool, callback: Callback, context: *mut c_void) -> Result<()> {
        self.chains.attach(self.references() == 0, after, callback, context)
    }

    /// Sets the reference count: for the test of its limit only.
    #[doc(hidden)]
    pub fn set_references(&self, references: usize) {
        self.references.store(references, Relaxed);
    }
}

//! The block: one allocation that answers as a versioned and as a legacy tensor.
//!
//! Both structs stand in every block, so turning one of our tensors into the other kind neither
//! allocates nor can fail. Each pointer handed out, of either kind, is one holder; the last
//! deleter call frees. Freeing walks from wrapper to base in a loop, never by recursion, so a
//! chain of a million wrappers needs no stack. No lock is held while a caller's callback runs.

use core::ffi::c_void;
use core::mem::offset_of;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};

use super::chain::{self, Link};
use super::{Legacy, Versioned};
use crate::abi::*;
use crate::error::{Error, Field::*, Result, Status::*};
use crate::platform;
use crate::validate::{Plain, Rules, Snapshot, check_flags};

/// Frees what a caller lent: called with the context given, exactly once, on any thread.
#[allow(non_camel_case_types)]
pub type dlrs_free_fn = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// Whom the data belongs to, and how it is given back when the last holder goes.
#[derive(Clone, Copy)]
pub enum Owner {
    /// The data lies in the block, or there is none, or it is only borrowed.
    Block,
    /// The caller: `free(context)`.
    Callback(dlrs_free_fn, *mut c_void),
    /// A user's allocator.
    Allocator(Allocation),
    /// A versioned tensor, ours or foreign.
    Versioned(Versioned),
    /// A legacy tensor, foreign (ours never needs a wrapper).
    Legacy(Legacy),
}

/// Data from a user's allocator, with all that its `free` wants to know.
#[derive(Clone, Copy)]
pub struct Allocation {
    /// The allocator's `free`.
    pub free: unsafe extern "C" fn(*mut c_void, *mut c_void, u64, u64, DLDevice),
    /// The allocator's context.
    pub context: *mut c_void,
    /// What it gave.
    pub data: *mut c_void,
    /// How much was asked for.
    pub nbytes: u64,
    /// The alignment asked for.
    pub align_bytes: u64,
    /// The device asked for.
    pub device: DLDevice,
}

/// What a new block is to say.
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
    /// Whom it belongs to.
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
    managed: DLManagedTensorVersioned,
    legacy: DLManagedTensor,
    holders: AtomicUsize,
    before: AtomicPtr<Link>,
    after: AtomicPtr<Link>,
    user_data: AtomicPtr<c_void>,
    owner: Owner,
    // Extents, strides and data follow.
}

/// Holders beyond this are refused, so that the count can never wrap.
const HOLDERS_MAX: usize = isize::MAX as usize;

unsafe extern "C" fn delete_versioned(tensor: *mut DLManagedTensorVersioned) {
    if !tensor.is_null() {
        // SAFETY: this deleter stands only in structs at the head of a live block.
        unsafe { drop_holder(tensor.cast()) }
    }
}

unsafe extern "C" fn delete_legacy(tensor: *mut DLManagedTensor) {
    if !tensor.is_null() {
        // SAFETY: this deleter stands only in the `legacy` member of a live block.
        unsafe { drop_holder(tensor.byte_sub(offset_of!(Block, legacy)).cast()) }
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

/// The block of a legacy tensor, when it is ours.
///
/// # Safety
/// `tensor` points to a live legacy struct.
#[inline]
pub unsafe fn of_legacy(tensor: Legacy) -> Option<NonNull<Block>> {
    // SAFETY: the caller's word.
    let deleter = unsafe { (&raw const (*tensor.as_ptr()).deleter).read() };
    if deleter.map(|f| f as usize) != Some(delete_legacy as *const () as usize) {
        return None;
    }
    // SAFETY: with this deleter the struct is the `legacy` member of a block.
    Some(unsafe { tensor.byte_sub(offset_of!(Block, legacy)) }.cast())
}

fn align_up(address: usize, align_bytes: usize) -> usize {
    address.wrapping_add(align_bytes - 1) & !(align_bytes - 1)
}

/// Makes a block with one holder. Nothing is taken on error: `spec.owner` still belongs to the
/// caller.
#[inline(never)]
pub fn new(spec: &Spec) -> Result<NonNull<Block>> {
    new_here(spec)
}

/// As [`new`], compiled into its caller: for what is called most.
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

#[cold]
fn no_memory(total: Option<usize>) -> Error {
    match total {
        Some(total) => Error::new(DLRS_NOMEM).value(total as i64).detail("out of memory, bytes"),
        None => Error::new(DLRS_SIZE_OVERFLOW).field(DLRS_FIELD_SHAPE),
    }
}

/// As [`new`], for a block whose owner is `base`: it gets a holder of `base` of its own.
///
/// # Safety
/// `base` is live.
#[inline(always)]
pub unsafe fn sharing(spec: &Spec, base: NonNull<Block>) -> Result<NonNull<Block>> {
    let block = new_here(spec)?;
    // SAFETY: the caller's word.
    match unsafe { base.as_ref() }.hold() {
        Ok(()) => Ok(block),
        Err(error) => {
            // SAFETY: nobody else has seen the block; only its memory goes, for it holds nothing.
            unsafe { platform::give_back(block.cast()) };
            Err(error)
        }
    }
}

/// Writes extents and strides behind the block, and returns where they are. A 0-d tensor has none:
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
    // the caller's room, and nobody else has seen it yet.
    unsafe {
        let shape = block.add(1).cast::<i64>();
        let strides = shape.add(ndim);
        match spec.strides {
            // In one loop: for so few values a call of memcpy costs more than it does.
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
    // SAFETY: the caller's word.
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
    // SAFETY: the caller's word.
    unsafe { write_head(block, dl_tensor, spec.flags, spec.owner) };
}

/// # Safety
/// `block` has room for a block.
#[inline(always)]
unsafe fn write_head(block: NonNull<Block>, dl_tensor: DLTensor, flags: u64, owner: Owner) {
    let manager_ctx = block.as_ptr().cast();
    let managed = DLManagedTensorVersioned {
        version: DLPackVersion { major: DLPACK_MAJOR_VERSION, minor: DLPACK_MINOR_VERSION },
        manager_ctx,
        deleter: Some(delete_versioned),
        flags,
        dl_tensor,
    };
    let legacy = DLManagedTensor { dl_tensor, manager_ctx, deleter: Some(delete_legacy) };
    let holders = AtomicUsize::new(1);
    let (before, after) = (AtomicPtr::new(null_mut()), AtomicPtr::new(null_mut()));
    let user_data = AtomicPtr::new(null_mut());
    // SAFETY: room for a block, by the contract.
    unsafe { block.write(Block { managed, legacy, holders, before, after, user_data, owner }) };
}

/// A block around the memory that `tensor` describes, when that is a usual one ([`Plain`]): extents
/// and strides go straight into the block. `None` for any other, which takes the way through a
/// snapshot, by these `rules`. On error and with `None` the owner still belongs to the caller. The
/// owner is made where it is written: a way through memory would cost as much as all the rest.
///
/// # Safety
/// As [`Snapshot::read`].
#[inline(always)]
pub unsafe fn around(
    tensor: *const DLTensor,
    flags: u64,
    owner: impl FnOnce() -> Owner,
    rules: Rules,
) -> Result<Option<NonNull<Block>>> {
    // SAFETY: the caller's word, as for all that is read of the tensor.
    let Some(ndim) = (unsafe { Plain::ndim(tensor) }) else { return Ok(None) };
    let Some(memory) = platform::memory(nbytes_of(ndim)) else {
        // SAFETY: as above.
        return Err(unsafe { unserved(tensor, ndim, flags, rules) });
    };
    let block: NonNull<Block> = memory.cast();
    // SAFETY: as above; `memory` is fresh, malloc-aligned, and has room for the arrays.
    let Some(dl_tensor) = (unsafe { describe(block, tensor, ndim, flags) }) else {
        // SAFETY: it holds nothing yet.
        unsafe { platform::give_back(memory) };
        return Ok(None);
    };
    // SAFETY: as above.
    unsafe { write_head(block, dl_tensor, flags, owner()) };
    Ok(Some(block))
}

/// What the block says about a usual tensor, whose arrays are written behind it.
///
/// # Safety
/// As [`around`]; `block` has room for a block and two arrays of `ndim` values behind it.
#[inline(always)]
unsafe fn describe(
    block: NonNull<Block>,
    tensor: *const DLTensor,
    ndim: usize,
    flags: u64,
) -> Option<DLTensor> {
    // SAFETY: the caller's word.
    unsafe {
        let plain = Plain::head(tensor, ndim, flags)?;
        let shape = block.add(1).cast::<i64>();
        let strides = shape.add(ndim);
        plain.arrays(|dim, extent, stride| {
            shape.add(dim).write(extent);
            strides.add(dim).write(stride);
        })?;
        let (shape, strides) = (shape.as_ptr(), strides.as_ptr());
        let Plain { data, byte_offset, device, dtype, .. } = plain;
        Some(DLTensor { data, device, ndim: ndim as i32, dtype, shape, strides, byte_offset })
    }
}

/// What is wrong with the tensor comes before want of memory.
///
/// # Safety
/// As [`around`].
#[cold]
#[inline(never)]
unsafe fn unserved(tensor: *const DLTensor, ndim: usize, flags: u64, rules: Rules) -> Error {
    let mut snapshot = Snapshot::new();
    // SAFETY: the caller's word.
    let checked = check_flags(flags).and_then(|()| unsafe { snapshot.read(tensor, flags, rules) });
    checked.err().unwrap_or(no_memory(Some(nbytes_of(ndim))))
}

/// Bytes of a block and its arrays, of at most `MAX_NDIM` values each.
#[inline(always)]
fn nbytes_of(ndim: usize) -> usize {
    size_of::<Block>() + ndim * 2 * size_of::<i64>()
}

impl Block {
    /// The versioned struct; the caller passes on the one holder it has.
    #[inline]
    pub fn versioned(block: NonNull<Block>) -> Versioned {
        block.cast()
    }

    /// The legacy struct; the caller passes on the one holder it has.
    #[inline]
    pub fn legacy(block: NonNull<Block>) -> Legacy {
        // SAFETY: `block` points to a block, `legacy` is a member of it.
        unsafe { block.byte_add(offset_of!(Block, legacy)) }.cast()
    }

    /// The flags, which holders on several threads may read and change.
    #[inline]
    pub fn flags(&self) -> &AtomicU64 {
        // SAFETY: an aligned u64 inside the block; every access of ours is atomic.
        unsafe { AtomicU64::from_ptr((&raw const self.managed.flags).cast_mut()) }
    }

    /// How many holders there are.
    #[inline]
    pub fn holders(&self) -> usize {
        self.holders.load(Acquire)
    }

    /// Adds a holder. What is shared is no longer a copy that one consumer alone owns, so
    /// IS_COPIED is cleared.
    #[inline]
    pub fn hold(&self) -> Result<()> {
        // Relaxed, as in every reference count: the caller's own holder keeps the block alive.
        let holders = self.holders.fetch_add(1, Relaxed);
        if holders >= HOLDERS_MAX {
            self.holders.fetch_sub(1, Relaxed);
            let error = Error::new(DLRS_REFCOUNT).detail("too many holders");
            return Err(error.value(holders as i64).limit(HOLDERS_MAX as i64));
        }
        if self.flags().load(Relaxed) & DLPACK_FLAG_BITMASK_IS_COPIED != 0 {
            self.flags().fetch_and(!DLPACK_FLAG_BITMASK_IS_COPIED, Relaxed);
        }
        Ok(())
    }

    /// Whose data it is.
    #[inline]
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// The caller's own pointer, which we only keep.
    #[inline]
    pub fn user_data(&self) -> &AtomicPtr<c_void> {
        &self.user_data
    }

    /// The list of callbacks that run before the data is freed, or after.
    #[inline]
    pub fn links(&self, after: bool) -> &AtomicPtr<Link> {
        if after { &self.after } else { &self.before }
    }

    /// Sets the number of holders: for the test of its limit only.
    #[doc(hidden)]
    pub fn set_holders(&self, holders: usize) {
        self.holders.store(holders, Relaxed);
    }
}

/// Gives up one holder; the last one runs the callbacks and frees.
///
/// # Safety
/// The caller has one holder of a live block and does not use it again.
#[inline(always)]
unsafe fn drop_holder(block: *mut Block) {
    // SAFETY: the holder that is given up keeps the block alive until here.
    if !unsafe { leave(&(*block).holders) } {
        return;
    }
    // SAFETY: nobody else holds the block any more. A callback may still attach others.
    let after = unsafe {
        chain::run((*block).before.load(Relaxed));
        (*block).after.load(Relaxed)
    };
    if !after.is_null() {
        // SAFETY: as above.
        return unsafe { drop_last(block) };
    }
    // As `drop_last`, with nothing to do afterwards.
    // SAFETY: the owner's holder was this block's; the block came from `platform::memory`, and is
    // not used again.
    let base = unsafe {
        let base = free_owner(&(*block).owner);
        platform::give_back(NonNull::new_unchecked(block.cast()));
        base
    };
    if let Some(base) = base {
        // SAFETY: this block's holder of it is given up.
        unsafe { drop_base(base) }
    }
}

/// Gives up a wrapper's holder of its base.
///
/// # Safety
/// As [`drop_holder`].
#[inline(never)]
unsafe fn drop_base(base: NonNull<Block>) {
    // SAFETY: the caller's word.
    unsafe {
        if leave(&base.as_ref().holders) {
            chain::run(base.as_ref().before.load(Relaxed));
            drop_last(base.as_ptr());
        }
    }
}

/// Frees, from wrapper to base, and runs the callbacks that are left.
///
/// # Safety
/// The last holder of the block has gone, and its first callbacks have run.
#[inline(never)]
unsafe fn drop_last(block: *mut Block) {
    let mut block = block;
    let mut after: *mut Link = null_mut();
    loop {
        // SAFETY: nobody else holds the block any more; both lists are ours alone now.
        after = unsafe { chain::join((*block).after.load(Relaxed), after) };
        // The block goes after its owner: a `free` that calls this tensor's deleter again finds 0
        // holders and is ignored.
        // SAFETY: the owner's holder was this block's.
        let base = unsafe { free_owner(&(*block).owner) };
        // SAFETY: the block came from `platform::memory`, and `block` is not used again.
        unsafe { platform::give_back(NonNull::new_unchecked(block.cast())) };
        match base {
            // SAFETY: this block's holder of it is given up.
            Some(base) if unsafe { leave(&base.as_ref().holders) } => block = base.as_ptr(),
            _ => break,
        }
        // SAFETY: as above.
        unsafe { chain::run((*block).before.load(Relaxed)) };
    }
    // SAFETY: these links belonged to blocks that are gone.
    unsafe { chain::run(after) };
}

/// Whether the caller was the last holder. A sole holder needs no read-modify-write. 0 holders
/// means that a callback of this very tensor is calling its deleter: that is ignored.
#[inline]
fn leave(holders: &AtomicUsize) -> bool {
    // Acquire: what other holders did with the data happens before it is freed.
    match holders.load(Acquire) {
        0 => false,
        1 => {
            holders.store(0, Relaxed);
            true
        }
        _ => holders.fetch_sub(1, AcqRel) == 1,
    }
}

/// Gives the data back; returns the base instead when it is a block of ours, for the loop.
#[inline]
unsafe fn free_owner(owner: &Owner) -> Option<NonNull<Block>> {
    // SAFETY: each owner was given to the block to be called once, when the last holder goes.
    unsafe {
        match *owner {
            Owner::Block | Owner::Callback(None, _) => {}
            Owner::Callback(Some(free), context) => free(context),
            Owner::Allocator(a) => (a.free)(a.context, a.data, a.nbytes, a.align_bytes, a.device),
            Owner::Versioned(base) => match of_versioned(base) {
                Some(block) => return Some(block),
                None => super::share::release(base),
            },
            Owner::Legacy(base) => match of_legacy(base) {
                Some(block) => return Some(block),
                None => super::share::release_legacy(base),
            },
        }
    }
    None
}

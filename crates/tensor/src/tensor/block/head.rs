//! What a block is, and the references to it.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::mem::offset_of;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

use super::release::drop_reference;
use crate::abi::*;
use crate::error::{Error, Result, Status::*};
use crate::tensor::chain::{Callback, Chains};
use crate::tensor::{Legacy, Versioned};

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

impl Allocation {
    /// Frees the memory.
    ///
    /// # Safety
    /// Called once, and nothing uses the memory any more.
    pub unsafe fn give_back(&self) {
        let &Allocation { context, data, nbytes, align_bytes, device, .. } = self;
        // SAFETY: what the allocator returned for the same values.
        unsafe { (self.free)(context, data, nbytes, align_bytes, device) }
    }
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

/// Both structs and what belongs to them. `managed` is first: its address is the block's.
#[repr(C)]
pub struct Block {
    managed: UnsafeCell<DLManagedTensorVersioned>,
    pub(super) legacy: LegacyRest,
    pub(super) references: AtomicUsize,
    pub(super) chains: Chains,
    pub(super) owner: Owner,
    // Extents, strides and data follow.
}

/// The members of a legacy struct after its DLTensor.
#[repr(C)]
pub(super) struct LegacyRest {
    pub(super) manager_ctx: *mut c_void,
    pub(super) deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
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
pub(super) unsafe extern "C" fn delete_versioned(tensor: *mut DLManagedTensorVersioned) {
    if !tensor.is_null() {
        // SAFETY: this deleter stands only in structs at the head of a live block.
        unsafe { drop_reference(tensor.cast()) }
    }
}

#[inline(never)]
pub(super) unsafe extern "C" fn delete_legacy(tensor: *mut DLManagedTensor) {
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

/// The last reference has been released: a callback can neither share nor give away the tensor.
#[cold]
pub fn dying() -> Error {
    const DYING: &str = "the last reference has been released, and the tensor is being freed\0\
                         Take a reference before the last one is released.";
    Error::new(DLRS_REFCOUNT).detail(DYING)
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

//! The `Tensor` object: it holds one holder of a tensor, and no reference to a Python object but
//! its type. So there is nothing for the garbage collector to visit.
//!
//! The tensor is a foreign one as it was taken in, until somebody wants to share it: then it is put
//! in a block of ours. Most tensors that pass through are only looked at, and cost no block.

use core::ffi::c_void;
use core::mem::offset_of;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering::*};

use super::failure::{Answer, made};
use crate::abi::{DLManagedTensorVersioned, DLTensor};
use crate::device_type::opaque_handle;
use crate::error::Result;
use crate::platform;
use crate::python::raise::aside;
use crate::python::{Owned, PyObject, Python, header_nbytes};
use crate::tensor::block::{self, Block};
use crate::tensor::{Versioned, convert, share};
use crate::validate::{Level, Rules, Snapshot};

/// What follows the header that Python knows.
#[repr(C)]
struct Payload {
    /// Never NULL; changes at most once, to the block that then owns it.
    tensor: AtomicPtr<DLManagedTensorVersioned>,
    weak_references: *mut PyObject,
}

/// What a tensor must be to become an object: strict, but for strides that are not given.
pub const RULES: Rules = Rules { strides_given: false, ..Rules::of(Level::DLRS_LEVEL_STRICT) };

/// Bytes of a `Tensor`.
pub fn basicsize() -> usize {
    header_nbytes() + size_of::<Payload>()
}

/// Where the list of weak references is.
pub fn weak_list_offset() -> usize {
    header_nbytes() + offset_of!(Payload, weak_references)
}

/// # Safety
/// `object` is a `Tensor`.
#[inline]
unsafe fn payload(object: *mut PyObject) -> *mut Payload {
    // SAFETY: the caller's word: the payload stands behind the header.
    unsafe { object.byte_add(header_nbytes()).cast() }
}

/// The type of any object, borrowed.
///
/// # Safety
/// `object` is live.
#[inline]
pub unsafe fn type_of(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: the type stands at the end of the header; `check_header` has seen that it does.
    unsafe { object.byte_add(header_nbytes()).cast::<*mut PyObject>().sub(1).read() }
}

/// Whether the header ends with the type, as in every CPython so far.
pub fn check_header(python: Python, object: &Owned) -> Answer<bool> {
    // SAFETY: a live object, whose header has as many bytes.
    unsafe {
        let kind = made(python.PyObject_Type(object.as_ptr()))?;
        Ok(type_of(object.as_ptr()) == kind.as_ptr())
    }
}

/// The tensor of an object, borrowed.
///
/// # Safety
/// `object` is a live `Tensor`.
#[inline]
pub unsafe fn tensor_of(object: *mut PyObject) -> Versioned {
    // SAFETY: the caller's word; it is never NULL. Acquire: who finds a block finds it written.
    unsafe { NonNull::new_unchecked((*payload(object)).tensor.load(Acquire)) }
}

/// The block of an object, made when it is first asked for. It lives as long as the object.
///
/// Its `data` is the address of the first element: half of the frameworks ignore `byte_offset`, and
/// show other memory instead (docs/interop.md).
///
/// # Safety
/// `object` is a live `Tensor`.
#[inline]
pub unsafe fn block_of(object: *mut PyObject) -> Result<NonNull<Block>> {
    // SAFETY: the caller's word.
    unsafe {
        let tensor = tensor_of(object);
        let DLTensor { byte_offset, device, .. } = *description(object);
        match block::of_versioned(tensor) {
            Some(block) if byte_offset == 0 || opaque_handle(device.device_type) => Ok(block),
            _ => boxed(object, tensor),
        }
    }
}

/// # Safety
/// `object` is a live `Tensor`, and `tensor` the one that it holds.
#[cold]
unsafe fn boxed(object: *mut PyObject, tensor: Versioned) -> Result<NonNull<Block>> {
    let mut snapshot = Snapshot::new();
    // SAFETY: the caller's word. The object's holder passes to the block that gets in first.
    unsafe {
        snapshot.read_managed(tensor.as_ptr(), RULES)?;
        if !opaque_handle(snapshot.device.device_type) {
            (snapshot.data, snapshot.byte_offset) = (snapshot.first(), 0);
        }
        let block = convert::box_snapshot(&snapshot, tensor)?;
        let slot = &(*payload(object)).tensor;
        let boxed = Block::versioned(block).as_ptr();
        match slot.compare_exchange(tensor.as_ptr(), boxed, AcqRel, Acquire) {
            Ok(_) => Ok(block),
            Err(first) => {
                // Without the GIL another thread may have been faster: ours was never seen, and
                // only its memory goes.
                platform::give_back(block.cast());
                Ok(NonNull::new_unchecked(first).cast())
            }
        }
    }
}

/// The description of an object's tensor.
///
/// # Safety
/// `object` is a live `Tensor`.
#[inline]
pub unsafe fn description<'a>(object: *mut PyObject) -> &'a DLTensor {
    // SAFETY: the caller's word; a holder never writes the description of a tensor.
    unsafe { &(*tensor_of(object).as_ptr()).dl_tensor }
}

/// Reads and checks the tensor of an object.
///
/// # Safety
/// `object` is a live `Tensor`.
#[inline]
pub unsafe fn read(object: *mut PyObject, rules: Rules, snapshot: &mut Snapshot) -> Result<()> {
    // SAFETY: the caller's word.
    unsafe { snapshot.read_managed(tensor_of(object).as_ptr(), rules) }
}

/// A new object that takes `tensor`, also on failure.
///
/// # Safety
/// `kind` is a `Tensor` type; `tensor` is live, satisfies [`RULES`], and has one holder to give.
#[inline]
pub unsafe fn wrap(python: Python, kind: *mut PyObject, tensor: Versioned) -> Answer<Owned> {
    // SAFETY: a live type; the object is fresh.
    unsafe {
        match made(python._PyObject_New(kind)) {
            Ok(object) => Ok(fill(object, tensor)),
            Err(failure) => {
                aside(python, || share::release(tensor));
                Err(failure)
            }
        }
    }
}

/// A fresh object that gets `tensor`.
///
/// # Safety
/// `object` comes from `_PyObject_New` with a `Tensor` type; `tensor` is as [`wrap`] says.
#[inline]
pub unsafe fn fill(object: Owned, tensor: Versioned) -> Owned {
    let tensor = AtomicPtr::new(tensor.as_ptr());
    // SAFETY: the object is as large as its type says.
    unsafe { payload(object.as_ptr()).write(Payload { tensor, weak_references: null_mut() }) };
    object
}

/// `tp_dealloc`.
///
/// # Safety
/// Python calls it for a `Tensor` without references.
pub unsafe extern "C" fn dealloc(object: *mut PyObject) {
    // SAFETY: Python's word; nothing of the object is used after it was freed.
    unsafe {
        let python = Python::calling();
        let Payload { tensor, weak_references } = payload(object).read();
        let kind = type_of(object);
        if !weak_references.is_null() {
            python.PyObject_ClearWeakRefs(object);
        }
        let tensor = NonNull::new_unchecked(tensor.into_inner());
        // A deleter may be one that a program wrote in Python.
        aside(python, || share::release(tensor));
        python.PyObject_Free(object.cast::<c_void>());
        python.Py_DecRef(kind);
    }
}

/// A tensor that has just been made, as an object.
///
/// # Safety
/// As [`wrap`].
pub unsafe fn wrapped(
    python: Python,
    kind: *mut PyObject,
    tensor: Result<Versioned>,
) -> Answer<Owned> {
    // SAFETY: the caller's word.
    unsafe { wrap(python, kind, tensor?) }
}

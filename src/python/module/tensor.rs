//! The `Tensor` object: it holds one holder of a block, and no reference to a Python object but
//! its type. So there is nothing for the garbage collector to visit.

use core::ffi::c_void;
use core::mem::offset_of;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::failure::{Answer, made};
use crate::abi::DLTensor;
use crate::error::Result;
use crate::python::{Owned, PyObject, Python};
use crate::tensor::block::Block;
use crate::tensor::{Versioned, share};
use crate::validate::{Rules, Snapshot};

/// What follows the header that Python knows. Never changes while the object lives.
#[repr(C)]
struct Payload {
    tensor: Versioned,
    kind: *mut PyObject,
    weak_references: *mut PyObject,
}

/// Bytes of the header of every object: 16, more where there is no GIL. The same in every
/// interpreter of the process; set before the first type is made.
static HEADER: AtomicUsize = AtomicUsize::new(16);

/// Sets the size of the header.
pub fn set_header(nbytes: usize) {
    HEADER.store(nbytes, Relaxed);
}

/// Bytes of a `Tensor`.
pub fn basicsize() -> usize {
    HEADER.load(Relaxed) + size_of::<Payload>()
}

/// Where the list of weak references is.
pub fn weak_list_offset() -> usize {
    HEADER.load(Relaxed) + offset_of!(Payload, weak_references)
}

/// # Safety
/// `object` is a `Tensor`.
#[inline]
unsafe fn payload(object: *mut PyObject) -> *mut Payload {
    // SAFETY: the caller's word: the payload stands behind the header.
    unsafe { object.byte_add(HEADER.load(Relaxed)).cast() }
}

/// The tensor of an object, borrowed: one of ours.
///
/// # Safety
/// `object` is a live `Tensor`.
#[inline]
pub unsafe fn tensor_of(object: *mut PyObject) -> Versioned {
    // SAFETY: the caller's word.
    unsafe { (*payload(object)).tensor }
}

/// The block of an object.
///
/// # Safety
/// `object` is a live `Tensor`.
#[inline]
pub unsafe fn block_of<'a>(object: *mut PyObject) -> &'a Block {
    // SAFETY: the caller's word, and every tensor that is taken in is a block of ours.
    unsafe { tensor_of(object).cast::<Block>().as_ref() }
}

/// The description of an object's tensor.
///
/// # Safety
/// `object` is a live `Tensor`.
#[inline]
pub unsafe fn description<'a>(object: *mut PyObject) -> &'a DLTensor {
    // SAFETY: the caller's word; whoever shares a block never writes its description.
    unsafe { &(*tensor_of(object).as_ptr()).dl_tensor }
}

/// Extents and strides.
///
/// # Safety
/// As [`description`].
#[inline]
pub unsafe fn layout<'a>(tensor: &'a DLTensor) -> (&'a [i64], &'a [i64]) {
    let ndim = tensor.ndim.max(0) as usize;
    if ndim == 0 {
        return (&[], &[]);
    }
    // SAFETY: a block of ours always has both arrays.
    unsafe {
        (
            core::slice::from_raw_parts(tensor.shape, ndim),
            core::slice::from_raw_parts(tensor.strides, ndim),
        )
    }
}

/// The type of an object.
///
/// # Safety
/// `object` is a live `Tensor`.
#[inline]
pub unsafe fn kind_of(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: the caller's word.
    unsafe { (*payload(object)).kind }
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
/// `kind` is a `Tensor` type; `tensor` is a live block of ours, with one holder to give.
#[inline]
pub unsafe fn wrap(python: Python, kind: *mut PyObject, tensor: Versioned) -> Answer<Owned> {
    // SAFETY: a live type; the object is fresh and as large as the type says.
    unsafe {
        match made(python._PyObject_New(kind)) {
            Ok(object) => {
                payload(object.as_ptr()).write(Payload {
                    tensor,
                    kind,
                    weak_references: null_mut(),
                });
                Ok(object)
            }
            Err(failure) => {
                share::release(tensor);
                Err(failure)
            }
        }
    }
}

/// `tp_dealloc`.
///
/// # Safety
/// Python calls it for a `Tensor` without references.
pub unsafe extern "C" fn dealloc(object: *mut PyObject) {
    // SAFETY: Python's word; nothing of the object is used after it was freed.
    unsafe {
        let python = Python::calling();
        let Payload { tensor, kind, weak_references } = payload(object).read();
        if !weak_references.is_null() {
            python.PyObject_ClearWeakRefs(object);
        }
        quietly(python, || share::release(tensor));
        python.PyObject_Free(object.cast::<c_void>());
        python.Py_DecRef(kind);
    }
}

/// Runs a deleter, which may be one that a program wrote in Python: an exception that is on its
/// way is put aside meanwhile.
#[inline]
fn quietly(python: Python, body: impl FnOnce()) {
    // SAFETY: attached, by `Python`; what is fetched is restored.
    unsafe {
        if python.PyErr_Occurred().is_null() {
            return body();
        }
        let mut aside = [null_mut(); 3];
        let [kind, value, trace] = &mut aside;
        python.PyErr_Fetch(kind, value, trace);
        body();
        python.PyErr_Restore(*kind, *value, *trace);
    }
}

/// Lets other threads run Python during work that takes long and calls nothing of it.
pub fn detached<T>(python: Python, long: bool, work: impl FnOnce() -> T) -> T {
    if !long {
        return work();
    }
    // SAFETY: attached, by `Python`; attached again before it is used.
    let thread = unsafe { python.PyEval_SaveThread() };
    let result = work();
    // SAFETY: as above.
    unsafe { python.PyEval_RestoreThread(thread) };
    result
}

/// A tensor that has just been made, as an object.
///
/// # Safety
/// As [`wrap`].
pub unsafe fn wrapped(
    python: Python,
    kind: *mut PyObject,
    tensor: Result<NonNull<crate::abi::DLManagedTensorVersioned>>,
) -> Answer<Owned> {
    // SAFETY: the caller's word.
    unsafe { wrap(python, kind, tensor?) }
}

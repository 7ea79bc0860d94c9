//! Python: tensors in private capsules, which no consumer takes.

use core::ffi::{c_char, c_void};
use core::ptr::{NonNull, null_mut};

use super::arg::{Held, live, result};
use super::error::{dlrs_error, dlrs_status, run};
use super::python::put;
use crate::abi::DLManagedTensorVersioned;
use crate::error::Arg;
use crate::python::{Object, Python, capsule};

/// Put a tensor into a private capsule, which no consumer takes: the base of an array.
///
/// Shape:     unchanged.
/// Bytes:     data and byte_offset stay as they are.
/// Device:    any; no stream waits.
/// Ownership: on success *tensor is taken and set to NULL, and *out is a new reference to a capsule
///            of that name, whose destructor releases the tensor. name is not copied: a static text
///            of the caller, such as "mylib.tensor".
/// Flags:     unchanged.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor, *tensor, name, out.
///            DLRS_BAD_ARG: name is one of DLPack's, under which consumers would take the tensor.
///            DLRS_VERSION, DLRS_UNSUPPORTED, DLRS_CALLBACK: as dlrs_py_capsule_new_take.
/// Threads:   attached to Python.
/// Source:    capsules of CPython; python_spec: only capsules of DLPack's names are consumed.
///
/// # Safety
/// `name` stays valid as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_py_holder_new_take(
    tensor: *mut *mut DLManagedTensorVersioned,
    name: *const c_char,
    out: *mut *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: tensor and out are NULL or writable variables; a tensor in the first is live, and the
    // capsule owns its reference on success; name is NULL or a text that is never freed; error is
    // NULL or live.
    unsafe {
        // One variable for both is refused below, with its tensor in it.
        if name.is_null() && tensor.addr() != out.addr() {
            let held = Held(tensor, Arg::tensor);
            let (tensor, name) = (live(tensor, Arg::tensor), live(name, Arg::name));
            let pointers = (tensor, held, name, result(out, Arg::out));
            return run("dlrs_py_holder_new_take", error, pointers, |_| Ok(()));
        }
        run("dlrs_py_holder_new_take", error, (), |()| {
            put(tensor, out, |python, tensor| capsule::private(python, tensor, name))
        })
    }
}

/// Return the tensor in a private capsule, as dlrs_py_holder_new_take makes them.
///
/// Ownership: the tensor is borrowed from object, and valid as long as object is.
/// Errors:    none: NULL for any object but a capsule of that name that this library made, and
///            where Python cannot be called; no exception is set.
/// Threads:   attached to Python.
///
/// # Safety
/// `object` is NULL or a live Python object, `name` NULL or a text that ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_py_holder_get(
    object: *mut c_void,
    name: *const c_char,
) -> *mut DLManagedTensorVersioned {
    if object.is_null() || name.is_null() {
        return null_mut();
    }
    let Ok(python) = Python::get() else { return null_mut() };
    // SAFETY: object is live, name a text that ends with NUL; `get` found the thread attached.
    let held = unsafe { capsule::held(python, Object::new(object.cast()), name) };
    held.map_or(null_mut(), NonNull::as_ptr)
}

//! What the C exchange API of the type `Tensor` does.

use core::ffi::{c_int, c_void};
use core::ptr::NonNull;

use super::failure::answer;
use super::spec::Slot;
use super::tensor::{self, This};
use super::types;
use crate::abi::*;
use crate::error::{Error, Result, Status::*};
use dlpack_python::{Object, Python};
use dlpack_tensor::tensor::share;

/// `managed_tensor_from_py_object_no_sync`.
///
/// # Safety
/// As dlpack.h says: attached to Python; a live object, and a variable.
pub unsafe extern "C" fn from_object(
    object: *mut c_void,
    out: *mut *mut DLManagedTensorVersioned,
) -> c_int {
    // SAFETY: attached; `object` is live and `out` writable, for `ours` rejects NULL.
    unsafe {
        answer("Tensor", |python| {
            let object = ours(python, object, out.cast())?;
            let tensor = share::retain(object.live().tensor())?;
            out.write(tensor.as_ptr());
            Ok(())
        })
    }
}

/// `dltensor_from_py_object_no_sync`.
///
/// # Safety
/// As dlpack.h says: attached to Python; a live object, and room for a description.
pub unsafe extern "C" fn describe(object: *mut c_void, out: *mut DLTensor) -> c_int {
    // SAFETY: attached; `object` is live and `out` writable, for `ours` rejects NULL.
    unsafe {
        answer("Tensor", |python| {
            out.write(*ours(python, object, out.cast())?.live().description());
            Ok(())
        })
    }
}

/// `managed_tensor_to_py_object_no_sync`; `api` is the table that it stands in.
///
/// # Safety
/// As dlpack.h says: attached to Python; a live tensor, which is taken on success, and a variable.
pub unsafe fn to_object(
    api: &'static DLPackExchangeAPI,
    tensor: *mut DLManagedTensorVersioned,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: attached; `tensor` is live and `out` writable. On failure `tensor` is not taken.
    unsafe {
        answer("Tensor", |python| {
            let (Some(tensor), Some(out)) = (NonNull::new(tensor), NonNull::new(out)) else {
                return Err(Error::new(DLRS_NULL_ARG));
            };
            let kind = types::tensor(python, api)?;
            let object = tensor::wrap_if(python, kind, || tensor::owned(tensor))?;
            out.write(object.into_ptr().cast());
            Ok(())
        })
    }
}

/// The object of a function of the exchange API, if it is a `Tensor` of any interpreter.
///
/// # Safety
/// `object` is NULL or live.
unsafe fn ours<'a>(python: Python, object: *mut c_void, out: *mut c_void) -> Result<This<'a>> {
    if object.is_null() || out.is_null() {
        return Err(Error::new(DLRS_NULL_ARG));
    }
    // SAFETY: `object` is live, for it is not NULL; only our `Tensor`s have that `tp_dealloc`.
    unsafe {
        let object = Object::new(object.cast());
        let kind = python.PyObject_Type(object)?;
        let dealloc = python.PyType_GetSlot(kind.object(), Slot::tp_dealloc as c_int);
        if !core::ptr::eq(dealloc, tensor::dealloc as *const c_void) {
            python.clear();
            let error = Error::new(DLRS_BAD_ARG);
            return Err(error
                .detail("the object is no Tensor of this library\0Import it by from_dlpack()."));
        }
        Ok(This::new(python, object))
    }
}

//! Results of functions called by Python: an object, or an error that becomes an exception.

use core::ffi::c_int;
use core::fmt;
use core::ptr::{NonNull, null_mut};

use crate::error::{Error, Result, Status::*};
pub use crate::python::raise::{Message, refused};
use crate::python::raise::{class_of, raised, required};
use crate::python::{Owned, PyObject, Python};

/// The non-negative result of a Python function, or that it raised.
#[inline]
pub fn done(answer: c_int) -> Result<bool> {
    if answer < 0 { Err(raised()) } else { Ok(answer > 0) }
}

/// None, to be returned.
pub fn none(python: Python) -> Owned {
    // SAFETY: an object of Python's own.
    unsafe { Owned::share(python, NonNull::new_unchecked(python._Py_NoneStruct())) }
}

/// Truth as an object, to be returned.
pub fn truth(python: Python, truth: bool) -> Result<Owned> {
    // SAFETY: attached, by `Python`.
    unsafe { required(python.PyBool_FromLong(truth.into())) }
}

/// Runs the body of a function that Python calls. `name` is its name in Python.
///
/// # Safety
/// Python is calling.
#[inline]
pub unsafe fn answer(
    name: &'static str,
    body: impl FnOnce(Python) -> Result<Owned>,
) -> *mut PyObject {
    // SAFETY: the caller's word.
    let python = unsafe { Python::calling() };
    match body(python) {
        Ok(object) => object.into_ptr(),
        Err(error) => {
            raise(python, name, &error);
            null_mut()
        }
    }
}

/// As [`answer`], for a function that returns a truth value or 0; -1 with an exception.
///
/// # Safety
/// Python is calling.
#[inline]
pub unsafe fn answer_truth(name: &'static str, body: impl FnOnce(Python) -> Result<bool>) -> c_int {
    // SAFETY: the caller's word.
    let python = unsafe { Python::calling() };
    match body(python) {
        Ok(truth) => truth.into(),
        Err(error) => raise(python, name, &error),
    }
}

/// Sets the exception of an error, unless Python code has raised one; returns -1.
#[cold]
pub fn raise(python: Python, name: &'static str, error: &Error) -> c_int {
    // SAFETY: attached, by `Python`.
    if error.status != DLRS_CALLBACK || unsafe { python.PyErr_Occurred().is_null() } {
        set(python, class_of(python, error.status as i32), name, error, None);
    }
    -1
}

/// Sets an exception of a kind with an error's text, of which a foreign text may be the value.
#[cold]
pub fn set(
    python: Python,
    kind: *mut PyObject,
    name: &'static str,
    error: &Error,
    value: Option<&[u8]>,
) -> Error {
    let mut text = Message::EMPTY;
    let _ = error.write(name, value, &mut text);
    // SAFETY: attached, by `Python`; the text ends with NUL.
    unsafe { python.PyErr_SetString(kind, text.as_ptr()) };
    raised()
}

/// IndexError, by which iteration ends too: there is no such element.
#[cold]
pub fn no_element(python: Python, name: &'static str, error: &Error) -> Error {
    set(python, python.PyExc_IndexError(), name, error, None)
}

/// TypeError: a call with arguments that the function does not have.
#[cold]
pub fn wrong(python: Python, name: &'static str, what: impl fmt::Display) -> Error {
    refused(python, python.PyExc_TypeError(), format_args!("{name}() {what}"))
}

//! Failures on their way to becoming exceptions.

use core::fmt::Write;
use core::ptr::null_mut;

use crate::error::{Error, Status::*};
pub use crate::python::raise::Message;
use crate::python::raise::class_of;
use crate::python::{Owned, PyObject, Python};

/// Why a call from Python has no result.
pub enum Failure {
    /// An exception is set already.
    Raised,
    /// An error of the library, for which an exception is yet to be set.
    Error(Error),
    /// A call with arguments that the function does not have: `TypeError`.
    Call(&'static str),
    /// No such element: `IndexError`, by which iteration ends too.
    Index(Error),
}

/// What a function for Python answers.
pub type Answer<T> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error)
    }
}

/// The new reference that a function of Python returned, or the exception that it raised.
///
/// # Safety
/// As [`Owned::new`].
#[inline]
pub unsafe fn made(object: *mut PyObject) -> Answer<Owned> {
    // SAFETY: the caller's word.
    unsafe { Owned::new(object) }.ok_or(Failure::Raised)
}

/// What a function of Python returned that is not negative, or the exception that it raised.
#[inline]
pub fn done(answer: i32) -> Answer<bool> {
    if answer < 0 { Err(Failure::Raised) } else { Ok(answer > 0) }
}

/// None, to be returned.
pub fn none(python: Python) -> Answer<Owned> {
    // SAFETY: an object of Python's own.
    unsafe {
        let none = core::ptr::NonNull::new_unchecked(python._Py_NoneStruct());
        Ok(Owned::share(python, none))
    }
}

/// Runs the body of a function that Python calls. `name` is the one that Python knows it by.
///
/// # Safety
/// Python is calling.
#[inline]
pub unsafe fn answer(
    name: &'static str,
    body: impl FnOnce(Python) -> Answer<Owned>,
) -> *mut PyObject {
    // SAFETY: the caller's word.
    let python = unsafe { Python::calling() };
    match body(python) {
        Ok(object) => object.into_ptr(),
        Err(failure) => raise(python, name, &failure),
    }
}

/// Sets the exception of a failure; NULL, to be returned.
#[cold]
pub fn raise(python: Python, name: &'static str, failure: &Failure) -> *mut PyObject {
    let mut text = Message::EMPTY;
    let kind = match failure {
        Failure::Raised => return null_mut(),
        Failure::Error(error) if error.status == DLRS_CALLBACK && is_set(python) => {
            return null_mut();
        }
        Failure::Call(what) => {
            let _ = write!(text, "{name}() {what}");
            python.PyExc_TypeError()
        }
        Failure::Error(error) | Failure::Index(error) => {
            let _ = error.write(name, None, &mut text);
            match failure {
                Failure::Index(_) => python.PyExc_IndexError(),
                _ => class_of(python, error.status as i32),
            }
        }
    };
    // SAFETY: attached, by `Python`; the text ends with NUL.
    unsafe { python.PyErr_SetString(kind, text.as_ptr()) };
    null_mut()
}

/// Whether Python code has raised, and says more than we can.
fn is_set(python: Python) -> bool {
    // SAFETY: attached, by `Python`.
    unsafe { !python.PyErr_Occurred().is_null() }
}

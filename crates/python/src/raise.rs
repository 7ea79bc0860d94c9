//! Conversion of errors between Python and the library.
//!
//! One rule for every function: when Python code raised, its exception stays set and the status is
//! `DLRS_CALLBACK`; on any other failure, and on success, none is set.

use core::ffi::{CStr, c_char};
use core::fmt::{self, Write};
use core::ptr::null_mut;

use super::object::{Object, Owned};
use super::symbols::{PyObject, Python};
use crate::error::{Error, Result, Status::*, exception_of};
use crate::integer_text::hex;

/// The error that stands for an exception that Python has set.
#[cold]
pub fn raised() -> Error {
    Error::new(DLRS_CALLBACK).detail("Python raised an exception, which is still set")
}

/// The result of a Python function, or that it raised.
///
/// # Safety
/// `object` is NULL or a new reference, which is taken; this thread is attached.
#[inline]
pub unsafe fn required(object: *mut PyObject) -> Result<Owned> {
    // SAFETY: `object` is NULL or a new reference, and this thread is attached.
    unsafe { Owned::new(object) }.ok_or_else(raised)
}

/// The size that a Python function returned, or that it raised.
pub fn size(size: isize) -> Result<usize> {
    usize::try_from(size).map_err(|_| raised())
}

/// Whether the exception that is set is of a kind.
pub fn is(python: Python, kind: fn(Python) -> *mut PyObject) -> bool {
    // SAFETY: attached, and an exception is set.
    unsafe { python.PyErr_ExceptionMatches(kind(python)) != 0 }
}

/// Keeps a pending exception from being seen, and from being lost, by what `body` calls, whose own
/// exceptions are dropped.
pub fn aside<T>(python: Python, body: impl FnOnce() -> T) -> T {
    let (mut kind, mut value, mut trace) = (null_mut(), null_mut(), null_mut());
    // SAFETY: attached; what was fetched is put back. Mostly none is set: to ask is cheaper.
    unsafe {
        let pending = !python.PyErr_Occurred().is_null();
        if pending {
            python.PyErr_Fetch(&raw mut kind, &raw mut value, &raw mut trace);
        }
        let result = body();
        if pending {
            python.PyErr_Restore(kind, value, trace);
        } else if !python.PyErr_Occurred().is_null() {
            python.PyErr_Clear();
        }
        result
    }
}

/// Whether the exception that is set is passed on, whatever was asked: KeyboardInterrupt and others
/// that are no `Exception`, and MemoryError.
pub fn comes_through(python: Python) -> bool {
    !is(python, Python::PyExc_Exception) || is(python, Python::PyExc_MemoryError)
}

/// Clears an exception, if one is set, which only means that something is not known.
#[cold]
pub fn forgive(python: Python) -> Result<()> {
    // SAFETY: attached.
    unsafe {
        if !python.PyErr_Occurred().is_null() {
            if comes_through(python) {
                return Err(raised());
            }
            python.PyErr_Clear();
        }
    }
    Ok(())
}

/// What an attribute beyond the protocols says; `None` where it raises.
pub fn known<T>(python: Python, found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(_) => forgive(python).map(|()| None),
    }
}

/// Asks more of an object whose exception is set, which stays, unless what comes through replaces
/// it.
#[cold]
pub fn meanwhile<T>(python: Python, body: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut set = [null_mut(); 3];
    // SAFETY: attached; what was fetched is put back or given up.
    unsafe {
        let [kind, value, trace] = &mut set;
        python.PyErr_Fetch(kind, value, trace);
        let result = body();
        if !python.PyErr_Occurred().is_null() && comes_through(python) {
            set.into_iter().for_each(|part| drop(Owned::new(part)));
        } else {
            let [kind, value, trace] = set;
            python.PyErr_Restore(kind, value, trace);
        }
        result
    }
}

/// Sets an exception with our text, and returns the error for it.
#[cold]
pub fn refused(python: Python, kind: *mut PyObject, text: fmt::Arguments) -> Error {
    let mut message = Message::EMPTY;
    // Only `KindOf` fails, with an exception that comes through.
    if message.write_fmt(text).is_ok() {
        // SAFETY: attached, by `Python`; the text ends with NUL.
        unsafe { python.PyErr_SetString(kind, message.as_ptr()) };
    }
    raised()
}

/// A foreign text in a message: printable ASCII, and not much of it.
pub struct Quoted<'a>(pub &'a [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 80;
        for &byte in self.0.iter().take(SHOWN) {
            match byte {
                b' '..=b'~' => out.write_char(byte.into())?,
                _ => write!(out, "\\x{}", hex(byte.into(), 2))?,
            }
        }
        out.write_str(if self.0.len() > SHOWN { "..." } else { "" })
    }
}

/// The bytes of a text object.
pub fn utf8<'a>(python: Python, text: Object<'a>) -> Result<&'a [u8]> {
    let mut nbytes = 0;
    // SAFETY: attached; the text lives as long as its object, and is not written.
    unsafe {
        let bytes = python.PyUnicode_AsUTF8AndSize(text.as_ptr(), &raw mut nbytes);
        if bytes.is_null() {
            return Err(raised());
        }
        Ok(core::slice::from_raw_parts(bytes.cast(), nbytes.max(0) as usize))
    }
}

/// The name of an object's type, quoted.
pub struct KindOf<'a>(pub Python, pub Object<'a>);

impl fmt::Display for KindOf<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &KindOf(python, object) = self;
        // SAFETY: attached, by `Python`; a live object; the text lives as long as its own does.
        unsafe {
            let kind = python.kind(object).ok();
            let name = kind.and_then(|kind| {
                Owned::new(python.PyObject_GetAttrString(kind.as_ptr(), c"__name__".as_ptr()))
            });
            let text = name.as_ref().and_then(|name| utf8(python, name.object()).ok());
            match text {
                Some(text) => write!(out, "'{}'", Quoted(text)),
                None => {
                    forgive(python).map_err(|_| fmt::Error)?;
                    out.write_str("object")
                }
            }
        }
    }
}

/// The exception that fits a status.
pub fn class_of(python: Python, status: i32) -> *mut PyObject {
    match exception_of(status).to_bytes() {
        b"BufferError" => python.PyExc_BufferError(),
        b"MemoryError" => python.PyExc_MemoryError(),
        b"TypeError" => python.PyExc_TypeError(),
        b"ValueError" => python.PyExc_ValueError(),
        _ => python.PyExc_RuntimeError(),
    }
}

/// A built-in exception by its name; `None` if there is none. No exception is set.
pub fn class_named(python: Python, name: &CStr) -> Option<Owned> {
    // SAFETY: attached; the dictionary is borrowed.
    unsafe {
        let found = python.PyMapping_GetItemString(python.PyEval_GetBuiltins(), name.as_ptr());
        let found = Owned::new(found).filter(|found| {
            python.PyObject_IsSubclass(found.as_ptr(), python.PyExc_BaseException()) == 1
        });
        if found.is_none() {
            python.PyErr_Clear();
        }
        found
    }
}

/// A text of moderate length, with its NUL.
pub struct Message {
    bytes: [u8; 400],
    nbytes: usize,
}

impl Message {
    /// No text.
    pub const EMPTY: Message = Message { bytes: [0; 400], nbytes: 0 };

    /// The text for C.
    pub fn as_ptr(&self) -> *const c_char {
        self.bytes.as_ptr().cast()
    }

    /// The text.
    pub fn text(&self) -> &[u8] {
        self.bytes.get(..self.nbytes).unwrap_or(&[])
    }
}

impl Write for Message {
    /// What does not fit is left out; messages are ASCII.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len() - 1;
        let free = self.bytes.get_mut(self.nbytes..room).unwrap_or_default();
        let count = free.len().min(text.len());
        free.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
        self.nbytes += count;
        Ok(())
    }
}

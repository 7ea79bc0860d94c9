//! Conversion of errors between Python and the library.
//!
//! One rule for every function: when Python code raised, its exception stays set and the status is
//! `DLRS_CALLBACK`; on any other failure, and on success, none is set.

use core::ffi::{CStr, c_char};
use core::fmt::{self, Write};
use core::ptr::null_mut;

use super::object::{Object, Owned};
pub use super::object::{is, raised, required};
use super::symbols::Python;
use crate::error::{Error, Result, exception_of};
use crate::integer_text::hex;

/// Keeps a pending exception from being seen, and from being lost, by what `body` calls, whose own
/// exceptions are dropped.
pub fn aside<T>(python: Python, body: impl FnOnce() -> T) -> T {
    let (mut kind, mut value, mut trace) = (null_mut(), null_mut(), null_mut());
    // Mostly none is set: to ask is cheaper.
    let pending = python.has_raised();
    if pending {
        // SAFETY: attached, and three variables.
        unsafe { python.PyErr_Fetch(&raw mut kind, &raw mut value, &raw mut trace) };
    }
    let result = body();
    if pending {
        // SAFETY: what was fetched is put back.
        unsafe { python.PyErr_Restore(kind, value, trace) };
    } else if python.has_raised() {
        python.clear();
    }
    result
}

/// Whether the exception that is set is passed on, whatever was asked: KeyboardInterrupt and others
/// that are no `Exception`, and MemoryError.
pub fn comes_through(python: Python) -> bool {
    !is(python, Python::PyExc_Exception) || is(python, Python::PyExc_MemoryError)
}

/// Clears an exception, if one is set, which only means that something is not known.
#[cold]
pub fn forgive(python: Python) -> Result<()> {
    if python.has_raised() {
        if comes_through(python) {
            return Err(raised());
        }
        python.clear();
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

/// Asks more of an object whose exception is set, which stays, unless what `body` raises is to
/// replace it.
#[cold]
pub fn meanwhile<T>(
    python: Python,
    replaces: fn(Python) -> bool,
    body: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let mut set = [null_mut(); 3];
    // SAFETY: attached; what was fetched is put back or given up.
    unsafe {
        let [kind, value, trace] = &mut set;
        python.PyErr_Fetch(kind, value, trace);
        let result = body();
        if python.has_raised() && replaces(python) {
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
pub fn refused(python: Python, kind: Object, text: fmt::Arguments) -> Error {
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
        let bytes = python.PyUnicode_AsUTF8AndSize(text, &raw mut nbytes);
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
        let kind = python.PyObject_Type(object);
        let name = kind.and_then(|kind| python.named(kind.object(), c"__name__"));
        match name.as_ref().map(|name| utf8(python, name.object())) {
            Ok(Ok(text)) => write!(out, "'{}'", Quoted(text)),
            _ => {
                forgive(python).map_err(|_| fmt::Error)?;
                out.write_str("object")
            }
        }
    }
}

/// The exception that fits a status.
pub fn class_of(python: Python, status: i32) -> Object<'static> {
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
    // SAFETY: attached; the dictionary is borrowed, and NULL when the interpreter has cleared it;
    // the text ends with NUL.
    let found = unsafe {
        Object::optional(python.PyEval_GetBuiltins()).and_then(|builtins| {
            Owned::new(python.PyMapping_GetItemString(builtins, name.as_ptr()))
        })
    };
    let class = python.PyExc_BaseException();
    let is = |found: &Owned| python.PyObject_IsSubclass(found.object(), class).is_ok_and(|is| is);
    let found = found.filter(is);
    if found.is_none() {
        python.clear();
    }
    found
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

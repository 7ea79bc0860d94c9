//! Objects that every import needs: made once per interpreter, and kept in its record.

use core::ffi::CStr;
use core::ptr::NonNull;

use super::home::{self, Home};
use super::object::Owned;
use super::raise::{raised, required};
use super::symbols::{PyObject, Python};
use crate::abi::{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
use crate::error::Result;

/// What is kept.
#[derive(Clone, Copy)]
pub enum Constant {
    /// `"__dlpack__"`
    Dlpack,
    /// `"__dlpack_c_exchange_api__"`
    ExchangeApi,
    /// `"stream"`
    Stream,
    /// `"max_version"`
    MaxVersion,
    /// `"dl_device"`
    DlDevice,
    /// `"copy"`
    Copy,
    /// `("max_version",)`
    MaxVersionOnly,
    /// `(1, 3)`
    Version,
    /// `"requires_grad"`
    RequiresGrad,
    /// `"stop_gradient"`
    StopGradient,
    /// `"is_neg"`
    IsNeg,
}

/// How many there are.
pub const COUNT: usize = Constant::IsNeg as usize + 1;

/// A constant, borrowed from the record of the interpreter.
pub struct Kept(NonNull<PyObject>);

impl Kept {
    /// The object, borrowed.
    #[inline]
    pub fn as_ptr(&self) -> *mut PyObject {
        self.0.as_ptr()
    }

    /// An owned reference.
    pub fn share(&self, python: Python) -> Owned {
        // SAFETY: live: the record has a reference.
        unsafe { Owned::share(python, self.0) }
    }
}

/// The constant, made where it is not there yet.
pub fn get(python: Python, constant: Constant) -> Result<Kept> {
    of(python, home::here(python)?, constant)
}

/// As [`get`], of the record of the interpreter.
#[inline]
pub fn of(python: Python, home: &Home, constant: Constant) -> Result<Kept> {
    let slot = home.constants.get(constant as usize).ok_or_else(raised)?;
    slot.get(|| make(python, constant)).map(Kept)
}

#[cold]
#[inline(never)]
fn make(python: Python, constant: Constant) -> Result<Owned> {
    match constant {
        Constant::Dlpack => text(python, c"__dlpack__"),
        Constant::ExchangeApi => text(python, c"__dlpack_c_exchange_api__"),
        Constant::RequiresGrad => text(python, c"requires_grad"),
        Constant::StopGradient => text(python, c"stop_gradient"),
        Constant::IsNeg => text(python, c"is_neg"),
        Constant::Stream => text(python, c"stream"),
        Constant::MaxVersion => text(python, c"max_version"),
        Constant::DlDevice => text(python, c"dl_device"),
        Constant::Copy => text(python, c"copy"),
        Constant::MaxVersionOnly => tuple(python, &[text(python, c"max_version")?.as_ptr()]),
        Constant::Version => pair(python, DLPACK_MAJOR_VERSION.into(), DLPACK_MINOR_VERSION.into()),
    }
}

/// An interned text.
pub fn text(python: Python, text: &CStr) -> Result<Owned> {
    // SAFETY: attached; the text ends with NUL.
    unsafe { required(python.PyUnicode_InternFromString(text.as_ptr())) }
}

/// A number.
pub fn integer(python: Python, value: i64) -> Result<Owned> {
    // SAFETY: attached.
    unsafe { required(python.PyLong_FromLongLong(value)) }
}

/// A tuple of objects, each of which gets one more reference.
pub fn tuple(python: Python, items: &[*mut PyObject]) -> Result<Owned> {
    // SAFETY: attached; live objects; each place is filled once, which takes the reference.
    unsafe {
        let tuple = required(python.PyTuple_New(items.len() as isize))?;
        for (place, &item) in items.iter().enumerate() {
            python.Py_IncRef(item);
            if python.PyTuple_SetItem(tuple.as_ptr(), place as isize, item) != 0 {
                return Err(raised());
            }
        }
        Ok(tuple)
    }
}

/// A tuple of two numbers.
pub fn pair(python: Python, first: i64, second: i64) -> Result<Owned> {
    let (first, second) = (integer(python, first)?, integer(python, second)?);
    tuple(python, &[first.as_ptr(), second.as_ptr()])
}

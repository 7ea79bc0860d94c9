//! Objects that every import needs: made once per interpreter, and kept in its record.

use core::ffi::CStr;

use super::home::{self, Home, Slot};
use super::object::{Object, Owned};
use super::raise::{raised, required};
use super::symbols::{PyObject, Python};
use crate::abi::{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
use crate::error::Result;

/// What is kept: texts, whose [`words`] are in the same order, and after them two tuples.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub enum Constant {
    Dlpack,
    ExchangeApi,
    Stream,
    MaxVersion,
    DlDevice,
    Copy,
    RequiresGrad,
    StopGradient,
    IsNeg,
    Mro,
    Dict,
    Filled,
    Mask,
    DlpackDevice,
    CudaArrayInterface,
    ArrayInterface,
    Obj,
    Complex,
    Name,
    Base,
    /// `("max_version",)`
    MaxVersionOnly,
    /// `(1, 3)`
    Version,
}

/// How many there are.
pub const COUNT: usize = Constant::Version as usize + 1;

/// The constant, made where it is not there yet; borrowed from the record of the interpreter.
pub fn get(python: Python, constant: Constant) -> Result<Object<'static>> {
    of(python, home::here(python)?, constant)
}

/// As [`get`], of the record of the interpreter.
#[inline]
pub fn of(python: Python, home: &Home, constant: Constant) -> Result<Object<'_>> {
    match home.constants.get(constant as usize).and_then(Slot::kept) {
        // SAFETY: live: the record has a reference, for as long as the interpreter.
        Some(kept) => Ok(unsafe { Object::new(kept.as_ptr()) }),
        None => fill(python, home, constant),
    }
}

#[cold]
#[inline(never)]
fn fill(python: Python, home: &Home, constant: Constant) -> Result<Object<'_>> {
    let slot = home.constants.get(constant as usize).ok_or_else(raised)?;
    let kept = slot.get(|| make(python, constant))?;
    // SAFETY: live: the slot has a reference, for as long as the interpreter.
    Ok(unsafe { Object::new(kept.as_ptr()) })
}

fn make(python: Python, constant: Constant) -> Result<Owned> {
    match constant {
        Constant::MaxVersionOnly => tuple(python, &[get(python, Constant::MaxVersion)?.as_ptr()]),
        Constant::Version => pair(python, DLPACK_MAJOR_VERSION.into(), DLPACK_MINOR_VERSION.into()),
        text => self::text(python, words(text)),
    }
}

/// The contents of a text.
pub fn words(constant: Constant) -> &'static CStr {
    const TEXTS: [&CStr; Constant::MaxVersionOnly as usize] = [
        c"__dlpack__",
        c"__dlpack_c_exchange_api__",
        c"stream",
        c"max_version",
        c"dl_device",
        c"copy",
        c"requires_grad",
        c"stop_gradient",
        c"is_neg",
        c"__mro__",
        c"__dict__",
        c"filled",
        c"mask",
        c"__dlpack_device__",
        c"__cuda_array_interface__",
        c"__array_interface__",
        c"obj",
        c"__complex__",
        c"__name__",
        c"base",
    ];
    TEXTS.get(constant as usize).copied().unwrap_or_default()
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

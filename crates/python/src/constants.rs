//! Objects that every import needs: made once per interpreter, and kept in its record.

use core::ffi::CStr;

use super::home::{self, Home, Slot};
use super::object::{Object, Owned, pair, text, tuple};
use super::raise::raised;
use super::symbols::Python;
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
        other => text(python, words(other)),
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

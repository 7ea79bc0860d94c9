//! The Python module: an extension module with a `Tensor` type, in the library itself.
//!
//! Nothing is compiled against a Python: the type is made from a spec and the functions from
//! method tables, so calls cost what those of a compiled extension cost, and one library serves
//! every CPython from 3.9 on. Each interpreter has types of its own, kept in its record
//! ([`dlpack_python::home`]); modules have no state, and as many as are made in one interpreter
//! share them.
//!
//! Threads: a `Tensor` never changes, so nothing is locked, with or without the GIL.
//!
//! May use: `python`, `cast`, `print`. Used by: the C interface, with the feature `module`.
#![no_std]

use dlpack_cast::{cast, compare};
use dlpack_python::{Object, PyObject, Python, header_nbytes, numbers, required, text_of};
use dlpack_tensor::*;

mod arguments;
mod attributes;
mod buffer;
mod copies;
mod dlpack;
pub mod exchange;
mod failure;
mod keys;
mod makes;
mod numpy;
mod pickles;
mod scalars;
mod spec;
mod tensor;
mod types;
mod values;
mod views;
mod workers;
mod writes;

use core::ffi::{CStr, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::abi::{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION, DLPackExchangeAPI};
use crate::error::{Error, Result, Status::*};
use failure::{answer, raise};
pub use spec::{ModuleSlot, ModuleSlots};

/// Words of the object header of any Python.
const HEADER_MOST: usize = 8;

/// Members of `PyModuleDef`, in words behind the object header.
const DEF_NAME: usize = 3;
const DEF_DOC: usize = 4;
const DEF_SLOTS: usize = 7;
const DEF_WORDS: usize = 11;

/// The definition of the module, behind an object header whose size is known only at run time. What
/// is not written is 0: no state, and no methods, as [`exec`] adds them. Python writes a number
/// into it, once, and reads it for as long as a module lives, so it is never moved or freed.
#[repr(align(16))]
struct Definition([AtomicPtr<c_void>; HEADER_MOST + DEF_WORDS]);

static DEFINITION: Definition = Definition([const { AtomicPtr::new(null_mut()) }; _]);

/// The module's name; [`exec`] is what fills it.
const NAME: &CStr = c"dlpack_rs";

/// `PyInit_`: the definition of the module, by which Python makes one in each interpreter that
/// imports it. NULL where an exception is set, or where this is no Python that is served.
///
/// # Safety
/// Python calls it.
pub unsafe fn init(slots: &'static ModuleSlots) -> *mut PyObject {
    // The first function of the library that is called, mostly.
    let Ok(python) = Python::get() else { return null_mut() };
    match definition(python, slots) {
        // SAFETY: a definition that lives for ever.
        Ok(definition) => unsafe { python.PyModuleDef_Init(definition) },
        Err(error) => {
            raise(python, "dlpack_rs", &error);
            null_mut()
        }
    }
}

/// Fills a module that Python has made; `api` goes to its type. 0, or -1 with an exception.
///
/// # Safety
/// Python calls it for a module of ours.
pub unsafe fn exec(module: *mut PyObject, api: &'static DLPackExchangeAPI) -> c_int {
    // SAFETY: Python calls it attached, for a module of ours that is live.
    unsafe { answer("dlpack_rs", |python| fill(python, Object::new(module), api)) }
}

fn fill(python: Python, module: Object, api: &'static DLPackExchangeAPI) -> Result<()> {
    let set = |name, value| types::set(python, module, name, value);
    // Where programs find them, and pickle looks for them.
    let home = text_of(python, NAME.to_bytes())?;
    for function in &types::FUNCTIONS {
        let Some(name) = function.name() else { break };
        let pointer = (&raw const *function).cast();
        // SAFETY: a method table of ours, which lives for ever.
        let made = unsafe { required(python.PyCFunction_NewEx(pointer, module, home.object())) };
        set(name, made?)?;
    }
    set(c"Tensor", types::tensor(python, api)?.share(python))?;
    let version = [DLPACK_MAJOR_VERSION.into(), DLPACK_MINOR_VERSION.into()];
    set(c"dlpack_version", numbers(python, &version)?)?;
    set(c"__version__", text_of(python, env!("CARGO_PKG_VERSION").as_bytes())?)
}

/// The definition of the module. Interpreters that come at a time all write the same.
fn definition(python: Python, slots: &'static ModuleSlots) -> Result<*mut c_void> {
    // Other functions that came with those versions tell them.
    let unknown = match (python.PyThreadState_GetUnchecked(), python.PyErr_GetRaisedException()) {
        (Some(_), _) => 0,    // 3.13
        (None, Some(_)) => 1, // 3.12
        (None, None) => 2,
    };
    let known = slots.get(unknown..).unwrap_or_default();
    let header = header_nbytes() / size_of::<usize>();
    for (member, value) in [
        (DEF_NAME, NAME.as_ptr().cast()),
        (DEF_DOC, types::MODULE.as_ptr().cast()),
        (DEF_SLOTS, known.as_ptr().cast::<c_void>()),
    ] {
        let word = DEFINITION.0.get(header + member).filter(|_| header <= HEADER_MOST);
        word.ok_or_else(unknown_header)?.store(value.cast_mut(), Relaxed);
    }
    Ok(DEFINITION.0.as_ptr().cast_mut().cast())
}

fn unknown_header() -> Error {
    let error = Error::new(DLRS_UNSUPPORTED).value(header_nbytes() as i64);
    error.detail(
        "objects of this Python have an unknown header, bytes\0Use CPython, not a tracing build.",
    )
}

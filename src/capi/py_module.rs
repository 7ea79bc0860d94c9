//! The Python module.

use core::ffi::c_void;
use core::ptr::NonNull;

use super::arg::Out;
use super::error::{dlrs_error, dlrs_status, run};
use crate::error::Parameter;
use crate::python::{Python, module};

/// Give the Python module of this library: functions and a Tensor type, without an extension module.
///
/// Made on the first call in an interpreter, which then keeps it: every call gives the same module.
/// What it offers is documented in Python: help(module).
///
/// Ownership: *out is a new reference to a module object (PyObject *): the caller's.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out. DLRS_UNSUPPORTED: there is no Python 3.9
///            or newer in the process, it is not running, or this thread is not attached to it.
///            DLRS_INTERNAL: Python refused. No exception is left set.
/// Threads:   one that is attached to Python (in ctypes: PyDLL). Subinterpreters and builds
///            without the GIL are served; each interpreter has its own module.
/// Source:    CPython's stable ABI.
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_py_module(
    out: *mut *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_py_module", error, || {
        // SAFETY: a variable of the caller, by the preface.
        let out = unsafe { Out::clear(out) };
        out.check(&Parameter(1, "out"))?;
        let python = Python::get()?;
        let object = module::module_for_c(python)?.into_ptr();
        if let Some(object) = NonNull::new(object.cast()) {
            out.set(object);
        }
        Ok(())
    })
}

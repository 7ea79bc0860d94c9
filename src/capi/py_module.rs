//! The Python module.

use core::ffi::{c_int, c_void};
use core::ptr::{NonNull, null_mut};

use super::arg::Out;
use super::error::{dlrs_error, dlrs_status, run};
use super::exchange::dlrs_managed_tensor_allocator;
use crate::abi::*;
use crate::error::Parameter;
use crate::python::Python;
use crate::python::exchange::current_work_stream;
use crate::python::module::{self, exchange};

pub(super) struct Table(pub(super) DLPackExchangeAPI);

// SAFETY: a table of constants.
unsafe impl Sync for Table {}

/// The exchange API of the type Tensor.
pub(super) static EXCHANGE_API: Table = Table(DLPackExchangeAPI {
    header: DLPackExchangeAPIHeader {
        version: DLPackVersion { major: DLPACK_MAJOR_VERSION, minor: DLPACK_MINOR_VERSION },
        prev_api: null_mut(),
    },
    managed_tensor_allocator: Some(dlrs_managed_tensor_allocator),
    managed_tensor_from_py_object_no_sync: Some(exchange::from_object),
    managed_tensor_to_py_object_no_sync: Some(to_object),
    dltensor_from_py_object_no_sync: Some(exchange::describe),
    current_work_stream: Some(current_work_stream),
});

unsafe extern "C" fn to_object(
    tensor: *mut DLManagedTensorVersioned,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller's word, as dlpack.h has it.
    unsafe { exchange::to_object(&EXCHANGE_API.0, tensor, out) }
}

/// Give the Python module of this library: from_dlpack, empty and the type Tensor.
///
/// Made on the first call in an interpreter, which then keeps it: every call gives the same module.
/// What it offers is documented in Python: help(module).
///
/// Ownership: *out is a new reference to a module object (PyObject *): the caller's.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out. DLRS_UNSUPPORTED: there is no Python 3.9
///            or newer in the process, it is not running, or this thread is not attached to it.
///            DLRS_CALLBACK: Python raised an exception, which stays set.
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
        let object = module::module(python, &EXCHANGE_API.0)?.into_ptr();
        if let Some(object) = NonNull::new(object.cast()) {
            out.set(object);
        }
        Ok(())
    })
}

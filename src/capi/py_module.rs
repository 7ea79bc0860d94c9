//! The Python module, and the exchange API of its type.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use super::exchange::dlrs_managed_tensor_allocator;
use crate::abi::*;
use crate::module::{self, ModuleSlot, ModuleSlots, exchange};
use crate::python::PyObject;
use crate::python::exchange::current_work_stream;

struct Table(DLPackExchangeAPI);

// SAFETY: a table of constants.
unsafe impl Sync for Table {}

/// The exchange API of the type Tensor.
static EXCHANGE_API: Table = Table(DLPackExchangeAPI {
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
    // SAFETY: tensor is live, its reference passes to the object on success, out is writable, and
    // the thread is attached to Python: so dlpack.h has it for this function of the table.
    unsafe { exchange::to_object(&EXCHANGE_API.0, tensor, out) }
}

/// How Python makes the module.
static SLOTS: ModuleSlots = ModuleSlot::list(exec);

unsafe extern "C" fn exec(module: *mut PyObject) -> c_int {
    // SAFETY: module is live, made from `SLOTS`, and this thread attached while Python runs them.
    unsafe { module::exec(module, &EXCHANGE_API.0) }
}

/// What the initialisation function of the module returns.
///
/// # Safety
/// It runs as the `PyInit_` function of the module, on a thread attached to Python.
pub unsafe fn init() -> *mut PyObject {
    // SAFETY: this is the `PyInit_` function, and the thread is attached to Python.
    unsafe { module::init(&SLOTS) }
}

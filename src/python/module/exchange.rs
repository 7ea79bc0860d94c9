//! `from_dlpack`, `__dlpack__`, and the C exchange API of the type `Tensor`.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{NonNull, null_mut};

use super::arguments::{self, Call};
use super::attributes::tuple;
use super::copies::on_device;
use super::failure::{Answer, Failure, Message, answer, done, made, raise};
use super::state::State;
use super::tensor;
use super::views::method;
use crate::abi::*;
use crate::copy::CopyPolicy;
use crate::error::{Error, Status::*};
use crate::python::{Owned, PyObject, Python};
use crate::tensor::{Legacy, Versioned, convert, share};

const VERSIONED: &CStr = c"dltensor_versioned";
const USED: &CStr = c"used_dltensor_versioned";
const API: &CStr = c"dlpack_exchange_api";

unsafe extern "C" fn destroy(capsule: *mut PyObject) {
    // SAFETY: Python's word; under this name the capsule still has its tensor.
    unsafe {
        let python = Python::calling();
        if python.PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) != 0 {
            let tensor: *mut DLManagedTensorVersioned =
                python.PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast();
            if let Some(tensor) = NonNull::new(tensor) {
                share::release(tensor);
            }
        }
    }
}

method!(
    /// `__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)`
    dlpack, "Tensor.__dlpack__", |object, call| {
        let python = call.python;
        let mut values = [null_mut(); 4];
        call.bind(&[c"max_version", c"stream", c"dl_device", c"copy"], 0, &mut values)?;
        let tensor = share::retain(crate::tensor::block::Block::versioned(tensor::block_of(object)?))?;
        let capsule =
            made(python.PyCapsule_New(tensor.as_ptr().cast(), VERSIONED.as_ptr(), Some(destroy)));
        if capsule.is_err() {
            share::release(tensor);
        }
        capsule
    }
);

method!(
    /// `__dlpack_device__()`
    dlpack_device, "Tensor.__dlpack_device__", |object, call| {
        call.bind(&[], 0, &mut [])?;
        let device = tensor::description(object).device;
        tuple(call.python, &[device.device_type.into(), device.device_id.into()])
    }
);

method!(
    /// `from_dlpack(x, /, *, device=None, copy=None)`
    from_dlpack, "from_dlpack", |module, call| {
        let python = call.python;
        let &[object] = call.positional else {
            return Err(Failure::Call("takes exactly one positional argument"));
        };
        let state = State::of_module(python, module)?;
        let tensor = import(python, state, object)?;
        tensor::wrap(python, state.kind, tensor)
    }
);

unsafe fn import(python: Python, state: &State, object: *mut PyObject) -> Answer<Versioned> {
    unsafe {
        let api = {
            let kind = tensor::type_of(object);
            let found = match python._PyType_Lookup() {
                Some(lookup) => lookup(kind, state.exchange_api),
                None => null_mut(),
            };
            if !found.is_null() { python.Py_IncRef(found) }
            Owned::new(found)
        };
        let tensor: *mut DLManagedTensorVersioned = if let Some(api) = api {
            let api: *const DLPackExchangeAPI =
                python.PyCapsule_GetPointer(api.as_ptr(), API.as_ptr()).cast();
            let mut out = null_mut();
            let f = (*api).managed_tensor_from_py_object_no_sync.ok_or(Failure::Raised)?;
            if f(object.cast(), &mut out) != 0 {
                return Err(Failure::Raised);
            }
            out
        } else {
            let args = [null_mut(), object, state.version];
            let call = python.PyObject_VectorcallMethod().ok_or(Failure::Raised)?;
            let capsule = made(call(state.dlpack, args.as_ptr().add(1), 1 | 1 << 63, state.keywords))?;
            let tensor = python.PyCapsule_GetPointer(capsule.as_ptr(), VERSIONED.as_ptr());
            if tensor.is_null() {
                return Err(Failure::Raised);
            }
            python.PyCapsule_SetName(capsule.as_ptr(), USED.as_ptr());
            tensor.cast()
        };
        let tensor = NonNull::new(tensor).ok_or(Failure::Raised)?;
        let mut snap = crate::validate::Snapshot::new();
        if let Err(e) = snap.read_managed(tensor.as_ptr(), tensor::RULES) {
            share::release(tensor);
            return Err(e.into());
        }
        Ok(tensor)
    }
}

pub fn api_capsule(python: Python) -> Answer<Owned> {
    let api = (&raw const EXCHANGE_API).cast_mut().cast();
    // SAFETY: the table is static.
    unsafe { made(python.PyCapsule_New(api, API.as_ptr(), None)) }
}

struct Table(DLPackExchangeAPI);
// SAFETY: constant
unsafe impl Sync for Table {}

static EXCHANGE_API: Table = Table(DLPackExchangeAPI {
    header: DLPackExchangeAPIHeader {
        version: DLPackVersion { major: DLPACK_MAJOR_VERSION, minor: DLPACK_MINOR_VERSION },
        prev_api: null_mut(),
    },
    managed_tensor_allocator: None,
    managed_tensor_from_py_object_no_sync: Some(from_object),
    managed_tensor_to_py_object_no_sync: Some(to_object),
    dltensor_from_py_object_no_sync: Some(describe),
    current_work_stream: Some(current_work_stream),
});

unsafe extern "C" fn from_object(
    object: *mut c_void,
    out: *mut *mut DLManagedTensorVersioned,
) -> c_int {
    unsafe {
        match tensor::block_of(object.cast()).and_then(|b|share::retain(b.cast())) {
            Ok(tensor) => { out.write(tensor.as_ptr()); 0 }
            Err(error) => { raise(Python::calling(), "Tensor", &error.into()); -1 }
        }
    }
}

unsafe extern "C" fn to_object(
    tensor: *mut DLManagedTensorVersioned,
    out: *mut *mut c_void,
) -> c_int { -1 }

unsafe extern "C" fn describe(object: *mut c_void, out: *mut DLTensor) -> c_int {
    unsafe { out.write(*tensor::description(object.cast())); }
    0
}

unsafe extern "C" fn current_work_stream(_: DeviceCode, _: i32, out: *mut *mut c_void) -> c_int {
    unsafe { out.write(null_mut()) };
    0
}

//! `from_dlpack`, `__dlpack__`, and what the C exchange API of the type `Tensor` does.

use core::ffi::{CStr, c_int, c_void};
use core::ptr::{NonNull, null_mut};

use super::arguments::{self, Call};
use super::attributes::tuple;
use super::failure::{Answer, Failure, answer, made, raise as raise_failure};
use super::spec::Slot;
use super::state::State;
use super::tensor::{self, RULES};
use super::views::method;
use crate::abi::*;
use crate::copy::CopyPolicy;
use crate::error::{Error, Result, Status::*};
use crate::import::Import;
use crate::python::import::{Wanted, import};
use crate::python::{Owned, PyObject, Python, capsule, exchange, export, raise, stream};
use crate::tensor::block::Block;
use crate::tensor::{Versioned, share};
use crate::validate::Snapshot;

/// `PY_VECTORCALL_ARGUMENTS_OFFSET`: the place before the arguments may be used for the call.
const ARGUMENTS_OFFSET: usize = 1 << (usize::BITS - 1);

method!(
    /// `__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)`
    dlpack, "Tensor.__dlpack__", |object, call| {
        const NAMES: [&CStr; 4] = [c"max_version", c"stream", c"dl_device", c"copy"];
        let mut values = [null_mut(); 4];
        call.bind(&NAMES, 0, &mut values)?;
        let [max_version, stream, dl_device, copy] = values;
        if [stream, dl_device, copy].iter().all(|&value| arguments::is_none(call.python, value))
            && knows_versions(call.python, max_version)
        {
            let tensor = share::retain(Block::versioned(tensor::block_of(object)?))?;
            return capsule::new(call.python, tensor).map_err(|error| {
                share::release(tensor);
                error.into()
            });
        }
        let keywords = export::Keywords { stream, max_version, dl_device, copy };
        let request = export::read(call.python, &keywords)?;
        let tensor = Block::versioned(tensor::block_of(object)?);
        Ok(export::export(call.python, tensor, &request)?)
    }
);

/// Whether `max_version` is a pair of a consumer that knows versions, as in nearly every call.
/// Anything odd is left to [`export::read`].
///
/// # Safety
/// The object is NULL or live.
#[inline]
unsafe fn knows_versions(python: Python, max_version: *mut PyObject) -> bool {
    // SAFETY: the caller's word; a tuple gives what it has.
    unsafe {
        if max_version.is_null() || tensor::type_of(max_version) != python.PyTuple_Type() {
            return false;
        }
        if python.PyTuple_Size(max_version) != 2 {
            return false;
        }
        let major = python.PyLong_AsLongLong(python.PyTuple_GetItem(max_version, 0));
        if major == -1 {
            python.PyErr_Clear();
        }
        major >= 1
    }
}

method!(
    /// `__dlpack_device__()`
    dlpack_device, "Tensor.__dlpack_device__", |object, call| {
        call.bind(&[], 0, &mut [])?;
        let device = tensor::description(object).device;
        tuple(call.python, &[device.device_type.into(), device.device_id.into()])
    }
);

method!(
    /// `from_dlpack(x, /, *, device=None, copy=None, legacy_writable=False)`
    from_dlpack, "from_dlpack", |module, call| {
        let python = call.python;
        let &[object] = call.positional else {
            return Err(Failure::Call("takes exactly one positional argument"));
        };
        let mut values = [null_mut(); 4];
        call.bind(&[c"", c"device", c"copy", c"legacy_writable"], 1, &mut values)?;
        let [_, device, copy, legacy_writable] = values;
        let state = State::of_module(python, module)?;
        let tensor = if device.is_null() && copy.is_null() && legacy_writable.is_null() {
            match plain(python, state, object)? {
                Some(tensor) => tensor,
                None => import(python, object, &wanted(None, CopyPolicy::IfNeeded))?,
            }
        } else {
            let policy = arguments::policy(python, copy)?;
            let device = match arguments::is_none(python, device) {
                true => None,
                false => Some(arguments::device(python, device)?),
            };
            let mut wanted = wanted(device, policy);
            if arguments::truth(python, legacy_writable)? {
                wanted.legacy_flags = 0;
            }
            import(python, object, &wanted)?
        };
        tensor::wrap(python, state.kind, tensor)
    }
);

/// What is wanted of an object by one who says no more.
fn wanted(device: Option<DLDevice>, policy: CopyPolicy) -> Wanted {
    Wanted {
        import: Import {
            rules: RULES,
            align_bytes: 0,
            order: None,
            device,
            writable: false,
            policy,
            options: crate::copy::Options::DEFAULT,
        },
        // As NumPy does: the legacy struct cannot say.
        legacy_flags: DLPACK_FLAG_BITMASK_READ_ONLY,
        exchange_api: true,
        stream: stream::NONE,
    }
}

/// The tensor of an object by the exchange API of its type, or by its `__dlpack__` of today, not
/// put into a block yet. `None`: it has neither, and [`import`] knows other ways.
///
/// # Safety
/// `object` is a live object.
unsafe fn plain(python: Python, state: &State, object: *mut PyObject) -> Answer<Option<Versioned>> {
    // SAFETY: the caller's word; a type is live as long as an object of it.
    unsafe {
        let kind = tensor::type_of(object);
        let found = match python.attribute_of_type(kind, state.exchange_api)? {
            Some(_) => exchange::from_object(python, object, stream::NONE)?,
            None => None,
        };
        let tensor = match found {
            Some(tensor) => tensor,
            None => match call_dlpack(python, state, object)? {
                Some(capsule) => {
                    let flags = DLPACK_FLAG_BITMASK_READ_ONLY;
                    capsule::consume(python, capsule.as_ptr(), flags)?
                }
                None => return Ok(None),
            },
        };
        let mut snapshot = Snapshot::new();
        match snapshot.read_managed(tensor.as_ptr(), RULES) {
            Ok(()) => Ok(Some(tensor)),
            Err(error) => {
                share::release(tensor);
                Err(error.into())
            }
        }
    }
}

/// `object.__dlpack__(max_version=(1, 3))`; `None` when there is no such method, or an older one.
///
/// # Safety
/// `object` is a live object.
#[inline]
unsafe fn call_dlpack(
    python: Python,
    state: &State,
    object: *mut PyObject,
) -> Answer<Option<Owned>> {
    let args = [null_mut(), object, state.version];
    let args = args.as_ptr().wrapping_add(1);
    let nargs = 1 | ARGUMENTS_OFFSET;
    // SAFETY: one positional argument, the object, and one keyword.
    unsafe {
        let capsule = python.PyObject_VectorcallMethod(state.dlpack, args, nargs, state.keywords);
        if let Some(capsule) = Owned::new(capsule) {
            return Ok(Some(capsule));
        }
        let old: [fn(Python) -> _; 2] = [Python::PyExc_TypeError, Python::PyExc_AttributeError];
        if old.into_iter().any(|kind| raise::is(python, kind)) {
            python.PyErr_Clear();
            return Ok(None);
        }
        Err(Failure::Raised)
    }
}

/// `managed_tensor_from_py_object_no_sync`.
///
/// # Safety
/// As dlpack.h says: attached to Python; a live object, and a variable.
pub unsafe extern "C" fn from_object(
    object: *mut c_void,
    out: *mut *mut DLManagedTensorVersioned,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        give(object.cast(), |object| {
            let tensor = share::retain(Block::versioned(tensor::block_of(object)?))?;
            out.write(tensor.as_ptr());
            Ok(())
        })
    }
}

/// `dltensor_from_py_object_no_sync`.
///
/// # Safety
/// As dlpack.h says: attached to Python; a live object, and room for a description.
pub unsafe extern "C" fn describe(object: *mut c_void, out: *mut DLTensor) -> c_int {
    // SAFETY: the caller's word. A block of ours, for consumers that expect strides.
    unsafe {
        give(object.cast(), |object| {
            tensor::block_of(object)?;
            out.write(*tensor::description(object));
            Ok(())
        })
    }
}

/// `managed_tensor_to_py_object_no_sync`.
///
/// # Safety
/// As dlpack.h says: attached to Python; a live tensor, which is taken on success, and a variable.
pub unsafe extern "C" fn to_object(
    tensor: *mut DLManagedTensorVersioned,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller's word. On failure the tensor stays the caller's.
    unsafe {
        let python = Python::calling();
        let wrapped = super::kept(python).and_then(|module| {
            let state = State::of_module(python, module.as_ptr())?;
            let tensor = NonNull::new(tensor).ok_or(Error::new(DLRS_NULL_ARG))?;
            Snapshot::new().read_managed(tensor.as_ptr(), RULES)?;
            let object = made(python._PyObject_New(state.kind))?;
            Ok(tensor::fill(object, tensor))
        });
        match wrapped {
            Ok(object) => {
                out.write(object.into_ptr().cast());
                0
            }
            Err(failure) => {
                raise_failure(python, "Tensor", &failure);
                -1
            }
        }
    }
}

/// Runs a function of the exchange API on a `Tensor` of any interpreter.
///
/// # Safety
/// `object` is a live object.
unsafe fn give(object: *mut PyObject, body: impl FnOnce(*mut PyObject) -> Result<()>) -> c_int {
    // SAFETY: attached to Python, by the contract of the exchange API.
    unsafe {
        let python = Python::calling();
        let dealloc = python.PyType_GetSlot(tensor::type_of(object), Slot::Dealloc as c_int);
        let done = match core::ptr::eq(dealloc, tensor::dealloc as *const c_void) {
            true => body(object),
            false => {
                Err(Error::new(DLRS_BAD_ARG).detail("the object is no Tensor of this library"))
            }
        };
        match done {
            Ok(()) => 0,
            Err(error) => {
                python.PyErr_Clear();
                raise_failure(python, "Tensor", &Failure::Error(error));
                -1
            }
        }
    }
}

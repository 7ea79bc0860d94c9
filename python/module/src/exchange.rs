//! `from_dlpack`, `__dlpack__`, and what the C exchange API of the type `Tensor` does.

use core::ffi::{c_int, c_void};
use core::ptr::NonNull;

use super::arguments::{self, method};
use super::attributes::tuple;
use super::failure::{answer, refused};
use super::spec::Slot;
use super::tensor::{self, RULES, This};
use super::types;
use crate::abi::*;
use crate::copy::CopyPolicy;
use crate::error::{Error, Result, Status::*};
use crate::import::Import;
use crate::validate::limits::Limits;
use dlpack_python::import::{Wanted, import, protocol};
use dlpack_python::raise::required;
use dlpack_python::words::{given, usual_pair};
use dlpack_python::{Object, Owned, PyObject, Python, capsule, export, stream};
use dlpack_tensor::tensor::{Versioned, share};

/// `__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)`
///
/// # Safety
/// Python calls it for a `Tensor`.
pub unsafe extern "C" fn dlpack(
    object: *mut PyObject,
    args: *const *mut PyObject,
    nargs: isize,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: Python calls it attached, for a `Tensor`, with its arguments at `args`.
    unsafe {
        answer("Tensor.__dlpack__", |python| {
            let keywords = export::parse(args, nargs, names)?;
            let this = This::new(python, object);
            let others = [keywords.stream, keywords.dl_device, keywords.copy];
            if !others.iter().any(|&value| given(python, value))
                && knows_versions(python, keywords.max_version)
            {
                return this.live().share()?.give(|tensor| capsule::new(python, tensor));
            }
            exported(python, this.live().tensor(), &keywords)
        })
    }
}

/// The capsule for any keywords.
///
/// # Safety
/// The tensor and the objects are live.
#[inline(never)]
unsafe fn exported(
    python: Python,
    tensor: Versioned,
    keywords: &export::Keywords,
) -> Result<Owned> {
    // SAFETY: `tensor` is live; each of the keywords is NULL or a live object.
    unsafe {
        let request = export::read(python, keywords)?;
        export::export(python, tensor, &request).map_err(|error| match error.status() {
            DLRS_READ_ONLY => {
                let text = format_args!(
                    "Tensor.__dlpack__: a legacy capsule cannot say that the data is read-only: \
                     ask with max_version=(1, 0) or newer, or export a copy(); of a producer from \
                     before DLPack 1.0 that may be written, take it in with legacy_writable=True"
                );
                refused(python, python.PyExc_BufferError(), text)
            }
            _ => error,
        })
    }
}

/// Whether `max_version` is a pair of a consumer that knows versions, as in nearly every call.
/// Anything odd is left to [`export::read`].
///
/// # Safety
/// The object is NULL or live.
#[inline]
unsafe fn knows_versions(python: Python, max_version: *mut PyObject) -> bool {
    // SAFETY: `max_version` is live: it is not NULL.
    !max_version.is_null()
        && usual_pair(python, unsafe { Object::new(max_version) })
            .is_some_and(|[major, minor]| major >= 1 && minor >= 0)
}

method!(
    /// __dlpack_device__($self, /)
    /// The pair (device type, device id).
    /// >>> dlpack_rs.zeros(3).__dlpack_device__()
    /// (1, 0)
    __dlpack_device__ as "Tensor.__dlpack_device__", |this, call| (/ *) {
        let device = this.live().description().device;
        tuple(call.python, &[device.device_type.into(), device.device_id.into()])
    }
);

method!(
    /// from_dlpack(x, /, *, device=None, copy=None, legacy_writable=False)
    /// A Tensor over the memory of x, which has __dlpack__ or DLPack's C exchange API, a buffer or
    /// an array interface; arrays of ml_dtypes too.
    ///
    /// device: of the result; None: that of x.
    /// copy: True always copies, False never (BufferError if one is needed), None if needed. On
    /// devices without a backend the producer makes the copy.
    /// legacy_writable: producers from before DLPack 1.0 do not report whether their memory may be
    /// written, so it is read-only, and cannot be exported to one of them; True: it is writable.
    /// >>> dlpack_rs.from_dlpack(b'abc').tolist()
    /// [97, 98, 99]
    from_dlpack, |_, call| (object / * device copy legacy_writable) {
        let python = call.python;
        let policy = arguments::policy(python, copy)?;
        let device = if given(python, device) { Some(call.device(device)?) } else { None };
        let mut wanted = wanted(device, policy);
        if arguments::truth(python, legacy_writable)? {
            wanted.legacy_flags = 0;
        }
        tensor::wrap(python, types::known(python)?, import(python, Object::new(object), &wanted)?)
    }
);

/// The default request of an import.
pub fn wanted(device: Option<DLDevice>, policy: CopyPolicy) -> Wanted {
    Wanted {
        import: Import {
            rules: RULES,
            align_bytes: 0,
            order: None,
            device,
            writable: false,
            policy,
            options: crate::copy::Options::DEFAULT,
            limits: Limits::NONE,
        },
        // As NumPy: the legacy struct lacks the flag.
        legacy_flags: DLPACK_FLAG_BITMASK_READ_ONLY,
        protocols: protocol::ALL,
        stream: stream::NONE,
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
    // SAFETY: attached; `object` is live and `out` writable, for `ours` rejects NULL.
    unsafe {
        answer("Tensor", |python| {
            let object = ours(python, object, out.cast())?;
            let tensor = share::retain(object.live().tensor())?;
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
    // SAFETY: attached; `object` is live and `out` writable, for `ours` rejects NULL.
    unsafe {
        answer("Tensor", |python| {
            out.write(*ours(python, object, out.cast())?.live().description());
            Ok(())
        })
    }
}

/// `managed_tensor_to_py_object_no_sync`; `api` is the table that it stands in.
///
/// # Safety
/// As dlpack.h says: attached to Python; a live tensor, which is taken on success, and a variable.
pub unsafe fn to_object(
    api: &'static DLPackExchangeAPI,
    tensor: *mut DLManagedTensorVersioned,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: attached; `tensor` is live and `out` writable. On failure `tensor` is not taken.
    unsafe {
        answer("Tensor", |python| {
            let (Some(tensor), Some(out)) = (NonNull::new(tensor), NonNull::new(out)) else {
                return Err(Error::new(DLRS_NULL_ARG));
            };
            let kind = types::tensor(python, api)?.as_ptr();
            let object = tensor::wrap_if(python, kind, || tensor::owned(tensor))?;
            out.write(object.into_ptr().cast());
            Ok(())
        })
    }
}

/// The object of a function of the exchange API, if it is a `Tensor` of any interpreter.
///
/// # Safety
/// `object` is NULL or live.
unsafe fn ours(python: Python, object: *mut c_void, out: *mut c_void) -> Result<This> {
    if object.is_null() || out.is_null() {
        return Err(Error::new(DLRS_NULL_ARG));
    }
    // SAFETY: `object` is live, for it is not NULL; only our `Tensor`s have that `tp_dealloc`.
    unsafe {
        let kind = required(python.PyObject_Type(object.cast()))?;
        let dealloc = python.PyType_GetSlot(kind.as_ptr(), Slot::tp_dealloc as c_int);
        if !core::ptr::eq(dealloc, tensor::dealloc as *const c_void) {
            python.PyErr_Clear();
            let error = Error::new(DLRS_BAD_ARG);
            return Err(error
                .detail("the object is no Tensor of this library\0Import it by from_dlpack()."));
        }
        Ok(This::new(python, object.cast()))
    }
}

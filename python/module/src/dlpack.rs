//! `from_dlpack`, and `__dlpack__`.

use super::arguments::{self, method};
use super::failure::{answer, refused, tuple};
use super::tensor::{self, This, wanted};
use crate::error::{Result, Status::*};
use dlpack_python::import::import;
use dlpack_python::words::{given, usual_pair};
use dlpack_python::{Object, Owned, PyObject, Python, capsule, export};
use dlpack_tensor::tensor::Versioned;

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
        tensor::wrap(python, tensor::known(python)?, import(python, Object::new(object), &wanted)?)
    }
);

//! `from_dlpack`, and `__dlpack__`.

use super::arguments::{self, method};
use super::failure::{answer, refused};
use super::tensor::{self, Held, This, wanted};
use crate::error::{Result, Status::*};
use dlpack_python::words::{given, policy, usual_pair};
use dlpack_python::{Object, Owned, PyObject, capsule, export, numbers};

/// `__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)`
///
/// # Safety
/// Python calls it for a `Tensor`.
pub unsafe extern "C" fn dlpack(
    object: Object,
    args: *const Object,
    nargs: isize,
    names: Option<Object>,
) -> *mut PyObject {
    // SAFETY: Python calls it attached, for a `Tensor`, with its arguments at `args`.
    unsafe {
        answer("Tensor.__dlpack__", |python| {
            let keywords = export::parse(args, nargs, names)?;
            let this = This::new(python, object);
            let others = [keywords.stream, keywords.dl_device, keywords.copy];
            // As nearly every call, of a consumer that knows versions.
            let version = keywords.max_version.and_then(|pair| usual_pair(python, pair));
            if !others.iter().any(|&value| given(python, value).is_some())
                && version.is_some_and(|[major, minor]| major >= 1 && minor >= 0)
            {
                return this.live().share()?.give(|tensor| capsule::new(python, tensor));
            }
            exported(this, &keywords)
        })
    }
}

/// The capsule for any keywords.
#[inline(never)]
fn exported(this: This, keywords: &export::Keywords) -> Result<Owned> {
    let python = this.python;
    let request = export::read(python, keywords)?;
    // SAFETY: a live tensor.
    let capsule = unsafe { export::export(python, this.live().tensor(), &request) };
    capsule.map_err(|error| match error.status() {
        DLRS_READ_ONLY => {
            let text = format_args!(
                "Tensor.__dlpack__: a legacy capsule cannot say that the data is read-only: ask \
                 with max_version=(1, 0) or newer, or export a copy(); of a producer from before \
                 DLPack 1.0 that may be written, take it in with legacy_writable=True"
            );
            refused(python, python.PyExc_BufferError(), text)
        }
        _ => error,
    })
}

method!(
    /// __dlpack_device__($self, /)
    /// The pair (device type, device id).
    /// >>> dlpack_rs.zeros(3).__dlpack_device__()
    /// (1, 0)
    __dlpack_device__ as "Tensor.__dlpack_device__", |this, call| (/ *) {
        let device = this.live().description().device;
        numbers(call.python, &[device.device_type.into(), device.device_id.into()])
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
        let policy = policy(python, copy)?;
        let mut wanted = wanted(call.given(device, Call::device)?, policy);
        if arguments::truth(python, legacy_writable)? {
            wanted.legacy_flags = 0;
        }
        Held::import(python, object, &wanted)?.object(tensor::known(python)?)
    }
);

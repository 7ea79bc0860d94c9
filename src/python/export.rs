//! The whole of `__dlpack__`: what a consumer asks for, and the capsule that answers it.

use core::ffi::c_void;
use core::ptr::null_mut;

use super::array_interface::numbers;
use super::capsule;
use super::object::{Owned, detached};
use super::raise::{aside, refused, size};
use super::stream;
use super::symbols::{PyObject, Python};
use crate::abi::*;
use crate::copy::{self, CopyPolicy, Options, Streams};
use crate::error::{Error, Field::*, Result, Status::*};
use crate::layout::Order;
use crate::tensor::convert::{self, LegacyPolicy};
use crate::tensor::{Versioned, share};
use crate::validate::Snapshot;

/// What the keywords of `__dlpack__` say.
pub struct Request {
    /// The consumer's stream, [`stream::NONE`] for none given.
    pub stream: i64,
    /// The newest major version that the consumer knows; 0 is before versions.
    pub major: u32,
    /// The device on which it wants the data.
    pub device: Option<DLDevice>,
    /// Whether it wants a copy.
    pub copy: CopyPolicy,
    /// The stream on which the data is being made; NULL for the device's default stream.
    pub work_stream: *mut c_void,
}

/// The keyword arguments of one call, borrowed; NULL and `None` are the default.
pub struct Keywords {
    /// `stream`
    pub stream: *mut PyObject,
    /// `max_version`
    pub max_version: *mut PyObject,
    /// `dl_device`
    pub dl_device: *mut PyObject,
    /// `copy`
    pub copy: *mut PyObject,
}

/// Understands the keyword arguments.
///
/// # Safety
/// The objects are NULL or live.
pub unsafe fn read(python: Python, keywords: &Keywords) -> Result<Request> {
    let none = python._Py_NoneStruct();
    let given = |object: *mut PyObject| !object.is_null() && object != none;
    // SAFETY: the caller's word.
    unsafe {
        let stream = match given(keywords.stream) {
            false => stream::NONE,
            true => python.number(keywords.stream)?,
        };
        let major = match given(keywords.max_version) {
            false => 0,
            true => pair(python, keywords.max_version, "max_version")?[0],
        };
        let device = match given(keywords.dl_device) {
            false => None,
            true => Some(pair(python, keywords.dl_device, "dl_device")?),
        };
        let copy = match given(keywords.copy) {
            false => CopyPolicy::IfNeeded,
            true => match python.PyObject_IsTrue(keywords.copy) {
                0 => CopyPolicy::Never,
                1 => CopyPolicy::Always,
                _ => return Err(super::raise::raised()),
            },
        };
        let major = u32::try_from(major).unwrap_or(0);
        let device = device.map(|[device_type, device_id]| DLDevice { device_type, device_id });
        Ok(Request { stream, major, device, copy, work_stream: null_mut() })
    }
}

/// Two integers, such as a version or a device is.
///
/// # Safety
/// `object` is live.
unsafe fn pair(python: Python, object: *mut PyObject, name: &'static str) -> Result<[i32; 2]> {
    let mut found = [0i64; 2];
    // SAFETY: the caller's word.
    let count = unsafe { size(python.PySequence_Size(object)) }?;
    if count != found.len() {
        let text = format_args!("{name} must be a pair of integers, not {count} of them");
        return Err(refused(python, python.PyExc_TypeError(), text));
    }
    // SAFETY: as above.
    unsafe { numbers(python, object, &mut found) }?;
    match found.map(i32::try_from) {
        [Ok(first), Ok(second)] => Ok([first, second]),
        [Ok(_), Err(_)] => Err(Error::new(DLRS_BAD_ARG).option(name).value(found[1])),
        _ => Err(Error::new(DLRS_BAD_ARG).option(name).value(found[0])),
    }
}

/// The capsule that answers a request for one of our tensors.
///
/// # Safety
/// `tensor` is live; the capsule has a holder of its own.
pub unsafe fn export(python: Python, tensor: Versioned, request: &Request) -> Result<Owned> {
    // SAFETY: the caller's word; `shared` is a holder of ours until the capsule has it.
    unsafe {
        share::own(tensor)?;
        let shared = serve(python, tensor, request)?;
        let capsule = match request.major {
            0 => convert::to_legacy(shared, LegacyPolicy::DLRS_LEGACY_REFUSE)
                .and_then(|legacy| capsule::new_legacy(python, legacy)),
            _ => capsule::new(python, shared),
        };
        if capsule.is_err() {
            aside(python, || share::release(shared));
        }
        capsule
    }
}

/// The tensor as it is wanted, with one more holder: itself or a copy.
///
/// # Safety
/// `tensor` is live and ours.
unsafe fn serve(python: Python, tensor: Versioned, request: &Request) -> Result<Versioned> {
    // SAFETY: the caller's word.
    let DLTensor { device: here, data, .. } =
        unsafe { (&raw const (*tensor.as_ptr()).dl_tensor).read() };
    let target = request.device.unwrap_or(here);
    let stream = match target == here {
        true => stream::from_python(request.stream, here.device_type)?,
        // The copy is done when it is handed out, so no stream of the target needs to wait.
        false => stream::from_python(request.stream, target.device_type)?,
    };
    if target == here && request.copy != CopyPolicy::Always {
        // SAFETY: the caller's word.
        return unsafe {
            stream::order(here, data, stream, request.work_stream)?;
            share::retain(tensor)
        };
    }
    if request.copy == CopyPolicy::Never {
        let error = Error::new(DLRS_COPY_NEEDED).field(DLRS_FIELD_DEVICE_TYPE);
        return Err(error.value(here.device_type.into()).limit(target.device_type.into()));
    }
    let dst = if target == here { request.work_stream } else { null_mut() };
    let streams = Streams { src: request.work_stream, dst, ..Streams::NONE };
    let options = Options { raw_bytes: true, streams, ..Options::DEFAULT };
    let mut snapshot = Snapshot::new();
    // SAFETY: the caller's word.
    unsafe { snapshot.read_managed(tensor.as_ptr(), options.rules()) }?;
    detached(python, snapshot.nbytes()?, || copy::clone(&snapshot, Order::K, target, &options))
}

//! `__dlpack__`: the request of a consumer, and the capsule for it.

use core::ffi::c_void;
use core::ptr::null_mut;

use super::capsule;
use super::constants::{self, Constant};
use super::home;
use super::object::{Object, Owned, detached};
use super::raise::{Quoted, refused, utf8};
use super::stream;
use super::symbols::Python;
use super::{words, wrap};
use crate::abi::*;
use crate::copy::{self, CopyPolicy, Options, Streams};
use crate::device_type::{self, CPU};
use crate::error::{Error, Field::*, Result, Status::*};
use crate::integer_text::signed;
use crate::layout::Order;
use crate::tensor::block::Block;
use crate::tensor::convert::{self, LegacyPolicy};
use crate::tensor::{Versioned, ready, share};
use crate::validate::Snapshot;

/// The parsed keywords of `__dlpack__`.
pub struct Request {
    /// The consumer's stream, [`stream::NONE`] for none given.
    pub stream: i64,
    /// The newest major version that the consumer supports; 0 is legacy.
    pub major: u32,
    /// The device on which it wants the data.
    pub device: Option<DLDevice>,
    /// Whether it wants a copy.
    pub copy: CopyPolicy,
    /// The stream on which the data is being made; NULL for the device's default stream.
    pub work_stream: *mut c_void,
}

impl Request {
    /// Without keywords: the legacy struct.
    pub const ANY: Request = Request {
        stream: stream::NONE,
        major: 0,
        device: None,
        copy: CopyPolicy::IfNeeded,
        work_stream: null_mut(),
    };
}

/// The keyword arguments of one call; Python's `None` is the default, too.
pub struct Keywords<'a> {
    /// `stream`
    pub stream: Option<Object<'a>>,
    /// `max_version`
    pub max_version: Option<Object<'a>>,
    /// `dl_device`
    pub dl_device: Option<Object<'a>>,
    /// `copy`
    pub copy: Option<Object<'a>>,
}

/// The keyword arguments of a method that Python calls with an array: `args` are `nargs` positional
/// ones, and those by keyword, whose names are the tuple `names`.
///
/// # Safety
/// `names` is a tuple of texts; at `args` is a live object for each name.
pub unsafe fn parse<'a>(
    args: *const Object<'a>,
    nargs: isize,
    names: Option<Object>,
) -> Result<Keywords<'a>> {
    // SAFETY: to look into a tuple one need not be attached.
    let python = unsafe { Python::called() }?;
    if nargs != 0 {
        let (python, text) = (Python::get()?, "__dlpack__() takes no positional arguments");
        let text = format_args!("{text} ({} given)", signed(nargs as i64));
        return Err(refused(python, python.PyExc_TypeError(), text));
    }
    let mut values = [None; NAMES.len()];
    if let Some(names) = names {
        for place in 0..python.PyTuple_Size(names)? {
            // SAFETY: `names` is a tuple of so many names.
            let name = unsafe { names.item(python, place) };
            let known = NAMES.iter().position(|&constant| home::is_first(name, constant));
            let known = known.map_or_else(|| place_of_text(name), Ok)?;
            if let Some(value) = values.get_mut(known) {
                // SAFETY: at `args` are as many values as names: there are no positional ones.
                *value = Some(unsafe { args.add(place).read() });
            }
        }
    }
    let [max_version, copy, dl_device, stream] = values;
    Ok(Keywords { stream, max_version, dl_device, copy })
}

/// The keywords. Names in a call are interned: they are the very objects that are kept.
const NAMES: [Constant; 4] =
    [Constant::MaxVersion, Constant::Copy, Constant::DlDevice, Constant::Stream];

/// The place of a name in [`NAMES`] by its text.
#[inline(never)]
fn place_of_text(name: Object) -> Result<usize> {
    let python = Python::get()?;
    for (place, &constant) in NAMES.iter().enumerate() {
        constants::get(python, constant)?; // for the next time
        if words::is_word(python, name, constants::words(constant)) {
            return Ok(place);
        }
    }
    let name = Quoted(utf8(python, name)?);
    let text = format_args!("__dlpack__() got an unexpected keyword argument '{name}'");
    Err(refused(python, python.PyExc_TypeError(), text))
}

/// Understands the keyword arguments.
#[inline(always)]
pub fn read(python: Python, keywords: &Keywords) -> Result<Request> {
    let given = |object| words::given(python, object);
    let &Keywords { stream, max_version, dl_device, copy } = keywords;
    let mut request = Request::ANY;
    if let Some(stream) = given(stream) {
        request.stream = python.PyLong_AsLongLong(stream)?;
    }
    if let Some(version) = given(max_version) {
        let [major, _] = words::pair(python, version, "max_version")?;
        request.major = u32::try_from(major).unwrap_or(0);
    }
    if let Some(device) = given(dl_device) {
        let [device_type, device_id] = words::pair(python, device, "dl_device")?;
        request.device = Some(DLDevice { device_type, device_id });
    }
    request.copy = words::policy(python, copy)?;
    Ok(request)
}

/// The capsule for a request of one of our tensors.
///
/// # Safety
/// `tensor` is live; the capsule has its own reference.
pub unsafe fn export(python: Python, tensor: Versioned, request: &Request) -> Result<Owned> {
    // SAFETY: `tensor` is live; `served` is a reference of its own, which goes to the capsule.
    unsafe {
        share::own(tensor)?;
        let served = match serves(python, tensor, request)? {
            true => share::retain(tensor)?,
            false => copied(python, tensor, request)?,
        };
        present(python, served, request.major)
    }
}

/// The capsule for a request of memory that `object` owns.
///
/// # Safety
/// `tensor` is as of [`Snapshot::read`].
#[inline(always)]
pub unsafe fn export_kept(
    python: Python,
    tensor: *const DLTensor,
    flags: u64,
    object: Object,
    request: &Request,
) -> Result<Owned> {
    // SAFETY: `tensor`, its shape and its strides are readable; `kept` is our reference.
    unsafe {
        let kept = Block::versioned(wrap::around(python, tensor, flags, object)?);
        match serves(python, kept, request) {
            Ok(true) => present(python, kept, request.major),
            other => export_copy(python, kept, request, other),
        }
    }
}

/// As [`export`], of our own reference, which is released: it does not meet the request, or that is
/// unknown.
///
/// # Safety
/// `kept` is live and ours; its reference is taken.
#[inline(never)]
unsafe fn export_copy(
    python: Python,
    kept: Versioned,
    request: &Request,
    serves: Result<bool>,
) -> Result<Owned> {
    // SAFETY: `kept` is live and ours; its reference is released once, after the copy.
    unsafe {
        let copy = serves.and_then(|_| copied(python, kept, request));
        wrap::release(python, kept);
        present(python, copy?, request.major)
    }
}

/// Puts a tensor of ours into the capsule that the consumer understands, or releases it.
///
/// # Safety
/// `tensor` is live and ours; its reference is taken.
#[inline(never)]
unsafe fn present(python: Python, tensor: Versioned, major: u32) -> Result<Owned> {
    // SAFETY: `tensor` is live and ours; its reference goes to the capsule, or is released here.
    unsafe {
        let capsule = match major {
            0 => convert::to_legacy(tensor, LegacyPolicy::DLRS_LEGACY_REFUSE)
                .and_then(|legacy| capsule::new_legacy(python, legacy)),
            _ => capsule::new(python, tensor),
        };
        if capsule.is_err() {
            wrap::release(python, tensor);
        }
        capsule
    }
}

/// Whether the tensor itself meets the request; then the consumer's stream waits for it.
///
/// # Safety
/// `tensor` is live and ours.
#[inline(always)]
unsafe fn serves(python: Python, tensor: Versioned, request: &Request) -> Result<bool> {
    // SAFETY: `tensor` is a live struct of ours, so of major 1.
    let here = unsafe { (&raw const (*tensor.as_ptr()).dl_tensor.device).read() };
    let target = request.device.unwrap_or(here);
    let serves = target == here && request.copy != CopyPolicy::Always;
    if request.stream != stream::NONE || target.device_type != CPU.device_type {
        // SAFETY: `tensor` is a live struct of ours.
        unsafe { order(python, tensor, request, serves) }?;
    }
    Ok(serves)
}

/// Makes the consumer's stream wait for the tensor itself, if that is exported.
///
/// # Safety
/// As [`serves`].
#[inline(never)]
unsafe fn order(python: Python, tensor: Versioned, request: &Request, serves: bool) -> Result<()> {
    // SAFETY: `tensor` is a live struct of ours, so of major 1.
    let DLTensor { device: here, data, .. } =
        unsafe { (&raw const (*tensor.as_ptr()).dl_tensor).read() };
    let target = request.device.unwrap_or(here);
    // The stream of a consumer that wants a copy in host memory is one of the device that has the
    // data. A copy is done when it is handed out, so nobody needs to wait.
    let copied_from = !serves && !stream::has_streams(target.device_type);
    let of = if copied_from { here } else { target };
    let stream = stream::from_python(request.stream, of.device_type)?;
    if !serves {
        return Ok(());
    }
    // SAFETY: `tensor` is live; both streams are those of its device, for it serves itself.
    unsafe {
        match ready::of(tensor) {
            Some(ready) => stream::after(python, ready, (here, data), stream),
            None => stream::order(here, data, stream, request.work_stream),
        }
    }
}

/// The requested copy, or the memory itself as the CPU's.
///
/// # Safety
/// `tensor` is live and ours.
unsafe fn copied(python: Python, tensor: Versioned, request: &Request) -> Result<Versioned> {
    // SAFETY: `tensor` is a live struct of ours, so of major 1.
    let here = unsafe { (&raw const (*tensor.as_ptr()).dl_tensor.device).read() };
    let target = request.device.unwrap_or(here);
    let shared = request.copy != CopyPolicy::Always && device_type::serves_cpu(here, target);
    if request.copy == CopyPolicy::Never && !shared {
        let error = Error::new(DLRS_COPY_NEEDED).field(DLRS_FIELD_DEVICE_TYPE);
        return Err(error.value(here.device_type.into()).limit(target.device_type.into()));
    }
    let dst = if target == here { request.work_stream } else { null_mut() };
    // SAFETY: `tensor` is live; the record is asked for only, not kept.
    let recorded = here != CPU && unsafe { ready::of(tensor) }.is_some();
    let src = if recorded { null_mut() } else { request.work_stream };
    let streams = Streams { src, dst, ..Streams::NONE };
    let options = Options { raw_bytes: true, streams, ..Options::DEFAULT };
    let mut snapshot = Snapshot::new();
    // SAFETY: `tensor` is live, and the snapshot is read from it.
    unsafe {
        snapshot.read_managed(tensor.as_ptr(), options.rules())?;
        if shared {
            return copy::as_cpu(&snapshot, tensor, &options.streams);
        }
    }
    detached(python, snapshot.nbytes()?, || copy::clone(&snapshot, Order::K, target, &options))
}

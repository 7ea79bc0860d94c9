//! `__dlpack__`: the request of a consumer, and the capsule for it.

use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::ptr::null_mut;

use super::constants::{self, Constant};
use super::wrap::{self, Reference};
use super::{capsule, home, stream, words};
use crate::abi::*;
use crate::copy::{self, CopyPolicy, Options, Streams};
use crate::device_type::{self, CPU};
use crate::error::{Error, Field::*, Result, Status::*};
use crate::integer_text::signed;
use crate::layout::Order;
use crate::tensor::block::Block;
use crate::tensor::convert::{self, LegacyPolicy};
use crate::tensor::{Versioned, ready, share};
use crate::validate::{Snapshot, flags_of};
use crate::{Object, Owned, Python, Quoted, detached, refused, utf8};

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
    // SAFETY: `tensor` is live; the caller's reference is never released here, and `served` is one
    // of its own.
    unsafe {
        share::own(tensor)?;
        // One more reference takes IS_COPIED: only a tensor that is handed out itself gets one.
        let lent = ManuallyDrop::new(Reference::new(python, tensor));
        let served = match serves(&lent, request)? {
            true => {
                if request.major == 0 {
                    let (flags, dtype) = (flags_of(tensor.as_ptr()), lent.description()?.dtype);
                    convert::check_droppable(flags, dtype, LegacyPolicy::DLRS_LEGACY_REFUSE)?;
                }
                Reference::new(python, share::retain(tensor)?)
            }
            false => copied(&lent, request)?,
        };
        present(served, request.major)
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
    // SAFETY: `tensor`, its shape and its strides are readable; the new reference is ours.
    let kept = unsafe {
        Reference::new(python, Block::versioned(wrap::around(python, tensor, flags, object)?))
    };
    let served = if serves(&kept, request)? { kept } else { copied(&kept, request)? };
    present(served, request.major)
}

/// Puts a tensor of ours into the capsule that the consumer understands.
#[inline(never)]
fn present(tensor: Reference, major: u32) -> Result<Owned> {
    let python = tensor.python;
    // SAFETY: a live tensor of ours, whose reference goes to the capsule.
    tensor.give(|tensor| unsafe {
        match major {
            0 => convert::to_legacy(tensor, LegacyPolicy::DLRS_LEGACY_REFUSE)
                .and_then(|legacy| capsule::new_legacy(python, legacy)),
            _ => capsule::new(python, tensor),
        }
    })
}

/// Whether the tensor itself meets the request; then the consumer's stream waits for it.
#[inline(always)]
fn serves(tensor: &Reference, request: &Request) -> Result<bool> {
    let here = tensor.description()?.device;
    let target = request.device.unwrap_or(here);
    let serves = target == here && request.copy != CopyPolicy::Always;
    if request.stream != stream::NONE || target.device_type != CPU.device_type {
        order(tensor, request, serves)?;
    }
    Ok(serves)
}

/// Makes the consumer's stream wait for the tensor itself, if that is exported.
#[inline(never)]
fn order(tensor: &Reference, request: &Request, serves: bool) -> Result<()> {
    let DLTensor { device: here, data, .. } = tensor.description()?;
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
        match ready::of(tensor.tensor()) {
            Some(ready) => stream::after(tensor.python, ready, (here, data), stream),
            None => stream::order(here, data, stream, request.work_stream),
        }
    }
}

/// The requested copy, or the memory itself as the CPU's.
#[inline(never)]
fn copied(tensor: &Reference, request: &Request) -> Result<Reference> {
    let (python, here) = (tensor.python, tensor.description()?.device);
    let target = request.device.unwrap_or(here);
    let shared = request.copy != CopyPolicy::Always && device_type::serves_cpu(here, target);
    if request.copy == CopyPolicy::Never && !shared {
        let error = Error::new(DLRS_COPY_NEEDED).field(DLRS_FIELD_DEVICE_TYPE);
        return Err(error.value(here.device_type.into()).limit(target.device_type.into()));
    }
    let dst = if target == here { request.work_stream } else { null_mut() };
    // SAFETY: `tensor` is live; the record is asked for only, not kept.
    let recorded = here != CPU && unsafe { ready::of(tensor.tensor()) }.is_some();
    let src = if recorded { null_mut() } else { request.work_stream };
    let streams = Streams { src, dst, ..Streams::NONE };
    let options = Options { raw_bytes: true, streams, ..Options::DEFAULT };
    let mut snapshot = Snapshot::new();
    tensor.read(options.rules(), &mut snapshot)?;
    // SAFETY: a live tensor, from which the snapshot is read; what is made is ours, by a copy that
    // calls nothing of Python.
    unsafe {
        let made = match shared {
            true => copy::as_cpu(&snapshot, tensor.tensor(), &options.streams)?,
            false => detached(python, snapshot.nbytes()?, || {
                copy::clone(&snapshot, Order::K, target, &options)
            })?,
        };
        Ok(Reference::new(python, made))
    }
}

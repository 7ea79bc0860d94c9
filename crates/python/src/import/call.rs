//! Calls `__dlpack__` with the keywords that are needed, and with fewer if it rejects them.

use crate::abi::DLDevice;
use crate::constants::{self, Constant};
use crate::copy::CopyPolicy;
use crate::error::Result;
use crate::home::Home;
use crate::{Object, Owned, Python, is, meanwhile, numbers, raised, stream, tuple_of};
use dlpack_tensor::import::Import;

/// The request of an import.
pub struct Wanted {
    /// What the tensor must be, and whether it may be copied.
    pub import: Import,
    /// What a legacy tensor's flags are: the struct has none.
    pub legacy_flags: u64,
    /// The protocols to try, of [`super::protocol`].
    pub protocols: u32,
    /// The number of the stream on which the tensor will be used.
    pub stream: i64,
}

/// Calls `__dlpack__`: the capsule, and whether the stream was named. `None` when there is no such
/// method.
pub(super) fn call_dlpack(
    python: Python,
    home: &Home,
    object: Object,
    wanted: &Wanted,
) -> Result<Option<(Owned, bool)>> {
    let Import { device, policy, .. } = wanted.import;
    let plain = wanted.stream == stream::NONE && device.is_none() && policy != CopyPolicy::Never;
    if plain && let Some(made) = call_plain(python, home, object)? {
        return Ok(Some((made, false)));
    }
    call_rows(python, object, wanted, plain)
}

/// As [`call_dlpack`], of any request. Where it is `plain`, that call was made, and has raised.
#[inline(never)]
fn call_rows(
    python: Python,
    object: Object,
    wanted: &Wanted,
    plain: bool,
) -> Result<Option<(Owned, bool)>> {
    let ToName { with_device, alone: stream } = stream_to_name(python, object, wanted)?;
    let Import { device, policy, .. } = wanted.import;
    let copy = (policy == CopyPolicy::Never).then_some(false);
    let bare = Asked { version: false, stream, device: None, copy: None };
    let versioned = Asked { version: true, ..bare };
    let newest = Asked { stream: with_device, device, copy, ..versioned };
    for (n, row) in [newest, versioned, bare].iter().enumerate() {
        if n == 1 && device.is_none() && copy.is_none() {
            continue;
        }
        let made = match plain && n == 0 {
            true => None,
            false => call(python, object, row)?,
        };
        if let Some(made) = made {
            return Ok(Some((made, row.stream.is_some())));
        }
        // NumPy rejects any other device: then the library copies.
        let elsewhere = n == 0 && device.is_some() && is(python, Python::PyExc_BufferError);
        if !(elsewhere || is(python, Python::PyExc_TypeError)) {
            break;
        }
        if row.version {
            python.clear();
        }
    }
    match lacks(python, object, constants::get(python, Constant::Dlpack)?) {
        true => Ok(None),
        false => Err(raised()),
    }
}

/// The usual call, `__dlpack__(max_version=(1, 3))`, which needs nothing new.
#[inline]
fn call_plain(python: Python, home: &Home, object: Object) -> Result<Option<Owned>> {
    let method = constants::of(python, home, Constant::Dlpack)?;
    let version = constants::of(python, home, Constant::Version)?;
    let names = constants::of(python, home, Constant::MaxVersionOnly)?;
    let args = [object, version];
    // SAFETY: one positional argument, the object, and a value for the one name.
    unsafe {
        let made = python.PyObject_VectorcallMethod(method, args.as_ptr(), 1, Some(names));
        Ok(Owned::new(made))
    }
}

/// The stream to name to an object: none where there are no streams.
#[derive(Clone, Copy)]
pub(super) struct ToName {
    /// Together with `dl_device`, whose stream it then is.
    pub(super) with_device: Option<i64>,
    /// Alone: then it is one of the device on which the data is.
    alone: Option<i64>,
}

#[inline(always)]
pub(super) fn stream_to_name(python: Python, object: Object, wanted: &Wanted) -> Result<ToName> {
    if wanted.stream == stream::NONE {
        return Ok(ToName { with_device: None, alone: None });
    }
    stream_by_device(python, object, wanted)
}

/// As [`stream_to_name`], of a stream.
#[inline(never)]
fn stream_by_device(python: Python, object: Object, wanted: &Wanted) -> Result<ToName> {
    let here = said_device(python, object)?;
    let target = wanted.import.device.or(here);
    let name = |device: Option<DLDevice>| {
        device.filter(|device| stream::has_streams(device.device_type)).map(|_| wanted.stream)
    };
    Ok(ToName { with_device: name(target), alone: name(here.filter(|_| target == here)) })
}

/// The device that the object reports; `None` if it has no `__dlpack_device__`.
fn said_device(python: Python, object: Object) -> Result<Option<DLDevice>> {
    let method = constants::get(python, Constant::DlpackDevice)?;
    let found = match python.call(method, &[object]) {
        Ok(found) => found,
        Err(_) if lacks(python, object, method) => return Ok(None),
        Err(error) => return Err(error),
    };
    let number = |place| {
        let item = python.PySequence_GetItem(found.object(), place)?;
        python.PyLong_AsLongLong(item.object()).map(|number| i32::try_from(number).ok())
    };
    let Some(device_type) = number(0)? else { return Ok(None) };
    // Memory without streams: its number does not matter, and is None in Paddle.
    let device_id = if stream::has_streams(device_type) { number(1)? } else { Some(0) };
    Ok(device_id.map(|device_id| DLDevice { device_type, device_id }))
}

/// Whether the AttributeError that is set is for the missing method; then it is cleared.
/// Else an exception stays set.
#[cold]
pub(super) fn lacks(python: Python, object: Object, method: Object) -> bool {
    if !is(python, Python::PyExc_AttributeError) {
        return false;
    }
    let found = meanwhile(python, |_| true, || python.attribute(object, method));
    let missing = matches!(found, Ok(None));
    if missing {
        python.clear();
    }
    missing
}

/// The keyword arguments of one call: those that are `None` or false are left out.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    /// `max_version`
    pub(super) version: bool,
    /// `stream`
    pub(super) stream: Option<i64>,
    /// `dl_device`
    pub(super) device: Option<DLDevice>,
    /// `copy`
    pub(super) copy: Option<bool>,
}

/// Calls `__dlpack__` with these; `None` when that raised.
#[inline(never)]
pub(super) fn call(python: Python, object: Object, asked: &Asked) -> Result<Option<Owned>> {
    const NAMES: [Constant; 4] =
        [Constant::Stream, Constant::MaxVersion, Constant::DlDevice, Constant::Copy];
    // Constants live as long as the interpreter.
    let kept = |constant| constants::get(python, constant);
    let device = asked.device.map(|device| [device.device_type.into(), device.device_id.into()]);
    let stream = asked.stream.map(|stream| python.PyLong_FromLongLong(stream)).transpose()?;
    let version = asked.version.then(|| kept(Constant::Version)).transpose()?;
    let device = device.map(|pair| numbers(python, &pair)).transpose()?;
    let copy = asked.copy.map(|copy| python.PyBool_FromLong(copy.into())).transpose()?;
    let [stream, device, copy] =
        [&stream, &device, &copy].map(|made| made.as_ref().map(Owned::object));
    let (mut args, mut names, mut n) = ([object; 1 + NAMES.len()], [object; NAMES.len()], 0);
    for (name, value) in NAMES.into_iter().zip([stream, version, device, copy]) {
        if let (Some(value), Some(text), Some(slot)) =
            (value, names.get_mut(n), args.get_mut(n + 1))
        {
            (*text, *slot) = (kept(name)?, value);
            n += 1;
        }
    }
    let names = tuple_of(python, names.get(..n).unwrap_or_default())?;
    let names = (n > 0).then(|| names.object());
    let method = kept(Constant::Dlpack)?;
    // SAFETY: one positional argument, the object, and as many values as there are names.
    unsafe { Ok(Owned::new(python.PyObject_VectorcallMethod(method, args.as_ptr(), 1, names))) }
}

//! Any Python object that holds a tensor, taken in.
//!
//! The ways, in this order: the exchange API of its type, `__dlpack__` with all keywords that are
//! needed, with fewer where it does not know them, a capsule itself, the buffer protocol, the array
//! interfaces. What comes out of any of them is checked, and served, by [`crate::import`]. A copy
//! that no backend of ours makes is asked of the producer.

use core::ptr::{null_mut, with_exposed_provenance_mut};

use super::array_interface::numbers;
use super::capsule;
use super::constants::{self, Constant, integer, pair, text, tuple};
use super::home::{self, Home};
use super::object::{Owned, detached};
use super::raise::{KindOf, aside, is, raised, refused, required};
use super::stream::{self, Stream};
use super::symbols::{PyObject, Python};
use super::{array_interface, buffer, exchange, wrap};
use crate::abi::*;
use crate::copy::{CopyPolicy, Options, Streams};
use crate::device_type::{CPU, host_reachable};
use crate::error::{Error, Field::*, Result, Status::*};
use crate::import::{self, Import};
use crate::tensor::{Versioned, block};
use crate::validate::{Snapshot, check_version, flags_of};

/// What is wanted of an object.
pub struct Wanted {
    /// What the tensor must be, and whether it may be copied.
    pub import: Import,
    /// What a legacy tensor's flags are: the struct has none.
    pub legacy_flags: u64,
    /// The ways that may be gone, of [`protocol`].
    pub protocols: u32,
    /// The number of the stream on which the tensor will be used.
    pub stream: i64,
}

/// The ways, as bits.
pub mod protocol {
    /// The exchange API of the type.
    pub const EXCHANGE_API: u32 = 1 << 0;
    /// `__dlpack__`
    pub const DUNDER_DLPACK: u32 = 1 << 1;
    /// A capsule itself.
    pub const CAPSULE: u32 = 1 << 2;
    /// The buffer protocol.
    pub const BUFFER: u32 = 1 << 3;
    /// The array interfaces.
    pub const ARRAY_INTERFACE: u32 = 1 << 4;
    /// Any.
    pub const ALL: u32 = (1 << 5) - 1;
}

/// Takes the tensor of `object` in.
///
/// # Safety
/// `object` is a live object.
pub unsafe fn import(python: Python, object: *mut PyObject, wanted: &Wanted) -> Result<Versioned> {
    // SAFETY: the caller's word; `tensor` is then ours.
    unsafe {
        let tensor = acquire(python, object, wanted)?;
        match serve(python, object, tensor, wanted) {
            Ok(served) => Ok(served),
            Err(error) => {
                wrap::release(python, tensor); // its deleter may be Python code
                Err(error)
            }
        }
    }
}

impl Wanted {
    /// Whether one of some ways may be gone.
    fn may(&self, ways: u32) -> bool {
        self.protocols & ways != 0
    }
}

/// # Safety
/// `object` and `tensor` are live; on success the result owns the caller's reference.
unsafe fn serve(
    python: Python,
    object: *mut PyObject,
    tensor: Versioned,
    wanted: &Wanted,
) -> Result<Versioned> {
    // SAFETY: the caller's word; past the check the struct is of major 1.
    let flags = unsafe {
        check_version(tensor.as_ptr())?;
        flags_of(tensor.as_ptr())
    };
    let copied = flags & DLPACK_FLAG_BITMASK_IS_COPIED != 0;
    let policy = match wanted.import.policy {
        CopyPolicy::Never if copied => {
            let error = Error::new(DLRS_COPY_NEEDED).field(DLRS_FIELD_FLAGS);
            return Err(error.value(flags as i64).detail("the producer made a copy"));
        }
        CopyPolicy::Always if copied => CopyPolicy::IfNeeded, // it is there already
        policy => policy,
    };
    let asked = &wanted.import;
    let any = asked.order.is_none() && asked.align_bytes <= 1 && !asked.writable;
    // SAFETY: the caller's word.
    unsafe {
        match policy {
            CopyPolicy::IfNeeded if any && asked.device.is_none() => {
                import::as_is(tensor, asked.rules, &asked.limits)
            }
            CopyPolicy::Never => import::import(tensor, asked),
            _ => serve_copy(python, object, tensor, wanted, policy),
        }
    }
}

/// As [`serve`], of what may be copied.
///
/// # Safety
/// As [`serve`].
#[inline(never)]
unsafe fn serve_copy(
    python: Python,
    object: *mut PyObject,
    tensor: Versioned,
    wanted: &Wanted,
    policy: CopyPolicy,
) -> Result<Versioned> {
    let Import { rules, device, options, .. } = wanted.import;
    let mut snapshot = Snapshot::new();
    // SAFETY: the caller's word.
    unsafe {
        snapshot.read_managed(tensor.as_ptr(), rules)?;
        wanted.import.limits.check(&snapshot, device)?;
        let streams = streams_of(wanted, snapshot.device)?;
        let import = Import { policy, options: Options { streams, ..options }, ..wanted.import };
        let nbytes = if import.rules.layout { snapshot.nbytes()? } else { 0 };
        let snapshot = &mut snapshot;
        match detached(python, nbytes, || import::import_read(tensor, snapshot, &import)) {
            Err(failure) if beyond_us(&failure) => {
                let copy = ask_for_copy(python, object, snapshot, wanted, failure)?;
                wrap::release(python, tensor);
                Ok(copy)
            }
            result => result,
        }
    }
}

/// Whether a copy failed because no backend makes it, or the driver is not there.
fn beyond_us(failure: &Error) -> bool {
    failure.status == DLRS_DEVICE_TYPE || failure.status as i32 / 100 == 5
}

/// The producer's own copy of the tensor that `src` was read from and that is still held.
///
/// # Safety
/// `object` is live.
#[cold]
unsafe fn ask_for_copy(
    python: Python,
    object: *mut PyObject,
    src: &Snapshot,
    wanted: &Wanted,
    failure: Error,
) -> Result<Versioned> {
    let method = constants::get(python, Constant::Dlpack)?;
    // SAFETY: the caller's word.
    unsafe {
        let stream = stream_to_name(python, object, wanted)?.with_device;
        let asked = Asked { version: true, stream, device: wanted.import.device, copy: Some(true) };
        let keywords = Keywords::new(python, &asked)?;
        let Some(capsule) = keywords.call(python, method.as_ptr(), object) else {
            if is(python, Python::PyExc_TypeError) {
                python.PyErr_Clear();
            } else if !lacks(python, object, method.as_ptr()) {
                return Err(raised());
            }
            return Err(failure
                .detail("no backend can copy it, and the producer does not accept copy=True"));
        };
        // Nobody else has this memory: a legacy struct's may be written.
        let copy = capsule::consume(python, capsule.as_ptr(), 0)?;
        let device = wanted.import.device.unwrap_or(src.device);
        let import = Import { device: Some(device), policy: CopyPolicy::Never, ..wanted.import };
        let result = match is_other_memory(copy, src, &import) {
            Ok(true) => import::import(copy, &import),
            Ok(false) => {
                const SAME: &str =
                    "no backend copies it, and copy=True gave the producer's own memory";
                Err(failure.detail(SAME))
            }
            Err(error) => Err(error),
        };
        if result.is_err() {
            wrap::release(python, copy);
        }
        result
    }
}

/// Whether a copy is one: both tensors are held, so their memory is not the same by chance.
///
/// # Safety
/// `copy` is live.
unsafe fn is_other_memory(copy: Versioned, src: &Snapshot, import: &Import) -> Result<bool> {
    let mut found = Snapshot::new();
    // SAFETY: the caller's word.
    unsafe { found.read_managed(copy.as_ptr(), import.rules)? };
    Ok(found.empty || found.device != src.device || found.first() != src.first())
}

/// The tensor as the object gives it.
///
/// # Safety
/// `object` is live.
unsafe fn acquire(python: Python, object: *mut PyObject, wanted: &Wanted) -> Result<Versioned> {
    // SAFETY: the caller's word throughout.
    unsafe {
        // It cannot be told where the tensor is wanted.
        let by_table = wanted.may(protocol::EXCHANGE_API) && wanted.import.device.is_none();
        if by_table && let Some(tensor) = exchange::from_object(python, object, wanted.stream)? {
            return Ok(tensor);
        }
        let called = match wanted.may(protocol::DUNDER_DLPACK) {
            true => call_dlpack(python, object, wanted),
            false => Ok(None),
        };
        let (tensor, named) = match called {
            Ok(Some((capsule, named))) => {
                (capsule::consume(python, capsule.as_ptr(), wanted.legacy_flags)?, named)
            }
            Ok(None) => other_ways(python, object, wanted)?,
            Err(refusal) => (refused_by_numpy(python, object, wanted, refusal)?, true),
        };
        let drop = |_: &Error| wrap::release(python, tensor);
        // What one of ours says of its elements is so.
        if !by_table && block::of_versioned(tensor).is_none() {
            exchange::check_literal(python, object).inspect_err(drop)?;
        }
        if !named {
            order_unnamed(tensor, wanted).inspect_err(drop)?;
        }
        Ok(tensor)
    }
}

/// The tensor of an array whose dtype NumPy refuses to export, because only ml_dtypes knows it, or
/// the refusal, which stays set.
///
/// # Safety
/// `object` is live, and an exception is set.
#[cold]
unsafe fn refused_by_numpy(
    python: Python,
    object: *mut PyObject,
    wanted: &Wanted,
    refusal: Error,
) -> Result<Versioned> {
    let may = wanted.may(protocol::ARRAY_INTERFACE) && refusal.status == DLRS_CALLBACK;
    if !may || !is(python, Python::PyExc_BufferError) {
        return Err(refusal);
    }
    // SAFETY: the caller's word.
    match aside(python, || unsafe { array_interface::from_named(python, object) }) {
        Ok(Some(tensor)) => {
            // SAFETY: attached.
            unsafe { python.PyErr_Clear() };
            Ok(tensor)
        }
        _ => Err(refusal),
    }
}

/// The tensor, and whether whoever gave it knows of the stream.
///
/// # Safety
/// `object` is live and has no `__dlpack__`.
#[cold]
unsafe fn other_ways(
    python: Python,
    object: *mut PyObject,
    wanted: &Wanted,
) -> Result<(Versioned, bool)> {
    // SAFETY: the caller's word.
    unsafe {
        use capsule::{LEGACY, LEGACY_USED, VERSIONED, VERSIONED_USED};
        if wanted.may(protocol::CAPSULE) {
            for name in [VERSIONED, LEGACY, VERSIONED_USED, LEGACY_USED] {
                if python.PyCapsule_IsValid(object, name.as_ptr()) != 0 {
                    return Ok((capsule::consume(python, object, wanted.legacy_flags)?, false));
                }
            }
        }
        if wanted.may(protocol::BUFFER)
            && let Some(tensor) = buffer::from_object(python, object)?
        {
            return Ok((tensor, true));
        }
        if wanted.may(protocol::ARRAY_INTERFACE)
            && let Some(tensor) = array_interface::from_object(python, object, wanted.stream)?
        {
            return Ok((tensor, true));
        }
    }
    if !wanted.may(protocol::BUFFER | protocol::ARRAY_INTERFACE) {
        let text = format_args!("{} object has no attribute '__dlpack__'", KindOf(python, object));
        return Err(refused(python, python.PyExc_AttributeError(), text));
    }
    // The array API standard's exception for what has no `__dlpack__`.
    let text = format_args!(
        "{} has no __dlpack__, no buffer and no array interface: give an array, such as \
         numpy.asarray() makes of it",
        KindOf(python, object)
    );
    Err(refused(python, python.PyExc_AttributeError(), text))
}

/// Calls `__dlpack__`: the capsule, and whether the stream was named. `None` when there is no such
/// method.
///
/// # Safety
/// `object` is live.
unsafe fn call_dlpack(
    python: Python,
    object: *mut PyObject,
    wanted: &Wanted,
) -> Result<Option<(Owned, bool)>> {
    let home = home::here(python)?;
    let method = constants::of(python, home, Constant::Dlpack)?;
    // SAFETY: the caller's word.
    let ToName { with_device, alone: stream } = unsafe { stream_to_name(python, object, wanted) }?;
    let Import { device, policy, .. } = wanted.import;
    let copy = (policy == CopyPolicy::Never).then_some(false);
    let bare = Asked { version: false, stream, device: None, copy: None };
    let versioned = Asked { version: true, ..bare };
    // Newest first.
    const ROWS: usize = 3;
    for n in 0..ROWS {
        if n == 1 && device.is_none() && copy.is_none() {
            continue;
        }
        let plain = n == 0 && with_device.is_none() && device.is_none() && copy.is_none();
        let row = || match n {
            0 => Asked { stream: with_device, device, copy, ..versioned },
            1 => versioned,
            _ => bare,
        };
        // SAFETY: the caller's word.
        let made = unsafe {
            match plain {
                true => call_plain(python, home, method.as_ptr(), object)?,
                false => Keywords::new(python, &row())?.call(python, method.as_ptr(), object),
            }
        };
        if let Some(made) = made {
            return Ok(Some((made, !plain && row().stream.is_some())));
        }
        // NumPy refuses any other device: then the copy is made here.
        let elsewhere = n == 0 && device.is_some() && is(python, Python::PyExc_BufferError);
        if (elsewhere || is(python, Python::PyExc_TypeError)) && n + 1 < ROWS {
            // SAFETY: attached.
            unsafe { python.PyErr_Clear() };
            continue;
        }
        // SAFETY: as above.
        return match unsafe { lacks(python, object, method.as_ptr()) } {
            true => Ok(None),
            false => Err(raised()),
        };
    }
    Err(raised())
}

/// The usual call, `__dlpack__(max_version=(1, 3))`, which needs nothing new.
///
/// # Safety
/// `method` and `object` are live.
#[inline]
unsafe fn call_plain(
    python: Python,
    home: &Home,
    method: *mut PyObject,
    object: *mut PyObject,
) -> Result<Option<Owned>> {
    let version = constants::of(python, home, Constant::Version)?;
    let names = constants::of(python, home, Constant::MaxVersionOnly)?;
    let args = [object, version.as_ptr()];
    // SAFETY: one positional argument, the object, and a value for the one name.
    unsafe {
        let made = python.PyObject_VectorcallMethod(method, args.as_ptr(), 1, names.as_ptr());
        Ok(Owned::new(made))
    }
}

/// The stream to name to an object: none where there are no streams.
#[derive(Clone, Copy)]
struct ToName {
    /// Together with `dl_device`, whose stream it then is.
    with_device: Option<i64>,
    /// Alone: then it is one of the device on which the data is.
    alone: Option<i64>,
}

/// # Safety
/// `object` is live.
#[inline(always)]
unsafe fn stream_to_name(python: Python, object: *mut PyObject, wanted: &Wanted) -> Result<ToName> {
    if wanted.stream == stream::NONE {
        return Ok(ToName { with_device: None, alone: None });
    }
    // SAFETY: the caller's word.
    unsafe { stream_by_device(python, object, wanted) }
}

/// As [`stream_to_name`], of a stream.
///
/// # Safety
/// As [`stream_to_name`].
#[inline(never)]
unsafe fn stream_by_device(
    python: Python,
    object: *mut PyObject,
    wanted: &Wanted,
) -> Result<ToName> {
    // SAFETY: the caller's word.
    let here = unsafe { said_device(python, object) }?;
    let target = wanted.import.device.or(here);
    let name = |device: Option<DLDevice>| {
        device.filter(|device| stream::has_streams(device.device_type)).map(|_| wanted.stream)
    };
    Ok(ToName { with_device: name(target), alone: name(here.filter(|_| target == here)) })
}

/// Where the object says that its data is; `None`: it cannot say so.
///
/// # Safety
/// `object` is live.
unsafe fn said_device(python: Python, object: *mut PyObject) -> Result<Option<DLDevice>> {
    let method = text(python, c"__dlpack_device__")?;
    let mut said = [0i64; 2];
    // SAFETY: the caller's word; one positional argument, the object.
    unsafe {
        let args = [object];
        let found = python.PyObject_VectorcallMethod(method.as_ptr(), args.as_ptr(), 1, null_mut());
        let Some(found) = Owned::new(found) else {
            return match lacks(python, object, method.as_ptr()) {
                true => Ok(None),
                false => Err(raised()),
            };
        };
        numbers(python, found.as_ptr(), &mut said)?;
    }
    let [device_type, device_id] = said.map(i32::try_from);
    Ok(device_type
        .ok()
        .zip(device_id.ok())
        .map(|(device_type, device_id)| DLDevice { device_type, device_id }))
}

/// Makes the stream that is wanted wait for a tensor whose producer was not told of it, and which
/// is therefore ready on its device's default stream.
///
/// # Safety
/// `tensor` is live.
unsafe fn order_unnamed(tensor: Versioned, wanted: &Wanted) -> Result<()> {
    if wanted.stream == stream::NONE {
        return Ok(());
    }
    // SAFETY: the caller's word; past the check the struct is of major 1.
    let DLTensor { device, data, .. } = unsafe {
        check_version(tensor.as_ptr())?;
        (&raw const (*tensor.as_ptr()).dl_tensor).read()
    };
    // A copy to another device comes after that stream by itself.
    let stays = wanted.import.device.is_none_or(|target| target == device);
    if !stays || !stream::has_streams(device.device_type) {
        return Ok(());
    }
    let consumer = stream::from_python(wanted.stream, device.device_type)?;
    // SAFETY: the caller's stream of that device.
    unsafe { stream::order(device, data, consumer, null_mut()) }
}

/// Where a copy of ours is ordered: the stream that is wanted is that of the device that is.
fn streams_of(wanted: &Wanted, src: DLDevice) -> Result<Streams> {
    let Import { device, options, .. } = wanted.import;
    let mut streams = options.streams;
    let target = device.unwrap_or(if host_reachable(src.device_type) { CPU } else { src });
    let owner = device.unwrap_or(src);
    if wanted.stream == stream::NONE || !stream::has_streams(owner.device_type) {
        return Ok(streams);
    }
    if let Stream::Handle(handle) = stream::from_python(wanted.stream, owner.device_type)? {
        let handle = with_exposed_provenance_mut(handle);
        for (of, stream) in [(src, &mut streams.src), (target, &mut streams.dst)] {
            if of == owner && stream.is_null() {
                *stream = handle;
            }
        }
    }
    Ok(streams)
}

/// Whether the AttributeError that is set says that the method is missing; then it is cleared.
/// Else an exception stays set.
///
/// # Safety
/// `object` and `method` are live, and an exception is set.
#[cold]
unsafe fn lacks(python: Python, object: *mut PyObject, method: *mut PyObject) -> bool {
    if !is(python, Python::PyExc_AttributeError) {
        return false;
    }
    // SAFETY: attached; what was fetched is restored or given up.
    unsafe {
        let mut set = [null_mut(); 3];
        let [kind, value, trace] = &mut set;
        python.PyErr_Fetch(kind, value, trace);
        if Owned::new(python.PyObject_GetAttr(object, method)).is_none() {
            set.into_iter().for_each(|part| drop(Owned::new(part)));
            let missing = is(python, Python::PyExc_AttributeError);
            if missing {
                python.PyErr_Clear();
            }
            return missing; // what else it raises, KeyboardInterrupt, says more
        }
        let [kind, value, trace] = set;
        python.PyErr_Restore(kind, value, trace);
    }
    false
}

/// The keyword arguments of one call: those that are `None` or false are left out.
#[derive(Clone, Copy)]
struct Asked {
    /// `max_version`
    version: bool,
    /// `stream`
    stream: Option<i64>,
    /// `dl_device`
    device: Option<DLDevice>,
    /// `copy`
    copy: Option<bool>,
}

/// The most keywords of `__dlpack__`.
const KEYWORDS_MOST: usize = 4;

/// The same as Python's objects, and their names.
struct Keywords {
    names: Owned,
    values: [Option<Owned>; KEYWORDS_MOST],
}

impl Keywords {
    fn new(python: Python, asked: &Asked) -> Result<Self> {
        let mut values = [const { None }; KEYWORDS_MOST];
        let mut names = [null_mut(); KEYWORDS_MOST];
        let mut n = 0;
        let mut add = |name, value| {
            if let (Some(text), Some(slot)) = (names.get_mut(n), values.get_mut(n)) {
                // A constant, which lives as long as the interpreter.
                (*text, *slot) = (constants::get(python, name)?.as_ptr(), Some(value));
                n += 1;
            }
            Ok(())
        };
        if let Some(stream) = asked.stream {
            add(Constant::Stream, integer(python, stream)?)?;
        }
        if asked.version {
            let version = constants::get(python, Constant::Version)?.share(python);
            add(Constant::MaxVersion, version)?;
        }
        if let Some(DLDevice { device_type, device_id }) = asked.device {
            add(Constant::DlDevice, pair(python, device_type.into(), device_id.into())?)?;
        }
        if let Some(copy) = asked.copy {
            // SAFETY: attached; an object of Python's own.
            add(Constant::Copy, unsafe { required(python.PyBool_FromLong(copy.into())) }?)?;
        }
        Ok(Keywords { names: tuple(python, names.get(..n).unwrap_or_default())?, values })
    }

    /// # Safety
    /// `method` and `object` are live.
    unsafe fn call(
        &self,
        python: Python,
        method: *mut PyObject,
        object: *mut PyObject,
    ) -> Option<Owned> {
        let mut args = [object; 1 + KEYWORDS_MOST];
        for (to, from) in args.iter_mut().skip(1).zip(self.values.iter().flatten()) {
            *to = from.as_ptr();
        }
        let any = self.values.first().is_some_and(Option::is_some);
        let names = if any { self.names.as_ptr() } else { null_mut() };
        // SAFETY: one positional argument, the object, and as many values as there are names.
        unsafe { Owned::new(python.PyObject_VectorcallMethod(method, args.as_ptr(), 1, names)) }
    }
}

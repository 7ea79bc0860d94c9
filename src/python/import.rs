//! Any Python object that holds a tensor, taken in.
//!
//! The ways, in this order: the exchange API of its type, `__dlpack__` with all keywords that are
//! needed, with fewer where it does not know them, a capsule itself, the buffer protocol, the array
//! interfaces. What comes out of any of them is checked, and served, by [`crate::import`].

use core::ptr::null_mut;

use super::array_interface::numbers;
use super::capsule;
use super::constants::{self, Constant, integer, text, tuple};
use super::object::{Owned, detached};
use super::raise::{is, raised, required};
use super::stream;
use super::symbols::{PyObject, Python};
use super::{array_interface, buffer, exchange};
use crate::abi::*;
use crate::copy::CopyPolicy;
use crate::device_type::host_reachable;
use crate::error::{Error, Field::*, Result, Status::*};
use crate::import::{self, Import};
use crate::tensor::{Versioned, share};
use crate::validate::{Snapshot, check_version, flags_of};

/// What is wanted of an object.
pub struct Wanted {
    /// What the tensor must be, and whether it may be copied.
    pub import: Import,
    /// What a legacy tensor's flags are: the struct has none.
    pub legacy_flags: u64,
    /// Whether the type's exchange API may serve.
    pub exchange_api: bool,
    /// The number of the stream on which the tensor will be used.
    pub stream: i64,
}

/// Takes the tensor of `object` in.
///
/// # Safety
/// `object` is a live object.
pub unsafe fn import(python: Python, object: *mut PyObject, wanted: &Wanted) -> Result<Versioned> {
    // SAFETY: the caller's word; `tensor` is then ours.
    unsafe {
        let tensor = acquire(python, object, wanted)?;
        let result = serve(python, tensor, wanted);
        if result.is_err() {
            share::release(tensor);
        }
        result
    }
}

/// # Safety
/// `tensor` is live; on success the result owns the caller's holder.
unsafe fn serve(python: Python, tensor: Versioned, wanted: &Wanted) -> Result<Versioned> {
    // SAFETY: the caller's word; past the check the struct is of major 1.
    let flags = unsafe {
        check_version(tensor.as_ptr())?;
        flags_of(tensor.as_ptr())
    };
    let mut import = wanted.import;
    if flags & DLPACK_FLAG_BITMASK_IS_COPIED != 0 {
        match import.policy {
            CopyPolicy::Never => {
                let error = Error::new(DLRS_COPY_NEEDED).field(DLRS_FIELD_FLAGS);
                return Err(error.value(flags as i64).detail("the producer made a copy"));
            }
            _ => import.policy = CopyPolicy::IfNeeded, // it is there already
        }
    }
    let any = import.order.is_none() && import.align_bytes <= 1 && !import.writable;
    let asis = any && import.device.is_none() && import.policy == CopyPolicy::IfNeeded;
    if asis || import.policy == CopyPolicy::Never {
        // SAFETY: the caller's word.
        return unsafe { import::import(tensor, &import) };
    }
    // It may be copied.
    let mut snapshot = Snapshot::new();
    // SAFETY: as above.
    unsafe {
        snapshot.read_managed(tensor.as_ptr(), import.rules)?;
        let nbytes = if import.rules.layout { snapshot.nbytes()? } else { 0 };
        detached(python, nbytes, || import::import(tensor, &import))
    }
}

/// The tensor as the object gives it.
///
/// # Safety
/// `object` is live.
unsafe fn acquire(python: Python, object: *mut PyObject, wanted: &Wanted) -> Result<Versioned> {
    // SAFETY: the caller's word throughout.
    unsafe {
        // It cannot be told where the tensor is wanted.
        if wanted.exchange_api
            && wanted.import.device.is_none()
            && let Some(tensor) = exchange::from_object(python, object, wanted.stream)?
        {
            return Ok(tensor);
        }
        match call_dlpack(python, object, wanted)? {
            Some(capsule) => capsule::consume(python, capsule.as_ptr(), wanted.legacy_flags),
            None => other_ways(python, object, wanted),
        }
    }
}

/// # Safety
/// `object` is live and has no `__dlpack__`.
#[cold]
unsafe fn other_ways(python: Python, object: *mut PyObject, wanted: &Wanted) -> Result<Versioned> {
    // SAFETY: the caller's word.
    unsafe {
        for name in [capsule::VERSIONED, capsule::LEGACY] {
            if python.PyCapsule_IsValid(object, name.as_ptr()) != 0 {
                return capsule::consume(python, object, wanted.legacy_flags);
            }
        }
        if let Some(tensor) = buffer::from_object(python, object)? {
            return Ok(tensor);
        }
        if let Some(tensor) = array_interface::from_object(python, object, wanted.stream)? {
            return Ok(tensor);
        }
    }
    let error = Error::new(DLRS_UNSUPPORTED);
    Err(error.detail("has no __dlpack__, no buffer and no array interface"))
}

/// Calls `__dlpack__`; `None` when there is no such method.
///
/// # Safety
/// `object` is live.
unsafe fn call_dlpack(
    python: Python,
    object: *mut PyObject,
    wanted: &Wanted,
) -> Result<Option<Owned>> {
    let method = constants::get(python, Constant::Dlpack)?;
    let full = wanted.import.device.is_some() || wanted.import.policy == CopyPolicy::Never;
    // SAFETY: the caller's word.
    let streamed = wanted.stream != stream::NONE && !unsafe { on_host(python, object) }?;
    // Newest first. Each row: max_version, stream, dl_device and copy.
    let rows = [(true, streamed, full), (true, streamed, false), (false, streamed, false)];
    for (n, row) in rows.into_iter().enumerate() {
        if n == 1 && !full {
            continue;
        }
        // SAFETY: the caller's word.
        let made = unsafe {
            match row {
                (true, false, false) => call_plain(python, method.as_ptr(), object)?,
                _ => Keywords::new(python, row, wanted)?.call(python, method.as_ptr(), object),
            }
        };
        if let Some(made) = made {
            return Ok(Some(made));
        }
        if is(python, Python::PyExc_TypeError) && n + 1 < rows.len() {
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
    method: *mut PyObject,
    object: *mut PyObject,
) -> Result<Option<Owned>> {
    let version = constants::get(python, Constant::Version)?;
    let names = constants::get(python, Constant::MaxVersionOnly)?;
    let args = [object, version.as_ptr()];
    // SAFETY: one positional argument, the object, and a value for the one name.
    unsafe {
        let made = python.PyObject_VectorcallMethod(method, args.as_ptr(), 1, names.as_ptr());
        Ok(Owned::new(made))
    }
}

/// Whether the object says that its data is in host memory, where no stream may be named.
///
/// # Safety
/// `object` is live.
unsafe fn on_host(python: Python, object: *mut PyObject) -> Result<bool> {
    let method = text(python, c"__dlpack_device__")?;
    let mut device = [0i64; 2];
    // SAFETY: the caller's word; one positional argument, the object.
    unsafe {
        let args = [object];
        let found = python.PyObject_VectorcallMethod(method.as_ptr(), args.as_ptr(), 1, null_mut());
        numbers(python, required(found)?.as_ptr(), &mut device)?;
    }
    Ok(i32::try_from(device[0]).is_ok_and(host_reachable))
}

/// Whether the AttributeError that is set says that the method is missing; then it is cleared.
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
        let found = Owned::new(python.PyObject_GetAttr(object, method));
        python.PyErr_Clear();
        if found.is_none() {
            set.into_iter().for_each(|part| drop(Owned::new(part)));
            return true;
        }
        let [kind, value, trace] = set;
        python.PyErr_Restore(kind, value, trace);
    }
    false
}

/// The most keywords of `__dlpack__`.
const KEYWORDS_MOST: usize = 4;

/// Keyword arguments of one call.
struct Keywords {
    names: Option<Owned>,
    values: [Option<Owned>; KEYWORDS_MOST],
}

impl Keywords {
    fn new(python: Python, row: (bool, bool, bool), wanted: &Wanted) -> Result<Self> {
        let (version, streamed, full) = row;
        let mut values = [const { None }; KEYWORDS_MOST];
        let mut texts = [const { None }; KEYWORDS_MOST];
        let mut n = 0;
        let mut add = |name, value| {
            if let (Some(text), Some(slot)) = (texts.get_mut(n), values.get_mut(n)) {
                (*text, *slot) = (name, Some(value));
                n += 1;
            }
        };
        if streamed {
            add(Some(text(python, c"stream")?), integer(python, wanted.stream)?);
        }
        if version {
            let version = constants::get(python, Constant::Version)?.share(python);
            add(Some(text(python, c"max_version")?), version);
        }
        if let Some(device) = wanted.import.device.filter(|_| full) {
            let kind = integer(python, device.device_type.into())?;
            let ordinal = integer(python, device.device_id.into())?;
            let pair = tuple(python, [Some(kind), Some(ordinal)])?;
            add(Some(text(python, c"dl_device")?), pair);
        }
        if full && wanted.import.policy == CopyPolicy::Never {
            // SAFETY: attached; an object of Python's own.
            let no = unsafe { required(python.PyBool_FromLong(0)) }?;
            add(Some(text(python, c"copy")?), no);
        }
        let names = match n {
            0 => None,
            _ => Some(tuple(python, texts)?),
        };
        Ok(Keywords { names, values })
    }

    /// # Safety
    /// `method` and `object` are live.
    #[inline]
    unsafe fn call(
        &self,
        python: Python,
        method: *mut PyObject,
        object: *mut PyObject,
    ) -> Option<Owned> {
        let mut args = [null_mut(); 1 + KEYWORDS_MOST];
        let values = self.values.iter().map_while(|value| value.as_ref().map(Owned::as_ptr));
        for (to, from) in args.iter_mut().zip(core::iter::once(object).chain(values)) {
            *to = from;
        }
        let names = self.names.as_ref().map_or(null_mut(), Owned::as_ptr);
        // SAFETY: one positional argument, the object, and as many values as there are names.
        unsafe { Owned::new(python.PyObject_VectorcallMethod(method, args.as_ptr(), 1, names)) }
    }
}

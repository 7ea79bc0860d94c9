//! Arguments of calls: positions and keywords, numbers, shapes, names.

use core::ffi::{CStr, c_ulong};
use core::slice::from_raw_parts;

use super::failure::{Answer, Failure, made};
use super::tensor;
use crate::abi::{DLDataType, DLDevice};
use crate::copy::CopyPolicy;
use crate::error::{Error, Status::*};
use crate::layout::MAX_NDIM;
use crate::python::{PyObject, Python, raise};
use crate::{device_type, dtype};

/// The arguments of one call.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// Python.
    pub python: Python,
    /// Arguments by position.
    pub positional: &'a [*mut PyObject],
    /// Values of the keywords.
    named: &'a [*mut PyObject],
    /// Their names, or NULL.
    keywords: *mut PyObject,
}

impl<'a> Call<'a> {
    /// What Python passes to a [`super::spec::Method`].
    ///
    /// # Safety
    /// The arguments are those of such a call, which lasts for `'a`.
    #[inline]
    pub unsafe fn new(
        python: Python,
        args: *const *mut PyObject,
        nargs: isize,
        keywords: *mut PyObject,
    ) -> Call<'a> {
        // SAFETY: the tuple of names is live; the calling convention says how many values follow.
        unsafe {
            let count = if keywords.is_null() { 0 } else { python.PyTuple_Size(keywords) };
            let (nargs, count) = (nargs.max(0) as usize, count.max(0) as usize);
            let args = if args.is_null() { (&raw const keywords).cast() } else { args };
            let (positional, named) =
                (from_raw_parts(args, nargs), from_raw_parts(args.add(nargs), count));
            Call { python, positional, named, keywords }
        }
    }

    /// Puts each argument where its name is in `names`; of these, the first `most` may be given
    /// by position. What is not given stays as it is.
    #[inline]
    pub fn bind(self, names: &[&CStr], most: usize, values: &mut [*mut PyObject]) -> Answer<()> {
        if self.positional.len() > most {
            return Err(Failure::Call("takes fewer positional arguments"));
        }
        values.iter_mut().zip(self.positional).for_each(|(to, from)| *to = *from);
        for (place, &value) in self.named.iter().enumerate() {
            // SAFETY: a tuple of as many names as there are values.
            let keyword = unsafe { self.python.PyTuple_GetItem(self.keywords, place as isize) };
            let found = names.iter().position(|name| is(self.python, keyword, name));
            match found.and_then(|found| values.get_mut(found)) {
                Some(slot) if found.is_some_and(|found| found >= self.positional.len()) => {
                    *slot = value;
                }
                Some(_) => return Err(Failure::Call("got an argument twice")),
                None => return Err(Failure::Call("got an unexpected keyword argument")),
            }
        }
        Ok(())
    }

    /// Refuses every keyword.
    pub fn no_keywords(self) -> Answer<Self> {
        match self.named {
            [] => Ok(self),
            _ => Err(Failure::Call("takes no keyword arguments")),
        }
    }

    /// The one argument, given by position.
    #[inline]
    pub fn sole(self) -> Answer<*mut PyObject> {
        match *self.no_keywords()?.positional {
            [argument] => Ok(argument),
            _ => Err(Failure::Call("takes exactly one argument")),
        }
    }

    /// Numbers given one by one or as one sequence.
    pub fn numbers(self, room: &mut [i64; MAX_NDIM]) -> Answer<&[i64]> {
        let call = self.no_keywords()?;
        match *call.positional {
            [one] if !is_index(call.python, one) => sequence(call.python, one, room),
            ref several => {
                let count = several.len();
                fill(room, count, |place| match several.get(place) {
                    Some(&item) => number(call.python, item),
                    None => Ok(0),
                })
            }
        }
    }
}

/// Whether an object can serve as an index.
#[inline]
pub fn is_index(python: Python, object: *mut PyObject) -> bool {
    // SAFETY: a live object.
    unsafe { python.PyIndex_Check(object) != 0 }
}

/// Whether a text of Python's is this one.
fn is(python: Python, text: *mut PyObject, name: &CStr) -> bool {
    // SAFETY: keywords are texts.
    unsafe { python.PyUnicode_CompareWithASCIIString(text, name.as_ptr()) == 0 }
}

/// NULL, or None.
#[inline]
pub fn is_none(python: Python, object: *mut PyObject) -> bool {
    object.is_null() || object == python._Py_NoneStruct()
}

/// A whole number.
#[inline]
pub fn number(python: Python, object: *mut PyObject) -> Answer<i64> {
    fitting(python, object, Python::PyExc_ValueError)
}

/// A whole number that is the index of an element.
pub fn index(python: Python, object: *mut PyObject) -> Answer<i64> {
    fitting(python, object, Python::PyExc_IndexError)
}

/// A whole number; the exception for one that does not fit.
#[inline]
fn fitting(
    python: Python,
    object: *mut PyObject,
    error: fn(Python) -> *mut PyObject,
) -> Answer<i64> {
    // SAFETY: a live object.
    let value = unsafe { python.PyNumber_AsSsize_t(object, error(python)) };
    // SAFETY: attached.
    if value == -1 && unsafe { !python.PyErr_Occurred().is_null() } {
        return Err(Failure::Raised);
    }
    Ok(value as i64)
}

/// An axis.
pub fn axis(python: Python, object: *mut PyObject) -> Answer<i32> {
    // What does not fit is no axis either.
    Ok(i32::try_from(number(python, object)?).unwrap_or(i32::MAX))
}

/// The numbers of a sequence, or one number.
pub fn shape(python: Python, object: *mut PyObject, room: &mut [i64; MAX_NDIM]) -> Answer<&[i64]> {
    if is_index(python, object) {
        return fill(room, 1, |_| number(python, object));
    }
    sequence(python, object, room)
}

fn sequence(python: Python, object: *mut PyObject, room: &mut [i64; MAX_NDIM]) -> Answer<&[i64]> {
    // SAFETY: a live object.
    let count = unsafe { python.PySequence_Size(object) };
    let Ok(count) = usize::try_from(count) else { return Err(Failure::Raised) };
    fill(room, count, |place| {
        // SAFETY: a live sequence.
        let item = unsafe { made(python.PySequence_GetItem(object, place as isize)) }?;
        number(python, item.as_ptr())
    })
}

fn fill(
    room: &mut [i64; MAX_NDIM],
    count: usize,
    mut value: impl FnMut(usize) -> Answer<i64>,
) -> Answer<&[i64]> {
    let Some(slots) = room.get_mut(..count) else {
        return Err(Error::new(DLRS_NDIM).value(count as i64).limit(MAX_NDIM as i64).into());
    };
    for (place, slot) in slots.iter_mut().enumerate() {
        *slot = value(place)?;
    }
    Ok(slots)
}

/// The bytes of a text, borrowed from it.
pub fn text<'a>(python: Python, object: *mut PyObject) -> Answer<&'a [u8]> {
    let mut nbytes = 0;
    // SAFETY: a live object, which keeps its UTF-8 form; the call keeps the object.
    unsafe {
        let text = python.PyUnicode_AsUTF8AndSize(object, &mut nbytes);
        if text.is_null() && raise::is(python, Python::PyExc_TypeError) {
            python.PyErr_Clear();
            return Err(Failure::Call("takes the name of a dtype, device or order as a str"));
        }
        if text.is_null() {
            return Err(Failure::Raised);
        }
        Ok(from_raw_parts(text.cast(), nbytes.max(0) as usize))
    }
}

/// A dtype by its name.
pub fn dtype(python: Python, object: *mut PyObject) -> Answer<DLDataType> {
    Ok(dtype::parse(text(python, object)?)?)
}

/// A device: its name, or the pair of `__dlpack_device__`.
pub fn device(python: Python, object: *mut PyObject) -> Answer<DLDevice> {
    if !is_tuple(python, object) {
        return Ok(device_type::parse(text(python, object)?)?);
    }
    let mut room = [0; MAX_NDIM];
    let &[kind, id] = sequence(python, object, &mut room)? else {
        return Err(Failure::Call("takes a device as text or as (type, id)"));
    };
    let (device_type, device_id) =
        (i32::try_from(kind).unwrap_or(-1), i32::try_from(id).unwrap_or(-1));
    let device = DLDevice { device_type, device_id };
    device_type::check(device)?;
    Ok(device)
}

/// `Py_TPFLAGS_TUPLE_SUBCLASS`
const TUPLE: c_ulong = 1 << 26;

/// Whether an object is a tuple, as `PyTuple_Check` tells: much faster than `isinstance`.
#[inline]
pub fn is_tuple(python: Python, object: *mut PyObject) -> bool {
    // SAFETY: a live object, and so its type.
    unsafe { python.PyType_GetFlags(tensor::type_of(object)) & TUPLE != 0 }
}

/// Whether an object is true; one that is not given is not.
pub fn truth(python: Python, object: *mut PyObject) -> Answer<bool> {
    if object.is_null() {
        return Ok(false);
    }
    // SAFETY: a live object.
    super::failure::done(unsafe { python.PyObject_IsTrue(object) })
}

/// `copy` of the array API: None, True or False.
pub fn policy(python: Python, object: *mut PyObject) -> Answer<CopyPolicy> {
    if is_none(python, object) {
        return Ok(CopyPolicy::IfNeeded);
    }
    truth(python, object).map(|always| match always {
        true => CopyPolicy::Always,
        false => CopyPolicy::Never,
    })
}

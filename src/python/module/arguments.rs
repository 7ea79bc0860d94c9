//! Arguments of calls: positions and keywords, numbers, shapes, names.

use core::ffi::{CStr, c_ulong};
use core::fmt;
use core::slice::from_raw_parts;

use super::failure::{Answer, Failure, Message, made};
use super::tensor;
use crate::abi::{DLDataType, DLDataTypeCode, DLDevice};
use crate::copy::CopyPolicy;
use crate::error::{Arg, Error, Status::*};
use crate::layout::{MAX_NDIM, Order};
use crate::python::raise::{KindOf, Quoted, class_of, refused};
use crate::python::{Owned, PyObject, Python, is_text};
use crate::{device_type, dtype};

/// The arguments of one call.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// Python.
    pub python: Python,
    /// The function, as Python knows it.
    name: &'static str,
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
        name: &'static str,
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
            Call { python, name, positional, named, keywords }
        }
    }

    /// Puts each argument where its name is in `names`; of these, the first `most` may be given
    /// by position. What is not given stays as it is.
    #[inline(never)]
    pub fn bind(self, names: &[&CStr], most: usize, values: &mut [*mut PyObject]) -> Answer<()> {
        self.bind_here(names, most, values)
    }

    /// As [`Call::bind`], compiled into its caller: for what is called most.
    #[inline(always)]
    pub fn bind_here(
        self,
        names: &[&CStr],
        most: usize,
        values: &mut [*mut PyObject],
    ) -> Answer<()> {
        if self.positional.len() > most {
            let given = self.positional.len();
            return Err(self
                .wrong(format_args!("takes at most {most} positional arguments ({given} given)")));
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
                // The words of Python's own functions: consumers of `__dlpack__` look for them.
                Some(_) => {
                    let keyword = Quoted(text(self.python, keyword)?);
                    return Err(
                        self.wrong(format_args!("got multiple values for argument '{keyword}'"))
                    );
                }
                None => {
                    let keyword = Quoted(text(self.python, keyword)?);
                    return Err(
                        self.wrong(format_args!("got an unexpected keyword argument '{keyword}'"))
                    );
                }
            }
        }
        Ok(())
    }

    /// TypeError: `name() what`.
    #[cold]
    fn wrong(&self, what: fmt::Arguments) -> Failure {
        let text = format_args!("{}() {what}", self.name);
        refuse(self.python, self.python.PyExc_TypeError(), text)
    }

    /// The exception for a text that is not understood, or that names what there is not.
    #[cold]
    fn misread(&self, error: Error, parameter: Arg, text: &[u8]) -> Failure {
        let mut message = Message::EMPTY;
        let _ = error.of(parameter).write(self.name, Some(text), &mut message);
        let kind = match error.status {
            // A wrong argument, not a tensor that cannot be exchanged.
            DLRS_DTYPE_CODE | DLRS_DTYPE_BITS | DLRS_DTYPE_LANES => self.python.PyExc_ValueError(),
            status => class_of(self.python, status as i32),
        };
        // SAFETY: attached, by `Python`; the text ends with NUL.
        unsafe { self.python.PyErr_SetString(kind, message.as_ptr()) };
        Failure::Raised
    }

    /// A dtype by its name, by the type of NumPy, PyTorch or another that has that name, or by
    /// Python's type of such numbers.
    pub fn dtype(&self, object: *mut PyObject) -> Answer<DLDataType> {
        let python = self.python;
        if let Some(number) = Number::of_type(python, object) {
            return Ok(number.dtype());
        }
        let found;
        let name = match is_text(python, object) {
            true => text(python, object)?,
            false => {
                found = name_of(python, object)?;
                let text = text(python, found.as_ptr())?;
                // "torch.float32"
                text.rsplit(|&byte| byte == b'.').next().unwrap_or(text)
            }
        };
        dtype::parse(name).map_err(|error| self.misread(error, Arg::dtype, name))
    }

    /// A device: its name, or the pair of `__dlpack_device__`.
    pub fn device(&self, object: *mut PyObject) -> Answer<DLDevice> {
        const DEVICE: Arg = Arg::device;
        let python = self.python;
        if is_text(python, object) {
            let name = text(python, object)?;
            return device_type::parse(name).map_err(|error| self.misread(error, DEVICE, name));
        }
        let mut room = [0; MAX_NDIM];
        let pair = is_tuple(python, object).then(|| sequence(python, object, &mut room));
        let Some(&[kind, id]) = pair.transpose()? else {
            return Err(self.wrong(format_args!(
                "takes a device as text, such as 'cuda:0', or as the pair (type, id), not as {}",
                Given(python, object)
            )));
        };
        let (device_type, device_id) =
            (i32::try_from(kind).unwrap_or(-1), i32::try_from(id).unwrap_or(-1));
        let device = DLDevice { device_type, device_id };
        device_type::check(device).map_err(|error| error.of(DEVICE))?;
        Ok(device)
    }

    /// A memory order: 'C', 'F', 'A' or 'K'; C when it is not given.
    pub fn order(&self, object: *mut PyObject) -> Answer<Order> {
        if object.is_null() {
            return Ok(Order::C);
        }
        let name = if is_text(self.python, object) { text(self.python, object)? } else { &[] };
        let order = match *name {
            [letter] => Order::from_char(letter.into()),
            _ => None,
        };
        order.ok_or_else(|| {
            let given = Given(self.python, object);
            let text =
                format_args!("{}: order must be 'C', 'F', 'A' or 'K', not {given}", self.name);
            refuse(self.python, self.python.PyExc_ValueError(), text)
        })
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

/// Python's kinds of numbers.
#[derive(Clone, Copy, PartialEq)]
pub enum Number {
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `float`
    Float,
    /// `complex`
    Complex,
}

impl Number {
    /// The kind that a type is.
    fn of_type(python: Python, kind: *mut PyObject) -> Option<Number> {
        match kind {
            kind if kind == python.PyLong_Type() => Some(Number::Int),
            kind if kind == python.PyFloat_Type() => Some(Number::Float),
            kind if kind == python.PyComplex_Type() => Some(Number::Complex),
            kind if kind == python.PyBool_Type() => Some(Number::Bool),
            _ => None,
        }
    }

    /// The kind that an object is; arrays and their elements are none.
    ///
    /// # Safety
    /// The object is live.
    pub unsafe fn of(python: Python, object: *mut PyObject) -> Option<Number> {
        // SAFETY: the caller's word; so is its type.
        unsafe {
            let kind = tensor::type_of(object);
            let long = python.PyType_GetFlags(kind) & LONG != 0;
            Number::of_type(python, kind).or(long.then_some(Number::Int))
        }
    }

    /// The dtype that NumPy gives it.
    pub const fn dtype(self) -> DLDataType {
        let (code, bits) = match self {
            Number::Bool => (DLDataTypeCode::kDLBool, 8),
            Number::Int => (DLDataTypeCode::kDLInt, 64),
            Number::Float => (DLDataTypeCode::kDLFloat, 64),
            Number::Complex => (DLDataTypeCode::kDLComplex, 128),
        };
        DLDataType { code: code as u8, bits, lanes: 1 }
    }
}

/// `Py_TPFLAGS_LONG_SUBCLASS`
const LONG: c_ulong = 1 << 24;

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
        if text.is_null() {
            return Err(Failure::Raised);
        }
        Ok(from_raw_parts(text.cast(), nbytes.max(0) as usize))
    }
}

/// What names a dtype that is no text: the name of a type, else what it is written as.
fn name_of(python: Python, object: *mut PyObject) -> Answer<Owned> {
    // SAFETY: live objects.
    unsafe {
        let name = made(python.PyUnicode_InternFromString(c"__name__".as_ptr()))?;
        match python.attribute(object, name.as_ptr())? {
            Some(name) if is_text(python, name.as_ptr()) => Ok(name),
            _ => made(python.PyObject_Str(object)),
        }
    }
}

/// Sets an exception with a text of ours.
#[cold]
pub fn refuse(python: Python, kind: *mut PyObject, text: fmt::Arguments) -> Failure {
    refused(python, kind, text);
    Failure::Raised
}

/// A wrong argument in a message: itself if it is a text, else the name of its type.
struct Given(Python, *mut PyObject);

impl fmt::Display for Given {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Given(python, object) = self;
        match is_text(python, object).then(|| text(python, object)) {
            Some(Ok(text)) => write!(out, "'{}'", Quoted(text)),
            _ => KindOf(python, object).fmt(out),
        }
    }
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

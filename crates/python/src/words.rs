//! The arguments of a from_dlpack or `__dlpack__`, read from Python objects.

use core::ffi::CStr;

use super::array_interface::numbers;
use super::import::Wanted;
use crate::abi::DLDevice;
use crate::copy::CopyPolicy;
use crate::error::{Error, Result, Status::*};
use crate::integer_text::signed;
use crate::{KindOf, Object, Python, device_type, is, is_a, kinds, refused, utf8};

/// An object that is given: `None` of Python's is the default.
#[inline]
pub fn given<'a>(python: Python, object: Option<Object<'a>>) -> Option<Object<'a>> {
    object.filter(|&object| object != python._Py_NoneStruct())
}

/// Whether an object is a text, and some word.
pub fn is_word(python: Python, text: Object, word: &CStr) -> bool {
    if !is_a(python, text, kinds::TEXT) {
        return false;
    }
    // SAFETY: a text; it sets no exception, and the word ends with NUL.
    unsafe { python.PyUnicode_CompareWithASCIIString(text, word.as_ptr()) == 0 }
}

/// `copy` of the array API: `None`, true or false.
#[inline]
pub fn policy(python: Python, copy: Option<Object>) -> Result<CopyPolicy> {
    Ok(match given(python, copy).map(|copy| python.PyObject_IsTrue(copy)).transpose()? {
        None => CopyPolicy::IfNeeded,
        Some(true) => CopyPolicy::Always,
        Some(false) => CopyPolicy::Never,
    })
}

/// Two integers, such as a version or a device is; else TypeError is set.
#[inline(always)]
pub fn pair(python: Python, object: Object, name: &'static str) -> Result<[i32; 2]> {
    match usual_pair(python, object) {
        Some(pair) => Ok(pair),
        None => any_pair(python, object, name),
    }
}

/// As [`pair`], of any object.
#[cold]
#[inline(never)]
fn any_pair(python: Python, object: Object, name: &'static str) -> Result<[i32; 2]> {
    let mut found = [0i64; 2];
    let read = match python.PySequence_Size(object) {
        Ok(2) => numbers(python, object, &mut found).map(|_| ()),
        Err(error) => Err(error),
        Ok(count) => {
            let count = signed(count as i64);
            let text = format_args!("{name} must be a pair of integers, not {count} of them");
            return Err(refused(python, python.PyExc_TypeError(), text));
        }
    };
    match read {
        Ok(()) => {}
        // No sequence, or of something else; what its methods raise says more.
        Err(_) if is(python, Python::PyExc_TypeError) => {
            python.clear();
            let kind = KindOf(python, object);
            let text = format_args!("{name} must be a pair of integers; this {kind} is none");
            return Err(refused(python, python.PyExc_TypeError(), text));
        }
        Err(error) => return Err(error),
    }
    let wide = |number| {
        let number = signed(number);
        let text = format_args!("{name} must be a pair of integers of 32 bits, not of {number}");
        Err(refused(python, python.PyExc_ValueError(), text))
    };
    match found.map(i32::try_from) {
        [Ok(first), Ok(second)] => Ok([first, second]),
        [Ok(_), Err(_)] => wide(found[1]),
        _ => wide(found[0]),
    }
}

/// A tuple of two small integers; `None` for anything else. No exception is set.
#[inline(never)]
pub fn usual_pair(python: Python, object: Object) -> Option<[i32; 2]> {
    if object.type_of() != python.PyTuple_Type() || !matches!(python.PyTuple_Size(object), Ok(2)) {
        return None;
    }
    let item = |place| {
        // SAFETY: a tuple of two.
        let item = unsafe { object.item(python, place) };
        if item.type_of() != python.PyLong_Type() {
            return None;
        }
        let number = python.PyLong_AsLongLong(item);
        // It may be too large.
        number.inspect_err(|_| python.clear()).ok().and_then(|number| i32::try_from(number).ok())
    };
    Some([item(0)?, item(1)?])
}

impl Wanted {
    /// Adds the `device` and the `copy` of a from_dlpack.
    #[inline]
    pub fn ask(
        &mut self,
        python: Python,
        device: Option<Object>,
        copy: Option<Object>,
    ) -> Result<()> {
        if let Some(copy) = given(python, copy) {
            self.import.policy = read_copy(python, copy)?;
        }
        if let Some(device) = given(python, device) {
            self.import.device = Some(read_device(python, device)?);
        }
        Ok(())
    }
}

fn read_copy(python: Python, copy: Object) -> Result<CopyPolicy> {
    match copy {
        copy if copy == python._Py_TrueStruct() => Ok(CopyPolicy::Always),
        copy if copy == python._Py_FalseStruct() => Ok(CopyPolicy::Never),
        _ => Err(Error::new(DLRS_BAD_ARG)
            .option("copy\0is none of the three\0Give True, False or None.")),
    }
}

/// A device: its name, which an object such as torch.device gives as its text, or a pair.
#[inline(never)]
pub fn read_device(python: Python, device: Object) -> Result<DLDevice> {
    const NAME: &str = "device, unless it has a name such as 'cuda:0',";
    if usual_pair(python, device).is_none() {
        let name = python.PyObject_Str(device)?;
        let named = device_type::parse(utf8(python, name.object())?);
        if named.is_ok() || is_a(python, device, kinds::TEXT) {
            return named;
        }
    }
    let [device_type, device_id] = pair(python, device, NAME)?;
    Ok(DLDevice { device_type, device_id })
}

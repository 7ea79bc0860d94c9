//! The arguments of a from_dlpack or `__dlpack__`, read from Python objects.

use super::array_interface::numbers;
use super::import::Wanted;
use super::object::{Object, is_text, type_of};
use super::raise::{KindOf, is, raised, refused, required, utf8};
use super::symbols::{PyObject, Python};
use crate::abi::DLDevice;
use crate::copy::CopyPolicy;
use crate::device_type;
use crate::error::{Error, Result, Status::*};
use crate::integer_text::signed;

/// Whether an object is given: NULL and `None` are the default.
#[inline]
pub fn given(python: Python, object: *mut PyObject) -> bool {
    !object.is_null() && object != python._Py_NoneStruct()
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
    // SAFETY: a live object.
    let read = match unsafe { python.PySequence_Size(object.as_ptr()) } {
        2 => numbers(python, object, &mut found).map(|_| ()),
        ..0 => Err(raised()),
        count => {
            let count = signed(count as i64);
            let text = format_args!("{name} must be a pair of integers, not {count} of them");
            return Err(refused(python, python.PyExc_TypeError(), text));
        }
    };
    match read {
        Ok(()) => {}
        // No sequence, or of something else; what its methods raise says more.
        Err(_) if is(python, Python::PyExc_TypeError) => {
            // SAFETY: attached.
            unsafe { python.PyErr_Clear() };
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
    // SAFETY: a live object; a tuple's items live as long as it does.
    unsafe {
        if type_of(object.as_ptr()) != python.PyTuple_Type()
            || python.PyTuple_Size(object.as_ptr()) != 2
        {
            return None;
        }
        let item = |place| {
            let item = python.PyTuple_GetItem(object.as_ptr(), place);
            if type_of(item) != python.PyLong_Type() {
                return None;
            }
            let number = python.PyLong_AsLongLong(item);
            if number == -1 {
                python.PyErr_Clear(); // it may be too large
                return None;
            }
            i32::try_from(number).ok()
        };
        Some([item(0)?, item(1)?])
    }
}

impl Wanted {
    /// Adds the `device` and the `copy` of a from_dlpack.
    ///
    /// # Safety
    /// The objects are NULL or live.
    #[inline]
    pub unsafe fn ask(
        &mut self,
        python: Python,
        device: *mut PyObject,
        copy: *mut PyObject,
    ) -> Result<()> {
        if given(python, copy) {
            self.import.policy = read_copy(python, copy)?;
        }
        if given(python, device) {
            // SAFETY: `device` is live: `given` is false of NULL.
            self.import.device = Some(read_device(python, unsafe { Object::new(device) })?);
        }
        Ok(())
    }
}

fn read_copy(python: Python, copy: *mut PyObject) -> Result<CopyPolicy> {
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
        // SAFETY: a live object.
        let name = unsafe { required(python.PyObject_Str(device.as_ptr())) }?;
        let named = device_type::parse(utf8(python, name.object())?);
        if named.is_ok() || is_text(python, device.as_ptr()) {
            return named;
        }
    }
    let [device_type, device_id] = pair(python, device, NAME)?;
    Ok(DLDevice { device_type, device_id })
}

//! A `Tensor` where Python expects a value: numbers, truth, membership, comparison.
//!
//! Python fills a slot that a type leaves empty from another one: truth from the length, membership
//! from iteration and `==`, `==` and the hash from identity, numbers from a buffer that is parsed
//! as text. So none that has such a substitute is left empty. Each gives the value of the only
//! element, or raises TypeError (ValueError for the truth of several elements, as NumPy does).

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use super::arguments::refuse;
use super::failure::{Answer, Failure, answer, done, made, raise};
use super::tensor::{self, type_of};
use super::values;
use crate::abi::DLDataTypeCode;
use crate::python::raise::is;
use crate::python::{Owned, PyObject, Python};
use crate::validate::Snapshot;

/// The only element as Python's object. `kind` is the exception where there are several.
///
/// # Safety
/// `object` is a live `Tensor`.
unsafe fn only(
    python: Python,
    object: *mut PyObject,
    name: &str,
    kind: fn(Python) -> *mut PyObject,
) -> Answer<Owned> {
    let mut snapshot = Snapshot::new();
    // SAFETY: the caller's word.
    unsafe {
        values::read(object, &mut snapshot)?;
        let (numel, lanes) = (snapshot.numel()?, snapshot.dtype.lanes);
        if numel != 1 || lanes != 1 {
            let elements = match lanes {
                1 => "elements",
                _ => "elements of several lanes",
            };
            let text = format_args!(
                "{name}() of a Tensor takes exactly one element, not {numel} {elements}: \
                 take one by its index, or use tolist() or numpy()"
            );
            return Err(refuse(python, kind(python), text));
        }
        values::element(python, &snapshot)
    }
}

/// `nb_int`.
///
/// # Safety
/// Python calls it for a `Tensor`.
pub unsafe extern "C" fn int(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: Python's word.
    unsafe {
        answer("int", |python| {
            let value = only(python, object, "int", Python::PyExc_TypeError)?;
            made(python.PyNumber_Long(value.as_ptr()))
        })
    }
}

/// # Safety
/// `object` is a live `Tensor`.
unsafe fn double(python: Python, object: *mut PyObject, name: &str) -> Answer<f64> {
    // SAFETY: the caller's word.
    unsafe {
        let value = only(python, object, name, Python::PyExc_TypeError)?;
        let value = python.PyFloat_AsDouble(value.as_ptr());
        match value == -1.0 && !python.PyErr_Occurred().is_null() {
            true => Err(Failure::Raised),
            false => Ok(value),
        }
    }
}

/// `nb_float`.
///
/// # Safety
/// Python calls it for a `Tensor`.
pub unsafe extern "C" fn float(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: Python's word.
    unsafe {
        answer("float", |python| made(python.PyFloat_FromDouble(double(python, object, "float")?)))
    }
}

super::views::method!(
    /// `__complex__()`
    complex, "complex", |object, call| {
        call.bind(&[], 0, &mut [])?;
        match tensor::description(object).dtype.code {
            code if code == DLDataTypeCode::kDLComplex as u8 => {
                only(call.python, object, "complex", Python::PyExc_TypeError)
            }
            _ => {
                let real = double(call.python, object, "complex")?;
                made(call.python.PyComplex_FromDoubles(real, 0.0))
            }
        }
    }
);

/// `math.floor` and `math.ceil` would round to a float first.
macro_rules! rounded {
    ($name:ident, $shown:literal, $method:literal) => {
        super::views::method!(
            /// The method of that name of the only element.
            $name, $shown, |object, call| {
                call.bind(&[], 0, &mut [])?;
                let value = only(call.python, object, $shown, Python::PyExc_TypeError)?;
                let name = made(call.python.PyUnicode_InternFromString($method.as_ptr()))?;
                let args = [value.as_ptr()];
                let name = name.as_ptr();
                let found =
                    call.python.PyObject_VectorcallMethod(name, args.as_ptr(), 1, null_mut());
                made(found).map_err(|failure| {
                    match is(call.python, Python::PyExc_AttributeError) {
                        true => Failure::Call("of a Tensor takes a real number"),
                        false => failure,
                    }
                })
            }
        );
    };
}
rounded!(floor, "floor", c"__floor__");
rounded!(ceil, "ceil", c"__ceil__");

/// `nb_bool`.
///
/// # Safety
/// Python calls it for a `Tensor`.
pub unsafe extern "C" fn truth(object: *mut PyObject) -> c_int {
    // SAFETY: Python's word.
    unsafe {
        let python = Python::calling();
        let value = only(python, object, "bool", Python::PyExc_ValueError);
        match value.and_then(|value| done(python.PyObject_IsTrue(value.as_ptr()))) {
            Ok(truth) => truth.into(),
            Err(failure) => {
                raise(python, "bool", &failure);
                -1
            }
        }
    }
}

/// `sq_contains`.
///
/// # Safety
/// Python calls it for a `Tensor`.
pub unsafe extern "C" fn contains(_: *mut PyObject, _: *mut PyObject) -> c_int {
    // SAFETY: Python's word.
    let python = unsafe { Python::calling() };
    raise(python, "Tensor.__contains__", &Failure::Call("is not defined: ask numpy() or tolist()"));
    -1
}

/// `Py_EQ` and `Py_NE` of `tp_richcompare`.
const EQ: c_int = 2;
const NE: c_int = 3;

/// `tp_richcompare`. Order is left to the other object, and Python raises TypeError where that has
/// none; of equality it would make identity, which says that equal tensors differ.
///
/// # Safety
/// Python calls it for a `Tensor`.
pub unsafe extern "C" fn compare(
    object: *mut PyObject,
    other: *mut PyObject,
    operation: c_int,
) -> *mut PyObject {
    // SAFETY: Python's word.
    unsafe {
        answer("Tensor", |python| {
            let shared = |object| match core::ptr::NonNull::new(object) {
                Some(object) => Ok(Owned::share(python, object)),
                None => Err(Failure::Raised),
            };
            let not_implemented = python._Py_NotImplementedStruct();
            let name = match operation {
                EQ => c"__eq__",
                NE => c"__ne__",
                _ => return shared(not_implemented),
            };
            if other == python._Py_NoneStruct() {
                return made(python.PyBool_FromLong((operation == NE).into())); // None is no tensor
            }
            // An array compares itself with what it can make an array of.
            if type_of(other) != type_of(object) {
                let name = made(python.PyUnicode_InternFromString(name.as_ptr()))?;
                let args = [other, object];
                let result = made(python.PyObject_VectorcallMethod(
                    name.as_ptr(),
                    args.as_ptr(),
                    args.len(),
                    null_mut(),
                ))?;
                if result.as_ptr() != not_implemented {
                    return Ok(result);
                }
            }
            let text = format_args!(
                "a Tensor has no == and !=: compare what numpy() or tolist() gives, or ask `is`"
            );
            Err(refuse(python, python.PyExc_TypeError(), text))
        })
    }
}

/// `__numpy_dtype__`: by it NumPy 2.4 and newer finds the type of what is no array of its own.
///
/// # Safety
/// Python calls it for a `Tensor`.
pub unsafe extern "C" fn numpy_dtype(object: *mut PyObject, _: *mut c_void) -> *mut PyObject {
    // SAFETY: Python's word.
    unsafe { answer("__numpy_dtype__", |python| super::numpy::dtype_of(python, object)) }
}

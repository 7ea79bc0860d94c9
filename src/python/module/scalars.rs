//! A `Tensor` where Python expects a value: numbers, truth, membership, comparison.
//!
//! Python fills a slot that a type leaves empty from another one: truth from the length, membership
//! from iteration and `==`, `==` and the hash from identity, numbers from a buffer that is parsed
//! as text. So none that has such a substitute is left empty. Each gives the value of the only
//! element, or raises TypeError (ValueError for the truth of several elements, as NumPy does).

use core::ffi::{CStr, c_int, c_void};

use super::arguments::{Call, method};
use super::failure::{checked, done, own, refused, slot, truth as boolean, wrong};
use super::numpy::call_method;
use super::tensor::{self, type_of};
use super::values;
use crate::abi::DLDataTypeCode;
use crate::error::Result;
use crate::python::raise::{is, required};
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
) -> Result<Owned> {
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
            let what = format_args!(
                "{name}() of a Tensor takes exactly one element, not {numel} {elements}: \
                 take one by its index, or use tolist() or numpy()"
            );
            return Err(refused(python, kind(python), what));
        }
        values::element(python, &snapshot)
    }
}

slot!(
    /// `nb_int`.
    int, "int", |python, object: *mut PyObject| -> Owned {
        let value = only(python, object, "int", Python::PyExc_TypeError)?;
        required(python.PyNumber_Long(value.as_ptr()))
    }
);

/// # Safety
/// `object` is a live `Tensor`.
unsafe fn double(python: Python, object: *mut PyObject, name: &str) -> Result<f64> {
    // SAFETY: the caller's word.
    unsafe {
        let value = only(python, object, name, Python::PyExc_TypeError)?;
        checked(python, -1.0, python.PyFloat_AsDouble(value.as_ptr()))
    }
}

slot!(
    /// `nb_float`.
    float, "float", |python, object: *mut PyObject| -> Owned {
        required(python.PyFloat_FromDouble(double(python, object, "float")?))
    }
);

method!(
    /// __complex__($self, /)
    /// complex(self), of the only element.
    /// >>> complex(dlpack_rs.full(1, 2.0))
    /// (2+0j)
    __complex__ as "complex", |object, call| (/ *) {
        match tensor::description(object).dtype.code {
            code if code == DLDataTypeCode::kDLComplex as u8 => {
                only(call.python, object, "complex", Python::PyExc_TypeError)
            }
            _ => {
                let real = double(call.python, object, "complex")?;
                required(call.python.PyComplex_FromDoubles(real, 0.0))
            }
        }
    }
);

/// What the method of that name gives of the only element: `math.floor` and `math.ceil` would round
/// to a float first.
///
/// # Safety
/// `object` is a live `Tensor`.
unsafe fn rounded(call: &Call, object: *mut PyObject, method: &CStr) -> Result<Owned> {
    let python = call.python;
    // SAFETY: the caller's word.
    unsafe {
        let value = only(python, object, call.name(), Python::PyExc_TypeError)?;
        let found = call_method(python, value.as_ptr(), method, &[]);
        found.map_err(|error| match is(python, Python::PyExc_AttributeError) {
            true => call.wrong("of a Tensor takes a real number"),
            false => error,
        })
    }
}

method!(
    /// __floor__($self, /)
    /// math.floor(self), of the only element.
    /// >>> import math
    /// >>> math.floor(dlpack_rs.full(1, 2.5))
    /// 2
    __floor__ as "floor", |object, call| (/ *) { rounded(call, object, c"__floor__") }
);
method!(
    /// __ceil__($self, /)
    /// math.ceil(self), of the only element.
    /// >>> import math
    /// >>> math.ceil(dlpack_rs.full(1, 2.5))
    /// 3
    __ceil__ as "ceil", |object, call| (/ *) { rounded(call, object, c"__ceil__") }
);

slot!(
    /// `nb_bool`.
    truth, "bool", |python, object: *mut PyObject| -> bool {
        let value = only(python, object, "bool", Python::PyExc_ValueError)?;
        done(python.PyObject_IsTrue(value.as_ptr()))
    }
);

slot!(
    /// `sq_contains`.
    contains, "", |python, _object: *mut PyObject, _item: *mut PyObject| -> bool {
        const WHAT: &str = "is not defined: ask numpy() or tolist()";
        Err(wrong(python, "Tensor.__contains__", WHAT))
    }
);

/// `Py_EQ` and `Py_NE` of `tp_richcompare`.
const EQ: c_int = 2;
const NE: c_int = 3;

slot!(
    /// `tp_richcompare`. Order is left to the other object, and Python raises TypeError where that
    /// has none; of equality it would make identity, which says that equal tensors differ.
    compare, "Tensor",
    |python, object: *mut PyObject, other: *mut PyObject, operation: c_int| -> Owned {
        let not_implemented = python._Py_NotImplementedStruct();
        let name = match operation {
            EQ => c"__eq__",
            NE => c"__ne__",
            _ => return Ok(own(python, not_implemented)),
        };
        if other == python._Py_NoneStruct() {
            return boolean(python, operation == NE); // None is no tensor
        }
        // An array compares itself with what it can make an array of.
        if type_of(other) != type_of(object) {
            let result = call_method(python, other, name, &[object])?;
            if result.as_ptr() != not_implemented {
                return Ok(result);
            }
        }
        let what = format_args!(
            "a Tensor has no == and !=: compare the results of numpy() or tolist(), or use `is`"
        );
        Err(refused(python, python.PyExc_TypeError(), what))
    }
);

slot!(
    /// `__numpy_dtype__`: by it NumPy 2.4 and newer finds the type of what is no array of its own.
    numpy_dtype, "__numpy_dtype__", |python, object: *mut PyObject, _place: *mut c_void| -> Owned {
        super::numpy::dtype_of(python, object)
    }
);

//! A `Tensor` where Python expects a value: numbers, truth, membership, comparison.
//!
//! Python fills a slot that a type leaves empty from another one: truth from the length, membership
//! from iteration and `==`, `==` and the hash from identity, numbers from a buffer that is parsed
//! as text. So none that has such a substitute is left empty. Each gives the value of the only
//! element, or raises TypeError (ValueError for the truth of several elements, as NumPy does).

use core::ffi::{CStr, c_int, c_void};

use super::arguments::{Call, method};
use super::failure::{refused, slot, wrong};
use super::numpy::call_method;
use super::tensor::This;
use super::values;
use crate::abi::{DLDataTypeCode, DLTensor};
use crate::error::Result;
use crate::integer_text::signed;
use crate::validate::Snapshot;
use crate::{device_type, dtype};
use dlpack_python::kinds::TEXT;
use dlpack_python::{Object, Owned, Python, is, is_a, utf8};

/// The only element as Python's object. `kind` is the exception where there are several.
fn only(this: This, name: &str, kind: fn(Python) -> Object<'static>) -> Result<Owned> {
    let mut snapshot = Snapshot::new();
    values::read(this, &mut snapshot)?;
    let (numel, lanes) = (snapshot.numel()?, snapshot.dtype.lanes);
    if numel != 1 || lanes != 1 {
        let elements = if lanes == 1 { "elements" } else { "elements of several lanes" };
        let what = format_args!(
            "{name}() of a Tensor takes exactly one element, not {} {elements}: \
             take one by its index, or use tolist() or numpy()",
            signed(numel)
        );
        return Err(refused(this.python, kind(this.python), what));
    }
    // SAFETY: read from a live tensor.
    unsafe { values::element(this.python, &snapshot) }
}

/// The only element, converted to C's `double`.
fn double(this: This, name: &str) -> Result<f64> {
    let value = only(this, name, Python::PyExc_TypeError)?;
    this.python.PyFloat_AsDouble(value.object())
}

slot!(
    /// `nb_int`.
    int, "int", |this| -> Owned {
        let value = only(this, "int", Python::PyExc_TypeError)?;
        this.python.PyNumber_Long(value.object())
    }
);

slot!(
    /// `nb_index`: of an integer without axes, as NumPy has it.
    index, "index", |this| -> Owned {
        let &DLTensor { ndim, dtype, .. } = this.live().description();
        const CODES: [u8; 2] = [DLDataTypeCode::kDLInt as u8, DLDataTypeCode::kDLUInt as u8];
        if ndim != 0 || !CODES.contains(&dtype.code) {
            const WHAT: &str = "of a Tensor takes an integer without axes";
            return Err(wrong(this.python, "index", WHAT));
        }
        only(this, "index", Python::PyExc_TypeError)
    }
);

slot!(
    /// `nb_float`.
    float, "float", |this| -> Owned {
        this.python.PyFloat_FromDouble(double(this, "float")?)
    }
);

method!(
    /// __complex__($self, /)
    /// complex(self), of the only element.
    /// >>> complex(dlpack_rs.full(1, 2.0))
    /// (2+0j)
    __complex__ as "complex", |this, call| (/ *) {
        match this.live().description().dtype.code {
            code if dtype::is_complex(code) => {
                only(this, "complex", Python::PyExc_TypeError)
            }
            _ => call.python.PyComplex_FromDoubles(double(this, "complex")?, 0.0),
        }
    }
);

/// What the method of that name gives of the only element: `math.floor` and `math.ceil` would round
/// to a float first.
fn rounded(this: This, call: &Call, method: &CStr, digits: Option<Object>) -> Result<Owned> {
    let value = only(this, call.name(), Python::PyExc_TypeError)?;
    let found = match digits {
        None => call_method(call.python, method, &[value.object()]),
        Some(digits) => call_method(call.python, method, &[value.object(), digits]),
    };
    found.map_err(|error| match is(call.python, Python::PyExc_AttributeError) {
        true => call.wrong("of a Tensor takes a real number"),
        false => error,
    })
}

method!(
    /// __floor__($self, /)
    /// math.floor(self), of the only element.
    /// >>> import math
    /// >>> math.floor(dlpack_rs.full(1, 2.5))
    /// 2
    __floor__ as "floor", |this, call| (/ *) { rounded(this, call, c"__floor__", None) }
);
method!(
    /// __ceil__($self, /)
    /// math.ceil(self), of the only element.
    /// >>> import math
    /// >>> math.ceil(dlpack_rs.full(1, 2.5))
    /// 3
    __ceil__ as "ceil", |this, call| (/ *) { rounded(this, call, c"__ceil__", None) }
);
method!(
    /// __trunc__($self, /)
    /// math.trunc(self), of the only element.
    /// >>> import math
    /// >>> math.trunc(dlpack_rs.full(1, -2.5))
    /// -2
    __trunc__ as "trunc", |this, call| (/ *) { rounded(this, call, c"__trunc__", None) }
);
method!(
    /// __round__($self, /, ndigits=None)
    /// round(self, ndigits), of the only element.
    /// >>> round(dlpack_rs.full(1, 2.75), 1)
    /// 2.8
    __round__ as "round", |this, call| (/ ndigits *) { rounded(this, call, c"__round__", ndigits) }
);
method!(
    /// __format__($self, format_spec, /)
    /// format(self, format_spec): the value of a Tensor without axes; else its text, and no other
    /// format than the empty one.
    /// >>> f"{dlpack_rs.full((), 2.75):.1f}"
    /// '2.8'
    __format__ as "Tensor.__format__", |this, call| (spec / *) {
        let python = call.python;
        if !is_a(python, spec, TEXT) {
            return Err(call.wrong("takes a format as a text"));
        }
        let &DLTensor { ndim, dtype, device, .. } = this.live().description();
        let plain = utf8(python, spec)?.is_empty();
        // Where the value cannot be read the text says so.
        let read = dtype.lanes == 1 && device_type::host_reachable(device.device_type);
        match (ndim, plain) {
            (0, _) if read || !plain => {
                let value = only(this, call.name(), Python::PyExc_TypeError)?;
                python.PyObject_Format(value.object(), spec)
            }
            (_, true) => python.PyObject_Str(this.object()),
            _ => Err(call.wrong("of a Tensor with axes takes no format: use item() of an element")),
        }
    }
);

slot!(
    /// `nb_bool`.
    truth, "bool", |this| -> bool {
        let value = only(this, "bool", Python::PyExc_ValueError)?;
        this.python.PyObject_IsTrue(value.object())
    }
);

slot!(
    /// `sq_contains`.
    contains, "", |this, _item: Object| -> bool {
        const WHAT: &str = "is not defined: ask numpy() or tolist()";
        Err(wrong(this.python, "Tensor.__contains__", WHAT))
    }
);

/// `Py_EQ` and `Py_NE` of `tp_richcompare`.
const EQ: c_int = 2;
const NE: c_int = 3;

slot!(
    /// `tp_richcompare`. Order is left to the other object, and Python raises TypeError where that
    /// has none; of equality it would make identity, which says that equal tensors differ.
    compare, "Tensor",
    |this, other: Object, operation: c_int| -> Owned {
        let python = this.python;
        let not_implemented = python._Py_NotImplementedStruct();
        let name = match operation {
            EQ => c"__eq__",
            NE => c"__ne__",
            _ => return Ok(not_implemented.share(python)),
        };
        if other == python._Py_NoneStruct() {
            return python.PyBool_FromLong((operation == NE).into()); // None is no tensor
        }
        // An array compares itself with what it can make an array of.
        if other.type_of() != this.object().type_of() {
            let result = call_method(python, name, &[other, this.object()])?;
            if result.object() != not_implemented {
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
    numpy_dtype, "__numpy_dtype__", |this, _place: *mut c_void| -> Owned {
        super::numpy::dtype_of(this)
    }
);

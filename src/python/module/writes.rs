//! Writing into a `Tensor`: `t[...] = x`, `fill`, `copy_from`.
//!
//! A number of Python's becomes one element, of the dtype itself or of the widest of its kind, and
//! fills; anything else is taken in as by `from_dlpack`, broadcast as NumPy does, and copied or
//! converted.

use core::ptr::null_mut;

use super::arguments::{Call, Number, method};
use super::failure::{checked, done, none, refused, slot, truth, wrong};
use super::tensor::{Held, Live, This};
use super::values;
use super::views::{chosen, viewed};
use crate::abi::{DLDataTypeCode::*, *};
use crate::cast::{self, Value};
use crate::compare;
use crate::copy::{self, Given, Options, Pair};
use crate::device_type::{self, CPU};
use crate::dtype;
use crate::error::{Arg, Error, Result};
use crate::layout::Order;
use crate::python::raise::{is, required};
use crate::python::{Owned, PyObject, Python, detached};
use crate::tensor::alloc::{self, Request};
use crate::validate::{Rules, Snapshot};
use crate::view::Step;

/// Overlapping assignments in Python have the result of a temporary.
pub const OPTIONS: &Options = &Options { allow_overlap: true, ..Options::DEFAULT };
/// What is written, and where.
const ARGS: [Arg; 2] = [Arg::value, Arg::tensor];

/// One element, of one lane.
#[derive(Clone, Copy)]
pub struct Scalar {
    bits: [u64; 2],
    dtype: DLDataType,
}

impl Scalar {
    fn new(dtype: DLDataType, bits: [u64; 2]) -> Scalar {
        Scalar { bits, dtype }
    }

    /// A byte of 0.
    pub const ZERO: Scalar =
        Scalar { bits: [0; 2], dtype: DLDataType { code: kDLUInt as u8, bits: 8, lanes: 1 } };

    /// Writes it to every element.
    pub fn fill(&self, dst: Live) -> Result<()> {
        let mut bytes = [0u8; 16];
        let nbytes = dtype::padded_bytes(self.dtype) as usize;
        // Of small integers the bytes that count, in the machine's order.
        let [first, second] = self.bits.map(u64::to_ne_bytes);
        let skip = if cfg!(target_endian = "big") { 8usize.saturating_sub(nbytes) } else { 0 };
        let all = first.into_iter().skip(skip).chain(second);
        bytes.iter_mut().zip(all).for_each(|(to, from)| *to = from);
        let value = Value { place: bytes.as_ptr(), dtype: self.dtype, dtype_arg: ARGS[0] };
        let mut snapshot = Snapshot::new();
        dst.read(Rules::COPY, &mut snapshot)?;
        // SAFETY: live, and a value of our own.
        let fill = || unsafe { cast::fill(value, dst.tensor(), ARGS, OPTIONS) };
        detached(dst.python, snapshot.nbytes()?, fill)
    }
}

/// A number as an element for tensors of a dtype.
///
/// # Safety
/// `value` is a live object.
unsafe fn scalar(python: Python, value: *mut PyObject, into: DLDataType) -> Result<Scalar> {
    const BOOL: u8 = kDLBool as u8;
    const INT: u8 = kDLInt as u8;
    const UINT: u8 = kDLUInt as u8;
    const COMPLEX: u8 = kDLComplex as u8;
    // SAFETY: the caller's word.
    unsafe {
        let float = |value| checked(python, -1.0, value).map(f64::to_bits);
        match into.code {
            BOOL => {
                let truth = done(python.PyObject_IsTrue(value))?;
                Ok(Scalar::new(Number::Bool.dtype(), [truth.into(), 0]))
            }
            INT | UINT => {
                let whole = required(python.PyNumber_Long(value))?;
                integer(python, &whole, DLDataType { lanes: 1, ..into })
            }
            COMPLEX => {
                let real = float(python.PyComplex_RealAsDouble(value))?;
                let imaginary = float(python.PyComplex_ImagAsDouble(value))?;
                Ok(Scalar::new(Number::Complex.dtype(), [real, imaginary]))
            }
            _ => {
                Ok(Scalar::new(Number::Float.dtype(), [float(python.PyFloat_AsDouble(value))?, 0]))
            }
        }
    }
}

/// An `int` as an element of an integer dtype, in which it must fit.
fn integer(python: Python, whole: &Owned, dtype: DLDataType) -> Result<Scalar> {
    let signed = dtype.code == kDLInt as u8;
    let unused = 64 - u32::from(dtype.bits.clamp(1, 64));
    // SAFETY: an `int`; the exceptions that these functions raise are replaced.
    let (bits, fits) = unsafe {
        let bits = match signed {
            true => python.PyLong_AsLongLong(whole.as_ptr()) as u64,
            false => python.PyLong_AsUnsignedLongLong(whole.as_ptr()),
        };
        let raised = bits == u64::MAX && !python.PyErr_Occurred().is_null();
        if raised {
            python.PyErr_Clear();
        }
        let again = match signed {
            true => ((bits << unused) as i64 >> unused) as u64,
            false => bits << unused >> unused,
        };
        (bits, !raised && again == bits)
    };
    if fits {
        return Ok(Scalar::new(dtype, [bits, 0]));
    }
    let text = format_args!("the value is out of bounds for {}", dtype::Name(dtype));
    Err(refused(python, python.PyExc_OverflowError(), text))
}

/// Writes a value, a number or anything that is a tensor, to the elements of `dst`.
///
/// # Safety
/// `value` is a live object.
pub unsafe fn assign(dst: Live, value: *mut PyObject) -> Result<()> {
    let (python, dtype) = (dst.python, dst.description().dtype);
    // SAFETY: the caller's word.
    unsafe {
        if Number::of(python, value).is_some() {
            return scalar(python, value, dtype)?.fill(dst);
        }
        match Held::of(python, value) {
            Ok(src) => broadcast(src.live(), dst),
            Err(failure) => other_number(python, value, dtype, failure)?.fill(dst),
        }
    }
}

/// What is no tensor, for which `failure` is the reason, may be a number of another library, as
/// ml_dtypes' and `Decimal`: then only its own exceptions count.
///
/// # Safety
/// `value` is a live object.
unsafe fn other_number(
    python: Python,
    value: *mut PyObject,
    dtype: DLDataType,
    failure: Error,
) -> Result<Scalar> {
    let mut set = [null_mut(); 3];
    let [kind, object, trace] = &mut set;
    // SAFETY: the caller's word; what was fetched is restored or given up.
    unsafe {
        let value_of = |code| scalar(python, value, DLDataType { code, ..dtype });
        python.PyErr_Fetch(kind, object, trace);
        match value_of(kDLFloat as u8) {
            Err(_) if is(python, Python::PyExc_TypeError) => {
                let [kind, object, trace] = set;
                python.PyErr_Restore(kind, object, trace);
                Err(failure)
            }
            float => {
                set.into_iter().for_each(|part| drop(Owned::new(part)));
                float.and_then(|_| value_of(dtype.code))
            }
        }
    }
}

/// Writes the elements of a tensor to those of another one, repeated where an extent is 1, or where
/// there are fewer axes. Further axes of extent 1 in front are left out, as NumPy leaves them.
fn broadcast(src: Live, dst: Live) -> Result<()> {
    let pair = read([src, dst], ARGS)?;
    let (from, to) = (pair.src.shape(), pair.dst.shape());
    if from == to {
        return write(src, dst, OPTIONS);
    }
    let further = from.len().saturating_sub(to.len());
    let ones = from.iter().take(further).all(|&extent| extent == 1);
    let view = viewed(src, &mut |view| {
        for _ in 0..if ones { further } else { 0 } {
            view.apply(&Step::Squeeze { axis: 0 })?;
        }
        view.apply(&Step::Expand { shape: to })
    })?;
    write(view.live(), dst, OPTIONS)
}

/// Writes the elements of a tensor to those of another one of the same shape, whatever their dtypes
/// and devices are: only the CPU converts, so other memory is copied to the host.
/// `options` are [`OPTIONS`], but for how numbers are converted.
pub fn write(src: Live, dst: Live, options: &Options) -> Result<()> {
    let python = src.python;
    let pair = read([src, dst], ARGS)?;
    let on_host = |tensor: &Snapshot| device_type::host_reachable(tensor.device.device_type);
    let nbytes = pair.dst.nbytes()?;
    if pair.src.dtype == pair.dst.dtype || on_host(&pair.src) && on_host(&pair.dst) {
        // SAFETY: both are live.
        return detached(python, nbytes, || unsafe { cast::cast(&pair, options) });
    }
    pair.check_target()?;
    let Pair { src: from, dst: to, .. } = &pair;
    let between = match on_host(from) {
        // As the destination, in host memory.
        true => {
            let flags = to.flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
            alloc::new(&Request { flags, ..Request::dense(to.shape(), to.dtype, CPU) })
        }
        false => detached(python, nbytes, || copy::clone(from, Order::K, CPU, OPTIONS)),
    };
    // SAFETY: a fresh block.
    let between = unsafe { Held::new(python, between?) };
    if on_host(from) {
        write(src, between.live(), options)?;
    }
    write(between.live(), dst, options)
}

/// Reads a source and a destination, or two that are compared.
#[inline(never)]
fn read([src, dst]: [Live; 2], args: [Arg; 2]) -> Result<Pair> {
    let mut pair = Pair::new(args);
    // SAFETY: both are live.
    unsafe { pair.read(Given { src: src.tensor(), dst: dst.tensor() }, Rules::COPY) }?;
    Ok(pair)
}

const SET: &str = "Tensor.__setitem__";

slot!(
    /// `mp_ass_subscript`.
    assign_subscript, SET,
    |this, key: *mut PyObject, value: *mut PyObject| -> () {
        if value.is_null() {
            return Err(wrong(this.python, SET, "cannot delete elements"));
        }
        assign(chosen(this, SET, key)?.live(), value)
    }
);

method!(
    /// copy_from($self, x, /)
    /// Write the elements of x, anything that from_dlpack accepts, also of another dtype or on
    /// another device, and broadcast as in NumPy.
    /// >>> t = dlpack_rs.empty((2, 2))
    /// >>> t.copy_from(dlpack_rs.full(2, 3))
    /// >>> t.tolist()
    /// [[3.0, 3.0], [3.0, 3.0]]
    copy_from, |this, call| (value / *) {
        let python = call.python;
        let src = Held::of(python, value)?;
        broadcast(src.live(), this.live())?;
        Ok(none(python))
    }
);
method!(
    /// fill($self, value, /)
    /// Write one number, or the element of a one-element tensor, to every element.
    /// >>> t = dlpack_rs.empty(3, 'bfloat16')
    /// >>> t.fill(0.5)
    /// >>> t.tolist()
    /// [0.5, 0.5, 0.5]
    fill, |this, call| (value / *) {
        let python = call.python;
        if Number::of(python, value).is_none()
            && let Ok(src) = Held::of(python, value)
        {
            let mut snapshot = Snapshot::new();
            src.live().read(Rules::COPY, &mut snapshot)?;
            values::single(&snapshot, "fills with exactly one element; use copy_from()")?;
        }
        python.PyErr_Clear();
        assign(this.live(), value)?;
        Ok(none(python))
    }
);
method!(
    /// equal($self, other, /, *, equal_nan=False)
    /// Whether other, of the same dtype, has the same shape and equal elements; NaN is not equal to
    /// NaN.
    /// >>> dlpack_rs.zeros(3).equal(dlpack_rs.full(3, -0.0))
    /// True
    equal, |this, call| (/ other * equal_nan) {
        let equality = match super::arguments::truth(call.python, equal_nan)? {
            true => compare::Equality::ValuesOrNan,
            false => compare::Equality::Values,
        };
        let mut same = false;
        compared(this, call, other, &mut |pair| {
            same = compare::equal(pair, equality)?;
            Ok(())
        })?;
        truth(call.python, same)
    }
);
method!(
    /// max_diff($self, other, /)
    /// The largest absolute difference of an element and that of other, of the same dtype and
    /// shape; NaN if just one of the two is.
    /// >>> dlpack_rs.zeros(3).max_diff(dlpack_rs.full(3, -0.5))
    /// 0.5
    max_diff, |this, call| (other / *) {
        let mut largest = 0.0;
        compared(this, call, other, &mut |pair| {
            largest = compare::max_diff(pair)?;
            Ok(())
        })?;
        required(call.python.PyFloat_FromDouble(largest))
    }
);

/// Compares with another tensor.
///
/// # Safety
/// `other` is NULL or a live object.
unsafe fn compared(
    this: This,
    call: &Call,
    other: *mut PyObject,
    compare: &mut dyn FnMut(&Pair) -> Result<()>,
) -> Result<()> {
    call.needs(other, "another tensor")?;
    // SAFETY: the caller's word; the other one is held meanwhile.
    unsafe {
        let other = Held::of(this.python, other)?;
        let pair = read([this.live(), other.live()], [Arg::tensor, Arg::other])?;
        detached(this.python, pair.src.nbytes()?, || compare(&pair))
    }
}

//! Writing into a `Tensor`: `t[...] = x`, `fill`, `copy_from`.
//!
//! A number, which must fit, becomes one element of the widest dtype of its kind, and fills;
//! anything else is taken in as by `asarray`, broadcast as NumPy does, and copied, or converted as
//! by `astype`.

use super::arguments::{self, Call, Number, method};
use super::failure::{none, refused};
use super::numpy::{call_method, call_numpy};
use super::tensor::{Held, Live, This};
use super::views::viewed;
use super::{values, workers};
use crate::abi::{DLDataTypeCode::*, *};
use crate::cast::{self, Value};
use crate::copy::{self, Given, Options, Pair};
use crate::device_type::{self, CPU};
use crate::error::{Arg, Error, Result, Status::*};
use crate::integer_text::{signed as signed_text, unsigned};
use crate::layout::{MAX_NDIM, Order};
use crate::validate::{Rules, Snapshot};
use crate::view::Step;
use crate::{compare, dtype};
use dlpack_python::Comparison::{Greater, Less};
use dlpack_python::constants::{self, Constant};
use dlpack_python::kinds::{LIST, TEXT, TUPLE};
use dlpack_python::{
    KindOf, Object, Owned, Python, Quoted, detached, forgive, is, is_a, text, utf8,
};
use dlpack_tensor::tensor::alloc::{self, Request};

/// Overlapping assignments in Python have the result of a temporary.
pub const OPTIONS: &Options = &Options { allow_overlap: true, ..Options::DEFAULT };
/// What is written, and where.
const ARGS: [Arg; 2] = [Arg::value, Arg::tensor];

/// What numbers are converted for.
#[derive(Clone, Copy)]
pub struct Target {
    /// The function, in messages.
    pub name: &'static str,
    pub dtype: DLDataType,
}

/// A number, as an element of the widest dtype of its kind.
#[derive(Clone, Copy)]
pub struct Scalar {
    bits: [u64; 2],
    dtype: DLDataType,
}

impl Scalar {
    pub const ZERO: Scalar = Scalar { bits: [0; 2], dtype: wide(kDLUInt) };

    /// Writes it to every element.
    pub fn fill(&self, dst: Live) -> Result<()> {
        let place = self.bits.as_ptr().cast();
        let value = Value { place, dtype: self.dtype, dtype_arg: ARGS[0] };
        let mut snapshot = Snapshot::new();
        dst.read(Rules::COPY, &mut snapshot)?;
        let nbytes = snapshot.nbytes()?;
        // SAFETY: live, and a value of our own; nothing of Python is called.
        unsafe { detached(dst.python, nbytes, || cast::fill(value, dst.tensor(), ARGS, OPTIONS)) }
    }
}

/// The widest dtype of a kind of numbers, which [`Scalar`] has.
const fn wide(code: DLDataTypeCode) -> DLDataType {
    let bits = if matches!(code, kDLComplex) { 128 } else { 64 };
    DLDataType { code: code as u8, bits, lanes: 1 }
}

/// A number as an element for tensors of a dtype.
fn scalar(python: Python, value: Object, target: Target) -> Result<Scalar> {
    let into = target.dtype;
    const BOOL: u8 = kDLBool as u8;
    const INT: u8 = kDLInt as u8;
    const UINT: u8 = kDLUInt as u8;
    let (code, bits) = match into.code {
        BOOL => (kDLUInt, [python.PyObject_IsTrue(value)?.into(), 0]),
        INT | UINT => {
            let whole = python.PyNumber_Long(value)?;
            let code = if into.code == INT { kDLInt } else { kDLUInt };
            (code, [integer(python, whole.object(), target)?, 0])
        }
        code if dtype::is_complex(code) => {
            // Python before 3.13 converts to a float first, without the imaginary part.
            let method = constants::get(python, Constant::Complex)?;
            let found = match Number::of(python, value) {
                Some(_) => None,
                None => python.attribute(value, method)?,
            };
            let own = found.map(|_| python.call(method, &[value])).transpose()?;
            let value = own.as_ref().map_or(value, Owned::object);
            let real = python.PyComplex_RealAsDouble(value)?;
            let real = to_odd(python, value, real, into)?.to_bits();
            (kDLComplex, [real, python.PyComplex_ImagAsDouble(value)?.to_bits()])
        }
        _ => {
            let nearest = python.PyFloat_AsDouble(value)?;
            (kDLFloat, [to_odd(python, value, nearest, into)?.to_bits(), 0])
        }
    };
    Ok(Scalar { bits, dtype: wide(code) })
}

/// The double that stands for an integer: the nearest one or, where that is another number and a
/// narrower dtype will round it again, the one beside the integer whose last bit is 1. Rounding
/// that gives what rounding the integer would.
fn to_odd(python: Python, value: Object, nearest: f64, into: DLDataType) -> Result<f64> {
    const EXACT: f64 = (1u64 << 53) as f64; // every integer up to it is a double
    let widest = u16::from(into.bits) >= if dtype::is_complex(into.code) { 128 } else { 64 };
    let bits = nearest.to_bits();
    if nearest.abs() <= EXACT || widest || bits & 1 == 1 || !python.PyIndex_Check(value)? {
        return Ok(nearest);
    }
    let (whole, double) = (python.PyNumber_Index(value)?, python.PyFloat_FromDouble(nearest)?);
    let is = |order| python.PyObject_RichCompareBool(whole.object(), double.object(), order);
    let (outwards, inwards) = if nearest > 0.0 { (Greater, Less) } else { (Less, Greater) };
    let beside = if is(outwards)? {
        bits + 1
    } else if is(inwards)? {
        bits - 1
    } else {
        bits
    };
    Ok(f64::from_bits(beside))
}

/// The low bits of an `int` that fits in an integer dtype.
fn integer(python: Python, whole: Object, target: Target) -> Result<u64> {
    let Target { name, dtype } = target;
    let signed = dtype.code == kDLInt as u8;
    let unused = 64 - u32::from(dtype.bits.clamp(1, 64));
    let most = u64::MAX >> unused >> u32::from(signed);
    let least = if signed { -(most as i64) - 1 } else { 0 };
    let bits = match signed {
        true => python.PyLong_AsLongLong(whole).map(|number| number as u64),
        false => python.PyLong_AsUnsignedLongLong(whole),
    };
    match bits {
        Ok(bits) if signed && (least..=most as i64).contains(&(bits as i64)) => return Ok(bits),
        Ok(bits) if !signed && bits <= most => return Ok(bits),
        _ => python.clear(),
    }
    // One that has no text, as it is too long, is not shown.
    let shown = python.PyObject_Str(whole);
    let shown = match &shown {
        Ok(shown) => utf8(python, shown.object())?,
        Err(_) => forgive(python).map(|()| &b"of many digits"[..])?,
    };
    let text = format_args!(
        "{name}: the value {} is out of bounds for {}, which has {} to {}",
        Quoted(shown),
        dtype::Name(DLDataType { lanes: 1, ..dtype }),
        signed_text(least),
        unsigned(most)
    );
    Err(refused(python, python.PyExc_OverflowError(), text))
}

/// A tensor of the numbers in nested lists, whose shape NumPy finds: each as an element for a
/// dtype, but of the widest of its kind.
pub fn listed(python: Python, lists: Object, target: Target) -> Result<Held> {
    let objects = call_numpy(python, c"asarray", &[lists, text(python, c"O")?.object()])?;
    let flat = call_method(python, c"ravel", &[objects.object()])?;
    let mut room = [0; MAX_NDIM];
    let shape = python.named(objects.object(), c"shape")?;
    let shape = arguments::shape(python, shape.object(), &mut room)?;
    let wide = scalar(python, python._Py_FalseStruct(), target)?.dtype;
    let made = Held::alloc(python, &Request::dense(shape, wide, CPU))?;
    let words = usize::from(wide.bits / 64);
    let mut to: *mut u64 = made.live().description().data.cast();
    for place in 0..python.PySequence_Size(flat.object())? {
        let item = python.PySequence_GetItem(flat.object(), place as isize)?;
        let Some(number) = number(python, item.object(), target)? else {
            if is_a(python, item.object(), LIST | TUPLE | TEXT) {
                const WHAT: &str = "the lists differ in length, or hold what is no number\0\
                    Give numbers, in lists of one length.";
                return Err(Error::new(DLRS_BAD_ARG).detail(WHAT));
            }
            let kind = KindOf(python, item.object());
            let text = format_args!("the lists hold what is no number: {kind}");
            return Err(refused(python, python.PyExc_TypeError(), text));
        };
        // SAFETY: a fresh block has room for as many elements as there are numbers.
        unsafe {
            to.copy_from_nonoverlapping(number.bits.as_ptr(), words);
            to = to.add(words);
        }
    }
    Ok(made)
}

/// The number that a value is, for tensors of a dtype. What has a `__dlpack__` is an array, though
/// it can be converted to a number.
fn plain(python: Python, value: Object, target: Target) -> Result<Option<Scalar>> {
    let array = Number::of(python, value).is_none() && {
        let kind = python.PyObject_Type(value)?;
        python.type_has(kind.object(), constants::get(python, Constant::Dlpack)?)?
    };
    if array { Ok(None) } else { number(python, value, target) }
}

/// Writes a value, a number or anything of which a tensor can be made, to the elements of `dst`.
pub fn assign(dst: Live, value: Object, name: &'static str) -> Result<()> {
    let (python, target) = (dst.python, Target { name, dtype: dst.description().dtype });
    match plain(python, value, target)? {
        Some(number) => number.fill(dst),
        None => broadcast(taken(python, value, Some(target))?.live(), dst, OPTIONS),
    }
}

/// What makes a tensor of an object.
#[derive(PartialEq)]
pub enum Source {
    /// A protocol of its own.
    Protocol,
    /// NumPy, by `__array__`.
    Array,
    /// NumPy, which finds the shape of nested sequences.
    Sequence,
}

impl Source {
    /// That of an object; TypeError for what is no array, and cannot be made one.
    pub fn of(python: Python, value: Object) -> Result<Source> {
        if is_a(python, value, LIST | TUPLE) {
            return Ok(Source::Sequence);
        }
        let capsule = value.type_of() == python.PyCapsule_Type();
        if capsule || python.PyObject_CheckBuffer(value)? {
            return Ok(Source::Protocol);
        }
        for (name, source) in [
            (c"__dlpack__", Source::Protocol),
            (c"__dlpack_c_exchange_api__", Source::Protocol),
            (c"__cuda_array_interface__", Source::Protocol),
            (c"__array_interface__", Source::Protocol),
            (c"__array__", Source::Array),
        ] {
            if python.attribute(value, text(python, name)?.object())?.is_some() {
                return Ok(source);
            }
        }
        if !is_a(python, value, TEXT) && arguments::length(python, value)?.is_some() {
            return Ok(Source::Sequence);
        }
        let text = format_args!(
            "{} is no array and no sequence of numbers: it has no __dlpack__, no buffer and no \
             array interface",
            KindOf(python, value)
        );
        Err(refused(python, python.PyExc_TypeError(), text))
    }
}

/// The tensor of an object, or of what NumPy makes of it; the numbers in sequences become elements
/// for a dtype.
pub fn taken(python: Python, value: Object, target: Option<Target>) -> Result<Held> {
    match (Source::of(python, value)?, target) {
        (Source::Protocol, _) => Held::of(python, value),
        (Source::Sequence, Some(target)) => listed(python, value, target),
        _ => Held::of(python, call_numpy(python, c"asarray", &[value])?.object()),
    }
}

/// The tensor of an argument that is an array itself.
fn array(call: &Call, value: Object) -> Result<Held> {
    match Source::of(call.python, value)? {
        Source::Protocol => Held::of(call.python, value),
        _ => Err(call.wrong("takes an array with __dlpack__, as numpy.asarray() makes it")),
    }
}

/// A number of Python's, NumPy's or another library's, as ml_dtypes' and `Decimal`; `None` for what
/// is none.
fn number(python: Python, value: Object, target: Target) -> Result<Option<Scalar>> {
    let Target { name, dtype } = target;
    let value_of =
        |code| scalar(python, value, Target { name, dtype: DLDataType { code, ..dtype } });
    if Number::of(python, value).is_none() {
        // A text can be a whole number, and anything is true, so they are no sign of a number.
        let sign = if dtype::is_complex(dtype.code) { kDLComplex } else { kDLFloat };
        let whole = [kDLBool, kDLInt, kDLUInt].map(|kind| kind as u8);
        match value_of(sign as u8) {
            Ok(found) if !whole.contains(&dtype.code) => return Ok(Some(found)),
            Ok(_) => {}
            Err(_) if is(python, Python::PyExc_TypeError) => {
                python.clear();
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
    }
    value_of(dtype.code).map(Some)
}

/// Writes the elements of a tensor to those of another one, repeated where an extent is 1, or where
/// there are fewer axes. Further axes of extent 1 in front are left out, as NumPy leaves them.
pub fn broadcast(src: Live, dst: Live, options: &Options) -> Result<()> {
    let pair = read([src, dst], ARGS)?;
    let (from, to) = (pair.src.shape(), pair.dst.shape());
    if from == to {
        return write(src, dst, options);
    }
    let further = from.len().saturating_sub(to.len());
    let ones = from.iter().take(further).all(|&extent| extent == 1);
    let view = viewed(src, &mut |view| {
        for _ in 0..if ones { further } else { 0 } {
            view.apply(&Step::Squeeze { axis: 0 })?;
        }
        view.apply(&Step::Expand { shape: to })
    })?;
    write(view.live(), dst, options)
}

/// Writes the elements of a tensor to those of another one of the same shape, whatever their dtypes
/// and devices are: only the CPU converts, so other memory is copied to the host.
/// `options` are [`OPTIONS`], but for how numbers are converted, and by which threads.
pub fn write(src: Live, dst: Live, options: &Options) -> Result<()> {
    let python = src.python;
    let pair = read([src, dst], ARGS)?;
    let on_host = |tensor: &Snapshot| device_type::host_reachable(tensor.device.device_type);
    let nbytes = pair.dst.nbytes()?;
    if pair.src.dtype == pair.dst.dtype || on_host(&pair.src) && on_host(&pair.dst) {
        // SAFETY: both are live; nothing of Python is called.
        return unsafe { detached(python, nbytes, || cast::cast(&pair, options)) };
    }
    pair.check_target()?;
    let Pair { src: from, dst: to, .. } = &pair;
    let between = match on_host(from) {
        // As the destination, in host memory.
        true => {
            let flags = to.flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
            alloc::new(&Request { flags, ..Request::dense(to.shape(), to.dtype, CPU) })
        }
        // SAFETY: a copy calls nothing of Python.
        false => unsafe { detached(python, nbytes, || copy::clone(from, Order::K, CPU, OPTIONS)) },
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

method!(
    /// copy_from($self, x, /, *, workers=None)
    /// Write the elements of x, anything that asarray accepts but a number, also of another dtype
    /// or on another device, and broadcast as in NumPy. workers: Workers that share the copy.
    /// >>> t = dlpack_rs.empty((2, 2))
    /// >>> t.copy_from(dlpack_rs.full(2, 3))
    /// >>> t.tolist()
    /// [[3.0, 3.0], [3.0, 3.0]]
    copy_from, |this, call| (value / * workers) {
        let python = call.python;
        let (options, _keeps) = workers::options(call, workers, OPTIONS)?;
        let dtype = this.live().description().dtype;
        let src = taken(python, value, Some(Target { name: call.name(), dtype }))?;
        broadcast(src.live(), this.live(), &options)?;
        Ok(none(python))
    }
);
method!(
    /// fill($self, value, /)
    /// Write one number, or the element of a one-element tensor, to every element. OverflowError if
    /// a number does not fit; a tensor's is converted as by astype.
    /// >>> t = dlpack_rs.empty(3, 'bfloat16')
    /// >>> t.fill(0.5)
    /// >>> t.tolist()
    /// [0.5, 0.5, 0.5]
    fill, |this, call| (value / *) {
        let python = call.python;
        let dst = this.live();
        let dtype = dst.description().dtype;
        match plain(python, value, Target { name: call.name(), dtype })? {
            Some(number) => number.fill(dst)?,
            None => {
                let src = array(call, value)?;
                let mut snapshot = Snapshot::new();
                src.live().read(Rules::COPY, &mut snapshot)?;
                values::single(&snapshot, "fills with exactly one element\0Use copy_from().")?;
                broadcast(src.live(), dst, OPTIONS)?;
            }
        }
        Ok(none(python))
    }
);
method!(
    /// equal($self, other, *, equal_nan=False)
    /// Whether other, of the same dtype, has the same shape and equal elements; NaN is not equal to
    /// NaN.
    /// >>> dlpack_rs.zeros(3).equal(dlpack_rs.full(3, -0.0))
    /// True
    equal, |this, call| (/ other * equal_nan) {
        let equality = match arguments::truth(call.python, equal_nan)? {
            true => compare::Equality::ValuesOrNan,
            false => compare::Equality::Values,
        };
        let mut same = false;
        let other = call.needs(other, "another tensor")?;
        compared(this, call, other, &mut |pair| {
            // SAFETY: both tensors are live.
            same = unsafe { compare::equal(pair, equality)? };
            Ok(())
        })?;
        call.python.PyBool_FromLong(same.into())
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
            // SAFETY: both tensors are live.
            largest = unsafe { compare::max_diff(pair)? };
            Ok(())
        })?;
        call.python.PyFloat_FromDouble(largest)
    }
);

/// Compares with another tensor; `compare` calls nothing of Python.
fn compared(
    this: This,
    call: &Call,
    other: Object,
    compare: &mut dyn FnMut(&Pair) -> Result<()>,
) -> Result<()> {
    let other = array(call, other)?;
    let pair = read([this.live(), other.live()], [Arg::tensor, Arg::other])?;
    let nbytes = pair.src.nbytes()?;
    // SAFETY: `equal` and `max_diff` compare elements, and call nothing of Python.
    unsafe { detached(this.python, nbytes, || compare(&pair)) }
}

//! New tensors: `empty`, `zeros`, `full`, `asarray`, `from_numpy`, and `astype`.

use super::arguments::{self, Call, Number, method};
use super::failure::refused;
use super::numpy::call_numpy;
use super::tensor::{self, Held, Live, RULES};
use super::writes::{self, Scalar, Source, Target};
use crate::abi::*;
use crate::copy::{CopyPolicy, Options};
use crate::device_type::CPU;
use crate::dtype;
use crate::error::Result;
use crate::layout::{MAX_NDIM, Order};
use crate::validate::Snapshot;
use dlpack_python::import::check_unmasked;
use dlpack_python::kinds::{LIST, TUPLE};
use dlpack_python::words::{given, policy};
use dlpack_python::{Object, Owned, Python, home, is_a};
use dlpack_tensor::tensor::alloc::{self, Request};
use dlpack_tensor::tensor::{share, view};

const FLOAT32: DLDataType = DLDataType { code: DLDataTypeCode::kDLFloat as u8, bits: 32, lanes: 1 };
const PADDED: u64 = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;

/// Arguments of the functions that create a tensor.
#[derive(Default)]
struct Made<'a> {
    shape: Option<Object<'a>>,
    dtype: Option<Object<'a>>,
    device: Option<Object<'a>>,
    order: Option<Object<'a>>,
    strides: Option<Object<'a>>,
}

impl Made<'_> {
    /// A new uninitialised tensor.
    fn make(&self, call: &Call, default: DLDataType) -> Result<Held> {
        let python = call.python;
        let (mut room, mut steps) = ([0; MAX_NDIM], [0; MAX_NDIM]);
        let shape = arguments::shape(python, call.needs(self.shape, "a shape")?, &mut room)?;
        let dtype = call.given(self.dtype, Call::dtype)?.unwrap_or(default);
        let device = call.given(self.device, Call::device)?.unwrap_or(CPU);
        let order = call.order(self.order)?;
        let strides = match (given(python, self.strides), order) {
            (Some(_), _) if self.order.is_some() => {
                return Err(call.wrong("takes an order or strides, not both"));
            }
            (Some(strides), _) => Some(arguments::shape(python, strides, &mut steps)?),
            (None, Order::F) => {
                steps = alloc::strides_for(shape, order, &[]);
                steps.get(..shape.len())
            }
            (None, Order::C) => None,
            // There is nothing whose order could be kept.
            (None, _) => {
                let text = format_args!("empty: order must be 'C' or 'F'");
                return Err(refused(python, python.PyExc_ValueError(), text));
            }
        };
        if let Some(strides) = strides {
            if strides.len() != shape.len() {
                return Err(call.wrong("needs as many strides as extents"));
            }
            alloc::check_strides(shape, strides, dtype, 0)?;
        }
        Held::alloc(python, &Request { strides, ..Request::dense(shape, dtype, device) })
    }
}

fn object_of(python: Python, tensor: Held) -> Result<Owned> {
    tensor.object(tensor::known(python)?)
}

/// A new dense tensor of zeros in the memory of the CPU.
pub fn blank(python: Python, shape: &[i64], dtype: DLDataType) -> Result<Held> {
    let made = Held::alloc(python, &Request::dense(shape, dtype, CPU))?;
    clear(&made)?;
    Ok(made)
}

/// Makes every byte of a fresh dense tensor 0.
fn clear(fresh: &Held) -> Result<()> {
    let mut snapshot = Snapshot::new();
    fresh.live().read(RULES, &mut snapshot)?;
    // SAFETY: live; the view is ours.
    let bytes = unsafe { view::bytes(&snapshot, fresh.live().block(), 0)? };
    // SAFETY: `bytes` is a fresh block of ours, with one reference to give.
    let bytes = unsafe { Held::new(fresh.live().python, bytes) };
    Scalar::ZERO.fill(bytes.live())
}

method!(
    /// empty(shape, dtype='float32', device='cpu', *, order='C', strides=None)
    /// A new uninitialised Tensor, aligned to 256 bytes.
    ///
    /// order: 'C' or 'F'. strides: in elements, in place of an order; gaps between elements are
    /// allowed.
    /// >>> dlpack_rs.empty((2, 3), 'bfloat16', order='F').strides
    /// (1, 2)
    empty, |_, call| (/ shape dtype device * order strides) {
        let made = Made { shape, dtype, device, order, strides }.make(call, FLOAT32)?;
        object_of(call.python, made)
    }
);
method!(
    /// zeros(shape, dtype='float32', device='cpu')
    /// A new Tensor of zeros.
    /// >>> dlpack_rs.zeros(3, 'int8').tolist()
    /// [0, 0, 0]
    zeros, |_, call| (/ shape dtype device *) {
        let made = Made { shape, dtype, device, ..Made::default() }.make(call, FLOAT32)?;
        clear(&made)?;
        object_of(call.python, made)
    }
);
method!(
    /// full(shape, fill_value, dtype=None, device='cpu')
    /// A new Tensor whose elements are all fill_value; OverflowError if the number does not fit.
    ///
    /// fill_value: a number, or what asarray accepts, broadcast as in NumPy. dtype: None is
    /// 'float32', 'int64', 'bool' or 'complex64', by the type of a Python number, or that of
    /// another value.
    /// >>> dlpack_rs.full((2, 2), 7).tolist()
    /// [[7, 7], [7, 7]]
    full, |_, call| (/ shape fill_value dtype device *) {
        let (python, value) = (call.python, call.needs(fill_value, "a fill_value")?);
        let mut source = None;
        let default = match Number::of(python, value) {
            Some(Number::Float) => FLOAT32,
            Some(Number::Complex) => DLDataType { bits: 64, ..Number::Complex.dtype() },
            Some(number) => number.dtype(),
            None if given(python, dtype).is_none() => {
                source.insert(writes::taken(python, value, None)?).live().description().dtype
            }
            None => FLOAT32,
        };
        let made = Made { shape, dtype, device, ..Made::default() }.make(call, default)?;
        if dtype::is_subbyte(made.live().description().dtype) {
            clear(&made)?; // the bits behind the last element
        }
        match source {
            Some(source) => writes::broadcast(source.live(), made.live(), writes::OPTIONS)?,
            None => writes::assign(made.live(), value, call.name())?,
        }
        object_of(python, made)
    }
);
method!(
    /// from_numpy(x, /)
    /// A Tensor over the memory of an array on the CPU, never a copy; arrays of ml_dtypes too.
    /// >>> import numpy as np
    /// >>> dlpack_rs.from_numpy(np.zeros(3, 'int16')).dtype
    /// 'int16'
    from_numpy, |_, call| (x / *) {
        let python = call.python;
        match Source::of(python, x)? {
            Source::Protocol => {
                object_of(python, Held::by(python, x, Some(CPU), CopyPolicy::Never)?)
            }
            _ => Err(call.wrong("takes an array: asarray() makes one of another object")),
        }
    }
);
method!(
    /// asarray(x, /, *, dtype=None, device=None, copy=None)
    /// As from_dlpack, and converted to dtype as by astype; an object that only has __array__ is
    /// asked for it. NumPy finds the shape of nested lists, and the dtype of numbers if none is
    /// given; OverflowError if a number does not fit.
    ///
    /// copy: True always copies, False never (ValueError or BufferError if one is needed), None if
    /// needed.
    /// >>> dlpack_rs.asarray([[1, 2], [3, 4]], dtype='float32').tolist()
    /// [[1.0, 2.0], [3.0, 4.0]]
    asarray, |_, call| (x / * dtype device copy) {
        let python = call.python;
        let device = call.given(device, Call::device)?;
        let dtype = call.given(dtype, Call::dtype)?;
        let policy = policy(python, copy)?;
        let array;
        let source = match Number::of(python, x) {
            Some(_) => Source::Sequence,
            None => Source::of(python, x)?,
        };
        let x = match source {
            Source::Protocol => x,
            _ if policy == CopyPolicy::Never => {
                let text = format_args!("asarray: copy=False: what is no array has to be copied");
                return Err(refused(python, python.PyExc_ValueError(), text));
            }
            _ => {
                array = match dtype.filter(|_| source == Source::Sequence) {
                    Some(dtype) => {
                        let target = Target { name: call.name(), dtype };
                        object_of(python, writes::listed(python, x, target)?)?
                    }
                    None => call_numpy(python, c"asarray", &[x])?,
                };
                let ndim = python.named(array.object(), c"ndim")?;
                check_lists(python, x, python.PyLong_AsLongLong(ndim.object())?)?;
                array.object()
            }
        };
        let taken = Held::by(python, x, device, policy)?;
        let made = match dtype {
            Some(dtype) if dtype != taken.live().description().dtype => {
                if policy == CopyPolicy::Never {
                    let text = format_args!("asarray: copy=False: another dtype needs a copy");
                    return Err(refused(python, python.PyExc_ValueError(), text));
                }
                converted(taken.live(), dtype, false)?
            }
            _ => taken,
        };
        object_of(python, made)
    }
);

/// Refuses arrays with a mask in nested lists, of which NumPy took what is below the mask.
fn check_lists(python: Python, lists: Object, ndim: i64) -> Result<()> {
    if !is_a(python, lists, LIST | TUPLE) {
        return match Number::of(python, lists) {
            Some(_) => Ok(()),
            None => check_unmasked(python, home::here(python)?, lists),
        };
    }
    for place in 0..if ndim > 0 { python.PySequence_Size(lists)? } else { 0 } {
        let item = python.PySequence_GetItem(lists, place as isize)?;
        check_lists(python, item.object(), ndim - 1)?;
    }
    Ok(())
}

/// A copy with its elements converted, in the order of the source's strides.
fn converted(src: Live, dtype: DLDataType, saturate: bool) -> Result<Held> {
    let mut snapshot = Snapshot::new();
    src.read(Options::DEFAULT.rules(), &mut snapshot)?;
    let flags = snapshot.flags & PADDED;
    let packed = !dtype::slot_bits(dtype, flags).is_multiple_of(8);
    let shape = snapshot.shape();
    let strides = alloc::strides_for(shape, Order::K, snapshot.strides());
    let strides = strides.get(..shape.len()).filter(|_| !packed);
    let dense = Request::dense(shape, dtype, snapshot.device);
    let request = Request { strides, flags, ..dense };
    let made = Held::alloc(src.python, &request)?;
    if packed {
        clear(&made)?; // the bits behind the last element
    }
    let options = Options { saturate, ..*writes::OPTIONS };
    writes::write(src, made.live(), &options)?;
    // SAFETY: live.
    share::set_flags(unsafe { made.live().block().as_ref() }, DLPACK_FLAG_BITMASK_IS_COPIED, 0)?;
    Ok(made)
}

method!(
    /// astype($self, dtype, *, copy=True, saturate=False)
    /// A copy with the elements converted, in the order of the strides; copy=False: itself if it
    /// has that dtype. To float: rounded once; too large becomes infinity, or NaN without one.
    /// Float to integer: towards zero, saturated, NaN is 0. Integer to integer: the low bits.
    /// saturate=True: too large becomes the largest finite value, for integers too.
    /// >>> dlpack_rs.asarray([1.75, -2.5]).astype('int8').tolist()
    /// [1, -2]
    astype, |this, call| (/ dtype * copy saturate) {
        let python = call.python;
        let dtype = call.dtype(call.needs(dtype, "a dtype")?)?;
        let saturate = arguments::truth(python, saturate)?;
        let always = copy.is_none() || arguments::truth(python, copy)?;
        let src = this.live();
        let made = match !always && src.description().dtype == dtype {
            true => src.share()?,
            false => converted(src, dtype, saturate)?,
        };
        this.like(made)
    }
);

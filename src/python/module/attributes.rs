//! Attributes of a `Tensor`.

use core::ffi::{CStr, c_char, c_void};
use core::fmt::Write;
use core::slice::from_raw_parts;

use super::arguments::refuse;
use super::failure::{Answer, Message, answer, done, made, none};
use super::views::get_transposed;
use super::{scalars, tensor};
use crate::abi::*;
use crate::dtype_notation::{self, Notation};
use crate::error::{Error, Status::*};
use crate::layout::{self, MAX_NDIM, Order};
use crate::python::constants::tuple as tuple_of;
use crate::python::module::spec::GetSetDef;
use crate::python::{Owned, PyObject, Python};
use crate::validate::{Level, Rules, Snapshot, check_ndim};
use crate::{device_type, dtype};

/// A tuple of numbers.
pub fn tuple(python: Python, numbers: &[i64]) -> Answer<Owned> {
    // SAFETY: a fresh tuple, filled with fresh numbers before anybody sees it.
    unsafe {
        let tuple = made(python.PyTuple_New(numbers.len() as isize))?;
        for (place, &number) in numbers.iter().enumerate() {
            let number = made(python.PyLong_FromLongLong(number))?;
            done(python.PyTuple_SetItem(tuple.as_ptr(), place as isize, number.into_ptr()))?;
        }
        Ok(tuple)
    }
}

/// A text of Python's.
pub fn text(python: Python, text: &[u8]) -> Answer<Owned> {
    let start: *const c_char = text.as_ptr().cast();
    // SAFETY: as many bytes as there are.
    unsafe { made(python.PyUnicode_FromStringAndSize(start, text.len() as isize)) }
}

/// A number of Python's.
pub fn whole(python: Python, number: u64) -> Answer<Owned> {
    // SAFETY: attached, by `Python`.
    unsafe { made(python.PyLong_FromUnsignedLongLong(number)) }
}

/// The name of a tensor's dtype.
pub fn dtype_name(python: Python, tensor: &Snapshot) -> Answer<Owned> {
    let mut name = Message::EMPTY;
    let _ = dtype::format(tensor.dtype, &mut name);
    text(python, name.text())
}

/// What a tensor is asked for, when its layout has been read.
type Question = fn(Python, &Snapshot) -> Answer<Owned>;

/// # Safety
/// `object` is a live `Tensor`.
unsafe fn ask(object: *mut PyObject, name: &'static str, question: Question) -> *mut PyObject {
    // SAFETY: the caller's word.
    unsafe {
        answer(name, |python| {
            let mut snapshot = Snapshot::new();
            tensor::read(object, Rules::of(Level::DLRS_LEVEL_STRUCT), &mut snapshot)?;
            question(python, &snapshot)
        })
    }
}

/// Getters: what each gives, of a snapshot.
macro_rules! attributes {
    ($( $name:ident, $shown:literal, $question:expr; )*) => {
        $(
            unsafe extern "C" fn $name(object: *mut PyObject, _: *mut c_void) -> *mut PyObject {
                // SAFETY: Python calls it for a `Tensor`.
                unsafe { ask(object, $shown, $question) }
            }
        )*
    };
}

attributes! {
    get_strides, "strides", |python, tensor| tuple(python, tensor.strides());
    get_ndim, "ndim", |python, tensor| whole(python, tensor.shape().len() as u64);
    get_dtype, "dtype", dtype_name;
    get_device, "device", |python, tensor| {
        let mut name = Message::EMPTY;
        let _ = write!(name, "{}", device_type::Name(tensor.device));
        text(python, name.text())
    };
    get_size, "size", |python, tensor| whole(python, tensor.numel()? as u64);
    get_nbytes, "nbytes", |python, tensor| whole(python, tensor.nbytes()?);
    get_itemsize, "itemsize", |python, tensor| {
        whole(python, dtype::padded_bytes(tensor.dtype).into())
    };
    get_data_ptr, "data_ptr", |python, tensor| {
        tensor.check_addressed()?;
        whole(python, if tensor.empty { 0 } else { tensor.first() as u64 })
    };
    get_flags, "flags", |python, tensor| whole(python, tensor.flags);
    get_read_only, "readonly", |python, tensor| {
        let read_only = tensor.flags & DLPACK_FLAG_BITMASK_READ_ONLY != 0;
        made(python.PyBool_FromLong(read_only.into()))
    };
    get_is_copied, "is_copied", |python, tensor| {
        let copied = tensor.flags & DLPACK_FLAG_BITMASK_IS_COPIED != 0;
        made(python.PyBool_FromLong(copied.into()))
    };
    get_cuda_array_interface, "__cuda_array_interface__", cuda_array_interface;
    get_byte_offset, "byte_offset", |python, tensor| whole(python, tensor.byte_offset);
}

/// Version 3 of the CUDA array interface. Whatever still works on the elements was given to the
/// default stream, or made known to it when they were taken in.
fn cuda_array_interface(python: Python, tensor: &Snapshot) -> Answer<Owned> {
    const LEGACY_STREAM: u64 = 1;
    let missing = |what: &str| {
        let text = format_args!("this Tensor has no __cuda_array_interface__: {what}");
        refuse(python, python.PyExc_AttributeError(), text)
    };
    if tensor.device.device_type != DLDeviceType::kDLCUDA as i32 {
        return Err(missing("it is not on a CUDA device"));
    }
    let Ok(name) = dtype_notation::text(tensor.dtype, Notation::DLRS_NOTATION_TYPESTR) else {
        return Err(missing("that has no name for its dtype"));
    };
    let mut typestr = Message::EMPTY;
    let _ = name.write(&mut typestr);
    // SAFETY: live objects.
    unsafe {
        let dict = made(python.PyDict_New())?;
        let set = |key: &CStr, value: Owned| {
            done(python.PyDict_SetItemString(dict.as_ptr(), key.as_ptr(), value.as_ptr()))
        };
        let read_only = tensor.flags & DLPACK_FLAG_BITMASK_READ_ONLY != 0;
        let address = if tensor.empty { 0 } else { tensor.first() as u64 };
        let read_only = made(python.PyBool_FromLong(read_only.into()))?;
        let data = tuple_of(python, [Some(whole(python, address)?), Some(read_only)])?;
        let strides = match layout::is_contiguous(tensor.shape(), tensor.strides(), Order::C) {
            true => none(python)?,
            false => {
                let mut steps = [0; MAX_NDIM];
                steps.iter_mut().zip(tensor.strides()).for_each(|(to, from)| *to = *from);
                let steps = steps.get_mut(..tensor.shape().len()).unwrap_or_default();
                let item_nbytes = dtype::padded_bytes(tensor.dtype);
                layout::strides_to_bytes(tensor.shape(), steps, item_nbytes)?;
                tuple(python, steps)?
            }
        };
        set(c"shape", tuple(python, tensor.shape())?)?;
        set(c"typestr", text(python, typestr.text())?)?;
        set(c"data", data)?;
        set(c"strides", strides)?;
        set(c"version", whole(python, 3)?)?;
        set(c"stream", whole(python, LEGACY_STREAM)?)?;
        Ok(dict)
    }
}

/// `shape`, which programs ask for most: the rest of the description is not looked at.
unsafe extern "C" fn get_shape(object: *mut PyObject, _: *mut c_void) -> *mut PyObject {
    // SAFETY: Python calls it for a `Tensor`, whose block has `ndim` extents.
    unsafe {
        answer("shape", |python| {
            let &DLTensor { ndim, shape, .. } = tensor::description(object);
            match check_ndim(ndim)? {
                0 => tuple(python, &[]),
                _ if shape.is_null() => Err(Error::new(DLRS_SHAPE_NULL).into()),
                ndim => tuple(python, from_raw_parts(shape, ndim)),
            }
        })
    }
}

/// The attributes.
pub static ATTRIBUTES: [GetSetDef; 17] = [
    GetSetDef::new(c"shape", get_shape, "Extents, a tuple.\0"),
    GetSetDef::new(c"strides", get_strides, "Elements to step along each axis, a tuple.\0"),
    GetSetDef::new(c"ndim", get_ndim, "Number of axes.\0"),
    GetSetDef::new(c"dtype", get_dtype, "Element type, its name: 'float32', 'bfloat16'.\0"),
    GetSetDef::new(c"device", get_device, "Device, its name: 'cpu', 'cuda:0'.\0"),
    GetSetDef::new(c"size", get_size, "Number of elements.\0"),
    GetSetDef::new(c"nbytes", get_nbytes, "Bytes of the elements without gaps.\0"),
    GetSetDef::new(
        c"itemsize",
        get_itemsize,
        "Bytes of one element, rounded up where it is smaller than a byte.\0",
    ),
    GetSetDef::new(c"data_ptr", get_data_ptr, "Address of element (0, ..., 0); 0 without any.\0"),
    GetSetDef::new(c"byte_offset", get_byte_offset, "byte_offset of the DLTensor.\0"),
    GetSetDef::new(c"flags", get_flags, "Flags of DLPack, as the bits of a number.\0"),
    GetSetDef::new(c"readonly", get_read_only, "Whether the elements must not be written.\0"),
    GetSetDef::new(
        c"is_copied",
        get_is_copied,
        "Whether it is a copy that nobody else has seen.\0",
    ),
    GetSetDef::new(
        c"__cuda_array_interface__",
        get_cuda_array_interface,
        "Where the elements are, of a tensor on CUDA; else AttributeError.\0",
    ),
    GetSetDef::new(c"__numpy_dtype__", scalars::numpy_dtype, "The dtype as NumPy's object.\0"),
    GetSetDef::new(c"T", get_transposed, "The view whose axes are in the opposite order.\0"),
    GetSetDef::END,
];

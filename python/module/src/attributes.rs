//! Attributes of a `Tensor`.

use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::slice::from_raw_parts;

use super::failure::{Message, dtype_name, none, raise, refused, slot};
use super::scalars;
use super::views::get_transposed;
use crate::abi::*;
use crate::dtype_notation::{self, Notation};
use crate::error::{Error, Result, Status::*};
use crate::layout::{self, MAX_NDIM, Order};
use crate::spec::GetSetDef;
use crate::validate::{Level, Rules, Snapshot, check_ndim};
use crate::{copy, device_type, dtype};
use dlpack_python::{Owned, Python, numbers, required, text_of};

/// What an attribute is, of a tensor that was read.
type Read = fn(Python, &Snapshot) -> Result<Owned>;

/// An attribute that is read from a snapshot: [`get`] serves them all, and is given the function.
const fn attribute(name: &'static CStr, doc: &'static str, read: Read) -> GetSetDef {
    GetSetDef::new(name, get, doc, read as *mut c_void)
}

pub static ATTRIBUTES: [GetSetDef; 18] = [
    attribute(c"strides", "Strides in elements, a tuple.\0", |python, tensor| {
        numbers(python, tensor.strides())
    }),
    attribute(c"ndim", "Number of axes.\0", |python, tensor| {
        python.PyLong_FromUnsignedLongLong(tensor.shape().len() as u64)
    }),
    attribute(c"dtype", "Element type, its name: 'float32', 'bfloat16'.\0", |python, tensor| {
        dtype_name(python, tensor.dtype)
    }),
    attribute(c"device", "Device, its name: 'cpu', 'cuda:0'.\0", |python, tensor| {
        let mut name = Message::EMPTY;
        let _ = device_type::format(tensor.device, &mut name);
        text_of(python, name.text())
    }),
    attribute(c"size", "Number of elements.\0", |python, tensor| {
        python.PyLong_FromUnsignedLongLong(tensor.numel()? as u64)
    }),
    attribute(c"nbytes", "Bytes of the elements without gaps.\0", |python, tensor| {
        python.PyLong_FromUnsignedLongLong(tensor.nbytes()?)
    }),
    attribute(c"itemsize", "Bytes of one element, rounded up.\0", |python, tensor| {
        python.PyLong_FromUnsignedLongLong(dtype::padded_bytes(tensor.dtype).into())
    }),
    attribute(c"data_ptr", "Address of element (0, ..., 0); 0 if empty.\0", |python, tensor| {
        tensor.check_addressed()?;
        let address = if tensor.empty { 0 } else { tensor.first() as u64 };
        python.PyLong_FromUnsignedLongLong(address)
    }),
    attribute(c"byte_offset", "byte_offset of the DLTensor.\0", |python, tensor| {
        python.PyLong_FromUnsignedLongLong(tensor.byte_offset)
    }),
    attribute(c"flags", "Flags of DLPack, as the bits of a number.\0", |python, tensor| {
        python.PyLong_FromUnsignedLongLong(tensor.flags)
    }),
    attribute(c"readonly", "Whether the elements must not be written.\0", |python, tensor| {
        python.PyBool_FromLong((tensor.flags & DLPACK_FLAG_BITMASK_READ_ONLY != 0).into())
    }),
    attribute(c"is_copied", "Whether it is a copy that is not shared.\0", |python, tensor| {
        python.PyBool_FromLong((tensor.flags & DLPACK_FLAG_BITMASK_IS_COPIED != 0).into())
    }),
    attribute(
        c"__cuda_array_interface__",
        "CUDA array interface of a tensor on CUDA; else AttributeError.\0",
        |python, tensor| array_interface(python, tensor, true),
    ),
    attribute(
        c"__array_interface__",
        "Array interface of a tensor in the host's memory; else AttributeError.\0",
        |python, tensor| array_interface(python, tensor, false),
    ),
    GetSetDef::new(c"shape", get_shape, "Extents, a tuple.\0", null_mut()),
    GetSetDef::new(c"__numpy_dtype__", scalars::numpy_dtype, "The dtype as NumPy's.\0", null_mut()),
    GetSetDef::new(c"T", get_transposed, "The view with reversed axes.\0", null_mut()),
    GetSetDef::END,
];

slot!(
    /// Reads an attribute of the table by its function.
    get, "", |this, read: *mut c_void| -> Owned {
        let mut snapshot = Snapshot::new();
        // SAFETY: Python passes what stands in the table: with `get`, a function of `attribute`.
        let given = unsafe { transmute::<*mut c_void, Read>(read) };
        this.live().read(Rules::of(Level::DLRS_LEVEL_STRUCT), &mut snapshot)
            .and_then(|()| given(this.python, &snapshot))
            .map_err(|error| {
                let row = ATTRIBUTES.iter().find(|row| row.closure() == read);
                raise(this.python, row.map_or("", GetSetDef::name), &error)
            })
    }
);

/// Version 3 of the array interface, or of the one for CUDA. There pending work on the elements is
/// on the default stream, or was made to precede it at the import; on the host it is waited for.
fn array_interface(python: Python, tensor: &Snapshot, cuda: bool) -> Result<Owned> {
    const LEGACY_STREAM: c_int = 1;
    let missing = |what: &str| {
        let cuda = if cuda { "cuda_" } else { "" };
        let text = format_args!("this Tensor has no __{cuda}array_interface__: {what}");
        refused(python, python.PyExc_AttributeError(), text)
    };
    let device_type = tensor.device.device_type;
    match cuda {
        true if device_type != DLDeviceType::kDLCUDA as i32 => {
            return Err(missing("it is not on a CUDA device"));
        }
        false if !device_type::host_reachable(device_type) => {
            return Err(missing("it is not in the host's memory"));
        }
        _ => {}
    }
    let Ok(name) = dtype_notation::text(tensor.dtype, Notation::DLRS_NOTATION_TYPESTR) else {
        return Err(missing("that has no name for its dtype"));
    };
    if !cuda {
        copy::host_read(tensor, &copy::Streams::NONE)?;
    }
    let mut typestr = Message::EMPTY;
    let _ = name.write(&mut typestr);
    let strides = match layout::is_contiguous(tensor.shape(), tensor.strides(), Order::C) {
        true => none(python),
        false => {
            let mut steps = [0; MAX_NDIM];
            steps.iter_mut().zip(tensor.strides()).for_each(|(to, from)| *to = *from);
            let steps = steps.get_mut(..tensor.shape().len()).unwrap_or_default();
            let item_nbytes = dtype::padded_bytes(tensor.dtype);
            layout::strides_to_bytes(tensor.shape(), steps, item_nbytes)?;
            numbers(python, steps)?
        }
    };
    let shape = numbers(python, tensor.shape())?;
    let read_only = tensor.flags & DLPACK_FLAG_BITMASK_READ_ONLY != 0;
    let read_only = python.PyBool_FromLong(read_only.into())?;
    let address = if tensor.empty { 0 } else { tensor.first() as u64 };
    // SAFETY: live objects and texts, as the format says.
    unsafe {
        required(python.builder()(
            if cuda { c"{s:O,s:s,s:(KO),s:O,s:i,s:i}" } else { c"{s:O,s:s,s:(KO),s:O,s:i}" }
                .as_ptr(),
            c"shape".as_ptr(),
            shape.as_ptr(),
            c"typestr".as_ptr(),
            typestr.as_ptr(),
            c"data".as_ptr(),
            address,
            read_only.as_ptr(),
            c"strides".as_ptr(),
            strides.as_ptr(),
            c"version".as_ptr(),
            3,
            c"stream".as_ptr(),
            LEGACY_STREAM,
        ))
    }
}

slot!(
    /// `shape`, the most frequent attribute: nothing else is read.
    get_shape, "shape", |this, _place: *mut c_void| -> Owned {
        let &DLTensor { ndim, shape, .. } = this.live().description();
        match check_ndim(ndim)? {
            0 => numbers(this.python, &[]),
            _ if shape.is_null() => Err(Error::new(DLRS_SHAPE_NULL)),
            // SAFETY: a live tensor has so many extents.
            ndim => numbers(this.python, unsafe { from_raw_parts(shape, ndim) }),
        }
    }
);

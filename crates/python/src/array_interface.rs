//! The array interfaces: a dictionary with the address of the memory, on CUDA or on the host.

use core::ffi::{CStr, c_void};
use core::ptr::with_exposed_provenance_mut;

use super::buffer::{Keeper, Lent, Place};
use super::constants::{self, Constant};
use super::object::kinds::{DICT, TEXT};
use super::stream::{self, Stream};
use crate::abi::*;
use crate::dtype_notation::{self, Notation};
use crate::error::{Error, Field::*, Result, Status::*};
use crate::layout::{self, MAX_NDIM};
use crate::wrap::Reference;
use crate::{
    KindOf, Object, Owned, PyBuffer, Python, Quoted, dtype, is, is_a, known, refused, registry,
    required, tuple_of, utf8,
};

/// A tensor over the memory that the object describes; `None` without an array interface.
pub fn from_object(python: Python, object: Object, stream: i64) -> Result<Option<Reference>> {
    for (name, cuda) in [(Constant::CudaArrayInterface, true), (Constant::ArrayInterface, false)] {
        if let Some(found) = python.attribute(object, constants::get(python, name)?)? {
            return over(python, object, &found, cuda.then_some(stream)).map(Some);
        }
    }
    Ok(None)
}

/// As [`from_object`], of an array of the host whose elements have a name that NumPy, which keeps
/// them as bytes, does not understand: `None` for any other.
#[cold]
pub fn from_named(python: Python, object: Object) -> Result<Option<Reference>> {
    let name = constants::get(python, Constant::ArrayInterface)?;
    let Some(found) = python.attribute(object, name)? else { return Ok(None) };
    let Some(typestr) = item(python, &found, c"typestr")? else { return Ok(None) };
    let typestr = typestr.object();
    match is_a(python, typestr, TEXT) && typestr_of(utf8(python, typestr)?).is_none() {
        true => over(python, object, &found, None).map(Some),
        false => Ok(None),
    }
}

fn over(python: Python, object: Object, found: &Owned, cuda: Option<i64>) -> Result<Reference> {
    if !is_a(python, found.object(), DICT) {
        let text = format_args!(
            "the array interface of {} is no dict but {}: is it a class in place of an array?",
            KindOf(python, object),
            KindOf(python, found.object())
        );
        return Err(refused(python, python.PyExc_TypeError(), text));
    }
    if item(python, found, c"mask")?.is_some() {
        return Err(unsupported(
            "an array with a mask cannot be a tensor\0Give its data, or filled().",
        ));
    }
    let needed = |key| {
        let found = item(python, found, key)?;
        found.ok_or_else(|| {
            unsupported("an array interface without shape or typestr\0Add what it lacks.")
        })
    };
    let dtype = dtype_of(python, object, &needed(c"typestr")?)?;
    let (mut shape, mut strides) = ([0i64; MAX_NDIM], [0i64; MAX_NDIM]);
    let ndim = numbers(python, needed(c"shape")?.object(), &mut shape)?;
    let (shape, strides) = (shape.get(..ndim), strides.get_mut(..ndim));
    let (shape, strides) = (shape.unwrap_or_default(), strides.unwrap_or_default());
    let steps = item(python, found, c"strides")?;
    if let Some(steps) = &steps {
        if numbers(python, steps.object(), strides)? != ndim {
            return Err(unsupported(
                "shape and strides of the array interface differ in length\0\
                 Give a stride for each axis.",
            ));
        }
        layout::strides_from_bytes(shape, strides, dtype::padded_bytes(dtype))?;
    }
    let Some(data) = item(python, found, c"data")? else {
        return Err(unsupported("an array interface without data\0Add what it lacks."));
    };
    let place = match cuda {
        // The bytes of a buffer are the host's.
        None if python.PyObject_CheckBuffer(data.object())? => lent(python, found, &data)?,
        _ => address(python, object, found, &data)?,
    };
    let device = device_of(place.data, cuda.is_some(), shape.contains(&0))?;
    if let (Some(consumer), Some(producer)) = (cuda, item(python, found, c"stream")?) {
        wait(python, (device, place.data), consumer, &producer)?;
    }
    place.tensor(python, (device, dtype), shape, steps.is_some().then_some(strides))
}

/// The pair of an address and whether it is read-only.
fn address(python: Python, object: Object, dict: &Owned, data: &Owned) -> Result<Place> {
    const NO_PAIR: &str = "the array interface's data is no pair\0Give (address, read-only).";
    let pair = data.object();
    if python.PyObject_CheckBuffer(pair)? || python.PySequence_Size(pair)? != 2 {
        return Err(unsupported(NO_PAIR));
    }
    let first = python.PySequence_GetItem(pair, 0)?;
    let read_only = python.PySequence_GetItem(pair, 1)?;
    let number = python.PyNumber_Index(first.object())?;
    // All of the address space: some systems keep a tag in the upper bits.
    let address = python.PyLong_AsUnsignedLongLong(number.object())?;
    Ok(Place {
        data: with_exposed_provenance_mut(address as usize),
        offset: 0,
        read_only: python.PyObject_IsTrue(read_only.object())?,
        nbytes: None,
        owner: Keeper::Objects(tuple_of(python, &[object, dict.object()])?),
    })
}

/// The buffer of an object, and where in it the elements begin.
fn lent(python: Python, dict: &Owned, data: &Owned) -> Result<Place> {
    let offset = match item(python, dict, c"offset")? {
        Some(offset) => python.PyLong_AsLongLong(offset.object())?,
        None => 0,
    };
    let Ok(offset) = u64::try_from(offset) else {
        let error = Error::new(DLRS_OFFSET).field(DLRS_FIELD_BYTE_OFFSET).value(offset);
        return Err(error.detail("the array interface's offset is negative"));
    };
    let lent = Lent::by(python, data.object(), 0)?; // PyBUF_SIMPLE
    let PyBuffer { buf, readonly, len, .. } = lent.view();
    let nbytes = Some(len.max(0) as u64);
    let owner = Keeper::Buffer(lent);
    Ok(Place { data: buf, offset, read_only: readonly != 0, nbytes, owner })
}

/// Version 3 of CUDA's interface: with a stream the data is ready on it, without at once.
fn wait(
    python: Python,
    (device, data): (DLDevice, *mut c_void),
    consumer: i64,
    producer: &Owned,
) -> Result<()> {
    let producer = python.PyLong_AsLongLong(producer.object())?;
    let consumer = stream::from_python(consumer, device.device_type)?;
    match stream::from_python(producer, device.device_type)? {
        Stream::NoSync => Ok(()),
        Stream::Handle(handle) => {
            let producer = with_exposed_provenance_mut(handle);
            // SAFETY: both were read as streams of `device`, which has the memory at `data`.
            unsafe { stream::order(device, data, consumer, producer) }
        }
    }
}

/// Where the memory is. The interface does not name CUDA's device: the driver knows.
fn device_of(data: *mut c_void, cuda: bool, empty: bool) -> Result<DLDevice> {
    let device_type = if cuda { DLDeviceType::kDLCUDA } else { DLDeviceType::kDLCPU } as i32;
    if !cuda || empty || data.is_null() {
        return Ok(DLDevice { device_type, device_id: 0 });
    }
    match registry::required(device_type)?.pointer(data)?.device {
        // As the host's own, the next one to look at it would end the process.
        device if device.device_type == DLDeviceType::kDLCPU as i32 => {
            let error = Error::new(DLRS_DEVICE_TYPE).field(DLRS_FIELD_DATA);
            Err(error.detail("the driver reports no memory at the address\0Is it freed already?"))
        }
        device => Ok(device),
    }
}

/// What the dictionary has under a key; None and a missing key are the same.
fn item(python: Python, dict: &Owned, key: &CStr) -> Result<Option<Owned>> {
    // SAFETY: live objects, and a text that ends with NUL.
    match unsafe { required(python.PyMapping_GetItemString(dict.object(), key.as_ptr())) } {
        Ok(found) => Ok(Some(found).filter(|found| found.object() != python._Py_NoneStruct())),
        Err(_) if is(python, Python::PyExc_KeyError) => {
            python.clear();
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The dtype of a typestr, where it says all.
fn typestr_of(text: &[u8]) -> Option<DLDataType> {
    dtype_notation::parse(text, Notation::DLRS_NOTATION_TYPESTR).ok()
}

fn dtype_of(python: Python, object: Object, typestr: &Owned) -> Result<DLDataType> {
    if !is_a(python, typestr.object(), TEXT) {
        let kind = KindOf(python, typestr.object());
        let text = format_args!("the array interface's typestr is no text but {kind}");
        return Err(refused(python, python.PyExc_TypeError(), text));
    }
    let text = utf8(python, typestr.object())?;
    if let Some(dtype) = typestr_of(text) {
        return Ok(dtype);
    }
    if let Some(dtype) = named_dtype(python, object, text)? {
        return Ok(dtype);
    }
    let text = format_args!(
        "the array interface's typestr '{}' is no dtype of DLPack: convert the array first",
        Quoted(text)
    );
    Err(refused(python, python.PyExc_BufferError(), text))
}

/// The dtype of an array whose typestr, such as `<V2`, is none of DLPack, but whose name is one, as
/// those of ml_dtypes are; it has a byte for each element that is smaller.
#[cold]
fn named_dtype(python: Python, object: Object, typestr: &[u8]) -> Result<Option<DLDataType>> {
    const NATIVE: u8 = if cfg!(target_endian = "little") { b'<' } else { b'>' };
    let &[b'|' | NATIVE, _, digit] = typestr else { return Ok(None) };
    let name = known(python, python.attribute_of_attribute(object, [c"dtype", c"name"]))?.flatten();
    let Some(name) = name.filter(|name| is_a(python, name.object(), TEXT)) else {
        return Ok(None);
    };
    let found = dtype::parse(utf8(python, name.object())?).ok();
    let nbytes = u32::from(digit.wrapping_sub(b'0'));
    Ok(found.filter(|found| found.lanes == 1 && dtype::padded_bytes(*found) == nbytes))
}

/// Reads a sequence of numbers; returns how many there are.
pub fn numbers(python: Python, sequence: Object, to: &mut [i64]) -> Result<usize> {
    let n = python.PySequence_Size(sequence)?;
    if n > to.len() {
        let error = Error::new(DLRS_UNSUPPORTED).value(n as i64).limit(to.len() as i64);
        return Err(error.detail("a sequence of numbers is too long\0Give at most the limit."));
    }
    for (place, number) in to.iter_mut().take(n).enumerate() {
        let found = python.PySequence_GetItem(sequence, place as isize)?;
        *number = python.PyLong_AsLongLong(found.object())?;
    }
    Ok(n)
}

#[cold]
fn unsupported(detail: &'static str) -> Error {
    Error::new(DLRS_UNSUPPORTED).detail(detail)
}

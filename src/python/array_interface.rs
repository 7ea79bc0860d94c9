//! The array interfaces: a dictionary that says where the memory is, on CUDA or on the host.

use core::ffi::{CStr, c_void};
use core::ptr::{NonNull, null_mut, with_exposed_provenance_mut};

use super::buffer::{hold, in_items, let_go, wrapped};
use super::constants::text;
use super::object::Owned;
use super::raise::{is, raised, required, size};
use super::stream::{self, Stream};
use super::symbols::{PyObject, Python};
use crate::abi::*;
use crate::device::registry;
use crate::dtype;
use crate::dtype_notation::{self, Notation};
use crate::error::{Error, Result, Status::*};
use crate::layout::MAX_NDIM;
use crate::tensor::Versioned;
use crate::tensor::block::Owner;

/// A tensor over the memory that the object describes; `None` when it describes none.
///
/// # Safety
/// `object` is live.
pub unsafe fn from_object(
    python: Python,
    object: *mut PyObject,
    stream: i64,
) -> Result<Option<Versioned>> {
    for (name, cuda) in [(c"__cuda_array_interface__", true), (c"__array_interface__", false)] {
        let name = text(python, name)?;
        // SAFETY: the caller's word.
        if let Some(found) = unsafe { python.attribute(object, name.as_ptr()) }? {
            // SAFETY: as above.
            return unsafe { over(python, object, &found, cuda.then_some(stream)) }.map(Some);
        }
    }
    Ok(None)
}

/// # Safety
/// `object` is live.
unsafe fn over(
    python: Python,
    object: *mut PyObject,
    found: &Owned,
    cuda: Option<i64>,
) -> Result<Versioned> {
    if item(python, found, c"mask")?.is_some() {
        return Err(unsupported("an array with a mask cannot be a tensor"));
    }
    let dtype = typestr(python, needed(item(python, found, c"typestr")?)?)?;
    let (mut shape, mut strides) = ([0i64; MAX_NDIM], [0i64; MAX_NDIM]);
    let extents = needed(item(python, found, c"shape")?)?;
    let ndim = some_numbers(python, &extents, &mut shape)?;
    let steps = item(python, found, c"strides")?;
    if let Some(steps) = &steps {
        read_strides(python, steps, dtype, strides.get_mut(..ndim).unwrap_or(&mut []))?;
    }
    let Some(data) = item(python, found, c"data")? else {
        return Err(unsupported("an array interface without data"));
    };
    let [address, read_only] = address(python, &data)?;
    let data = with_exposed_provenance_mut::<c_void>(address as usize);
    let tensor = DLTensor {
        data,
        device: device_of(data, cuda.is_some())?,
        ndim: ndim as i32,
        dtype,
        shape: shape.as_mut_ptr(),
        strides: if steps.is_some() { strides.as_mut_ptr() } else { null_mut() },
        byte_offset: 0,
    };
    if let (Some(consumer), Some(producer)) = (cuda, item(python, found, c"stream")?) {
        wait(python, &tensor, consumer, &producer)?;
    }
    let flags = if read_only != 0 { DLPACK_FLAG_BITMASK_READ_ONLY } else { 0 };
    // SAFETY: the object keeps the memory alive and is kept itself; the arrays hold ndim values.
    unsafe {
        let held = hold(python, NonNull::new_unchecked(object))?;
        wrapped(&tensor, flags, Owner::Callback(Some(let_go), held)).inspect_err(|_| let_go(held))
    }
}

/// The address, and whether it is read-only. An object with a buffer would be the data itself: the
/// bytes in it are no address.
fn address(python: Python, data: &Owned) -> Result<[i64; 2]> {
    let mut place = [0i64; 2];
    // SAFETY: a reference of ours.
    let buffer = unsafe { python.PyObject_CheckBuffer(data.as_ptr()) } != 0;
    if buffer || some_numbers(python, data, &mut place)? != place.len() {
        return Err(unsupported("the array interface's data is no pair (address, read-only)"));
    }
    Ok(place)
}

fn read_strides(
    python: Python,
    steps: &Owned,
    dtype: DLDataType,
    strides: &mut [i64],
) -> Result<()> {
    if some_numbers(python, steps, strides)? != strides.len() {
        return Err(unsupported("shape and strides differ in length"));
    }
    for (dim, stride) in strides.iter_mut().enumerate() {
        *stride = in_items(*stride, dtype::padded_bytes(dtype).into(), dim)?;
    }
    Ok(())
}

/// Version 3 of CUDA's interface: with a stream the data is ready on it, without at once.
fn wait(python: Python, tensor: &DLTensor, consumer: i64, producer: &Owned) -> Result<()> {
    let DLTensor { device, data, .. } = *tensor;
    // SAFETY: a reference of ours.
    let producer = unsafe { python.number(producer.as_ptr()) }?;
    let consumer = stream::from_python(consumer, device.device_type)?;
    match stream::from_python(producer, device.device_type)? {
        Stream::NoSync => Ok(()),
        Stream::Handle(handle) => {
            let producer = with_exposed_provenance_mut(handle);
            // SAFETY: the object's own stream, and the caller's.
            unsafe { stream::order(device, data, consumer, producer) }
        }
    }
}

/// Where the memory is. The interface does not name CUDA's device: the driver knows.
fn device_of(data: *mut c_void, cuda: bool) -> Result<DLDevice> {
    let device_type = if cuda { DLDeviceType::kDLCUDA } else { DLDeviceType::kDLCPU } as i32;
    match cuda && !data.is_null() {
        true => Ok(registry::required(device_type)?.pointer(data)?.device),
        false => Ok(DLDevice { device_type, device_id: 0 }),
    }
}

/// What the dictionary has under a key; None and a missing key are the same.
fn item(python: Python, dict: &Owned, key: &CStr) -> Result<Option<Owned>> {
    // SAFETY: live objects, and a text that ends with NUL.
    let found = unsafe { Owned::new(python.PyMapping_GetItemString(dict.as_ptr(), key.as_ptr())) };
    match found {
        Some(found) if found.as_ptr() == python._Py_NoneStruct() => Ok(None),
        Some(found) => Ok(Some(found)),
        None if is(python, Python::PyExc_KeyError) => {
            // SAFETY: attached.
            unsafe { python.PyErr_Clear() };
            Ok(None)
        }
        None => Err(raised()),
    }
}

fn needed(found: Option<Owned>) -> Result<Owned> {
    found.ok_or_else(|| unsupported("an array interface without shape or typestr"))
}

fn typestr(python: Python, found: Owned) -> Result<DLDataType> {
    let mut nbytes = 0isize;
    // SAFETY: a live object; the text lives as long as it does.
    let text = unsafe {
        let text = python.PyUnicode_AsUTF8AndSize(found.as_ptr(), &raw mut nbytes);
        if text.is_null() {
            return Err(raised());
        }
        core::slice::from_raw_parts(text.cast::<u8>(), size(nbytes)?)
    };
    dtype_notation::parse(text, Notation::DLRS_NOTATION_TYPESTR)
        .map_err(|_| unsupported("the array interface's typestr is no dtype of DLPack"))
}

fn some_numbers(python: Python, sequence: &Owned, to: &mut [i64]) -> Result<usize> {
    // SAFETY: a reference of ours.
    unsafe { numbers(python, sequence.as_ptr(), to) }
}

/// Reads a sequence of numbers; answers how many there are.
///
/// # Safety
/// `sequence` is live.
pub unsafe fn numbers(python: Python, sequence: *mut PyObject, to: &mut [i64]) -> Result<usize> {
    // SAFETY: the caller's word.
    unsafe {
        let n = size(python.PySequence_Size(sequence))?;
        if n > to.len() {
            let error = Error::new(DLRS_UNSUPPORTED).value(n as i64).limit(to.len() as i64);
            return Err(error.detail("a sequence of numbers is too long"));
        }
        for (place, number) in to.iter_mut().take(n).enumerate() {
            let found = required(python.PySequence_GetItem(sequence, place as isize))?;
            *number = python.number(found.as_ptr())?;
        }
        Ok(n)
    }
}

#[cold]
fn unsupported(detail: &'static str) -> Error {
    Error::new(DLRS_UNSUPPORTED).detail(detail)
}

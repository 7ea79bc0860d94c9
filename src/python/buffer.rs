//! The buffer protocol, for objects that know nothing of DLPack: bytes, array.array, memoryview.

use core::ffi::{CStr, c_void};
use core::ptr::{NonNull, null_mut};

use super::home::{self, Life};
use super::object::Owned;
use super::raise::raised;
use super::symbols::{PyBuffer, PyObject, Python};
use crate::abi::*;
use crate::device_type::CPU;
use crate::dtype_notation::{self, Notation};
use crate::error::{Error, Result, Status::*};
use crate::layout::MAX_NDIM;
use crate::platform;
use crate::tensor::Versioned;
use crate::tensor::block::{Block, Owner};
use crate::tensor::wrap;
use crate::validate::{Level, Rules, Snapshot, check_ndim};

/// Extents, strides and format; no pointers to pointers, and not necessarily writable.
const STRIDED: i32 = 0x10 | 0x08 | 0x04; // PyBUF_STRIDES | PyBUF_FORMAT

/// A tensor over the object's buffer; `None` when it has none.
///
/// # Safety
/// `object` is live.
pub unsafe fn from_object(python: Python, object: *mut PyObject) -> Result<Option<Versioned>> {
    // SAFETY: the caller's word.
    if unsafe { python.PyObject_CheckBuffer(object) } == 0 {
        return Ok(None);
    }
    let life = home::here(python)?.life();
    let memory: NonNull<Lent> = memory_for::<Lent>()?;
    // SAFETY: the memory has room for a Py_buffer, which is filled on success, and stays until the
    // buffer is released.
    unsafe {
        let view = &raw mut (*memory.as_ptr()).view;
        if python.PyObject_GetBuffer(object, view, STRIDED) != 0 {
            platform::give_back(memory.cast());
            return Err(raised());
        }
        (&raw mut (*memory.as_ptr()).life).write(life);
        let tensor = over(memory);
        if tensor.is_err() {
            release(memory.as_ptr().cast());
        }
        tensor.map(Some)
    }
}

/// A buffer, and whose it is.
#[repr(C)]
struct Lent {
    view: PyBuffer,
    life: Life,
}

/// An object, and whose it is.
struct Held {
    object: *mut PyObject,
    life: Life,
}

fn memory_for<T>() -> Result<NonNull<T>> {
    let nbytes = size_of::<T>();
    let error = Error::new(DLRS_NOMEM).value(nbytes as i64);
    platform::memory(nbytes).map(NonNull::cast).ok_or(error)
}

/// # Safety
/// The buffer was filled by PyObject_GetBuffer; on success the tensor releases it.
unsafe fn over(lent: NonNull<Lent>) -> Result<Versioned> {
    // SAFETY: the caller's word.
    let PyBuffer { buf, itemsize, readonly, ndim, format, shape, strides, .. } =
        unsafe { (&raw const (*lent.as_ptr()).view).read() };
    let ndim = check_ndim(ndim)?;
    let format = match format.is_null() {
        true => c"B",
        // SAFETY: PEP 3118: a text that ends with NUL.
        false => unsafe { CStr::from_ptr(format) },
    };
    let dtype = dtype_notation::parse(format.to_bytes(), Notation::DLRS_NOTATION_PEP3118)
        .map_err(|_| Error::new(DLRS_UNSUPPORTED).detail("the buffer's format is no dtype"))?;
    if crate::dtype::padded_bytes(dtype) as isize != itemsize {
        let error = Error::new(DLRS_UNSUPPORTED).value(itemsize as i64);
        return Err(error.detail("the buffer's itemsize is not that of its format"));
    }
    let (mut extents, mut steps) = ([0i64; MAX_NDIM], [0i64; MAX_NDIM]);
    if shape.is_null() && ndim > 0 {
        return Err(Error::new(DLRS_UNSUPPORTED).detail("the buffer has no shape"));
    }
    for (dim, (extent, step)) in extents.iter_mut().zip(&mut steps).take(ndim).enumerate() {
        // SAFETY: PEP 3118: arrays of ndim values. ctypes leaves the strides of its arrays out,
        // though they were asked for: then they are compact.
        let nbytes = unsafe {
            *extent = shape.add(dim).read() as i64;
            if strides.is_null() { 0 } else { strides.add(dim).read() }
        };
        *step = in_items(nbytes as i64, itemsize as i64, dim)?;
    }
    let tensor = DLTensor {
        data: buf,
        device: CPU,
        ndim: ndim as i32,
        dtype,
        shape: extents.as_mut_ptr(),
        strides: if strides.is_null() { null_mut() } else { steps.as_mut_ptr() },
        byte_offset: 0,
    };
    let flags = if readonly != 0 { DLPACK_FLAG_BITMASK_READ_ONLY } else { 0 };
    // SAFETY: a tensor of our own making, over arrays of `ndim` values.
    unsafe { wrapped(&tensor, flags, Owner::Callback(Some(release), lent.as_ptr().cast())) }
}

/// Strides count bytes in Python and elements in DLPack.
pub fn in_items(nbytes: i64, item_nbytes: i64, dim: usize) -> Result<i64> {
    match (nbytes.checked_rem(item_nbytes), nbytes.checked_div(item_nbytes)) {
        (Some(0), Some(items)) => Ok(items),
        _ => {
            let error = Error::new(DLRS_UNSUPPORTED).dim(dim).value(nbytes).limit(item_nbytes);
            Err(error.detail("a stride is no multiple of the element's bytes"))
        }
    }
}

/// A block around memory that Python lends.
///
/// # Safety
/// As `Snapshot::read`; on success the owner is the tensor's.
pub unsafe fn wrapped(tensor: &DLTensor, flags: u64, owner: Owner) -> Result<Versioned> {
    let mut snapshot = Snapshot::new();
    // SAFETY: the caller's word.
    unsafe { snapshot.read(tensor, flags, Rules::of(Level::DLRS_LEVEL_LAYOUT)) }?;
    Ok(Block::versioned(wrap::wrap(&snapshot, owner)?))
}

/// Gives a buffer back. Its exporter may run Python code.
unsafe extern "C" fn release(lent: *mut c_void) {
    let Some(lent) = NonNull::new(lent.cast::<Lent>()) else { return };
    // SAFETY: the buffer of `from_object`, released once, in the memory of `memory_for`.
    unsafe {
        let view = &raw mut (*lent.as_ptr()).view;
        let life = (&raw const (*lent.as_ptr()).life).read();
        if life.attach(|python| python.PyBuffer_Release(view)) {
            platform::give_back(lent.cast());
        }
    }
}

/// The context of [`let_go`] that keeps an object alive until then.
///
/// # Safety
/// `object` is live.
pub unsafe fn hold(python: Python, object: NonNull<PyObject>) -> Result<*mut c_void> {
    let life = home::here(python)?.life();
    let memory: NonNull<Held> = memory_for()?;
    // SAFETY: the caller's word; room for it.
    unsafe {
        let object = Owned::share(python, object).into_ptr();
        memory.write(Held { object, life });
    }
    Ok(memory.as_ptr().cast())
}

/// Lets an object go. What it takes with it may be Python code.
///
/// # Safety
/// `held` is NULL, or comes from [`hold`] and is not used again.
pub unsafe extern "C" fn let_go(held: *mut c_void) {
    let Some(held) = NonNull::new(held.cast::<Held>()) else { return };
    // SAFETY: the caller's word.
    unsafe {
        let Held { object, life } = held.read();
        life.attach(|python| python.Py_DecRef(object));
        platform::give_back(held.cast());
    }
}

//! The buffer protocol, for objects that know nothing of DLPack: bytes, array.array, memoryview.

use core::ffi::{CStr, c_void};
use core::ptr::{NonNull, null_mut};

use super::home::{self, Life};
use super::payload::lent_block;
use crate::abi::*;
use crate::device_type::CPU;
use crate::dtype_notation::{self, Notation};
use crate::error::{Error, Field::*, Result, Status::*};
use crate::layout::{self, MAX_NDIM};
use crate::tensor::block::{self, Block, Owner, dlrs_free_fn};
use crate::tensor::wrap;
use crate::validate::{Level, Rules, Snapshot, check_ndim};
use crate::wrap::Reference;
use crate::{Object, Owned, PyBuffer, Python, Quoted, dtype, known, platform, raised, refused};

/// Extents, strides and format; no pointers to pointers, and not necessarily writable.
const STRIDED: i32 = 0x10 | 0x08 | 0x04; // PyBUF_STRIDES | PyBUF_FORMAT

/// A tensor over the object's buffer; `None` when it has none.
pub fn from_object(python: Python, object: Object) -> Result<Option<Reference>> {
    if !python.PyObject_CheckBuffer(object)? {
        return Ok(None);
    }
    over(python, object, Lent::by(python, object, STRIDED)?).map(Some)
}

/// A borrowed buffer of an object; released when it goes out of scope, unless a tensor takes it.
pub struct Lent(NonNull<Lease>);

/// A buffer, and whose it is.
#[repr(C)]
struct Lease {
    view: PyBuffer,
    life: Life,
}

impl Lent {
    /// The buffer of an object, allocated.
    pub fn by(python: Python, object: Object, flags: i32) -> Result<Lent> {
        let home = home::here(python)?;
        let memory: NonNull<Lease> = home::memory_for()?;
        // SAFETY: the memory has room for a Py_buffer, which is filled on success, and stays until
        // the buffer is released.
        unsafe {
            let view = &raw mut (*memory.as_ptr()).view;
            if python.PyObject_GetBuffer(object, view, flags) != 0 {
                platform::give_back(memory.cast());
                return Err(raised());
            }
            (&raw mut (*memory.as_ptr()).life).write(home.life());
        }
        Ok(Lent(memory))
    }

    /// What is lent.
    pub fn view(&self) -> PyBuffer {
        // SAFETY: filled by Python, and not released yet.
        unsafe { (&raw const (*self.0.as_ptr()).view).read() }
    }

    /// The block behind it, where that is memory of a `Tensor` of ours, lent by itself or through
    /// views. A tensor that holds the block in place of the buffer is released in a loop.
    fn own(&self, python: Python) -> Result<Option<NonNull<Block>>> {
        // SAFETY: what lends is live as long as the buffer.
        let lender = unsafe { Object::optional(self.view().obj) };
        lender.map_or(Ok(None), |lender| lent_block(python, lender))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: a lease of ours, given back once.
        unsafe { release(self.0.as_ptr().cast()) }
    }
}

/// Where the elements are, and what keeps them there.
pub struct Place {
    /// The base address.
    pub data: *mut c_void,
    /// Bytes from there to the first element.
    pub offset: u64,
    /// Whether they must not be written.
    pub read_only: bool,
    /// Bytes that there are, where the elements may be outside of them.
    pub nbytes: Option<u64>,
    /// What keeps them.
    pub owner: Keeper,
}

/// What keeps memory alive.
pub enum Keeper {
    /// The object, and its dictionary, which may be all that refers to the memory.
    Objects(Owned),
    /// A buffer.
    Buffer(Lent),
}

impl Place {
    /// A tensor over the memory, which it keeps.
    pub fn tensor(
        self,
        python: Python,
        (device, dtype): (DLDevice, DLDataType),
        shape: &[i64],
        strides: Option<&[i64]>,
    ) -> Result<Reference> {
        let tensor = DLTensor {
            data: self.data,
            device,
            ndim: shape.len() as i32,
            dtype,
            shape: shape.as_ptr().cast_mut(),
            strides: strides.map_or(null_mut(), |strides| strides.as_ptr().cast_mut()),
            byte_offset: self.offset,
        };
        let flags = if self.read_only { DLPACK_FLAG_BITMASK_READ_ONLY } else { 0 };
        let flags = match dtype::is_subbyte(dtype) {
            true => flags | DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED,
            false => flags,
        };
        let mut snapshot = Snapshot::new();
        // SAFETY: a tensor of our own making, over arrays of as many values.
        unsafe { snapshot.read(&tensor, flags, Rules::of(Level::DLRS_LEVEL_LAYOUT)) }?;
        self.check_inside(&snapshot)?;
        let block = match self.owner {
            Keeper::Buffer(lent) => match lent.own(python)? {
                Some(base) => {
                    let owner = Owner::Versioned(Block::versioned(base));
                    let spec = wrap::spec_of(&snapshot, snapshot.flags, owner);
                    // SAFETY: what is lent keeps the block.
                    unsafe { block::shared(&spec, base)? }
                }
                None => {
                    let owner = Owner::Callback(Some(release), lent.0.as_ptr().cast());
                    // The block releases it.
                    wrap::wrap(&snapshot, owner).inspect(|_| core::mem::forget(lent))?
                }
            },
            Keeper::Objects(objects) => {
                super::wrap::around_read(python, &snapshot, objects.object())?
            }
        };
        // SAFETY: a new block, whose reference is ours.
        Ok(unsafe { Reference::new(python, Block::versioned(block)) })
    }

    /// Whether all elements lie in the buffer.
    fn check_inside(&self, tensor: &Snapshot) -> Result<()> {
        let Some(nbytes) = self.nbytes.filter(|_| !tensor.empty) else { return Ok(()) };
        let end = |byte: i64| self.offset.checked_add_signed(byte);
        match (end(tensor.byte_extent.0), end(tensor.byte_extent.1)) {
            (Some(_), Some(end)) if end <= nbytes => Ok(()),
            _ => {
                let error = Error::new(DLRS_OUT_OF_BOUNDS).field(DLRS_FIELD_DATA);
                let error = error.value(tensor.byte_extent.1).limit(nbytes as i64);
                Err(error.detail("the array interface reaches outside of its buffer, bytes"))
            }
        }
    }
}

fn over(python: Python, object: Object, lent: Lent) -> Result<Reference> {
    let PyBuffer { buf, itemsize, readonly, ndim, format, shape, strides, .. } = lent.view();
    let ndim = check_ndim(ndim)?;
    let format = match format.is_null() {
        true => c"B",
        // SAFETY: PEP 3118: a text that ends with NUL.
        false => unsafe { CStr::from_ptr(format) },
    };
    let Ok(dtype) = dtype_notation::parse(format.to_bytes(), Notation::DLRS_NOTATION_PEP3118)
    else {
        let text = format_args!(
            "the buffer's format '{}' is no dtype of DLPack: take a view of another type",
            Quoted(format.to_bytes())
        );
        return Err(refused(python, python.PyExc_BufferError(), text));
    };
    if dtype::padded_bytes(dtype) as isize != itemsize {
        let error = Error::new(DLRS_UNSUPPORTED).value(itemsize as i64);
        return Err(error
            .detail("the buffer's itemsize is not that of its format\0Correct one of the two."));
    }
    check_own_itemsize(python, object, itemsize)?;
    let (mut extents, mut steps) = ([0i64; MAX_NDIM], [0i64; MAX_NDIM]);
    let (extents, steps) = (extents.get_mut(..ndim), steps.get_mut(..ndim));
    let (extents, steps) = (extents.unwrap_or_default(), steps.unwrap_or_default());
    if shape.is_null() && ndim > 0 {
        return Err(Error::new(DLRS_UNSUPPORTED)
            .detail("the buffer has no shape\0Cast the memoryview to one."));
    }
    for (dim, (extent, step)) in extents.iter_mut().zip(&mut *steps).enumerate() {
        // SAFETY: PEP 3118: arrays of ndim values. ctypes leaves the strides of its arrays out,
        // though they were asked for: then they are compact.
        unsafe {
            *extent = shape.add(dim).read() as i64;
            if !strides.is_null() {
                *step = strides.add(dim).read() as i64;
            }
        }
    }
    layout::strides_from_bytes(extents, steps, dtype::padded_bytes(dtype))?;
    let (read_only, owner) = (readonly != 0, Keeper::Buffer(lent));
    let place = Place { data: buf, offset: 0, read_only, nbytes: None, owner };
    place.tensor(python, (CPU, dtype), extents, (!strides.is_null()).then_some(steps))
}

/// Rejects a buffer whose items differ from the object's `dtype`: NumPy's dates of one element lend
/// 8 bytes, as if they were as many numbers.
fn check_own_itemsize(python: Python, object: Object, itemsize: isize) -> Result<()> {
    let number = |found: Owned| python.PyLong_AsLongLong(found.object());
    let own = python.attribute_of_attribute(object, [c"dtype", c"itemsize"]);
    // It can be something else.
    match known(python, own.and_then(|own| own.map(number).transpose()))?.flatten() {
        Some(own) if own != itemsize as i64 => {
            let error = Error::new(DLRS_UNSUPPORTED).value(own).limit(itemsize as i64);
            Err(error.detail(
                "the items of the buffer are not those of the object's dtype\0\
                              Give the data as an array of NumPy.",
            ))
        }
        _ => Ok(()),
    }
}

/// The object of this interpreter that lends the buffer which an owner of memory gives back.
///
/// # Safety
/// `free(context)` has not been called.
pub unsafe fn lent_by<'a>(
    python: Python,
    free: dlrs_free_fn,
    context: *mut c_void,
) -> Option<Object<'a>> {
    if free.map(|f| f as usize) != Some(release as *const () as usize) {
        return None;
    }
    let lease: *mut Lease = context.cast();
    // SAFETY: with this function it is a lease of ours that was not given back.
    unsafe {
        let here = (*lease).life.is_here(python);
        Object::optional((&raw const (*lease).view.obj).read()).filter(|_| here)
    }
}

/// Gives a buffer back. Its exporter may run Python code.
#[inline(never)]
unsafe extern "C" fn release(lease: *mut c_void) {
    let Some(lease) = NonNull::new(lease.cast::<Lease>()) else { return };
    // SAFETY: the buffer of a `Lent`, released once, in the memory of `Lent::by`.
    unsafe {
        let view = &raw mut (*lease.as_ptr()).view;
        let life = (&raw const (*lease.as_ptr()).life).read();
        if life.attach(|python| python.PyBuffer_Release(view)) {
            platform::give_back(lease.cast());
        }
    }
}

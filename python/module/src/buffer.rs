//! The buffer that `t.memoryview()` is made of.
//!
//! A `Tensor` itself has none: what takes a buffer where it finds one sees bytes in place of
//! elements (torch.asarray, int, float, compile), and most element types of DLPack have no name
//! there. Who wants the bytes says so.
//!
//! For memory that the CPU reaches and for the types that the module struct and PEP 3118 name.
//! A buffer keeps the object that lends it, and with it the tensor.

use core::ffi::{CStr, c_int, c_void};
use core::ptr::{NonNull, null_mut};

use super::failure::{refuse_new, slot};
use super::spec::{Slot, TypeSlot};
use super::tensor::{self, This};
use crate::abi::*;
use crate::error::{Error, Field::*, Result, Status::*};
use crate::layout::{self, Order};
use crate::validate::{Rules, Snapshot};
use crate::{copy, device_type, dtype_notation, platform};
use dlpack_python::{Owned, PyBuffer, PyObject, Python, home};

const WRITABLE: c_int = 1;
const FORMAT: c_int = 4;
const ND: c_int = 8;
const STRIDES: c_int = 0x10 | ND;
const C_CONTIGUOUS: c_int = 0x20 | STRIDES;
const F_CONTIGUOUS: c_int = 0x40 | STRIDES;
const ANY_CONTIGUOUS: c_int = 0x80 | STRIDES;

fn refuse(detail: &'static str) -> Error {
    Error::new(DLRS_UNSUPPORTED).detail(detail)
}

slot!(
    /// `bf_getbuffer`.
    get, "memoryview", |this, view: *mut PyBuffer, flags: c_int| -> () {
        // SAFETY: Python's struct.
        unsafe {
            (*view).obj = null_mut();
            export(this, view, flags)
        }
    }
);

/// All checks.
fn check(tensor: &Snapshot, flags: c_int) -> Result<&'static CStr> {
    if !device_type::host_reachable(tensor.device.device_type) {
        let error = Error::new(DLRS_DEVICE_TYPE).field(DLRS_FIELD_DEVICE_TYPE);
        let error = error.value(tensor.device.device_type.into());
        return Err(error.detail("the CPU cannot access this memory\0Copy it by to('cpu') first."));
    }
    let Some(format) = dtype_notation::buffer_format(tensor.dtype) else {
        return Err(refuse(
            "PEP 3118 has no name for the element type\0Take the bytes by view('uint8').",
        ));
    };
    if flags & WRITABLE != 0 && tensor.flags & DLPACK_FLAG_BITMASK_READ_ONLY != 0 {
        return Err(Error::new(DLRS_READ_ONLY).field(DLRS_FIELD_FLAGS));
    }
    let asks = |what| flags & what == what;
    let order = match () {
        () if asks(C_CONTIGUOUS) || !asks(STRIDES) => Some(Order::C),
        () if asks(F_CONTIGUOUS) => Some(Order::F),
        () if asks(ANY_CONTIGUOUS) => Some(Order::A),
        () => None,
    };
    match order {
        Some(order) if !layout::is_contiguous(tensor.shape(), tensor.strides(), order) => {
            Err(refuse("the elements are not dense as requested\0Use contiguous()."))
        }
        _ => Ok(format),
    }
}

/// # Safety
/// `view` is Python's struct.
unsafe fn export(this: This, view: *mut PyBuffer, flags: c_int) -> Result<()> {
    let mut tensor = Snapshot::new();
    this.live().read(Rules::COPY, &mut tensor)?;
    let format = check(&tensor, flags)?;
    copy::host_read(&tensor, &copy::Streams::NONE)?;
    let (extents, steps) = tensor.dims.beside();
    layout::fill_unused_strides(extents, steps);
    let ndim = tensor.shape().len();
    let itemsize = isize::from(tensor.dtype.bits / 8);
    let nbytes = tensor.nbytes()? as isize;
    let arrays = arrays(&tensor, itemsize)?;
    let shape = arrays.map_or(null_mut(), NonNull::as_ptr);
    let wants = |what| flags & what == what;
    // SAFETY: Python's struct; the arrays hold twice `ndim` values.
    unsafe {
        view.write(PyBuffer {
            buf: if tensor.empty {
                EMPTY.as_ptr().cast_mut().cast()
            } else {
                tensor.first().cast()
            },
            obj: this.object().share(this.python).into_ptr(),
            len: nbytes,
            itemsize,
            readonly: (tensor.flags & DLPACK_FLAG_BITMASK_READ_ONLY != 0).into(),
            ndim: if wants(ND) { ndim as c_int } else { 1 },
            format: if wants(FORMAT) { format.as_ptr().cast_mut() } else { null_mut() },
            shape: if wants(ND) { shape } else { null_mut() },
            strides: if wants(STRIDES) { shape.wrapping_add(ndim) } else { null_mut() },
            suboffsets: null_mut(),
            internal: shape.cast::<c_void>(),
        });
    }
    Ok(())
}

/// Where a buffer without elements points to.
static EMPTY: [u64; 2] = [0; 2];

/// Extents, followed by strides in bytes, in a separate block.
fn arrays(tensor: &Snapshot, itemsize: isize) -> Result<Option<NonNull<isize>>> {
    let ndim = tensor.shape().len();
    if ndim == 0 {
        return Ok(None);
    }
    let nbytes = 2 * ndim * size_of::<isize>();
    let memory = platform::memory(nbytes).ok_or(Error::new(DLRS_NOMEM).value(nbytes as i64))?;
    let array: NonNull<isize> = memory.cast();
    let extents = tensor.shape().iter().map(|&extent| extent as isize);
    let strides = tensor.strides().iter().map(|&stride| (stride as isize).wrapping_mul(itemsize));
    for (place, number) in extents.chain(strides).enumerate() {
        // SAFETY: room for twice `ndim` numbers.
        unsafe { array.add(place).write(number) };
    }
    Ok(Some(array))
}

/// `bf_releasebuffer`.
///
/// # Safety
/// Python calls it once for what [`get`] filled.
pub unsafe extern "C" fn release(_: *mut PyObject, view: *mut PyBuffer) {
    // SAFETY: `internal` is NULL or the arrays that `get` allocated; Python releases a buffer once.
    unsafe {
        if let Some(arrays) = NonNull::new((*view).internal.cast()) {
            platform::give_back(arrays);
        }
    }
}

/// The type of what lends the memory of a `Tensor` as a buffer, borrowed: its objects are like a
/// `Tensor`, which has no buffer itself.
pub fn lender(python: Python) -> Result<tensor::Holds<'static>> {
    let kind = home::here(python)?.lender.get(|| lender_type(python))?;
    // SAFETY: `lender_type` makes it by `new_type`.
    Ok(unsafe { tensor::Holds::new(kind) })
}

fn lender_type(python: Python) -> Result<Owned> {
    let slots = [
        TypeSlot::new(Slot::tp_dealloc, tensor::dealloc as *const c_void),
        TypeSlot::new(Slot::tp_traverse, tensor::traverse as *const c_void),
        TypeSlot::new(Slot::tp_new, refuse_new as *const c_void),
        TypeSlot::new(Slot::bf_getbuffer, get as *const c_void),
        TypeSlot::new(Slot::bf_releasebuffer, release as *const c_void),
        TypeSlot::END,
    ];
    tensor::new_type(python, c"dlpack_rs.TensorMemory", &slots)
}

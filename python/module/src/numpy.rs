//! NumPy: arrays over a `Tensor`'s memory, and dtypes that only ml_dtypes has.
//!
//! NumPy itself takes what its own dtypes name, and those that were registered with it, by
//! `from_dlpack`. The others (bfloat16, float8, integers of less than a byte) are types of
//! ml_dtypes: an array of unsigned integers of the same size is made, and viewed as one of these.

use core::ffi::CStr;
use core::ptr::null_mut;

use super::arguments::{self, method};
use super::copies;
use super::failure::{dtype_name, refused, text};
use super::tensor::{Held, This};
use super::views::step;
use crate::abi::*;
use crate::copy::{self, CopyPolicy};
use crate::device_type::{self, CPU};
use crate::dtype;
use crate::dtype_notation;
use crate::error::Result;
use crate::integer_text::unsigned;
use crate::layout::Order;
use crate::validate::{Level, Rules, Snapshot};
use crate::view::Step;
use dlpack_python::raise::{is, raised, required};
use dlpack_python::words::given;
use dlpack_python::{Owned, PyObject, Python};
use dlpack_tensor::tensor::alloc::{self, Request};

method!(
    /// numpy($self, /)
    /// A NumPy array of the same memory, with ml_dtypes for dtypes that NumPy lacks.
    /// >>> dlpack_rs.zeros(3, 'int8').numpy()
    /// array([0, 0, 0], dtype=int8)
    numpy, |this, _| (/ *) {
        array_of(this)
    }
);
method!(
    /// __array__($self, /, dtype=None, copy=None)
    /// numpy(self), converted to that dtype.
    /// >>> dlpack_rs.zeros(2, 'int8').__array__('float32')
    /// array([0., 0.], dtype=float32)
    __array__ as "Tensor.__array__", |this, call| (/ dtype copy *) {
        let python = call.python;
        let policy = arguments::policy(python, copy)?;
        let found = match policy {
            CopyPolicy::Always => {
                let copy = copies::copy_of(this, Order::C)?;
                array_of(This::new(python, copy.as_ptr()))?
            }
            _ => array_of(this)?,
        };
        if !given(python, dtype) {
            return Ok(found);
        }
        // Of its own type an array gives itself.
        let wanted = call_method(python, found.as_ptr(), c"__array__", &[dtype])?;
        if policy == CopyPolicy::Never && wanted.as_ptr() != found.as_ptr() {
            let text = format_args!("copy=False: another dtype than the Tensor's needs a copy");
            return Err(refused(python, python.PyExc_ValueError(), text));
        }
        Ok(wanted)
    }
);

/// An array over the memory of a tensor.
fn array_of(this: This) -> Result<Owned> {
    let python = this.python;
    let mut snapshot = Snapshot::new();
    this.live().read(Rules::of(Level::DLRS_LEVEL_STRUCT), &mut snapshot)?;
    // NumPy passes no stream, and reads at once.
    if device_type::host_reachable(snapshot.device.device_type) {
        copy::host_read(&snapshot, &copy::Streams::NONE)?;
    }
    let taken = call_numpy(python, c"from_dlpack", &[this.as_ptr()]);
    let Some(bits) = bits_of_foreign(&snapshot) else { return taken };
    // NumPy knows the dtypes that were registered with it; of others it says BufferError, or before
    // 2.5 RuntimeError.
    let unknown = [Python::PyExc_BufferError, Python::PyExc_RuntimeError];
    if taken.is_ok() || !unknown.into_iter().any(|kind| is(python, kind)) {
        return taken;
    }
    // SAFETY: attached.
    unsafe { python.PyErr_Clear() };
    if snapshot.slot_bits() != u32::from(bits) {
        let floats = dtype::kind(snapshot.dtype.code).is_some_and(|kind| !kind.floats.is_empty());
        let text = format_args!(
            "numpy: elements of {} bits are packed here, and an array has a byte for each: \
             convert them, as by astype('{}')",
            unsigned(snapshot.dtype.bits.into()),
            if floats { "float16" } else { "int8" }
        );
        return Err(refused(python, python.PyExc_BufferError(), text));
    }
    let kind = ml_dtype(python, &snapshot)?;
    let dtype = DLDataType { code: DLDataTypeCode::kDLUInt as u8, bits, lanes: 1 };
    let same_bits = step(this, Step::Bitcast { dtype })?;
    let array = call_numpy(python, c"from_dlpack", &[same_bits.as_ptr()])?;
    call_method(python, array.as_ptr(), c"view", &[kind.as_ptr()])
}

/// The bits that an element of a dtype of ml_dtypes takes in an array; `None` for NumPy's own, and
/// for what neither has, of which NumPy says so.
fn bits_of_foreign(tensor: &Snapshot) -> Option<u8> {
    let bits = dtype::padded_bytes(tensor.dtype) * 8;
    let foreign = tensor.dtype.lanes == 1 && dtype_notation::to_kind(tensor.dtype).is_err();
    (foreign && (bits <= 16 || dtype::is_complex(tensor.dtype.code))).then_some(bits as u8)
}

/// The type of ml_dtypes for a tensor's dtype.
fn ml_dtype(python: Python, tensor: &Snapshot) -> Result<Owned> {
    let name = dtype_name(python, tensor.dtype)?;
    // SAFETY: live objects.
    unsafe {
        let module = Owned::new(python.PyImport_ImportModule(c"ml_dtypes".as_ptr()));
        let found = module.as_ref().map(|module| python.attribute(module.object(), name.object()));
        match found {
            Some(found) => {
                if let Some(found) = found? {
                    return Ok(found);
                }
            }
            None if is(python, Python::PyExc_ImportError) => python.PyErr_Clear(),
            None => return Err(raised()),
        }
        let dtype = dtype::Name(tensor.dtype);
        let bits = dtype::padded_bytes(tensor.dtype) * 8;
        let what = if module.is_some() { "this ml_dtypes lacks it" } else { "install ml_dtypes" };
        let text = format_args!(
            "NumPy has no {dtype} without ml_dtypes: {what}, or take the bits by view('uint{}')",
            unsigned(bits as u64)
        );
        Err(refused(python, python.PyExc_ImportError(), text))
    }
}

/// The dtype of a tensor as NumPy's object.
pub fn dtype_of(this: This) -> Result<Owned> {
    let mut snapshot = Snapshot::new();
    this.live().read(Rules::of(Level::DLRS_LEVEL_STRUCT), &mut snapshot)?;
    let (python, dtype) = (this.python, snapshot.dtype);
    if bits_of_foreign(&snapshot).is_none() {
        return call_numpy(python, c"dtype", &[dtype_name(python, dtype)?.as_ptr()]);
    }
    let flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
    let request = Request { flags, ..Request::dense(&[0], dtype, CPU) };
    // SAFETY: a fresh block; live objects.
    unsafe {
        let none = this.like(Held::new(python, alloc::new(&request)?))?;
        let array = array_of(This::new(python, none.as_ptr()))?;
        required(python.PyObject_GetAttrString(array.as_ptr(), c"dtype".as_ptr()))
    }
}

/// A function of NumPy, called with at most two arguments.
pub fn call_numpy(python: Python, name: &CStr, given: &[*mut PyObject]) -> Result<Owned> {
    // SAFETY: live objects; a module that is loaded is found much faster than it is imported.
    unsafe {
        let numpy = text(python, b"numpy")?;
        let module = match Owned::new(python.PyImport_GetModule(numpy.as_ptr())) {
            Some(module) => module,
            None if !python.PyErr_Occurred().is_null() => return Err(raised()),
            None => required(python.PyImport_ImportModule(c"numpy".as_ptr()))?,
        };
        call_method(python, module.as_ptr(), name, given)
    }
}

/// A method of an object, called with at most two arguments.
pub fn call_method(
    python: Python,
    object: *mut PyObject,
    name: &CStr,
    given: &[*mut PyObject],
) -> Result<Owned> {
    let mut args = [object; 3];
    args.iter_mut().skip(1).zip(given).for_each(|(to, from)| *to = *from);
    let count = args.len().min(1 + given.len());
    // SAFETY: live objects.
    unsafe {
        let name = dlpack_python::text(python, name)?;
        required(python.PyObject_VectorcallMethod(name.as_ptr(), args.as_ptr(), count, null_mut()))
    }
}

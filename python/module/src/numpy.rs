//! NumPy: arrays over a `Tensor`'s memory, and dtypes that only ml_dtypes has.
//!
//! NumPy itself takes what its own dtypes name, and those that were registered with it, by
//! `from_dlpack`. The others (bfloat16, float8, integers of less than a byte) are types of
//! ml_dtypes: an array of unsigned integers of the same size is made, and viewed as one of these.

use core::ffi::CStr;

use super::arguments::method;
use super::copies;
use super::failure::{dtype_name, refused};
use super::tensor::{Held, This};
use super::views::step;
use crate::abi::*;
use crate::copy::{self, CopyPolicy};
use crate::device_type::{self, CPU};
use crate::error::Result;
use crate::integer_text::unsigned;
use crate::layout::Order;
use crate::validate::{Level, Rules, Snapshot};
use crate::view::Step;
use crate::{dtype, dtype_notation};
use dlpack_python::words::{given, policy};
use dlpack_python::{Object, Owned, Python, is, raised, required, text, text_of};
use dlpack_tensor::tensor::alloc::Request;

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
        let policy = policy(python, copy)?;
        let found = match policy {
            CopyPolicy::Always => {
                let copy = copies::copy_of(this, Order::C)?;
                // SAFETY: a `Tensor`, as this one.
                array_of(unsafe { This::new(python, copy.object()) })?
            }
            _ => array_of(this)?,
        };
        let Some(dtype) = given(python, dtype) else { return Ok(found) };
        // Of its own type an array gives itself.
        let wanted = call_method(python, c"__array__", &[found.object(), dtype])?;
        if policy == CopyPolicy::Never && wanted.object() != found.object() {
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
    let taken = call_numpy(python, c"from_dlpack", &[this.object()]);
    let Some(bits) = bits_of_foreign(&snapshot) else { return taken };
    // NumPy knows the dtypes that were registered with it; of others it says BufferError, or before
    // 2.5 RuntimeError.
    let unknown = [Python::PyExc_BufferError, Python::PyExc_RuntimeError];
    if taken.is_ok() || !unknown.into_iter().any(|kind| is(python, kind)) {
        return taken;
    }
    python.clear();
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
    let array = call_numpy(python, c"from_dlpack", &[same_bits.object()])?;
    call_method(python, c"view", &[array.object(), kind.object()])
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
    let what = match import(python, c"ml_dtypes") {
        Ok(module) => match python.attribute(module.object(), name.object())? {
            Some(found) => return Ok(found),
            None => "this ml_dtypes lacks it",
        },
        Err(_) if is(python, Python::PyExc_ImportError) => "install ml_dtypes",
        Err(error) => return Err(error),
    };
    python.clear();
    let dtype = dtype::Name(tensor.dtype);
    let bits = dtype::padded_bytes(tensor.dtype) * 8;
    let text = format_args!(
        "NumPy has no {dtype} without ml_dtypes: {what}, or take the bits by view('uint{}')",
        unsigned(bits as u64)
    );
    Err(refused(python, python.PyExc_ImportError(), text))
}

/// The dtype of a tensor as NumPy's object.
pub fn dtype_of(this: This) -> Result<Owned> {
    let mut snapshot = Snapshot::new();
    this.live().read(Rules::of(Level::DLRS_LEVEL_STRUCT), &mut snapshot)?;
    let (python, dtype) = (this.python, snapshot.dtype);
    if bits_of_foreign(&snapshot).is_none() {
        return call_numpy(python, c"dtype", &[dtype_name(python, dtype)?.object()]);
    }
    let flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
    let request = Request { flags, ..Request::dense(&[0], dtype, CPU) };
    let none = this.like(Held::alloc(python, &request)?)?;
    // SAFETY: a `Tensor`, as this one.
    let array = array_of(unsafe { This::new(python, none.object()) })?;
    python.named(array.object(), c"dtype")
}

/// A module. One that is loaded is found much faster than it is imported.
pub fn import(python: Python, name: &CStr) -> Result<Owned> {
    let text = text_of(python, name.to_bytes())?;
    // SAFETY: live objects, and a text that ends with NUL.
    unsafe {
        match Owned::new(python.PyImport_GetModule(text.object())) {
            Some(module) if module.object() != python._Py_NoneStruct() => Ok(module),
            None if python.has_raised() => Err(raised()),
            _ => required(python.PyImport_ImportModule(name.as_ptr())),
        }
    }
}

/// A function of NumPy, called with at most two arguments.
pub fn call_numpy(python: Python, name: &CStr, given: &[Object]) -> Result<Owned> {
    let numpy = import(python, c"numpy")?;
    let mut args = [numpy.object(); 3];
    args.iter_mut().skip(1).zip(given).for_each(|(to, from)| *to = *from);
    call_method(python, name, args.get(..=given.len()).unwrap_or_default())
}

/// A method of the first of some objects, called with the others.
pub fn call_method(python: Python, name: &CStr, args: &[Object]) -> Result<Owned> {
    python.call(text(python, name)?.object(), args)
}

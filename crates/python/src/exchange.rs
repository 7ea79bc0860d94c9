//! The exchange API: a table of functions on a framework's tensor type, instead of Python calls.

use core::ffi::{c_int, c_void};
use core::ptr::{NonNull, null, null_mut};

use super::capsule::EXCHANGE_API;
use super::constants::{self, Constant};
use super::home::Home;
use super::stream;
use super::wrap::Reference;
use crate::abi::*;
use crate::error::{Error, Result, Status::*};
use crate::validate::exchange::{find, read};
use crate::{
    KindOf, Object, Owned, Python, comes_through, dtype, forgive, is, known, meanwhile, pointer,
    raised, refused,
};

/// The head of the chain in what a type has under `__dlpack_c_exchange_api__`; NULL for anything
/// but a capsule of the right name. The tables are static, so they outlive the capsule.
pub fn header_in(python: Python, found: Option<Owned>) -> *const DLPackExchangeAPIHeader {
    let table = found.and_then(|found| pointer(python, found.object(), EXCHANGE_API));
    table.map_or(null(), |header| header.as_ptr())
}

/// The head of the chain of a type, or of any object that may be none; NULL when it has none.
pub fn of_type(python: Python, kind: Object) -> Result<*const DLPackExchangeAPIHeader> {
    let name = constants::get(python, Constant::ExchangeApi)?;
    Ok(header_in(python, python.attribute(kind, name)?))
}

/// The tensor of an object whose type has an exchange API; `None` when it has none that serves.
/// The consumer's stream, by its number, then waits for the framework's.
pub fn from_object(
    python: Python,
    home: &Home,
    object: Object,
    stream: i64,
) -> Result<Option<Reference>> {
    let name = constants::of(python, home, Constant::ExchangeApi)?;
    let kind = python.PyObject_Type(object)?;
    let header = header_in(python, python.attribute_of_type(kind.object(), name)?);
    if header.is_null() || !header.is_aligned() || overridden(python, home, &kind)? {
        return Ok(None);
    }
    drop(kind);
    // SAFETY: the chain is the framework's, static and live, and the object of its type.
    unsafe {
        match find(header, DLPACK_MAJOR_VERSION).and_then(|table| read(table)) {
            Ok(table) => by_table(python, home, object, &table, stream),
            // A table of another major only, or one with holes: `__dlpack__` will do.
            Err(_) => Ok(None),
        }
    }
}

/// Whether a class that comes before the one with the table has a `__dlpack__`, of which the table
/// knows nothing. Of a class with both, the table serves.
fn overridden(python: Python, home: &Home, kind: &Owned) -> Result<bool> {
    let of = |constant| constants::of(python, home, constant);
    let names = [of(Constant::ExchangeApi)?, of(Constant::Dlpack)?];
    let dict = of(Constant::Dict)?;
    // Which of the two a class has itself: the second only, or the first.
    let has = |class: &Owned| {
        let dict = python.PyObject_GetAttr(class.object(), dict)?;
        for (name, overridden) in names.into_iter().zip([false, true]) {
            if python.PySequence_Contains(dict.object(), name)? {
                return Ok(Some(overridden));
            }
        }
        Ok(None)
    };
    if let Some(overridden) = has(kind)? {
        return Ok(overridden); // as most, without a look at its bases
    }
    let mro = python.PyObject_GetAttr(kind.object(), of(Constant::Mro)?)?;
    for place in 1..python.PySequence_Size(mro.object())? {
        let class = python.PySequence_GetItem(mro.object(), place as isize)?;
        if let Some(overridden) = has(&class)? {
            return Ok(overridden);
        }
    }
    Ok(false) // it is a metaclass's
}

/// As [`from_object`], by the table of its type.
///
/// # Safety
/// The table is that of the object's type.
#[inline(never)]
unsafe fn by_table(
    python: Python,
    home: &Home,
    object: Object,
    table: &DLPackExchangeAPI,
    stream: i64,
) -> Result<Option<Reference>> {
    let Some(export) = table.managed_tensor_from_py_object_no_sync else { return Ok(None) };
    let mut tensor = null_mut();
    // SAFETY: attached; `object` is live, of the table's type, and `tensor` is a variable.
    let answer = unsafe { export(object.as_ptr().cast(), &raw mut tensor) };
    let Some(tensor) = NonNull::new(tensor).filter(|_| answer == 0) else {
        return failed(python, object);
    };
    // SAFETY: what the table gives is live, and its reference ours.
    let tensor = unsafe { Reference::new(python, tensor) };
    forgive(python)?; // of one that does not know that it succeeded
    let Ok(found) = tensor.description() else { return Ok(Some(tensor)) };
    // `__dlpack__` rejects the others, and orders streams itself.
    let serves = literal(python, home, object, found.dtype.code)?
        // SAFETY: the tensor is the table's.
        && unsafe { ordered(python, table, &found, stream)? };
    Ok(serves.then_some(tensor))
}

/// Whether the elements are what they seem, and all that there is to them. A table describes memory
/// and checks nothing: PyTorch's gives away tensors that autograd watches, which would not see a
/// write, and lazily conjugated ones, as if they were neither. Its `__dlpack__` refuses both, in
/// words of its own, so that is asked where there is a doubt: of complex numbers always, of real
/// ones when an attribute says that gradients flow through them; other types have none.
fn literal(python: Python, home: &Home, object: Object, code: u8) -> Result<bool> {
    const WHOLE: [u8; 4] = [
        DLDataTypeCode::kDLInt as u8,
        DLDataTypeCode::kDLUInt as u8,
        DLDataTypeCode::kDLBool as u8,
        DLDataTypeCode::kDLOpaqueHandle as u8,
    ];
    if WHOLE.contains(&code) {
        return Ok(true);
    }
    let kind = python.PyObject_Type(object)?;
    check_negated(python, home, object, &kind)?;
    Ok(!dtype::is_complex(code) && !watched(python, home, object, &kind)?)
}

/// Whether an object requires gradients, by the attributes of PyTorch and Paddle.
fn watched(python: Python, home: &Home, object: Object, kind: &Owned) -> Result<bool> {
    for (constant, watched) in [(Constant::RequiresGrad, true), (Constant::StopGradient, false)] {
        let name = constants::of(python, home, constant)?;
        if let Some(found) = asked(python, kind, name, || python.PyObject_GetAttr(object, name))? {
            return Ok(found == watched);
        }
    }
    Ok(false)
}

/// The truth of what an object whose type has an attribute answers; `None` where it has none, or
/// that raises.
fn asked(
    python: Python,
    kind: &Owned,
    name: Object,
    answer: impl FnOnce() -> Result<Owned>,
) -> Result<Option<bool>> {
    let found = python.type_has(kind.object(), name).and_then(|has| match has {
        true => python.PyObject_IsTrue(answer()?.object()).map(Some),
        false => Ok(None),
    });
    known(python, found).map(Option::flatten)
}

/// As [`check_negated`], of an object that is not asked by the exchange API of its type.
pub fn check_literal(python: Python, home: &Home, object: Object) -> Result<()> {
    let kind = python.PyObject_Type(object)?;
    match python.type_has(kind.object(), constants::of(python, home, Constant::ExchangeApi)?)? {
        true => check_negated(python, home, object, &kind),
        false => Ok(()),
    }
}

/// Refuses a tensor whose elements are to be negated when they are read (`x.conj().imag` of
/// PyTorch): neither its table nor its `__dlpack__` says so.
fn check_negated(python: Python, home: &Home, object: Object, kind: &Owned) -> Result<()> {
    let name = constants::of(python, home, Constant::IsNeg)?;
    if asked(python, kind, name, || python.call(name, &[object]))? != Some(true) {
        return Ok(());
    }
    let text = format_args!(
        "the elements of this {} are negated lazily, which DLPack cannot say: take its \
         resolve_neg()",
        KindOf(python, object)
    );
    Err(refused(python, python.PyExc_BufferError(), text))
}

/// Makes the consumer's stream wait for the framework's, on which the tensor is being made; false
/// where it cannot.
///
/// # Safety
/// `tensor` is live, and the table's.
unsafe fn ordered(
    python: Python,
    table: &DLPackExchangeAPI,
    &DLTensor { device, data, .. }: &DLTensor,
    consumer: i64,
) -> Result<bool> {
    let streams = stream::has_streams(device.device_type);
    let Some(current) = table.current_work_stream.filter(|_| streams) else {
        return Ok(true);
    };
    let Ok(consumer) = stream::from_python(consumer, device.device_type) else { return Ok(false) };
    let mut producer = null_mut();
    // SAFETY: the framework's own device and streams.
    unsafe {
        let answer = current(device.device_type, device.device_id, &raw mut producer);
        forgive(python)?; // dlpack.h: -1 comes with an exception; `__dlpack__` is asked next
        Ok(answer == 0 && stream::order(device, data, consumer, producer).is_ok())
    }
}

/// A table that fails says so in words of its inside, or none: `__dlpack__` is asked, where there
/// is one, and knows why there is no tensor, as of sparse ones and of those without memory.
#[cold]
fn failed(python: Python, object: Object) -> Result<Option<Reference>> {
    if python.has_raised() && !is(python, Python::PyExc_Exception) {
        return Err(raised()); // KeyboardInterrupt
    }
    let method = constants::get(python, Constant::Dlpack)?;
    match meanwhile(python, comes_through, || {
        python.type_has(python.PyObject_Type(object)?.object(), method)
    }) {
        Ok(true) => {
            python.clear();
            Ok(None)
        }
        _ if python.has_raised() => Err(raised()),
        _ => {
            let error = Error::new(DLRS_CALLBACK);
            Err(error.detail("the exchange API failed without an exception"))
        }
    }
}

/// The current work stream of our table. Tensors made here are ready when they are handed out, so
/// it is the default stream of every device, and there is none in host memory.
///
/// # Safety
/// `out` is NULL or a writable variable.
pub unsafe extern "C" fn current_work_stream(
    _: DeviceCode,
    _: i32,
    out: *mut *mut c_void,
) -> c_int {
    if !out.is_null() {
        // SAFETY: `out` is a writable variable: it is not NULL.
        unsafe { out.write(null_mut()) };
        return 0;
    }
    if let Ok(python) = Python::get() {
        let message = c"current_work_stream() needs a variable for the stream: out is NULL";
        // SAFETY: attached; the text ends with NUL.
        unsafe { python.PyErr_SetString(python.PyExc_ValueError(), message.as_ptr()) };
    }
    -1
}

//! Names of dtypes and devices.

use core::ffi::c_char;
use core::fmt;

use super::arg::{self, Pointer};
use super::error::{Text, dlrs_error, dlrs_status, run_given, run_quoting};
use crate::abi::*;
use crate::error::{Arg, Error, Of, Result, Status::*};
use crate::{device_type, dtype};

/// Writes a text with NUL into `buffer` and tells how long the whole of it is.
///
/// # Safety
/// `buffer` holds `capacity` bytes, or is NULL for 0; `nbytes` is NULL or a writable variable.
#[inline(never)]
pub(super) unsafe fn write_text(
    buffer: *mut c_char,
    capacity: usize,
    nbytes: *mut usize,
    write: &mut dyn FnMut(&mut Text) -> fmt::Result,
) -> Result<()> {
    if isize::try_from(capacity).is_err() {
        let error = Error::new(DLRS_BAD_ARG).detail(arg::TOO_LARGE).of(Arg::capacity);
        return Err(error.value_u64(capacity as u64).limit(isize::MAX as i64));
    }
    // SAFETY: capacity bytes are writable at buffer.
    let mut text = unsafe { Text::new(buffer.cast(), capacity) };
    // A text that is too long is no error of `Text`; whatever else cannot be written is a bug.
    let written = write(&mut text);
    let fitted = text.finish();
    // SAFETY: nbytes is NULL or a writable variable, and aligned.
    unsafe { arg::report(nbytes, text.nbytes) };
    if written.is_err() {
        return Err(Error::new(DLRS_INTERNAL).detail("a value could not be written"));
    }
    // A question for the length only is answered, not refused.
    if fitted || buffer.is_null() {
        return Ok(());
    }
    let error = Error::new(DLRS_BUF_SMALL).of(Arg::capacity);
    Err(error.value(capacity as i64).limit(text.nbytes.saturating_add(1) as i64))
}

/// A function that writes a name.
///
/// # Safety
/// `buffer` holds `capacity` bytes, or is NULL for 0; `nbytes` is NULL or a writable variable.
#[inline(never)]
unsafe fn formatted(
    function: &'static str,
    (buffer, capacity, nbytes): (*mut c_char, usize, *mut usize),
    error: *mut dlrs_error,
    write: &mut dyn FnMut(&mut Text) -> fmt::Result,
) -> dlrs_status {
    let room = arg::need_if(capacity > 0, buffer, Arg::buffer);
    run_given(function, error, [room, arg::may(nbytes, Arg::nbytes)], || {
        // SAFETY: capacity bytes are writable at buffer; nbytes is NULL or writable, as judged.
        unsafe { write_text(buffer, capacity, nbytes, write) }
    })
}

/// A function that reads a text; the message quotes it where it is at fault.
///
/// # Safety
/// `text` is NULL or has `nbytes` readable bytes, which stay unchanged.
#[inline(never)]
pub(super) unsafe fn parsed(
    function: &'static str,
    (text, nbytes): (*const c_char, usize),
    out: Pointer,
    error: *mut dlrs_error,
    parse: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> dlrs_status {
    // SAFETY: text is NULL or has nbytes readable bytes, which stay unchanged during the call.
    let bytes = unsafe { arg::bytes(text.cast(), nbytes as u64, [Arg::text, Arg::nbytes]) };
    run_quoting(function, error, bytes.ok(), || {
        arg::pointers([arg::need(text, Arg::text), out])?;
        parse(bytes?).of(Arg::text)
    })
}

/// Parse the name of a dtype, such as "float32", "uint4", "bfloat16" or "int8x4".
///
/// Bytes:     nbytes bytes of text are read; no NUL is needed.
/// Ownership: nothing is kept.
/// Errors:    DLRS_NULL_ARG: text or out. DLRS_MISALIGNED_STRUCT: out.
///            DLRS_BAD_ARG: nbytes exceeds the address space.
///            DLRS_PARSE: not a name; value is the index of the byte at fault.
///            DLRS_DTYPE_CODE, DLRS_DTYPE_BITS, DLRS_DTYPE_LANES: a name with impossible numbers.
///            On any error *out is not modified.
/// Threads:   any; independent of the locale.
/// Source:    the names of NumPy and ml_dtypes; the text must match exactly, without spaces. Lanes
///            other than 1 follow as "x4". Unknown codes are written
///            "unknown(code=200)7x3".
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_dtype_parse(
    text: *const c_char,
    nbytes: usize,
    out: *mut DLDataType,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: text is NULL or has nbytes readable bytes, by the preface; out is a writable
    // variable, neither NULL nor misaligned, as `parsed` finds before it parses.
    unsafe {
        parsed("dlrs_dtype_parse", (text, nbytes), arg::need(out, Arg::out), error, &mut |text| {
            out.write(dtype::parse(text)?);
            Ok(())
        })
    }
}

/// Write the name of a dtype.
///
/// Bytes:     at most capacity bytes are written, a NUL included; *nbytes, when nbytes is not
///            NULL, is the length of the whole name without NUL. A NULL buffer with capacity 0
///            only returns this length.
/// Ownership: nothing is kept.
/// Errors:    DLRS_NULL_ARG: buffer is NULL and capacity is not 0. DLRS_MISALIGNED_STRUCT: nbytes.
///            DLRS_BAD_ARG: capacity exceeds the address space.
///            DLRS_BUF_SMALL: the name is truncated, and still ends with NUL.
/// Threads:   any; independent of the locale.
/// Source:    see dlrs_dtype_parse, which accepts every name written here.
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_dtype_format(
    dtype: DLDataType,
    buffer: *mut c_char,
    capacity: usize,
    nbytes: *mut usize,
    error: *mut dlrs_error,
) -> dlrs_status {
    let room = (buffer, capacity, nbytes);
    // SAFETY: buffer is NULL or has capacity writable bytes, nbytes is NULL or a writable variable.
    unsafe { formatted("dlrs_dtype_format", room, error, &mut |text| dtype::format(dtype, text)) }
}

/// Write the name of a device.
///
/// Bytes:     at most capacity bytes are written, a NUL included; *nbytes, when nbytes is not
///            NULL, is the length of the whole name without NUL. A NULL buffer with capacity 0
///            only returns this length.
/// Ownership: nothing is kept.
/// Errors:    DLRS_NULL_ARG: buffer is NULL and capacity is not 0. DLRS_MISALIGNED_STRUCT: nbytes.
///            DLRS_BAD_ARG: capacity exceeds the address space.
///            DLRS_BUF_SMALL: the name is truncated, and still ends with NUL.
/// Threads:   any; independent of the locale.
/// Source:    the names of torch and JAX.
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_device_format(
    device: DLDevice,
    buffer: *mut c_char,
    capacity: usize,
    nbytes: *mut usize,
    error: *mut dlrs_error,
) -> dlrs_status {
    let room = (buffer, capacity, nbytes);
    let write = &mut |text: &mut Text| device_type::format(device, text);
    // SAFETY: buffer is NULL or has capacity writable bytes, nbytes is NULL or a writable variable.
    unsafe { formatted("dlrs_device_format", room, error, write) }
}

//! Names of dtypes and devices.

use core::ffi::c_char;
use core::fmt;

use super::arg::{self, Text, live, optional, variable, write_text};
use super::error::{dlrs_error, dlrs_status, run, run_quoting};
use crate::abi::*;
use crate::error::{Arg, Of};
use crate::{device_type, dtype};

/// # Safety
/// `buffer` is NULL or has `capacity` writable bytes, `nbytes` is NULL or a writable variable,
/// `error` NULL or live.
#[inline(never)]
unsafe fn formatted(
    function: &'static str,
    (buffer, capacity, nbytes): (*mut c_char, usize, *mut usize),
    error: *mut dlrs_error,
    write: &mut dyn FnMut(&mut Text) -> fmt::Result,
) -> dlrs_status {
    let room = arg::buffer(buffer, capacity, Arg::buffer);
    let pointers = (room, optional(variable(nbytes, Arg::nbytes)));
    // SAFETY: buffer is NULL or has room, nbytes is NULL or writable, error NULL or live.
    unsafe { run(function, error, pointers, |(buffer, nbytes)| write_text(buffer, nbytes, write)) }
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_dtype_parse(
    text: *const c_char,
    nbytes: usize,
    out: *mut DLDataType,
    error: *mut dlrs_error,
) -> dlrs_status {
    let pointers = (live(text, Arg::text), variable(out, Arg::out));
    // SAFETY: text is NULL or has nbytes readable bytes, out is NULL or writable, error NULL or
    // live, by the preface.
    unsafe {
        run_quoting("dlrs_dtype_parse", error, pointers, |(text, out), quoted| {
            let text = arg::bytes(text, nbytes, Arg::nbytes)?;
            *quoted = Some(text);
            out.set(dtype::parse(text).of(Arg::text)?);
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
/// Source:    the names of torch and JAX. All else as dlrs_dtype_format.
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

//! Dtypes in other notations: buffer protocol, array interface, Arrow.

use core::ffi::c_char;

use super::arg::{self, optional, variable, write_text};
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::DLDataType;
use crate::dtype_notation::{self, Notation, Notation::*};
use crate::error::{Arg, Error, Of, Result, Status::*};

fn notation_of(notation: i32, argument: Arg) -> Result<Notation> {
    let known = [DLRS_NOTATION_PEP3118, DLRS_NOTATION_TYPESTR, DLRS_NOTATION_ARROW];
    known.into_iter().find(|known| *known as i32 == notation).ok_or_else(|| {
        const NOTATION: &str = "is no such notation\0Give a value of dlrs_notation.";
        let error = Error::new(DLRS_BAD_ARG).detail(NOTATION).of(argument).value(notation.into());
        error.limit(DLRS_NOTATION_ARROW as i64)
    })
}

/// Write a dtype in the notation of the buffer protocol, the array interface or Arrow.
///
/// Errors:    DLRS_BAD_ARG: notation (a dlrs_notation); what dlrs_validate reports for a dtype;
///            DLRS_UNSUPPORTED: it has no name in the notation. All else as dlrs_dtype_format.
/// Source:    PEP 3118, the array interface of NumPy, and format strings of Arrow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_dtype_format_as(
    dtype: DLDataType,
    notation: i32,
    buffer: *mut c_char,
    capacity: usize,
    nbytes: *mut usize,
    error: *mut dlrs_error,
) -> dlrs_status {
    let room = arg::buffer(buffer, capacity, Arg::buffer);
    let pointers = (room, optional(variable(nbytes, Arg::nbytes)));
    // SAFETY: buffer is NULL or has capacity writable bytes, nbytes is NULL or a writable variable,
    // error NULL or live, by the preface.
    unsafe {
        run("dlrs_dtype_format_as", error, pointers, |(buffer, nbytes)| {
            let notation = notation_of(notation, Arg::notation)?;
            let text = dtype_notation::text(dtype, notation).of(Arg::dtype)?;
            write_text(buffer, nbytes, &mut |out| text.write(out))
        })
    }
}

/// Return the dtype of a kind and an item size of the array interface: 'f' of 4 bytes.
///
/// Bytes:     itemsize is that of one item; native byte order.
/// Ownership: *out is the caller's.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out. DLRS_UNSUPPORTED: the kind is none of 'b'
///            (bool), 'i', 'u', 'f' and 'c', or DLPack does not have the size, such as long double.
///            On any error *out is not modified.
/// Threads:   any.
/// Source:    the typestr of NumPy's array interface, without the byte order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_dtype_from_kind(
    kind: i32,
    itemsize: u32,
    out: *mut DLDataType,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: out is NULL or a writable variable, error NULL or live, by the preface.
    unsafe {
        run("dlrs_dtype_from_kind", error, (variable(out, Arg::out),), |(out,)| {
            out.set(dtype_notation::from_kind(kind, itemsize)?);
            Ok(())
        })
    }
}

/// Return the kind and the item size of a dtype in the array interface.
///
/// Bytes:     *itemsize is that of one item.
/// Ownership: *kind and *itemsize are the caller's.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: kind, itemsize.
///            what dlrs_validate reports for a dtype. DLRS_UNSUPPORTED: it has no kind, such as
///            bfloat16, float8_e4m3fn, types of less than a byte, and lanes other than 1; the field
///            is code, bits or lanes.
///            On any error nothing is written.
/// Threads:   any.
/// Source:    see dlrs_dtype_from_kind, which accepts these values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_dtype_to_kind(
    dtype: DLDataType,
    kind: *mut i32,
    itemsize: *mut u32,
    error: *mut dlrs_error,
) -> dlrs_status {
    let pointers = (variable(kind, Arg::kind), variable(itemsize, Arg::itemsize));
    // SAFETY: kind and itemsize are NULL or writable variables, error is NULL or live.
    unsafe {
        run("dlrs_dtype_to_kind", error, pointers, |(kind, itemsize)| {
            let (letter, nbytes) = dtype_notation::to_kind(dtype).of(Arg::dtype)?;
            kind.set(letter.into());
            itemsize.set(nbytes);
            Ok(())
        })
    }
}

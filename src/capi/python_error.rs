//! Python: exceptions for failures.

use core::ffi::c_char;
use core::fmt::Write;
use core::mem::MaybeUninit;
use core::ptr::null;

use super::arg::{self, Items, Live, live, optional};
use super::error::{dlrs_error, dlrs_status, run, with_message};
use crate::error::{Arg, Error, Of, Result, Status::*};
use crate::python::raise::{self, Message};
use crate::python::{Object, Owned, Python};

/// The exception for a failure.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct dlrs_py_kind {
    /// A status, or a class of them as its hundreds: 200 is all of 2xx.
    pub status: dlrs_status,
    /// The `dlrs_field` at fault, or DLRS_FIELD_NONE for any.
    pub field: i32,
    /// The name of a built-in exception: "BufferError".
    pub kind: *const c_char,
}

/// How a failure is raised. All members but `struct_size` may be 0.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct dlrs_py_error_options {
    /// `sizeof(dlrs_py_error_options)`.
    pub struct_size: u32,
    /// The number of kinds.
    pub kinds_count: u32,
    /// Exceptions in place of those of dlrs_error_forward; the first match is used. NULL for none.
    pub kinds: *const dlrs_py_kind,
    /// Replaces function, argument and member at the start of the message, which then ends before
    /// the name of the status. "" for nothing, NULL for the whole message.
    pub prefix: *const c_char,
}

// SAFETY: plain data, u32 first.
unsafe impl arg::Sized32 for dlrs_py_error_options {}

/// Raise the Python exception for a failure, with a framework's kinds and prefix, if any.
///
/// Ownership: nothing is kept. NULL options are those of dlrs_error_forward.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: failure, options, options->kinds.
///            DLRS_STRUCT_SIZE: failure is too short to contain a message; options. DLRS_BAD_ARG:
///            the matching kind is no built-in exception; none is then set. DLRS_UNSUPPORTED: as
///            dlrs_py_capsule_new_take. Where the failure is DLRS_CALLBACK and an exception is
///            already set, that one stays.
/// Threads:   attached to Python.
/// Source:    the array API standard leaves most exceptions to each framework.
///
/// # Safety
/// `failure` was filled by a function of this library, with its full `struct_size`; the texts of
/// options end with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_py_error_set_as(
    failure: *const dlrs_error,
    options: *const dlrs_py_error_options,
    error: *mut dlrs_error,
) -> dlrs_status {
    let pointers = (live(failure, Arg::failure), optional(live(options, Arg::options)));
    // SAFETY: failure is NULL or an error with a message; options and error are NULL or live, and
    // the texts of options end with NUL.
    unsafe {
        run("dlrs_py_error_set_as", error, pointers, |(failure, options)| raise(failure, options))
    }
}

/// # Safety
/// `failure` is NULL or a live error, whose message ends with NUL; `options` is NULL or live, and
/// so are the pointers in it.
unsafe fn raise(
    failure: Live<dlrs_error>,
    options: Option<Live<dlrs_py_error_options>>,
) -> Result<()> {
    // SAFETY: the texts of options end with NUL; class is one of Python's, or held by `own`.
    unsafe {
        let mut room = MaybeUninit::uninit();
        let options = arg::options(options, Arg::options, &mut room)?;
        let python = Python::get()?;
        let failure = with_message(failure, Arg::failure)?;
        let (status, field) = (failure.status, failure.field);
        if python.has_raised() {
            if status == DLRS_CALLBACK as i32 {
                return Ok(());
            }
            python.clear();
        }
        let mut own = None;
        let mut prefix = null();
        if let Some(options) = options {
            own = class_of(python, status, field, options).of(Arg::options)?;
            prefix = options.prefix;
        }
        let class = own.as_ref().map_or(raise::class_of(python, status), Owned::object);
        set_text(python, class, &failure, prefix)
    }
}

/// The exception of the first row that fits.
///
/// # Safety
/// kinds is NULL or holds kinds_count rows, and the text of each row is NULL or ends with NUL.
unsafe fn class_of(
    python: Python,
    status: dlrs_status,
    field: i32,
    options: &dlrs_py_error_options,
) -> Result<Option<Owned>> {
    // SAFETY: kinds is NULL or holds kinds_count rows.
    let kinds = unsafe { Items::member(options.kinds, options.kinds_count.into(), Arg::options) }?;
    let fits = |row: &dlrs_py_kind| {
        let of_class = row.status == status / 100 * 100;
        (row.status == status || of_class) && (row.field == 0 || row.field == field)
    };
    let Some(row) = (0..kinds.len()).filter_map(|i| kinds.get(i)).find(fits) else {
        return Ok(None);
    };
    // SAFETY: the text of a row is NULL or ends with NUL.
    let name = unsafe { arg::text(row.kind, Arg::options) }?;
    match raise::class_named(python, name) {
        Some(class) => Ok(Some(class)),
        None => Err(Error::new(DLRS_BAD_ARG)
            .option("kinds\0names no built-in exception\0Give one such as \"BufferError\".")
            .value(row.status.into())),
    }
}

/// Sets an exception with the message, or with a prefix and its text where there is a prefix.
///
/// # Safety
/// `class` is an exception, and `prefix` NULL or a text that ends with NUL.
unsafe fn set_text(
    python: Python,
    class: Object,
    failure: &dlrs_error,
    prefix: *const c_char,
) -> Result<()> {
    let message = &failure.message;
    // SAFETY: class is a live exception, both texts end with NUL.
    unsafe {
        if prefix.is_null() {
            python.PyErr_SetString(class, message.as_ptr());
            return Ok(());
        }
        let whole = arg::text(message.as_ptr(), Arg::failure)?.to_bytes();
        let text = match failure.struct_size as usize >= size_of::<dlrs_error>() {
            true => {
                let place = failure.text_start.into()..failure.text_end.into();
                whole.get(place).unwrap_or(whole)
            }
            false => whole,
        };
        let mut said = Message::EMPTY;
        for part in [arg::text(prefix, Arg::options)?.to_bytes(), text] {
            let _ = said.write_str(core::str::from_utf8(part).unwrap_or("(no UTF-8)"));
        }
        python.PyErr_SetString(class, said.as_ptr());
    }
    Ok(())
}

//! Errors: the struct for their details, and names of statuses.

use core::ffi::{c_char, c_void};
use core::mem::offset_of;

use super::arg::{self, Live, Out, Parameters, Pointer, Sized32, Text};
use crate::dtype;
use crate::error::{Arg, Error, Field::*, Reader, Result, Status, Status::*, exception_of};

/// Result of a function: 0, or a `dlrs_status_code`.
#[allow(non_camel_case_types)]
pub type dlrs_status = i32;

/// Size of a message with its NUL.
pub const DLRS_ERROR_MESSAGE_SIZE: usize = 256;

/// The details of a failure, in the caller's memory.
///
/// Set `struct_size` to `sizeof(dlrs_error)` before the first call; no call changes it. A call that
/// fails writes the other members that `struct_size` covers; one that succeeds writes nothing. The
/// message is UTF-8, always ends with NUL and never contains an address.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct dlrs_error {
    /// `sizeof(dlrs_error)`.
    pub struct_size: u32,
    /// The status that the function returned.
    pub status: dlrs_status,
    /// Which parameter, counted from 1; 0 when none is at fault.
    pub argument: i32,
    /// Which member of it, a `dlrs_field`.
    pub field: i32,
    /// Which dimension, or -1.
    pub dimension: i32,
    /// The driver's own code, or 0.
    pub driver_code: i32,
    /// The value found, if any.
    pub value: i64,
    /// The limit that it exceeds, if any.
    pub limit: i64,
    /// Function, argument, member, what is wrong, value, limit, and what to do.
    pub message: [c_char; DLRS_ERROR_MESSAGE_SIZE],
    /// First byte of the part of message that describes the error, with value and limit.
    pub text_start: u16,
    /// One past its last byte; equal to text_start if there was no room.
    pub text_end: u16,
    /// First byte of the part of message that gives the remedy.
    pub hint_start: u16,
    /// One past its last byte; equal to hint_start if there is none, or no room.
    pub hint_end: u16,
}

// SAFETY: plain data, u32 first.
unsafe impl Sized32 for dlrs_error {}

impl dlrs_error {
    /// No failure.
    pub(super) const NONE: dlrs_error = dlrs_error {
        struct_size: size_of::<dlrs_error>() as u32,
        status: DLRS_OK as i32,
        argument: 0,
        field: 0,
        dimension: -1,
        driver_code: 0,
        value: 0,
        limit: 0,
        message: [0; DLRS_ERROR_MESSAGE_SIZE],
        text_start: 0,
        text_end: 0,
        hint_start: 0,
        hint_end: 0,
    };
}

/// Runs the body of an exported function with its pointers, judged, and reports its failure. Of
/// several pointers that are wrong the first is reported, NULL before misaligned.
///
/// # Safety
/// `error` is NULL, misaligned or a live struct; each of `pointers` is NULL, misaligned, or as its
/// constructor says during the call.
#[inline(always)]
pub(crate) unsafe fn run<P: Parameters>(
    function: &'static str,
    error: *mut dlrs_error,
    pointers: P,
    body: impl FnOnce(P::Judged) -> Result<()>,
) -> dlrs_status {
    // SAFETY: error is NULL, misaligned or live, and so are the pointers, of their kinds.
    unsafe { run_quoting(function, error, pointers, |judged, _| body(judged)) }
}

/// As [`run`], for a function whose first parameter is a text, which the body hands over: the
/// message quotes it where it is at fault.
///
/// # Safety
/// As [`run`].
#[inline(always)]
pub(crate) unsafe fn run_quoting<P: Parameters>(
    function: &'static str,
    error: *mut dlrs_error,
    pointers: P,
    body: impl FnOnce(P::Judged, &mut Option<&[u8]>) -> Result<()>,
) -> dlrs_status {
    let mut text = None;
    // SAFETY: error is NULL, misaligned or live, and so are the pointers, of their kinds.
    unsafe {
        if pointers.wrong() {
            return pointers.refused(|all| report_wrong(function, error, all));
        }
        pointers.clear();
        match body(pointers.judged(), &mut text) {
            Ok(()) => DLRS_OK as dlrs_status,
            Err(failure) => report(function, error, text, &failure),
        }
    }
}

/// As [`run`], for a function that tries its `usual` case first: the `rest`, which receives what
/// that has left, is out of its way.
///
/// # Safety
/// As [`run`].
#[inline(always)]
pub(crate) unsafe fn run_usual<P: Parameters, L>(
    function: &'static str,
    error: *mut dlrs_error,
    pointers: P,
    usual: impl FnOnce(&P::Judged) -> core::result::Result<(), L>,
    rest: impl FnOnce(P::Judged, L) -> Result<()>,
) -> dlrs_status {
    // SAFETY: error is NULL, misaligned or live, and so are the pointers, of their kinds.
    unsafe {
        if pointers.wrong() {
            return pointers.refused(|all| report_wrong(function, error, all));
        }
        let judged = pointers.judged();
        match usual(&judged) {
            Ok(()) => DLRS_OK as dlrs_status,
            Err(left) => {
                pointers.clear();
                run_rest(function, error, move || rest(judged, left))
            }
        }
    }
}

/// Runs what is left of a function that has tried its usual case without success.
///
/// # Safety
/// `error` is NULL, misaligned or a live struct.
#[cold]
#[inline(never)]
pub(crate) unsafe fn run_rest(
    function: &'static str,
    error: *mut dlrs_error,
    body: impl FnOnce() -> Result<()>,
) -> dlrs_status {
    // SAFETY: error is NULL, misaligned or a live struct.
    unsafe { run(function, error, (), |()| body()) }
}

/// # Safety
/// `error` is NULL, misaligned or a live struct.
#[cold]
#[inline(never)]
unsafe fn report_wrong(
    function: &'static str,
    error: *mut dlrs_error,
    pointers: &[Pointer],
) -> dlrs_status {
    // SAFETY: error is NULL, misaligned or a live struct.
    unsafe { report(function, error, None, &arg::first_wrong(pointers)) }
}

/// The parameters of every function: a line has the function's name and theirs.
const PARAMETERS: &[u8] = include_bytes!("parameters.txt");

/// Its lines, and the most words after the first one of a line.
const SIZE: (usize, usize) = {
    let (mut lines, mut most, mut words, mut i) = (0, 0, 0, 0);
    while i < PARAMETERS.len() {
        words += (PARAMETERS[i] == b' ') as usize;
        if PARAMETERS[i] == b'\n' {
            most = if words > most { words } else { most };
            (lines, words) = (lines + 1, 0);
        }
        i += 1;
    }
    (lines, most)
};

/// A line of [`PARAMETERS`]: where the function's name is, and the parameters in order.
#[derive(Clone, Copy)]
struct Line {
    start: u16,
    nbytes: u8,
    parameters: [Arg; SIZE.1],
}

static LINES: [Line; SIZE.0] = {
    let empty = Line { start: 0, nbytes: 0, parameters: [Arg::nobody; SIZE.1] };
    let (mut lines, mut line, mut word, mut start, mut i) = ([empty; SIZE.0], 0, 0, 0, 0);
    while i < PARAMETERS.len() {
        if PARAMETERS[i] == b' ' || PARAMETERS[i] == b'\n' {
            match word {
                0 => {
                    assert!(i <= u16::MAX as usize && i - start <= u8::MAX as usize);
                    lines[line].start = start as u16;
                    lines[line].nbytes = (i - start) as u8;
                }
                _ => {
                    let (name, _) = PARAMETERS.split_at(i);
                    lines[line].parameters[word - 1] = Arg::named(name.split_at(start).1);
                }
            }
            (start, word) = (i + 1, word + 1);
            if PARAMETERS[i] == b'\n' {
                (line, word) = (line + 1, 0);
            }
        }
        i += 1;
    }
    lines
};

/// The place of an argument of a function, counted from 1; 0 for none.
#[cold]
fn place(function: &str, argument: Option<Arg>) -> i32 {
    let Some(argument) = argument.filter(|&argument| argument != Arg::nobody) else { return 0 };
    let its = LINES.iter().find(|line| {
        let (start, nbytes) = (usize::from(line.start), usize::from(line.nbytes));
        // The lengths first: nearly all differ, and few names are compared.
        nbytes == function.len()
            && PARAMETERS.get(start..start + nbytes) == Some(function.as_bytes())
    });
    let place = its.and_then(|line| line.parameters.iter().position(|&one| one == argument));
    place.map_or(0, |place| place as i32 + 1)
}

const READER: Reader = Reader { python: false, dtype: dtype::format_word };

/// `quoted` is the first argument, where it is a text.
///
/// # Safety
/// `error` is NULL, misaligned or a live struct.
#[cold]
unsafe fn report(
    function: &'static str,
    error: *mut dlrs_error,
    quoted: Option<&[u8]>,
    failure: &Error,
) -> dlrs_status {
    let status = failure.status() as i32;
    // SAFETY: error is NULL, misaligned or a live struct.
    let Some(error) = (unsafe { Out::found(error) }) else { return status };
    let argument = place(function, failure.argument());
    let mut full = dlrs_error {
        status,
        argument,
        field: failure.member() as i32,
        dimension: failure.dimension(),
        driver_code: failure.driver_code(),
        value: failure.found(),
        limit: failure.bound(),
        ..dlrs_error::NONE
    };
    let size = error.said();
    let room = size.saturating_sub(offset_of!(dlrs_error, message)).min(DLRS_ERROR_MESSAGE_SIZE);
    // SAFETY: `room` is at most the message's size.
    let mut text = unsafe { Text::new((&raw mut full.message).cast(), room) };
    let quoted = quoted.filter(|_| argument == 1);
    let ends = failure.write(READER, function, quoted, &mut text).unwrap_or_default();
    // As far as it was written: the last byte is the NUL.
    let place = |at: usize| at.min(room.saturating_sub(1)) as u16;
    [full.text_start, full.text_end, full.hint_start] = ends.map(place);
    full.hint_end = place(text.nbytes);
    text.finish();
    error.fill_part(&full, size);
    status
}

/// An error that a function has filled, as far as its message; what is behind it is 0 where the
/// struct is too short.
pub(crate) fn with_message(failure: Live<dlrs_error>, argument: Arg) -> Result<dlrs_error> {
    let (size, least) = (failure.said(), offset_of!(dlrs_error, message) + 1);
    if size < least {
        let error = Error::new(DLRS_STRUCT_SIZE).field(DLRS_FIELD_STRUCT_SIZE).of(argument);
        return Err(error.value(size as i64).limit(least as i64));
    }
    let mut read = dlrs_error::NONE;
    failure.read_part(size, &mut read);
    Ok(read)
}

/// DLPack's error callback: receives a Python exception's name and a message, both valid during the
/// call.
#[allow(non_camel_case_types)]
pub type dlrs_set_error_fn = Option<
    unsafe extern "C" fn(error_ctx: *mut c_void, kind: *const c_char, message: *const c_char),
>;

/// Name a status, for logs.
///
/// Ownership: the text is static; never free it.
/// Errors:    none: NULL for a number that is no status.
/// Threads:   any.
/// Source:    the list of statuses in this header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_status_name(status: dlrs_status) -> *const c_char {
    let found = Status::ALL.iter().find(|&&known| known as i32 == status);
    found.map_or(core::ptr::null(), |status| status.explain().0.as_ptr())
}

/// Report a failure through the `SetError` of DLPack's managed tensor allocator.
///
/// Ownership: nothing is kept; kind and message are valid during the callback.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: failure. DLRS_STRUCT_SIZE: it is too short to
///            contain a message. A NULL set_error is accepted and does nothing.
///            The kind is "BufferError" for classes 3 and 5 and for what DLPack 1.3 or this library
///            does not support: DLRS_VERSION, DLRS_FLAGS, DLRS_DTYPE_CODE, DLRS_DTYPE_BITS,
///            DLRS_DTYPE_LANES, DLRS_DEVICE_TYPE, DLRS_DEVICE_ID and DLRS_STRIDES_UNEVEN;
///            "ValueError" for DLRS_SHAPE_MISMATCH, DLRS_NOT_VIEWABLE and the rest of classes 1 and
///            2; "TypeError" for DLRS_DTYPE_MISMATCH; "MemoryError" for class 4 but DLRS_CALLBACK;
///            "RuntimeError" for that and all else: classes 6 and 9, and numbers of no class.
/// Threads:   as the callback.
/// Source:    DLPackManagedTensorAllocator in dlpack.h.
///
/// # Safety
/// `failure` was filled by a function of this library, with its full `struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_error_forward(
    failure: *const dlrs_error,
    error_ctx: *mut c_void,
    set_error: dlrs_set_error_fn,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: failure is NULL or live, and error too; set_error takes error_ctx and two texts.
    unsafe {
        run("dlrs_error_forward", error, (arg::live(failure, Arg::failure),), |(failure,)| {
            let failure = with_message(failure, Arg::failure)?;
            if let Some(set_error) = set_error {
                let kind = exception_of(failure.status).as_ptr();
                set_error(error_ctx, kind, failure.message.as_ptr());
            }
            Ok(())
        })
    }
}

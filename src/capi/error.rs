//! Errors: the struct for their details, and names of statuses.

use core::ffi::{c_char, c_void};
use core::fmt::{self, Write};
use core::mem::offset_of;
use core::ptr::NonNull;

use super::arg::{self, Pointer};
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

/// Writes text into a caller's buffer, NUL included, and counts what the whole text needs.
pub struct Text {
    buffer: *mut u8,
    capacity: usize,
    /// Bytes of the whole text, without NUL, written or not.
    pub nbytes: usize,
}

impl Text {
    /// # Safety
    /// `buffer` points to `capacity` writable bytes.
    pub unsafe fn new(buffer: *mut u8, capacity: usize) -> Self {
        Text { buffer, capacity, nbytes: 0 }
    }

    /// Ends what was written with NUL, on a whole UTF-8 character; tells whether all fitted.
    pub fn finish(&mut self) -> bool {
        let Some(room) = self.capacity.checked_sub(1) else { return false };
        let mut end = self.nbytes.min(room);
        // SAFETY: bytes before `end` were written, `end` is inside the buffer.
        unsafe {
            if self.nbytes > room {
                // The byte after the cut is unknown here; step back over an unfinished character.
                let mut back = end;
                while back > 0 && *self.buffer.add(back - 1) & 0xC0 == 0x80 {
                    back -= 1;
                }
                if back > 0 && *self.buffer.add(back - 1) >= 0xC0 {
                    let lead = *self.buffer.add(back - 1);
                    let whole = if lead >= 0xF0 { 4 } else { 2 + usize::from(lead >= 0xE0) };
                    end = if end - (back - 1) < whole { back - 1 } else { end };
                }
            }
            *self.buffer.add(end) = 0;
        }
        self.nbytes <= room
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.capacity.saturating_sub(1).saturating_sub(self.nbytes);
        let now = text.len().min(room);
        // SAFETY: `now` bytes fit behind what was written, with one left for NUL.
        unsafe { self.buffer.wrapping_add(self.nbytes).copy_from(text.as_ptr(), now) };
        self.nbytes = self.nbytes.saturating_add(text.len());
        Ok(())
    }
}

/// Runs the body of an exported function and reports its failure.
pub(crate) fn run(
    function: &'static str,
    error: *mut dlrs_error,
    body: impl FnOnce() -> Result<()>,
) -> dlrs_status {
    match body() {
        Ok(()) => DLRS_OK as i32,
        Err(failure) => report(function, error, None, &failure),
    }
}

/// As [`run`], for a function with several pointers: a wrong one is reported first, by one function
/// for all. [`arg::pointers`] is for what several functions call from their bodies, and for what
/// runs after the usual case has been tried; of one pointer alone, [`arg::required`] is enough.
#[inline(always)]
pub(crate) fn run_given<const N: usize>(
    function: &'static str,
    error: *mut dlrs_error,
    pointers: [Pointer; N],
    body: impl FnOnce() -> Result<()>,
) -> dlrs_status {
    if arg::wrong(&pointers) {
        let again = pointers; // so that those of a usual call stay in registers
        return report_wrong(function, error, &again);
    }
    run(function, error, body)
}

#[cold]
#[inline(never)]
fn report_wrong(
    function: &'static str,
    error: *mut dlrs_error,
    pointers: &[Pointer],
) -> dlrs_status {
    report(function, error, None, &arg::refused(pointers).error())
}

/// As [`run`], for a function that has tried its usual case without success: out of its way.
#[cold]
#[inline(never)]
pub(crate) fn run_rest(
    function: &'static str,
    error: *mut dlrs_error,
    body: impl FnOnce() -> Result<()>,
) -> dlrs_status {
    run(function, error, body)
}

/// As [`run`], for a function whose first parameter is a text: the message quotes it where it is at
/// fault.
pub(crate) fn run_quoting(
    function: &'static str,
    error: *mut dlrs_error,
    quoted: Option<&[u8]>,
    body: impl FnOnce() -> Result<()>,
) -> dlrs_status {
    match body() {
        Ok(()) => DLRS_OK as i32,
        Err(failure) => report(
            function,
            error,
            quoted.filter(|_| place(function, failure.argument()) == 1),
            &failure,
        ),
    }
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

#[cold]
fn report(
    function: &'static str,
    error: *mut dlrs_error,
    quoted: Option<&[u8]>,
    failure: &Error,
) -> dlrs_status {
    let status = failure.status() as i32;
    if error.is_null() || !error.is_aligned() {
        return status;
    }
    let mut full = dlrs_error {
        status,
        argument: place(function, failure.argument()),
        field: failure.member() as i32,
        dimension: failure.dimension(),
        driver_code: failure.driver_code(),
        value: failure.found(),
        limit: failure.bound(),
        ..dlrs_error::NONE
    };
    let start = offset_of!(dlrs_error, message);
    // SAFETY: error is neither NULL nor misaligned, and a live struct starts with its size.
    let given = unsafe { (&raw const (*error).struct_size).read() } as usize;
    let size = given.min(size_of::<dlrs_error>());
    let room = size.saturating_sub(start).min(DLRS_ERROR_MESSAGE_SIZE);
    // SAFETY: `room` is at most the message's size.
    let mut text = unsafe { Text::new((&raw mut full.message).cast(), room) };
    let ends = failure.write(READER, function, quoted, &mut text).unwrap_or_default();
    // As far as it was written: the last byte is the NUL.
    let place = |at: usize| at.min(room.saturating_sub(1)) as u16;
    [full.text_start, full.text_end, full.hint_start] = ends.map(place);
    full.hint_end = place(text.nbytes);
    text.finish();
    let skip = size_of::<u32>();
    if size > skip {
        // SAFETY: both structs hold `size` bytes; `struct_size` itself stays as it is.
        unsafe {
            let from = (&raw const full).cast::<u8>().add(skip);
            error.cast::<u8>().add(skip).copy_from_nonoverlapping(from, size - skip);
        }
    }
    status
}

/// An error that a function has filled, as far as its message.
///
/// # Safety
/// `failure` is NULL or live.
pub(crate) unsafe fn with_message(
    failure: *const dlrs_error,
    argument: Arg,
) -> Result<NonNull<dlrs_error>> {
    let found = arg::required(failure, argument)?;
    // SAFETY: a live struct starts with its size.
    let given = unsafe { (&raw const (*failure).struct_size).read() } as usize;
    let least = offset_of!(dlrs_error, message) + 1;
    if given < least {
        let error = Error::new(DLRS_STRUCT_SIZE).field(DLRS_FIELD_STRUCT_SIZE).of(argument);
        return Err(error.value(given as i64).limit(least as i64));
    }
    Ok(found)
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
///
/// # Safety
/// None.
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
    run("dlrs_error_forward", error, || {
        // SAFETY: failure is NULL or a live struct.
        let failure = unsafe { with_message(failure, Arg::failure) }?.as_ptr();
        // SAFETY: failure is a live struct that reaches to its message, as `with_message` found.
        let (status, message) =
            unsafe { ((*failure).status, (&raw const (*failure).message).cast()) };
        if let Some(set_error) = set_error {
            // SAFETY: set_error is a function that takes error_ctx; both texts end with NUL.
            unsafe { set_error(error_ctx, exception_of(status).as_ptr(), message) };
        }
        Ok(())
    })
}

//! Texts that are written into a caller's buffer.

use core::ffi::c_char;
use core::fmt::{self, Write};

use super::pointer::Out;
use super::values::{Buffer, TOO_LARGE};
use crate::error::{Arg, Error, Result, Status::*};

/// Writes text into a caller's buffer, NUL included, and counts what the whole text needs.
pub struct Text {
    buffer: *mut u8,
    capacity: usize,
    /// Bytes of the whole text, without NUL, written or not.
    pub nbytes: usize,
}

impl Text {
    /// # Safety
    /// `buffer` points to `capacity` bytes, writable as long as the answer is used.
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

/// Writes a text with NUL into `buffer` and tells how long the whole of it is.
#[inline(never)]
pub fn write_text(
    buffer: Buffer<c_char>,
    nbytes: Option<Out<usize>>,
    write: &mut dyn FnMut(&mut Text) -> fmt::Result,
) -> Result<()> {
    let Buffer { first, n: capacity } = buffer;
    if isize::try_from(capacity).is_err() {
        let error = Error::new(DLRS_BAD_ARG).detail(TOO_LARGE).of(Arg::capacity);
        return Err(error.value_u64(capacity as u64).limit(isize::MAX as i64));
    }
    // SAFETY: capacity bytes are writable at first.
    let mut text = unsafe { Text::new(first.cast(), capacity) };
    // A text that is too long is no error of `Text`; whatever else cannot be written is a bug.
    let written = write(&mut text);
    let fitted = text.finish();
    if let Some(nbytes) = nbytes {
        nbytes.set(text.nbytes);
    }
    if written.is_err() {
        return Err(Error::new(DLRS_INTERNAL).detail("a value could not be written"));
    }
    // A question for the length only is answered, not refused.
    if fitted || first.is_null() {
        return Ok(());
    }
    let error = Error::new(DLRS_BUF_SMALL).of(Arg::capacity);
    Err(error.value(capacity as i64).limit(text.nbytes.saturating_add(1) as i64))
}

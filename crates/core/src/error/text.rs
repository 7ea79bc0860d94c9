//! The text of an error, in a pointer and a number.

use core::ffi::CStr;
use core::ptr::null;

/// Where a constant text starts, or NULL.
#[derive(Clone, Copy, Debug)]
pub struct Start(*const u8);

// SAFETY: a constant can be read by every thread.
unsafe impl Send for Start {}
// SAFETY: no thread writes a constant, so all may read it at a time.
unsafe impl Sync for Start {}

/// The length of a text that ends with NUL.
const ENDS: u16 = u16::MAX;

/// No text.
pub const NONE: (Start, u16) = (Start(null()), 0);

/// A text of fewer than 65535 bytes.
pub const fn of(text: &'static str) -> (Start, u16) {
    let nbytes = if text.len() < ENDS as usize { text.len() as u16 } else { 0 };
    (Start(text.as_ptr()), nbytes)
}

/// A text of C.
pub const fn of_c(text: &'static CStr) -> (Start, u16) {
    (Start(text.as_ptr().cast()), ENDS)
}

/// The text, up to the first byte that is not UTF-8; empty for none.
///
/// # Safety
/// Both are from one of the above.
pub unsafe fn again((start, nbytes): (Start, u16)) -> &'static str {
    // SAFETY: `of` took a constant of `nbytes` bytes, or `of_c` one that ends with NUL.
    let bytes = unsafe {
        match nbytes {
            0 => return "",
            ENDS => CStr::from_ptr(start.0.cast()).to_bytes(),
            nbytes => core::slice::from_raw_parts(start.0, nbytes.into()),
        }
    };
    core::str::from_utf8(bytes).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_parsed_back() {
        const LONG: &str = include_str!("text.rs");
        let texts = [NONE, of("some words"), of_c(c"some words"), of_c(c"\xFF"), of(LONG)];
        // SAFETY: as it was made.
        let read = texts.map(|text| unsafe { again(text) });
        assert_eq!(read, ["", "some words", "some words", "", LONG]);
    }
}

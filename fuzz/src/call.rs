//! Calls of the C ABI, and the properties of every one of them.

use std::ffi::{CStr, c_char};

use dlpack_rs::capi::error::{DLRS_ERROR_MESSAGE_SIZE, dlrs_error, dlrs_status_name};
use dlpack_rs::error::Status::DLRS_BUF_SMALL;

const UNTOUCHED: i32 = -77;

/// Calls a function with an error to fill, and checks that it is written on failure only, with the
/// returned status, and a message that names the function and fits.
pub fn call(function: impl FnOnce(*mut dlrs_error) -> i32) -> i32 {
    let mut error = dlrs_error {
        struct_size: size_of::<dlrs_error>() as u32,
        status: UNTOUCHED,
        argument: UNTOUCHED,
        field: UNTOUCHED,
        dimension: UNTOUCHED,
        driver_code: UNTOUCHED,
        value: 0,
        limit: 0,
        message: [0x55; DLRS_ERROR_MESSAGE_SIZE],
        text_start: 0,
        text_end: 0,
        hint_start: 0,
        hint_end: 0,
    };
    let status = function(&mut error);
    if status == 0 {
        assert!(error.status == UNTOUCHED && error.message[0] == 0x55, "written on success");
        return status;
    }
    assert_eq!(error.status, status);
    let parts = [error.text_start, error.text_end, error.hint_start, error.hint_end];
    assert!(parts.is_sorted() && usize::from(parts[3]) < DLRS_ERROR_MESSAGE_SIZE);
    // SAFETY: needs nothing.
    assert!(unsafe { !dlrs_status_name(status).is_null() }, "{status} is no status");
    let message: Vec<u8> = error.message.iter().map(|&c| c as u8).collect();
    let message = CStr::from_bytes_until_nul(&message).expect("no NUL in a message");
    let message = message.to_str().expect("a message that is not UTF-8");
    assert!(message.starts_with("dlrs_"), "{message}");
    status
}

/// Checks the rule of snprintf for a function that writes text, and returns the whole text. `None`
/// on failure. `write` takes buffer, capacity, the length variable, error.
pub fn snprintf_rule(
    capacity: usize,
    write: impl Fn(*mut c_char, usize, *mut usize, *mut dlrs_error) -> i32,
) -> Option<String> {
    let (null, mut whole) = (std::ptr::null_mut(), usize::MAX);
    let asked = call(|error| write(null, 0, &mut whole, error));
    let small = |buffer: &mut [u8], nbytes: *mut usize| {
        call(|error| write(buffer.as_mut_ptr().cast(), buffer.len(), nbytes, error))
    };
    if asked != 0 {
        let mut buffer = vec![0x55; capacity].into_boxed_slice();
        assert_eq!(small(&mut buffer, std::ptr::null_mut()), asked);
        assert!(*buffer == vec![0x55; capacity], "written on failure");
        return None;
    }
    let mut text = vec![0x55; whole + 1].into_boxed_slice();
    let mut again = 0;
    assert_eq!(small(&mut text, &mut again), 0);
    assert_eq!((again, text[whole]), (whole, 0));
    assert!(CStr::from_bytes_until_nul(&text).unwrap().count_bytes() == whole);
    let text = String::from_utf8(text[..whole].to_vec()).expect("text that is not UTF-8");
    let mut cut = vec![0x55; capacity].into_boxed_slice();
    let status = small(&mut cut, &mut again);
    assert_eq!(again, whole);
    assert_eq!(status, if capacity > whole { 0 } else { DLRS_BUF_SMALL as i32 });
    if capacity > 0 {
        let kept = CStr::from_bytes_until_nul(&cut).expect("no NUL in a text").to_bytes();
        // A character that would be truncated is left out.
        let room = (0..whole.min(capacity - 1) + 1).rev().find(|&n| text.is_char_boundary(n));
        assert_eq!(kept, &text.as_bytes()[..room.unwrap()]);
    }
    Some(text)
}

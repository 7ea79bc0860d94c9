//! Versions: of this library and of DLPack.

use core::ffi::{CStr, c_char};

/// A decimal number of the package's version, at compile time.
const fn number(text: &str) -> u32 {
    let (bytes, mut value, mut at) = (text.as_bytes(), 0, 0);
    while at < bytes.len() {
        value = value * 10 + (bytes[at] - b'0') as u32;
        at += 1;
    }
    value
}

const VERSION: u32 = number(env!("CARGO_PKG_VERSION_MAJOR")) * 1_000_000
    + number(env!("CARGO_PKG_VERSION_MINOR")) * 1_000
    + number(env!("CARGO_PKG_VERSION_PATCH"));

/// Return the version of the running library, as major * 1000000 + minor * 1000 + patch.
///
/// Ownership: none.
/// Errors:    none.
/// Threads:   any.
/// Source:    compare with DLRS_HEADER_VERSION; the SONAME carries the version of the interface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_version() -> u32 {
    VERSION
}

/// Return the version of the running library, as text: "major.minor.patch".
///
/// Ownership: the text is static; never free it.
/// Errors:    none.
/// Threads:   any.
/// Source:    the library's release.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_version_string() -> *const c_char {
    const TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    match CStr::from_bytes_with_nul(TEXT.as_bytes()) {
        Ok(text) => text.as_ptr(),
        Err(_) => c"".as_ptr(),
    }
}

//! Copies of a strided view into compact memory by crates.io's libraries, each behind one function
//! of the same form, on the calling thread: what `make bench` compares with.

mod view;

#[cfg(feature = "hptt")]
mod of_hptt;
mod of_strided;
mod of_transpose;

use std::ffi::{CStr, c_char};
use view::View;

/// Copies the view into `dst`; false where the library has no such operation.
///
/// # Safety
///
/// The view's memory can be read, and `dst` written with as many bytes, which no other uses.
type Peer = unsafe fn(&View, dst: *mut u8) -> bool;

/// Everyone that was built.
const PEERS: &[(&CStr, Peer)] = &[
    (c"strided-perm", of_strided::copy),
    #[cfg(feature = "hptt")]
    (c"HPTT", of_hptt::copy),
    (c"transpose", of_transpose::copy),
];

/// Copies with the peer of that place in [`PEERS`]; 0, or 1 where it has no such operation, or 2
/// where there is no such peer. Strides are in elements of `size` bytes.
///
/// # Safety
///
/// As [`Peer`]; `shape` and `strides` have `ndim` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_peer_copy(
    peer: usize,
    dst: *mut u8,
    src: *const u8,
    ndim: usize,
    shape: *const i64,
    strides: *const i64,
    size: usize,
) -> i32 {
    let Some((_, copy)) = PEERS.get(peer) else { return 2 };
    // SAFETY: the caller's promise.
    unsafe {
        let shape = std::slice::from_raw_parts(shape, ndim);
        let strides = std::slice::from_raw_parts(strides, ndim);
        i32::from(!copy(&View { data: src, shape, strides, size }, dst))
    }
}

/// The name of the peer of that place; NULL after the last.
#[unsafe(no_mangle)]
pub extern "C" fn dlrs_peer_name(peer: usize) -> *const c_char {
    PEERS.get(peer).map_or(std::ptr::null(), |(name, _)| name.as_ptr())
}

//! POSIX.

use core::ptr::NonNull;

/// Memory from `malloc`, aligned for any C object; `None` when there is none.
#[inline]
pub fn memory(nbytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: malloc takes any size; `max(1)` keeps the answer for 0 bytes from being NULL.
    NonNull::new(unsafe { libc::malloc(nbytes.max(1)) }.cast())
}

/// Gives memory back.
///
/// # Safety
/// `memory` came from [`memory`] and is not used again.
#[inline]
pub unsafe fn give_back(memory: NonNull<u8>) {
    // SAFETY: the caller's word.
    unsafe { libc::free(memory.as_ptr().cast()) }
}

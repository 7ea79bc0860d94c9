//! Pinned memory to copy through: two buffers per device, kept, used by one call at a time.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::AtomicPtr;

/// A buffer that nobody uses, or NULL; and the event behind the work that used it last.
pub struct Stage {
    pub(super) memory: AtomicPtr<c_void>,
    pub(super) event: AtomicPtr<c_void>,
}

impl Stage {
    /// No buffer yet.
    pub const fn new() -> Stage {
        Stage { memory: AtomicPtr::new(null_mut()), event: AtomicPtr::new(null_mut()) }
    }
}

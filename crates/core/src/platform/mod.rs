//! The operating system and the machine: memory, threads, the range of addresses.
//!
//! The only folder, besides the SIMD kernels, in which code differs between targets; a test looks
//! for `cfg` elsewhere. Each system's file defines the same names.

use core::ffi::c_void;
use core::sync::atomic;

mod float_environment;
mod jobs;
mod names;
#[cfg(unix)]
#[path = "unix.rs"]
mod os;
#[cfg(windows)]
#[path = "windows.rs"]
mod os;
pub mod pool;
pub mod workers;

pub use float_environment::FloatEnvironment;
pub use names::Names;
#[cfg(not(target_arch = "x86_64"))]
pub use os::caches;
pub use os::{CUDA, HIP, HIPRTC};
pub use os::{
    Library, Lock, cancellation_point, give_back, in_huge_pages, library_loaded, library_open,
    library_with, memory, process_id, processors, symbol,
};

impl Library {
    /// As a word, to be kept in an atomic.
    pub fn as_ptr(self) -> *mut c_void {
        self.0
    }

    /// The library that [`Library::as_ptr`] told.
    pub fn from_ptr(library: *mut c_void) -> Library {
        Library(library)
    }
}

/// One past the highest address of the half of the address space that starts at 0. Memory that
/// starts in it ends in it: with 4 or 5 levels of pages, Linux never maps across this line.
#[cfg(target_arch = "x86_64")]
pub const LOW_HALF: u64 = 1 << 47;
/// One past the highest address that a Rust or C object can end at.
#[cfg(all(target_pointer_width = "64", not(target_arch = "x86_64")))]
pub const LOW_HALF: u64 = isize::MAX as u64;
/// The whole address space: memory may lie across its middle.
#[cfg(not(target_pointer_width = "64"))]
pub const LOW_HALF: u64 = usize::MAX as u64;

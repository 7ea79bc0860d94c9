//! What the operating system and the machine give: memory, and where addresses can lie.
//!
//! The only folder, besides the SIMD kernels, in which code differs between targets.

#[cfg(unix)]
#[path = "unix.rs"]
mod os;
#[cfg(windows)]
#[path = "windows.rs"]
mod os;

mod float_environment;

pub use float_environment::FloatEnvironment;
pub use os::*;

/// One past the highest address of the half of the address space that starts at 0. Memory that
/// starts in it ends in it: with 4 or 5 levels of pages, Linux never maps across this line.
#[cfg(target_arch = "x86_64")]
pub const LOW_HALF: u64 = 1 << 47;
/// One past the highest address that a Rust or C object can end at.
#[cfg(not(target_arch = "x86_64"))]
pub const LOW_HALF: u64 = isize::MAX as u64;

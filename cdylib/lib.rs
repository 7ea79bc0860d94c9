//! The artefact crate: re-exports the C ABI and says what a panic does, which is: not happen.
//!
//! `abort` is the only thing the handler calls, and a test demands that the release library does
//! not import `abort`: the linker then has proved that no panic path is left (law 6).
#![no_std]

pub use core_lib::capi::*;

#[cfg(panic = "unwind")]
compile_error!("build libdlpack_rs with panic = \"abort\": nothing may unwind across the C ABI");

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: abort has no precondition.
    unsafe { libc::abort() }
}

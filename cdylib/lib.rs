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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_tmp_copy(p: *const core_lib::device::plan::Plan, t: usize) {
    unsafe { core_lib::device::cpu::copy(&*p, &core_lib::device::cpu::Parallel { threads: t, hook: None }) }
}

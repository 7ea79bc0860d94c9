//! The artefact crate: re-exports the C ABI and says what a panic does, which is: not happen.
//!
//! `abort` is the only thing the handler calls, and a test demands that the release library does
//! not import `abort`: the linker then has proved that no panic path is left (law 6).
#![no_std]

pub use core_lib::capi::*;

#[cfg(panic = "unwind")]
compile_error!("build libdlpack_rs with panic = \"abort\": nothing may unwind across the C ABI");

/// Makes every later copy use the kernels of this number among the levels, lowest first; false if
/// this processor has not got them.
#[cfg(feature = "levels")]
#[unsafe(no_mangle)]
pub extern "C" fn dlrs_test_level(number: u8) -> bool {
    use core_lib::device::cpu::{Level, set_level};
    Level::ALL.into_iter().find(|&level| level as u8 == number).is_some_and(set_level)
}

/// The extension module: what Python looks for in the file, by the module's name.
///
/// # Safety
/// Python calls it.
#[cfg(feature = "module")]
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn PyInit__dlpack_rs() -> *mut core_lib::python::PyObject {
    // SAFETY: guaranteed by the caller.
    unsafe { py_module::init() }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: abort has no precondition.
    unsafe { libc::abort() }
}

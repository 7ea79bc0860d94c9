//! The artefact crate: re-exports the C ABI and defines the panic handler, which is unreachable.
//!
//! The handler calls only `abort`, and a test checks that the release library does not import
//! `abort`: then the linker has proved that no panic path is left (law 6).
#![no_std]

pub use core_lib::capi::*;

#[cfg(panic = "unwind")]
compile_error!("build libdlpack_rs with panic = \"abort\": nothing may unwind across the C ABI");
#[cfg(feature = "capi")]
compile_error!("cargo-c would install an archive that takes over libm: use CMake or make install");

/// Makes every later copy use the kernels of level number `level`, counted from the lowest; false
/// if this processor does not support them.
#[cfg(feature = "levels")]
#[unsafe(no_mangle)]
pub extern "C" fn dlrs_test_level(number: u8) -> bool {
    use core_lib::cpu::{Level, set_level};
    Level::ALL.into_iter().find(|&level| level as u8 == number).is_some_and(set_level)
}

/// The extension module's entry point, which Python finds by the module's name.
///
/// # Safety
/// Python calls it.
#[cfg(feature = "module")]
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn PyInit__dlpack_rs() -> *mut core_lib::python::PyObject {
    // SAFETY: Python is running and calls this while it imports the module.
    unsafe { py_module::init() }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: abort has no precondition.
    unsafe { libc::abort() }
}

//! AMD's run-time compiler.

use core::ffi::{CStr, c_char};
use core::mem::transmute;
use core::ptr::null_mut;

use super::driver::{Driver, find};
use super::kernels::Family;
use super::packed::Text;
use super::rocm;
use super::vendor::Ptr;
use crate::error::{Error, Result, Status::*};
use crate::platform::{self, Library};

const OUT_OF_MEMORY: i32 = 1; // HIPRTC_ERROR_OUT_OF_MEMORY

fn failed(code: i32) -> Error {
    if code == OUT_OF_MEMORY {
        return Error::new(DLRS_NOMEM);
    }
    Error::new(DLRS_LAUNCH).driver(code).detail("hiprtc cannot compile the kernels")
}

/// The address of a function of hiprtc.
fn function(library: Library, name: &CStr) -> Result<Ptr> {
    // SAFETY: a NUL-terminated string.
    let address = unsafe { platform::symbol(library, name.as_ptr()) };
    if address.is_null() { Err(failed(0)) } else { Ok(address) }
}

/// Calls a function of hiprtc, which must return 0.
macro_rules! call {
    ($library:expr, $name:literal, $($argument:expr => $type:ty),*) => {{
        let address = function($library, $name)?;
        // SAFETY: AMD's function of that name, with its parameters.
        let code = unsafe {
            let call: unsafe extern "system" fn($($type),*) -> i32 = transmute(address);
            call($($argument),*)
        };
        if code == 0 { Ok(()) } else { Err(failed(code)) }
    }};
}

/// Compiles a family of kernels: object code for the current device.
pub fn compile(driver: &Driver, source: &Text, family: Family) -> Result<Text> {
    let inside = driver.library();
    // SAFETY: a NUL-terminated string; AMD's libraries are safe to load.
    let library = unsafe {
        match platform::symbol(inside, c"hiprtcCreateProgram".as_ptr()).is_null() {
            false => inside,
            true => {
                let missing = Error::new(DLRS_LAUNCH).detail(platform::HIPRTC.missing);
                find(&platform::HIPRTC).ok_or(missing)?
            }
        }
    };
    function(library, c"hiprtcDestroyProgram")?; // checked before a program is created
    let mut program: Ptr = null_mut();
    let none: *const *const c_char = null_mut();
    call!(library, c"hiprtcCreateProgram",
        &mut program => *mut Ptr, source.as_ptr() => *const c_char,
        c"dlpack_rs.hip".as_ptr() => *const c_char, 0 => i32,
        none => *const *const c_char, none => *const *const c_char)?;
    let code = architecture(driver).and_then(|gpu| translate(library, program, family, &gpu));
    let destroyed = call!(library, c"hiprtcDestroyProgram", &mut program => *mut Ptr);
    destroyed.and(code)
}

/// The compiler option for the current device. Without one, hiprtc asks the runtime that is called
/// libamdhip64.so, which only the development package has.
fn architecture(driver: &Driver) -> Result<[u8; 96]> {
    let properties = rocm::properties(driver)?;
    let mut option = [0; 96];
    let text = b"--gpu-architecture=".iter().copied().chain(properties.architecture());
    option.iter_mut().take(95).zip(text).for_each(|(to, byte)| *to = byte);
    Ok(option)
}

fn translate(library: Library, program: Ptr, family: Family, gpu: &[u8; 96]) -> Result<Text> {
    // Versions of hiprtc differ in their default language version.
    let options = [c"-std=c++17".as_ptr(), family.option().as_ptr(), gpu.as_ptr().cast()];
    call!(library, c"hiprtcCompileProgram", program => Ptr,
        options.len() as i32 => i32, options.as_ptr() => *const *const c_char)?;
    let mut nbytes = 0usize;
    call!(library, c"hiprtcGetCodeSize", program => Ptr, &mut nbytes => *mut usize)?;
    let mut code = Text::new(nbytes)?;
    call!(library, c"hiprtcGetCode", program => Ptr, code.bytes().as_mut_ptr() => *mut u8)?;
    Ok(code)
}

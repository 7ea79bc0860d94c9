//! The library as it is shipped: opened when it is first asked for, called through its C ABI.

use std::ffi::{CStr, CString, c_void};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Device(pub i32, pub i32);

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Dtype {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}

/// DLTensor.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Tensor {
    pub data: *mut c_void,
    pub device: Device,
    pub ndim: i32,
    pub dtype: Dtype,
    pub shape: *const i64,
    pub strides: *const i64,
    pub byte_offset: u64,
}

/// DLManagedTensorVersioned.
#[repr(C)]
pub struct Managed {
    version: [u32; 2],
    context: *mut c_void,
    deleter: *mut c_void,
    flags: u64,
    pub tensor: Tensor,
}

/// dlrs_copy_options.
#[repr(C)]
pub struct CopyOptions {
    struct_size: u32,
    flags: u32,
    threads: u32,
    reserved: u32,
    pointers: [*const c_void; 4],
}

pub const CPU: Device = Device(1, 0);
pub const F32: Dtype = Dtype { code: 2, bits: 32, lanes: 1 };
pub const STRICT: i32 = 3;
pub const ONE_THREAD: CopyOptions = CopyOptions {
    struct_size: size_of::<CopyOptions>() as u32,
    flags: 0,
    threads: 1,
    reserved: 0,
    pointers: [null(); 4],
};

type Out = *mut *mut Managed;
type Error = *mut c_void;
pub type Free = unsafe extern "C" fn(*mut c_void);

macro_rules! library {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        pub struct Library {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Library {
            /// # Safety
            ///
            /// The handle is that of the library.
            unsafe fn of(handle: *mut c_void) -> Library {
                // SAFETY: the functions of these names have these types: include/dlpack_rs.h.
                unsafe {
                    $(let $name = libc::dlsym(handle, concat!(stringify!($name), "\0").as_ptr().cast());
                    assert!(!$name.is_null(), "no {}", stringify!($name));)*
                    Library {
                        $($name: std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($argument),*) $(-> $result)?,
                        >($name),)*
                    }
                }
            }
        }
    };
}

library! {
    dlrs_copy_desc(*const Tensor, u64, *const Tensor, u64, *const CopyOptions, Error) -> i32;
    dlrs_validate(*const Tensor, u64, i32, Error) -> i32;
    dlrs_tensor_new(*const i64, i32, Dtype, Device, *const c_void, Out, Error) -> i32;
    dlrs_tensor_wrap(*const Tensor, u64, Option<Free>, *mut c_void, Out, Error) -> i32;
    dlrs_retain(*mut Managed, Out, Error) -> i32;
    dlrs_clone(*const Managed, Device, *const CopyOptions, Out, Error) -> i32;
    dlrs_copy(*const Managed, *const Managed, *const CopyOptions, Error) -> i32;
    dlrs_release(*mut Managed);
}

/// The library of DLPACK_RS_LIBRARY, or the one that `make build` leaves.
pub fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let usual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/lib/libdlpack_rs.so");
        let path = std::env::var("DLPACK_RS_LIBRARY").unwrap_or_else(|_| usual.to_owned());
        let name = CString::new(path).unwrap();
        // SAFETY: strings with an end; the library stays open.
        unsafe {
            let handle = libc::dlopen(name.as_ptr(), libc::RTLD_NOW);
            assert!(!handle.is_null(), "{}", CStr::from_ptr(libc::dlerror()).to_string_lossy());
            Library::of(handle)
        }
    })
}

/// What `make` gives through its last but one parameter.
pub fn made(make: impl FnOnce(Out) -> i32) -> *mut Managed {
    let mut out = null_mut();
    assert_eq!(make(&raw mut out), 0);
    out
}

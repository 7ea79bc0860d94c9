//! The Python exception for a status.
#![forbid(unsafe_code)]

use core::ffi::CStr;

use super::status::Status;

/// The Python exception for a status: the only place where one is chosen. The array API standard
/// requires BufferError for data that cannot be exchanged as requested; an argument that is
/// invalid, or that does not match another one, is ValueError or TypeError.
pub fn exception_of(status: i32) -> &'static CStr {
    const VERSION: i32 = Status::DLRS_VERSION as i32;
    const FLAGS: i32 = Status::DLRS_FLAGS as i32;
    const DTYPE_CODE: i32 = Status::DLRS_DTYPE_CODE as i32;
    const DTYPE_BITS: i32 = Status::DLRS_DTYPE_BITS as i32;
    const DTYPE_LANES: i32 = Status::DLRS_DTYPE_LANES as i32;
    const DEVICE_TYPE: i32 = Status::DLRS_DEVICE_TYPE as i32;
    const DEVICE_ID: i32 = Status::DLRS_DEVICE_ID as i32;
    const STRIDES_UNEVEN: i32 = Status::DLRS_STRIDES_UNEVEN as i32;
    const SHAPE_MISMATCH: i32 = Status::DLRS_SHAPE_MISMATCH as i32;
    const DTYPE_MISMATCH: i32 = Status::DLRS_DTYPE_MISMATCH as i32;
    const NOT_VIEWABLE: i32 = Status::DLRS_NOT_VIEWABLE as i32;
    const CALLBACK: i32 = Status::DLRS_CALLBACK as i32;
    match (status, status / 100) {
        (VERSION | FLAGS | DTYPE_CODE | DTYPE_BITS | DTYPE_LANES, _) => c"BufferError",
        (DEVICE_TYPE | DEVICE_ID | STRIDES_UNEVEN, _) => c"BufferError",
        (SHAPE_MISMATCH | NOT_VIEWABLE, _) => c"ValueError",
        (DTYPE_MISMATCH, _) => c"TypeError",
        (CALLBACK, _) => c"RuntimeError",
        (_, 3 | 5) => c"BufferError",
        (_, 4) => c"MemoryError",
        (_, 1 | 2) => c"ValueError",
        _ => c"RuntimeError",
    }
}

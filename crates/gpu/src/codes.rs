//! The drivers' error codes. Codes that both vendors define have the same values.
#![forbid(unsafe_code)]

use super::vendor::Vendor;
use crate::error::{Error, Status::*};

/// Work is not done yet.
pub const NOT_READY: i32 = 600; // CUDA_ERROR_NOT_READY, hipErrorNotReady
/// No such device; some drivers return it for two devices without peer access.
pub const INVALID_DEVICE: i32 = 101;
/// An argument is invalid.
pub const INVALID_VALUE: i32 = 1;

/// The error of a code from a running driver.
pub fn error(vendor: Vendor, code: i32) -> Error {
    let (status, words) = match code {
        1 => (DLRS_BAD_ARG, "the driver refuses a value"),
        2 => (DLRS_DEV_OOM, ""),
        3 => (DLRS_DRV_INIT, "the driver is not started"),
        4 => (DLRS_SHUTDOWN, ""),
        34 => (DLRS_DRV_STUB, ""),
        35 => (DLRS_DRV_OLD, ""),
        46 => (DLRS_DRV_INIT, "the device is busy or may not be used"),
        100 => (DLRS_NO_DEVICE, ""),
        101 if vendor == Vendor::Rocm => (DLRS_NO_DEVICE, ""),
        101 => (DLRS_DEVICE_ID, "the driver does not know the device"),
        217 | 704 | 705 | 711 => (DLRS_PEER, ""),
        200 | 209 | 218 | 221..=224 | 300..=303 | 500 | 701 | 703 | 720 => (DLRS_LAUNCH, ""),
        201 | 214 | 220 | 709 => (DLRS_CTX_LOST, ""),
        400 => (DLRS_STREAM, "the driver does not know the stream or event"),
        700 | 702 | 710 | 714..=719 => (DLRS_ASYNC_FAULT, ""),
        712 => (DLRS_BAD_ARG, "the memory is registered already"),
        713 => (DLRS_BAD_ARG, "the memory is not registered"),
        800 => (DLRS_UNSUPPORTED, "the driver does not permit it"),
        801 => (DLRS_UNSUPPORTED, "the driver or device does not support it"),
        304 => (DLRS_DRV_INIT, "a call of the operating system failed in the driver"),
        102 | 802..=804 => (DLRS_DRV_INIT, "the driver or device is not ready"),
        805 => (DLRS_DRV_INIT, "the MPS client could not connect to the MPS control daemon"),
        806 => (DLRS_DRV_INIT, "the MPS client could not reach the MPS server"),
        807 => (DLRS_DRV_INIT, "the MPS server is not ready for new clients"),
        808 => (DLRS_DRV_INIT, "the MPS server has as many clients as it can have"),
        809 => (DLRS_DRV_INIT, "the MPS server has as many connections as it can have"),
        810 => (DLRS_CTX_LOST, "the MPS server has ended this client"),
        811 | 812 => (DLRS_UNSUPPORTED, "the device has no dynamic parallelism of this version"),
        900..=907 => (DLRS_CAPTURING, ""),
        _ => (DLRS_INTERNAL, "the driver answers with an unexpected code"),
    };
    Error::new(status).driver(code).detail(words)
}

/// The error to report for one that occurred while starting the driver.
pub fn starting(vendor: Vendor, error: Error) -> Error {
    match (error.driver_code(), error.status()) {
        (0, _) | (_, DLRS_NO_DEVICE | DLRS_SHUTDOWN | DLRS_DRV_STUB | DLRS_DRV_OLD) => error,
        (101, _) if vendor == Vendor::Rocm => error,
        (code, _) => Error::new(DLRS_DRV_INIT).driver(code),
    }
}

//! Replaces `gpu` in builds without CUDA and ROCm.

use core::ffi::c_char;

use super::backend::Backend;
use super::registry;
use crate::abi::DeviceCode;
use crate::error::Result;

/// The backend of a kind of device: none.
pub fn of(_: DeviceCode) -> Option<&'static dyn Backend> {
    None
}

/// Returns an error: there is no driver.
///
/// # Safety
/// None is needed.
pub unsafe fn set_path(device_type: DeviceCode, _: *const c_char) -> Result<()> {
    Err(registry::no_driver(device_type))
}

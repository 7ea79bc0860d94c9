//! The backend of each device type: a registered one, else one of the library's.

use core::ffi::c_char;

use crate::abi::{DLDeviceType, DLDeviceType::*, DeviceCode};
use crate::backend::Backend;
use crate::error::{Error, Field::*, Result, Status::*};
use crate::gpu;
use crate::host::Host;
use crate::per_kind::{PerKind, unknown};
use crate::plugged::{Plugged, dlrs_backend};

static REGISTERED: PerKind<Plugged> = PerKind::new();

/// The registered backend of a device type.
pub fn registered(device_type: DeviceCode) -> Option<&'static Plugged> {
    REGISTERED.get(device_type)
}

/// The library's own backend for a device type.
fn own(device_type: DeviceCode) -> Option<&'static dyn Backend> {
    match device_type {
        code if code == kDLCPU as DeviceCode => Some(&Host),
        code => gpu::of(code),
    }
}

/// The backend `registered`, or the library's own, if there is one.
pub fn of(
    device_type: DeviceCode,
    registered: Option<&'static Plugged>,
) -> Option<&'static dyn Backend> {
    match registered {
        Some(plugged) => Some(plugged),
        None => own(device_type),
    }
}

/// The backend of a device type, if any.
pub fn find(device_type: DeviceCode) -> Option<&'static dyn Backend> {
    of(device_type, registered(device_type))
}

/// The backend of a device type; else an error.
pub fn required(device_type: DeviceCode) -> Result<&'static dyn Backend> {
    find(device_type).ok_or_else(|| unserved(device_type))
}

/// A device type has no backend.
#[cold]
pub fn unserved(device_type: DeviceCode) -> Error {
    lacking(device_type, "no backend serves this kind of device\0Set one, or use another device.")
}

/// Sets the driver's file to load for a device type: [`gpu::set_path`].
///
/// # Safety
/// `path` is NULL or a string that is never freed.
pub unsafe fn set_driver_path(device_type: DeviceCode, path: *const c_char) -> Result<()> {
    // SAFETY: `path` is NULL or a string that is never freed.
    unsafe { gpu::set_path(device_type, path) }.unwrap_or_else(|| Err(no_driver(device_type)))
}

/// No driver is loaded for a device type.
#[cold]
fn no_driver(device_type: DeviceCode) -> Error {
    lacking(device_type, "no driver is loaded for this kind\0Use CUDA, ROCm or their kinds.")
}

/// Device types whose backend this build lacks, and the remedy.
const LEFT_OUT: &[([DLDeviceType; 3], &str)] = &[
    #[cfg(not(feature = "cuda"))]
    (
        [kDLCUDA, kDLCUDAHost, kDLCUDAManaged],
        "this library was built without CUDA\0Build it with the feature cuda, or set a backend.",
    ),
    #[cfg(not(feature = "rocm"))]
    (
        [kDLROCM, kDLROCMHost, kDLROCMHost],
        "this library was built without ROCm\0Build it with the feature rocm, or set a backend.",
    ),
];

fn lacking(device_type: DeviceCode, otherwise: &'static str) -> Error {
    let is = |&of: &DLDeviceType| of as DeviceCode == device_type;
    let left_out = LEFT_OUT.iter().find(|(types, _)| types.iter().any(is));
    let error = Error::new(DLRS_DEVICE_TYPE).field(DLRS_FIELD_DEVICE_TYPE);
    error.value(device_type.into()).detail(left_out.map_or(otherwise, |&(_, words)| words))
}

/// Registers a backend, read from the caller's struct, for a device type, or none; returns the
/// address of the previous struct.
pub fn register(
    device_type: DeviceCode,
    new: Option<(*mut dlrs_backend, &dlrs_backend)>,
) -> Result<*mut dlrs_backend> {
    if device_type == kDLCPU as DeviceCode {
        const OWN: &str = "the CPU's backend is the library's own\0Set one for another type.";
        return Err(unknown(device_type).detail(OWN));
    }
    let plugged = new.map(|(given, table)| (given.cast(), Plugged(*table)));
    let new = plugged.as_ref().map(|(given, table)| (*given, table));
    REGISTERED.set(device_type, new).map(<*mut Plugged>::cast)
}

//! Which backend serves which kind of device: one that was registered, else one of the library's.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::*};

use super::backend::Backend;
use super::gpu;
use super::host::Host;
use super::plugged::{Plugged, dlrs_backend};
use crate::abi::{DLDeviceType::*, DeviceCode};
use crate::device_type;
use crate::error::{Error, Field::*, Result, Status::*};

/// Registered backends by code of the device type.
static REGISTERED: [AtomicPtr<dlrs_backend>; 32] = [const { AtomicPtr::new(null_mut()) }; 32];

fn slot(device_type: DeviceCode) -> Option<&'static AtomicPtr<dlrs_backend>> {
    usize::try_from(device_type).ok().and_then(|code| REGISTERED.get(code))
}

/// The registered backend of a device type, or NULL.
pub fn registered(device_type: DeviceCode) -> *mut dlrs_backend {
    slot(device_type).map_or(null_mut(), |slot| slot.load(Acquire))
}

/// The library's own backend for a device type.
fn own(device_type: DeviceCode) -> Option<&'static dyn Backend> {
    match device_type {
        code if code == kDLCPU as DeviceCode => Some(&Host),
        code => gpu::of(code).map(|gpu| gpu as &dyn Backend),
    }
}

/// The backend that `table` is, or the library's own for NULL.
pub fn backend_of(
    device_type: DeviceCode,
    table: *const dlrs_backend,
) -> Option<&'static dyn Backend> {
    // SAFETY: `register` was promised that the table stays.
    match unsafe { table.cast::<Plugged>().as_ref() } {
        Some(plugged) => Some(plugged),
        None => own(device_type),
    }
}

/// The backend that serves a device type, if any does.
pub fn find(device_type: DeviceCode) -> Option<&'static dyn Backend> {
    backend_of(device_type, registered(device_type))
}

/// The backend that serves a device type; without one, says so.
pub fn required(device_type: DeviceCode) -> Result<&'static dyn Backend> {
    find(device_type).ok_or_else(|| {
        let error = Error::new(DLRS_DEVICE_TYPE).field(DLRS_FIELD_DEVICE_TYPE);
        error.value(device_type.into()).detail("no backend serves this kind of device")
    })
}

/// Registers a backend for a device type, or none with NULL; returns the one before.
pub fn register(device_type: DeviceCode, table: *mut dlrs_backend) -> Result<*mut dlrs_backend> {
    let takes = device_type::known(device_type) && device_type != kDLCPU as DeviceCode;
    match slot(device_type) {
        Some(slot) if takes => Ok(slot.swap(table, AcqRel)),
        _ => {
            let error = Error::new(DLRS_DEVICE_TYPE).field(DLRS_FIELD_DEVICE_TYPE);
            Err(error.value(device_type.into()))
        }
    }
}

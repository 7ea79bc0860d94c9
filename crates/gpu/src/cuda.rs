//! CUDA only: contexts, and CUDA's descriptions of pitched copies and pointers.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::*;

use super::codes::INVALID_VALUE;
use super::driver::Driver;
use super::vendor::{Memory, Ptr};
use crate::error::{Error, Result, Status::*};

const MEMORY_TYPE: i32 = 2; // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
const DEVICE_POINTER: i32 = 3; // CU_POINTER_ATTRIBUTE_DEVICE_POINTER
const IS_MANAGED: i32 = 8; // CU_POINTER_ATTRIBUTE_IS_MANAGED
const DEVICE_ORDINAL: i32 = 9; // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
const RANGE_START: i32 = 11; // CU_POINTER_ATTRIBUTE_RANGE_START_ADDR
const MEMPOOL_HANDLE: i32 = 17; // CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE
const MEMORY_HOST: u32 = 1; // CU_MEMORYTYPE_HOST

/// The primary context of a device: retained on first use and never released.
pub fn primary(driver: &Driver, ordinal: i32) -> Result<Ptr> {
    let device = driver.device(ordinal)?;
    let known = device.context.load(Acquire);
    if !known.is_null() {
        return Ok(known);
    }
    let handle = driver.handle(ordinal)?;
    let mut context = null_mut();
    // SAFETY: a device's number, and a valid output pointer.
    unsafe { driver.cu_primary_retain(&mut context, handle)? };
    if context.is_null() {
        return Err(Error::new(DLRS_INTERNAL).detail("the driver returned no context"));
    }
    match device.context.compare_exchange(null_mut(), context, AcqRel, Acquire) {
        Ok(_) => Ok(context),
        Err(known) => {
            // SAFETY: retained by this call; the reference of another thread remains.
            let _ = unsafe { driver.cu_primary_release(handle) };
            Ok(known)
        }
    }
}

/// A primary context of any device: one that is kept, else an active one's, else the first to be
/// had. Activating another one takes memory of a device that the process may not use.
pub fn any_primary(driver: &Driver) -> Result<Ptr> {
    let all = 0..driver.count()?;
    let kept = |&ordinal: &i32| {
        driver.device(ordinal).is_ok_and(|device| !device.context.load(Acquire).is_null())
    };
    let active = |&ordinal: &i32| is_active(driver, ordinal).unwrap_or(false);
    match all.clone().find(kept).or_else(|| all.clone().find(active)) {
        Some(ordinal) => primary(driver, ordinal),
        None => primary(driver, 0).or_else(|error| {
            all.skip(1).find_map(|ordinal| primary(driver, ordinal).ok()).ok_or(error)
        }),
    }
}

fn is_active(driver: &Driver, ordinal: i32) -> Result<bool> {
    let (mut flags, mut active) = (0, 0);
    // SAFETY: valid output pointers.
    unsafe { driver.cu_primary_state(driver.handle(ordinal)?, &mut flags, &mut active)? };
    Ok(active != 0)
}

/// Whether a context is the one that [`primary`] retains for a device, without calling the driver.
pub fn is_kept(driver: &Driver, ordinal: i32, context: Ptr) -> bool {
    let device = driver.device(ordinal);
    device.is_ok_and(|device| !context.is_null() && device.context.load(Acquire) == context)
}

/// The device for which [`primary`] retains this context, if any.
pub fn kept_for(driver: &Driver, context: Ptr) -> Option<i32> {
    (0..driver.count().ok()?).find(|&ordinal| is_kept(driver, ordinal, context))
}

/// Whether a context is the primary one of its device, which is then retained. An inactive primary
/// context is not activated.
pub fn is_primary(driver: &Driver, ordinal: i32, context: Ptr) -> Result<bool> {
    let kept = !driver.device(ordinal)?.context.load(Acquire).is_null();
    if !kept && !is_active(driver, ordinal)? {
        return Ok(false);
    }
    Ok(primary(driver, ordinal)? == context)
}

/// An attribute of memory; `None`: it is unknown to the driver, or has none.
///
/// # Safety
/// `T` has the attribute's size.
unsafe fn attribute<T>(
    driver: &Driver,
    which: i32,
    data: *const c_void,
    mut value: T,
) -> Result<Option<T>> {
    // SAFETY: an output pointer of the attribute's size.
    match unsafe { driver.cu_pointer((&raw mut value).cast(), which, data) } {
        Err(error) if error.driver_code() == INVALID_VALUE => Ok(None),
        answer => answer.map(|()| Some(value)),
    }
}

/// An attribute that is an address or a handle.
fn address(driver: &Driver, which: i32, data: *const c_void) -> Result<Option<Ptr>> {
    // SAFETY: these attributes have the size of a pointer.
    let found = unsafe { attribute(driver, which, data, null_mut())? };
    Ok(found.filter(|found: &Ptr| !found.is_null()))
}

/// The kind and the device of memory; `None`: unknown to the driver.
pub fn pointer(driver: &Driver, data: *const c_void) -> Result<Option<(Memory, i32)>> {
    let (mut managed, mut ordinal) = (0u32, 0i32);
    // SAFETY: numbers of 32 bits; IS_MANAGED is a bool or an int.
    let kind = unsafe {
        // The driver may not know the memory, but knows all of what it knows.
        let Some(kind) = attribute(driver, MEMORY_TYPE, data, 0u32)? else { return Ok(None) };
        driver.cu_pointer((&raw mut ordinal).cast(), DEVICE_ORDINAL, data)?;
        driver.cu_pointer((&raw mut managed).cast(), IS_MANAGED, data)?;
        kind
    };
    // The reported kind of managed memory is host or device, independent of its location.
    let memory = match kind {
        _ if managed != 0 => Memory::Managed,
        MEMORY_HOST => Memory::Pinned,
        _ => Memory::Device,
    };
    Ok(Some((memory, ordinal)))
}

/// The device of memory, by one query; `None`: unknown to the driver.
pub fn ordinal(driver: &Driver, data: *const c_void) -> Result<Option<i32>> {
    // SAFETY: the attribute is an int.
    unsafe { attribute(driver, DEVICE_ORDINAL, data, -1i32) }
}

/// The address by which kernels of the current context access memory; `None`: they cannot.
pub fn device_address(driver: &Driver, data: *const c_void) -> Result<Option<*const c_void>> {
    Ok(address(driver, DEVICE_POINTER, data)?.map(Ptr::cast_const))
}

/// Where the allocation or registration of memory starts; `None`: unknown to the driver.
pub fn range_start(driver: &Driver, data: *const c_void) -> Result<Option<*const c_void>> {
    Ok(address(driver, RANGE_START, data)?.map(Ptr::cast_const))
}

/// Whether memory came from a pool; freeing it does not synchronize.
pub fn pooled(driver: &Driver, data: *const c_void) -> bool {
    address(driver, MEMPOOL_HANDLE, data).is_ok_and(|pool| pool.is_some())
}

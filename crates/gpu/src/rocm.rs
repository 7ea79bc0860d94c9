//! HIP only: a current device instead of contexts, and HIP's pointer attributes.

use core::ffi::c_void;

use super::codes::INVALID_VALUE;
use super::driver::Driver;
use super::structs::{Attributes, Properties};
use super::vendor::Memory;
use crate::error::{Result, Status::*};

/// The direction of a copy follows from the addresses.
pub const BY_ADDRESS: i32 = 4; // hipMemcpyDefault

const ROCM_6: i32 = 60_000_000;

/// The properties of the current device.
pub fn properties(driver: &Driver) -> Result<Properties> {
    let (mut it, mut device) = (Properties([0; 4096]), 0);
    // SAFETY: valid output pointers, to a struct that is larger than any version's.
    unsafe {
        driver.get_device(&mut device)?;
        match driver.hip_properties(&mut it, device) {
            Err(error) if error.status() == DLRS_DRV_SYMBOL => {
                driver.hip_properties_5(&mut it, device)?;
            }
            answer => answer?,
        }
    }
    Ok(it)
}

/// The kind and the device of memory; `None`: unknown to the runtime.
pub fn pointer(driver: &Driver, data: *const c_void) -> Result<Option<(Memory, i32)>> {
    Ok(attributes(driver, data)?.map(|(memory, it)| (memory, it.device)))
}

/// The address by which kernels access memory; `None`: they cannot. In some versions the runtime's
/// two addresses are those of the allocation's start.
pub fn device_address(driver: &Driver, data: *const c_void) -> Result<Option<*const c_void>> {
    Ok(attributes(driver, data)?.and_then(|(memory, it)| match memory {
        _ if it.device < 0 => None,
        Memory::Pinned => it.device_pointer.map(|there| {
            let here = it.host_pointer.unwrap_or(there);
            data.wrapping_byte_add(there.addr().get().wrapping_sub(here.addr().get()))
        }),
        _ => Some(data),
    }))
}

fn attributes(driver: &Driver, data: *const c_void) -> Result<Option<(Memory, Attributes)>> {
    let mut it = Attributes { kind: -1, device: -1, ..Attributes::default() };
    // SAFETY: an output struct that is large enough.
    match unsafe { driver.hip_pointer(&mut it, data) } {
        Err(error) if error.driver_code() == INVALID_VALUE => return Ok(None),
        answer => answer?,
    }
    // hipMemoryType: host, device, managed.
    let kinds = if driver.version() < ROCM_6 { [0, 1, 4] } else { [1, 2, 3] };
    let memory = match kinds.iter().position(|&kind| kind == it.kind) {
        _ if it.is_managed != 0 => Memory::Managed,
        Some(0) => Memory::Pinned,
        Some(1) => Memory::Device,
        Some(_) => Memory::Managed,
        None => return Ok(None),
    };
    Ok(Some((memory, it)))
}

//! A vendor's devices, by the kinds that DLPack has.

use core::ffi::c_char;

use super::context::Current;
use super::driver::Driver;
use super::vendor::{Memory, Vendor};
use crate::abi::{DLDevice, DLDeviceType, DLDeviceType::*, DeviceCode};
use crate::error::{Error, Result, Status::*};
use dlpack_device::backend::{Backend, Stream};

/// A vendor's devices.
pub struct Gpu(pub(super) Driver);

/// The vendors that are built in.
static VENDORS: [Gpu; cfg!(feature = "cuda") as usize + cfg!(feature = "rocm") as usize] = [
    #[cfg(feature = "cuda")]
    Gpu(Driver::new(Vendor::Cuda, crate::platform::CUDA, {
        static KEPT: super::driver::Kept = super::driver::Kept::new();
        &KEPT
    })),
    #[cfg(feature = "rocm")]
    Gpu(Driver::new(Vendor::Rocm, crate::platform::HIP, {
        static KEPT: super::driver::Kept = super::driver::Kept::new();
        &KEPT
    })),
];

fn vendor(device_type: DeviceCode) -> Option<&'static Gpu> {
    VENDORS.iter().find(|gpu| gpu.memory(device_type).is_some())
}

/// The backend of a device type, if it is one of these.
pub fn of(device_type: DeviceCode) -> Option<&'static dyn Backend> {
    vendor(device_type).map(|gpu| gpu as &dyn Backend)
}

/// Sets the driver's file to load for a device type, in place of the system's; NULL for the
/// system's. An error once the driver is loaded; `None` if no driver serves the type.
///
/// # Safety
/// `path` is NULL or a string that is never freed.
pub unsafe fn set_path(device_type: DeviceCode, path: *const c_char) -> Option<Result<()>> {
    // SAFETY: `path` is NULL or a string that is never freed.
    vendor(device_type).map(|gpu| match unsafe { gpu.0.set_path(path) } {
        true => Ok(()),
        false => Err(Error::new(DLRS_BAD_ARG)
            .detail("the driver is loaded already\0Set the path before any other call.")),
    })
}

impl Gpu {
    /// The kind of memory of a device type; `None`: not of this vendor.
    pub(super) fn memory(&self, device_type: DeviceCode) -> Option<Memory> {
        const fn is(known: DLDeviceType) -> DeviceCode {
            known as DeviceCode
        }
        let (device, pinned, managed) = match self.0.vendor() {
            Vendor::Cuda => (is(kDLCUDA), is(kDLCUDAHost), is(kDLCUDAManaged)),
            // Without a type of its own for managed memory: see `device`.
            Vendor::Rocm => (is(kDLROCM), is(kDLROCMHost), is(kDLROCMHost)),
        };
        match device_type {
            code if code == device => Some(Memory::Device),
            code if code == pinned => Some(Memory::Pinned),
            code if code == managed => Some(Memory::Managed),
            _ => None,
        }
    }

    /// The device for a kind of memory.
    pub(super) fn device(&self, memory: Memory, ordinal: i32) -> DLDevice {
        let (code, device_id) = match (memory, self.0.vendor()) {
            (Memory::Device, Vendor::Cuda) => (kDLCUDA, ordinal),
            (Memory::Pinned, Vendor::Cuda) => (kDLCUDAHost, 0),
            (Memory::Managed, Vendor::Cuda) => (kDLCUDAManaged, 0),
            (Memory::Pinned, Vendor::Rocm) => (kDLROCMHost, 0),
            // DLPack has no device type for ROCm's managed memory, which its devices access as
            // device memory.
            (Memory::Device | Memory::Managed, Vendor::Rocm) => (kDLROCM, ordinal),
        };
        DLDevice { device_type: code as DeviceCode, device_id }
    }

    /// Makes a device current; any device for pinned and managed memory.
    pub(super) fn enter(&self, device: DLDevice, stream: Stream) -> Result<Current<'_>> {
        let exact = self.memory(device.device_type) == Some(Memory::Device);
        self.0.enter(exact.then_some(device.device_id), stream)
    }
}

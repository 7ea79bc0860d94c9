//! CUDA and ROCm: one backend over two similar drivers.
//!
//! ```text
//!   backend  │ the trait Backend: makes the device current, calls the driver
//!   order    │ dependencies of streams: marks, other streams
//!   copy     │ strategies of copies: the driver's copies, kernels, pinned buffers; runs: several
//!            │ copies by one call
//!   memory   │ allocation, queries of addresses
//!   context  │ the current context or device, changed and restored
//!   driver   │ the library, its functions by both vendors' names; codes: error codes
//!   launch   │ loads and launches kernels; kernels.rs selects them; hiprtc compiles for ROCm;
//!            │ packed unpacks their text
//!   stage    │ staging through pinned buffers, by several threads
//!   peers    │ strided copies between two devices, compact on one of them
//!   cuda, rocm  vendor-specific code
//! ```
//! No library is loaded before a function of a device is called. After a failure the next call
//! tries again. The driver is started once; in a process forked later every call returns an error.
//!
//! CUDA's context is the caller's current one if it is the device's, that of the stream if there is
//! a stream, else the device's primary one, which is retained on first use and never released.
//! Every call restores the previous context.
//!
//! Calls that would break a stream's capture return an error first; contiguous copies and kernels
//! are captured. Waits, queries and allocations also break other threads' captures, except in the
//! relaxed mode ([`Driver::relaxed`]).
//!
//! Copies never enable peer access: it would change the caller's contexts. Contiguous copies
//! between two devices use the driver's peer copy, which is direct if the caller enabled peer
//! access, else through the host. Kernels access the current device's memory only, by the addresses
//! that the driver reports for it.
//!
//! Kernels, stored buffers and several threads are used in primary contexts only: in the caller's
//! other contexts, strided copies go through host memory. CUDA's green contexts, which are current
//! to one thread only, use the primary context's kernels.
//!
//! CUDA was run on an H200 and an H100 (docs/devices.md), ROCm on stand-in drivers only.
//!
//! May use: `device`. Used by: `tensor::registry`, which asks [`of`].
#![no_std]

#[cfg(test)]
extern crate std;

pub use dlpack_device::{abi, array, cpu, error, nest, pieces, plan, platform};

mod backend;
pub mod codes;
mod context;
mod copy;
mod cuda;
pub mod driver;
mod hiprtc;
pub mod kernels;
mod launch;
pub mod launches;
mod memory;
mod order;
pub mod packed;
mod peers;
mod rocm;
mod runs;
mod stage;

use core::ffi::{c_char, c_void};
use core::ptr::NonNull;

use self::driver::{Driver, Vendor};
use crate::abi::{DLDevice, DLDeviceType, DLDeviceType::*, DeviceCode};
use crate::error::{Error, Result, Status::*};
use dlpack_device::backend::{Backend, Stream};

/// A vendor's devices.
pub struct Gpu(Driver);

/// The vendors that are built in.
static VENDORS: [Gpu; cfg!(feature = "cuda") as usize + cfg!(feature = "rocm") as usize] = [
    #[cfg(feature = "cuda")]
    Gpu(Driver::new(Vendor::Cuda, platform::CUDA, {
        static KEPT: driver::Kept = driver::Kept::new();
        &KEPT
    })),
    #[cfg(feature = "rocm")]
    Gpu(Driver::new(Vendor::Rocm, platform::HIP, {
        static KEPT: driver::Kept = driver::Kept::new();
        &KEPT
    })),
];

const DISABLE_TIMING: u32 = 2; // CU_EVENT_DISABLE_TIMING, hipEventDisableTiming

/// Kinds of memory of a vendor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// Device memory.
    Device,
    /// Page-locked host memory.
    Pinned,
    /// Memory that the driver migrates.
    Managed,
}

/// A 2D copy: rows of bytes, a pitch apart.
pub struct Pitched {
    /// First row of the source.
    pub src: *const u8,
    /// Bytes from row to row of the source.
    pub src_pitch: usize,
    /// First row of the destination.
    pub dst: *mut u8,
    /// Bytes from row to row of the destination.
    pub dst_pitch: usize,
    /// Bytes of a row.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
}

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
    // SAFETY: guaranteed by the caller.
    vendor(device_type).map(|gpu| match unsafe { gpu.0.set_path(path) } {
        true => Ok(()),
        false => Err(Error::new(DLRS_BAD_ARG)
            .detail("the driver is loaded already\0Set the path before any other call.")),
    })
}

impl Gpu {
    /// The kind of memory of a device type; `None`: not of this vendor.
    fn memory(&self, device_type: DeviceCode) -> Option<Memory> {
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
    fn device(&self, memory: Memory, ordinal: i32) -> DLDevice {
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
    fn enter(&self, device: DLDevice, stream: Stream) -> Result<context::Current<'_>> {
        let exact = self.memory(device.device_type) == Some(Memory::Device);
        self.0.enter(exact.then_some(device.device_id), stream)
    }
}

fn given(handle: *mut c_void) -> Result<NonNull<c_void>> {
    let nothing =
        Error::new(DLRS_INTERNAL).detail("the driver reports success and returns nothing");
    NonNull::new(handle).ok_or(nothing)
}

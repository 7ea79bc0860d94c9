//! CUDA and ROCm: one backend over two drivers that hardly differ.
//!
//! ```text
//!   backend  │ the trait Backend: enters the device, asks the driver
//!   order    │ what a stream comes after: marks, other streams
//!   copy     │ which way a copy goes: the driver's copies, kernels, pinned buffers
//!   memory   │ allocation, what the driver knows about addresses
//!   context  │ the current context or device, changed and put back
//!   driver   │ the library, its functions by both vendors' names; codes: what they answer
//!   launch   │ kernels loaded and launched; kernels.rs chooses them; hiprtc compiles for ROCm;
//!            │ packed keeps their text small
//!   stage    │ pinned buffers between a device and pageable memory, by several threads
//!   peers    │ strided copies between two devices, by what is compact on one of them
//!   cuda, rocm  what only one of them has
//! ```
//! No library is loaded before a function of a device is called. What fails then is tried again by
//! the next call. The driver is started once; in a process forked later every call is refused.
//!
//! CUDA's context is the caller's current one if it is the device's, that of the stream if there is
//! a stream, else the device's primary one, which is retained when it is first needed and kept.
//! What was current before a call is current after it.
//!
//! A stream that is being captured is refused before anything breaks the capture; contiguous copies
//! and kernels on it, asynchronous, are captured. What waits, asks or allocates breaks other
//! threads' captures too, unless it is done in the relaxed mode ([`Driver::relaxed`]).
//!
//! Peer access is never enabled here: it would change the caller's contexts. Contiguous copies
//! between two devices are given to the driver's call that names both, which copies directly where
//! the caller enabled it, and through the host elsewhere; kernels touch the current device's memory
//! only, by the addresses that the driver names for it.
//!
//! Kernels and kept buffers live in primary contexts only, and only there several threads work: in
//! a context of the caller's own, strided copies go through host memory. Green contexts of CUDA,
//! which are current to one thread only, take kernels from the primary one.
//!
//! CUDA was run on an H200 and an H100 (docs/devices.md), ROCm on stand-in drivers only.

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
mod stage;

use core::ffi::{c_char, c_void};
use core::ptr::NonNull;

use self::driver::{Driver, Kept, Vendor};
use super::backend::{Backend, Lack, Stream, unsupported};
use super::registry;
use crate::abi::{DLDevice, DLDeviceType, DLDeviceType::*, DeviceCode};
use crate::error::{Error, Result, Status::*};
use crate::platform;

/// A vendor's devices.
pub struct Gpu(Driver);

/// The vendors that are built in.
static VENDORS: [Gpu; cfg!(feature = "cuda") as usize + cfg!(feature = "rocm") as usize] = [
    #[cfg(feature = "cuda")]
    Gpu(Driver::new(Vendor::Cuda, platform::CUDA, {
        static KEPT: Kept = Kept::new();
        &KEPT
    })),
    #[cfg(feature = "rocm")]
    Gpu(Driver::new(Vendor::Rocm, platform::HIP, {
        static KEPT: Kept = Kept::new();
        &KEPT
    })),
];

const DISABLE_TIMING: u32 = 2; // CU_EVENT_DISABLE_TIMING, hipEventDisableTiming

/// Kinds of memory of a vendor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// A device's own.
    Device,
    /// The host's, page-locked.
    Pinned,
    /// The driver moves it.
    Managed,
}

/// Rows of bytes, a pitch apart.
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

/// The backend of a kind of device, if it is one of these.
pub fn of(device_type: DeviceCode) -> Option<&'static dyn Backend> {
    vendor(device_type).map(|gpu| gpu as &dyn Backend)
}

/// The driver's file to load for a kind of device, in place of those that the system knows; NULL
/// for those. Refused once the driver is loaded.
///
/// # Safety
/// `path` is NULL or a text that stays.
pub unsafe fn set_path(device_type: DeviceCode, path: *const c_char) -> Result<()> {
    let Some(gpu) = vendor(device_type) else { return Err(registry::no_driver(device_type)) };
    // SAFETY: guaranteed by the caller.
    match unsafe { gpu.0.set_path(path) } {
        true => Ok(()),
        false => Err(Error::new(DLRS_BAD_ARG).detail("the driver is loaded already")),
    }
}

impl Gpu {
    /// The kind of memory that a device's type stands for; `None`: not of this vendor.
    fn memory(&self, device_type: DeviceCode) -> Option<Memory> {
        const fn is(known: DLDeviceType) -> DeviceCode {
            known as DeviceCode
        }
        let (device, pinned, managed) = match self.0.vendor() {
            Vendor::Cuda => (is(kDLCUDA), is(kDLCUDAHost), is(kDLCUDAManaged)),
            Vendor::Rocm => (is(kDLROCM), is(kDLROCMHost), -1),
        };
        match device_type {
            code if code == device => Some(Memory::Device),
            code if code == pinned => Some(Memory::Pinned),
            code if code == managed => Some(Memory::Managed),
            _ => None,
        }
    }

    /// The type for a kind of memory.
    fn device(&self, memory: Memory, ordinal: i32) -> DLDevice {
        let (code, device_id) = match (memory, self.0.vendor()) {
            (Memory::Device, Vendor::Cuda) => (kDLCUDA, ordinal),
            (Memory::Pinned, Vendor::Cuda) => (kDLCUDAHost, 0),
            (Memory::Managed, Vendor::Cuda) => (kDLCUDAManaged, 0),
            (Memory::Pinned, Vendor::Rocm) => (kDLROCMHost, 0),
            // DLPack has no name for ROCm's managed memory, which its devices reach as their own.
            (Memory::Device | Memory::Managed, Vendor::Rocm) => (kDLROCM, ordinal),
        };
        DLDevice { device_type: code as DeviceCode, device_id }
    }

    /// The number of a device that has memory of its own.
    fn ordinal(&self, device: DLDevice) -> Result<i32> {
        match self.memory(device.device_type) {
            Some(Memory::Device) => Ok(device.device_id),
            _ => unsupported(Lack::PEERS),
        }
    }

    /// Makes a device current; any will do for pinned and managed memory.
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

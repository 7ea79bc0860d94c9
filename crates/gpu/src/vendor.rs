//! The two vendors, and what both have: kinds of memory, handles, copies of rows.
#![forbid(unsafe_code)]

use core::ffi::c_void;
use core::ptr::NonNull;

use crate::error::{Error, Result, Status::*};

/// A pointer parameter of the drivers: address, handle, pointer to a handle.
pub type Ptr = *mut c_void;

/// The vendors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    /// NVIDIA, by the driver API.
    Cuda,
    /// AMD, by HIP.
    Rocm,
}

impl Vendor {
    /// The oldest supported driver: CUDA OLDC, ROCm 5.0.
    pub fn oldest(self) -> i32 {
        match self {
            Vendor::Cuda => 11000,
            Vendor::Rocm => 50_000_000,
        }
    }
}

/// An event without time stamps.
pub const DISABLE_TIMING: u32 = 2; // CU_EVENT_DISABLE_TIMING, hipEventDisableTiming

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

/// A handle that a driver has returned.
pub fn given(handle: *mut c_void) -> Result<NonNull<c_void>> {
    let nothing =
        Error::new(DLRS_INTERNAL).detail("the driver reports success and returns nothing");
    NonNull::new(handle).ok_or(nothing)
}

//! What is kept of each device between calls. All of it is zero at first.

use core::ffi::{CStr, c_char, c_void};
use core::ptr::{null_mut, without_provenance_mut};
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering::*};

use super::kernels::FAMILIES;
use super::vendor::Ptr;
use crate::error::{Error, Result, Status::*};

/// Stored staging buffers of a device.
pub const STAGES: usize = 16;
/// Maximum number of kernels of a device.
pub const KERNELS_MOST: usize = 24;

/// The state of a device.
pub struct Device {
    /// CUDA: the driver's device handle plus 1; 0 when not known.
    pub(super) handle: AtomicI32,
    /// CUDA: the primary context, retained once and never released.
    pub(super) context: AtomicPtr<c_void>,
    /// CUDA: the context last found not to be the primary one, or being queried.
    pub(super) asked: AtomicPtr<c_void>,
    /// CUDA: whether the CPU may access managed memory while the device works: 0 when not known, 1
    /// no, 2 yes.
    pub(super) shares_managed: AtomicI32,
    /// The modules of the kernels, one per family, in the primary context.
    pub(super) modules: [Module; FAMILIES],
    /// Its kernels.
    pub(super) kernels: [Kernel; KERNELS_MOST],
    /// Unused pinned staging buffers, or NULL.
    pub(super) stages: [AtomicPtr<c_void>; STAGES],
}

/// A kernel of a device: its name, and the driver's handle after its first use.
pub struct Kernel {
    name: AtomicPtr<c_char>,
    pub(super) function: AtomicPtr<c_void>,
}

impl Kernel {
    /// Whether this is the slot of a kernel; a free slot is claimed for it.
    pub fn is(&self, name: &'static CStr) -> bool {
        let mine = name.as_ptr().cast_mut();
        match self.name.compare_exchange(null_mut(), mine, AcqRel, Acquire) {
            Ok(_) => true,
            Err(other) => core::ptr::eq(other, mine),
        }
    }
}

/// The module with a family's kernels: not loaded yet, the driver's handle, or rejected by the
/// driver, which is permanent.
pub struct Module {
    handle: AtomicPtr<c_void>,
    refusal: AtomicI32,
}

/// Stored instead of a handle: rejected.
const REFUSED: usize = 1;

impl Module {
    /// The stored result.
    pub fn found(&self) -> Option<Result<Ptr>> {
        let handle = self.handle.load(Acquire);
        match handle.addr() {
            0 => None,
            REFUSED => {
                let error = Error::new(DLRS_UNSUPPORTED).driver(self.refusal.load(Relaxed));
                Some(Err(error
                    .detail("the driver has rejected the kernels before\0Install a newer driver.")))
            }
            _ => Some(Ok(handle)),
        }
    }

    /// Stores a result.
    pub fn keep(&self, found: &Result<Ptr>) {
        match found {
            Ok(handle) => self.handle.store(*handle, Release),
            // Other errors may be temporary.
            Err(error)
                if matches!(error.status(), DLRS_LAUNCH | DLRS_UNSUPPORTED | DLRS_DRV_SYMBOL) =>
            {
                self.refusal.store(error.driver_code(), Relaxed);
                self.handle.store(without_provenance_mut(REFUSED), Release);
            }
            Err(_) => {}
        }
    }
}

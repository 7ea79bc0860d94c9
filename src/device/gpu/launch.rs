//! Kernels: the module with them is loaded once per device, into its primary context.

use core::ffi::{CStr, c_char, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::*};

use super::context::Current;
use super::copy::Place;
use super::driver::{Device, Driver, Ptr, Vendor};
use super::hiprtc;
use super::kernels::{CUDA, ROCM};
use super::launches::Launches;
use crate::device::backend::{Lack, unsupported};
use crate::device::plan::Plan;
use crate::error::Result;

/// A kernel of a device: its name, and the driver's handle once somebody has asked for it.
pub struct Kernel {
    name: AtomicPtr<c_char>,
    function: AtomicPtr<c_void>,
}

impl Kernel {
    /// None yet.
    pub const fn new() -> Kernel {
        let function = AtomicPtr::new(null_mut());
        Kernel { name: AtomicPtr::new(null_mut()), function }
    }

    /// Whether this is the place of a kernel; one that is nobody's becomes it.
    fn is(&self, name: &'static CStr) -> bool {
        let mine = name.as_ptr().cast_mut();
        match self.name.compare_exchange(null_mut(), mine, AcqRel, Acquire) {
            Ok(_) => true,
            Err(other) => core::ptr::eq(other, mine),
        }
    }
}

impl Driver {
    /// Enqueues kernels that copy.
    ///
    /// # Safety
    /// The device reaches both sides, which stay until the stream has got here; the plan is
    /// simplified.
    pub(super) unsafe fn kernel(&self, plan: &Plan, place: &Place) -> Result<()> {
        if !place.here.is_primary()? {
            // A context of the caller's may go at any time, and the module with it.
            return unsupported(Lack::COPIES);
        }
        let device = self.device(place.here.ordinal)?;
        for mut launch in Launches::new(plan) {
            let function = self.function(device, launch.kernel)?;
            let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
            let mut argument: Ptr = (&raw mut launch.args).cast();
            // SAFETY: a kernel of ours and its only argument; the rest is the caller's word.
            unsafe {
                let arguments = &raw mut argument;
                let stream = place.stream;
                self.launch(function, gx, gy, gz, bx, by, bz, 0, stream, arguments, null_mut())?;
            }
        }
        Ok(())
    }

    /// Whether the current device can be given kernels.
    pub(super) fn has_kernels(&self, here: &Current) -> bool {
        let loaded = || self.module(self.device(here.ordinal)?);
        here.is_primary().is_ok_and(|primary| primary && loaded().is_ok())
    }

    fn function(&self, device: &Device, name: &'static CStr) -> Result<Ptr> {
        let place = device.kernels.iter().find(|kernel| kernel.is(name));
        let mut function = place.map_or(null_mut(), |kernel| kernel.function.load(Acquire));
        if function.is_null() {
            let module = self.module(device)?;
            // SAFETY: a module of ours; a place for the answer.
            unsafe { self.module_function(&mut function, module, name.as_ptr())? };
            if let Some(kernel) = place {
                kernel.function.store(function, Release);
            }
        }
        Ok(function)
    }

    fn module(&self, device: &Device) -> Result<Ptr> {
        let known = device.module.load(Acquire);
        if !known.is_null() {
            return Ok(known);
        }
        let _relaxed = self.relaxed();
        let mut module = null_mut();
        // SAFETY: an image for this driver; a place for the answer.
        unsafe {
            match self.vendor {
                Vendor::Cuda => self.module_load(&mut module, CUDA.text()?.as_ptr().cast())?,
                Vendor::Rocm => {
                    let code = hiprtc::compile(self, &ROCM.text()?)?;
                    self.module_load(&mut module, code.image())?;
                }
            }
        }
        let kept = device.module.compare_exchange(null_mut(), module, AcqRel, Acquire);
        kept.map(|_| module).or_else(|other| {
            // SAFETY: loaded above; another thread's is kept.
            let _ = unsafe { self.module_unload(module) };
            Ok(other)
        })
    }
}

//! Kernels: each family's module is loaded once per device, into its primary context.

use core::ffi::CStr;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::Ordering::*;

use super::context::Current;
use super::driver::Driver;
use super::kernels::{CUDA, Family, ROCM};
use super::launches::Launches;
use super::place::Place;
use super::state::{Device, Module};
use super::vendor::{Ptr, Vendor, given};
use super::{cuda, hiprtc, rocm};
use crate::error::Result;
use crate::plan::{Dim, Item, Plan};
use crate::platform;
use dlpack_device::backend::{Lack, unsupported};

impl Driver {
    /// Enqueues kernels that copy.
    ///
    /// # Safety
    /// The device can access both sides, which stay allocated until the stream has completed the
    /// work; the plan is simplified.
    pub(super) unsafe fn kernel(&self, plan: &Plan, place: &Place) -> Result<()> {
        let _primary = self.with_kernels(place.here, place.stream)?;
        let plan = &self.seen(plan, place.host)?;
        let device = self.device(place.here.ordinal)?;
        for mut launch in Launches::new(plan) {
            let function = self.function(device, launch.kernel)?;
            let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
            let mut argument: Ptr = (&raw mut launch.args).cast();
            // SAFETY: a kernel of this library and its only argument; the device can access both
            // sides, which stay allocated until the stream has completed the work.
            unsafe {
                let arguments = &raw mut argument;
                let stream = place.stream;
                self.launch(function, gx, gy, gz, bx, by, bz, 0, stream, arguments, null_mut())?;
            }
        }
        Ok(())
    }

    /// Makes the primary context current, into which the kernels are loaded. They run on its
    /// streams and on those of its green contexts, which share all but the multiprocessors with it.
    /// The caller may destroy any other context at any time, with the modules in it.
    fn with_kernels(&self, here: &Current, stream: Ptr) -> Result<Option<Current<'_>>> {
        if here.is_primary()? {
            return Ok(None);
        }
        if !self.is_green(stream)? {
            return unsupported(Lack::COPIES);
        }
        self.enter_primary(here.ordinal).map(Some)
    }

    /// The plan with the addresses by which kernels of the current device access its sides: those
    /// of registered memory may differ from the host's. `host`: one side may be the host's memory.
    fn seen(&self, plan: &Plan, host: bool) -> Result<Plan> {
        let mut seen = *plan;
        seen.src = self.seen_side(plan.src, plan, |dim| dim.src, host)?;
        seen.dst = self.seen_side(plan.dst, plan, |dim| dim.dst, host)?.cast_mut();
        Ok(seen)
    }

    fn seen_side(
        &self,
        first: *const u8,
        plan: &Plan,
        step: fn(&Dim) -> i64,
        host: bool,
    ) -> Result<*const u8> {
        let seen = self.seen_at(first)?;
        if !host {
            return Ok(seen);
        }
        // All of it is seen at the same distance, unless it is registered in part or in pieces.
        let (unit, item) = match plan.item {
            Item::Bytes(nbytes) => (1, nbytes as i64),
            Item::Bits { width, dst_slot } => (8, (width.max(dst_slot) as i64 + 7) >> 3),
        };
        let (mut low, mut high) = (0i64, item - 1);
        for dim in plan.dims.iter() {
            let reach = (dim.n - 1).wrapping_mul(step(dim)) / unit;
            *if reach < 0 { &mut low } else { &mut high } += reach;
        }
        let ends = [low, high].map(|end| end as isize);
        for end in ends {
            if self.seen_at(first.wrapping_offset(end))? != seen.wrapping_offset(end) {
                return unsupported(Lack::COPIES);
            }
        }
        if self.vendor() == Vendor::Cuda {
            let start = |end| cuda::range_start(self, first.wrapping_offset(end).cast());
            let [low, high] = ends.map(start);
            if low? != high? {
                return unsupported(Lack::COPIES);
            }
        }
        Ok(seen)
    }

    /// The address by which kernels access the memory at an address of the host or owner.
    fn seen_at(&self, data: *const u8) -> Result<*const u8> {
        const PAGE: usize = 4096; // both have the same offset in a page
        let seen = match self.vendor() {
            Vendor::Cuda => cuda::device_address(self, data.cast())?,
            Vendor::Rocm => rocm::device_address(self, data.cast())?,
        };
        match seen {
            Some(seen) if (seen.addr() ^ data.addr()) & (PAGE - 1) == 0 => Ok(seen.cast()),
            _ => unsupported(Lack::COPIES),
        }
    }

    /// Whether the current device can load the first kernel of this plan.
    pub(super) fn has_kernels(&self, here: &Current, stream: Ptr, plan: &Plan) -> bool {
        let Some(launch) = Launches::new(plan).next() else { return false };
        let loaded = || {
            let _primary = self.with_kernels(here, stream)?;
            self.function(self.device(here.ordinal)?, launch.kernel)
        };
        loaded().is_ok()
    }

    /// Whether a device has rejected the kernels for this plan; no driver call.
    pub(super) fn has_rejected(&self, ordinal: i32, plan: &Plan) -> bool {
        let launch = Launches::new(plan).next();
        let family = launch.and_then(|launch| Family::of(launch.kernel.to_bytes()));
        let device = self.device(ordinal).ok();
        let module = family.zip(device).and_then(|(it, device)| device.modules.get(it.number()));
        module.and_then(Module::found).is_some_and(|found| found.is_err())
    }

    fn function(&self, device: &Device, name: &'static CStr) -> Result<Ptr> {
        let place = device.kernels.iter().find(|kernel| kernel.is(name));
        let mut function = place.map_or(null_mut(), |kernel| kernel.function.load(Acquire));
        if function.is_null() {
            let module = self.module(device, name)?;
            let _relaxed = self.relaxed();
            // SAFETY: a loaded module; a valid output pointer.
            unsafe { self.module_function(&mut function, module, name.as_ptr())? };
            if let Some(kernel) = place {
                kernel.function.store(function, Release);
            }
        }
        Ok(function)
    }

    /// The module with a kernel. Concurrent threads load it once.
    fn module(&self, device: &Device, kernel: &CStr) -> Result<Ptr> {
        let family = Family::of(kernel.to_bytes());
        let place = family.and_then(|family| device.modules.get(family.number()));
        let (Some(family), Some(place)) = (family, place) else {
            return unsupported(Lack::COPIES);
        };
        if let Some(found) = place.found() {
            return found;
        }
        // A thread cancelled while it compiles would leave the lock locked.
        platform::workers::uncancelled(|| {
            let _alone = self.loading.lock();
            place.found().unwrap_or_else(|| {
                let loaded = self.load(family);
                place.keep(&loaded);
                loaded
            })
        })
    }

    fn load(&self, family: Family) -> Result<Ptr> {
        let _relaxed = self.relaxed();
        let mut module = null_mut();
        // SAFETY: an image for this driver; a valid output pointer.
        unsafe {
            match self.vendor() {
                Vendor::Cuda => {
                    let mut text = CUDA.text()?;
                    family.leave(text.bytes());
                    self.module_load(&mut module, text.as_ptr().cast())?;
                }
                Vendor::Rocm => {
                    let code = hiprtc::compile(self, &ROCM.text()?, family)?;
                    self.module_load(&mut module, code.as_ptr().cast())?;
                }
            }
        }
        given(module).map(NonNull::as_ptr)
    }
}

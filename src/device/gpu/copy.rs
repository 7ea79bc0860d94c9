//! Which way a copy goes.

use core::ffi::c_void;

use super::driver::{Driver, Ptr, Vendor};
use super::{Gpu, Memory, Pitched, rocm};
use crate::abi::{DLDevice, DLDeviceType::kDLCPU, DeviceCode};
use crate::device::backend::{Lack, Side, Stream, Transfer, unsupported};
use crate::device::plan::Item;
use crate::error::Result;

/// The largest pitch that the drivers promise to take.
const PITCH_MOST: i64 = i32::MAX as i64;

impl Driver {
    /// Enqueues a copy of contiguous bytes.
    ///
    /// # Safety
    /// Both sides stay alive until the stream has got here.
    unsafe fn dense(&self, dst: *mut u8, src: *const u8, n: usize, stream: Ptr) -> Result<()> {
        let (dst, src): (Ptr, *const c_void) = (dst.cast(), src.cast());
        // SAFETY: the caller's word.
        unsafe {
            match self.vendor {
                Vendor::Cuda => self.cu_copy(dst, src, n, stream),
                Vendor::Rocm => self.hip_copy(dst, src, n, rocm::BY_ADDRESS, stream),
            }
        }
    }

    /// Enqueues a copy of rows.
    ///
    /// # Safety
    /// As [`Driver::dense`].
    unsafe fn pitched(&self, copy: &Pitched, stream: Ptr) -> Result<()> {
        let Pitched { src, src_pitch, dst, dst_pitch, width, height } = *copy;
        let kind = rocm::BY_ADDRESS;
        // SAFETY: the caller's word.
        unsafe {
            match self.vendor {
                Vendor::Cuda => self.cu_copy_2d(&copy.into(), stream),
                Vendor::Rocm => self.hip_copy_2d(
                    dst.cast(),
                    dst_pitch,
                    src.cast(),
                    src_pitch,
                    width,
                    height,
                    kind,
                    stream,
                ),
            }
        }
    }
}

/// The plan as rows, if it is.
fn rows(transfer: &Transfer) -> Option<Pitched> {
    let plan = &transfer.plan;
    let Item::Bytes(width) = plan.item else { return None };
    let dim = plan.inner();
    let fits = |stride: i64| (width as i64..=PITCH_MOST).contains(&stride);
    (plan.ndim == 1 && fits(dim.src) && fits(dim.dst)).then_some(Pitched {
        src: plan.src,
        src_pitch: dim.src as usize,
        dst: plan.dst,
        dst_pitch: dim.dst as usize,
        width,
        height: dim.n as usize,
    })
}

impl Gpu {
    /// Whether this vendor's driver can copy from or to such memory; checks what it can.
    fn check_side(&self, side: &Side, first: *const u8) -> Result<()> {
        match self.memory(side.device.device_type) {
            Some(Memory::Device) => {
                self.0.device(side.device.device_id)?;
                self.0.check_address(first.cast(), side.device.device_id)
            }
            Some(_) => Ok(()),
            None if side.device.device_type == kDLCPU as DeviceCode => Ok(()),
            None => unsupported(Lack::COPIES),
        }
    }

    /// # Safety
    /// As [`crate::device::backend::Backend::copy`].
    pub(super) unsafe fn carry_out(
        &self,
        transfer: &Transfer,
        device: DLDevice,
        stream: Stream,
    ) -> Result<()> {
        let _here = self.enter(device, stream)?;
        let plan = &transfer.plan;
        self.check_side(&transfer.src, plan.src)?;
        self.check_side(&transfer.dst, plan.dst)?;
        // SAFETY: the caller's word, for all of this function.
        unsafe {
            if let (Item::Bytes(nbytes), 0) = (plan.item, plan.ndim) {
                return self.0.dense(plan.dst, plan.src, nbytes, stream);
            }
            match rows(transfer) {
                Some(copy) => self.0.pitched(&copy, stream),
                None => unsupported(Lack::COPIES),
            }
        }
    }
}

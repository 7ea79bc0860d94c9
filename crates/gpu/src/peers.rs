//! Two devices: strided copies between them, by a kernel on the current one and the driver's copy
//! of compact memory on the other; and peer access.

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::Ordering::Relaxed;

use super::codes::{PEER_ENABLED, PEER_NOT_ENABLED};
use super::copy::{Far, Place};
use super::cuda;
use super::driver::{Driver, Vendor};
use crate::error::{Error, Result, Status::*};
use crate::pieces;
use crate::plan::{Item, Plan};
use dlpack_device::backend::{Lack, unsupported};

/// The plan in the order of the other device's memory, towards it, if it is compact there.
/// `writes`: the copy writes there, else it reads.
pub fn towards(plan: &Plan, writes: bool) -> Option<Plan> {
    let mut order = if writes { *plan } else { pieces::reversed(plan) };
    order.simplify();
    let whole = |plan: &Plan| plan.ndim() == 0 && matches!(plan.item, Item::Bytes(_));
    whole(&pieces::through(&order, null_mut()).1).then_some(order)
}

/// The bit of a device, of at most [`super::driver::DEVICES_MOST`].
fn bit(ordinal: i32) -> u64 {
    1u64.wrapping_shl(ordinal as u32)
}

impl Driver {
    /// Peer access of a device to another one: 0 not supported, 1 supported, 2 enabled by this
    /// library. The drivers do not report what others enabled.
    pub(super) fn peer_access(&self, ordinal: i32, peer: i32) -> Result<i32> {
        self.ready()?;
        let (device, _) = (self.device(ordinal)?, self.device(peer)?);
        if ordinal == peer || device.peers.load(Relaxed) & bit(peer) != 0 {
            return Ok(2);
        }
        let number = |ordinal| match self.vendor() {
            Vendor::Cuda => self.handle(ordinal),
            Vendor::Rocm => Ok(ordinal),
        };
        let mut can = 0;
        // SAFETY: devices that exist, and a valid output pointer.
        unsafe { self.can_access(&mut can, number(ordinal)?, number(peer)?)? };
        Ok((can != 0).into())
    }

    /// Enables or disables peer access; it may be so already.
    pub(super) fn peer_access_set(&self, ordinal: i32, peer: i32, enabled: bool) -> Result<()> {
        self.ready()?;
        let (device, _) = (self.device(ordinal)?, self.device(peer)?);
        if ordinal == peer {
            let own = Error::new(DLRS_PEER).value(peer.into());
            let own = own.detail("a device can always access its own memory");
            return if enabled { Ok(()) } else { Err(own) };
        }
        // SAFETY: devices that exist; on CUDA a primary context, which is never released.
        let (answer, so) = unsafe {
            match self.vendor() {
                Vendor::Cuda => {
                    let to = cuda::primary(self, peer)?;
                    let _here = self.enter_primary(ordinal)?;
                    match enabled {
                        true => (self.cu_peer_enable(to, 0), PEER_ENABLED),
                        false => (self.cu_peer_disable(to), PEER_NOT_ENABLED),
                    }
                }
                Vendor::Rocm => {
                    let _here = self.enter(Some(ordinal), null_mut())?;
                    match enabled {
                        true => (self.hip_peer_enable(peer, 0), PEER_ENABLED),
                        false => (self.hip_peer_disable(peer), PEER_NOT_ENABLED),
                    }
                }
            }
        };
        answer.or_else(|error| if error.driver_code() == so { Ok(()) } else { Err(error) })?;
        match enabled {
            true => device.peers.fetch_or(bit(peer), Relaxed),
            false => device.peers.fetch_and(!bit(peer), Relaxed),
        };
        Ok(())
    }

    /// Enqueues a copy with one side on another device.
    ///
    /// # Safety
    /// As [`Driver::on_device`].
    pub(super) unsafe fn across(&self, plan: &Plan, far: Far, place: &Place) -> Result<()> {
        let Some(order) = towards(plan, far.writes) else { return unsupported(Lack::COPIES) };
        self.not_capturing(place.stream)?;
        let nbytes = plan.nbytes() as usize;
        let memory = self.scratch(nbytes, place.stream).map_err(|error| match error.status() {
            DLRS_DEV_OOM => Error::new(DLRS_UNSUPPORTED).driver(error.driver_code()),
            _ => error,
        })?;
        // SAFETY: the memory holds the elements, and is freed after the stream's work; the rest is
        // guaranteed by the caller.
        unsafe {
            let done = self.by_way_of(memory.0, &order, far, place);
            let freed = self.free_scratch(memory, place.stream);
            done.and(freed)
        }
    }

    /// # Safety
    /// As [`Driver::on_device`]; the memory is the current device's, and holds the elements of
    /// `order`, of [`towards`].
    unsafe fn by_way_of(
        &self,
        memory: NonNull<c_void>,
        order: &Plan,
        far: Far,
        place: &Place,
    ) -> Result<()> {
        let (near, whole) = pieces::through(order, memory.as_ptr().cast());
        // SAFETY: guaranteed by the caller.
        unsafe {
            if far.writes {
                self.on_device(&near, place)?;
                return self.peer(&whole, far, place);
            }
            let (whole, mut near) = (pieces::reversed(&whole), pieces::reversed(&near));
            near.simplify();
            self.peer(&whole, far, place)?;
            self.on_device(&near, place)
        }
    }
}

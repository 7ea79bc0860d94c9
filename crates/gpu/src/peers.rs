//! Two devices: strided copies between them, by a kernel on the current one and the driver's copy
//! of compact memory on the other.

use core::ptr::null_mut;

use super::driver::Driver;
use super::place::{Far, Place};
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

impl Driver {
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
        let (near, whole) = pieces::through(&order, memory.0.as_ptr().cast());
        // SAFETY: the memory holds the elements, and is freed after the stream's work, until which
        // both sides of the plan stay allocated.
        unsafe {
            let done = if far.writes {
                self.on_device(&near, place).and_then(|()| self.peer(&whole, far, place))
            } else {
                let (whole, mut near) = (pieces::reversed(&whole), pieces::reversed(&near));
                near.simplify();
                self.peer(&whole, far, place).and_then(|()| self.on_device(&near, place))
            };
            let freed = self.free_scratch(memory, place.stream);
            done.and(freed)
        }
    }
}

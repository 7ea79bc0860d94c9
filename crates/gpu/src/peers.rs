//! Two devices: strided copies between them, by a kernel on the current one and the driver's copy
//! of compact memory on the other.

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};

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
        // SAFETY: the memory holds the elements, and is freed after the stream's work, until which
        // both sides of the plan stay allocated.
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
        // SAFETY: the memory holds the elements of `order`; both sides of it stay allocated until
        // the stream has completed the work.
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

//! Kernels.

use super::copy::Place;
use super::driver::Driver;
use crate::device::backend::{Lack, unsupported};
use crate::device::plan::Plan;
use crate::error::Result;

impl Driver {
    /// Enqueues a kernel that copies.
    ///
    /// # Safety
    /// The device reaches both sides, which stay until the stream has got here.
    pub(super) unsafe fn kernel(&self, _plan: &Plan, _place: &Place) -> Result<()> {
        unsupported(Lack::COPIES)
    }
}

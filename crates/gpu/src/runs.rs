//! Several copies: contiguous ones by one call of the driver, where it has that.

use super::context::is_legacy;
use super::driver::Driver;
use super::gpu::Gpu;
use super::place::Place;
use super::structs::CopyAttributes;
use super::vendor::Ptr;
use crate::array::Array;
use crate::error::{Result, Status::*};
use crate::plan::Plan;
use dlpack_device::backend::Transfers;

/// Contiguous copies for one call of the driver, which executes them in any order.
pub struct Runs {
    /// Index of the first one's transfer.
    first: usize,
    dst: Array<Ptr, RUNS_MOST>,
    src: Array<Ptr, RUNS_MOST>,
    nbytes: Array<usize, RUNS_MOST>,
}

/// Most copies in one call: their arrays are on the stack.
const RUNS_MOST: usize = 64;

impl Runs {
    fn new() -> Runs {
        Runs { first: 0, dst: Array::new(), src: Array::new(), nbytes: Array::new() }
    }

    /// Adds a plan of these bytes.
    pub fn push(&mut self, plan: &Plan, nbytes: usize) {
        self.dst.push(plan.dst.cast());
        self.src.push(plan.src.cast_mut().cast());
        self.nbytes.push(nbytes);
    }
}

impl Driver {
    /// Enqueues these copies by one call.
    ///
    /// # Safety
    /// Both sides of each stay allocated until the stream has completed the work; no destination
    /// shares memory with another one's sides.
    unsafe fn dense_all(&self, runs: &Runs, stream: Ptr) -> Result<()> {
        let (mut attributes, first, mut failed) = (CopyAttributes::in_order(), 0, 0);
        let (dst, src, nbytes) = (runs.dst.as_ptr(), runs.src.as_ptr(), runs.nbytes.as_ptr());
        let n = runs.nbytes.len();
        // SAFETY: arrays of `n`, and one set of attributes, from the first copy on; all sides stay
        // allocated until the stream has completed the work, and no destination is another copy's.
        unsafe {
            self.cu_copy_batch(dst, src, nbytes, n, &mut attributes, &first, 1, &mut failed, stream)
        }
    }
}

impl Gpu {
    /// Copies all of them on a stream of the current device: contiguous ones by one call, where
    /// the driver has it for this stream. It is documented for neither the legacy stream nor
    /// captures. `waits`: the stream is not being captured.
    ///
    /// # Safety
    /// As [`dlpack_device::backend::Backend::copy_after`].
    pub(super) unsafe fn carry_out_all(
        &self,
        transfers: &mut dyn Transfers,
        place: &Place,
        waits: bool,
    ) -> Result<()> {
        let stream = place.stream;
        let mut runs = Runs::new();
        let offered = transfers.left() > 0 && !is_legacy(stream) && self.0.copies_batches();
        let mut together = offered && (waits || !self.0.capturing(stream)?);
        loop {
            let at = transfers.at();
            if runs.nbytes.is_empty() {
                runs.first = at;
            }
            let gathered = together.then_some(&mut runs);
            // SAFETY: both sides of the transfer stay allocated until `stream`, of the current
            // device, has completed it.
            let done = unsafe { self.carry_out(transfers.current(), place, gathered) };
            let mut more = done.is_ok() && transfers.go_to(at.wrapping_add(1));
            if !runs.nbytes.is_empty() && (!more || runs.nbytes.len() == RUNS_MOST) {
                // SAFETY: all sides stay allocated until the stream has completed the work; no
                // destination shares memory with another transfer's sides.
                let sent = unsafe { self.0.dense_all(&runs, stream) };
                let first = runs.first;
                runs = Runs::new();
                match sent {
                    Ok(()) => {}
                    // Not due to any of them.
                    Err(error) if matches!(error.status(), DLRS_ASYNC_FAULT | DLRS_CTX_LOST) => {
                        transfers.go_to(usize::MAX);
                        return Err(error);
                    }
                    // One by one, again: the driver may refuse one of them only.
                    Err(_) => {
                        together = false;
                        more = transfers.go_to(first);
                    }
                }
            }
            if !more {
                return done;
            }
        }
    }
}

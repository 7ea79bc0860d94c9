//! A few elements into dense memory: what there is to know fits into registers.

use crate::device::cpu;
use crate::validate::Snapshot;

/// Bytes that are moved so, and rows of them.
const NBYTES_MOST: usize = 4096;
const ROWS_MOST: usize = 32;
const ROW_MOST: usize = 256;

/// Runs of bytes in up to four dimensions.
pub(super) struct Few {
    run: usize,
    /// How many and how many bytes apart, innermost first.
    dims: [(usize, isize); 4],
}

impl Few {
    /// To be found out.
    #[inline(always)]
    pub const fn none() -> Few {
        Few { run: 0, dims: [(1, 0); 4] }
    }

    /// The elements of a tensor, of so many bytes each, in row-major order; false if they are not
    /// few. There are elements, and all of them are within memory. In its place: a move would read
    /// at once, and wait for, what has just been written in parts.
    pub fn find(&mut self, tensor: &Snapshot, item_nbytes: usize) -> bool {
        let (mut used, mut run, mut count) = (0, item_nbytes, 1usize);
        for (&extent, &stride) in tensor.shape().iter().rev().zip(tensor.strides().iter().rev()) {
            // Where the extent is above 1, the stride is one of bytes in memory: nothing wraps.
            let step = stride.wrapping_mul(item_nbytes as i64) as isize;
            let extent = extent as usize;
            if extent == 1 {
                continue;
            }
            if used == 0 && step == run as isize {
                run = run.saturating_mul(extent);
                continue;
            }
            let Some(dim) = self.dims.get_mut(used) else { return false };
            *dim = (extent, step);
            (used, count) = (used + 1, count.saturating_mul(extent));
        }
        self.run = run;
        let row = self.dims[0].0;
        row <= ROW_MOST && count <= row * ROWS_MOST && run.saturating_mul(count) <= NBYTES_MOST
    }

    /// Copies them.
    ///
    /// # Safety
    /// `src` is the first element of the tensor, whose elements are live; `dst` has room for all,
    /// which shares no byte with them.
    #[inline(always)]
    pub unsafe fn gather(&self, src: *const u8, dst: *mut u8) {
        // SAFETY: the caller's word.
        unsafe { cpu::gather(self.run, &self.dims, src, dst) }
    }
}

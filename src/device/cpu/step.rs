//! Tables for the byte shuffles: every k-th element of a run, and k planes woven into one.
use super::ops::{Masks, Ops};
use super::strided;

/// A shuffle mask's byte for "nothing".
const NONE: u8 = 0x80;

/// Which byte, of pixels of `step` elements of `size` (1, 2, 4, 8) bytes, becomes byte `b` of a
/// plane.
pub(super) fn byte_of(b: usize, size: usize, (step, plane): (usize, usize)) -> usize {
    let (element, byte) = (b >> size.trailing_zeros(), b & (size - 1));
    (element * step + plane) * size + byte
}

/// Picks elements of `size` (1, 2, 4, 8) bytes that lie `step` (±1 to ±8) elements apart.
pub(super) struct Step {
    masks: Masks,
    size: usize,
    stride: isize,
}

impl Step {
    pub(super) fn new(size: usize, step: isize) -> Step {
        let (loads, back) = (step.unsigned_abs().clamp(1, 8), step < 0);
        let mut masks = [[NONE; 16]; 8];
        for b in 0..16 {
            // `size` is a power of two: its quotients and remainders are shifts and masks.
            let (element, byte) = (b >> size.trailing_zeros(), b & (size - 1));
            let ahead = element * loads * size;
            let at = if back { 16 * loads - size - ahead } else { ahead } + byte;
            if let Some(mask) = masks.get_mut(at / 16).and_then(|mask| mask.get_mut(b)) {
                *mask = (at % 16) as u8;
            }
        }
        let window = 16 * loads as isize;
        let (first, advance) = if back { (size as isize - window, -window) } else { (0, window) };
        let masks = Masks { masks, loads, first, advance };
        Step { masks, size, stride: step * size as isize }
    }

    /// Writes `n` elements.
    ///
    /// # Safety
    /// The elements are readable, and so are the bytes between them; `n * size` bytes are
    /// writable.
    pub(super) unsafe fn pick(&self, ops: &Ops, dst: *mut u8, src: *const u8, n: usize) {
        let each = 16usize >> self.size.trailing_zeros();
        // A result's loads end before the element that follows its last: keep one in reserve.
        let results = n.saturating_sub(1) >> each.trailing_zeros();
        // SAFETY: as just said; the rest is single elements.
        unsafe {
            // Of elements that are far apart, whole vectors would be mostly what is between them.
            let near = self.stride.unsigned_abs() <= 16;
            let done = if near { (ops.step)(dst, src, results, &self.masks) * each } else { 0 };
            let src = src.wrapping_offset(done as isize * self.stride);
            let dst = dst.wrapping_add(done * self.size);
            strided::line(self.size, dst, src, n - done, self.stride, self.size as isize);
        }
    }
}

/// Weaves `planes` (2 to 8) runs of elements of `size` (1, 2, 4, 8) bytes.
pub(super) struct Weave {
    masks: [[[u8; 16]; 8]; 8],
    planes: usize,
    size: usize,
}

impl Weave {
    pub(super) fn new(size: usize, planes: usize) -> Weave {
        let planes = planes.clamp(1, 8);
        let mut masks = [[[NONE; 16]; 8]; 8];
        for (result, loads) in masks.iter_mut().enumerate() {
            for b in 0..16 {
                let (element, byte) = ((16 * result + b) >> size.trailing_zeros(), b & (size - 1));
                let (at, plane) = (element / planes * size + byte, element % planes);
                if let Some(mask) = loads.get_mut(plane).and_then(|mask| mask.get_mut(b)) {
                    *mask = if at < 16 { at as u8 } else { NONE };
                }
            }
        }
        Weave { masks, planes, size }
    }

    /// Writes `n` elements of every plane.
    ///
    /// # Safety
    /// Each plane has `n` contiguous elements, `plane_stride` bytes from the former; the
    /// destination has room for all.
    pub(super) unsafe fn weave(
        &self,
        ops: &Ops,
        dst: *mut u8,
        src: *const u8,
        n: usize,
        plane_stride: isize,
    ) {
        let each = 16usize >> self.size.trailing_zeros();
        let rounds = n >> each.trailing_zeros();
        let pitch = self.planes * self.size;
        // SAFETY: the caller's promise; a last round moves back over the one before and writes the
        // same bytes again. Single elements are what is less than a round, or has no shuffles.
        unsafe {
            let weave = |dst, src, rounds| {
                each * (ops.weave)(dst, src, plane_stride, rounds, self.planes, &self.masks)
            };
            let done = weave(dst, src, rounds);
            if done == n {
                return;
            }
            if done > 0 {
                let at = n - each;
                weave(dst.wrapping_add(at * pitch), src.wrapping_add(at * self.size), 1);
                return;
            }
            for plane in 0..self.planes {
                let src = src.wrapping_offset(plane as isize * plane_stride);
                let dst = dst.wrapping_add(plane * self.size);
                strided::line(self.size, dst, src, n, self.size as isize, pitch as isize);
            }
        }
    }
}

//! Transposes of packed 6-bit elements at whole bytes: four elements are three bytes. Four by
//! four are turned within words, and then words are what is transposed.
use core::ops::Range;
use core::ptr::copy_nonoverlapping;

use super::ops::{Ops, Rows, Sixes};
use super::stream::Buffer;
use super::walk::{set, walk};
use crate::device::part::Part;

/// What the kernel turns at a time: along the destination's innermost dimension, and along the
/// source's.
const TILE_DST: isize = 32;
const TILE_SRC: isize = 16;
/// Elements of a destination row that are written together: three whole lines.
const STRIP: isize = 256;
/// Bytes from one row of the buffer to the next, and what a tile may write of them before a strip.
const PITCH: usize = 256;
const BEFORE: usize = 64;

/// The least extents, likewise: a tile, and six bytes beside it.
pub(super) const LEAST_DST: i64 = TILE_DST as i64;
pub(super) const LEAST_SRC: i64 = 24;

/// The bytes of so many elements, a multiple of four.
fn bytes(n: isize) -> isize {
    n / 4 * 3
}

/// The first `n_dst` elements of the innermost dimension, and the first `n_src` of `dense`, both
/// multiples of four and not less than the least.
///
/// # Safety
/// As [`super::copy`]; strides in bits, whole bytes but for the two that are 6.
pub(super) unsafe fn tiles(
    ops: &Ops,
    turn: Sixes,
    plan: &Part,
    (dense, n_dst, n_src): (usize, i64, i64),
    streams: bool,
) {
    let last = plan.ndim.checked_sub(1);
    let (ss, ds) = (plan.inner().src as isize / 8, plan.dim(dense).dst as isize / 8);
    let (n_dst, n_src) = (n_dst as isize, n_src as isize);
    walk(plan, set(&[last, Some(dense)]), |src_at, dst_at| {
        let src = plan.src.wrapping_offset((plan.src_bit as isize + src_at) / 8);
        let dst = plan.dst.wrapping_offset((plan.dst_bit as isize + dst_at) / 8);
        let face = Face { ops, turn, src, ss, dst, ds, n_dst, n_src, streams };
        // Strips begin at the destination's lines, if its rows agree on them: at the first one
        // where an element begins.
        let head = (dst as isize).wrapping_neg() & 63;
        let head = if ds & 63 == 0 { (head + 2 * head % 3 * 64) / 3 * 4 } else { 0 };
        let mut d = 0;
        while d < n_dst {
            let end = if d < head { head } else { d + STRIP }.min(n_dst);
            // SAFETY: elements of the caller's plan.
            unsafe { face.strip(d..end) };
            d = end;
        }
    });
}

/// One of the plan's transposes.
struct Face<'a> {
    ops: &'a Ops,
    turn: Sixes,
    src: *const u8,
    ss: isize,
    dst: *mut u8,
    ds: isize,
    n_dst: isize,
    n_src: isize,
    streams: bool,
}

impl Face<'_> {
    /// At most [`STRIP`] elements of every destination row. The last tile of a row or column moves
    /// back over its predecessor, and makes the same bytes again.
    #[inline(never)] // a frame of its own: stacks may be small
    unsafe fn strip(&self, ds: Range<isize>) {
        let mut buffer = Buffer::new();
        let lines = buffer.ptr().wrapping_add(BEFORE);
        let mut s = 0;
        while s < self.n_src {
            self.fetch(&ds, s);
            let s_at = s.min(self.n_src - TILE_SRC);
            // The kernel reads 16 bytes for 12: some before them too, if there are any.
            let lead = if s_at > 0 { 4 } else { 0 };
            let src = self.src.wrapping_offset(bytes(s_at) - lead);
            let mut d = ds.start;
            while d < ds.end {
                let d_at = d.min(self.n_dst - TILE_DST);
                let from = src.wrapping_offset(d_at * self.ss);
                let to = lines.wrapping_offset(bytes(d_at - ds.start));
                // SAFETY: a tile of the face; the strip has 192 bytes of each of the buffer's
                // rows, and a tile that moves back less than 24 before.
                unsafe { (self.turn)(from, self.ss, lead as usize, to, PITCH) };
                d += TILE_DST;
            }
            for i in 0..TILE_SRC {
                let to = self.dst.wrapping_offset((s_at + i) * self.ds + bytes(ds.start));
                let from = lines.wrapping_add(i as usize * PITCH);
                // SAFETY: the strip's bytes of a destination row.
                unsafe { self.write(to, from, bytes(ds.end - ds.start) as usize) };
            }
            s += TILE_SRC;
        }
    }

    /// `n` bytes, whole lines of them past the caches.
    unsafe fn write(&self, to: *mut u8, from: *const u8, n: usize) {
        let whole = if self.streams && to as usize & 63 == 0 { n & !63 } else { 0 };
        // SAFETY: the caller's bytes.
        unsafe {
            (self.ops.stream)(to, from, whole / 64);
            copy_nonoverlapping(from.wrapping_add(whole), to.wrapping_add(whole), n - whole);
        }
    }

    /// Asks for some of the source's lines that follow the present 256 columns of a strip, each
    /// tile's share, and for the next tile's destination lines that will be written in part.
    /// (Memory is slow to change its rows: several lines of a row at once.)
    fn fetch(&self, ds: &Range<isize>, s: isize) {
        let share = s & (STRIP - TILE_SRC);
        let rows = TILE_SRC as usize;
        let d = ds.start + share;
        let ahead = self.src.wrapping_offset(d * self.ss + bytes(s - share + STRIP));
        let next = self.dst.wrapping_offset((s + TILE_SRC) * self.ds + bytes(ds.start));
        // SAFETY: any address will do, and no list is read.
        unsafe {
            if d < ds.end && s - share + STRIP < self.n_src {
                (self.ops.fetch)(ahead, Rows::Apart([self.ss]), rows, 4);
            }
            if self.streams && next as usize & 63 != 0 {
                (self.ops.fetch)(next, Rows::Apart([self.ds]), rows, 4);
            }
        }
    }
}

//! Elements that are not whole bytes: by bit runs if wide, else through bytes, in tiles.
use super::ops::Ops;
use super::pack::Spread;
use super::transpose::{Face, transpose};
use super::walk::walk;
use super::{bitrun, stream::Buffer};
use crate::device::plan::{Dim, Item, Plan};

/// A plan of bits whose destination strides are all positive: `src_bit` and `dst_bit` are where
/// its first element starts.
struct Bits {
    plan: Plan,
    src_bit: i64,
    dst_bit: i64,
    width: usize,
    slot: usize,
    spread: Spread,
}

/// Carries out a simplified plan of [`Item::Bits`].
///
/// # Safety
/// As [`super::copy`].
pub(super) unsafe fn copy(ops: &Ops, plan: &Plan) {
    let Item::Bits { width, dst_slot } = plan.item else { return };
    let spread = Spread::new(width.min(8) as u32);
    let slot = dst_slot.max(width);
    let mut bits = Bits { plan: *plan, src_bit: 0, dst_bit: 0, width, slot, spread };
    for i in 0..plan.ndim {
        let Dim { n, src, dst } = plan.dim(i);
        if dst < 0 {
            bits.src_bit += (n - 1) * src;
            bits.dst_bit += (n - 1) * dst;
            bits.plan.set(i, Dim { n, src: -src, dst: -dst });
        }
    }
    // SAFETY: the same elements as the caller's plan.
    unsafe {
        match (width, bits.tiled()) {
            (0, _) => bits.zeros(),
            (9.., _) => bits.runs(),
            (_, Some(dense)) => bits.tiles(ops, dense),
            _ => bits.rows(),
        }
    }
}

/// Elements that go through the buffer at a time.
const CHUNK: usize = 1024;
/// A tile's extents: along the destination's innermost dimension, and along the source's.
const TILE_DST: usize = 64;
const TILE_SRC: usize = 32;

impl Bits {
    /// The dimension in which the source is dense, if tiles are worth it.
    fn tiled(&self) -> Option<usize> {
        let dense = self.plan.source_inner()?;
        let (row, column) = (self.plan.inner(), self.plan.dim(dense));
        (column.src == self.width as i64 && row.n >= 16 && column.n >= 16).then_some(dense)
    }

    /// Slots of nothing but zeros.
    unsafe fn zeros(&self) {
        walk(&self.plan, [None, None], |_, dst_at| {
            // SAFETY: a slot of the caller's plan.
            unsafe { bitrun::zero(self.plan.dst, self.dst_bit + dst_at as i64, self.slot) };
        });
    }

    /// Elements of more than 8 bits, each a run.
    unsafe fn runs(&self) {
        let Plan { src, dst, .. } = self.plan;
        walk(&self.plan, [None, None], |src_at, dst_at| {
            let (from, to) = (self.src_bit + src_at as i64, self.dst_bit + dst_at as i64);
            // SAFETY: an element and its slot, of the caller's plan.
            unsafe {
                bitrun::copy(dst, to, src, from, self.width);
                bitrun::zero(dst, to + self.width as i64, self.slot - self.width);
            }
        });
    }

    /// Row by row, through bytes.
    unsafe fn rows(&self) {
        let row = self.plan.inner();
        let last = self.plan.ndim.checked_sub(1);
        let n = row.n as usize;
        let mut buffer = Buffer::new();
        let bytes = buffer.ptr();
        walk(&self.plan, [last, None], |src_at, dst_at| {
            let mut at = 0;
            while at < n {
                let count = CHUNK.min(n - at);
                let from = src_at as i64 + at as i64 * row.src;
                let to = dst_at as i64 + at as i64 * row.dst;
                // SAFETY: a part of a row of the caller's plan, through CHUNK bytes.
                unsafe {
                    self.load(bytes, from, row.src, count, n - at);
                    self.store(to, row.dst, bytes, count);
                }
                at += count;
            }
        });
    }

    /// Tile by tile: source runs to bytes, bytes transposed, bytes to destination runs.
    unsafe fn tiles(&self, ops: &Ops, dense: usize) {
        let (row, column) = (self.plan.inner(), self.plan.dim(dense));
        let last = self.plan.ndim.checked_sub(1);
        let mut buffer = Buffer::new();
        // SAFETY: 4096 bytes; the tiles read no byte that is not written.
        let bytes = unsafe {
            buffer.ptr().write_bytes(0, 2 * TILE_DST * TILE_SRC);
            buffer.ptr()
        };
        let face = Face {
            src: bytes,
            dst: bytes.wrapping_add(TILE_DST * TILE_SRC),
            n_dst: TILE_DST,
            n_src: TILE_SRC,
            src_stride: TILE_SRC as isize,
            dst_stride: TILE_DST as isize,
            log: 0,
        };
        walk(&self.plan, [last, Some(dense)], |src_at, dst_at| {
            let mut d = 0;
            while d < row.n {
                let n_dst = (row.n - d).min(TILE_DST as i64);
                let mut s = 0;
                while s < column.n {
                    let n_src = (column.n - s).min(TILE_SRC as i64) as usize;
                    let from = src_at as i64 + d * row.src + s * column.src;
                    let to = dst_at as i64 + d * row.dst + s * column.dst;
                    // SAFETY: a tile of the caller's plan, through both halves of the buffer.
                    unsafe {
                        for i in 0..n_dst {
                            let line = bytes.wrapping_add(i as usize * TILE_SRC);
                            let room = (column.n - s) as usize;
                            self.load(line, from + i * row.src, column.src, n_src, room);
                        }
                        transpose(ops, &face, false);
                        for i in 0..n_src {
                            let line = face.dst.wrapping_add(i * TILE_DST);
                            let to = to + i as i64 * column.dst;
                            self.store(to, row.dst, line, n_dst as usize);
                        }
                    }
                    s += TILE_SRC as i64;
                }
                d += TILE_DST as i64;
            }
        });
    }

    /// `n` elements, `stride` bits apart, to bytes; `room` of them may be read.
    unsafe fn load(&self, to: *mut u8, bit: i64, stride: i64, n: usize, room: usize) {
        let (src, bit, w) = (self.plan.src, self.src_bit + bit, self.width as u32);
        // SAFETY: the caller's elements.
        unsafe {
            if stride == i64::from(w) {
                return self.spread.unpack(to, src, bit, n, room * self.width);
            }
            if stride == 8 && bit & 7 == 0 {
                let (from, mask) = (bitrun::at(src, bit).0, ((1u32 << w) - 1) as u8);
                for i in 0..n {
                    *to.wrapping_add(i) = *from.wrapping_add(i) & mask;
                }
                return;
            }
            for i in 0..n {
                let (from, shift) = bitrun::at(src, bit + i as i64 * stride);
                *to.wrapping_add(i) = bitrun::read(from, shift, w);
            }
        }
    }

    /// `n` bytes to slots `stride` bits apart.
    unsafe fn store(&self, bit: i64, stride: i64, from: *const u8, n: usize) {
        let (dst, bit, w) = (self.plan.dst, self.dst_bit + bit, self.width);
        // SAFETY: the caller's slots, and no bit outside them.
        unsafe {
            if self.slot == 8 && stride == 8 {
                return bitrun::copy(dst, bit, from, 0, 8 * n);
            }
            if self.slot == w && stride == w as i64 {
                return self.spread.pack(dst, bit, from, n);
            }
            for i in 0..n {
                let at = bit + i as i64 * stride;
                let (to, shift) = bitrun::at(dst, at);
                bitrun::write(to.cast_mut(), shift, w as u32, *from.wrapping_add(i));
                bitrun::zero(dst, at + w as i64, self.slot - w);
            }
        }
    }
}

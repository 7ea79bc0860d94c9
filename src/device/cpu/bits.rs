//! Elements that are not whole bytes: by bit runs if wide, else through bytes, in tiles.
use core::ops::Range;

use super::ops::{Ops, Rows};
use super::pack::Spread;
use super::packed::Way;
use super::walk::{set, walk};
use super::{bitrun, packed, stream::Buffer, transpose};
use crate::device::part::Part;
use crate::device::plan::{Dim, Item};

/// A plan of bits.
struct Bits<'a> {
    plan: &'a Part<'a>,
    width: usize,
    slot: usize,
    spread: Spread<'a>,
}

/// Carries out a simplified plan of [`Item::Bits`].
///
/// # Safety
/// As [`super::copy`].
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(ops: &Ops, plan: &Part, streams: bool) {
    let Item::Bits { width, dst_slot } = plan.item else { return };
    let spread = Spread::new(ops, width.min(8) as u32);
    let slot = dst_slot.max(width);
    let bits = Bits { plan, width, slot, spread };
    // SAFETY: the same elements as the caller's plan.
    unsafe {
        match (width, bits.tiled()) {
            (0, _) => bits.zeros(),
            (9.., _) => bits.runs(),
            (_, Some(dense)) => bits.both(ops, dense, streams),
            _ => bits.rows(),
        }
    }
}

/// Elements that go through the buffer at a time.
const CHUNK: usize = 1024;
/// A tile's extents: along the destination's innermost dimension, and along the source's.
const TILE_DST: usize = 64;
const TILE_SRC: usize = 32;

impl Bits<'_> {
    /// The dimension in which the source is dense, if tiles are worth it.
    fn tiled(&self) -> Option<usize> {
        let dense = self.plan.source_inner()?;
        let (row, column) = (self.plan.inner(), self.plan.dim(dense));
        (column.src == self.width as i64 && row.n >= 16 && column.n >= 16).then_some(dense)
    }

    /// Slots of nothing but zeros.
    unsafe fn zeros(&self) {
        walk(self.plan, 0, |_, dst_at| {
            // SAFETY: a slot of the caller's plan.
            unsafe { bitrun::zero(self.plan.dst, self.plan.dst_bit + dst_at as i64, self.slot) };
        });
    }

    /// Elements of more than 8 bits, each a run.
    unsafe fn runs(&self) {
        let Part { src, dst, .. } = *self.plan;
        walk(self.plan, 0, |src_at, dst_at| {
            let (from, to) = (self.plan.src_bit + src_at as i64, self.plan.dst_bit + dst_at as i64);
            // SAFETY: an element and its slot, of the caller's plan.
            unsafe {
                bitrun::copy(dst, to, src, from, self.width);
                bitrun::zero(dst, to + self.width as i64, self.slot - self.width);
            }
        });
    }

    /// Row by row, through bytes.
    #[inline(never)] // a frame of its own: stacks may be small
    unsafe fn rows(&self) {
        let row = self.plan.inner();
        let last = self.plan.ndim.checked_sub(1);
        let n = row.n as usize;
        let mut buffer = Buffer::new();
        let bytes = buffer.ptr();
        walk(self.plan, set(&[last, None]), |src_at, dst_at| {
            let mut at = 0;
            while at < n {
                let count = CHUNK.min(n - at);
                let from = src_at as i64 + at as i64 * row.src;
                let to = dst_at as i64 + at as i64 * row.dst;
                // SAFETY: a part of a row of the caller's plan, through CHUNK bytes.
                unsafe {
                    match self.in_place(from, row.src, to, row.dst) {
                        (Some(bytes), _) => self.store(to, row.dst, bytes, count),
                        (_, Some(bytes)) => self.load(bytes, from, row.src, count, n - at),
                        _ => {
                            self.load(bytes, from, row.src, count, n - at);
                            self.store(to, row.dst, bytes, count);
                        }
                    }
                }
                at += count;
            }
        });
    }

    /// The source's bytes, where packing can read them, or the destination's, where unpacking can
    /// write them, without the buffer between.
    fn in_place(
        &self,
        from: i64,
        src_stride: i64,
        to: i64,
        dst_stride: i64,
    ) -> (Option<*const u8>, Option<*mut u8>) {
        let w = self.width as i64;
        let (from, shift) = bitrun::at(self.plan.src, self.plan.src_bit + from);
        let packs = src_stride == 8 && shift == 0 && dst_stride == w && self.slot == self.width;
        let (to, shift) = bitrun::at(self.plan.dst, self.plan.dst_bit + to);
        let unpacks = src_stride == w && dst_stride == 8 && shift == 0 && self.slot == 8;
        (packs.then_some(from), unpacks.then_some(to.cast_mut()))
    }

    /// The bits in which the places where, packed on both sides, rows begin are not all 0.
    fn odd(&self, dense: usize) -> i64 {
        let last = self.plan.ndim.wrapping_sub(1);
        (0..self.plan.ndim).fold(self.plan.src_bit | self.plan.dst_bit, |all, i| {
            let Dim { src, dst, .. } = self.plan.dim(i);
            all | if i == dense { 0 } else { src } | if i == last { 0 } else { dst }
        })
    }

    /// Packed elements of 4 and 6 bits by kernels of their own, others through bytes.
    unsafe fn both(&self, ops: &Ops, dense: usize, streams: bool) {
        let (row, column) = (self.plan.inner(), self.plan.dim(dense));
        let packed = self.slot == self.width && row.dst == self.width as i64;
        let odd = self.odd(dense);
        let way = Way::new(ops, self.width, (row.n, column.n), odd).filter(|_| packed);
        // SAFETY: the caller's plan.
        unsafe {
            match way {
                Some(way) => packed::tiles(ops, way, self.plan, dense, streams),
                None => self.blocks(ops, dense),
            }
        }
    }

    /// Tiles in blocks whose lines, on both sides, stay in the caches until they are done.
    unsafe fn blocks(&self, ops: &Ops, dense: usize) {
        let (row, column) = (self.plan.inner(), self.plan.dim(dense));
        let mut d = 0;
        while d < row.n {
            let d_end = row.n.min(d + 4 * TILE_DST as i64);
            let mut s = 0;
            while s < column.n {
                let s_end = column.n.min(s + 8 * TILE_SRC as i64);
                // SAFETY: a part of the caller's plan.
                unsafe { self.tiles(ops, dense, d..d_end, s..s_end) };
                s = s_end;
            }
            d = d_end;
        }
    }

    /// Tile by tile: source runs to bytes, bytes transposed, bytes to destination runs.
    #[inline(never)] // a frame of its own: stacks may be small
    unsafe fn tiles(&self, ops: &Ops, dense: usize, ds: Range<i64>, ss: Range<i64>) {
        let (row, column) = (self.plan.inner(), self.plan.dim(dense));
        let last = self.plan.ndim.checked_sub(1);
        let mut buffer = Buffer::new();
        // SAFETY: 4096 bytes; the tiles read no byte that is not written.
        let bytes = unsafe {
            buffer.ptr().write_bytes(0, 2 * TILE_DST * TILE_SRC);
            buffer.ptr()
        };
        walk(self.plan, set(&[last, Some(dense)]), |src_at, dst_at| {
            let mut d = ds.start;
            while d < ds.end {
                let n_dst = (ds.end - d).min(TILE_DST as i64);
                let mut s = ss.start;
                while s < ss.end {
                    let n_src = (ss.end - s).min(TILE_SRC as i64);
                    let from = src_at as i64 + d * row.src + s * column.src;
                    let to = dst_at as i64 + d * row.dst + s * column.dst;
                    self.fetch(ops, from + 768, row.src, n_dst as usize, self.plan.src);
                    let room = (column.n - s) as usize;
                    // SAFETY: a tile of the caller's plan.
                    unsafe { self.any(ops, bytes, (from, to), (n_dst, n_src), (dense, room)) };
                    s += TILE_SRC as i64;
                }
                d += TILE_DST as i64;
            }
        });
    }

    /// A tile of `n_dst` by `n_src`. The buffer's halves: 64 rows of 32 source elements, and what
    /// they turn into.
    unsafe fn any(
        &self,
        ops: &Ops,
        bytes: *mut u8,
        (from, to): (i64, i64),
        (n_dst, n_src): (i64, i64),
        (dense, room): (usize, usize),
    ) {
        let (row, column) = (self.plan.inner(), self.plan.dim(dense));
        let lines = bytes.wrapping_add(TILE_DST * TILE_SRC);
        let below = to + TILE_SRC as i64 * column.dst;
        self.fetch(ops, below, column.dst, n_src as usize, self.plan.dst);
        // SAFETY: a tile of the caller's plan, through both halves of the buffer.
        unsafe {
            for i in 0..n_dst {
                let line = bytes.wrapping_add(i as usize * TILE_SRC);
                self.load(line, from + i * row.src, column.src, n_src as usize, room);
            }
            transpose::bytes(ops, bytes, lines, (TILE_DST, TILE_SRC), TILE_DST);
            self.store_tile(lines, to, n_dst as usize, n_src as usize, dense);
        }
    }

    /// Asks for the lines of `n` runs that come soon, at a bit and so many bits apart.
    fn fetch(&self, ops: &Ops, bit: i64, stride: i64, n: usize, base: *const u8) {
        let rows = Rows::Apart([(stride >> 3) as isize]);
        // SAFETY: no list is read.
        unsafe { (ops.fetch)(bitrun::at(base, bit).0, rows, n, 1) };
    }

    /// The destination's rows of a tile.
    unsafe fn store_tile(&self, lines: *mut u8, to: i64, n_dst: usize, n_src: usize, dense: usize) {
        let (row, column) = (self.plan.inner(), self.plan.dim(dense));
        for i in 0..n_src {
            let line = lines.wrapping_add(i * TILE_DST);
            // SAFETY: slots of the caller's plan.
            unsafe { self.store(to + i as i64 * column.dst, row.dst, line, n_dst) };
        }
    }

    /// `n` elements, `stride` bits apart, to bytes; `room` of them may be read.
    unsafe fn load(&self, to: *mut u8, bit: i64, stride: i64, n: usize, room: usize) {
        let (src, bit, w) = (self.plan.src, self.plan.src_bit + bit, self.width as u32);
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
        let (dst, bit, w) = (self.plan.dst, self.plan.dst_bit + bit, self.width);
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

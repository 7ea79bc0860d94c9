//! Transposes of packed elements of 4 and 6 bits at whole bytes: strips of whole destination lines,
//! tile by tile.
use core::ops::Range;
use core::ptr::copy_nonoverlapping;

use super::ops::{Ops, Rows};
use super::walk::{set, walk};
use super::{nibbles, sixes};
use crate::device::part::Part;

/// How the elements of one width are turned.
pub(super) struct Way {
    /// Bits of an element.
    width: isize,
    /// Elements that whole bytes hold, at least.
    unit: i64,
    /// Elements of a destination row that are written together: whole lines.
    strip: isize,
    /// Source columns turned at a time, a power of two.
    columns: isize,
    /// The least extents: along the destination's innermost dimension, and along the source's.
    least: (i64, i64),
}

static FOUR: Way = Way {
    width: 4,
    unit: 2,
    strip: nibbles::TILE_DST,
    columns: nibbles::TILE_SRC,
    least: (nibbles::TILE_DST as i64, nibbles::TILE_SRC as i64),
};

static SIX: Way =
    Way { width: 6, unit: 4, strip: sixes::STRIP, columns: sixes::TILE_SRC, least: sixes::LEAST };

impl Way {
    /// The way for a width, if there is one.
    pub(super) fn new(ops: &Ops, width: usize) -> Option<&'static Way> {
        match width {
            4 => Some(&FOUR),
            6 if ops.sixes.is_some() => Some(&SIX),
            _ => None,
        }
    }

    /// How many of so many elements, along each of the two dimensions, are turned this way; none
    /// of either, or at least the least.
    pub(super) fn counts(&self, n_dst: i64, n_src: i64) -> (i64, i64) {
        let fits = n_dst >= self.least.0 && n_src >= self.least.1;
        if fits { (n_dst & -self.unit, n_src & -self.unit) } else { (0, 0) }
    }

    /// The bytes of so many elements, a multiple of the unit.
    pub(super) fn bytes(&self, n: isize) -> isize {
        n * self.width / 8
    }
}

/// One of a plan's transposes.
pub(super) struct Face<'a> {
    pub(super) ops: &'a Ops,
    pub(super) src: *const u8,
    /// Bytes from one source row to the next.
    pub(super) ss: isize,
    pub(super) dst: *mut u8,
    /// Bytes from one destination row to the next.
    pub(super) ds: isize,
    /// Elements of a destination row.
    pub(super) n_dst: isize,
    n_src: isize,
    pub(super) way: &'static Way,
    /// Whether whole lines go past the caches.
    streams: bool,
}

/// The first `n_dst` elements of the innermost dimension, and the first `n_src` of `dense`.
///
/// # Safety
/// As [`super::copy`]; [`Way::counts`] has given the numbers; strides in bits, whole bytes but for
/// the two that are the width.
pub(super) unsafe fn tiles(
    ops: &Ops,
    way: &'static Way,
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
        let face = Face { ops, src, ss, dst, ds, n_dst, n_src, way, streams };
        // SAFETY: elements of the caller's plan.
        unsafe { face.strips() };
    });
}

impl Face<'_> {
    /// Strips, from the destination's lines on, if its rows agree on them: from the first one where
    /// an element begins. The last tile of a row or column moves back over its predecessor, and
    /// makes the same bytes again.
    unsafe fn strips(&self) {
        let head = (self.dst as isize).wrapping_neg() & 63;
        let head = match self.way.width {
            _ if self.ds & 63 != 0 => 0,
            4 => head * 2,
            _ => (head + 2 * head % 3 * 64) / 3 * 4,
        };
        let mut d = 0;
        while d < self.n_dst {
            let end = if d < head { head } else { d + self.way.strip }.min(self.n_dst);
            let mut s = 0;
            while s < self.n_src {
                self.fetch(d..end, s);
                let s_at = s.min(self.n_src - self.way.columns);
                // SAFETY: a part of the face, which the caller vouches for.
                unsafe {
                    match self.way.width {
                        4 => nibbles::window(self, d..end, s_at),
                        _ => sixes::window(self, d..end, s_at),
                    }
                }
                s += self.way.columns;
            }
            d = end;
        }
    }

    /// Writes `n` bytes, whole lines of them past the caches.
    ///
    /// # Safety
    /// They are readable and writable, without overlap.
    pub(super) unsafe fn write(&self, to: *mut u8, from: *const u8, n: usize) {
        let whole = if self.streams && to as usize & 63 == 0 { n & !63 } else { 0 };
        // SAFETY: the caller's bytes.
        unsafe {
            if whole > 0 {
                (self.ops.stream)(to, from, whole / 64);
            }
            if whole < n {
                copy_nonoverlapping(from.wrapping_add(whole), to.wrapping_add(whole), n - whole);
            }
        }
    }

    /// Asks for the source's lines that the next 16 tiles of a strip need, each tile for its share
    /// of the rows, and for the next tile's destination lines if they are written in part.
    /// (Memory is slow to change its rows: several lines of a row at once.)
    fn fetch(&self, ds: Range<isize>, s: isize) {
        let &Way { strip, columns, .. } = self.way;
        let share = s & (15 * columns);
        let (row, column) = (
            ds.start + (share >> columns.trailing_zeros()) * (strip / 16),
            s - share + 16 * columns,
        );
        let src = self.src.wrapping_offset(row * self.ss + self.way.bytes(column));
        let dst = (s + columns) * self.ds + self.way.bytes(ds.start);
        let dst = self.dst.wrapping_offset(dst);
        let part = (dst as isize | self.ds | self.way.bytes(ds.end - ds.start)) & 63 != 0;
        // SAFETY: any address will do, and no list is read.
        unsafe {
            if row < ds.end && column < self.n_src {
                (self.ops.fetch)(src, Rows::Apart([self.ss]), strip as usize / 16, 5);
            }
            if self.streams && part {
                let (rows, lines) = (columns as usize, 64 >> columns.trailing_zeros());
                (self.ops.fetch)(dst, Rows::Apart([self.ds]), rows, lines);
            }
        }
    }
}

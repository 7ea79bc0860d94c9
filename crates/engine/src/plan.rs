//! The byte plan: a copy for a backend. Pointers, extents, strides; no tensors.
//!
//! [`Plan::simplify`] brings a plan into its normal form; no byte is read or written.

use crate::array::Array;
pub use crate::layout::MAX_NDIM;

/// The kind of element, which is the unit of the strides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item {
    /// Whole bytes; strides count bytes.
    Bytes(usize),
    /// Packed bits, least significant first; strides count bits. `width` bits are copied; when
    /// `dst_slot` is larger, the destination's bits above `width` up to `dst_slot` become 0.
    Bits {
        /// Bits of the value.
        width: usize,
        /// Bits that belong to the element in the destination; at least `width`.
        dst_slot: usize,
    },
}

/// A copy of elements from one strided layout to another. Every extent is 1 or more, and the caller
/// has checked that every element is in memory that may be read or written.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Source element (0, …, 0).
    pub src: *const u8,
    /// Destination element (0, …, 0).
    pub dst: *mut u8,
    /// What one element is.
    pub item: Item,
    /// Dimensions, outermost first.
    pub dims: Array<Dim, MAX_NDIM>,
}

/// One dimension of a plan: extent and both strides, in the unit of the item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dim {
    /// Extent.
    pub n: i64,
    /// Source stride.
    pub src: i64,
    /// Destination stride.
    pub dst: i64,
}

impl Dim {
    /// An absent dimension.
    pub const NONE: Dim = Dim { n: 1, src: 0, dst: 0 };

    /// The sort key of dimensions, the largest outermost.
    #[inline(always)]
    fn key(&self) -> (u64, u64) {
        (self.dst.unsigned_abs(), self.src.unsigned_abs())
    }

    /// This one and `inner` as one, if each step here is one past the end of `inner`.
    #[inline(always)]
    fn merged(&self, inner: Dim) -> Option<Dim> {
        let (src, dst) = (inner.n.checked_mul(inner.src)?, inner.n.checked_mul(inner.dst)?);
        let n = self.n.checked_mul(inner.n)?;
        (src == self.src && dst == self.dst).then_some(Dim { n, ..inner })
    }
}

/// Normalises dimensions one by one, the outermost first: drops extents of 1, and merges contiguous
/// ones.
struct Gathered {
    /// The innermost so far, which may grow; of extent 1 if there is none.
    last: Dim,
    /// Each destination stride was smaller than the one before.
    sorted: bool,
}

impl Gathered {
    const NONE: Gathered = Gathered { last: Dim::NONE, sorted: true };

    /// Adds one; returns the previous one, if it is complete.
    #[inline(always)]
    fn add(&mut self, dim: Dim) -> Option<Dim> {
        if dim.n == 1 {
            return None;
        }
        let last = self.last;
        if let Some(one) = last.merged(dim) {
            self.last = one;
            return None;
        }
        self.last = dim;
        if last.n == 1 {
            return None;
        }
        self.sorted &= last.dst > dim.dst && dim.dst >= 0;
        Some(last)
    }
}

impl Plan {
    /// An empty one.
    #[inline(always)]
    pub const fn none() -> Plan {
        Plan::new(core::ptr::null(), core::ptr::null_mut(), Item::Bytes(0))
    }

    /// A plan of one element; [`Plan::push`] adds dimensions.
    #[inline(always)]
    pub const fn new(src: *const u8, dst: *mut u8, item: Item) -> Plan {
        Plan { src, dst, item, dims: Array::new() }
    }

    /// Adds an innermost dimension; one beyond [`MAX_NDIM`] is ignored.
    #[inline(always)]
    pub fn push(&mut self, dim: Dim) {
        self.dims.push(dim);
    }

    /// Number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.dims.len()
    }

    /// Dimension `i`, or [`Dim::NONE`].
    #[inline(always)]
    pub fn dim(&self, i: usize) -> Dim {
        self.dims.get(i).copied().unwrap_or(Dim::NONE)
    }

    /// Replaces dimension `i`.
    #[inline(always)]
    pub fn set(&mut self, i: usize, dim: Dim) {
        if let Some(slot) = self.dims.get_mut(i) {
            *slot = dim;
        }
    }

    /// The innermost dimension, or [`Dim::NONE`].
    pub fn inner(&self) -> Dim {
        self.dims.last().copied().unwrap_or(Dim::NONE)
    }

    /// Number of elements (saturating).
    pub fn count(&self) -> u64 {
        self.dims.iter().fold(1u64, |n, dim| n.saturating_mul(dim.n as u64))
    }

    /// Number of bytes written, rounded up (saturating).
    #[inline]
    pub fn nbytes(&self) -> u64 {
        match self.item {
            Item::Bytes(n) => self.count().saturating_mul(n as u64),
            Item::Bits { dst_slot, .. } => self.count().saturating_mul(dst_slot as u64) / 8 + 1,
        }
    }

    /// Brings the plan into its normal form: whole bytes where it can be, no extents of 1, positive
    /// destination strides, dimensions sorted by destination stride (outermost first), neighbours
    /// merged, and dimensions dense on both sides made part of the element.
    ///
    /// A plan of [`Item::Bits`] keeps a negative destination stride where flipping it would leave
    /// the first element in the middle of a byte.
    pub fn simplify(&mut self) {
        let (mut gathered, mut kept) = (Gathered::NONE, 0);
        for i in 0..self.ndim() {
            let dim = self.turned(self.dim(i));
            if let Some(done) = gathered.add(dim) {
                self.set(kept, done);
                kept += 1;
            }
        }
        if gathered.last.n != 1 {
            self.set(kept, gathered.last);
            kept += 1;
        }
        self.dims.truncate(kept);
        self.settle(gathered.sorted);
    }

    /// Adds dimensions, the outermost first, to a plan that has none, in normal form.
    #[inline(always)]
    pub fn fill(&mut self, dims: impl Iterator<Item = Dim>) {
        let mut gathered = Gathered::NONE;
        for dim in dims {
            let dim = self.turned(dim);
            if let Some(done) = gathered.add(dim) {
                self.push(done);
            }
        }
        if gathered.last.n != 1 {
            self.push(gathered.last);
        }
        self.settle(gathered.sorted);
    }

    /// The rest of a normal form.
    #[inline]
    fn settle(&mut self, sorted: bool) {
        if !sorted {
            self.sort();
            self.merge();
        }
        self.absorb();
        if let Item::Bits { .. } = self.item {
            self.settle_bits();
        }
    }

    /// As [`Plan::settle`], for plans of bits: merged dimensions may be reversed though each of
    /// them could not, and merge with their neighbours then.
    #[inline(never)]
    fn settle_bits(&mut self) {
        while (0..self.ndim()).fold(false, |found, i| {
            let dim = self.dim(i);
            let turned = self.turned(dim);
            self.set(i, turned);
            found | (turned != dim)
        }) {
            self.sort();
            self.merge();
            self.absorb();
        }
        if self.bits_to_bytes() {
            self.absorb();
        }
    }

    /// Whether each destination stride exceeds the extent of all inner dimensions, so that no two
    /// elements share a unit. For a plan in normal form.
    #[inline]
    pub fn is_nested(&self) -> bool {
        let (Item::Bytes(slot) | Item::Bits { dst_slot: slot, .. }) = self.item;
        let mut reach = slot as i64;
        self.dims.iter().rev().all(|dim| {
            let inside = reach;
            reach = (dim.n - 1).saturating_mul(dim.dst).saturating_add(inside);
            dim.dst >= inside
        })
    }

    /// Converts bits to bytes if sizes, strides and offsets are whole bytes.
    fn bits_to_bytes(&mut self) -> bool {
        let Item::Bits { width, dst_slot } = self.item else { return false };
        let strides = self.dims.iter().fold(0, |all, dim| all | dim.src | dim.dst);
        if width != dst_slot || width % 8 != 0 || strides % 8 != 0 {
            return false;
        }
        self.item = Item::Bytes(width / 8);
        for dim in self.dims.iter_mut() {
            (dim.src, dim.dst) = (dim.src / 8, dim.dst / 8);
        }
        true
    }

    /// Makes a dimension's destination stride positive, by starting from its other end, if that is
    /// a whole byte on both sides.
    #[inline(always)]
    fn turned(&mut self, dim: Dim) -> Dim {
        let Dim { n, src, dst } = dim;
        let last = n.wrapping_sub(1);
        if dst >= 0 || !self.moved(last.wrapping_mul(src), last.wrapping_mul(dst)) {
            return dim;
        }
        Dim { n, src: src.wrapping_neg(), dst: dst.wrapping_neg() }
    }

    /// Moves the first element, if by whole bytes on both sides.
    #[inline(never)]
    fn moved(&mut self, by_src: i64, by_dst: i64) -> bool {
        let log = if matches!(self.item, Item::Bytes(_)) { 0 } else { 3 };
        let whole = (by_src | by_dst) & ((1 << log) - 1) == 0;
        if whole {
            self.src = self.src.wrapping_offset((by_src >> log) as isize);
            self.dst = self.dst.wrapping_offset((by_dst >> log) as isize);
        }
        whole
    }

    /// Insertion sort: outermost, that is largest destination stride, first.
    fn sort(&mut self) {
        for i in 1..self.ndim() {
            let dim = self.dim(i);
            let mut to = i;
            while to > 0 && self.dim(to - 1).key() < dim.key() {
                let above = self.dim(to - 1);
                self.set(to, above);
                to -= 1;
            }
            self.set(to, dim);
        }
    }

    /// Merges contiguous dimensions.
    fn merge(&mut self) {
        let mut kept = 0usize;
        for i in 0..self.ndim() {
            let dim = self.dim(i);
            match self.dim(kept.wrapping_sub(1)).merged(dim) {
                Some(one) if kept > 0 => self.set(kept - 1, one),
                _ => {
                    self.set(kept, dim);
                    kept += 1;
                }
            }
        }
        self.dims.truncate(kept);
    }

    /// While both sides are dense in the innermost dimension, the element grows by it.
    fn absorb(&mut self) {
        while let Some(&Dim { n, src, dst }) = self.dims.last() {
            let bytes = match self.item {
                Item::Bytes(bytes) => bytes,
                Item::Bits { width, dst_slot } if width == dst_slot => width,
                Item::Bits { .. } => return,
            };
            let grown = (bytes as i64).checked_mul(n).map(|n| n as usize);
            let (Some(grown), true) = (grown, src == dst && src == bytes as i64) else { return };
            self.item = match self.item {
                Item::Bytes(_) => Item::Bytes(grown),
                Item::Bits { .. } => Item::Bits { width: grown, dst_slot: grown },
            };
            self.dims.truncate(self.ndim() - 1);
        }
    }
}

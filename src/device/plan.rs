//! The byte plan: what a backend is asked to copy. Pointers, extents, strides; no tensors.
//!
//! [`Plan::simplify`] brings a plan into its normal form and [`Plan::kernel`] names the cheapest
//! way to carry it out. Both are pure: no byte is read or written.

use super::part::Part;
use crate::array::Array;
pub use crate::layout::MAX_NDIM;

/// What one element is made of, and with it the unit of the strides.
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
/// has checked that every element lies in memory it may read or write.
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
    /// A dimension that is not there.
    pub const NONE: Dim = Dim { n: 1, src: 0, dst: 0 };
}

/// How the CPU carries out a simplified plan. Dimension numbers are the simplified plan's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kernel {
    /// One contiguous block.
    Memcpy,
    /// So few elements that whatever is prepared for them costs more than it saves.
    Few,
    /// Contiguous runs of more than 16 bytes, or of a size that is no power of two.
    Rows,
    /// The innermost dimension repeats one source element.
    Fill,
    /// The destination is dense in the innermost dimensions, the source in others.
    Transpose,
    /// The same, of elements of 1 and 2 bytes; one side has less than 16 bytes.
    Slim,
    /// A few source planes (the innermost dimension) woven into one contiguous run.
    Interleave,
    /// The destination is dense, the source steps by so many elements (negative: backwards).
    Step(i64),
    /// The destination is dense, the source is anywhere.
    Gather,
    /// The destination has gaps between neighbours.
    Scatter,
    /// Elements that are not whole bytes, or not at whole bytes.
    Bits,
}

/// The most planes that [`Kernel::Interleave`] weaves, and the widest [`Kernel::Step`].
pub const MAX_STEP: i64 = 8;

impl Plan {
    /// One to be made: of no byte.
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
    pub fn push(&mut self, dim: Dim) {
        self.dims.push(dim);
    }

    /// Number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.dims.len()
    }

    /// Dimension `i`, or [`Dim::NONE`].
    pub fn dim(&self, i: usize) -> Dim {
        self.dims.get(i).copied().unwrap_or(Dim::NONE)
    }

    /// Replaces dimension `i`.
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
        self.dims.iter().fold(1u64, |n, dim| n.saturating_mul(dim.n.max(0) as u64))
    }

    /// Number of bytes written, rounded up (saturating).
    pub fn nbytes(&self) -> u64 {
        match self.item {
            Item::Bytes(n) => self.count().saturating_mul(n as u64),
            Item::Bits { dst_slot, .. } => self.count().saturating_mul(dst_slot as u64) / 8 + 1,
        }
    }

    /// Brings the plan into its normal form: whole bytes where it can be, no extents of 1,
    /// positive destination strides, dimensions sorted by destination stride (outermost first),
    /// neighbours merged, and what is dense on both sides made part of the element.
    ///
    /// A plan of [`Item::Bits`] keeps a negative destination stride where flipping it would leave
    /// the first element in the middle of a byte.
    pub fn simplify(&mut self) {
        self.drop_ones();
        self.bits_to_bytes();
        self.flip();
        self.sort();
        self.merge();
        self.absorb();
        if self.bits_to_bytes() {
            self.absorb();
        }
    }

    /// Whether it is in its normal form.
    pub fn is_simple(&self) -> bool {
        let mut plan = *self;
        plan.simplify();
        let same = (plan.src, plan.dst, plan.item) == (self.src, self.dst, self.item);
        same && *plan.dims == *self.dims
    }

    fn drop_ones(&mut self) {
        let mut kept = 0;
        for i in 0..self.ndim() {
            let dim = self.dim(i);
            if dim.n != 1 {
                self.set(kept, dim);
                kept += 1;
            }
        }
        self.dims.truncate(kept);
    }

    /// Bits that are whole bytes at whole bytes become bytes.
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

    fn flip(&mut self) {
        let unit = if matches!(self.item, Item::Bytes(_)) { 1 } else { 8 };
        for dim in self.dims.iter_mut() {
            let Dim { n, src, dst } = *dim;
            let (by_src, by_dst) = ((n - 1).wrapping_mul(src), (n - 1).wrapping_mul(dst));
            if dst < 0 && by_src % unit == 0 && by_dst % unit == 0 {
                self.src = self.src.wrapping_offset((by_src / unit) as isize);
                self.dst = self.dst.wrapping_offset((by_dst / unit) as isize);
                *dim = Dim { n, src: src.wrapping_neg(), dst: dst.wrapping_neg() };
            }
        }
    }

    /// Insertion sort: outermost, that is largest destination stride, first.
    fn sort(&mut self) {
        let key = |d: Dim| (d.dst.unsigned_abs(), d.src.unsigned_abs());
        for i in 1..self.ndim() {
            let dim = self.dim(i);
            let mut to = i;
            while to > 0 && key(self.dim(to - 1)) < key(dim) {
                let above = self.dim(to - 1);
                self.set(to, above);
                to -= 1;
            }
            self.set(to, dim);
        }
    }

    fn merge(&mut self) {
        let mut kept = 0;
        for i in 0..self.ndim() {
            let inner = self.dim(i);
            let outer = if kept > 0 { self.dim(kept - 1) } else { Dim::NONE };
            let spans = |stride: i64| inner.n.checked_mul(stride);
            let fits = spans(inner.src) == Some(outer.src) && spans(inner.dst) == Some(outer.dst);
            match outer.n.checked_mul(inner.n) {
                Some(n) if kept > 0 && fits => self.set(kept - 1, Dim { n, ..inner }),
                _ => {
                    self.set(kept, inner);
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

    /// The way to carry out this plan, which must be simplified.
    pub fn kernel(&self) -> Kernel {
        Part::whole(self).kernel()
    }
}

//! The byte plan: what a backend is asked to copy. Pointers, extents, strides; no tensors.

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

/// A copy of `shape` elements from one strided layout to another. Every extent is 1 or more, and
/// the caller has checked that every element lies in memory it may read or write.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Source element (0, …, 0).
    pub src: *const u8,
    /// Destination element (0, …, 0).
    pub dst: *mut u8,
    /// What one element is.
    pub item: Item,
    /// Number of dimensions in use, at most [`MAX_NDIM`].
    pub ndim: usize,
    /// Extents.
    pub shape: [i64; MAX_NDIM],
    /// Source strides, in the unit of `item`.
    pub src_strides: [i64; MAX_NDIM],
    /// Destination strides, in the unit of `item`.
    pub dst_strides: [i64; MAX_NDIM],
}

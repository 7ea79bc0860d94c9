//! Overlap of strided layouts with elements of any number of bits, by [`crate::overlap`].

use crate::layout::{self, Order};
use crate::overlap::{self, Strided, Verdict};

/// The elements of a tensor in memory.
pub struct Elements<'a> {
    /// Address of element (0, …, 0).
    pub address: u64,
    /// Extents.
    pub shape: &'a [i64],
    /// Strides in elements.
    pub strides: &'a [i64],
    /// Bits from one element of a dense layout to the next.
    pub item_bits: u32,
}

impl Elements<'_> {
    /// As [`crate::overlap`] needs them, in units of so many bits.
    fn strided(&self, unit_bits: u32) -> Strided<'_> {
        let units = |bits: u32| bits.checked_div(unit_bits).unwrap_or(0);
        let (shape, strides, item) = (self.shape, self.strides, units(self.item_bits));
        let base = i128::from(self.address) * i128::from(units(8));
        Strided { base, shape, strides, scale: item, item: item.into() }
    }
}

/// Whole bytes where all are: the numbers stay small.
fn unit_bits(item_bits: &[u32]) -> u32 {
    if item_bits.iter().all(|bits| bits.is_multiple_of(8)) { 8 } else { 1 }
}

/// Do two elements of one layout share memory?
pub fn self_verdict(shape: &[i64], strides: &[i64], item_bits: u32) -> Verdict {
    if layout::is_contiguous(shape, strides, Order::C) {
        return Verdict::Disjoint;
    }
    let elements = Elements { address: 0, shape, strides, item_bits };
    overlap::self_overlap(&elements.strided(unit_bits(&[item_bits])))
}

/// Do two layouts share memory?
pub fn pair_verdict(a: &Elements, b: &Elements) -> Verdict {
    let unit = unit_bits(&[a.item_bits, b.item_bits]);
    overlap::pair_overlap(&a.strided(unit), &b.strided(unit))
}

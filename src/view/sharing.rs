//! Do elements share memory? Strided layouts with elements of any bits, put to [`crate::overlap`].

use crate::layout::{self, MAX_NDIM, Order};
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

/// Strides in units of `unit_bits`. `None` if one that counts does not fit.
fn scaled(elements: &Elements, unit_bits: u32) -> Option<[i64; MAX_NDIM]> {
    let (mut scaled, factor) = ([0; MAX_NDIM], i64::from(elements.item_bits / unit_bits.max(1)));
    let dims = elements.shape.iter().zip(elements.strides);
    for (slot, (&extent, &stride)) in scaled.iter_mut().zip(dims) {
        *slot = if extent == 1 { 0 } else { stride.checked_mul(factor)? };
    }
    Some(scaled)
}

fn strided<'a>(
    elements: &Elements<'a>,
    unit_bits: u32,
    strides: &'a [i64; MAX_NDIM],
) -> Strided<'a> {
    Strided {
        base: i128::from(elements.address) * i128::from(8 / unit_bits.max(1)),
        shape: elements.shape,
        strides: strides.get(..elements.shape.len()).unwrap_or(&[]),
        item: (elements.item_bits / unit_bits.max(1)).into(),
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
    let (elements, unit) =
        (Elements { address: 0, shape, strides, item_bits }, unit_bits(&[item_bits]));
    match scaled(&elements, unit) {
        Some(strides) => overlap::self_overlap(&strided(&elements, unit, &strides)),
        None => Verdict::Undecided,
    }
}

/// Do two layouts share memory?
pub fn pair_verdict(a: &Elements, b: &Elements) -> Verdict {
    let unit = unit_bits(&[a.item_bits, b.item_bits]);
    match (scaled(a, unit), scaled(b, unit)) {
        (Some(a_strides), Some(b_strides)) => {
            overlap::pair_overlap(&strided(a, unit, &a_strides), &strided(b, unit, &b_strides))
        }
        _ if a.shape.contains(&0) || b.shape.contains(&0) => Verdict::Disjoint,
        _ => Verdict::Undecided,
    }
}

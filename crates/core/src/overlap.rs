//! Overlap of strided layouts: exact decisions, in bounded work, about the units that they access.
//!
//! A *unit* is whatever base, strides and `item` are counted in: bytes, or bits for packed types.
//! Both problems become one. Reverse every negative stride (the base moves to the lowest unit) and
//! one side (`x` becomes `extent - 1 - x`), so that all numbers are positive:
//!
//! > is there an `x` with `0 <= x_k <= bound_k` and `target - window <= Σ coef_k x_k <= target`?
//!
//! The window is the freedom inside the items. [`sums`] decides it.
#![forbid(unsafe_code)]

mod sums;

use sums::{ONE, TWO, Term, Terms, WORK, span};

/// The result about shared units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Proved: no unit is shared.
    Disjoint,
    /// Proved: at least one unit is shared.
    Overlap,
    /// Not decided within the bounded work, or the numbers overflow. Treat as overlap.
    Undecided,
}

/// The units that a strided array accesses: `item` units from `base + Σ index * stride * scale` on,
/// for every index tuple. None when an extent or `item` is 0 or less.
#[derive(Clone, Copy, Debug)]
pub struct Strided<'a> {
    /// Where element (0, …, 0) starts, in units.
    pub base: i128,
    /// Extents.
    pub shape: &'a [i64],
    /// Strides, one per extent.
    pub strides: &'a [i64],
    /// Units that a stride counts.
    pub scale: u32,
    /// Units that one element takes.
    pub item: i128,
}

/// Do two different index tuples of one layout share a unit?
pub fn self_overlap(layout: &Strided) -> Verdict {
    if layout.is_empty() {
        return Verdict::Disjoint;
    }
    let mut dims = Terms::<ONE>::new();
    if layout.shape.len() != layout.strides.len() {
        return Verdict::Undecided;
    }
    for (step, last) in layout.moving_dims() {
        let Ok(step) = u64::try_from(step) else { return Verdict::Undecided };
        // Equal steps: one forward along one dimension, one back along the other, ends nowhere.
        if step == 0 || dims.as_slice().iter().any(|term| term.coef == step) {
            return Verdict::Overlap;
        }
        if dims.add(step, last).is_none() {
            return Verdict::Undecided;
        }
    }
    if crowded(dims.as_slice(), layout.item) {
        return Verdict::Overlap;
    }
    // Two tuples differ by d, and the first d_k that is not 0 may be taken as positive. Innermost
    // first: those problems are the smallest.
    let mut work = WORK;
    let mut verdict = Verdict::Disjoint;
    for first in (0..dims.as_slice().len()).rev() {
        match shared_by_difference(dims.as_slice(), first, layout.item, &mut work) {
            Some(Verdict::Disjoint) => {}
            Some(Verdict::Overlap) => return Verdict::Overlap,
            Some(Verdict::Undecided) | None => verdict = Verdict::Undecided,
        }
    }
    verdict
}

/// Do two layouts share a unit?
pub fn pair_overlap(a: &Strided, b: &Strided) -> Verdict {
    if a.is_empty() || b.is_empty() {
        return Verdict::Disjoint;
    }
    shared_by_pair(a, b).unwrap_or(Verdict::Undecided)
}

impl<'a> Strided<'a> {
    fn is_empty(&self) -> bool {
        self.item <= 0 || self.shape.iter().any(|extent| *extent <= 0)
    }

    /// Stride and last index of the dimensions that have more than one index.
    fn dims(&self) -> impl Iterator<Item = (i128, u64)> + use<'a> {
        let moving = self.strides.iter().zip(self.shape).filter(|(_, extent)| **extent > 1);
        let scale = i128::from(self.scale);
        moving.map(move |(stride, extent)| {
            (i128::from(*stride).wrapping_mul(scale), extent.unsigned_abs().wrapping_sub(1))
        })
    }

    /// The same with the stride's size only.
    fn moving_dims(&self) -> impl Iterator<Item = (u128, u64)> + use<'a> {
        self.dims().map(|(stride, last)| (stride.unsigned_abs(), last))
    }

    /// First and last unit accessed. `None` if they overflow.
    fn bounds(&self) -> Option<(i128, i128)> {
        if self.shape.len() != self.strides.len() {
            return None;
        }
        let mut bounds = (self.base, self.base.checked_add(self.item.checked_sub(1)?)?);
        for (stride, last) in self.dims() {
            let way = stride.checked_mul(i128::from(last))?;
            let end = if way < 0 { &mut bounds.0 } else { &mut bounds.1 };
            *end = end.checked_add(way)?;
        }
        Some(bounds)
    }
}

/// Whether there are more elements than their range has room for: then two of them share a unit.
fn crowded(dims: &[Term], item: i128) -> bool {
    let mut units = item;
    for term in dims {
        match units.checked_mul(i128::from(term.bound).saturating_add(1)) {
            Some(product) => units = product,
            None => return span(dims, item).is_some(),
        }
    }
    span(dims, item).is_some_and(|room| units > room)
}

/// Do two elements share a unit whose tuples first differ in dimension `first` of `dims`?
#[inline(never)] // two `Terms` in one frame would pass 4 KiB
fn shared_by_difference(
    dims: &[Term],
    first: usize,
    item: i128,
    work: &mut u32,
) -> Option<Verdict> {
    let (lead, inner) = dims.get(first..)?.split_first()?;
    // |Σ d c| < item with d_first = 1 + x and d_j = bound_j - x_j.
    let most = item.checked_sub(1)?;
    let target = span(inner, most)?.checked_sub(i128::from(lead.coef))?;
    if target < 0 {
        return Some(Verdict::Disjoint); // one step of `lead` clears all that lies inside it
    }
    let mut terms = Terms::<ONE>::new();
    terms.add(lead.coef, lead.bound.checked_sub(1)?)?;
    for term in inner {
        terms.add(term.coef, term.bound.checked_mul(2)?)?;
    }
    terms.solve(target, most.checked_mul(2)?, work)
}

#[inline(never)] // as above
fn shared_by_pair(a: &Strided, b: &Strided) -> Option<Verdict> {
    let ((a_first, a_last), (b_first, b_last)) = (a.bounds()?, b.bounds()?);
    if a_last < b_first || b_last < a_first {
        return Some(Verdict::Disjoint);
    }
    if a.base == b.base {
        return Some(Verdict::Overlap); // both have an element there
    }
    let mut terms = Terms::<TWO>::new();
    for (step, last) in a.moving_dims().chain(b.moving_dims()) {
        terms.add(u64::try_from(step).ok()?, last)?;
    }
    // a_first + Σ a + u == b_last - Σ b - v, with u < a.item and v < b.item.
    let window = a.item.checked_add(b.item)?.checked_sub(2)?;
    terms.solve(b_last.checked_sub(a_first)?, window, &mut { WORK })
}

//! Splits a plan into pieces that fit into a staging buffer.

use super::plan::{Dim, Item, Plan};
use crate::error::Result;

/// Calls `carry_out` with the pieces of a simplified plan of bytes, one by one; each copies at most
/// `most` bytes.
pub fn each(
    plan: &Plan,
    most: usize,
    mut carry_out: impl FnMut(&Plan) -> Result<()>,
) -> Result<()> {
    let pieces = Pieces::new(plan, most);
    (0..).map_while(|i| pieces.get(i)).try_for_each(|piece| carry_out(&piece))
}

/// The two halves of a plan through compact memory: into it, and out of it; both simplified.
pub fn through(plan: &Plan, memory: *mut u8) -> (Plan, Plan) {
    let (mut into, mut back) = (*plan, *plan);
    halve(&mut into, memory, false);
    halve(&mut back, memory, true);
    (into, back)
}

/// One half: into memory, or out of it (`back`).
pub fn halve(plan: &mut Plan, memory: *mut u8, back: bool) {
    let step = match plan.item {
        Item::Bytes(nbytes) => nbytes as i64,
        Item::Bits { dst_slot, .. } => dst_slot as i64,
    };
    compact(plan, memory, back, step);
    plan.simplify();
}

/// Replaces the destination, or the source (`back`), by compact memory with elements `step` apart.
pub fn compact(plan: &mut Plan, memory: *mut u8, back: bool, mut step: i64) {
    match back {
        false => plan.dst = memory,
        true => plan.src = memory,
    }
    for dim in plan.dims.iter_mut().rev() {
        *(if back { &mut dim.src } else { &mut dim.dst }) = step;
        step = step.wrapping_mul(dim.n);
    }
}

/// The copy in the opposite direction.
pub fn reversed(plan: &Plan) -> Plan {
    let mut back = *plan;
    (back.src, back.dst) = (plan.dst, plan.src.cast_mut());
    for dim in back.dims.iter_mut() {
        (dim.src, dim.dst) = (dim.dst, dim.src);
    }
    back
}

/// The pieces of a simplified plan: blocks of one dimension, inside loops over the outer ones; or,
/// where one element is too large, blocks of its bytes.
pub struct Pieces<'a> {
    plan: &'a Plan,
    most: usize,
    /// The dimension that is cut; outer ones are iterated. `ndim` when an item alone is large.
    cut: usize,
    /// Extent of a block in that dimension.
    block: i64,
}

impl<'a> Pieces<'a> {
    /// Pieces of at most so many bytes. A plan of bits is one piece.
    pub fn new(plan: &'a Plan, most: usize) -> Pieces<'a> {
        let Item::Bytes(nbytes) = plan.item else {
            return Pieces { plan, most: 0, cut: 0, block: plan.dim(0).n };
        };
        let mut inner = nbytes.min(most) as u64;
        let (mut cut, mut block) = (plan.ndim(), 1);
        while cut > 0 && inner <= most as u64 {
            cut -= 1;
            let n = plan.dim(cut).n;
            let fits = (most as u64).checked_div(inner).unwrap_or(1) as i64;
            block = n.min(fits.max(1));
            if block < n {
                break;
            }
            inner = inner.saturating_mul(n as u64);
        }
        Pieces { plan, most, cut, block }
    }

    /// Blocks of the item's bytes.
    fn of_item(&self) -> u64 {
        match self.plan.item {
            Item::Bytes(nbytes) => nbytes.div_ceil(self.most.max(1)).max(1) as u64,
            Item::Bits { .. } => 1,
        }
    }

    /// Blocks of the dimension that is cut.
    fn of_dim(&self) -> u64 {
        (self.plan.dim(self.cut).n - 1).checked_div(self.block).unwrap_or(0) as u64 + 1
    }

    /// Number of pieces.
    pub fn count(&self) -> u64 {
        let outer = (0..self.cut).map(|i| self.plan.dim(i).n as u64);
        outer.fold(self.of_item().wrapping_mul(self.of_dim()), u64::wrapping_mul)
    }

    /// Piece number `at`, if there is one, simplified.
    pub fn get(&self, at: u64) -> Option<Plan> {
        let mut piece = self.cut(at)?;
        piece.simplify();
        Some(piece)
    }

    /// Piece number `at`, if there is one, with the plan's dimensions.
    pub fn cut(&self, mut at: u64) -> Option<Plan> {
        let mut piece = *self.plan;
        let mut digit = |n: u64| {
            let index = at.checked_rem(n).unwrap_or(0);
            at = at.checked_div(n).unwrap_or(0);
            index as i64
        };
        let (mut src, mut dst) = (0i64, 0i64);
        if let Item::Bytes(nbytes) = self.plan.item {
            if nbytes == 0 {
                return None;
            }
            let first = digit(self.of_item()).wrapping_mul(self.most as i64);
            piece.item = Item::Bytes((nbytes - first as usize).min(self.most));
            (src, dst) = (first, first);
        }
        let dim = self.plan.dim(self.cut);
        let first = digit(self.of_dim()).wrapping_mul(self.block);
        piece.set(self.cut, Dim { n: self.block.min(dim.n - first), ..dim });
        src = src.wrapping_add(first.wrapping_mul(dim.src));
        dst = dst.wrapping_add(first.wrapping_mul(dim.dst));
        for i in (0..self.cut).rev() {
            let dim = self.plan.dim(i);
            let index = digit(dim.n as u64);
            src = src.wrapping_add(index.wrapping_mul(dim.src));
            dst = dst.wrapping_add(index.wrapping_mul(dim.dst));
            piece.set(i, Dim { n: 1, ..dim });
        }
        piece.src = piece.src.wrapping_offset(src as isize);
        piece.dst = piece.dst.wrapping_offset(dst as isize);
        (at == 0).then_some(piece)
    }
}

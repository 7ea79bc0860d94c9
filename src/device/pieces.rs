//! A plan in pieces that fit into memory of a given size, and a piece by way of such memory.

use super::plan::{Dim, Item, Plan};
use crate::error::Result;

/// Calls `carry_out` with the pieces of a simplified plan of bytes, one by one; each moves at most
/// `most` bytes.
pub fn each(
    plan: &Plan,
    most: usize,
    mut carry_out: impl FnMut(&Plan) -> Result<()>,
) -> Result<()> {
    let Item::Bytes(nbytes) = plan.item else { return carry_out(plan) };
    let mut first = 0;
    while first < nbytes {
        let n = (nbytes - first).min(most);
        let mut part = *plan;
        part.item = Item::Bytes(n);
        (part.src, part.dst) = (part.src.wrapping_add(first), part.dst.wrapping_add(first));
        let mut pieces = Pieces::of(&part, n as u64, most as u64);
        while let Some(piece) = pieces.next() {
            carry_out(&piece)?;
        }
        first += n;
    }
    Ok(())
}

/// The two halves of a plan that goes through compact memory: into it, and back out; both
/// simplified.
pub fn through(plan: &Plan, memory: *mut u8) -> (Plan, Plan) {
    let (mut into, mut back) = (*plan, *plan);
    halve(&mut into, memory, false);
    halve(&mut back, memory, true);
    (into, back)
}

/// One of them: into memory, or `back`.
pub fn halve(plan: &mut Plan, memory: *mut u8, back: bool) {
    match back {
        false => plan.dst = memory,
        true => plan.src = memory,
    }
    let mut step = match plan.item {
        Item::Bytes(nbytes) => nbytes as i64,
        Item::Bits { dst_slot, .. } => dst_slot as i64,
    };
    for i in (0..plan.ndim()).rev() {
        let dim = plan.dim(i);
        plan.set(i, if back { Dim { src: step, ..dim } } else { Dim { dst: step, ..dim } });
        step = step.wrapping_mul(dim.n);
    }
    plan.simplify();
}

/// The same copy the other way round.
pub fn reversed(plan: &Plan) -> Plan {
    let mut back = *plan;
    (back.src, back.dst) = (plan.dst, plan.src.cast_mut());
    for dim in back.dims.iter_mut() {
        (dim.src, dim.dst) = (dim.dst, dim.src);
    }
    back
}

/// Blocks of one dimension, inside loops over the outer ones.
struct Pieces<'a> {
    plan: &'a Plan,
    /// The dimension that is cut; outer ones are looped over. `ndim` when an item alone is large.
    cut: usize,
    /// Extent of a block in that dimension.
    block: i64,
    /// Pieces that were given out.
    next: u64,
}

impl<'a> Pieces<'a> {
    fn of(plan: &'a Plan, item_nbytes: u64, most: u64) -> Pieces<'a> {
        let mut inner = item_nbytes;
        let (mut cut, mut block) = (plan.ndim(), 1);
        while cut > 0 && inner <= most {
            cut -= 1;
            let n = plan.dim(cut).n;
            let fits = most.checked_div(inner).unwrap_or(1) as i64;
            block = n.min(fits.max(1));
            if block < n {
                break;
            }
            inner = inner.saturating_mul(n as u64);
        }
        Pieces { plan, cut, block, next: 0 }
    }

    fn next(&mut self) -> Option<Plan> {
        let dim = self.plan.dim(self.cut);
        let blocks = (dim.n - 1).checked_div(self.block).unwrap_or(0) as u64 + 1;
        let mut at = self.next;
        self.next = at.wrapping_add(1);
        let mut piece = *self.plan;
        let block = at.checked_rem(blocks).unwrap_or(0) as i64;
        at = at.checked_div(blocks).unwrap_or(0);
        let first = block.wrapping_mul(self.block);
        piece.set(self.cut, Dim { n: self.block.min(dim.n - first), ..dim });
        let (mut src, mut dst) = (first.wrapping_mul(dim.src), first.wrapping_mul(dim.dst));
        for i in (0..self.cut).rev() {
            let dim = self.plan.dim(i);
            let index = at.checked_rem(dim.n as u64).unwrap_or(0) as i64;
            at = at.checked_div(dim.n as u64).unwrap_or(0);
            src = src.wrapping_add(index.wrapping_mul(dim.src));
            dst = dst.wrapping_add(index.wrapping_mul(dim.dst));
            piece.set(i, Dim { n: 1, ..dim });
        }
        piece.src = piece.src.wrapping_offset(src as isize);
        piece.dst = piece.dst.wrapping_offset(dst as isize);
        piece.simplify();
        (at == 0).then_some(piece)
    }
}

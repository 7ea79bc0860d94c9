//! The loops of a simplified plan, as used by ops, by splits for threads and for the choice of an
//! op.
use super::plan::{Dim, Item, MAX_NDIM, Plan};
use crate::array::Array;
pub use dlpack_kernels::Loop;

/// A set of loops, by number.
pub type Set = u64;

/// The set of one loop; empty for an invalid number.
pub fn only(i: usize) -> Set {
    if i < 64 { 1 << i } else { 0 }
}

const _: () = assert!(MAX_NDIM <= Set::BITS as usize);

/// An invalid loop number; its neighbours are invalid too.
const NO_LOOP: usize = usize::MAX / 2;

/// Nested loops over items: outermost first, sorted by destination stride; loops that are dense on
/// both sides are part of the item. A view of a simplified plan, of which one loop may have been
/// split: the part for a thread is a nest, too, and the plan is not copied.
#[derive(Clone, Copy)]
pub struct Nest<'a> {
    /// Source item (0, …, 0).
    pub src: *const u8,
    /// Destination item (0, …, 0).
    pub dst: *mut u8,
    /// The first item's bit offset from `src`; negative for a plan of bits whose destination could
    /// not be reversed at whole bytes. 0 for bytes.
    pub src_bit: i64,
    /// The same in `dst`.
    pub dst_bit: i64,
    /// What one item is.
    pub item: Item,
    /// Bytes of the whole plan's output, of which this may be a part.
    pub whole_bytes: u64,
    plan: &'a Plan,
    /// The loop that was split ([`NO_LOOP`] for none) and the rest of its extent. Not an `Option`:
    /// its payload may be read before its tag, which valgrind reports.
    split: (usize, i64),
}

impl<'a> Nest<'a> {
    /// All of a simplified plan. Destination strides that are still negative (bits) are reversed.
    pub fn new(plan: &'a Plan) -> Nest<'a> {
        let Plan { src, dst, item, .. } = *plan;
        let (mut src_bit, mut dst_bit) = (0, 0);
        if let Item::Bits { .. } = item {
            for dim in plan.dims.iter().filter(|dim| dim.dst < 0) {
                src_bit += (dim.n - 1).wrapping_mul(dim.src);
                dst_bit += (dim.n - 1).wrapping_mul(dim.dst);
            }
        }
        let whole_bytes = plan.nbytes();
        Nest { plan, src, dst, src_bit, dst_bit, item, whole_bytes, split: (NO_LOOP, 0) }
    }

    /// Number of loops.
    pub fn len(&self) -> usize {
        self.plan.ndim()
    }

    /// Whether it is a single item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of an item; 0 for bits.
    pub fn bytes(&self) -> usize {
        if let Item::Bytes(n) = self.item { n } else { 0 }
    }

    /// Loop `i`, or [`Dim::NONE`], in the unit of the item.
    pub fn dim(&self, i: usize) -> Dim {
        let Dim { n, src, dst } = self.plan.dim(i);
        let n = if self.split.0 == i { self.split.1 } else { n };
        if dst < 0 {
            return Dim { n, src: src.wrapping_neg(), dst: dst.wrapping_neg() };
        }
        Dim { n, src, dst }
    }

    /// Loop `i`, or [`Loop::NONE`], of a nest of whole bytes.
    pub fn at(&self, i: usize) -> Loop {
        // Here no destination stride is negative.
        let Dim { n, src, dst } = self.plan.dim(i);
        let n = if self.split.0 == i { self.split.1 } else { n };
        Loop { n: n as usize, src: src as isize, dst: dst as isize }
    }

    /// The loop `i` loops out from the innermost one, or [`Loop::NONE`].
    pub fn inner(&self, i: usize) -> Loop {
        self.at(self.len().wrapping_sub(1 + i))
    }

    /// `n` iterations of loop `i`, from `first` on; for bits, `first` strides must be whole bytes.
    pub fn split(&self, i: usize, first: usize, n: usize) -> Nest<'a> {
        let unit = if matches!(self.item, Item::Bytes(_)) { 1 } else { 8 };
        let Dim { src, dst, .. } = self.dim(i);
        let by = |stride: i64| ((first as i64).wrapping_mul(stride) / unit) as isize;
        Nest {
            src: self.src.wrapping_offset(by(src)),
            dst: self.dst.wrapping_offset(by(dst)),
            split: (i, n as i64),
            ..*self
        }
    }

    /// `n` bytes of every item, from byte `first` on.
    pub fn slice(&self, first: usize, n: usize) -> Nest<'a> {
        let (src, dst) = (self.src.wrapping_add(first), self.dst.wrapping_add(first));
        Nest { src, dst, item: Item::Bytes(n), ..*self }
    }

    /// Calls `visit(source, destination)` with the offsets, in the unit of the item, for every
    /// iteration of all loops but those in `inside`.
    #[inline(never)]
    pub fn walk(&self, inside: Set, visit: &mut dyn FnMut(i64, i64)) {
        let (mut src, mut dst) = (0i64, 0i64);
        let mut turns = Array::<i64, MAX_NDIM>::new();
        turns.extend(self.len(), || 0);
        loop {
            visit(src, dst);
            let mut i = self.len();
            loop {
                if i == 0 {
                    return;
                }
                i -= 1;
                if inside >> (i & 63) & 1 == 1 {
                    continue;
                }
                let dim = self.dim(i);
                let Some(turn) = turns.get_mut(i) else { return };
                *turn += 1;
                src = src.wrapping_add(dim.src);
                dst = dst.wrapping_add(dim.dst);
                if *turn < dim.n {
                    break;
                }
                *turn = 0;
                src = src.wrapping_sub(dim.n.wrapping_mul(dim.src));
                dst = dst.wrapping_sub(dim.n.wrapping_mul(dim.dst));
            }
        }
    }

    /// As [`Nest::walk`], with pointers, of a nest of whole bytes.
    pub fn each(&self, inside: Set, visit: &mut dyn FnMut(*const u8, *mut u8)) {
        if only(self.len()) == inside.wrapping_add(1) {
            return visit(self.src, self.dst);
        }
        self.walk(inside, &mut |src, dst| {
            visit(self.src.wrapping_offset(src as isize), self.dst.wrapping_offset(dst as isize))
        });
    }
}

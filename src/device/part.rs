//! A range of a simplified plan: what one thread is given, without a copy of the plan.
use super::plan::{Dim, Item, Kernel, MAX_STEP, Plan};

/// No dimension's number, and none that counting below 0 gives either.
const NO_DIM: usize = usize::MAX / 2;

/// A simplified plan, or the part of it with fewer units of one dimension.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    plan: &'a Plan,
    /// Source element (0, …, 0) of the part.
    pub src: *const u8,
    /// Destination element (0, …, 0) of the part.
    pub dst: *mut u8,
    /// Where in `src` the first element's bits start; negative for a plan of bits that could not
    /// be flipped at whole bytes. 0 for bytes.
    pub src_bit: i64,
    /// The same in `dst`.
    pub dst_bit: i64,
    /// What one element is.
    pub item: Item,
    /// Number of dimensions.
    pub ndim: usize,
    /// The dimension that was dealt out ([`NO_DIM`] for none) and what is left of its extent. Not
    /// an `Option`: its empty payload, looked at before its tag, is an alarm of valgrind's.
    only: (usize, i64),
}

impl<'a> Part<'a> {
    /// All of a simplified plan. Destination strides that are still negative (bits) are turned.
    pub fn whole(plan: &'a Plan) -> Part<'a> {
        let Plan { src, dst, item, ndim, .. } = *plan;
        let (mut src_bit, mut dst_bit) = (0, 0);
        for dim in (0..ndim).map(|i| plan.dim(i)).filter(|dim| dim.dst < 0) {
            src_bit += (dim.n - 1).wrapping_mul(dim.src);
            dst_bit += (dim.n - 1).wrapping_mul(dim.dst);
        }
        Part { plan, src, dst, src_bit, dst_bit, item, ndim, only: (NO_DIM, 0) }
    }

    /// `n` of dimension `i`, from `first` on; for bits, `first` strides must be whole bytes.
    pub fn of_dim(&self, i: usize, first: i64, n: i64) -> Part<'a> {
        let unit = if matches!(self.item, Item::Bytes(_)) { 1 } else { 8 };
        let Dim { src, dst, .. } = self.dim(i);
        Part {
            src: self.src.wrapping_offset((first.wrapping_mul(src) / unit) as isize),
            dst: self.dst.wrapping_offset((first.wrapping_mul(dst) / unit) as isize),
            only: (i, n),
            ..*self
        }
    }

    /// `n` bytes of every element, from byte `first` on.
    pub fn of_bytes(&self, first: usize, n: usize) -> Part<'a> {
        Part {
            src: self.src.wrapping_add(first),
            dst: self.dst.wrapping_add(first),
            item: Item::Bytes(n),
            ..*self
        }
    }

    /// Dimension `i`, or [`Dim::NONE`].
    #[inline]
    pub fn dim(&self, i: usize) -> Dim {
        let Dim { n, src, dst } = self.plan.dim(i);
        let n = if self.only.0 == i { self.only.1 } else { n };
        if dst < 0 {
            return Dim { n, src: src.wrapping_neg(), dst: dst.wrapping_neg() };
        }
        Dim { n, src, dst }
    }

    /// The innermost dimension, or [`Dim::NONE`].
    pub fn inner(&self) -> Dim {
        self.dim(self.ndim.wrapping_sub(1))
    }

    /// The way to carry it out.
    pub fn kernel(&self) -> Kernel {
        let Item::Bytes(nbytes) = self.item else { return Kernel::Bits };
        let (inner, bytes) = (self.inner(), nbytes as i64);
        if self.ndim == 0 {
            return Kernel::Memcpy;
        }
        if inner.dst != bytes {
            return if nbytes > 16 { Kernel::Rows } else { Kernel::Scatter };
        }
        if inner.src == 0 {
            return Kernel::Fill;
        }
        if nbytes > 16 || !nbytes.is_power_of_two() {
            return Kernel::Rows;
        }
        let vector = |dim: Dim| dim.n.saturating_mul(bytes) >= 16;
        let next = self.dim(self.ndim.wrapping_sub(2));
        let weaves = next.src == bytes && next.dst == bytes.wrapping_mul(inner.n) && vector(next);
        if weaves && nbytes <= 8 && inner.n <= MAX_STEP {
            return Kernel::Interleave;
        }
        let steps = inner.src.checked_rem(bytes) == Some(0);
        let step = inner.src.checked_div(bytes).unwrap_or(0);
        let dense = (0..self.ndim - 1).find(|&i| self.dim(i).src.abs() == bytes);
        match dense {
            Some(dense) if vector(inner) && vector(self.dim(dense)) => Kernel::Transpose { dense },
            _ if steps && step.abs() <= MAX_STEP && nbytes <= 8 => Kernel::Step(step),
            _ => Kernel::Gather,
        }
    }

    /// The dimension, other than the innermost, in which the source is nearest to dense, if it is
    /// nearer there than in the innermost dimension.
    pub fn source_inner(&self) -> Option<usize> {
        let stride = |&i: &usize| self.dim(i).src.unsigned_abs();
        let nearest = (0..self.ndim.saturating_sub(1)).filter(|i| stride(i) > 0).min_by_key(stride);
        nearest.filter(|i| stride(i) < self.inner().src.unsigned_abs())
    }
}

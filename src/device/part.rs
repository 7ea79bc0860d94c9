//! A range of a simplified plan: what one thread is given, without a copy of the plan.
use crate::array::Array;

use super::plan::{Dim, Item, Kernel, MAX_STEP, Plan};

/// Dimensions that one side of a transpose has at most.
pub const SIDE_MOST: usize = 12;

/// Elements from which runs of every so many-th one are worth their beginning.
const SHORT: i64 = 64;

/// Bytes of an output from which the destination's rows may be short.
const LARGE: u64 = 4 << 20;

/// Bytes of an output from which elements are picked, as what goes past the caches is: from there
/// on, on most makes.
const PICKED: u64 = 16 << 20;

/// Bytes beyond which a side takes no further dimension.
const SIDE_BYTES: i64 = 4096;

/// Dimensions that follow one another without a gap in one of the two tensors, innermost first.
#[derive(Clone, Copy)]
pub struct Run {
    dims: [u8; SIDE_MOST],
    ndim: usize,
    /// Elements.
    pub n: i64,
    /// Bytes that the other tensor's elements are apart, at most.
    reach: i64,
}

impl Default for Run {
    /// None, of one element.
    fn default() -> Run {
        Run { dims: [0; SIDE_MOST], ndim: 0, n: 1, reach: 0 }
    }
}

impl Run {
    /// The run with dimension `i`, whose extent and stride in the other tensor are given; `None`
    /// if there is no room.
    fn with(&self, i: usize, n: i64, stride: i64) -> Option<Run> {
        let mut run = *self;
        *run.dims.get_mut(run.ndim)? = i as u8;
        run.ndim += 1;
        run.n = run.n.saturating_mul(n);
        run.reach = run.reach.saturating_add(stride.saturating_abs().saturating_mul(n));
        Some(run)
    }

    /// Dimension `i` of a plan alone.
    pub fn alone(plan: &Part, i: usize) -> Run {
        Run::default().with(i, plan.dim(i).n, 0).unwrap_or_default()
    }

    /// Lines of 64 bytes that elements of so many `bytes` fill, if they are one dimension and fill
    /// them all.
    fn lines(&self, bytes: i64) -> i64 {
        let n = self.n.saturating_mul(bytes);
        if self.ndim == 1 && n & 63 == 0 { n / 64 } else { 0 }
    }

    /// Whether it may be one of several on its side.
    fn near(&self) -> bool {
        self.reach <= i64::from(i32::MAX)
    }

    /// Whether they are more than one, so that a list tells where the other tensor's elements are.
    pub fn listed(&self) -> bool {
        self.ndim > 1
    }

    /// Their numbers.
    pub fn dims(&self) -> impl Iterator<Item = usize> {
        self.dims.iter().take(self.ndim).map(|&i| usize::from(i))
    }

    /// The set of them.
    pub fn set(&self) -> u64 {
        self.dims().fold(0, |set, i| set | 1 << (i & 63))
    }
}

/// Whether sides of so many bytes, one of them less than 16, are worth tiles.
fn slim(dst: i64, src: i64) -> bool {
    dst.min(src) >= 6 && dst.max(src) >= 64
}

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
        let Plan { src, dst, item, .. } = *plan;
        let (mut src_bit, mut dst_bit) = (0, 0);
        for dim in plan.dims.iter().filter(|dim| dim.dst < 0) {
            src_bit += (dim.n - 1).wrapping_mul(dim.src);
            dst_bit += (dim.n - 1).wrapping_mul(dim.dst);
        }
        Part { plan, src, dst, src_bit, dst_bit, item, ndim: plan.ndim(), only: (NO_DIM, 0) }
    }

    /// Bytes of the whole plan's output.
    pub fn whole_bytes(&self) -> u64 {
        self.plan.nbytes()
    }

    /// As a plan of its own, of bytes.
    pub fn plan(&self) -> Plan {
        let (mut dims, Part { src, dst, item, .. }) = (Array::new(), *self);
        for i in 0..self.ndim {
            dims.push(self.dim(i));
        }
        Plan { src, dst, item, dims }
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

    /// Whether there are few elements.
    fn few(&self) -> bool {
        const FEW: i64 = 256;
        let count = |n: i64, i| if n <= FEW { n.saturating_mul(self.dim(i).n) } else { n };
        (0..self.ndim).fold(1, count) <= FEW
    }

    /// The way to carry it out.
    pub fn kernel(&self) -> Kernel {
        self.way(&mut (Run::default(), Run::default()))
    }

    /// The way to carry it out; of transposes, both `sides` too.
    pub fn way(&self, sides: &mut (Run, Run)) -> Kernel {
        let Item::Bytes(nbytes) = self.item else { return Kernel::Bits };
        self.plain(nbytes).unwrap_or_else(|| self.turned(nbytes as i64, sides))
    }

    /// The ways for which both sides need not be known.
    fn plain(&self, nbytes: usize) -> Option<Kernel> {
        let (inner, bytes) = (self.inner(), nbytes as i64);
        if self.ndim == 0 {
            return Some(Kernel::Memcpy);
        }
        if nbytes <= 64 && self.few() {
            return Some(Kernel::Few);
        }
        if inner.dst != bytes {
            return Some(if nbytes > 16 { Kernel::Rows } else { Kernel::Scatter });
        }
        if inner.src == 0 {
            return Some(Kernel::Fill);
        }
        if nbytes > 16 || !nbytes.is_power_of_two() {
            return Some(Kernel::Rows);
        }
        let next = self.dim(self.ndim.wrapping_sub(2));
        let weaves = next.src == bytes && next.dst == bytes.wrapping_mul(inner.n);
        // Few planes of bytes and pairs are woven by shuffles of 16 bytes.
        let run = next.n.saturating_mul(bytes);
        let least = match inner.n.saturating_mul(bytes) {
            ..12 if bytes <= 2 && run.saturating_mul(inner.n) >= 48 => 16,
            ..16 if bytes <= 2 => 32,
            _ => 64,
        };
        let weaves = weaves && run >= least;
        (weaves && nbytes <= 8 && inner.n <= MAX_STEP).then_some(Kernel::Interleave)
    }

    /// Transposes, and what comes of their being too small.
    fn turned(&self, bytes: i64, sides: &mut (Run, Run)) -> Kernel {
        let inner = self.inner();
        let steps = inner.src.checked_rem(bytes) == Some(0);
        let step = inner.src.checked_div(bytes).unwrap_or(0);
        let steps = steps && step.abs() <= MAX_STEP && bytes <= 8;
        // Picking goes past the caches. Short runs of 8 bytes are copied one by one instead, those
        // of less are turned.
        let picks = steps && (bytes == 8 || inner.n >= SHORT);
        let picks = picks && self.whole_bytes() >= PICKED;
        let least = if picks { 64 } else { 16 };
        match self.sides(bytes) {
            Some((dst, src)) if dst.n.min(src.n).saturating_mul(bytes) >= least => {
                *sides = (dst, src);
                Kernel::Transpose
            }
            _ if steps => Kernel::Step(step),
            Some((dst, src)) if bytes <= 2 && slim(dst.n * bytes, src.n * bytes) => {
                *sides = (self.near(dst, bytes), self.near(src, bytes));
                Kernel::Slim
            }
            _ => Kernel::Gather,
        }
    }

    /// The dimensions in which the destination, and those in which the source, is one run of
    /// elements of so many bytes; none is in both. The source may run backwards in some. Where
    /// there is more than one on a side, the other tensor's offsets along both are 32-bit numbers.
    #[inline(never)] // a frame of its own: stacks may be small
    pub fn sides(&self, bytes: i64) -> Option<(Run, Run)> {
        let last = self.ndim.checked_sub(1)?;
        let below = |run: &Run| {
            let i = last.checked_sub(run.ndim)?;
            let Dim { n, src, dst } = self.dim(i);
            let next = run.with(i, n, src)?;
            (dst == run.n.saturating_mul(bytes)).then_some((i, next))
        };
        let beside = |run: &Run| {
            let span = run.n.saturating_mul(bytes).unsigned_abs();
            let i = (0..last).rev().find(|&i| self.dim(i).src.unsigned_abs() == span)?;
            let Dim { n, dst, .. } = self.dim(i);
            Some((i, run.with(i, n, dst)?))
        };
        let large = self.whole_bytes() >= LARGE;
        let (mut dst, mut src) = (below(&Run::default())?.1, beside(&Run::default())?.1);
        loop {
            let taken = dst.set() | src.set();
            let room = |run: &Run| run.n.saturating_mul(bytes) < SIDE_BYTES;
            let free = |&(i, next): &(usize, Run)| {
                taken >> (i & 63) & 1 == 0 && next.near() && dst.near() && src.near()
            };
            let below = below(&dst).filter(|next| room(&dst) && free(next));
            let beside = beside(&src).filter(|next| room(&src) && free(next));
            match (below, beside) {
                // Rows of whole lines are long enough.
                (Some((i, _)), Some((j, next))) if i == j && large && dst.lines(bytes) >= 2 => {
                    src = next
                }
                (Some((_, next)), other) if other.is_none() || dst.n <= src.n => dst = next,
                (_, Some((_, next))) => src = next,
                _ => return Some((dst, src)),
            }
        }
    }

    /// The innermost dimension of a run alone, if it is long: then one stride tells where rows are.
    fn near(&self, run: Run, bytes: i64) -> Run {
        let first = run.dims().next().unwrap_or(0);
        let alone = Run::alone(self, first);
        if alone.n.saturating_mul(bytes) >= 64 { alone } else { run }
    }

    /// The dimension, other than the innermost, in which the source is nearest to dense, if it is
    /// nearer there than in the innermost dimension.
    pub fn source_inner(&self) -> Option<usize> {
        let stride = |&i: &usize| self.dim(i).src.unsigned_abs();
        let nearest = (0..self.ndim.saturating_sub(1)).filter(|i| stride(i) > 0).min_by_key(stride);
        nearest.filter(|i| stride(i) < self.inner().src.unsigned_abs())
    }
}

//! Numbers that do not follow one another, by way of memory in which they do: the copy engine
//! brings them there, and from there to where they go, piece by piece.
use core::ptr::NonNull;

use super::cursor::{DIMS, Dims, Side};
use super::pipeline::TILE;
use super::{Cast, Kind};
use crate::device::cpu::{self, Parallel};
use crate::device::plan::{Dim, Item, Plan};
use crate::platform;

/// Bytes of the larger numbers of a piece, which stay in the second level's cache.
const PIECE: usize = 256 << 10;

/// Numbers from which it pays.
const LEAST: u64 = 4096;

/// Memory for the numbers of a piece.
pub(super) struct Stage {
    memory: NonNull<u8>,
    /// The numbers of a piece, at most.
    most: i64,
    /// Where in the memory the converted ones are; `None`: in the destination.
    made: Option<usize>,
}

impl Stage {
    /// Whether it pays.
    pub(super) fn pays(cast: &Cast) -> bool {
        let bytes = cast.src.1.bits >= 8 && cast.dst.1.bits >= 8;
        let large = cast.dims.count() >= LEAST;
        let inner = cast.dims.ndim.wrapping_sub(1);
        let rows = cast.dims.shape.get(inner).is_none_or(|&n| n >= TILE as i64);
        let dense = rows && long(cast, &cast.src) && long(cast, &cast.dst);
        !cast.merge && bytes && large && !dense
    }

    /// For a conversion that pays, where there is memory.
    pub(super) fn new(cast: &Cast) -> Option<Stage> {
        let [from, to] = [cast.src.0, cast.dst.0].map(Kind::nbytes);
        let most = (PIECE >> from.max(to).trailing_zeros()).min(cast.dims.count() as usize);
        let made = (!long(&sorted(cast), &cast.dst)).then_some(most * from);
        let memory = platform::memory(most * from + made.map_or(0, |_| most * to))?;
        Some(Stage { memory, most: most as i64, made })
    }

    /// Converts all pieces by `convert`, which is given numbers that follow one another on the
    /// source's side.
    ///
    /// # Safety
    /// As [`super::run`], on the calling thread.
    pub(super) unsafe fn convert(&self, cast: &Cast, convert: &mut dyn FnMut(&Cast)) {
        let cast = &sorted(cast);
        let shape = cast.dims.shape;
        let n = |i: usize| shape.get(i).copied().unwrap_or(1);
        // The dimensions inside `cut` are there in whole, of that one a block.
        let (mut inner, mut cut, mut block) = (1, cast.dims.ndim, 1);
        while cut > 0 && inner <= self.most {
            cut -= 1;
            block = self.most.checked_div(inner).unwrap_or(1).min(n(cut)).max(1);
            if block < n(cut) {
                break;
            }
            inner = inner.saturating_mul(n(cut));
        }
        let blocks = (n(cut) - 1).checked_div(block).unwrap_or(0) + 1;
        let outer = (0..cut).fold(1, |all: i64, i| all.saturating_mul(n(i)));
        for at in 0..outer.saturating_mul(blocks) {
            let first = at.checked_rem(blocks).unwrap_or(0) * block;
            let mut piece = *cast;
            piece.start_at(cut, first, block.min(n(cut) - first));
            let mut at = at.checked_div(blocks).unwrap_or(0);
            for i in (0..cut).rev() {
                piece.start_at(i, at.checked_rem(n(i)).unwrap_or(0), 1);
                at = at.checked_div(n(i)).unwrap_or(0);
            }
            // SAFETY: a piece of the caller's numbers, no more than there is room for.
            unsafe { self.piece(&piece, convert) };
        }
    }

    /// One piece.
    unsafe fn piece(&self, cast: &Cast, convert: &mut dyn FnMut(&Cast)) {
        let memory = self.memory.as_ptr();
        let gathered = (cast.src.0, compact(cast, &cast.src, memory));
        let made = self.made.map(|at| compact(cast, &cast.dst, memory.wrapping_add(at)));
        let made = (cast.dst.0, made.unwrap_or(cast.dst.1));
        // SAFETY: the caller's numbers, and memory with room for those of a piece, twice.
        unsafe {
            moved(cast, (&cast.src.1, &gathered.1), cast.src.0);
            convert(&merged(&Cast { src: gathered, dst: made, ..*cast }));
            if self.made.is_some() {
                moved(cast, (&made.1, &cast.dst.1), cast.dst.0);
            }
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // SAFETY: it came from `platform::memory` and goes with its owner.
        unsafe { platform::give_back(self.memory) }
    }
}

impl Cast {
    /// Adds dimension `i` of another one, innermost.
    fn push(&mut self, from: &Cast, i: usize) {
        let n = from.dims.shape.get(i).copied().unwrap_or(1);
        let [a, b] = [&from.src.1, &from.dst.1].map(|side| side.strides.get(i).copied());
        let (a, b) = (a.unwrap_or(0), b.unwrap_or(0));
        self.dims.push(n, [(&mut self.src.1, a), (&mut self.dst.1, b)]);
    }

    /// Leaves `n` numbers of dimension `i`, from `first` on.
    fn start_at(&mut self, i: usize, first: i64, n: i64) {
        for side in [&mut self.src.1, &mut self.dst.1] {
            let stride = side.strides.get(i).copied().unwrap_or(0);
            side.first = side.first.wrapping_offset((first.wrapping_mul(stride) >> 3) as isize);
        }
        if let Some(extent) = self.dims.shape.get_mut(i) {
            *extent = n;
        }
    }
}

/// Whether at least a tile of numbers follow one another, innermost.
fn long(cast: &Cast, (kind, side): &(Kind, Side)) -> bool {
    let mut run = 1i64;
    let bits = 8 * kind.nbytes() as i64;
    for (&n, &stride) in cast.dims.shape.iter().zip(&side.strides).take(cast.dims.ndim).rev() {
        if stride != run.saturating_mul(bits) {
            break;
        }
        run = run.saturating_mul(n);
    }
    run >= TILE as i64
}

/// The same numbers with the destination's nearest innermost, and neighbours in one dimension.
fn sorted(cast: &Cast) -> Cast {
    let mut all = Cast { dims: Dims::new(), ..*cast };
    let mut left = (1u128 << cast.dims.ndim) - 1;
    let stride = |side: &Side, i: usize| side.strides.get(i).copied().unwrap_or(0);
    while left != 0 {
        let far = |&i: &usize| {
            let [to, from] = [&cast.dst.1, &cast.src.1].map(|side| stride(side, i).unsigned_abs());
            (left >> i & 1, to, from, DIMS - i)
        };
        let Some(i) = (0..cast.dims.ndim).max_by_key(far) else { return all };
        all.push(cast, i);
        left &= !(1 << i);
    }
    all
}

/// The same numbers with neighbours in one dimension, where they can be.
fn merged(cast: &Cast) -> Cast {
    let mut all = Cast { dims: Dims::new(), ..*cast };
    (0..cast.dims.ndim).for_each(|i| all.push(cast, i));
    all
}

/// The numbers of a side where they follow one another in memory, in the order of a conversion.
fn compact(cast: &Cast, (kind, side): &(Kind, Side), first: *mut u8) -> Side {
    let mut side = Side { first, bits: side.bits, strides: [0; DIMS] };
    let mut step = 8 * kind.nbytes() as i64;
    let dims = cast.dims.shape.iter().zip(&mut side.strides).take(cast.dims.ndim);
    for (&n, stride) in dims.rev() {
        *stride = step;
        step = step.wrapping_mul(n);
    }
    side
}

/// Copies numbers of one kind.
///
/// # Safety
/// They are readable and writable, at whole bytes, without overlap.
unsafe fn moved(cast: &Cast, (from, to): (&Side, &Side), kind: Kind) {
    let mut plan = Plan::new(from.first, to.first, Item::Bytes(kind.nbytes()));
    let strides = from.strides.iter().zip(&to.strides);
    for (&n, (&src, &dst)) in cast.dims.shape.iter().zip(strides).take(cast.dims.ndim) {
        plan.push(Dim { n, src: src >> 3, dst: dst >> 3 });
    }
    // SAFETY: the caller's numbers.
    unsafe { cpu::copy(&mut plan, &Parallel { threads: 1, hook: None }) }
}

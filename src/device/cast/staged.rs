//! Conversion of numbers that are not contiguous, through a contiguous staging buffer: the copy
//! engine gathers and scatters them, piece by piece.
use core::ptr::NonNull;

use super::cursor::{DIMS, Dims, Side};
use super::pipeline::TILE;
use super::{Cast, Kind};
use crate::device::cpu::{self, Parallel};
use crate::device::plan::{Dim, Item, Plan};
use crate::platform;

/// Bytes of a piece, of the wider type: it stays in L2.
const PIECE: usize = 256 << 10;

/// Number of numbers from which staging pays.
const LEAST: u64 = 4096;

/// Heap memory for the numbers of a piece, and for the derived conversions: stacks may be small.
pub(super) struct Stage {
    desk: NonNull<Desk>,
    /// Maximum numbers of a piece.
    most: i64,
    /// Offset of the converted numbers; `None`: they are written to the destination.
    made: Option<usize>,
}

/// The struct at the start of the memory.
struct Desk {
    /// The conversion, sorted.
    all: Cast,
    /// A piece of it.
    piece: Cast,
    /// The piece, from the staging buffer, and to it or to the destination.
    compact: Cast,
    /// The plan for the copy engine.
    plan: Plan,
}

impl Desk {
    const NBYTES: usize = size_of::<Desk>().next_multiple_of(64);
}

impl Stage {
    /// Whether staging pays.
    pub(super) fn pays(cast: &Cast) -> bool {
        let bytes = cast.src.1.bits >= 8 && cast.dst.1.bits >= 8;
        let large = cast.dims.count() >= LEAST;
        let inner = cast.dims.ndim.wrapping_sub(1);
        let rows = cast.dims.shape.get(inner).is_none_or(|&n| n >= TILE as i64);
        let dense = rows && long(cast, &cast.src) && long(cast, &cast.dst);
        !cast.merge && bytes && large && !dense
    }

    /// The stage of a conversion; `None` if there is no memory.
    pub(super) fn new(cast: &Cast) -> Option<Stage> {
        let [from, to] = [cast.src.0, cast.dst.0].map(Kind::nbytes);
        let most = (PIECE >> from.max(to).trailing_zeros()).min(cast.dims.count() as usize);
        let memory = platform::memory(Desk::NBYTES + most * (from + to))?;
        let desk = memory.cast::<Desk>();
        // SAFETY: the memory begins with room for one, all of which is written here.
        let all = unsafe {
            let at = desk.as_ptr();
            (&raw mut (*at).all).write(*cast);
            (&raw mut (*at).piece).write(*cast);
            (&raw mut (*at).compact).write(*cast);
            (&raw mut (*at).plan).write(Plan::none());
            &mut (*at).all
        };
        all.sort(cast);
        let made = (!long(all, &cast.dst)).then_some(most * from);
        Some(Stage { desk, most: most as i64, made })
    }

    /// Calls `convert` with each piece, whose source is contiguous.
    ///
    /// # Safety
    /// As [`super::run`], on the calling thread.
    pub(super) unsafe fn convert(&self, convert: &mut dyn FnMut(&Cast)) {
        // SAFETY: `new` made it, and this is its only owner.
        let Desk { all, piece, compact, plan } = unsafe { &mut *self.desk.as_ptr() };
        let n = |i: usize| all.dims.shape.get(i).copied().unwrap_or(1);
        // A piece has a block of dimension `cut` and all of those inside it.
        let (mut inner, mut cut, mut block) = (1, all.dims.ndim, 1);
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
            *piece = *all;
            piece.start_at(cut, first, block.min(n(cut) - first));
            let mut at = at.checked_div(blocks).unwrap_or(0);
            for i in (0..cut).rev() {
                piece.start_at(i, at.checked_rem(n(i)).unwrap_or(0), 1);
                at = at.checked_div(n(i)).unwrap_or(0);
            }
            // SAFETY: a piece of the caller's numbers, which fits into the memory.
            unsafe { self.piece(piece, (compact, plan), convert) };
        }
    }

    /// Converts one piece.
    unsafe fn piece(
        &self,
        piece: &Cast,
        (compact, plan): (&mut Cast, &mut Plan),
        convert: &mut dyn FnMut(&Cast),
    ) {
        let memory = self.desk.as_ptr().cast::<u8>().wrapping_add(Desk::NBYTES);
        *compact = *piece;
        compact.src.1.lie_dense(piece.src.0, &piece.dims, memory);
        let made = self.made.map(|at| memory.wrapping_add(at));
        let lie = |compact: &mut Cast| {
            made.map(|at| compact.dst.1.lie_dense(piece.dst.0, &piece.dims, at))
        };
        // SAFETY: the caller's numbers, and memory with room for those of a piece, twice.
        unsafe {
            moved(&piece.dims, (&piece.src.1, &compact.src.1), piece.src.0, plan);
            lie(compact);
            compact.merge_neighbours();
            convert(compact);
            if lie(compact).is_some() {
                moved(&piece.dims, (&compact.dst.1, &piece.dst.1), piece.dst.0, plan);
            }
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // SAFETY: it came from `platform::memory` and its owner is dropped.
        unsafe { platform::give_back(self.desk.cast()) }
    }
}

impl Cast {
    /// Extent and strides of dimension `i`.
    fn dim(&self, i: usize) -> (i64, i64, i64) {
        let of = |numbers: &[i64; DIMS]| numbers.get(i).copied();
        let strides = (of(&self.src.1.strides), of(&self.dst.1.strides));
        (of(&self.dims.shape).unwrap_or(1), strides.0.unwrap_or(0), strides.1.unwrap_or(0))
    }

    /// Adds a dimension, innermost.
    fn push(&mut self, (n, src, dst): (i64, i64, i64)) {
        self.dims.push(n, [(&mut self.src.1, src), (&mut self.dst.1, dst)]);
    }

    /// Copies another conversion, sorted by destination stride, with contiguous dimensions merged.
    fn sort(&mut self, from: &Cast) {
        let ndim = from.dims.ndim;
        self.dims.ndim = 0;
        let mut left = (1u128 << ndim) - 1;
        while left != 0 {
            let far = |&i: &usize| {
                let (_, src, dst) = from.dim(i);
                (left >> i & 1, dst.unsigned_abs(), src.unsigned_abs(), DIMS - i)
            };
            let Some(i) = (0..ndim).max_by_key(far) else { return };
            self.push(from.dim(i));
            left &= !(1 << i);
        }
    }

    /// Merges contiguous dimensions.
    fn merge_neighbours(&mut self) {
        let ndim = core::mem::take(&mut self.dims.ndim);
        for i in 0..ndim {
            // `push` writes at `i` or before.
            self.push(self.dim(i));
        }
    }

    /// Reduces dimension `i` to `n` numbers, from `first` on.
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

/// Whether at least a tile of numbers is contiguous in the innermost dimension.
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

impl Side {
    /// Becomes contiguous numbers from `first` on, in the order of a conversion.
    fn lie_dense(&mut self, kind: Kind, dims: &Dims, first: *mut u8) {
        self.first = first;
        let mut step = 8 * kind.nbytes() as i64;
        for (&n, stride) in dims.shape.iter().zip(&mut self.strides).take(dims.ndim).rev() {
            *stride = step;
            step = step.wrapping_mul(n);
        }
    }
}

/// Copies numbers of one kind by the copy engine.
///
/// # Safety
/// They are readable and writable, at whole bytes, without overlap.
unsafe fn moved(dims: &Dims, (from, to): (&Side, &Side), kind: Kind, plan: &mut Plan) {
    *plan = Plan::new(from.first, to.first, Item::Bytes(kind.nbytes()));
    let strides = from.strides.iter().zip(&to.strides);
    for (&n, (&src, &dst)) in dims.shape.iter().zip(strides).take(dims.ndim) {
        plan.push(Dim { n, src: src >> 3, dst: dst >> 3 });
    }
    // SAFETY: the caller's numbers. A copy on the calling thread cannot fail.
    let _ = unsafe { cpu::copy(plan, &Parallel::ALONE) };
}

//! Transposes: the destination is dense in the innermost loop, the source in another.
use core::mem::MaybeUninit;

use dlpack_kernels::{
    BAND, ELEMENT_MOST, How, LINE, LINES_MOST, Matrix, SIDE_LOOPS, Side, Space, Step,
};

use super::super::level::kernels;
use super::super::policy::{self, Caches, Reach};
use super::shuffle::LOADS_PER_LINE;
use crate::nest::{Loop, Nest, Set, only};

/// Minimum bytes of both sides of a matrix: a tile's.
const SIDE_LEAST: usize = 16;

/// The loops of a matrix.
#[derive(Clone, Copy)]
pub(crate) struct Sides {
    /// The loops in which the destination is dense, with their source strides.
    rows: Side,
    /// The loops in which the source is dense, with their destination strides.
    columns: Side,
    /// Offset of the first column from the nest's start: a reversed source is read forwards.
    start: [isize; 2],
    /// All of these.
    set: Set,
    item: usize,
}

/// Bytes of matrices of which no line of the destination needs more loads than a shuffle program
/// has.
const SMALL: usize = LOADS_PER_LINE * LINE;

/// L1: one way is a page, so that its sets are known before the address is translated.
const FIRST: Caches = Caches { nbytes: 8 * 4096, way: 4096 };

/// A side while its loops are found.
struct Found {
    side: Side,
    loops: usize,
    /// Bytes that are dense.
    bytes: usize,
}

impl Found {
    fn new(item: usize) -> Found {
        Found { side: Side { loops: [Step::NONE; SIDE_LOOPS] }, loops: 0, bytes: item }
    }

    fn add(&mut self, n: usize, by: isize) {
        if let Some(step) = self.side.loops.get_mut(self.loops) {
            *step = Step { n, by };
        }
        self.loops += 1;
        self.bytes = self.bytes.saturating_mul(n);
    }
}

impl Sides {
    /// The sides of a nest, if the destination is dense in its innermost loop and the source in
    /// another, and both are long enough for a tile. Loops that are dense beyond these belong to
    /// the side that is shorter.
    pub(crate) fn of(nest: &Nest) -> Option<Sides> {
        let (item, inner) = (nest.bytes(), nest.inner(0));
        if item > ELEMENT_MOST || item % 32 == 0 || inner.dst != item as isize {
            return None;
        }
        let last = nest.len().wrapping_sub(1);
        let (mut set, mut start) = (only(last), [0isize; 2]);
        let (mut rows, mut columns) = (Found::new(item), Found::new(item));
        rows.add(inner.n, inner.src);
        loop {
            let next = |of: &Found, dense: fn(Loop) -> usize| {
                let dense = |&i: &usize| set & only(i) == 0 && dense(nest.at(i)) == of.bytes;
                if of.loops < SIDE_LOOPS { (0..last).rev().find(dense) } else { None }
            };
            let row = next(&rows, |one| one.dst.unsigned_abs());
            let column = next(&columns, |one| one.src.unsigned_abs());
            match (row, column) {
                (_, Some(i)) if row.is_none() || columns.bytes < rows.bytes => {
                    let Loop { n, src, dst } = nest.at(i);
                    let transposed = src < 0;
                    if transposed {
                        let by = n as isize - 1;
                        start = [
                            start[0].wrapping_add(by.wrapping_mul(src)),
                            start[1].wrapping_add(by.wrapping_mul(dst)),
                        ];
                    }
                    columns.add(n, if transposed { dst.wrapping_neg() } else { dst });
                    set |= only(i);
                }
                (Some(i), _) => {
                    rows.add(nest.at(i).n, nest.at(i).src);
                    set |= only(i);
                }
                _ => break,
            }
        }
        let fits = columns.loops > 0 && rows.bytes.min(columns.bytes) >= SIDE_LEAST;
        fits.then_some(Sides { rows: rows.side, columns: columns.side, start, set, item })
    }

    /// Whether neither side is so short that a shuffle program holds a window for each of its
    /// elements in registers, and accesses whole lines where tiles would be mostly partial.
    pub(crate) fn long(&self) -> bool {
        const WINDOWS: usize = 4;
        let [rows, columns] = [self.rows.rows(), self.columns.rows()];
        let small = rows.saturating_mul(columns).saturating_mul(self.item) <= SMALL;
        // Of short elements short windows hold too few of a column.
        let suits = self.item >= 4 || kernels().shuffles.is_some_and(|found| found.window == LINE);
        rows.min(columns) > WINDOWS && !(small && suits)
    }
}

/// How many rows the sets of a cache hold a line of, all at once: rows a large power of two apart
/// share sets.
fn held(rows: &Side, Caches { nbytes, way }: Caches) -> usize {
    let sets = rows.loops.iter().fold(1usize, |sets, step| {
        let apart = 1usize << step.by.trailing_zeros().min(usize::BITS - 1);
        let places = way.checked_div(apart.max(LINE).min(way.max(LINE))).unwrap_or(1);
        sets.saturating_mul(step.n.min(places))
    });
    sets.saturating_mul(nbytes.checked_div(way).unwrap_or(1))
}

/// Cache lines of destination rows at a time, two at least: L2 must hold their source rows, or
/// lines are evicted before they are used.
fn lines(rows: &Side, item: usize) -> usize {
    (held(rows, policy::caches()).saturating_mul(item) / LINE).clamp(2, LINES_MOST)
}

/// Whether an item has a size that no register fits: it is widened in the stage alone, whose rows
/// have room.
fn odd(item: usize) -> bool {
    matches!(item, 3 | 5..=7)
}

/// Whether a transpose goes through the stage: always beyond the last cache; and beyond L2, if L1
/// does not hold the source rows of a band, or the items are odd.
pub(crate) fn stages(sides: &Sides, reach: Reach) -> bool {
    let Sides { rows, item, .. } = sides;
    let crowded = || held(rows, FIRST) < rows.rows().min(BAND);
    reach.stream_scattered || reach.prefetch && (odd(*item) || crowded())
}

/// Copies a nest whose sides are `sides`.
///
/// # Safety
/// As [`super::super::copy`].
pub(crate) unsafe fn copy(nest: &Nest, sides: &Sides, reach: Reach) {
    let far = reach.stream_scattered | reach.prefetch;
    // SAFETY: all elements are readable or writable, the two sides apart, and `sides` are the
    // nest's.
    unsafe { if far { past(nest, sides, reach) } else { near(nest, sides) } }
}

/// For data in the caches: without a staging buffer, which would need much of a small stack.
#[inline(never)]
unsafe fn near(nest: &Nest, sides: &Sides) {
    let mut lists = MaybeUninit::uninit();
    // SAFETY: all elements are readable or writable, the two sides apart, and `sides` are the
    // nest's; without streams and prefetches no stage is used.
    unsafe { transpose(nest, sides, Reach::NEAR, Space::near(&mut lists)) }
}

/// For data beyond the caches: with non-temporal stores.
#[inline(never)]
unsafe fn past(nest: &Nest, sides: &Sides, reach: Reach) {
    let (mut lists, mut stage) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: all elements are readable or writable, the two sides apart, and `sides` are the
    // nest's; the space has a stage.
    unsafe { transpose(nest, sides, reach, Space::any(&mut lists, &mut stage)) }
}

unsafe fn transpose(nest: &Nest, sides: &Sides, reach: Reach, space: Space) {
    let (kernels, item) = (kernels(), nest.bytes());
    // The innermost of the other loops: consecutive matrices.
    let next = (0..nest.len()).rev().find(|&j| sides.set & only(j) == 0);
    let odd = reach.prefetch && odd(item);
    let how = How {
        stream: reach.stream_scattered || odd,
        lines: lines(&sides.rows, item),
        stage: stages(sides, reach),
        matrices: next.map_or(1, |j| nest.at(j).n),
        next: next.map_or([0; 2], |j| [nest.at(j).src, nest.at(j).dst]),
    };
    let Sides { rows, columns, start, .. } = *sides;
    nest.each(sides.set | next.map_or(0, only), &mut |src, dst| {
        let (src, dst) = (src.wrapping_offset(start[0]), dst.wrapping_offset(start[1]));
        // SAFETY: matrices of the nest's items, readable or writable; the space has a stage where
        // one is used.
        unsafe { (kernels.transpose)(item, &Matrix { src, dst, rows, columns }, &how, space) }
    });
    if odd {
        // SAFETY: the processor has the level in use.
        unsafe { (kernels.fence)() }
    }
}

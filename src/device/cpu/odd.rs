//! Transposes of elements of 3, 5 to 7 and 9 to 15 bytes: in squares of 64-byte registers, or of
//! the halves of shorter ones, where there are instructions for it. Else in tiles, in which
//! elements are spread to 4 or 8 bytes, turned, and closed up; for which 9 bytes are too large.
//! Squares serve sides of 1, 2, 4 and 8 bytes, too, that are short or of which whole lines would
//! leave much over.
use core::ptr::copy_nonoverlapping;
use core::slice::from_raw_parts;

use super::engine::{Sides, faces};
use super::face::{COLUMNS_MOST, Face, ROWS_MOST, Side, Tables};
use super::odd_staged;
use super::ops::{Odd, OddKernel, OddTiles, Ops, Turns};
use super::staged::Memory;
use super::touch;
use super::tuning::{Tuning, tuning};
use super::way::Way;
use crate::array::Array;
use crate::device::part::{Part, Run};

/// The way of a plan of elements of 3, 5, 6, 7 or 9 to 15 bytes, if there are kernels for it that
/// are worth their beginning, and both sides of it.
pub(super) fn of(
    ops: &Ops,
    plan: &Part,
    size: usize,
    sides: &mut Sides,
    streams: bool,
) -> Option<Way> {
    let (all, squares) = (count(plan), ops.odd_squares);
    let able = match size {
        3 | 5..=7 => squares.is_some() || ops.odd.is_some(),
        9..=15 => squares.is_some() && all >= 1024,
        _ => false,
    };
    *sides = if able { plan.sides(size as i64) } else { None }?;
    if let Some((kernel, stage)) = odd_staged::of(ops, size, sides).filter(|_| streams) {
        return Some(Way::OddStaged(kernel, stage));
    }
    let (n_dst, n_src) = (sides.0.n, sides.1.n);
    match (kernel(ops, plan, size, sides), ops.odd) {
        (Some(kernel), _) if large(all, n_dst, n_src) => Some(Way::OddSquares(kernel)),
        (_, Some(turn)) if size < 9 && n_dst.min(n_src) >= 8 => Some(Way::OddTiles(turn)),
        _ => None,
    }
}

/// The squares of any size of a plan of elements of 1, 2, 4 or 8 bytes, where there are
/// instructions for it and its sides are long enough.
pub(super) fn short(ops: &Ops, plan: &Part, size: usize, sides: &Sides) -> Option<OddKernel> {
    let squares = kernel(ops, plan, size, sides).filter(|_| matches!(size, 1 | 2 | 4 | 8));
    squares.filter(|_| large(count(plan), sides.0.n, sides.1.n))
}

/// The squares of a plan's elements, of `size` bytes, and its sides, if there are any. Those that
/// are for sides of some length only are slower than others where strides tell where rows are, or
/// rows are few (measured, benches/notes.md).
fn kernel(ops: &Ops, plan: &Part, size: usize, (dst, src): &Sides) -> Option<OddKernel> {
    let kernel = ops.odd_squares?;
    let least = (kernel.least)(size);
    let lists = dst.listed() || src.listed();
    let fast = match size {
        _ if least == 0 => true,
        1..=3 | 5..=7 => true,
        4 => lists && dst.n >= 12,
        8 => dst.listed() || lists && dst.n >= 12 || eight_bytes(plan, dst, src),
        _ => (dst.listed() || lists && dst.n < 32) && plan.whole_bytes() < tuning().rows_from,
    };
    let enough = dst.n.min(src.n) >= least as i64;
    (fast && enough).then_some(kernel)
}

/// Whether squares of any size are faster for a plan's faces than whole lines and then the rest: so
/// much is not in whole lines, or rows are few and found by lists.
pub(super) fn uneven(plan: &Part, size: usize, (dst, src): &Sides) -> bool {
    let Tuning { uneven: [near, far], stream_from, brief, .. } = tuning();
    let lists = dst.listed() || src.listed();
    let (few, many) = (dst.n.min(src.n), dst.n.max(src.n));
    let whole = |n: i64| n & -(64 >> size.trailing_zeros());
    let all = dst.n.saturating_mul(src.n);
    let rest = all - whole(dst.n).saturating_mul(whole(src.n));
    if size <= 2 {
        let long = many > 1024 && (size == 1 || src.n < dst.n);
        let short = lists && few <= if long { 16 } else { 32 * size as i64 };
        // A square of 64 by 64 and a part of another.
        let parts = lists && (65..128).contains(&few) && many <= 2048;
        let thin = size == 1 && dst.listed() && (17..=48).contains(&src.n);
        let some = *brief > 0 && (parts || thin);
        return *near > 0 && (short || some || many <= 128 && rest > 0);
    }
    let past = stream_from.get(size.trailing_zeros() as usize).map_or(u64::MAX, |from| from[0]);
    let brief = size == 4 && dst.n <= *brief && between(plan);
    let weight = if plan.whole_bytes() >= past { far } else { near };
    let enough = few <= 128 && rest.saturating_mul(*weight) > all;
    size == 8 && eight_bytes(plan, dst, src) || enough && (lists || size == 8 || brief)
}

/// Whether they are for faces of 8 bytes though few or none of these are left over of whole lines:
/// whose columns a list tells, if their rows are short, or no list anything, if the source's are
/// (outputs from 1 MiB on that stay in the caches; measured on a Xeon, benches/notes.md).
fn eight_bytes(plan: &Part, dst: &Run, src: &Run) -> bool {
    let fit = match (dst.listed(), src.listed()) {
        (_, true) => dst.n <= 128,
        (true, _) => false,
        _ => tuning().strided && dst.n > 512 && (129..=512).contains(&src.n),
    };
    tuning().brief > 0 && between(plan) && fit
}

/// Whether an output has at least 1 MiB, and stays in the caches.
fn between(plan: &Part) -> bool {
    (1 << 20..tuning().all_from).contains(&plan.whole_bytes())
}

/// Whether they are faster for faces of 8 bytes than loops alone would be.
pub(super) fn before_loops(plan: &Part, size: usize, (dst, src): &Sides) -> bool {
    let short = src.listed() && (dst.listed() || dst.n > 48);
    size == 8 && short && eight_bytes(plan, dst, src)
}

/// All elements of a plan.
fn count(plan: &Part) -> i64 {
    (0..plan.ndim).fold(1, |n, i| n.saturating_mul(plan.dim(i).n))
}

/// Whether squares are faster than what there is else: there must be enough elements in a face, and
/// in `all`, that what is prepared for them does not count.
fn large(all: i64, n_dst: i64, n_src: i64) -> bool {
    let least = match (n_dst, n_src) {
        (_, ..3) => return false,
        (_, ..6) => 120,
        (..4, _) => 64,
        _ => 48,
    };
    let least_of_all = if n_dst.min(n_src) < 6 { 8192 } else { 512 };
    n_dst.saturating_mul(n_src) >= least && all >= least_of_all
}

/// Offsets of rows.
struct Places {
    /// Those of `n` positions from the first one on.
    at: Array<isize, ROWS_MOST>,
    first: usize,
    n: usize,
    /// Those of all positions, if they are found once for all faces; asked of the first one.
    all: Option<Option<*const isize>>,
    memory: Memory,
}

impl Places {
    fn new() -> Places {
        Places { at: Array::new(), first: 0, n: 0, all: None, memory: Memory::none() }
    }

    /// Those of `n` positions from `first` on, of so many in `all`; and so many more that they are
    /// a multiple of 16, of rows that are there.
    fn find(&mut self, side: &Side, all: usize, first: usize, n: usize) -> &[isize] {
        let found = *self.all.get_or_insert_with(|| whole(&mut self.memory, side, all));
        if let Some(all) = found {
            // SAFETY: so many from any position on have been written, and live as long as `memory`.
            return unsafe { from_raw_parts(all.add(first), (n + 15) & !15) };
        }
        if (self.first, self.n) != (first, n) {
            (self.first, self.n) = (first, n);
            side.places(first, n, &mut self.at);
            let last = self.at.last().copied().unwrap_or(0);
            self.at.extend(n.wrapping_neg() & 15, || last);
        }
        &self.at
    }
}

/// Places that are found before, at most: the first-level cache has room for them.
const MOST: usize = 4096;

/// The places of `all` positions, and the last one 15 times more, in memory, where a list tells
/// them, which takes long next to what they are for: if they are so many that it is to be done once
/// for all faces, and not too many.
#[inline(never)] // a frame of its own: stacks may be small
fn whole(memory: &mut Memory, side: &Side, all: usize) -> Option<*const isize> {
    if !side.listed() || !(ROWS_MOST + 1..=MOST).contains(&all) {
        return None;
    }
    let to = memory.lines((all + 15) * size_of::<isize>())?.cast::<isize>();
    let mut some = Array::new();
    for first in (0..all).step_by(ROWS_MOST) {
        side.places(first, ROWS_MOST.min(all - first), &mut some);
        // SAFETY: there is room for them.
        unsafe { copy_nonoverlapping(some.as_ptr(), to.add(first), some.len()) };
    }
    for i in all..all + 15 {
        // SAFETY: likewise; the last one has been written.
        unsafe { to.add(i).write(to.add(all - 1).read()) };
    }
    Some(to)
}

/// Bytes of an output from which rows are read before they are used, of at least so many bytes
/// each, where that is faster than to ask for lines.
const READ: u64 = 12 << 20;
const LONG: i64 = 256;

/// Squares: a few rows of the source from one end to the other, then the next few. Face by face;
/// but where it takes long to find rows or columns next to what they are for, and these are too
/// many to be found before: those of all faces, before the next ones are looked for.
///
/// # Safety
/// As [`super::copy`]; the plan is one for which [`of`] or [`short`] names them.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn squares(kernel: &OddKernel, plan: &Part, size: usize, sides: &Sides) {
    let read = touch::short(plan, size) > 0
        && plan.whole_bytes() >= READ
        && sides.1.n.saturating_mul(size as i64) >= LONG;
    let how = Turns::new(size, (tuning().soon > 0, read));
    let (mut rows, mut columns) = (Places::new(), Places::new());
    // Where fewer elements are left over, some are turned again.
    let least = (kernel.least)(size);
    let at_once = |side: &Run, other: &Run| {
        let many = side.listed() && side.n as usize > MOST && other.n < 32;
        if many { ROWS_MOST } else { (side.n as usize).max(1) }
    };
    let (high, wide) = (at_once(&sides.0, &sides.1), at_once(&sides.1, &sides.0));
    for first_d in (0..sides.0.n as usize).step_by(high) {
        for first_s in (0..sides.1.n as usize).step_by(wide) {
            faces(plan, size, sides, &mut |face| {
                for d in (first_d..face.n_dst.min(first_d + high)).step_by(ROWS_MOST) {
                    let d = d.min(face.n_dst.saturating_sub(least));
                    let n_dst = ROWS_MOST.min(face.n_dst - d);
                    let from = rows.find(face.rows, face.n_dst, d, n_dst);
                    let dst = face.dst.wrapping_add(d * size);
                    for s in (first_s..face.n_src.min(first_s + wide)).step_by(ROWS_MOST) {
                        let s = s.min(face.n_src.saturating_sub(least));
                        let n_src = ROWS_MOST.min(face.n_src - s);
                        let to = columns.find(face.columns, face.n_src, s, n_src);
                        let src = face.src.wrapping_add(s * size);
                        // SAFETY: a part of the face.
                        unsafe {
                            if read {
                                let row = |i: usize| from.get(i).copied().unwrap_or(0);
                                touch::read(src, (n_dst, size), (n_src, 0, n_src), &row);
                            }
                            (kernel.turn)((src, from), (dst, to), (n_dst, n_src), &how);
                        }
                    }
                }
            });
        }
    }
}

/// Tiles in a line of the source, and how far ahead lines are asked for.
const LINE: usize = 5;
const AHEAD: usize = 128;

/// Tiles: face by face.
///
/// # Safety
/// As [`squares`].
pub(super) unsafe fn tiles(ops: &Ops, turn: OddTiles, plan: &Part, size: usize, sides: &Sides) {
    // SAFETY: the caller's plan.
    faces(plan, size, sides, &mut |face| unsafe { tiled(ops, turn, face, size) });
}

/// Transposes a face of at least 4 elements either way. The last tile of a row or column moves
/// back over its predecessor, and writes the same bytes again.
///
/// # Safety
/// Every element is readable and writable; no overlap.
#[inline(never)] // a frame of its own: stacks may be small
unsafe fn tiled(ops: &Ops, turn: OddTiles, face: &Face, size: usize) {
    let how = Odd::new(size);
    let side = how.side;
    let mut tables = Tables::new(face);
    let mut d = 0;
    while d < face.n_dst {
        // Whole tiles, or the rows that are left.
        let count = ROWS_MOST.min(face.n_dst - d) & !(side - 1);
        let (at, count) = if count > 0 { (d, count) } else { (face.n_dst - side, side) };
        let src = tables.rows(face, at, count);
        let mut dst = face.dst;
        for s in (0..face.n_src).step_by(side.max(1)) {
            let ahead = s.is_multiple_of(LINE * side);
            let (mut place, mut s) = (s & (COLUMNS_MOST - 1), s);
            if place == 0 || s + side > face.n_src {
                (place, s) = (0, s.min(face.n_src - side));
                dst = tables.columns(face, s, COLUMNS_MOST.min(face.n_src - s));
                dst = dst.wrapping_add(at * size);
            }
            let ([_, to], rows) = tables.places(0, place);
            let (src, dst) = (src.wrapping_add(s * size), dst.wrapping_offset(to));
            let last = (face.n_src - s) * size < 16;
            // SAFETY: a part of the face, of whose source rows 16 bytes are left but for the last.
            unsafe {
                if ahead {
                    (ops.fetch)(src.wrapping_add(AHEAD), rows.each()[0], count, 1);
                }
                turn(src, dst, rows, count >> side.trailing_zeros(), &how, last);
            }
        }
        d = at + count;
    }
}

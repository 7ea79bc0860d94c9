//! Transposes of elements of 3, 5 to 7 and 9 to 15 bytes past the caches: rows are copied next to
//! one another, as in [`super::staged`], turned in squares of any size, and written by whole lines.
use super::engine::{Sides, faces};
use super::face::{Face, ROWS_MOST};
use super::odd;
use super::ops::{OddKernel, Ops, Rows, Turns};
use super::staged::{Memory, Stage};
use super::tuning::tuning;
use crate::array::Array;
use crate::device::part::Part;

/// Source rows that are copied at most; bytes of each, and from one copy to the next: what they
/// begin and end with may be in other lines.
const ROWS: usize = 256;
const BYTES: usize = 640;
const PITCH: usize = BYTES + 64;

/// Elements of each that are copied are a multiple of so many, as many as are turned at once if few
/// bytes are an element.
const TURNED: usize = 16;

/// Elements of destination rows and bytes of source rows at least.
const LONG: i64 = 256;
const WIDE: i64 = 1024;

/// Source rows that are copied, of elements of `size` bytes.
fn rows(size: usize) -> usize {
    if size < 9 { ROWS } else { ROWS / 2 }
}

/// Elements of a source row of `columns` that are turned at once, and so destination rows.
fn most(size: usize, columns: usize) -> usize {
    if size < 9 { TURNED } else { columns.max(1) }
}

/// From one destination row to the next where they are made.
fn pitch(size: usize) -> usize {
    rows(size) * size + 64
}

/// The kernels for a plan's faces of elements of `size` bytes that go past the caches, if that is
/// the fastest: where strides tell where their long rows are.
pub(super) fn of(ops: &Ops, size: usize, sides: &Sides) -> Option<(OddKernel, &'static Stage)> {
    let lists = sides.0.listed() || sides.1.listed();
    let long = sides.0.n >= LONG && sides.1.n.saturating_mul(size as i64) >= WIDE;
    ops.odd_squares.zip(ops.stage).filter(|_| !lists && long && tuning().reads())
}

/// Copies a plan's faces; in squares alone, if there is no memory.
///
/// # Safety
/// As [`super::copy`]; the plan is one for which [`of`] names the kernels.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(
    (kernel, stage): (&OddKernel, &'static Stage),
    plan: &Part,
    size: usize,
    sides: &Sides,
) {
    let columns = BYTES.checked_div(size).unwrap_or(1) & !(TURNED - 1);
    let mut memory = Memory::none();
    let Some(at) = memory.lines(rows(size) * PITCH + most(size, columns) * pitch(size)) else {
        // SAFETY: the caller's plan.
        return unsafe { odd::squares(kernel, plan, size, sides) };
    };
    let mut places = [Array::new(), Array::new()];
    for (places, by) in places.iter_mut().zip([PITCH, pitch(size)]) {
        let mut next = 0;
        places.extend(ROWS_MOST, || {
            next += by as isize;
            next - by as isize
        });
    }
    let how = Turns::new(size, (false, true));
    let work = Work { kernel, stage, how: &how, size, columns, memory: at, places: &places };
    // SAFETY: the caller's plan.
    faces(plan, size, sides, &mut |face| unsafe { work.face(face) });
}

/// What all faces have in common.
struct Work<'a> {
    kernel: &'a OddKernel,
    stage: &'static Stage,
    how: &'a Turns,
    size: usize,
    /// So many of a source row are copied at once.
    columns: usize,
    memory: *mut u8,
    /// Where copies are, and what becomes of them.
    places: &'a [Array<isize, ROWS_MOST>; 2],
}

impl Work<'_> {
    unsafe fn face(&self, face: &Face) {
        let Some(by) = face.strides() else { return }; // never: `of` has asked
        // As many rows as fill lines, and those that a part of a line may hold before and behind.
        let lost = 64usize.div_ceil(self.size.max(1));
        let unit = 64 >> self.size.trailing_zeros().min(6);
        let step = (rows(self.size) - lost) & !(unit - 1);
        let mut d = 0;
        while d < face.n_dst {
            let left = face.n_dst - d;
            // SAFETY: parts of the caller's face.
            unsafe {
                if left < step + lost {
                    let n = left.max(lost);
                    return self.band(face, by, (face.n_dst - n, n), 0);
                }
                if d == 0 {
                    self.band(face, by, (0, lost), 0);
                }
                self.band(face, by, (d, step + lost), step * self.size / 64);
            }
            d += step;
        }
    }

    /// `n` elements of each destination row from `d` on: as many lines of them as are said, or, if
    /// none are, all.
    #[inline(never)] // a frame of its own: stacks may be small
    unsafe fn band(
        &self,
        face: &Face,
        [by, apart]: [isize; 2],
        (d, n): (usize, usize),
        lines: usize,
    ) {
        let (size, copies) = (self.size, self.memory);
        let rows = face.src.wrapping_offset(d as isize * by);
        for s in (0..face.n_src).step_by(self.columns.max(1)) {
            let s = s.min(face.n_src.saturating_sub(TURNED)); // enough for squares
            let count = self.columns.min(face.n_src - s);
            // Whole lines are copied, from where they end: behind a row there may be nothing.
            let bytes = (count * size).next_multiple_of(64);
            let first = ((s + count) * size).saturating_sub(bytes);
            let (src, from) = (rows.wrapping_add(first), copies.wrapping_add(s * size - first));
            let dst = face.dst.wrapping_offset(s as isize * apart).wrapping_add(d * size);
            // SAFETY: the caller's rows, and memory for as many copies.
            unsafe {
                (self.stage.copy)(src, Rows::Apart([by]), copies, PITCH, n, bytes / 64);
                self.turned((from, dst, apart), (n, count), lines);
            }
        }
    }

    /// What becomes of `columns` of `n` copies: as many lines, or all.
    unsafe fn turned(
        &self,
        (from, dst, apart): (*const u8, *mut u8, isize),
        (n, columns): (usize, usize),
        lines: usize,
    ) {
        let size = self.size;
        let made = self.memory.wrapping_add(rows(size) * PITCH);
        let [places, made_at] = self.places;
        let most = most(size, columns);
        for s in (0..columns).step_by(most) {
            let s = s.min(columns.saturating_sub(TURNED));
            let count = most.min(columns - s);
            let (from, dst) =
                (from.wrapping_add(s * size), dst.wrapping_offset(s as isize * apart));
            for d in (0..n).step_by(ROWS_MOST) {
                let d = d.min(n.saturating_sub(TURNED));
                let rows = ROWS_MOST.min(n - d);
                let (from, to) = (from.wrapping_add(d * PITCH), made.wrapping_add(d * size));
                // SAFETY: copies, and memory for what becomes of them.
                unsafe {
                    (self.kernel.turn)((from, places), (to, made_at), (rows, count), self.how)
                };
            }
            // SAFETY: what was made, and the caller's lines or elements.
            unsafe {
                if lines > 0 {
                    let to = Rows::Apart([apart]);
                    (self.stage.put)(made, pitch(size), dst, to, count, lines);
                    continue;
                }
                for i in 0..count {
                    let from = made.wrapping_add(i * pitch(size));
                    let to = dst.wrapping_offset(i as isize * apart);
                    core::ptr::copy_nonoverlapping(from, to, n * size);
                }
            }
        }
    }
}

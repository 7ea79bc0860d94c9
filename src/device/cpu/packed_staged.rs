//! Transposes of packed elements of 4 bits: the source's rows are copied next to one another, as in
//! [`super::staged`], made rows of bytes that are the destination's, and turned as such.
//!
//! A row may start in the middle of a byte. Then the second nibbles of its pairs are in the bytes
//! that follow; and where every other row of the destination does, these are made of other pairs of
//! the source's rows: the second one, and the first one of the next pair.
use super::bitrun;
use super::ops::Rows;
use super::packed::{BitFace, LINE};
use super::staged::{BYTES, MANY, Memory, Nibbles, PITCH, Stage, TURNED};
use super::tuning::tuning;

/// Source rows that are copied, and elements of each.
const ROWS: i64 = MANY as i64;
const COLUMNS: i64 = 2 * BYTES as i64;

/// Elements of a line.
const LINED: i64 = 128;

/// Elements of destination rows, and of source rows, at least.
const LONG: [i64; 2] = [512, 256];

/// Elements of destination rows from which whole lines go past the caches early: the ends of rows
/// do not.
const EARLY: i64 = 2048;

/// Copies what of a face is whole lines, and tells between which elements of destination rows and
/// of source rows that is; or nothing, if other ways are faster or there is no memory.
///
/// # Safety
/// Every element is readable and writable; no overlap.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(face: &BitFace, memory: &mut Memory) -> Option<[(i64, i64); 2]> {
    let (stage, tuning) = (face.ops.stage?, tuning());
    let long = face.n_dst >= LONG[0] && face.n_src >= LONG[1];
    if !(face.four() && long && tuning.reads()) {
        return None;
    }
    let memory = memory.lines(MANY * (PITCH + TURNED) + PITCH)?;
    let nbytes = face.n_dst.saturating_mul(face.n_src) as u64 / 2;
    let (lined, large) = (face.ds & LINE == 0, nbytes >= tuning.stream_from[0][0]);
    let streams = face.n_dst >= EARLY && large || face.streams && lined;
    // Of rows that start anywhere in a line, one is lost each time, and their first is not whole.
    let lost = if streams && !lined { LINED } else { 0 };
    let head = if streams && lined { face.head() } else { nibble(face.dst_bit) };
    let band = Band { stage, face, streams, lost, odd: nibble(face.ds), memory };
    let (mut d, end) = (head, face.n_src & -LINED);
    loop {
        let rows = ROWS.min((face.n_dst - band.odd - d) & -LINED);
        if rows <= lost {
            break;
        }
        for s in (0..end).step_by(COLUMNS as usize) {
            // SAFETY: as many of the caller's elements, of whole lines.
            unsafe { band.make((d, s), (rows, COLUMNS.min(end - s))) };
        }
        d += rows - lost;
    }
    if streams && !face.streams {
        // SAFETY: the level's instructions are there.
        unsafe { (face.ops.fence)() };
    }
    Some([(head + lost + band.odd, d), (0, end)])
}

/// Which of a byte's nibbles that bit is in.
fn nibble(bit: i64) -> i64 {
    bit >> 2 & 1
}

/// What bands of some source rows have in common.
struct Band<'a> {
    stage: &'a Stage,
    face: &'a BitFace<'a>,
    /// Whether lines go past the caches, and if so the last elements of destination rows, which are
    /// none.
    streams: bool,
    lost: i64,
    /// 1 if every other row of the destination starts in the middle of a byte.
    odd: i64,
    memory: *mut u8,
}

impl Band<'_> {
    /// The copies of so many source rows and columns, from `d` and `s` on, and what they become.
    unsafe fn make(&self, (d, s): (i64, i64), (rows, columns): (i64, i64)) {
        let &Band { stage, face, streams, lost, odd, memory } = self;
        let (half, bytes) = (rows as usize / 2, columns as usize / 2);
        let (lines, whole) = (bytes / 64, (rows - lost) as usize / LINED as usize);
        let first = bitrun::at(face.dst, face.dst_bit + s * face.ds + 4 * d).0;
        let second = bitrun::at(face.dst, face.dst_bit + (s + 1) * face.ds + 4 * (d + odd)).0;
        // From one pair to the next.
        let to = (face.ds >> 2) as isize;
        // The first rows of pairs, perhaps one more, and the second ones; then the even columns,
        // and the odd ones.
        let halves = [memory, memory.wrapping_add((half + 1) * PITCH)];
        let turned = memory.wrapping_add((2 * half + 1) * PITCH);
        // SAFETY: the caller's rows, and as much memory; then its lines.
        unsafe {
            let a = self.copies((d, s), halves[0], half + odd as usize, lines);
            let b = self.copies((d + 1, s), halves[1], half, lines);
            let next = Nibbles { at: a[1].at.wrapping_add(PITCH), ..a[1] };
            let seconds = if odd > 0 { [b[1], next] } else { [a[1], b[1]] };
            (stage.pair)(&[[a[0], b[0]], seconds], halves, half, lines);
            for i in (0..bytes).step_by(TURNED) {
                for (copies, dst) in halves.into_iter().zip([first, second]) {
                    let copies = copies.wrapping_add(i);
                    let dst = dst.cast_mut().wrapping_offset(i as isize * to);
                    if streams {
                        (stage.turn)(0, copies, half, turned, half);
                        (stage.put)(turned, half, dst, Rows::Apart([to]), TURNED, whole);
                    } else {
                        (stage.turn)(0, copies, half, dst, to as usize);
                    }
                }
            }
        }
    }

    /// Copies `lines` lines of each second one of `n` source rows, from `d` and `s` on, to
    /// `copies`: their even elements, and the odd ones.
    unsafe fn copies(
        &self,
        (d, s): (i64, i64),
        copies: *mut u8,
        n: usize,
        lines: usize,
    ) -> [Nibbles; 2] {
        let (face, bytes) = (self.face, 64 * lines);
        let bit = face.src_bit + d * face.ss + 4 * s;
        let (src, by) = (bitrun::at(face.src, bit).0, (face.ss >> 2) as isize);
        let skew = nibble(bit) as usize;
        // SAFETY: the caller's rows, and as much memory.
        unsafe {
            (self.stage.copy)(src, Rows::Apart([by]), copies, PITCH, n, lines);
            for i in 0..skew * n {
                // A row's last element is in the byte that follows.
                let last = src.wrapping_offset(i as isize * by).wrapping_add(bytes);
                *copies.wrapping_add(i * PITCH + bytes) = *last;
            }
        }
        let nibbles = |at, high| Nibbles { at, shift: 4 * high as i32 };
        [nibbles(copies, skew), nibbles(copies.wrapping_add(skew), 1 - skew)]
    }
}

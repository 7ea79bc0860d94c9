//! Transposes of packed elements of 4 bits, two of which are a byte of both sides' rows: these are
//! copied next to one another, as in [`super::staged`], made rows of bytes that belong together,
//! and turned as such.
use super::bitrun;
use super::ops::Rows;
use super::packed::{BitFace, LINE};
use super::staged::{BYTES, MANY, Memory, PITCH, Stage, TURNED};
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
    if !(face.bytes() && long && tuning.reads()) {
        return None;
    }
    let memory = memory.lines(MANY * (PITCH + TURNED))?;
    let nbytes = face.n_dst.saturating_mul(face.n_src) as u64 / 2;
    let (lined, large) = (face.ds & LINE == 0, nbytes >= tuning.stream_from[0][0]);
    let streams = face.n_dst >= EARLY && large || face.streams && lined;
    // Of rows that start anywhere in a line, one is lost each time, and their first is not whole.
    let lost = if streams && !lined { LINED } else { 0 };
    let head = if streams { face.head() } else { 0 };
    let band = Band { stage, face, streams, lost, memory };
    let (mut d, end) = (head, face.n_src & -LINED);
    loop {
        let rows = ROWS.min((face.n_dst - d) & -LINED);
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
    Some([(head.max(lost), d), (0, end)])
}

/// What bands of some source rows have in common.
struct Band<'a> {
    stage: &'a Stage,
    face: &'a BitFace<'a>,
    /// Whether lines go past the caches, and if so the last elements of destination rows, which are
    /// none.
    streams: bool,
    lost: i64,
    memory: *mut u8,
}

impl Band<'_> {
    /// The copies of so many source rows and columns, from `d` and `s` on, and what they become.
    unsafe fn make(&self, (d, s): (i64, i64), (rows, columns): (i64, i64)) {
        let &Band { stage, face, streams, lost, memory } = self;
        let (half, bytes) = (rows as usize / 2, columns as usize / 2);
        let (lines, whole) = (bytes / 64, (rows - lost) as usize / LINED as usize);
        let src = bitrun::at(face.src, face.src_bit + d * face.ss + 4 * s).0;
        let dst = bitrun::at(face.dst, face.dst_bit + s * face.ds + 4 * d).0.cast_mut();
        let (from, to) = ((face.ss >> 3) as isize, (face.ds >> 3) as isize);
        // The first rows of pairs, and the second ones: then the even columns, and the odd ones.
        let halves = [memory, memory.wrapping_add(half * PITCH)];
        let turned = memory.wrapping_add(2 * half * PITCH);
        // SAFETY: the caller's rows, and as much memory; then its lines.
        unsafe {
            for (copies, src) in halves.into_iter().zip([src, src.wrapping_offset(from)]) {
                (stage.copy)(src, Rows::Apart([2 * from]), copies, PITCH, half, lines);
            }
            (stage.pair)(halves[0], halves[1], half, lines);
            for i in (0..bytes).step_by(TURNED) {
                let dst = dst.wrapping_offset(2 * i as isize * to);
                for (copies, dst) in halves.into_iter().zip([dst, dst.wrapping_offset(to)]) {
                    let copies = copies.wrapping_add(i);
                    if streams {
                        (stage.turn)(0, copies, half, turned, half);
                        (stage.put)(turned, half, dst, Rows::Apart([2 * to]), TURNED, whole);
                    } else {
                        (stage.turn)(0, copies, half, dst, (2 * to) as usize);
                    }
                }
            }
        }
    }
}

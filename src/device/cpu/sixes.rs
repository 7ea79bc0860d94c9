//! Transposes of packed 6-bit elements at whole bytes: four elements are three bytes. Four by
//! four are turned within words, and then words are what is transposed.
use core::ops::Range;

use super::packed::Face;
use super::stream::Buffer;

/// What the kernel turns at a time: along the destination's innermost dimension, and along the
/// source's.
const TILE_DST: isize = 32;
pub(super) const TILE_SRC: isize = 16;
/// Elements of a destination row that are written together: three whole lines.
pub(super) const STRIP: isize = 256;
/// The least extents, likewise: a tile, and six bytes beside it.
pub(super) const LEAST: (i64, i64) = (32, 24);

/// Bytes from one row of the buffer to the next, and what a tile may write of them before a strip.
const PITCH: usize = 256;
const BEFORE: usize = 64;

/// The elements `ds`, at most [`STRIP`], of [`TILE_SRC`] destination rows, from `s` on.
///
/// # Safety
/// They are elements of the face, and the level has the kernel.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn window(face: &Face, ds: Range<isize>, s: isize) {
    let Some(turn) = face.ops.sixes else { return };
    let mut buffer = Buffer::new();
    let lines = buffer.ptr().wrapping_add(BEFORE);
    // The kernel reads 16 bytes for 12: some before them too, if there are any.
    let lead = if s > 0 { 4 } else { 0 };
    let src = face.src.wrapping_offset(face.way.bytes(s) - lead);
    let mut d = ds.start;
    while d < ds.end {
        let d_at = d.min(face.n_dst - TILE_DST);
        let from = src.wrapping_offset(d_at * face.ss);
        let to = lines.wrapping_offset(face.way.bytes(d_at - ds.start));
        // SAFETY: a tile of the face; the strip has 192 bytes of each of the buffer's rows, and a
        // tile that moves back less than 24 before.
        unsafe { turn(from, face.ss, lead as usize, to, PITCH) };
        d += TILE_DST;
    }
    let n = face.way.bytes(ds.end - ds.start) as usize;
    for i in 0..TILE_SRC {
        let to = face.dst.wrapping_offset((s + i) * face.ds + face.way.bytes(ds.start));
        let from = lines.wrapping_add(i as usize * PITCH);
        // SAFETY: the strip's bytes of a destination row.
        unsafe { face.write(to, from, n) };
    }
}

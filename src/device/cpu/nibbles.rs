//! Transposes of packed 4-bit elements at whole bytes: two rows become one byte row for the even
//! columns and one for the odd, and bytes are what is transposed.
use core::ops::Range;

use super::packed::Face;
use super::stream::Buffer;
use super::transpose::bytes;

/// A tile's extents: 64 destination bytes along its innermost dimension, 16 source bytes along
/// the source's.
pub(super) const TILE_DST: isize = 128;
pub(super) const TILE_SRC: isize = 32;

/// Pairs of rows in a tile, and the bytes that one of them fills.
const PAIRS: usize = 64;
const PITCH: usize = 32;

/// The elements `ds`, at most [`TILE_DST`], of [`TILE_SRC`] destination rows, from `s` on.
///
/// # Safety
/// They are elements of the face.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn window(face: &Face, ds: Range<isize>, s: isize) {
    const LOW: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    let ss = face.ss;
    // A tile that moves back makes what precedes the strip, too.
    let d = ds.start.min(face.n_dst - TILE_DST);
    let mut buffer = Buffer::new();
    let (pairs, lines) = (buffer.ptr(), buffer.ptr().wrapping_add(PAIRS * PITCH));
    let mut from = face.src.wrapping_offset(d * ss + s / 2);
    for pair in 0..PAIRS {
        let other = from.wrapping_offset(ss);
        let to = pairs.wrapping_add(pair * PITCH);
        for half in [0, 8] {
            // SAFETY: 16 bytes of each of the tile's rows; 32 bytes a pair in the buffer.
            unsafe {
                let a = from.wrapping_add(half).cast::<u64>().read_unaligned();
                let b = other.wrapping_add(half).cast::<u64>().read_unaligned();
                let (even, odd) = (a & LOW | (b & LOW) << 4, a >> 4 & LOW | b & !LOW);
                to.wrapping_add(half).cast::<u64>().write_unaligned(even);
                to.wrapping_add(16 + half).cast::<u64>().write_unaligned(odd);
            }
        }
        from = other.wrapping_offset(ss);
    }
    let strip = lines.wrapping_offset((ds.start - d) / 2);
    let n = ((ds.end - ds.start) / 2) as usize;
    // SAFETY: both halves of the buffer are 2 KiB; each line is 64 bytes of a destination row,
    // the even rows' first, and the strip's bytes are among them.
    unsafe {
        bytes(face.ops, pairs, lines, PAIRS, PITCH);
        for i in 0..PITCH {
            let row = if i < 16 { 2 * i } else { 2 * (i - 16) + 1 } as isize;
            let to = face.dst.wrapping_offset((s + row) * face.ds + ds.start / 2);
            face.write(to, strip.wrapping_add(i * 64), n);
        }
    }
}

//! Transposes of packed 4-bit elements at whole bytes: two rows become one byte row for the even
//! columns and one for the odd, and bytes are what is transposed.
use core::ops::Range;

use super::ops::{Ops, Rows};
use super::portable;
use super::stream::Buffer;
use super::transpose::bytes;
use super::walk::{set, walk};
use crate::device::part::Part;

/// A tile's extents: 64 destination bytes along its innermost dimension, 16 source bytes along
/// the source's.
pub(super) const TILE_DST: i64 = 128;
pub(super) const TILE_SRC: i64 = 32;

/// Pairs of rows in a tile, and the bytes that one of them fills.
const PAIRS: usize = 64;
const PITCH: usize = 32;

/// The elements `ds` of the innermost dimension, and the first `n_src` of `dense`: whole tiles.
///
/// # Safety
/// As [`super::copy`]; strides in bits, whole bytes but for the two that are 4.
pub(super) unsafe fn tiles(
    ops: &Ops,
    plan: &Part,
    dense: usize,
    ds: Range<i64>,
    n_src: i64,
    streams: bool,
) {
    let last = plan.ndim.checked_sub(1);
    let (ss, by) = (plan.inner().src as isize / 8, plan.dim(dense).dst as isize / 8);
    walk(plan, set(&[last, Some(dense)]), |src_at, dst_at| {
        let src = plan.src.wrapping_offset((plan.src_bit as isize + src_at) / 8);
        let dst = plan.dst.wrapping_offset((plan.dst_bit as isize + dst_at) / 8);
        let mut d = ds.start as isize;
        while d < ds.end as isize {
            let mut s = 0;
            while s < n_src as isize {
                let from = src.wrapping_offset(d * ss + s / 2);
                let to = dst.wrapping_offset(s * by + d / 2);
                let at = src.wrapping_offset(d * ss);
                fetch(ops, (at, ss), (s, n_src as isize), (to, by), streams);
                // SAFETY: a whole tile of the caller's plan.
                unsafe { tile(ops, from, ss, to, by, streams) };
                s += TILE_SRC as isize;
            }
            d += TILE_DST as isize;
        }
    });
}

/// Asks for some of the source's lines that follow the present 512 columns, each tile's share, and
/// for the next tile's destination lines if they are written in part. (Memory is slow to change
/// its rows: several lines of a row at once.)
fn fetch(
    ops: &Ops,
    (src, ss): (*const u8, isize),
    (s, n_src): (isize, isize),
    (dst, ds): (*mut u8, isize),
    streams: bool,
) {
    let share = s & 480;
    let ahead = src.wrapping_offset(share / 4 * ss + (s - share) / 2 + 256);
    let next = dst.wrapping_offset(TILE_SRC as isize * ds);
    // SAFETY: any address will do, and no list is read.
    unsafe {
        if s - share + 512 < n_src {
            (ops.fetch)(ahead, Rows::Apart([ss]), 8, 5);
        }
        if streams && (next as isize | ds) & 63 != 0 {
            (ops.fetch)(next, Rows::Apart([ds]), TILE_SRC as usize, 2);
        }
    }
}

#[inline(never)] // a frame of its own: stacks may be small
unsafe fn tile(ops: &Ops, src: *const u8, ss: isize, dst: *mut u8, ds: isize, streams: bool) {
    const LOW: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    let mut buffer = Buffer::new();
    let (pairs, lines) = (buffer.ptr(), buffer.ptr().wrapping_add(PAIRS * PITCH));
    let aligned = dst as usize & 63 == 0 && ds & 63 == 0;
    let stream = if streams && aligned { ops.stream } else { portable::stream };
    let mut from = src;
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
    // SAFETY: both halves of the buffer are 2 KiB; each line is 64 bytes of a destination row,
    // the even rows' first.
    unsafe {
        bytes(ops, pairs, lines, PAIRS, PITCH);
        for i in 0..PITCH {
            let row = if i < 16 { 2 * i } else { 2 * (i - 16) + 1 } as isize;
            stream(dst.wrapping_offset(row * ds), lines.wrapping_add(i * 64), 1);
        }
    }
}

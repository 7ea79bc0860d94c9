//! AArch64 kernels: tiles in vector registers, table look-ups for steps.
#![cfg(target_arch = "aarch64")]
use core::arch::aarch64::*;

use super::level::Level;
use super::ops::{Groups, Masks, Odd, Ops, Place, Rows};
use super::portable;
use super::tuning::Make;

pub(super) fn detect() -> Level {
    Level::Neon // part of the AArch64 baseline
}

pub(super) fn maker() -> Make {
    Make::Usual
}

pub(super) fn table(level: Level) -> &'static Ops {
    if level == Level::Neon { &OPS } else { &portable::OPS }
}

static OPS: Ops = Ops {
    width: 16,
    squares: None,
    shares: false,
    bytes: None,
    tiles: TILES,
    narrow: TILES,
    lines: None,
    odd: Some(odd),
    shift: super::bitrun::shifted,
    pairs: None,
    fours: portable::fours,
    sixes: None,
    fetch: portable::fetch,
    asked: portable::asked,
    fill: super::fills::fill,
    stream: portable::stream,
    join: portable::join,
    pieces: portable::pieces,
    step,
    weave,
    unpack: portable::unpack,
    pack: portable::pack,
    packs: false,
    odd_squares: None,
    stage: None,
    braid: None,
    groups: Some((&[16], false, shuffle)),
    planes: None,
    deal: None,
    runs: portable::runs,
    fence: portable::fence,
    streams: false,
};

static TILES: [super::ops::Tile; 5] = [tile1, tile2, tile4, tile8, tile16];

/// log2(C) rounds of a perfect shuffle transpose a C × C matrix.
macro_rules! tile {
    (
        $name:ident, $rounds:literal, $low:ident, $high:ident, $to:ident, $from:ident,
        [$($i:literal)*], [$($h:literal)*]
    ) => {
        #[target_feature(enable = "neon")]
        unsafe fn $name(src: *const u8, dst: *mut u8, rows: Rows<2>, blocks: usize) {
            // SAFETY: the caller vouches for C rows of 16 bytes on both sides, for every block.
            unsafe {
                either!(rows, [from, to] => turn(src, from, dst, to, blocks))
            }

            #[target_feature(enable = "neon")]
            unsafe fn turn<P: Place>(src: *const u8, from: P, dst: *mut u8, to: P, n: usize) {
                const C: usize = [$($i),*].len();
                for block in 0..n {
                    let (at, to) = to.from(block * C);
                    let (src, dst) = (src.wrapping_add(16 * block), dst.wrapping_offset(at));
                    // SAFETY: as above.
                    unsafe {
                        let row = |i: usize| src.wrapping_offset(from.at(i));
                        let mut rows = [$($to(vld1q_u8(row($i)))),*];
                        shuffle!(rows, C, $rounds, $low, $high, [$($h)*]);
                        let row = |i: usize| dst.wrapping_offset(to.at(i));
                        $(vst1q_u8(row($i), $from(rows[$i]));)*
                    }
                }
            }
        }
    };
}

#[inline]
#[target_feature(enable = "neon")]
fn same(v: uint8x16_t) -> uint8x16_t {
    v
}

tile!(
    tile1, 4, vzip1q_u8, vzip2q_u8, same, same,
    [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15], [0 1 2 3 4 5 6 7]
);
tile!(
    tile2, 3, vzip1q_u16, vzip2q_u16, vreinterpretq_u16_u8, vreinterpretq_u8_u16,
    [0 1 2 3 4 5 6 7], [0 1 2 3]
);
tile!(
    tile4, 2, vzip1q_u32, vzip2q_u32, vreinterpretq_u32_u8, vreinterpretq_u8_u32,
    [0 1 2 3], [0 1]
);
tile!(
    tile8, 1, vzip1q_u64, vzip2q_u64, vreinterpretq_u64_u8, vreinterpretq_u8_u64,
    [0 1], [0]
);
tile!(tile16, 0, vzip1q_u8, vzip2q_u8, same, same, [0], []);

#[target_feature(enable = "neon")]
unsafe fn odd(src: *const u8, dst: *mut u8, rows: Rows<2>, tiles: usize, how: &Odd, last: bool) {
    // SAFETY: the caller vouches for the bytes of each row, on both sides.
    unsafe { either!(rows, [from, to] => odd_rows(src, from, dst, to, tiles, how, last)) }
}

#[target_feature(enable = "neon")]
unsafe fn odd_rows<P: Place>(
    src: *const u8,
    from: P,
    dst: *mut u8,
    to: P,
    tiles: usize,
    how: &Odd,
    last: bool,
) {
    // SAFETY: as above; a mask is 16 bytes, and an index beyond 15 gives 0. What a tile writes too
    // much, the next one writes again.
    unsafe {
        let (close, close_end) = (vld1q_u8(how.close.as_ptr()), vld1q_u8(how.close_end.as_ptr()));
        let spread = vld1q_u8(if last { &how.spread_ends } else { &how.spread }.as_ptr());
        for tile in 0..tiles {
            let (at, from) = from.from(tile * how.side);
            let src = src.wrapping_offset(at);
            let dst = dst.wrapping_add(tile * how.side * how.size);
            let row = |i: usize| {
                let row = src.wrapping_offset(from.at(i));
                let ends = |end: *const u8| vcombine_u8(vld1_u8(row), vld1_u8(end));
                let bytes = if last { ends(row.wrapping_add(how.end())) } else { vld1q_u8(row) };
                vqtbl1q_u8(bytes, spread)
            };
            let put = |i: usize, row: uint8x16_t| {
                let to = dst.wrapping_offset(to.at(i));
                if tile + 1 < tiles {
                    vst1q_u8(to, vqtbl1q_u8(row, close));
                } else {
                    vst1_u8(to, vget_low_u8(vqtbl1q_u8(row, close)));
                    let end = to.wrapping_add(how.end());
                    vst1_u8(end, vget_low_u8(vqtbl1q_u8(row, close_end)));
                }
            };
            if how.side == 4 {
                let word = |i: usize| vreinterpretq_u32_u8(row(i));
                let mut rows = [word(0), word(1), word(2), word(3)];
                const C: usize = 4;
                shuffle!(rows, C, 2, vzip1q_u32, vzip2q_u32, [0 1]);
                for (i, row) in rows.into_iter().enumerate() {
                    put(i, vreinterpretq_u8_u32(row));
                }
            } else {
                let (a, b) = (vreinterpretq_u64_u8(row(0)), vreinterpretq_u64_u8(row(1)));
                put(0, vreinterpretq_u8_u64(vzip1q_u64(a, b)));
                put(1, vreinterpretq_u8_u64(vzip2q_u64(a, b)));
            }
        }
    }
}

#[target_feature(enable = "neon")]
unsafe fn step(dst: *mut u8, src: *const u8, results: usize, how: &Masks) -> usize {
    let mut from = src.wrapping_offset(how.first);
    for result in 0..results {
        let mut all = vdupq_n_u8(0);
        for (j, mask) in how.masks.iter().take(how.loads).enumerate() {
            // SAFETY: the caller vouches for `loads` loads of 16 bytes; a mask is 16 bytes.
            // An index beyond 15 gives 0.
            unsafe {
                let bytes = vld1q_u8(from.wrapping_add(16 * j));
                all = vorrq_u8(all, vqtbl1q_u8(bytes, vld1q_u8(mask.as_ptr())));
            }
        }
        // SAFETY: the caller vouches for `results` times 16 bytes.
        unsafe { vst1q_u8(dst.wrapping_add(16 * result), all) };
        from = from.wrapping_offset(how.advance);
    }
    results
}

#[target_feature(enable = "neon")]
unsafe fn weave(
    dst: *mut u8,
    src: *const u8,
    plane_stride: isize,
    rounds: usize,
    planes: usize,
    masks: &[[[u8; 16]; 8]; 8],
) -> usize {
    for round in 0..rounds {
        let from = src.wrapping_add(16 * round);
        let to = dst.wrapping_add(16 * planes * round);
        for (r, result) in masks.iter().take(planes).enumerate() {
            let mut all = vdupq_n_u8(0);
            for (p, mask) in result.iter().take(planes).enumerate() {
                let from = from.wrapping_offset(p as isize * plane_stride);
                // SAFETY: the caller vouches for `rounds` times 16 bytes of every plane; a mask
                // is 16 bytes, and an index beyond 15 gives 0.
                unsafe {
                    let mask = vld1q_u8(mask.as_ptr());
                    all = vorrq_u8(all, vqtbl1q_u8(vld1q_u8(from), mask));
                }
            }
            // SAFETY: the destination has `planes` times 16 bytes for every round.
            unsafe { vst1q_u8(to.wrapping_add(16 * r), all) };
        }
    }
    rounds
}

/// See [`Shuffle`]: windows of 16 bytes.
#[target_feature(enable = "neon")]
unsafe fn shuffle(mut dst: *mut u8, mut src: *const u8, mut n: usize, how: &Groups) {
    let (step, bytes) = (how.at_once as isize * how.strides[0], how.at_once * how.bytes);
    let (mut from, least) = (src.wrapping_offset(how.first), how.outside());
    // SAFETY: the caller vouches for `n` groups and for all between their bytes: windows lie within
    // that, and what is written too much the next groups cover.
    unsafe {
        let order = vld1q_u8(how.order.as_ptr());
        while n > least {
            vst1q_u8(dst, vqtbl1q_u8(vld1q_u8(from), order));
            (from, src) = (from.wrapping_offset(step), src.wrapping_offset(step));
            dst = dst.wrapping_add(bytes);
            n -= how.at_once;
        }
        slowly(dst, src, n, how);
    }
}

/// Groups byte by byte, of a dense destination.
///
/// # Safety
/// As [`super::ops::Shuffle`].
unsafe fn slowly(dst: *mut u8, src: *const u8, n: usize, how: &Groups) {
    let (mut from, mut to) = (src.wrapping_offset(how.first), dst);
    for _ in 0..n {
        for (i, &at) in how.order.iter().take(how.bytes).enumerate() {
            // SAFETY: a byte of the caller's groups.
            unsafe { *to.wrapping_add(i) = *from.wrapping_add(usize::from(at)) };
        }
        (from, to) = (from.wrapping_offset(how.strides[0]), to.wrapping_add(how.bytes));
    }
}

//! Kernels in plain Rust, for every target.
use super::nest::Stores;
use super::ops::{Masks, Ops, Packed, Place, Rows};
use super::strided::fixed;
use super::{bitrun, fills, nest, transpose};
use crate::device::plan::Dim;

pub(super) static OPS: Ops = Ops {
    width: 16,
    squares: None,
    shares: false,
    bytes: None,
    tiles: TILES,
    narrow: TILES,
    lines: None,
    odd: None,
    shift: bitrun::shifted,
    pairs: None,
    fours,
    sixes: None,
    fetch,
    asked,
    fill: fills::fill,
    stream,
    join,
    pieces,
    step,
    weave,
    unpack,
    pack,
    packs: false,
    odd_squares: None,
    stage: None,
    braid: None,
    groups: None,
    planes: None,
    deal: None,
    runs,
    fence,
    streams: false,
};

pub(super) static TILES: [super::ops::Tile; 5] =
    [tile::<1, 16>, tile::<2, 8>, tile::<4, 4>, tile::<8, 2>, tile::<16, 1>];

/// `C` rows of `C` elements of `SIZE` bytes, `SIZE` × `C` = 16.
unsafe fn tile<const SIZE: usize, const C: usize>(
    src: *const u8,
    dst: *mut u8,
    rows: Rows<2>,
    blocks: usize,
) {
    // SAFETY: the caller vouches for C rows of 16 bytes per block, on both sides.
    unsafe { either!(rows, [from, to] => turn::<SIZE, C>(src, from, dst, to, blocks)) }
}

unsafe fn turn<const SIZE: usize, const C: usize>(
    src: *const u8,
    from: impl Place,
    dst: *mut u8,
    to: impl Place,
    blocks: usize,
) {
    for s in 0..C * blocks {
        for d in 0..C {
            // SAFETY: as above; byte arrays have no alignment.
            unsafe {
                let src = src.wrapping_offset(from.at(d)).wrapping_add(SIZE * s);
                let dst = dst.wrapping_offset(to.at(s)).wrapping_add(SIZE * d);
                *dst.cast::<[u8; SIZE]>() = *src.cast();
            }
        }
    }
}

/// Two rows become one of bytes, the even columns before the odd ones, and bytes are what is
/// transposed.
pub(super) unsafe fn fours(ops: &Ops, from: &Packed, to: *mut u8, pitch: usize) {
    const LOW: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    let columns = if from.wide { 32 } else { 16 };
    let mut pairs = [0u64; 32 * 4];
    let pairs: *mut u8 = pairs.as_mut_ptr().cast();
    for tile in 0..from.tiles {
        for pair in 0..32 {
            let bit = from.bit + 2 * (32 * tile + pair) as i64 * from.apart;
            for half in (0..columns / 2).step_by(8) {
                let bit = bit + 8 * half as i64;
                let at = pairs.wrapping_add(pair * columns + half).cast::<u64>();
                // SAFETY: the caller vouches for 8 or 16 bytes of each row; words of a pair's row.
                unsafe {
                    let (a, b) =
                        (bitrun::word(from.src, bit), bitrun::word(from.src, bit + from.apart));
                    *at = (a & LOW | (b & LOW) << 4).to_le();
                    *at.wrapping_add(columns / 16) = (a >> 4 & LOW | b & !LOW).to_le();
                }
            }
        }
        // SAFETY: 32 rows of `columns` bytes; 32 bytes of each of the caller's rows.
        unsafe { transpose::bytes(ops, pairs, to.wrapping_add(32 * tile), (32, columns), pitch) };
    }
}

pub(super) unsafe fn stream(dst: *mut u8, src: *const u8, lines: usize) {
    // SAFETY: the caller vouches for `lines` lines that do not overlap.
    unsafe { core::ptr::copy_nonoverlapping(src, dst, 64 * lines) };
}

pub(super) unsafe fn join(line: *mut u8, tail: *const u8, head: *const u8, n: usize) {
    // SAFETY: the caller vouches for the line and for the bytes that it takes.
    unsafe {
        core::ptr::copy_nonoverlapping(tail, line, n);
        core::ptr::copy_nonoverlapping(head, line.wrapping_add(n), 64 - n);
    }
}

pub(super) unsafe fn pieces(
    line: *mut u8,
    (tail, n): (*const u8, usize),
    src: *const u8,
    size: usize,
    count: usize,
    stride: isize,
) {
    let (mut to, mut src) = (line.wrapping_add(n), src);
    // SAFETY: the caller vouches for the pieces, on both sides.
    unsafe {
        core::ptr::copy_nonoverlapping(tail, line, n);
        for _ in 0..count {
            core::ptr::copy_nonoverlapping(src, to, size);
            (to, src) = (to.wrapping_add(size), src.wrapping_offset(stride));
        }
    }
}

/// None: the caller goes on element by element.
unsafe fn step(_: *mut u8, _: *const u8, _: usize, _: &Masks) -> usize {
    0
}

/// None, likewise.
unsafe fn weave(
    _: *mut u8,
    _: *const u8,
    _: isize,
    _: usize,
    _: usize,
    _: &[[[u8; 16]; 8]; 8],
) -> usize {
    0
}

/// Elements of 32 bytes and more.
pub(super) unsafe fn runs(size: usize, dims: [&Dim; 3], src: *const u8, dst: *mut u8, _: Stores) {
    // SAFETY: the caller's promise.
    unsafe { nest::runs::<false>(size, dims, src, dst, false) }
}

/// Ordinary stores need none.
pub(super) unsafe fn fence() {}

/// Nothing: hardware does what it does.
pub(super) unsafe fn fetch(_: *const u8, _: Rows<1>, _: usize, _: usize) {}

/// As [`super::ops::Asked`], of which only the copies are done.
pub(super) unsafe fn asked(dst: *mut u8, src: *const u8, n: usize, stride: isize, _: usize) {
    // SAFETY: the caller's elements.
    unsafe { fixed::<16>(dst, src, n, stride, 16) };
}

/// None: the caller does it.
pub(super) unsafe fn unpack(_: *mut u8, _: *const u8, _: u32, _: u32, _: usize) -> usize {
    0
}

/// None, likewise.
pub(super) unsafe fn pack(
    _: *mut u8,
    _: *const u8,
    _: u32,
    _: u32,
    _: usize,
    carry: u64,
) -> (usize, u64) {
    (0, carry)
}

//! Kernels in plain Rust, for every target.
use super::ops::{Masks, Ops};

pub(super) static OPS: Ops = Ops {
    width: 16,
    square: None,
    tiles: TILES,
    narrow: TILES,
    fetch,
    stream,
    step,
    weave,
    unpack,
    pack,
    packs: false,
    fence,
    streams: false,
};

pub(super) static TILES: [super::ops::Tile; 5] =
    [tile::<1, 16>, tile::<2, 8>, tile::<4, 4>, tile::<8, 2>, tile::<16, 1>];

/// `C` rows of `C` elements of `SIZE` bytes, `SIZE` × `C` = 16.
unsafe fn tile<const SIZE: usize, const C: usize>(
    src: *const u8,
    ss: isize,
    dst: *mut u8,
    ds: isize,
    blocks: usize,
) {
    for s in 0..C * blocks {
        let from = src.wrapping_add(SIZE * s);
        let to = dst.wrapping_offset(s as isize * ds);
        for d in 0..C {
            let from: *const [u8; SIZE] = from.wrapping_offset(d as isize * ss).cast();
            // SAFETY: the caller vouches for C rows of 16 bytes per block, on both sides; byte
            // arrays have no alignment.
            unsafe { *to.wrapping_add(SIZE * d).cast() = *from };
        }
    }
}

pub(super) unsafe fn stream(dst: *mut u8, src: *const u8, lines: usize) {
    // SAFETY: the caller vouches for `lines` lines that do not overlap.
    unsafe { core::ptr::copy_nonoverlapping(src, dst, 64 * lines) };
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

/// Ordinary stores need none.
pub(super) unsafe fn fence() {}

/// Nothing: hardware does what it does.
pub(super) fn fetch(_: *const u8, _: isize, _: usize, _: usize) {}

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

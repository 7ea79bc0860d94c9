//! Kernels in plain Rust, for every target.
use super::ops::{Masks, Ops};

pub(super) static OPS: Ops = Ops {
    width: 16,
    tiles: TILES,
    narrow: TILES,
    flush,
    flush_shifted,
    stream,
    step,
    weave,
    prefetch,
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

pub(super) unsafe fn flush(buffer: *const u8, pitch: usize, dst: *mut u8, ds: isize, rows: usize) {
    for row in 0..rows {
        let from: *const [u8; 64] = buffer.wrapping_add(row * pitch).cast();
        // SAFETY: the caller vouches for one line of the buffer and one of the destination.
        unsafe { *dst.wrapping_offset(row as isize * ds).cast() = *from };
    }
}

pub(super) unsafe fn flush_shifted(buffer: *mut u8, dst: *mut u8, ds: isize, rows: usize) {
    for row in 0..rows {
        let former = buffer.wrapping_add(row * 128);
        let at = dst.wrapping_offset(row as isize * ds);
        let phase = at as usize & 63;
        let from: *const [u8; 64] = former.wrapping_add(64 - phase).cast();
        // SAFETY: a row of the buffer is 128 bytes; the caller vouches for the line.
        unsafe {
            *at.wrapping_sub(phase).cast() = *from;
            *former.cast() = *former.wrapping_add(64).cast::<[u8; 64]>();
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

/// None.
pub(super) unsafe fn prefetch(_: *const u8, _: isize, _: usize, _: usize) {}

/// Ordinary stores need none.
pub(super) unsafe fn fence() {}

//! Rows that are copied next to one another, and turned there, with AVX2.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::ops::{Place, Rows};
use super::staged::Stage;
use super::x86_avx2::{block1, block2, block4, block8, block16};

pub(super) static STAGE: Stage = Stage { copy, turn, put };

/// Rows that are copied side by side, and how many rows on lines are asked for beside each: where
/// rows begin, nothing is fetched ahead.
const TOGETHER: usize = 4;
const AHEAD: usize = 8;

#[target_feature(enable = "avx2")]
unsafe fn copy(src: *const u8, rows: Rows<1>, to: *mut u8, pitch: usize, n: usize, lines: usize) {
    // SAFETY: the caller's promise.
    unsafe { either!(rows, [from] => copy_from(src, from, to, pitch, n, lines)) }
}

#[target_feature(enable = "avx2")]
unsafe fn copy_from<P: Place>(
    src: *const u8,
    from: P,
    to: *mut u8,
    pitch: usize,
    n: usize,
    lines: usize,
) {
    for first in (0..n).step_by(TOGETHER) {
        for line in 0..lines {
            let src = src.wrapping_add(64 * line);
            for i in first..n.min(first + TOGETHER) {
                // SAFETY: lines of the caller's rows, and as much room; a prefetch touches nothing.
                unsafe {
                    if i + AHEAD < n {
                        let next = src.wrapping_offset(from.at(i + AHEAD));
                        _mm_prefetch::<_MM_HINT_T0>(next.cast());
                    }
                    let row: *const __m256i = src.wrapping_offset(from.at(i)).cast();
                    let to: *mut __m256i = to.wrapping_add(i * pitch + 64 * line).cast();
                    let (low, high) = (_mm256_loadu_si256(row), _mm256_loadu_si256(row.add(1)));
                    _mm256_storeu_si256(to, low);
                    _mm256_storeu_si256(to.add(1), high);
                }
            }
        }
    }
}

#[target_feature(enable = "avx2")]
unsafe fn turn(log: u32, src: *const u8, pitch: usize, n: usize, to: *mut u8, size: usize) {
    let (by, apart) = (pitch as isize, size as isize);
    macro_rules! blocks {
        ($block:ident) => {
            for row in (0..n).step_by((32 >> log).max(1)) {
                let (src, to) = (src.wrapping_add(row * pitch), to.wrapping_add(row << log));
                // SAFETY: the caller's copies and rows.
                unsafe { $block(src, by, to, apart) };
            }
        };
    }
    match log {
        0 => blocks!(block1),
        1 => blocks!(block2),
        2 => blocks!(block4),
        3 => blocks!(block8),
        _ => blocks!(block16),
    }
}

#[target_feature(enable = "avx2")]
unsafe fn put(from: *const u8, size: usize, dst: *mut u8, rows: Rows<1>, n: usize, lines: usize) {
    // SAFETY: the caller's promise.
    unsafe { either!(rows, [rows] => put_to(from, size, dst, rows, n, lines)) }
}

#[target_feature(enable = "avx2")]
unsafe fn put_to<P: Place>(
    from: *const u8,
    size: usize,
    dst: *mut u8,
    rows: P,
    n: usize,
    lines: usize,
) {
    for i in 0..n {
        // SAFETY: the caller's lines, of which the first one begins within 64 bytes.
        unsafe {
            let to = dst.wrapping_offset(rows.at(i));
            let skew = (to as usize).wrapping_neg() & 63;
            let mut from: *const __m256i = from.wrapping_add(i * size + skew).cast();
            let mut to: *mut __m256i = to.wrapping_add(skew).cast();
            for _ in 0..lines {
                let (low, high) = (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1)));
                _mm256_stream_si256(to, low);
                _mm256_stream_si256(to.add(1), high);
                (from, to) = (from.wrapping_add(2), to.wrapping_add(2));
            }
        }
    }
}

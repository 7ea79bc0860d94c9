//! Rows that are copied next to one another, and turned there, with AVX2.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::ops::{Place, Rows};
use super::staged::{Nibbles, PITCH, Stage};
use super::x86_avx2::{block1, block2, block4, block8, block16};
use super::x86_packed::swap;

pub(super) static STAGE: Stage = Stage { copy, pair, turn, put };

/// Rows that are copied side by side, and how many rows on lines are asked for beside each: where
/// rows begin, nothing is fetched ahead.
const TOGETHER: usize = 4;
const AHEAD: usize = 8;

/// The same with each of some numbers: loops of so few rounds are worth writing out.
macro_rules! each {
    ([$($n:literal)*], $i:ident => $do:expr) => {$({
        let $i = $n;
        $do
    })*};
}

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
    let mut first = 0;
    while first + TOGETHER <= n {
        let to = to.wrapping_add(first * pitch);
        let asks = first + TOGETHER + AHEAD <= n;
        for at in (0..64 * lines).step_by(64) {
            let (src, to) = (src.wrapping_add(at), to.wrapping_add(at));
            // SAFETY: lines of the caller's rows, and as much room; a prefetch touches nothing.
            unsafe {
                if asks {
                    each!([0 1 2 3], i => {
                        let next = src.wrapping_offset(from.at(first + i + AHEAD));
                        _mm_prefetch::<_MM_HINT_T0>(next.cast());
                    });
                }
                each!([0 1 2 3], i => {
                    let row = src.wrapping_offset(from.at(first + i));
                    line(row, to.wrapping_add(i * pitch));
                });
            }
        }
        first += TOGETHER;
    }
    for i in first..n {
        for at in (0..64 * lines).step_by(64) {
            // SAFETY: likewise.
            unsafe {
                let row = src.wrapping_offset(from.at(i));
                line(row.wrapping_add(at), to.wrapping_add(i * pitch + at));
            }
        }
    }
}

/// Copies a line.
#[inline(always)] // functions with a target_feature cannot ask for that; its callers have it
unsafe fn line(from: *const u8, to: *mut u8) {
    let (from, to): (*const __m256i, *mut __m256i) = (from.cast(), to.cast());
    // SAFETY: the caller's bytes.
    unsafe {
        let (low, high) = (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1)));
        _mm256_storeu_si256(to, low);
        _mm256_storeu_si256(to.add(1), high);
    }
}

#[target_feature(enable = "avx2")]
unsafe fn pair(from: &[[Nibbles; 2]; 2], to: [*mut u8; 2], n: usize, lines: usize) {
    let [[a, b], [c, d]] = *from;
    if (a.at, b.at) == (c.at, d.at) {
        // SAFETY: the caller's promise. All nibbles of these rows' bytes.
        return unsafe { pair_whole([a.at, b.at], to, n, lines) };
    }
    let each = _mm256_set1_epi8(0x0f);
    let of = |of: Nibbles| (of.at, _mm_cvtsi32_si128(of.shift));
    let (low, high) = ([of(a), of(b)], [of(c), of(d)]);
    for row in 0..n {
        for at in (0..64 * lines).step_by(32) {
            let at = row * PITCH + at;
            // SAFETY: the caller's copies.
            let nibbles = |(from, shift): (*const u8, __m128i)| unsafe {
                let bytes = _mm256_loadu_si256(from.wrapping_add(at).cast());
                _mm256_and_si256(_mm256_srl_epi16(bytes, shift), each)
            };
            let both = |[a, b]: [(*const u8, __m128i); 2]| {
                _mm256_or_si256(nibbles(a), _mm256_slli_epi16::<4>(nibbles(b)))
            };
            let (first, second) = (both(low), both(high));
            // SAFETY: likewise; of what is written all was read that is read.
            unsafe {
                _mm256_storeu_si256(to[0].wrapping_add(at).cast(), first);
                _mm256_storeu_si256(to[1].wrapping_add(at).cast(), second);
            }
        }
    }
}

/// Likewise, of two rows' low nibbles, and of their high ones.
#[target_feature(enable = "avx2")]
unsafe fn pair_whole([first, second]: [*const u8; 2], to: [*mut u8; 2], n: usize, lines: usize) {
    for row in 0..n {
        for at in (0..64 * lines).step_by(32) {
            let at = row * PITCH + at;
            // SAFETY: the caller's copies.
            unsafe {
                let a = _mm256_loadu_si256(first.wrapping_add(at).cast());
                let b = _mm256_loadu_si256(second.wrapping_add(at).cast());
                let (low, high) = swap::<4>(a, b, 0x0f0f_0f0f);
                _mm256_storeu_si256(to[0].wrapping_add(at).cast(), low);
                _mm256_storeu_si256(to[1].wrapping_add(at).cast(), high);
            }
        }
    }
}

#[target_feature(enable = "avx2")]
unsafe fn turn(log: u32, src: *const u8, n: usize, to: *mut u8, size: usize) {
    let (by, apart) = (PITCH as isize, size as isize);
    macro_rules! blocks {
        ($block:ident) => {
            for row in (0..n).step_by((32 >> log).max(1)) {
                let (src, to) = (src.wrapping_add(row * PITCH), to.wrapping_add(row << log));
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
            let mut from = from.wrapping_add(i * size + skew);
            let mut to = to.wrapping_add(skew);
            for _ in 0..lines / 4 {
                each!([0 1 2 3], i => past(from.wrapping_add(64 * i), to.wrapping_add(64 * i)));
                (from, to) = (from.wrapping_add(256), to.wrapping_add(256));
            }
            for i in 0..lines % 4 {
                past(from.wrapping_add(64 * i), to.wrapping_add(64 * i));
            }
        }
    }
}

/// Writes a line past the caches.
#[inline(always)] // as above
unsafe fn past(from: *const u8, to: *mut u8) {
    let (from, to): (*const __m256i, *mut __m256i) = (from.cast(), to.cast());
    // SAFETY: the caller's line.
    unsafe {
        let (low, high) = (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1)));
        _mm256_stream_si256(to, low);
        _mm256_stream_si256(to.add(1), high);
    }
}

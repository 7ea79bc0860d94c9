//! Lines of elements of 8 and 16 bytes, one by one, past the caches.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::ops::{Place, Rows, Straight};
use super::strided::one;

/// Columns ahead of which the lines of a row's ends are asked for.
const AHEAD: usize = 16;

/// As [`super::ops::Lines`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn lines(src: *const u8, dst: *mut u8, how: &Straight) {
    // SAFETY: the caller's rows and columns.
    unsafe {
        match how.log {
            3 => either!(how.rows, [rows, columns] => face::<8, _>(src, dst, rows, columns, how)),
            _ => either!(how.rows, [rows, columns] => face::<16, _>(src, dst, rows, columns, how)),
        }
    }
}

#[target_feature(enable = "avx2")]
unsafe fn face<const SIZE: usize, P: Place>(
    src: *const u8,
    dst: *mut u8,
    rows: P,
    columns: P,
    how: &Straight,
) {
    for c in 0..how.columns {
        // SAFETY: the caller's rows and columns; a prefetch touches nothing.
        unsafe {
            if c + AHEAD < how.listed {
                ask::<SIZE>(dst.wrapping_offset(columns.at(c + AHEAD)), how);
            }
            let src = src.wrapping_add(c * SIZE);
            column::<SIZE, P>(src, dst.wrapping_offset(columns.at(c)), rows, how);
        }
    }
}

/// Asks for the lines of a row's ends, for the stores to which all others wait.
#[inline(always)]
unsafe fn ask<const SIZE: usize>(to: *mut u8, how: &Straight) {
    // SAFETY: every processor with AVX2 has SSE.
    unsafe {
        if how.from == 0 {
            _mm_prefetch::<_MM_HINT_T0>(to.cast());
        }
        if how.end == how.n_dst {
            _mm_prefetch::<_MM_HINT_T0>(to.wrapping_add(how.n_dst * SIZE - 1).cast());
        }
    }
}

/// Elements of a part of a row: from its beginning or the first line in it on, up to the end or to
/// the first line after it.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn column<const SIZE: usize, P: Place>(
    src: *const u8,
    to: *mut u8,
    rows: P,
    how: &Straight,
) {
    let lined = |d: usize| {
        let at = to.wrapping_add(d * SIZE) as usize;
        (d + (at.wrapping_neg() & 63) / SIZE).min(how.n_dst)
    };
    let end = if how.end == how.n_dst { how.n_dst } else { lined(how.end) };
    let first = lined(how.from);
    let whole = (end - first) * SIZE / 64;
    // In the destination's order, for a row's end lies in the line in which the next one begins.
    // SAFETY: the caller's rows, counted from `from` on.
    unsafe {
        if how.from == 0 {
            each::<SIZE, P>(src, to, rows, (0, first));
        }
        let (at, rows_on) = rows.from(first - how.from);
        let (from, line) = (src.wrapping_offset(at), to.wrapping_add(first * SIZE));
        if SIZE == 8 {
            eights(from, line.cast(), rows_on, whole);
        } else {
            sixteens(from, line.cast(), rows_on, whole);
        }
        let done = first + whole * 64 / SIZE - how.from;
        each::<SIZE, P>(src, to.wrapping_add(how.from * SIZE), rows, (done, end - how.from));
    }
}

/// Some elements by ordinary stores.
#[inline(always)]
unsafe fn each<const SIZE: usize, P: Place>(
    src: *const u8,
    to: *mut u8,
    rows: P,
    (first, end): (usize, usize),
) {
    for i in first..end {
        // SAFETY: the caller's rows.
        unsafe { one::<SIZE>(to.wrapping_add(i * SIZE), src, (rows.at(i), 0)) };
    }
}

/// `n` lines of 16 bytes each of as many rows.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn sixteens<P: Place>(src: *const u8, dst: *mut __m128i, rows: P, n: usize) {
    let (mut src, mut to, mut rows) = (src, dst, rows);
    for _ in 0..n {
        let row = |i: usize| -> *const __m128i {
            // SAFETY: the caller's rows.
            src.wrapping_offset(unsafe { rows.at(i) }).cast()
        };
        // SAFETY: the caller's rows and lines.
        unsafe {
            let (a, b) = (_mm_loadu_si128(row(0)), _mm_loadu_si128(row(1)));
            let (c, d) = (_mm_loadu_si128(row(2)), _mm_loadu_si128(row(3)));
            _mm_stream_si128(to, a);
            _mm_stream_si128(to.wrapping_add(1), b);
            _mm_stream_si128(to.wrapping_add(2), c);
            _mm_stream_si128(to.wrapping_add(3), d);
        }
        let (at, rest) = rows.from(4);
        (src, to, rows) = (src.wrapping_offset(at), to.wrapping_add(4), rest);
    }
}

/// `n` lines of 8 bytes each of as many rows.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn eights<P: Place>(src: *const u8, dst: *mut f64, rows: P, n: usize) {
    let (mut src, mut to, mut rows) = (src, dst, rows);
    for _ in 0..n {
        let pair = |i: usize| {
            // SAFETY: the caller's rows. (Loads of single f64 would ask for an alignment.)
            unsafe {
                let low = _mm_loadl_epi64(src.wrapping_offset(rows.at(i)).cast());
                let high = _mm_loadl_epi64(src.wrapping_offset(rows.at(i + 1)).cast());
                _mm_castsi128_pd(_mm_unpacklo_epi64(low, high))
            }
        };
        let (a, b, c, d) = (pair(0), pair(2), pair(4), pair(6));
        // SAFETY: the caller's lines.
        unsafe {
            _mm_stream_pd(to, a);
            _mm_stream_pd(to.wrapping_add(2), b);
            _mm_stream_pd(to.wrapping_add(4), c);
            _mm_stream_pd(to.wrapping_add(6), d);
        }
        let (at, rest) = rows.from(8);
        (src, to, rows) = (src.wrapping_offset(at), to.wrapping_add(8), rest);
    }
}

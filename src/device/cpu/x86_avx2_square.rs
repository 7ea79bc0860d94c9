//! Squares with AVX2.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::ops::{Band, Place, Rows, To};
use super::x86_ask::{ask_beside, ask_source};
use super::x86_avx2::{block1, tile1, two};

#[target_feature(enable = "avx2")]
pub(super) unsafe fn squares(src: *const u8, dst: *mut u8, how: &Band) {
    // SAFETY: the caller's promise.
    unsafe { either!(how.rows, rows => band(src, dst, rows, how)) }
}

#[target_feature(enable = "avx2")]
unsafe fn band<P: Place>(src: *const u8, dst: *mut u8, [from, to, between]: [P; 3], how: &Band) {
    let lines = !matches!(how.to, To::Rows);
    // SAFETY: the caller vouches for the squares on both sides, and for the place between.
    unsafe {
        let none = |_: (*const u8, P)| false;
        let make = |(src, from): (*const u8, P), (dst, to): (*mut u8, P), _: usize| {
            square(how.log, src, dst, how.half_or(dst), P::three([from, to, between]), lines);
        };
        band!(how, 64 >> how.log, 64, (src, from), (dst, to), none, make, false);
    }
}

/// One square: to lines, past the caches, or to rows.
#[inline(never)] // inside the loops above, all of them were a tenth slower
#[target_feature(enable = "avx2")]
unsafe fn square(
    log: u32,
    src: *const u8,
    dst: *mut u8,
    half: *mut u8,
    rows: Rows<3>,
    lines: bool,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match log {
            0 => bytes(src, dst, half, rows, lines),
            1 => either!(rows, [from, to, _] => whole2(src, from, dst, to, lines)),
            2 => either!(rows, [from, to, _] => whole4(src, from, dst, to, lines)),
            3 => either!(rows, [from, to, _] => whole8(src, from, dst, to, lines)),
            _ => either!(rows, [from, to, _] => whole16(src, from, dst, to, lines)),
        }
    }
}

/// Bytes, of which too many make a row for the registers: half done, and then elsewhere.
#[inline(never)] // a frame of its own: stacks may be small
#[target_feature(enable = "avx2")]
unsafe fn bytes(src: *const u8, dst: *mut u8, half: *mut u8, rows: Rows<3>, lines: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Rows::Apart([from, to, between]) = rows
            && from & (FAR - 1) == 0
        {
            in_place(src, from, half, between);
            return second(half, between, dst, to, lines);
        }
        if !lines {
            return either!(rows, [from, to, _] => straight(src, from, dst, to));
        }
        for part in 0..2 {
            let (at, rows) = source(rows, 32 * part);
            tile1(src.wrapping_offset(at), half.wrapping_add(32 * part), rows, 4);
        }
        either!(rows, [_, to, between] => second(half, between, dst, to, lines))
    }
}

/// Bytes, to rows that are not to be whole lines at once.
#[target_feature(enable = "avx2")]
unsafe fn straight<P: Place>(src: *const u8, from: P, dst: *mut u8, to: P) {
    for block in 0..4 {
        let (at, to) = to.from(16 * block);
        for half in 0..2 {
            let (first, from) = from.from(32 * half);
            let src = src.wrapping_offset(first).wrapping_add(16 * block);
            let dst = dst.wrapping_offset(at).wrapping_add(32 * half);
            // SAFETY: the caller vouches for 64 rows of 64 bytes, on both sides.
            unsafe { block1(src, from, dst, to) };
        }
    }
}

/// Rows so many bytes apart, or a multiple of it, share a few places in the first-level cache.
const FAR: isize = 2048;

/// Copies 64 rows of 64 bytes, each in one go, and turns them where they are then.
#[inline(never)]
#[target_feature(enable = "avx2")]
unsafe fn in_place(src: *const u8, from: isize, to: *mut u8, between: isize) {
    // Blocks of 16 rows and columns that change places, or stay in theirs, two at a time.
    static BLOCKS: [[u8; 4]; 8] = [
        [0, 0, 1, 1],
        [2, 2, 3, 3],
        [0, 1, 1, 0],
        [0, 2, 2, 0],
        [0, 3, 3, 0],
        [1, 2, 2, 1],
        [1, 3, 3, 1],
        [2, 3, 3, 2],
    ];
    // SAFETY: the caller vouches for the rows on both sides.
    unsafe {
        for i in 0..64 {
            let (row, to) = (src.wrapping_offset(i * from), to.wrapping_offset(i * between));
            to.cast::<[__m256i; 2]>().write_unaligned(row.cast::<[__m256i; 2]>().read_unaligned());
        }
        for blocks in &BLOCKS {
            pair(to, between, blocks);
        }
    }
}

/// Turns two blocks of 16 rows of 16 bytes, `by` bytes apart, at once, to two others.
macro_rules! pair {
    ([$($i:literal)*], [$($h:literal)*]) => {
        #[inline(never)]
        #[target_feature(enable = "avx2")]
        unsafe fn pair(to: *mut u8, by: isize, &[a, b, c, d]: &[u8; 4]) {
            const C: usize = 16;
            let block = |row: u8, column: u8| {
                to.wrapping_offset(16 * row as isize * by).wrapping_add(16 * column as usize)
            };
            let [to_a, to_b, a, b] = [block(b, a), block(d, c), block(a, b), block(c, d)];
            // SAFETY: the caller vouches for all of them.
            unsafe {
                let mut rows = [$(_mm256_inserti128_si256::<1>(
                    _mm256_castsi128_si256(_mm_loadu_si128(a.wrapping_offset($i * by).cast())),
                    _mm_loadu_si128(b.wrapping_offset($i * by).cast()),
                )),*];
                shuffle!(rows, C, 4, _mm256_unpacklo_epi8, _mm256_unpackhi_epi8, [$($h)*]);
                $(
                    let (low, high) = (
                        _mm256_castsi256_si128(rows[$i]),
                        _mm256_extracti128_si256::<1>(rows[$i]),
                    );
                    _mm_storeu_si128(to_a.wrapping_offset($i * by).cast(), low);
                    _mm_storeu_si128(to_b.wrapping_offset($i * by).cast(), high);
                )*
            }
        }
    };
}
pair!([0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15], [0 1 2 3 4 5 6 7]);

/// Both halves of C destination rows of a square at a time, in registers.
macro_rules! whole {
    (
        $name:ident, $rounds:literal, $unpack_low:ident, $unpack_high:ident,
        [$($i:literal)*], [$($h:literal)*]
    ) => {
        #[target_feature(enable = "avx2")]
        unsafe fn $name<P: Place>(src: *const u8, from: P, dst: *mut u8, to: P, lines: bool) {
            const C: usize = [$($i),*].len();
            for group in 0..4 {
                let (at, to) = to.from(group * C);
                let (src, dst) = (src.wrapping_add(16 * group), dst.wrapping_offset(at));
                // SAFETY: the caller vouches for 4 C rows of 64 bytes, on both sides.
                unsafe {
                    let mut first = [$(two(src, from, $i, C)),*];
                    shuffle!(first, C, $rounds, $unpack_low, $unpack_high, [$($h)*]);
                    let mut second = [$(two(src, from, 2 * C + $i, C)),*];
                    shuffle!(second, C, $rounds, $unpack_low, $unpack_high, [$($h)*]);
                    $(put(dst.wrapping_offset(to.at($i)), first[$i], second[$i], lines);)*
                }
            }
        }
    };
}
whole!(
    whole2, 3, _mm256_unpacklo_epi16, _mm256_unpackhi_epi16,
    [0 1 2 3 4 5 6 7], [0 1 2 3]
);
whole!(
    whole4, 2, _mm256_unpacklo_epi32, _mm256_unpackhi_epi32,
    [0 1 2 3], [0 1]
);
whole!(
    whole8, 1, _mm256_unpacklo_epi64, _mm256_unpackhi_epi64,
    [0 1], [0]
);
whole!(whole16, 0, _mm256_unpacklo_epi64, _mm256_unpackhi_epi64, [0], []);

/// Writes a destination row: past the caches, if it is a line.
#[inline(always)] // which functions with a target_feature cannot ask for; its callers have it
unsafe fn put(row: *mut u8, low: __m256i, high: __m256i, line: bool) {
    let row: *mut __m256i = row.cast();
    // SAFETY: the caller vouches for the row's 64 bytes, and for what it says about lines.
    unsafe {
        if line {
            _mm256_stream_si256(row, low);
            _mm256_stream_si256(row.wrapping_add(1), high);
        } else {
            _mm256_storeu_si256(row, low);
            _mm256_storeu_si256(row.wrapping_add(1), high);
        }
    }
}

/// The source's rows from `i` on, what is added to their common address, and those between.
fn source(rows: Rows<3>, i: usize) -> (isize, Rows<2>) {
    match rows {
        Rows::Apart([from, _, between]) => {
            let (at, from) = from.from(i);
            (at, Rows::Apart([from, between]))
        }
        Rows::Listed([from, _, between]) => {
            let (at, from) = from.from(i);
            (at, Rows::Listed([from, between]))
        }
    }
}

/// Bytes, of which too many make a row for the registers: the rows are done, but elsewhere.
#[target_feature(enable = "avx2")]
unsafe fn second<P: Place>(half: *const u8, between: P, dst: *mut u8, to: P, lines: bool) {
    for i in 0..64 {
        // SAFETY: the caller vouches for 64 rows of 64 bytes, on both sides.
        unsafe {
            let from: *const __m256i = half.wrapping_offset(between.at(i)).cast();
            let (low, high) = (_mm256_loadu_si256(from), _mm256_loadu_si256(from.wrapping_add(1)));
            put(dst.wrapping_offset(to.at(i)), low, high, lines);
        }
    }
}

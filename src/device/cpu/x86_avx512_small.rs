//! Squares of elements of 1 and 2 bytes: 16 rows of 16 bytes, with instructions that bring the
//! bytes of two registers into any order (AVX-512 VBMI).
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::ops::{Band, Place, Rows, To};
use super::x86_ask::{ask_beside, ask_source};
use super::x86_avx512::joined;
use super::x86_vectors::*;

/// Of eight rows of 16 bytes, the first eight bytes of each.
static HALVES: [u8; 64] = {
    let mut order = [0; 64];
    let mut i = 0;
    while i < 64 {
        order[i] = (2 * i - i % 8) as u8;
        i += 1;
    }
    order
};

/// Of 16 rows of eight bytes, the first four bytes of each, in turn by elements of so many bytes.
const fn turns(size: usize) -> [u8; 64] {
    let mut order = [0; 64];
    let mut i = 0;
    while i < 64 {
        let element = i / size;
        order[i] = (8 * (element % 16) + element / 16 * size + i % size) as u8;
        i += 1;
    }
    order
}

/// 16 bytes, or less, of each of four rows.
macro_rules! four {
    ($from:ident, $a:literal $b:literal $c:literal $d:literal) => {{
        let (src, rows, read) = $from;
        let at = |i: usize| src.wrapping_offset(*rows.wrapping_add(i)).cast();
        let row = |i: usize| _mm_maskz_loadu_epi8(read, at(i));
        let four = _mm512_castsi128_si512(row($a));
        let four = _mm512_inserti32x4::<1>(four, row($b));
        let four = _mm512_inserti32x4::<2>(four, row($c));
        _mm512_inserti32x4::<3>(four, row($d))
    }};
}

/// The columns of a quarter of a square, 16 or 32 bytes each, if they are among the `wide`.
macro_rules! store {
    ($quarter:literal, $turned:expr, $to:ident, $wide:ident, $write:ident) => {
        if 4 * $quarter < $wide * SIZE {
            let turned = $turned;
            let at = |i: usize| $to.0.wrapping_offset(*$to.1.wrapping_add(i)).cast();
            let (first, write) = (4 * $quarter / SIZE, $write as u16);
            if SIZE == 1 {
                _mm_mask_storeu_epi8(at(first), write, _mm512_castsi512_si128(turned));
                if first + 1 < $wide {
                    let column = _mm512_extracti32x4_epi32::<1>(turned);
                    _mm_mask_storeu_epi8(at(first + 1), write, column);
                }
                if first + 2 < $wide {
                    let column = _mm512_extracti32x4_epi32::<2>(turned);
                    _mm_mask_storeu_epi8(at(first + 2), write, column);
                }
                if first + 3 < $wide {
                    let column = _mm512_extracti32x4_epi32::<3>(turned);
                    _mm_mask_storeu_epi8(at(first + 3), write, column);
                }
            } else {
                _mm256_mask_storeu_epi8(at(first), $write, _mm512_castsi512_si256(turned));
                if first + 1 < $wide {
                    let column = _mm512_extracti64x4_epi64::<1>(turned);
                    _mm256_mask_storeu_epi8(at(first + 1), $write, column);
                }
            }
        }
    };
}

/// As [`super::ops::OddSquares`], of elements of 1 or 2 bytes: of 16 rows of the source 16 bytes,
/// and then the next 16.
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
pub(super) unsafe fn squares<const SIZE: usize>(
    (src, rows): (*const u8, &[isize]),
    (dst, columns): (*mut u8, &[isize]),
    (n_dst, n_src): (usize, usize),
) {
    let (rows, columns, wide) = (rows.as_ptr(), columns.as_ptr(), 16 / SIZE);
    // SAFETY: the caller vouches for the elements and the offsets; both orders are 64 bytes.
    unsafe {
        let halves = _mm512_loadu_si512(HALVES.as_ptr().cast());
        let others = _mm512_add_epi8(halves, _mm512_set1_epi8(8));
        let first = _mm512_loadu_si512(const { &turns(SIZE) }.as_ptr().cast());
        let next = _mm512_add_epi8(first, _mm512_set1_epi8(4));
        let two = |a, how, b| _mm512_permutex2var_epi8(a, how, b);
        let (mut d, mut s) = (0, 0);
        while d < n_dst {
            let (rows, high) = (rows.wrapping_add(d), (n_dst - d).min(16));
            let write = u32::MAX >> (32 - high * SIZE);
            while s < n_src {
                let left = (n_src - s).min(wide);
                let from = (src.wrapping_add(s * SIZE), rows, u16::MAX >> (16 - left * SIZE));
                let to = (dst.wrapping_add(d * SIZE), columns.wrapping_add(s));
                let (a, b) = (four!(from, 0 1 2 3), four!(from, 4 5 6 7));
                let (mut c, mut e) = (a, b); // of up to eight rows, in place of any
                if high > 8 {
                    (c, e) = (four!(from, 8 9 10 11), four!(from, 12 13 14 15));
                }
                let (low, high) = (two(a, halves, b), two(c, halves, e));
                store!(0, two(low, first, high), to, left, write);
                store!(1, two(low, next, high), to, left, write);
                let (low, high) = (two(a, others, b), two(c, others, e));
                store!(2, two(low, first, high), to, left, write);
                store!(3, two(low, next, high), to, left, write);
                s += wide;
            }
            (d, s) = (d + 16, 0);
        }
    }
}

/// `f` of these.
macro_rules! all {
    ($f:ident: $($i:literal)*) => {
        [$($f($i)),*]
    };
}

/// Half squares of bytes, which share lines: of each 64 source rows of 32 bytes become 32 rows of
/// 64.
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw,avx512vbmi"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
pub(super) unsafe fn thin(src: *const u8, dst: *mut u8, how: &Band) {
    let (Rows::Apart([from, to, _]), To::Shared(before)) = (how.rows, how.to) else { return };
    // SAFETY: the caller vouches for the rows on both sides, and for 32 rows of 64 bytes at `half`
    // and `before`.
    unsafe {
        let above = |src: (*const u8, isize)| {
            half_square(src, how.half, (before, 64), None);
            true
        };
        let make = |src: (*const u8, isize), dst: (*mut u8, isize), _: usize| {
            half_square(src, how.half, dst, Some(before));
        };
        band!(how, 64, 32, (src, from), (dst, to), above, make, false);
    }
}

/// One of them.
#[inline]
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw,avx512vbmi"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
unsafe fn half_square(
    (src, from): (*const u8, isize),
    half: *mut u8,
    (dst, to): (*mut u8, isize),
    before: Option<*mut u8>,
) {
    const C: usize = 16;
    // SAFETY: the caller's promise.
    unsafe {
        // In each of four lanes a matrix of 16 rows and columns.
        for group in 0..2 {
            let src = src.wrapping_offset(32 * group * from);
            let two = |i: isize| {
                let low = _mm256_loadu_si256(src.wrapping_offset(i * from).cast());
                let high = _mm256_loadu_si256(src.wrapping_offset((16 + i) * from).cast());
                _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
            };
            let mut rows = all!(two: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
            shuffle!(rows, C, 4, _mm512_unpacklo_epi8, _mm512_unpackhi_epi8, [0 1 2 3 4 5 6 7]);
            for (i, row) in rows.into_iter().enumerate() {
                _mm512_storeu_si512(half.wrapping_add(64 * (C * group as usize + i)).cast(), row);
            }
        }
        for i in 0..C {
            let a = _mm512_loadu_si512(half.wrapping_add(64 * i).cast());
            let b = _mm512_loadu_si512(half.wrapping_add(64 * (C + i)).cast());
            put(dst, to, i, before, _mm512_shuffle_i64x2::<0x88>(a, b));
            put(dst, to, C + i, before, _mm512_shuffle_i64x2::<0xdd>(a, b));
        }
    }
}

/// Writes row `i`, or the line that the bytes `before` it begin, whose place it takes.
#[inline]
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw,avx512vbmi"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
unsafe fn put(dst: *mut u8, to: isize, i: usize, before: Option<*mut u8>, now: __m512i) {
    let row = dst.wrapping_offset(i as isize * to);
    let Some(before) = before else {
        // SAFETY: the caller's row.
        return unsafe { _mm512_storeu_si512(row.cast(), now) };
    };
    let (before, over) = (before.wrapping_add(64 * i), row as usize & 63);
    // SAFETY: the caller's line, and 64 bytes before.
    unsafe {
        let line = joined(_mm512_loadu_si512(before.cast()), over, now);
        _mm512_stream_si512(row.wrapping_sub(over).cast(), line);
        _mm512_storeu_si512(before.cast(), now);
    }
}

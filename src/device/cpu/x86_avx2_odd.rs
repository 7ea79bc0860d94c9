//! Squares of elements of 3 to 15 bytes with AVX2: spread to 4 or 8 bytes, turned in halves of
//! registers, and closed up; of 9 bytes and more, one by one.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::ops::Turns;

/// Elements of a side at least, of `size` bytes: those of 16 bytes, or of single ones eight.
pub(super) fn least(size: usize) -> usize {
    if size == 1 { 8 } else { 16usize.div_ceil(size.max(1)) }
}

/// See [`super::ops::OddSquares`]: of sides of at least so many elements.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn squares(
    (src, rows): (*const u8, &[isize]),
    (dst, columns): (*mut u8, &[isize]),
    n: (usize, usize),
    how: &Turns,
) {
    let (from, to) = ((src, rows.as_ptr()), (dst, columns.as_ptr()));
    // SAFETY: the caller's promise.
    unsafe {
        match how.size {
            1 => bytes(from, to, n, how),
            2 => twos(from, to, n, how),
            3 | 4 => threes(from, to, n, how),
            5..=8 => sevens(from, to, n, how),
            _ => long(from, to, n, how),
        }
    }
}

/// How far ahead in the source's rows lines are asked for.
const AHEAD: usize = 128;

/// How far beyond the `end` of a row 16 bytes from `at` on are, which are read as much earlier.
fn beyond(at: usize, end: usize) -> usize {
    (at + 16).saturating_sub(end)
}

/// Asks for what follows in the source's rows, if a line begins in the next `n` bytes of them, and
/// they have not been `read`.
#[inline(always)]
unsafe fn ask(
    src: *const u8,
    rows: *const isize,
    n_dst: usize,
    (at, n, read): (usize, usize, bool),
) {
    if !read && (at.wrapping_neg() & 63) < n {
        let row = |d: usize| {
            // SAFETY: the caller vouches for the offsets; a prefetch touches nothing.
            unsafe {
                let row = src.wrapping_offset(*rows.wrapping_add(d));
                _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(AHEAD).cast());
            }
        };
        // Of so few instructions, where they lie would count.
        for d in (0..n_dst / 4).map(|d| 4 * d) {
            row(d);
            row(d + 1);
            row(d + 2);
            row(d + 3);
        }
        for d in n_dst & !3..n_dst {
            row(d);
        }
    }
}

/// The same columns of C rows from `$low` on, and of as many from `$high` on in the other half of
/// registers, spread and turned.
macro_rules! turned {
    (
        $src:expr, $low:expr, $high:expr, $spread:expr, $C:ident, $rounds:literal,
        $unpack_low:ident, $unpack_high:ident, [$($i:literal)*], [$($h:literal)*]
    ) => {{
        let row = |at: *const isize| -> *const __m128i { $src.wrapping_offset(*at).cast() };
        let mut all = [$(_mm256_shuffle_epi8(
            _mm256_inserti128_si256::<1>(
                _mm256_castsi128_si256(_mm_loadu_si128(row($low.wrapping_add($i)))),
                _mm_loadu_si128(row($high.wrapping_add($i))),
            ),
            $spread,
        )),*];
        shuffle!(all, $C, $rounds, $unpack_low, $unpack_high, [$($h)*]);
        all
    }};
}

/// 16 bytes twice.
#[inline]
#[target_feature(enable = "avx2")]
fn both(bytes: &[u8; 16]) -> __m256i {
    // SAFETY: a load of 16 bytes.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
}

/// Writes the first half's 16 bytes, and the second's `next` bytes on.
#[inline(always)] // which functions with a target_feature cannot ask for; its callers have it
unsafe fn put(place: *mut u8, next: usize, closed: __m256i) {
    // SAFETY: the caller vouches for the bytes.
    unsafe {
        _mm_storeu_si128(place.cast(), _mm256_castsi256_si128(closed));
        _mm_storeu_si128(place.wrapping_add(next).cast(), _mm256_extracti128_si256::<1>(closed));
    }
}

/// Writes of both halves the first eight bytes, and those that are the `last`, `end` bytes on.
#[inline(always)] // likewise
unsafe fn put_exact(place: *mut u8, next: usize, closed: __m256i, (last, end): (__m256i, usize)) {
    let second = place.wrapping_add(next);
    // SAFETY: the caller vouches for the bytes.
    unsafe {
        _mm_storel_epi64(place.cast(), _mm256_castsi256_si128(closed));
        _mm_storel_epi64(place.wrapping_add(end).cast(), _mm256_castsi256_si128(last));
        let (closed, last) =
            (_mm256_extracti128_si256::<1>(closed), _mm256_extracti128_si256::<1>(last));
        _mm_storel_epi64(second.cast(), closed);
        _mm_storel_epi64(second.wrapping_add(end).cast(), last);
    }
}

/// Of C rows, and C others in the other half of registers, C columns at a time. Rows of the
/// destination are written from their beginning on: what a store writes too much, the next one
/// writes again. The last ones are exact, and may write again what is there.
macro_rules! squares {
    ($name:ident, $r:literal, $lo:ident, $hi:ident, [$($i:literal)*], $h:tt) => {
        #[target_feature(enable = "avx2")]
        unsafe fn $name(
            (src, rows): (*const u8, *const isize),
            (dst, columns): (*mut u8, *const isize),
            (n_dst, n_src): (usize, usize),
            how: &Turns,
        ) {
            const C: usize = [$($i),*].len();
            let (size, read, how) = (how.size, how.read, &how.odd);
            let (half, end) = (C * size, how.end());
            // SAFETY: the caller vouches for the elements and their offsets.
            unsafe {
                let (close, last) = (both(&how.close), both(&how.close_end));
                for s in (0..n_src).step_by(C) {
                    let s = s.min(n_src - C);
                    let over = beyond(s * size, n_src * size);
                    let spread = _mm256_add_epi8(both(&how.spread), _mm256_set1_epi8(over as i8));
                    let src = src.wrapping_add(s * size).wrapping_sub(over);
                    ask(src, rows, n_dst, (s * size, half, read));
                    let to = [$(dst.wrapping_offset(*columns.wrapping_add(s + $i))),*];
                    let (mut d, mut at) = (0, 0);
                    while at + half + 16 <= n_dst * size {
                        let (row, next) = (rows.wrapping_add(d), rows.wrapping_add(d + C));
                        let all = turned!(src, row, next, spread, C, $r, $lo, $hi, [$($i)*], $h);
                        $(
                            let closed = _mm256_shuffle_epi8(all[$i], close);
                            put(to[$i].wrapping_add(at), half, closed);
                        )*
                        (d, at) = (d + 2 * C, at + 2 * half);
                    }
                    while d < n_dst {
                        let (first, second) = (d.min(n_dst - C), (d + C).min(n_dst - C));
                        let (row, next) = (rows.wrapping_add(first), rows.wrapping_add(second));
                        let all = turned!(src, row, next, spread, C, $r, $lo, $hi, [$($i)*], $h);
                        $(
                            let closed = _mm256_shuffle_epi8(all[$i], close);
                            let ended = _mm256_shuffle_epi8(all[$i], last);
                            let place = to[$i].wrapping_add(first * size);
                            put_exact(place, (second - first) * size, closed, (ended, end));
                        )*
                        d += 2 * C;
                    }
                }
            }
        }
    };
}
squares!(
    twos, 3, _mm256_unpacklo_epi16, _mm256_unpackhi_epi16, [0 1 2 3 4 5 6 7], [0 1 2 3]
);
squares!(threes, 2, _mm256_unpacklo_epi32, _mm256_unpackhi_epi32, [0 1 2 3], [0 1]);
squares!(sevens, 1, _mm256_unpacklo_epi64, _mm256_unpackhi_epi64, [0 1], [0]);

/// Elements of 9 bytes and more, one by one, with what follows each.
#[target_feature(enable = "avx2")]
unsafe fn long(
    (src, rows): (*const u8, *const isize),
    (dst, columns): (*mut u8, *const isize),
    (n_dst, n_src): (usize, usize),
    &Turns { size, read, .. }: &Turns,
) {
    // SAFETY: the caller vouches for the elements and their offsets.
    unsafe {
        let numbers = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        for s in 0..n_src {
            let over = beyond(s * size, n_src * size);
            let order = _mm_add_epi8(numbers, _mm_set1_epi8(over as i8));
            let src = src.wrapping_add(s * size).wrapping_sub(over);
            ask(src, rows, n_dst, (s * size, size, read));
            let mut to = dst.wrapping_offset(*columns.wrapping_add(s));
            let element = |d: usize| {
                let element = src.wrapping_offset(*rows.wrapping_add(d));
                _mm_shuffle_epi8(_mm_loadu_si128(element.cast()), order)
            };
            let mut d = 0;
            // Its followers have room for what is too much.
            while d + 5 <= n_dst {
                let all = [element(d), element(d + 1), element(d + 2), element(d + 3)];
                _mm_storeu_si128(to.cast(), all[0]);
                _mm_storeu_si128(to.wrapping_add(size).cast(), all[1]);
                _mm_storeu_si128(to.wrapping_add(2 * size).cast(), all[2]);
                _mm_storeu_si128(to.wrapping_add(3 * size).cast(), all[3]);
                (d, to) = (d + 4, to.wrapping_add(4 * size));
            }
            let end = _mm_add_epi8(numbers, _mm_set1_epi8(size as i8 - 8));
            while d < n_dst {
                let bytes = element(d);
                _mm_storel_epi64(to.cast(), bytes);
                _mm_storel_epi64(to.wrapping_add(size - 8).cast(), _mm_shuffle_epi8(bytes, end));
                (d, to) = (d + 1, to.wrapping_add(size));
            }
        }
    }
}

/// Single bytes: eight rows, and eight others in the other half of registers, by eight columns.
#[target_feature(enable = "avx2")]
unsafe fn bytes(
    (src, rows): (*const u8, *const isize),
    (dst, columns): (*mut u8, *const isize),
    (n_dst, n_src): (usize, usize),
    how: &Turns,
) {
    // SAFETY: the caller vouches for the elements and their offsets.
    unsafe {
        for s in (0..n_src).step_by(8) {
            let s = s.min(n_src - 8);
            let (src, columns) = (src.wrapping_add(s), columns.wrapping_add(s));
            ask(src, rows, n_dst, (s, 8, how.read));
            for d in (0..n_dst).step_by(16) {
                let (d, e) = (d.min(n_dst - 8), (d + 8).min(n_dst - 8));
                let row = |at: usize| src.wrapping_offset(*rows.wrapping_add(at));
                let four = |i: usize| {
                    let half = |d: usize| {
                        let low = _mm_loadl_epi64(row(d + i).cast());
                        let high = _mm_loadl_epi64(row(d + i + 4).cast());
                        _mm_unpacklo_epi64(low, high)
                    };
                    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(half(d)), half(e))
                };
                let all = turned_bytes([four(0), four(1), four(2), four(3)]);
                let to = |i: usize| dst.wrapping_offset(*columns.wrapping_add(i));
                put_two([to(0), to(1)], (d, e), all[0]);
                put_two([to(2), to(3)], (d, e), all[1]);
                put_two([to(4), to(5)], (d, e), all[2]);
                put_two([to(6), to(7)], (d, e), all[3]);
            }
        }
    }
}

/// In each half, rows 0 and 4, 1 and 5, 2 and 6, 3 and 7 of eight bytes become columns 0 and 1, 2
/// and 3, ...
#[inline]
#[target_feature(enable = "avx2")]
fn turned_bytes([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (low, high) = (_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b));
    let (next, last) = (_mm256_unpacklo_epi8(c, d), _mm256_unpackhi_epi8(c, d));
    let (a, b) = (_mm256_unpacklo_epi16(low, next), _mm256_unpackhi_epi16(low, next));
    let (c, d) = (_mm256_unpacklo_epi16(high, last), _mm256_unpackhi_epi16(high, last));
    [
        _mm256_unpacklo_epi32(a, c),
        _mm256_unpackhi_epi32(a, c),
        _mm256_unpacklo_epi32(b, d),
        _mm256_unpackhi_epi32(b, d),
    ]
}

/// Eight bytes of two rows at two places.
#[inline(always)] // which functions with a target_feature cannot ask for; its callers have it
unsafe fn put_two([a, b]: [*mut u8; 2], (d, e): (usize, usize), columns: __m256i) {
    // SAFETY: the caller vouches for the bytes.
    unsafe {
        let (low, high) = (_mm256_castsi256_si128(columns), _mm256_extracti128_si256::<1>(columns));
        _mm_storel_epi64(a.wrapping_add(d).cast(), low);
        _mm_storel_epi64(a.wrapping_add(e).cast(), high);
        // (Stores of single f64 would ask for an alignment.)
        _mm_storel_epi64(b.wrapping_add(d).cast(), _mm_unpackhi_epi64(low, low));
        _mm_storel_epi64(b.wrapping_add(e).cast(), _mm_unpackhi_epi64(high, high));
    }
}

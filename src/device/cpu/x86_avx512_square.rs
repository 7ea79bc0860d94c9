//! Squares with AVX-512.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::ops::{Band, Place, Rows, To};
use super::tuning::tuning;
use super::x86_ask::{ask_beside, ask_one, ask_source};
use super::x86_avx2_square;
use super::x86_avx512_odd::NUMBERS;
use super::x86_avx512_shared::{shared, suits};
use super::x86_vectors::*;

/// Turns C × C matrices of elements: one in each of the four lanes of C rows of 64 bytes, four
/// times over. Row `r` of group `g` goes to row `g` C + `r`.
macro_rules! lanes {
    (
        $name:ident, $rounds:literal, $unpack_low:ident, $unpack_high:ident,
        [$($i:literal)*], [$($h:literal)*]
    ) => {
        #[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw"))]
        #[cfg_attr(emulated, target_feature(enable = "avx2"))]
        unsafe fn $name<P: Place>(src: *const u8, from: P, half: *mut u8, to: P) {
            const C: usize = [$($i),*].len();
            for group in 0..4 {
                let ((at, from), (to_at, to)) = (from.from(group * C), to.from(group * C));
                let (src, half) = (src.wrapping_offset(at), half.wrapping_offset(to_at));
                // SAFETY: the caller vouches for 4 C rows of 64 bytes, on both sides.
                unsafe {
                    let row = |i: usize| src.wrapping_offset(from.at(i)).cast();
                    let mut rows = [$(_mm512_loadu_si512(row($i))),*];
                    shuffle!(rows, C, $rounds, $unpack_low, $unpack_high, [$($h)*]);
                    let row = |i: usize| half.wrapping_offset(to.at(i)).cast();
                    $(_mm512_storeu_si512(row($i), rows[$i]);)*
                }
            }
        }
    };
}
lanes!(
    lanes1, 4, _mm512_unpacklo_epi8, _mm512_unpackhi_epi8,
    [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15], [0 1 2 3 4 5 6 7]
);
lanes!(
    lanes2, 3, _mm512_unpacklo_epi16, _mm512_unpackhi_epi16,
    [0 1 2 3 4 5 6 7], [0 1 2 3]
);

/// Turns a 4 × 4 matrix of 16-byte quarters.
#[inline]
#[cfg_attr(not(emulated), target_feature(enable = "avx512f"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
pub(super) fn quarters([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (low, high) = (_mm512_shuffle_i64x2::<0x44>(a, b), _mm512_shuffle_i64x2::<0x44>(c, d));
    let (first, second) =
        (_mm512_shuffle_i64x2::<0x88>(low, high), _mm512_shuffle_i64x2::<0xdd>(low, high));
    let (low, high) = (_mm512_shuffle_i64x2::<0xee>(a, b), _mm512_shuffle_i64x2::<0xee>(c, d));
    let (third, fourth) =
        (_mm512_shuffle_i64x2::<0x88>(low, high), _mm512_shuffle_i64x2::<0xdd>(low, high));
    [first, second, third, fourth]
}

#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
pub(super) unsafe fn squares(src: *const u8, dst: *mut u8, how: &Band) {
    // SAFETY: the caller's promise.
    unsafe {
        match (how.to, how.rows) {
            (To::Shared(_), _) if suits(how) => shared(src, dst, how),
            (To::Shared(before), Rows::Apart(rows)) if how.log > 1 => match how.log {
                2 => bytes4(src, dst, rows, how, Shared(before)),
                _ => bytes8(src, dst, rows, how, Shared(before)),
            },
            (To::Rows, _) if narrow(how) => x86_avx2_square::squares(src, dst, how),
            (_, rows) => either!(rows, rows => band(src, dst, rows, how)),
        }
    }
}

/// Whether shorter registers turn elements of one and two bytes faster, as they do on some makes:
/// not where rows, which they write in parts, share places in the first-level cache.
unsafe fn narrow(how: &Band) -> bool {
    let far = match how.log {
        0 => 512,
        1 => 2048,
        _ => return false,
    };
    // SAFETY: a square has several rows.
    let apart = unsafe {
        either!(how.rows, [from, to, _] => [from.at(1) - from.at(0), to.at(1) - to.at(0)])
    };
    tuning().halves && apart.iter().all(|by| by & (far - 1) != 0)
}

#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
unsafe fn band<P: Place>(src: *const u8, dst: *mut u8, rows: [P; 3], how: &Band) {
    // SAFETY: the caller's promise.
    unsafe {
        match how.to {
            To::Lines if how.log == 0 => bytes1(src, dst, rows, how, Lines),
            To::Lines => more(src, dst, rows, how, Lines),
            // Of bytes there is no such square here.
            To::Shared(before) if how.log == 1 => bytes2(src, dst, rows, how, Shared(before)),
            _ if how.log == 0 => bytes1(src, dst, rows, how, Anywhere),
            _ => more(src, dst, rows, how, Anywhere),
        }
    }
}

/// Of elements of more than a byte.
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
unsafe fn more<P: Place, W: Put>(src: *const u8, dst: *mut u8, rows: [P; 3], how: &Band, put: W) {
    // SAFETY: the caller's promise.
    unsafe {
        match how.log {
            1 => bytes2(src, dst, rows, how, put),
            2 => bytes4(src, dst, rows, how, put),
            3 => bytes8(src, dst, rows, how, put),
            _ => bytes16(src, dst, rows, how, put),
        }
    }
}

/// How the rows of squares are written.
trait Put: Copy {
    /// Whether lines of the source are asked for between them: past the caches. In the caches, and
    /// mostly where lines are shared, that is slower than asking before all of them.
    const ASKS: bool = false;

    /// Writes row `i` of a square, of which a quarter has `C` rows.
    ///
    /// # Safety
    /// The caller vouches for the 64 bytes at `row`, and for what [`To`] says about them.
    unsafe fn put<const C: usize>(self, row: *mut u8, i: usize, now: __m512i);

    /// Where the rows of the square above are kept, if lines are shared.
    #[inline(always)]
    fn above(self) -> Option<*mut u8> {
        None
    }
}

/// See [`To::Rows`].
#[derive(Clone, Copy)]
struct Anywhere;

impl Put for Anywhere {
    #[inline(always)] // which functions with a target_feature cannot ask for; its callers have it
    unsafe fn put<const C: usize>(self, row: *mut u8, _: usize, now: __m512i) {
        // SAFETY: the caller's word.
        unsafe { _mm512_storeu_si512(row.cast(), now) };
    }
}

/// See [`To::Lines`].
#[derive(Clone, Copy)]
struct Lines;

impl Put for Lines {
    const ASKS: bool = true;

    #[inline(always)] // likewise
    unsafe fn put<const C: usize>(self, row: *mut u8, _: usize, now: __m512i) {
        // SAFETY: the caller's word.
        unsafe { _mm512_stream_si512(row.cast(), now) };
    }
}

/// See [`To::Shared`].
#[derive(Clone, Copy)]
struct Shared(*mut u8);

impl Put for Shared {
    #[inline(always)]
    fn above(self) -> Option<*mut u8> {
        Some(self.0)
    }

    /// Writes the line that the bytes before begin and those of `now` fill, whose place they take.
    #[inline(always)] // likewise
    unsafe fn put<const C: usize>(self, row: *mut u8, i: usize, now: __m512i) {
        let (before, over) = (self.0.wrapping_add(64 * i), row as usize & 63);
        // SAFETY: the caller vouches for the line and for the 64 bytes before.
        unsafe {
            let (from, old) = (64 - over as i32, _mm512_loadu_si512(before.cast()));
            let line = match C {
                8 => {
                    let first = _mm512_cvtepi8_epi16(_mm256_loadu_si256(NUMBERS.as_ptr().cast()));
                    let from = _mm512_set1_epi16((from / 2) as i16);
                    _mm512_permutex2var_epi16(old, _mm512_add_epi16(first, from), now)
                }
                _ => {
                    let first = _mm512_cvtepi8_epi32(_mm_loadu_si128(NUMBERS.as_ptr().cast()));
                    let from = _mm512_set1_epi32(from / 4);
                    _mm512_permutex2var_epi32(old, _mm512_add_epi32(first, from), now)
                }
            };
            _mm512_stream_si512(row.wrapping_sub(over).cast(), line);
            _mm512_storeu_si512(before.cast(), now);
        }
    }
}

/// The squares of a band, each made by `$make`, of elements of 64 / `$line` bytes.
macro_rules! squares {
    ($name:ident, $make:ident, $line:literal) => {
        #[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw"))]
        #[cfg_attr(emulated, target_feature(enable = "avx2"))]
        unsafe fn $name<P: Place, W: Put>(
            src: *const u8,
            dst: *mut u8,
            [from, to, between]: [P; 3],
            how: &Band,
            put: W,
        ) {
            // SAFETY: the caller vouches for the squares on both sides, and for the places between.
            unsafe {
                let above = |(src, from): (*const u8, P)| {
                    if let Some(to) = put.above() {
                        $make((src, from, 0), (how.half, between), (to, between), Anywhere);
                    }
                    put.above().is_some()
                };
                let make = |(src, from): (*const u8, P), dst: (*mut u8, P), ahead: usize| {
                    $make((src, from, ahead), (how.half_or(dst.0), between), dst, put)
                };
                band!(how, $line, 64, (src, from), (dst, to), above, make, W::ASKS);
            }
        }
    };
}
squares!(bytes1, halves1, 64);
squares!(bytes2, halves2, 32);
squares!(bytes4, whole4, 16);
squares!(bytes8, whole8, 8);
squares!(bytes16, whole16, 4);

/// Squares that registers have no room for: the half that is done is put between.
macro_rules! halves {
    ($name:ident, $lanes:ident, $c:literal) => {
        #[inline]
        #[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw"))]
        #[cfg_attr(emulated, target_feature(enable = "avx2"))]
        unsafe fn $name<P: Place, W: Put>(
            src: (*const u8, P, usize),
            (half, between): (*mut u8, P),
            dst: (*mut u8, P),
            put: W,
        ) {
            // SAFETY: the caller vouches for all of them.
            unsafe {
                $lanes(src.0, src.1, half, between);
                second::<P, W, $c>((half, between), dst, put, src);
            }
        }
    };
}
halves!(halves1, lanes1, 16);
halves!(halves2, lanes2, 8);

/// Both halves of a square in registers: elements of which few make a quarter of a row.
macro_rules! whole {
    (
        $name:ident, $rounds:literal, $unpack_low:ident, $unpack_high:ident,
        [$($i:literal)*], [$($h:literal)*]
    ) => {
        #[inline(never)] // as fast or faster, and half the size
        #[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw"))]
        #[cfg_attr(emulated, target_feature(enable = "avx2"))]
        unsafe fn $name<P: Place, W: Put>(
            (src, from, ahead): (*const u8, P, usize),
            _: (*mut u8, P),
            dst: (*mut u8, P),
            put: W,
        ) {
            const C: usize = [$($i),*].len();
            // SAFETY: the caller vouches for 4 C rows of 64 bytes, on both sides.
            unsafe {
                let row = |i: usize| src.wrapping_offset(from.at(i)).cast();
                let mut first = [$(_mm512_loadu_si512(row($i))),*];
                let mut second = [$(_mm512_loadu_si512(row(C + $i))),*];
                let mut third = [$(_mm512_loadu_si512(row(2 * C + $i))),*];
                let mut fourth = [$(_mm512_loadu_si512(row(3 * C + $i))),*];
                shuffle!(first, C, $rounds, $unpack_low, $unpack_high, [$($h)*]);
                shuffle!(second, C, $rounds, $unpack_low, $unpack_high, [$($h)*]);
                shuffle!(third, C, $rounds, $unpack_low, $unpack_high, [$($h)*]);
                shuffle!(fourth, C, $rounds, $unpack_low, $unpack_high, [$($h)*]);
                $(
                    let rows = quarters([first[$i], second[$i], third[$i], fourth[$i]]);
                    four_rows::<P, W, C>(dst, $i, rows, put, (src, from, ahead));
                )*
            }
        }
    };
}
whole!(
    whole4, 2, _mm512_unpacklo_epi32, _mm512_unpackhi_epi32,
    [0 1 2 3], [0 1]
);
whole!(
    whole8, 1, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64,
    [0 1], [0]
);
whole!(whole16, 0, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64, [0], []);

/// Writes destination rows `i`, `i` + C, `i` + 2 C, `i` + 3 C, and asks for what is `ahead` of as
/// many of the source's.
#[inline(always)] // see `Anywhere`
unsafe fn four_rows<P: Place, W: Put, const C: usize>(
    (dst, to): (*mut u8, P),
    i: usize,
    [a, b, c, d]: [__m512i; 4],
    put: W,
    (src, from, ahead): (*const u8, P, usize),
) {
    // SAFETY: the caller vouches for the rows.
    unsafe {
        if W::ASKS {
            ask_one(src.wrapping_offset(from.at(4 * i)), ahead);
            ask_one(src.wrapping_offset(from.at(4 * i + 1)), ahead);
            ask_one(src.wrapping_offset(from.at(4 * i + 2)), ahead);
            ask_one(src.wrapping_offset(from.at(4 * i + 3)), ahead);
        }
        let row = |l: usize| dst.wrapping_offset(to.at(i + l * C));
        put.put::<C>(row(0), i, a);
        put.put::<C>(row(1), i + C, b);
        put.put::<C>(row(2), i + 2 * C, c);
        put.put::<C>(row(3), i + 3 * C, d);
    }
}

/// In the second half, the 16-byte quarters of rows `i`, `i` + C, `i` + 2 C, `i` + 3 C are a 4 × 4
/// matrix, and its rows are destination rows of the same numbers.
#[inline]
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
unsafe fn second<P: Place, W: Put, const C: usize>(
    (half, between): (*mut u8, P),
    dst: (*mut u8, P),
    put: W,
    src: (*const u8, P, usize),
) {
    for i in 0..C {
        // SAFETY: the caller vouches for both sides.
        unsafe {
            let from = |l: usize| half.wrapping_offset(between.at(i + l * C)).cast();
            let rows = quarters([
                _mm512_loadu_si512(from(0)),
                _mm512_loadu_si512(from(1)),
                _mm512_loadu_si512(from(2)),
                _mm512_loadu_si512(from(3)),
            ]);
            four_rows::<P, W, C>(dst, i, rows, put, src);
        }
    }
}

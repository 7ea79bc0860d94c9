//! AVX-512 (F, BW, VL) kernels; AVX2's where those are as fast.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::ops::{Ops, Place, Rows, Tile, To};
use super::x86_avx2::{self, one, tile, two};
use super::x86_avx512_odd::NUMBERS;

pub(super) static OPS: Ops = TABLE;

pub(super) const TABLE: Ops = Ops {
    square: Some(square),
    shares: true,
    pairs: Some(pairs),
    tiles: bytes(tile1, x86_avx2::TABLE.tiles),
    narrow: bytes(narrow1, x86_avx2::TABLE.narrow),
    stream,
    join,
    pieces,
    ..x86_avx2::TABLE
};

/// AVX2's tiles, but of bytes another.
const fn bytes(tile: Tile, [_, two, four, eight, sixteen]: [Tile; 5]) -> [Tile; 5] {
    [tile, two, four, eight, sixteen]
}

// Their rows need more registers than AVX2 has.
tile!(
    "avx512f,avx512bw,avx512vl", tile1, two, _mm256_storeu_si256,
    4, _mm256_unpacklo_epi8, _mm256_unpackhi_epi8,
    [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15], [0 1 2 3 4 5 6 7]
);
tile!(
    "avx512f,avx512bw,avx512vl", narrow1, one, _mm_storeu_si128,
    4, _mm_unpacklo_epi8, _mm_unpackhi_epi8,
    [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15], [0 1 2 3 4 5 6 7]
);

/// Turns C × C matrices of elements: one in each of the four lanes of C rows of 64 bytes, four
/// times over. Row `r` of group `g` goes to row `g` C + `r`.
macro_rules! lanes {
    (
        $name:ident, $rounds:literal, $unpack_low:ident, $unpack_high:ident,
        [$($i:literal)*], [$($h:literal)*]
    ) => {
        #[target_feature(enable = "avx512f,avx512bw")]
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
#[target_feature(enable = "avx512f")]
fn quarters([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (low, high) = (_mm512_shuffle_i64x2::<0x44>(a, b), _mm512_shuffle_i64x2::<0x44>(c, d));
    let (first, second) =
        (_mm512_shuffle_i64x2::<0x88>(low, high), _mm512_shuffle_i64x2::<0xdd>(low, high));
    let (low, high) = (_mm512_shuffle_i64x2::<0xee>(a, b), _mm512_shuffle_i64x2::<0xee>(c, d));
    let (third, fourth) =
        (_mm512_shuffle_i64x2::<0x88>(low, high), _mm512_shuffle_i64x2::<0xdd>(low, high));
    [first, second, third, fourth]
}

#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn square(log: u32, src: *const u8, dst: *mut u8, half: *mut u8, rows: Rows<3>, how: To) {
    // SAFETY: the caller's promise.
    unsafe { either!(rows, rows => turn(log, src, dst, half, rows, how)) }
}

/// Both halves of a square in registers: elements of which few make a quarter of a row.
macro_rules! whole {
    (
        $name:ident, $rounds:literal, $unpack_low:ident, $unpack_high:ident,
        [$($i:literal)*], [$($h:literal)*]
    ) => {
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw")]
        unsafe fn $name<P: Place>(src: *const u8, from: P, dst: *mut u8, to: P, how: To) {
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
                    put::<P, C>(dst, to, $i, rows, how);
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

/// Writes destination rows `i`, `i` + C, `i` + 2 C, `i` + 3 C.
#[inline(always)] // which functions with a target_feature cannot ask for; its callers have it
unsafe fn put<P: Place, const C: usize>(
    dst: *mut u8,
    to: P,
    i: usize,
    [a, b, c, d]: [__m512i; 4],
    how: To,
) {
    // SAFETY: the caller vouches for the rows, and for what it says about their lines.
    unsafe {
        let row = |l: usize| dst.wrapping_offset(to.at(i + l * C));
        match how {
            To::Lines => {
                _mm512_stream_si512(row(0).cast(), a);
                _mm512_stream_si512(row(1).cast(), b);
                _mm512_stream_si512(row(2).cast(), c);
                _mm512_stream_si512(row(3).cast(), d);
            }
            To::Shared(before) if P::STRIDE && C < 16 => {
                let before = |l: usize| before.wrapping_add(64 * (i + l * C));
                share::<C>(row(0), before(0), a);
                share::<C>(row(1), before(1), b);
                share::<C>(row(2), before(2), c);
                share::<C>(row(3), before(3), d);
            }
            _ => {
                _mm512_storeu_si512(row(0).cast(), a);
                _mm512_storeu_si512(row(1).cast(), b);
                _mm512_storeu_si512(row(2).cast(), c);
                _mm512_storeu_si512(row(3).cast(), d);
            }
        }
    }
}

/// Writes the line that the bytes of `before` begin and those of `now` fill, at the latter's `row`;
/// and they take the place of the former.
#[inline(always)] // see `put`
unsafe fn share<const C: usize>(row: *mut u8, before: *mut u8, now: __m512i) {
    let over = row as usize & 63;
    // SAFETY: the caller vouches for the line and for the 64 bytes before.
    unsafe {
        let (from, old) = (64 - over as i32, _mm512_loadu_si512(before.cast()));
        let line = match C {
            8 => {
                let first = _mm512_cvtepi8_epi16(_mm256_loadu_si256(NUMBERS.as_ptr().cast()));
                let from = _mm512_set1_epi16((from / 2) as i16);
                _mm512_permutex2var_epi16(old, _mm512_add_epi16(first, from), now)
            }
            4 => {
                let first = _mm512_cvtepi8_epi32(_mm_loadu_si128(NUMBERS.as_ptr().cast()));
                let from = _mm512_set1_epi32(from / 4);
                _mm512_permutex2var_epi32(old, _mm512_add_epi32(first, from), now)
            }
            _ => {
                let first = _mm512_cvtepi8_epi64(_mm_loadu_si128(NUMBERS.as_ptr().cast()));
                let from = _mm512_set1_epi64(i64::from(from / 8));
                _mm512_permutex2var_epi64(old, _mm512_add_epi64(first, from), now)
            }
        };
        _mm512_stream_si512(row.wrapping_sub(over).cast(), line);
        _mm512_storeu_si512(before.cast(), now);
    }
}

/// In the second half, the 16-byte quarters of rows `i`, `i` + C, `i` + 2 C, `i` + 3 C are a 4 × 4
/// matrix, and its rows are destination rows of the same numbers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn second<P: Place, const C: usize>(
    half: *const u8,
    between: P,
    dst: *mut u8,
    to: P,
    how: To,
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
            put::<P, C>(dst, to, i, rows, how);
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn turn<P: Place>(
    log: u32,
    src: *const u8,
    dst: *mut u8,
    half: *mut u8,
    [from, to, between]: [P; 3],
    how: To,
) {
    // SAFETY: the caller vouches for the square on both sides and for the place between.
    unsafe {
        match log {
            0 => {
                lanes1(src, from, half, between);
                second::<P, 16>(half, between, dst, to, how);
            }
            1 => {
                lanes2(src, from, half, between);
                second::<P, 8>(half, between, dst, to, how);
            }
            2 => whole4(src, from, dst, to, how),
            3 => whole8(src, from, dst, to, how),
            _ => whole16(src, from, dst, to, how),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn pairs(to: *mut u8, src: *const u8, apart: isize, high: bool) {
    // Of three registers the first where the mask has ones, else the second.
    const CHOOSE: i32 = 0xca;
    let mask = _mm512_set1_epi8(if high { -16 } else { 15 });
    for i in 0..64 {
        // SAFETY: the caller vouches for 128 rows, and 64 times 64 bytes.
        unsafe {
            let first = src.wrapping_offset(2 * i as isize * apart);
            let a = _mm512_loadu_si512(first.cast());
            let b = _mm512_loadu_si512(first.wrapping_offset(apart).cast());
            let pair = if high {
                _mm512_ternarylogic_epi32::<CHOOSE>(mask, b, _mm512_srli_epi16::<4>(a))
            } else {
                _mm512_ternarylogic_epi32::<CHOOSE>(mask, a, _mm512_slli_epi16::<4>(b))
            };
            _mm512_storeu_si512(to.wrapping_add(64 * i).cast(), pair);
        }
    }
}

/// By four lines, as AVX2's.
#[target_feature(enable = "avx512f")]
unsafe fn stream(dst: *mut u8, src: *const u8, lines: usize) {
    let (mut from, mut to): (*const __m512i, *mut __m512i) = (src.cast(), dst.cast());
    let (end, ahead) = (from.wrapping_add(lines), x86_avx2::ahead(lines));
    for left in (1..=lines / 4).rev() {
        // SAFETY: the caller vouches for `lines` lines; a prefetch touches nothing.
        unsafe {
            if 4 * left > ahead {
                let far = from.wrapping_add(ahead);
                _mm_prefetch::<_MM_HINT_T0>(far.cast());
                _mm_prefetch::<_MM_HINT_T0>(far.wrapping_add(1).cast());
                _mm_prefetch::<_MM_HINT_T0>(far.wrapping_add(2).cast());
                _mm_prefetch::<_MM_HINT_T0>(far.wrapping_add(3).cast());
            }
            four(to, _mm512_loadu_si512(from), from);
        }
        (from, to) = (from.wrapping_add(4), to.wrapping_add(4));
    }
    while from != end {
        // SAFETY: likewise.
        unsafe { _mm512_stream_si512(to, _mm512_loadu_si512(from)) };
        (from, to) = (from.wrapping_add(1), to.wrapping_add(1));
    }
}

/// Writes four lines: `first`, which takes the place of the one at `from`, and the three after it.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn four(to: *mut __m512i, first: __m512i, from: *const __m512i) {
    // SAFETY: the caller vouches for the lines.
    unsafe {
        let second = _mm512_loadu_si512(from.wrapping_add(1));
        let third = _mm512_loadu_si512(from.wrapping_add(2));
        let fourth = _mm512_loadu_si512(from.wrapping_add(3));
        _mm512_stream_si512(to, first);
        _mm512_stream_si512(to.wrapping_add(1), second);
        _mm512_stream_si512(to.wrapping_add(2), third);
        _mm512_stream_si512(to.wrapping_add(3), fourth);
    }
}

/// In a register: put together in memory, the line would wait for all stores before it.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn join(line: *mut u8, tail: *const u8, head: *const u8, n: usize) {
    // SAFETY: only the caller's bytes are read, and its line is written.
    unsafe { _mm512_stream_si512(line.cast(), masked(tail, n, head)) };
}

/// What [`Pieces`] says. One function for all: what calls put on the stack takes places among the
/// stores that wait. `joined` makes the line of two pieces.
///
/// [`Pieces`]: super::ops::Pieces
macro_rules! pieces {
    ($name:ident, $features:literal, $joined:ident) => {
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $name(
            line: *mut u8,
            (tail, n): (*const u8, usize),
            src: *const u8,
            size: usize,
            count: usize,
            stride: isize,
        ) {
            let mut to: *mut __m512i = line.cast();
            let (mut tail, mut n, mut src) = (tail, n, src);
            for left in (0..count).rev() {
                let mut from: *const __m512i = src.wrapping_sub(n).cast();
                let lines = (n + size) / 64;
                // SAFETY: only the caller's bytes are read, and its lines are written.
                unsafe {
                    x86_avx2::ask_piece(src, stride, left, lines);
                    let first = $joined(tail, n, src);
                    let some = (lines.wrapping_sub(1) & 3) + 1;
                    if some == 4 {
                        four(to, first, from);
                    } else {
                        _mm512_stream_si512(to, first);
                        for i in 1..some {
                            let line = _mm512_loadu_si512(from.wrapping_add(i));
                            _mm512_stream_si512(to.wrapping_add(i), line);
                        }
                    }
                    (to, from) = (to.wrapping_add(some), from.wrapping_add(some));
                    for _ in 0..(lines - some) / 4 {
                        four(to, _mm512_loadu_si512(from), from);
                        (to, from) = (to.wrapping_add(4), from.wrapping_add(4));
                    }
                }
                tail = from.cast();
                (n, src) = ((n + size) & 63, src.wrapping_offset(stride));
            }
        }
    };
}
pieces!(pieces, "avx512f,avx512bw", masked);
pieces!(pieces_vbmi, "avx512f,avx512bw,avx512vbmi", permuted);

/// The `n` bytes at `tail`, and the first of those at `src`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn masked(tail: *const u8, n: usize, src: *const u8) -> __m512i {
    let before = !(u64::MAX << (n & 63));
    // SAFETY: only the caller's bytes are read.
    unsafe {
        let old = _mm512_maskz_loadu_epi8(before, tail.cast());
        _mm512_mask_loadu_epi8(old, !before, src.wrapping_sub(n).cast())
    }
}

/// Likewise, without the lines next to the pieces: what is masked is waited for, too.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn permuted(tail: *const u8, n: usize, src: *const u8) -> __m512i {
    // SAFETY: the caller's pieces, the one that ends with the tail and the next, have 64 bytes.
    unsafe {
        let old = _mm512_loadu_si512(tail.wrapping_add(n).wrapping_sub(64).cast());
        joined(old, n, _mm512_loadu_si512(src.cast()))
    }
}

/// The last `n` bytes of `old`, and the first of `new`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(super) fn joined(old: __m512i, n: usize, new: __m512i) -> __m512i {
    // SAFETY: there are 64 numbers.
    let numbers = unsafe { _mm512_loadu_si512(NUMBERS.as_ptr().cast()) };
    let order = _mm512_add_epi8(numbers, _mm512_set1_epi8(64 - n as i8));
    _mm512_permutex2var_epi8(old, order, new)
}

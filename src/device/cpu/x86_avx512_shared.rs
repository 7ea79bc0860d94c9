//! Squares whose rows share lines of the destination, with AVX-512: what is left over of each row
//! stays in a register, from a square to the one below.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::ops::{Band, Place, Rows};
use super::x86_ask::ask_one;
use super::x86_avx512_square::quarters;

/// Whether a band goes so: elements of 4 and 8 bytes only if the rows of a square do not compete
/// for few places in the first-level cache, where 64 bytes of each are better read once.
pub(super) fn suits(how: &Band) -> bool {
    let element = 1 << how.log;
    let crowded = match how.rows {
        Rows::Apart([from, ..]) => from.wrapping_add(element) & 4095 <= 2 * element,
        Rows::Listed(_) => false,
    };
    how.log > 3 || (how.log > 1 && !crowded)
}

/// As [`super::ops::Squares`], if lines are shared and that [`suits`].
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) unsafe fn shared(src: *const u8, dst: *mut u8, how: &Band) {
    // SAFETY: the caller's promise.
    unsafe {
        either!(how.rows, [from, to, _] => match how.log {
            2 => columns((src, from), (dst, to), how, column4),
            3 => columns((src, from), (dst, to), how, column8),
            _ => columns((src, from), (dst, to), how, column16),
        })
    }
}

/// Makes so many squares one below the other, asking for what is so far ahead of each source row.
type Column<P> = unsafe fn((*const u8, P), (*mut u8, P), usize, usize);

/// The columns of a band. Of each source row one line is asked for at a time, whatever the number.
#[inline(always)]
unsafe fn columns<P: Place>(
    (mut src, from): (*const u8, P),
    (mut dst, mut to): (*mut u8, P),
    how: &Band,
    make: Column<P>,
) {
    for column in 0..how.columns {
        let asks = how.ask.lines > 0 && column < how.ask.columns;
        // SAFETY: the caller vouches for the squares, and for the one above them.
        unsafe { make((src, from), (dst, to), how.lines, if asks { how.ask.ahead } else { 0 }) };
        let (by, next) = to.from(64 >> how.log);
        (src, dst, to) = (src.wrapping_add(64), dst.wrapping_offset(by), next);
    }
}

/// Writes the line that the last words of the row before begin and those of `now` fill.
#[inline(always)] // which functions with a target_feature cannot ask for; its callers have it
unsafe fn put(row: *mut u8, before: __m512i, now: __m512i) {
    let over = row as usize & 63;
    // SAFETY: 16 of the 32 words, and the caller vouches for the line.
    unsafe {
        let from = WORDS.0.as_ptr().cast::<u8>().wrapping_add(64 - over);
        let line = _mm512_permutex2var_epi32(before, _mm512_loadu_si512(from.cast()), now);
        _mm512_stream_si512(row.wrapping_sub(over).cast(), line);
    }
}

/// The words of two registers.
#[repr(align(128))] // within a page
struct Words([u32; 32]);

static WORDS: Words = Words({
    let mut words = [0; 32];
    let mut i = 0;
    while i < 32 {
        words[i] = i as u32;
        i += 1;
    }
    words
});

/// As [`Column`], of squares of `$rows` rows, made part by part: `$turn` makes rows of 64 bytes of
/// what lies `$part` bytes on in the source's. The `$i`-th of them is the square's row `$row`.
macro_rules! column {
    (
        $name:ident, $turn:ident, $rows:literal,
        $($before:ident: $part:literal [$($i:literal: $row:literal),*]);*
    ) => {
        #[inline(never)]
        #[target_feature(enable = "avx512f,avx512bw")]
        unsafe fn $name<P: Place>(
            (mut src, mut from): (*const u8, P),
            (dst, to): (*mut u8, P),
            lines: usize,
            ahead: usize,
        ) {
            // SAFETY: the caller vouches for the rows on both sides.
            unsafe {
                $(let mut $before = $turn!(src.wrapping_add($part), from);)*
                for line in 0..lines {
                    let (by, next) = from.from($rows);
                    (src, from) = (src.wrapping_offset(by), next);
                    $($(ask_one(src.wrapping_offset(from.at($row)), ahead);)*)*
                    $(
                        let now = $turn!(src.wrapping_add($part), from);
                        $(
                            let row = dst.wrapping_offset(to.at($row)).wrapping_add(64 * line);
                            put(row, $before[$i], now[$i]);
                        )*
                        $before = now;
                    )*
                }
            }
        }
    };
}

/// 32 bytes of 16 rows of elements of 4 bytes.
macro_rules! turn4 {
    ($src:expr, $from:ident) => {{
        const C: usize = 4;
        let (src, from) = ($src, $from);
        let half = |i: usize| _mm256_loadu_si256(src.wrapping_offset(from.at(i)).cast());
        // Rows `i` and `i` + 4.
        let two = |i| _mm512_inserti64x4::<1>(_mm512_castsi256_si512(half(i)), half(i + C));
        let mut low = [two(0), two(1), two(2), two(3)];
        let mut high = [two(8), two(9), two(10), two(11)];
        shuffle!(low, C, 2, _mm512_unpacklo_epi32, _mm512_unpackhi_epi32, [0 1]);
        shuffle!(high, C, 2, _mm512_unpacklo_epi32, _mm512_unpackhi_epi32, [0 1]);
        [
            _mm512_shuffle_i64x2::<0x88>(low[0], high[0]),
            _mm512_shuffle_i64x2::<0x88>(low[1], high[1]),
            _mm512_shuffle_i64x2::<0x88>(low[2], high[2]),
            _mm512_shuffle_i64x2::<0x88>(low[3], high[3]),
            _mm512_shuffle_i64x2::<0xdd>(low[0], high[0]),
            _mm512_shuffle_i64x2::<0xdd>(low[1], high[1]),
            _mm512_shuffle_i64x2::<0xdd>(low[2], high[2]),
            _mm512_shuffle_i64x2::<0xdd>(low[3], high[3]),
        ]
    }};
}
column!(
    column4, turn4, 16,
    left: 0 [0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7];
    right: 32 [0: 8, 1: 9, 2: 10, 3: 11, 4: 12, 5: 13, 6: 14, 7: 15]
);

/// 64 bytes of eight rows of elements of 8 bytes: the even ones, and the odd ones.
macro_rules! turn8 {
    ($src:expr, $from:ident) => {{
        let (src, from) = ($src, $from);
        let row = |i: usize| _mm512_loadu_si512(src.wrapping_offset(from.at(i)).cast());
        let (a, b, c, d) = ((row(0), row(1)), (row(2), row(3)), (row(4), row(5)), (row(6), row(7)));
        let [a0, a2, a4, a6] = quarters([
            _mm512_unpacklo_epi64(a.0, a.1),
            _mm512_unpacklo_epi64(b.0, b.1),
            _mm512_unpacklo_epi64(c.0, c.1),
            _mm512_unpacklo_epi64(d.0, d.1),
        ]);
        let [a1, a3, a5, a7] = quarters([
            _mm512_unpackhi_epi64(a.0, a.1),
            _mm512_unpackhi_epi64(b.0, b.1),
            _mm512_unpackhi_epi64(c.0, c.1),
            _mm512_unpackhi_epi64(d.0, d.1),
        ]);
        [a0, a1, a2, a3, a4, a5, a6, a7]
    }};
}
column!(column8, turn8, 8, before: 0 [0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7]);

/// 64 bytes of four rows of elements of 16 bytes.
macro_rules! turn16 {
    ($src:expr, $from:ident) => {{
        let (src, from) = ($src, $from);
        let row = |i: usize| _mm512_loadu_si512(src.wrapping_offset(from.at(i)).cast());
        quarters([row(0), row(1), row(2), row(3)])
    }};
}
column!(column16, turn16, 4, before: 0 [0: 0, 1: 1, 2: 2, 3: 3]);

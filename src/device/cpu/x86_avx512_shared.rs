//! Squares whose rows share lines of the destination, with AVX-512: what is left over of each row
//! stays in a register, from a square to the one below.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::ops::{Band, Place, Rows};
use super::x86_ask::ask_one;
use super::x86_avx512_square::quarters;
use super::x86_vectors::*;

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
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
pub(super) unsafe fn shared(src: *const u8, dst: *mut u8, how: &Band) {
    // SAFETY: the caller's promise.
    unsafe { either!(how.rows, [from, to, _] => columns((src, from), (dst, to), how)) }
}

/// The columns of a band. Whatever is asked for, it is one line of each source row at a time, into
/// the second-level cache.
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
unsafe fn columns<P: Place>(
    (mut src, from): (*const u8, P),
    (mut dst, mut to): (*mut u8, P),
    how: &Band,
) {
    for column in 0..how.columns {
        let asks = how.ask.lines > 0 && column < how.ask.columns;
        let ahead = if asks { how.ask.ahead } else { 0 };
        // SAFETY: the caller vouches for the squares, and for the one above them.
        unsafe {
            match how.log {
                2 => column4((src, from), (dst, to), how.lines, ahead),
                3 => column8((src, from), (dst, to), how.lines, ahead),
                _ => column16((src, from), (dst, to), how.lines, ahead),
            }
        }
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

/// Rows one after the other: an address each. That all of them are not kept saves stack.
struct Each<P>(*mut u8, P);

impl<P: Place> Each<P> {
    /// # Safety
    /// There is one more row.
    #[inline(always)]
    unsafe fn next(&mut self) -> *mut u8 {
        let Each(at, rows) = *self;
        let (by, next) = rows.from(1);
        *self = Each(at.wrapping_offset(by), next);
        // SAFETY: the caller's word.
        at.wrapping_offset(unsafe { rows.at(0) })
    }
}

/// What is done for each of some numbers, written out.
macro_rules! once {
    ($number:literal, $what:expr) => {
        $what
    };
}

/// Makes so many squares one below the other, of `$rows` rows each, asking for what is so far ahead
/// of each source row. They are made part by part: `$turn` makes the next rows of 64 bytes of what
/// lies `$part` bytes on in the source's.
macro_rules! column {
    (
        $name:ident, $turn:ident, $rows:literal,
        $($before:ident: $part:literal [$($i:literal)*]);*
    ) => {
        #[inline(never)] // its own frame, for squares of other kinds need less
        #[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw"))]
        #[cfg_attr(emulated, target_feature(enable = "avx2"))]
        unsafe fn $name<P: Place>(
            (mut src, mut from): (*const u8, P),
            (mut dst, to): (*mut u8, P),
            lines: usize,
            ahead: usize,
        ) {
            // SAFETY: the caller vouches for the rows on both sides.
            unsafe {
                $(let mut $before = $turn!(src.wrapping_add($part), from);)*
                for _ in 0..lines {
                    let (by, next) = from.from($rows);
                    (src, from) = (src.wrapping_offset(by), next);
                    let mut asked = Each(src.cast_mut(), from);
                    $($(once!($i, ask_one(asked.next(), ahead));)*)*
                    let mut row = Each(dst, to);
                    $(
                        let now = $turn!(src.wrapping_add($part), from);
                        $(put(row.next(), $before[$i], now[$i]);)*
                        $before = now;
                    )*
                    dst = dst.wrapping_add(64);
                }
            }
        }
    };
}

/// 32 bytes of 16 rows of elements of 4 bytes.
macro_rules! turn4 {
    ($src:expr, $from:ident) => {{
        const C: usize = 4;
        let mut row = Each($src.cast_mut(), $from);
        let mut half = || _mm256_loadu_si256(row.next().cast());
        let both = |a, b| _mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), b);
        let [a, b, c, d] = [half(), half(), half(), half()];
        let mut low = [both(a, half()), both(b, half()), both(c, half()), both(d, half())];
        let [a, b, c, d] = [half(), half(), half(), half()];
        let mut high = [both(a, half()), both(b, half()), both(c, half()), both(d, half())];
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
    left: 0 [0 1 2 3 4 5 6 7]; right: 32 [0 1 2 3 4 5 6 7]
);

/// 64 bytes of eight rows of elements of 8 bytes.
macro_rules! turn8 {
    ($src:expr, $from:ident) => {{
        let mut row = Each($src.cast_mut(), $from);
        let mut two = || {
            let (a, b) =
                (_mm512_loadu_si512(row.next().cast()), _mm512_loadu_si512(row.next().cast()));
            (_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b))
        };
        let (a, b, c, d) = (two(), two(), two(), two());
        // The even ones, and the odd ones.
        let (even, odd) = (quarters([a.0, b.0, c.0, d.0]), quarters([a.1, b.1, c.1, d.1]));
        [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]]
    }};
}
column!(column8, turn8, 8, before: 0 [0 1 2 3 4 5 6 7]);

/// 64 bytes of four rows of elements of 16 bytes.
macro_rules! turn16 {
    ($src:expr, $from:ident) => {{
        let mut row = Each($src.cast_mut(), $from);
        let mut one = || _mm512_loadu_si512(row.next().cast());
        quarters([one(), one(), one(), one()])
    }};
}
column!(column16, turn16, 4, before: 0 [0 1 2 3]);

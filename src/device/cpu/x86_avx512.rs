//! AVX-512 (F, BW, VL) kernels; AVX2's where those are as fast.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::ops::Ops;
use super::tuning::tuning;
use super::x86_avx2;
use super::x86_avx512_odd::NUMBERS;
use super::x86_avx512_square::squares;
use super::x86_fills;
use super::x86_vectors::*;

pub(super) static OPS: Ops = TABLE;

pub(super) const TABLE: Ops = Ops {
    squares: Some(squares),
    shares: true,
    pairs: Some(pairs),
    fill: x86_fills::avx512,
    stream,
    join,
    pieces,
    ..x86_avx2::TABLE
};

#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
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

/// By four lines, as AVX2's, or four pages at a time.
#[cfg_attr(not(emulated), target_feature(enable = "avx512f"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
unsafe fn stream(dst: *mut u8, src: *const u8, lines: usize) {
    let (mut from, mut to): (*const __m512i, *mut __m512i) = (src.cast(), dst.cast());
    let (end, ahead) = (from.wrapping_add(lines), x86_avx2::ahead(lines));
    if tuning().pages {
        for _ in 0..lines / (4 * PAGE) {
            // SAFETY: the caller vouches for `lines` lines.
            unsafe { four_pages(to, from) };
            (from, to) = (from.wrapping_add(4 * PAGE), to.wrapping_add(4 * PAGE));
        }
    }
    let lines = (end as usize - from as usize) / 64;
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

/// Lines of a page, in which the processor fetches ahead by itself, but not beyond.
const PAGE: usize = 64;

/// Writes four pages, two lines of each in turn: so many are fetched ahead at a time.
#[cfg_attr(not(emulated), target_feature(enable = "avx512f"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
unsafe fn four_pages(to: *mut __m512i, from: *const __m512i) {
    for at in (0..PAGE).step_by(2) {
        let (from, to) = (from.wrapping_add(at), to.wrapping_add(at));
        // SAFETY: the caller vouches for the lines.
        unsafe {
            two(to, from);
            two(to.wrapping_add(PAGE), from.wrapping_add(PAGE));
            two(to.wrapping_add(2 * PAGE), from.wrapping_add(2 * PAGE));
            two(to.wrapping_add(3 * PAGE), from.wrapping_add(3 * PAGE));
        }
    }
}

/// Writes two lines.
#[inline]
#[cfg_attr(not(emulated), target_feature(enable = "avx512f"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
unsafe fn two(to: *mut __m512i, from: *const __m512i) {
    // SAFETY: the caller vouches for the lines.
    unsafe {
        let (first, second) = (_mm512_loadu_si512(from), _mm512_loadu_si512(from.wrapping_add(1)));
        _mm512_stream_si512(to, first);
        _mm512_stream_si512(to.wrapping_add(1), second);
    }
}

/// Writes four lines: `first`, which takes the place of the one at `from`, and the three after it.
#[inline]
#[cfg_attr(not(emulated), target_feature(enable = "avx512f"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
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
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
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
        #[cfg_attr(not(emulated), target_feature(enable = $features))]
        #[cfg_attr(emulated, target_feature(enable = "avx2"))]
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
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
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
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw,avx512vbmi"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
unsafe fn permuted(tail: *const u8, n: usize, src: *const u8) -> __m512i {
    // SAFETY: the caller's pieces, the one that ends with the tail and the next, have 64 bytes.
    unsafe {
        let old = _mm512_loadu_si512(tail.wrapping_add(n).wrapping_sub(64).cast());
        joined(old, n, _mm512_loadu_si512(src.cast()))
    }
}

/// The last `n` bytes of `old`, and the first of `new`.
#[inline]
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw,avx512vbmi"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
pub(super) fn joined(old: __m512i, n: usize, new: __m512i) -> __m512i {
    // SAFETY: there are 64 numbers.
    let numbers = unsafe { _mm512_loadu_si512(NUMBERS.as_ptr().cast()) };
    let order = _mm512_add_epi8(numbers, _mm512_set1_epi8(64 - n as i8));
    _mm512_permutex2var_epi8(old, order, new)
}

//! The AVX2 kernels of packed elements of 4 and 6 bits.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;
use core::mem::MaybeUninit;

use super::bitrun;
use super::ops::{Ops, Packed, Rows};
use super::x86_avx2::{tile1, two};

/// Rows that begin at the same bit of a byte: the first one's bytes, and of two registers which
/// bytes of theirs become which, and which halves of bytes are `high` ones or by how many bits
/// words are shifted.
#[derive(Clone, Copy)]
struct Start {
    at: *const u8,
    /// From the first half of a register to the second.
    other: isize,
    spread: __m256i,
    shift: __m256i,
}

/// Two rows become one row of bytes for the even columns and one for the odd, and bytes are what is
/// transposed. In a register: a pair of rows and the next one, the even columns before the odd ones
/// in each; or, of `wide` ones, a pair's even columns and its odd ones.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn fours(_: &Ops, from: &Packed, to: *mut u8, pitch: usize) {
    let by = (from.apart >> 2) as isize;
    let (step, size) = if from.wide { (by, 32) } else { (2 * by, 16) };
    let (first, second) = (nibbles_from(from, 0), nibbles_from(from, 1));
    let mut pairs = MaybeUninit::<[__m256i; 32]>::uninit();
    let pairs: *mut __m256i = pairs.as_mut_ptr().cast();
    for tile in 0..from.tiles {
        for i in 0..size {
            let at = step * (size * tile + i) as isize;
            // SAFETY: the caller vouches for the rows; one of the 32.
            unsafe {
                let odd = _mm256_slli_epi16::<4>(nibbles(second, at));
                *pairs.wrapping_add(i) = _mm256_or_si256(nibbles(first, at), odd);
            }
        }
        let (to, rows) = (to.wrapping_add(32 * tile), Rows::Apart([size as isize, pitch as isize]));
        // SAFETY: 32 pairs of `size` bytes; 32 bytes of each of the caller's rows.
        unsafe { tile1(pairs.cast(), to, rows, size / 16) };
    }
}

/// Row `j` and each second one from there on.
#[inline(never)] // once, not twice
#[target_feature(enable = "avx2")]
fn nibbles_from(from: &Packed, j: i64) -> Start {
    let (at, shift) = bitrun::at(from.src, from.bit + j * from.apart);
    // 8 bytes hold a row's elements, or 9.
    let next = (shift >> 2) as i8;
    let late = _mm256_set1_epi8(-next);
    let spread = _mm256_setr_epi64x(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908, 0, 0);
    let spread = _mm256_permute4x64_epi64::<0x44>(spread);
    if from.wide {
        let shift = _mm256_xor_si256(late, _mm256_setr_epi64x(0, 0, -1, -1));
        return Start { at, other: isize::from(next), spread, shift };
    }
    let odd = _mm256_setr_epi64x(0, -1, 0, -1);
    let lead = if from.first { 0 } else { 8 - next };
    let spread = _mm256_add_epi8(_mm256_unpacklo_epi64(spread, spread), _mm256_set1_epi8(lead));
    Start {
        at: at.wrapping_offset(-isize::from(lead)),
        other: (from.apart >> 2) as isize,
        spread: _mm256_sub_epi8(spread, _mm256_and_si256(late, odd)),
        shift: _mm256_xor_si256(late, odd),
    }
}

/// A register's elements, each in the low half of a byte.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn nibbles(from: Start, at: isize) -> __m256i {
    // SAFETY: the caller's rows.
    let row = unsafe { two(from.at.wrapping_offset(at), from.other, 0, 1) };
    let row = _mm256_shuffle_epi8(row, from.spread);
    let row = _mm256_blendv_epi8(row, _mm256_srli_epi16::<4>(row), from.shift);
    _mm256_and_si256(row, _mm256_set1_epi8(15))
}

/// Exchanges the bits `mask` of `b`'s words with those that lie `BY` bits above them in `a`'s.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn swap<const BY: i32>(a: __m256i, b: __m256i, mask: i32) -> (__m256i, __m256i) {
    let differ = _mm256_xor_si256(_mm256_srli_epi32::<BY>(a), b);
    let differ = _mm256_and_si256(differ, _mm256_set1_epi32(mask));
    let back = _mm256_slli_epi32::<BY>(differ);
    (_mm256_xor_si256(a, back), _mm256_xor_si256(b, differ))
}

/// In the lanes: rows 0 to 15 and 16 to 31, four elements in each word, and above them what is
/// not used. Four by four are turned within words, and then words are what is transposed.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn sixes(_: &Ops, from: &Packed, to: *mut u8, pitch: usize) {
    // Each fourth row begins at the same bit of a byte.
    let by = (from.apart >> 1) as isize;
    let (first, second) = (sixes_from(from, 0), sixes_from(from, 1));
    let (third, fourth) = (sixes_from(from, 2), sixes_from(from, 3));
    let mut fours = MaybeUninit::<[[__m256i; 4]; 4]>::uninit();
    let fours: *mut [__m256i; 4] = fours.as_mut_ptr().cast();
    for tile in 0..from.tiles {
        for i in 0..4 {
            let at = by * (8 * tile + i) as isize;
            // SAFETY: the caller vouches for the rows; one of the four.
            unsafe {
                let (a, b) = (words(first, at), words(second, at));
                let (c, d) = (words(third, at), words(fourth, at));
                let ((a, c), (b, d)) = (swap::<12>(a, c, 0xfff), swap::<12>(b, d, 0xfff));
                let ((a, b), (c, d)) = (swap::<6>(a, b, 0x3f03f), swap::<6>(c, d, 0x3f03f));
                *fours.wrapping_add(i) = [a, b, c, d];
            }
        }
        // SAFETY: all four; 24 bytes of each of the caller's rows.
        unsafe { columns(fours.cast(), to.wrapping_add(24 * tile), pitch) };
    }
}

/// Row `j` and each fourth one from there on.
#[inline(never)] // once, not four times
#[target_feature(enable = "avx2")]
fn sixes_from(from: &Packed, j: i64) -> Start {
    let (at, shift) = bitrun::at(from.src, from.bit + j * from.apart);
    // 12 bytes hold a row's elements, or 13.
    let lead = if from.first { 0 } else { 4 - i8::from(shift > 0) };
    // To words that hold four elements, from some bit on.
    let spread = _mm_setr_epi8(0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9, 10, 11, 12);
    let spread = _mm_add_epi8(spread, _mm_set1_epi8(lead));
    Start {
        at: at.wrapping_offset(-isize::from(lead)),
        other: 2 * from.apart as isize,
        spread: _mm256_broadcastsi128_si256(spread),
        shift: _mm256_set1_epi32(shift as i32),
    }
}

/// A register's elements, four in the low bits of each word.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn words(from: Start, at: isize) -> __m256i {
    // SAFETY: the caller's rows.
    let row = unsafe { two(from.at.wrapping_offset(at), from.other, 0, 1) };
    _mm256_srlv_epi32(_mm256_shuffle_epi8(row, from.spread), from.shift)
}

/// Transposes 16 by 8 words in which four elements are three bytes, and closes these up.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn columns(fours: *const __m256i, to: *mut u8, pitch: usize) {
    let close = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    let close = _mm256_broadcastsi128_si256(close);
    let join = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
    for i in 0..4 {
        let put = |k: usize, row: __m256i| {
            let row = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(row, close), join);
            let to = to.wrapping_add((4 * k + i) * pitch);
            let rest = _mm256_extracti128_si256::<1>(row);
            // SAFETY: 24 bytes of one of the caller's rows.
            unsafe {
                _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(row));
                _mm_storel_epi64(to.wrapping_add(16).cast(), rest);
            }
        };
        // SAFETY: the caller's 16 registers.
        let four = |k: usize| unsafe { *fours.wrapping_add(4 * k + i) };
        let (a, b, c, d) = (four(0), four(1), four(2), four(3));
        let (low, high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
        let (lower, higher) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
        put(0, _mm256_unpacklo_epi64(low, lower));
        put(1, _mm256_unpackhi_epi64(low, lower));
        put(2, _mm256_unpacklo_epi64(high, higher));
        put(3, _mm256_unpackhi_epi64(high, higher));
    }
}

/// Bytes from bit `shift` of the first on: two of them in each word that one overlaps the next by.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn shift(to: *mut u8, from: *const u8, shift: u32, n: usize) {
    let (right, left) = (_mm_cvtsi32_si128(shift as i32), _mm_cvtsi32_si128(8 - shift as i32));
    for i in (0..n).step_by(32) {
        let from = from.wrapping_add(i);
        // SAFETY: the caller's bytes.
        unsafe {
            let (low, high) =
                (_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(from.wrapping_add(1).cast()));
            let (low, high) = (_mm256_srl_epi64(low, right), _mm256_sll_epi64(high, left));
            _mm256_storeu_si256(to.wrapping_add(i).cast(), _mm256_or_si256(low, high));
        }
    }
}

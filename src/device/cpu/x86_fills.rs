//! One element for whole rows, with AVX2 and AVX-512.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::fills::each;
use super::tuning::tuning;
use super::x86_vectors::*;
use crate::device::plan::Dim;

/// As [`super::fills::Fill`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn avx2(dst: *mut u8, src: *const u8, rows: &Dim, size: usize, total: usize) {
    // SAFETY: the caller's elements and rows, of which `each` asks for no more than there is.
    unsafe {
        let load = |from: *const u8| {
            (_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(from.wrapping_add(32).cast()))
        };
        let element = |from: *const u8| {
            let half = match size {
                1 => _mm256_set1_epi8(*from as i8),
                2 => _mm256_set1_epi16(from.cast::<i16>().read_unaligned()),
                4 => _mm256_set1_epi32(from.cast::<i32>().read_unaligned()),
                8 => _mm256_set1_epi64x(from.cast::<i64>().read_unaligned()),
                16 => _mm256_broadcastsi128_si256(_mm_loadu_si128(from.cast())),
                32 => _mm256_loadu_si256(from.cast()),
                _ => return load(from),
            };
            (half, half)
        };
        let store = |to: *mut u8, (low, high)| {
            _mm256_storeu_si256(to.cast(), low);
            _mm256_storeu_si256(to.wrapping_add(32).cast(), high);
        };
        each((dst, src), rows, total, element, load, store);
    }
}

/// Likewise; lines of the destination are asked for, where that suits the processor.
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
pub(super) unsafe fn avx512(dst: *mut u8, src: *const u8, rows: &Dim, size: usize, total: usize) {
    // SAFETY: as there.
    unsafe {
        let load = |from: *const u8| _mm512_loadu_si512(from.cast());
        let element = |from: *const u8| match size {
            1 => _mm512_set1_epi8(*from as i8),
            2 => _mm512_set1_epi16(from.cast::<i16>().read_unaligned()),
            4 => _mm512_set1_epi32(from.cast::<i32>().read_unaligned()),
            8 => _mm512_set1_epi64(from.cast::<i64>().read_unaligned()),
            16 => _mm512_broadcast_i32x4(_mm_loadu_si128(from.cast())),
            32 => _mm512_broadcast_i64x4(_mm256_loadu_si256(from.cast())),
            _ => load(from),
        };
        let soon = tuning().soon;
        let store = |to: *mut u8, line| {
            _mm_prefetch::<_MM_HINT_T0>(to.wrapping_add(soon).cast());
            _mm512_storeu_si512(to.cast(), line);
        };
        each((dst, src), rows, total, element, load, store);
    }
}

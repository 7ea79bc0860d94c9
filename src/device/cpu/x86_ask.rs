//! Asking for lines of memory.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::ops::{Ask, Place, Rows};
use super::strided::one;
use super::tuning::tuning;

/// As [`super::ops::Fetch`].
pub(super) unsafe fn fetch(at: *const u8, rows: Rows<1>, n: usize, lines: usize) {
    // Lines that the first level would lose again.
    const MANY: usize = 16;
    // SAFETY: the caller's rows; every processor with AVX2 has SSE.
    unsafe {
        if tuning().second < usize::MAX || lines > MANY {
            either!(rows, [rows] => ask::<_MM_HINT_T1>(at, rows, n, lines))
        } else {
            either!(rows, [rows] => ask::<_MM_HINT_T0>(at, rows, n, lines))
        }
    }
}

/// As [`super::ops::Asked`].
pub(super) unsafe fn asked(dst: *mut u8, src: *const u8, n: usize, stride: isize, on: usize) {
    // SAFETY: the caller's elements.
    unsafe {
        if tuning().second < usize::MAX {
            elements::<_MM_HINT_T1>(dst, src, n, stride, on);
        } else {
            elements::<_MM_HINT_T0>(dst, src, n, stride, on);
        }
    }
}

unsafe fn elements<const LEVEL: i32>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    stride: isize,
    on: usize,
) {
    let (mut from, mut to) = (src, dst);
    // SAFETY: the caller's elements; a prefetch touches nothing.
    unsafe {
        for _ in 0..n {
            _mm_prefetch::<LEVEL>(from.wrapping_add(on).cast());
            one::<16>(to, from, (0, 0));
            from = from.wrapping_offset(stride);
            to = to.wrapping_add(16);
        }
    }
}

/// One row after the other. Many requests at once, as loops of fewer instructions make them, keep
/// the loads that follow waiting: a tenth to a quarter slower (Zen 4, benches/notes.md).
#[inline(never)]
unsafe fn ask<const LEVEL: i32>(at: *const u8, rows: impl Place, n: usize, lines: usize) {
    for row in 0..n {
        // SAFETY: the caller's rows; a prefetch touches nothing.
        unsafe {
            let row = at.wrapping_offset(rows.at(row)).cast::<i8>();
            // Two at a time, as there mostly are.
            for two in (0..lines / 2).map(|i| row.wrapping_add(128 * i)) {
                _mm_prefetch::<LEVEL>(two);
                _mm_prefetch::<LEVEL>(two.wrapping_add(64));
            }
            if lines & 1 > 0 {
                _mm_prefetch::<LEVEL>(row.wrapping_add(64 * (lines - 1)));
            }
        }
    }
}

/// Asks for what is wanted of the source of a square of `n` rows.
///
/// # Safety
/// They are its rows.
#[inline(always)]
pub(super) unsafe fn ask_source<P: Place>(src: *const u8, from: P, n: usize, what: &Ask) {
    let soon = src.wrapping_add(what.ahead);
    // SAFETY: the caller's rows.
    unsafe {
        match what.near {
            true => ask::<_MM_HINT_T0>(soon, from, n, what.lines),
            false => ask::<_MM_HINT_T1>(soon, from, n, what.lines),
        }
    }
}

/// Asks for a line of each of the `n` rows of the destination from the `first` one on: the one in
/// which 64 bytes end, for another square may have been written to that in which they begin. A loop
/// of few instructions is 0.98 to 1.18 times as fast as `ask` (a Xeon, benches/notes.md).
///
/// # Safety
/// There are so many rows.
pub(super) unsafe fn ask_beside<P: Place>(dst: *const u8, to: P, first: usize, n: usize) {
    // SAFETY: the caller's rows.
    unsafe {
        let (by, to) = to.from(first);
        let at = dst.wrapping_offset(by).wrapping_add(63);
        for row in (0..n).map(|row| at.wrapping_offset(to.at(row))) {
            _mm_prefetch::<_MM_HINT_T0>(row.cast());
        }
    }
}

/// Asks for what is `ahead` of a row, among the loads and stores of a square, which a request
/// before them all would keep waiting. 0: a line that is there.
#[inline(always)]
pub(super) fn ask_one(row: *const u8, ahead: usize) {
    // SAFETY: a prefetch touches nothing, and every processor with AVX2 has SSE.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(row.wrapping_add(ahead).cast()) }
}

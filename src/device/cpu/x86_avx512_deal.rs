//! Pixels to planes and back, with instructions that bring the bytes of two registers into any
//! order (AVX-512 VBMI).
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::deal::{Deal, MOST};
use super::x86_vectors::*;

/// See [`super::deal::Dealt`].
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw,avx512vbmi"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
pub(super) unsafe fn deal(dst: *mut u8, src: *const u8, how: &Deal) {
    let last = how.lines[0].wrapping_sub(1);
    let at = [0, 1, 2, 3, 4, 5, 6, 7].map(|i: usize| i.min(last) as isize * how.apart[0]);
    // SAFETY: the caller's promise.
    unsafe {
        match last {
            0 | 1 => pairs1(dst, src, &at, how),
            2 | 3 => pairs2(dst, src, &at, how),
            4 | 5 => pairs3(dst, src, &at, how),
            _ => pairs4(dst, src, &at, how),
        }
    }
}

/// A round: every line of the destination from all of the source, `$load`ed and `$store`d.
macro_rules! round {
    (
        ($how:ident, $from:ident, $at:ident, $to:ident, [$($i:literal)*], [$($more:literal)*]),
        |$line:ident, $l:ident| $load:expr,
        |$place:ident, $p:ident, $made:ident| $store:expr
    ) => {{
        let load = |$l: usize| {
            let $line = $from.wrapping_offset($at[$l]);
            $load
        };
        let all = [$((load(2 * $i), load(2 * $i + 1))),*];
        let (mut order, mut masks, mut $place) = ($how.order.as_ptr(), $how.masks.as_ptr(), $to);
        for $p in 0..$how.lines[1] {
            let which = _mm512_loadu_si512(order.cast());
            let $made = _mm512_permutex2var_epi8(all[0].0, which, all[0].1);
            $(
                let made = _mm512_permutex2var_epi8(all[$more].0, which, all[$more].1);
                let $made = _mm512_mask_mov_epi8($made, (*masks)[$more - 1], made);
            )*
            $store;
            (order, masks) = (order.wrapping_add(64), masks.wrapping_add(1));
            $place = $place.wrapping_offset($how.apart[1]);
        }
        let _ = masks;
    }};
}

/// From so many times two lines, of which the last may be one line twice.
macro_rules! pairs {
    ($name:ident, $all:tt, $more:tt) => {
        #[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw,avx512vbmi"))]
        #[cfg_attr(emulated, target_feature(enable = "avx2"))]
        unsafe fn $name(mut dst: *mut u8, mut src: *const u8, at: &[isize; MOST], how: &Deal) {
            // SAFETY: the caller vouches for the runs on both sides; what is masked is not touched.
            unsafe {
                let ([reads, writes], runs) = (&how.last, how.runs);
                for _ in 0..runs.n {
                    let (mut from, mut to) = (src, dst);
                    for _ in 0..how.rounds {
                        round!(
                            (how, from, at, to, $all, $more),
                            |line, _l| _mm512_loadu_si512(line.cast()),
                            |place, _p, made| {
                                _mm_prefetch::<_MM_HINT_T0>(place.wrapping_add(how.soon).cast());
                                _mm512_storeu_si512(place.cast(), made)
                            }
                        );
                        from = from.wrapping_offset(how.by[0]);
                        to = to.wrapping_offset(how.by[1]);
                    }
                    if writes[0] != 0 {
                        round!(
                            (how, from, at, to, $all, $more),
                            |line, l| _mm512_maskz_loadu_epi8(reads[l], line.cast()),
                            |place, p, made| _mm512_mask_storeu_epi8(
                                place.cast(),
                                writes[p & 7],
                                made
                            )
                        );
                    }
                    src = src.wrapping_offset(runs.src as isize);
                    dst = dst.wrapping_offset(runs.dst as isize);
                }
            }
        }
    };
}
pairs!(pairs1, [0], []);
pairs!(pairs2, [0 1], [1]);
pairs!(pairs3, [0 1 2], [1 2]);
pairs!(pairs4, [0 1 2 3], [1 2 3]);

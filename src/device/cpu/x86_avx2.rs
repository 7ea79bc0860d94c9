//! AVX2 kernels.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;
use core::mem::MaybeUninit;
use core::ptr::copy_nonoverlapping;

use super::deal::Dealt;
use super::nest::Stores;
use super::ops::{OddKernel, Ops, Place, Rows};
use super::x86_ask::{asked, fetch};
// The instructions for bits are 64-bit ones.
#[cfg(target_arch = "x86")]
use super::portable as deposit;
use super::x86_avx2_shuffle::{groups, planes, step, weave};
use super::{
    nest, x86_avx2_deal, x86_avx2_lines::lines, x86_avx2_odd, x86_avx2_square::squares,
    x86_avx2_stage::STAGE, x86_fills, x86_packed,
};
use crate::device::plan::Dim;

pub(super) static OPS: Ops = TABLE;

pub(super) const TABLE: Ops = Ops {
    width: 32,
    squares: Some(squares),
    shares: false,
    bytes: None,
    tiles: [tile1, tile2, tile4, tile8, tile16],
    narrow: [narrow1, narrow2, narrow4, narrow8, narrow16],
    lines: Some(lines),
    odd: None,
    shift: x86_packed::shift,
    pairs: None,
    fours: x86_packed::fours,
    sixes: Some(x86_packed::sixes),
    fetch,
    asked,
    fill: x86_fills::avx2,
    stream,
    join,
    pieces,
    step,
    weave,
    unpack: deposit::unpack,
    pack: deposit::pack,
    packs: cfg!(target_arch = "x86_64"),
    odd_squares: Some(OddKernel { least: x86_avx2_odd::least, turn: x86_avx2_odd::squares }),
    stage: Some(&STAGE),
    braid: None,
    groups: Some((&[16, 32, 64, 128], false, groups)),
    planes: Some((16, planes)),
    deal: Some(Dealt::Parts(x86_avx2_deal::deal)),
    runs,
    fence,
    streams: true,
};

/// 16 bytes of rows `i` and `i + c` as the two halves of one register.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn two<P: Place>(src: *const u8, rows: P, i: usize, c: usize) -> __m256i {
    // SAFETY: the caller's rows have 16 bytes each.
    unsafe {
        let low = _mm256_castsi128_si256(one(src, rows, i, c));
        _mm256_inserti128_si256::<1>(low, one(src, rows, i + c, c))
    }
}

/// 16 bytes of row `i`.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn one<P: Place>(src: *const u8, rows: P, i: usize, _: usize) -> __m128i {
    // SAFETY: the caller's row has 16 bytes.
    unsafe { _mm_loadu_si128(src.wrapping_offset(rows.at(i)).cast()) }
}

/// log2(C) rounds of a perfect shuffle transpose a C × C matrix: here one in each 16-byte lane.
macro_rules! tile {
    (
        $name:ident, $block:ident, $load:ident, $store:ident,
        $rounds:literal, $unpack_low:ident, $unpack_high:ident,
        [$($i:literal)*], [$($h:literal)*]
    ) => {
        tile!($name, $block, [$($i),*].len());

        /// A block: C rows of 16 bytes a lane become C destination rows of all lanes.
        // Functions with a target_feature cannot ask for that; its callers have it.
        #[inline(always)]
        pub(super) unsafe fn $block<P: Place>(src: *const u8, from: P, dst: *mut u8, to: P) {
            const C: usize = [$($i),*].len();
            // SAFETY: the caller vouches for them.
            unsafe {
                let mut rows = [$($load(src, from, $i, C)),*];
                shuffle!(rows, C, $rounds, $unpack_low, $unpack_high, [$($h)*]);
                $($store(dst.wrapping_offset(to.at($i)).cast(), rows[$i]);)*
            }
        }
    };
    ($name:ident, $block:ident, $columns:expr) => {
        #[target_feature(enable = "avx2")]
        pub(super) unsafe fn $name(src: *const u8, dst: *mut u8, rows: Rows<2>, blocks: usize) {
            // SAFETY: the caller vouches for the rows of every block.
            unsafe {
                either!(rows, [from, to] => for block in 0..blocks {
                    let (at, to) = to.from(block * $columns);
                    $block(src.wrapping_add(16 * block), from, dst.wrapping_offset(at), to);
                })
            }
        }
    };
}

macro_rules! bytes {
    (
        $block:ident, $load:ident, $store:ident, $unpack_low:ident, $unpack_high:ident,
        $join_low:ident, $join_high:ident, [$($i:literal)*], [$($h:literal)*]
    ) => {
        /// A block of bytes: eight rows a lane are turned, then the next eight, and both are put
        /// together. Of sixteen, a register each, some would be in memory all the time.
        #[inline(always)] // likewise
        pub(super) unsafe fn $block<P: Place>(src: *const u8, from: P, dst: *mut u8, to: P) {
            const C: usize = 8;
            let (at, rest) = from.from(C);
            let next = src.wrapping_offset(at);
            // SAFETY: the caller vouches for 16 rows of 16 bytes a lane, and as many of all lanes.
            unsafe {
                let mut first = [$($load(src, from, $i, 2 * C)),*];
                shuffle!(first, C, 3, $unpack_low, $unpack_high, [$($h)*]);
                let mut second = [$($load(next, rest, $i, 2 * C)),*];
                shuffle!(second, C, 3, $unpack_low, $unpack_high, [$($h)*]);
                $(
                    let low = $join_low(first[$i], second[$i]);
                    let high = $join_high(first[$i], second[$i]);
                    $store(dst.wrapping_offset(to.at(2 * $i)).cast(), low);
                    $store(dst.wrapping_offset(to.at(2 * $i + 1)).cast(), high);
                )*
            }
        }
    };
}
bytes!(
    block1, two, _mm256_storeu_si256, _mm256_unpacklo_epi8, _mm256_unpackhi_epi8,
    _mm256_unpacklo_epi64, _mm256_unpackhi_epi64, [0 1 2 3 4 5 6 7], [0 1 2 3]
);
bytes!(
    thin1, one, _mm_storeu_si128, _mm_unpacklo_epi8, _mm_unpackhi_epi8,
    _mm_unpacklo_epi64, _mm_unpackhi_epi64, [0 1 2 3 4 5 6 7], [0 1 2 3]
);
tile!(tile1, block1, 16);
tile!(narrow1, thin1, 16);
tile!(
    tile2, block2, two, _mm256_storeu_si256,
    3, _mm256_unpacklo_epi16, _mm256_unpackhi_epi16,
    [0 1 2 3 4 5 6 7], [0 1 2 3]
);
tile!(
    tile4, block4, two, _mm256_storeu_si256,
    2, _mm256_unpacklo_epi32, _mm256_unpackhi_epi32,
    [0 1 2 3], [0 1]
);
tile!(
    tile8, block8, two, _mm256_storeu_si256,
    1, _mm256_unpacklo_epi64, _mm256_unpackhi_epi64,
    [0 1], [0]
);
tile!(
    tile16,
    block16,
    two,
    _mm256_storeu_si256,
    0,
    _mm256_unpacklo_epi64,
    _mm256_unpackhi_epi64,
    [0],
    []
);
tile!(
    narrow2, thin2, one, _mm_storeu_si128, 3, _mm_unpacklo_epi16, _mm_unpackhi_epi16,
    [0 1 2 3 4 5 6 7], [0 1 2 3]
);
tile!(
    narrow4, thin4, one, _mm_storeu_si128, 2, _mm_unpacklo_epi32, _mm_unpackhi_epi32,
    [0 1 2 3], [0 1]
);
tile!(
    narrow8, thin8, one, _mm_storeu_si128, 1, _mm_unpacklo_epi64, _mm_unpackhi_epi64,
    [0 1], [0]
);
tile!(narrow16, thin16, one, _mm_storeu_si128, 0, _mm_unpacklo_epi64, _mm_unpackhi_epi64, [0], []);

/// How many lines ahead [`stream`] asks, of so many in a row.
pub(super) fn ahead(lines: usize) -> usize {
    if lines > 1024 { 128 } else { 64 }
}

/// Four lines are read before they are written: one by one, what is read waits for what is written.
#[target_feature(enable = "avx2")]
unsafe fn stream(dst: *mut u8, src: *const u8, lines: usize) {
    let (mut from, mut to): (*const __m256i, *mut __m256i) = (src.cast(), dst.cast());
    let (end, ahead) = (from.wrapping_add(2 * lines), ahead(lines));
    for left in (1..=lines / 4).rev() {
        // SAFETY: the caller vouches for `lines` lines; a prefetch touches nothing.
        unsafe {
            if 4 * left > ahead {
                let far = from.wrapping_add(2 * ahead);
                _mm_prefetch::<_MM_HINT_T0>(far.cast());
                _mm_prefetch::<_MM_HINT_T0>(far.wrapping_add(2).cast());
                _mm_prefetch::<_MM_HINT_T0>(far.wrapping_add(4).cast());
                _mm_prefetch::<_MM_HINT_T0>(far.wrapping_add(6).cast());
            }
            let (a, b) = (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1)));
            let (c, d) = (_mm256_loadu_si256(from.add(2)), _mm256_loadu_si256(from.add(3)));
            let (e, f) = (_mm256_loadu_si256(from.add(4)), _mm256_loadu_si256(from.add(5)));
            let (g, h) = (_mm256_loadu_si256(from.add(6)), _mm256_loadu_si256(from.add(7)));
            _mm256_stream_si256(to, a);
            _mm256_stream_si256(to.add(1), b);
            _mm256_stream_si256(to.add(2), c);
            _mm256_stream_si256(to.add(3), d);
            _mm256_stream_si256(to.add(4), e);
            _mm256_stream_si256(to.add(5), f);
            _mm256_stream_si256(to.add(6), g);
            _mm256_stream_si256(to.add(7), h);
        }
        (from, to) = (from.wrapping_add(8), to.wrapping_add(8));
    }
    while from != end {
        // SAFETY: likewise.
        unsafe {
            let (low, high) = (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1)));
            _mm256_stream_si256(to, low);
            _mm256_stream_si256(to.add(1), high);
        }
        (from, to) = (from.wrapping_add(2), to.wrapping_add(2));
    }
}

#[target_feature(enable = "avx2")]
unsafe fn join(line: *mut u8, tail: *const u8, head: *const u8, n: usize) {
    let mut both = MaybeUninit::<[__m256i; 2]>::uninit();
    let bytes: *mut u8 = both.as_mut_ptr().cast();
    // SAFETY: the caller vouches for the bytes that it takes, which fill both, and for the line.
    unsafe {
        copy_nonoverlapping(tail, bytes, n);
        copy_nonoverlapping(head, bytes.wrapping_add(n), 64 - n);
        stream(line, bytes, 1);
    }
}

/// Asks for the `lines` of the piece that is eight after the one at `src`, if so many are `left`:
/// the processor does not foresee where pieces begin.
#[inline(always)]
pub(super) unsafe fn ask_piece(src: *const u8, stride: isize, left: usize, lines: usize) {
    const AHEAD: usize = 8;
    if left >= AHEAD && lines >= 3 {
        let far = src.wrapping_offset(AHEAD as isize * stride);
        for line in 0..lines {
            // SAFETY: a prefetch touches nothing, and every caller's processor has SSE.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(far.wrapping_add(64 * line).cast()) };
        }
    }
}

#[target_feature(enable = "avx2")]
unsafe fn pieces(
    line: *mut u8,
    (tail, n): (*const u8, usize),
    src: *const u8,
    size: usize,
    count: usize,
    stride: isize,
) {
    let (mut to, mut tail, mut n, mut src) = (line, tail, n, src);
    for left in (0..count).rev() {
        let lines = (n + size) / 64;
        let next = src.wrapping_add(64 - n);
        // SAFETY: the caller's bytes and lines.
        unsafe {
            ask_piece(src, stride, left, lines);
            join(to, tail, src, n);
            stream(to.wrapping_add(64), next, lines - 1);
        }
        (to, tail) = (to.wrapping_add(64 * lines), next.wrapping_add(64 * (lines - 1)));
        (n, src) = ((n + size) & 63, src.wrapping_offset(stride));
    }
}

/// Elements of 32 bytes and more, by 32 bytes at a time.
#[target_feature(enable = "avx2")]
unsafe fn runs(size: usize, dims: [&Dim; 3], src: *const u8, dst: *mut u8, stores: Stores) {
    // SAFETY: the caller's promise; a prefetch touches nothing.
    unsafe {
        match stores {
            Stores::Asked(soon) if size <= 1024 => {
                nest::runs_asked(size, dims, src, dst, |to| {
                    for line in (0..size).step_by(64) {
                        _mm_prefetch::<_MM_HINT_T0>(to.wrapping_add(soon + line).cast());
                    }
                });
            }
            _ => nest::runs::<true>(size, dims, src, dst, stores == Stores::Whole),
        }
    }
}

#[target_feature(enable = "avx2")]
unsafe fn fence() {
    _mm_sfence();
}

#[cfg(target_arch = "x86_64")]
mod deposit {
    //! Bits to bytes and back by the instructions made for it.
    use super::{_pdep_u64, _pext_u64};

    /// The low `width` bits of each byte, of which the bits of eight elements are.
    fn places(width: u32) -> u64 {
        (0xff >> (8 - width.clamp(1, 8))) * 0x0101_0101_0101_0101
    }

    #[target_feature(enable = "bmi2")]
    pub(super) unsafe fn unpack(
        to: *mut u8,
        from: *const u8,
        shift: u32,
        width: u32,
        groups: usize,
    ) -> usize {
        let mask = places(width);
        let (mut from, mut to, by) = (from, to, width as usize);
        let one = |from: *const u8, to: *mut u8| {
            // SAFETY: the caller vouches for eight bytes on both sides.
            unsafe {
                let packed = from.cast::<u64>().read_unaligned() >> (shift & 7);
                to.cast::<u64>().write_unaligned(_pdep_u64(packed, mask));
            }
        };
        // Of so few instructions, where they lie would count.
        for _ in 0..groups / 4 {
            one(from, to);
            one(from.wrapping_add(by), to.wrapping_add(8));
            one(from.wrapping_add(2 * by), to.wrapping_add(16));
            one(from.wrapping_add(3 * by), to.wrapping_add(24));
            (from, to) = (from.wrapping_add(4 * by), to.wrapping_add(32));
        }
        for _ in 0..groups % 4 {
            one(from, to);
            (from, to) = (from.wrapping_add(by), to.wrapping_add(8));
        }
        groups
    }

    #[target_feature(enable = "bmi2")]
    pub(super) unsafe fn pack(
        to: *mut u8,
        from: *const u8,
        shift: u32,
        width: u32,
        groups: usize,
        carry: u64,
    ) -> (usize, u64) {
        let mask = places(width);
        let one = |from: *const u8, to: *mut u8, carry: u64| {
            // SAFETY: the caller vouches for eight bytes on both sides.
            let word = unsafe {
                let bytes = from.cast::<u64>().read_unaligned();
                let word = carry | _pext_u64(bytes, mask) << (shift & 7);
                to.cast::<u64>().write_unaligned(word);
                word
            };
            word >> ((8 * width) & 63)
        };
        let (mut from, mut to, mut carry) = (from, to, carry);
        let by = width as usize;
        for _ in 0..groups / 4 {
            carry = one(from, to, carry);
            carry = one(from.wrapping_add(8), to.wrapping_add(by), carry);
            carry = one(from.wrapping_add(16), to.wrapping_add(2 * by), carry);
            carry = one(from.wrapping_add(24), to.wrapping_add(3 * by), carry);
            (from, to) = (from.wrapping_add(32), to.wrapping_add(4 * by));
        }
        for _ in 0..groups % 4 {
            carry = one(from, to, carry);
            (from, to) = (from.wrapping_add(8), to.wrapping_add(by));
        }
        (groups, carry)
    }
}

//! AVX2 and AVX-512 vectors. 32-bit x86 has too few registers for them and uses the portable
//! kernels.
#[cfg(target_arch = "x86")]
use core::arch::x86::{__cpuid, __cpuid_count, _xgetbv};
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

use crate::level::Level;

/// The highest level of this processor.
pub(crate) fn detected() -> Level {
    #[target_feature(enable = "xsave")]
    fn saved() -> u64 {
        // SAFETY: called only if the system has enabled it.
        unsafe { _xgetbv(0) }
    }
    if cfg!(miri) {
        return Level::Portable;
    }
    let bit = |register: u32, bit: u32| register >> bit & 1 == 1;
    if __cpuid(0).eax < 7 || !bit(__cpuid(1).ecx, 27) || !bit(__cpuid(1).ecx, 9) {
        return Level::Portable;
    }
    // SAFETY: OSXSAVE is set.
    let saved = unsafe { saved() };
    let more = __cpuid_count(7, 0);
    let avx2 = saved & 6 == 6 && bit(more.ebx, 5) && bit(more.ebx, 8);
    let wide = saved & 0xe6 == 0xe6 && bit(more.ebx, 16) && bit(more.ebx, 30) && bit(more.ebx, 31);
    match (avx2, wide && cfg!(target_arch = "x86_64"), bit(more.ecx, 1)) {
        (false, ..) => Level::Portable,
        (_, false, _) => Level::Avx2,
        (.., false) => Level::Avx512,
        _ => Level::Vbmi,
    }
}

/// Casts use vectors there.
#[cfg(target_arch = "x86")]
pub(crate) static AVX2: crate::level::Kernels =
    crate::level::Kernels { level: Level::Avx2, ..crate::portable::PORTABLE };

#[cfg(target_arch = "x86_64")]
pub(crate) use vectors::{AVX2, AVX512, VBMI};

#[cfg(target_arch = "x86_64")]
pub(crate) mod vectors {
    use core::arch::x86_64::*;

    use crate::level::{Kernels, Level, table, wrappers};
    use crate::tile;
    use crate::vector::Vector;

    #[derive(Clone, Copy)]
    pub(crate) struct X16(__m128i);
    #[derive(Clone, Copy)]
    pub(crate) struct X32(__m256i);
    /// With permutations in lanes, or (VBMI) across the whole vector.
    #[derive(Clone, Copy)]
    pub(crate) struct X64<const WINDOW: usize>(__m512i);

    /// Methods that differ between widths only by the names of instructions.
    macro_rules! alike {
        (
            $load:ident, $store:ident, $stream:ident,
            $up:ident $down:ident $and:ident $and_not:ident $or:ident,
            $($s:literal $low:ident $high:ident),*
        ) => {
            #[inline(always)]
            unsafe fn load(at: *const u8) -> Self {
                // SAFETY: a vector's bytes are readable at `at`.
                Self(unsafe { $load(at.cast()) })
            }
            #[inline(always)]
            unsafe fn store(self, at: *mut u8) {
                // SAFETY: a vector's bytes are writable at `at`.
                unsafe { $store(at.cast(), self.0) }
            }
            #[inline(always)]
            unsafe fn stream(self, at: *mut u8) {
                // SAFETY: a vector's bytes are writable at `at`, a multiple of their number.
                unsafe { $stream(at.cast(), self.0) }
            }
            #[inline(always)]
            unsafe fn zip<const S: usize>(self, other: Self) -> [Self; 2] {
                // SAFETY: the processor has the vector's instructions.
                unsafe {
                    match S {
                        $($s => [Self($low(self.0, other.0)), Self($high(self.0, other.0))],)*
                        _ => [self, other],
                    }
                }
            }
            #[inline(always)]
            unsafe fn up(self, bits: usize) -> Self {
                // SAFETY: the processor has the vector's instructions.
                Self(unsafe { $up(self.0, _mm_cvtsi64_si128(bits as i64)) })
            }
            #[inline(always)]
            unsafe fn down(self, bits: usize) -> Self {
                // SAFETY: the processor has the vector's instructions.
                Self(unsafe { $down(self.0, _mm_cvtsi64_si128(bits as i64)) })
            }
            #[inline(always)]
            unsafe fn mixed(self, other: Self, mask: Self) -> Self {
                // SAFETY: the processor has the vector's instructions.
                Self(unsafe { $or($and(mask.0, self.0), $and_not(mask.0, other.0)) })
            }
            #[inline(always)]
            unsafe fn prefetch(at: *const u8) {
                // SAFETY: a prefetch never faults.
                unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
            }
            #[inline(always)]
            unsafe fn prefetch_near(at: *const u8) {
                // SAFETY: a prefetch never faults.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
            }
        };
    }

    /// Such methods of permutations in lanes.
    macro_rules! in_lanes {
        ($shuffle:ident, $add:ident, $set:ident, $or:ident, $blend:ident) => {
            #[inline(always)]
            unsafe fn permute(self, index: Self) -> Self {
                // SAFETY: the processor has the vector's instruction.
                Self(unsafe { $shuffle(self.0, index.0) })
            }
            #[inline(always)]
            unsafe fn permute2(self, other: Self, index: Self) -> Self {
                // SAFETY: the processor has the vector's instructions. Indices of the other window
                // get a top bit, which gives 0.
                unsafe {
                    let low = $shuffle(self.0, $add(index.0, $set(0x70)));
                    let high = $shuffle(other.0, $add(index.0, $set(-0x10)));
                    Self($or(low, high))
                }
            }
            #[inline(always)]
            unsafe fn over(self, under: Self, index: Self) -> Self {
                // SAFETY: the processor has the vector's instruction.
                Self(unsafe { $blend(self.0, under.0, index.0) })
            }
        };
    }

    impl Vector for X16 {
        const BYTES: usize = 16;
        const WINDOW: usize = 16;

        alike!(
            _mm_loadu_si128, _mm_storeu_si128, _mm_stream_si128,
            _mm_sll_epi64 _mm_srl_epi64 _mm_and_si128 _mm_andnot_si128 _mm_or_si128,
            1 _mm_unpacklo_epi8 _mm_unpackhi_epi8, 2 _mm_unpacklo_epi16 _mm_unpackhi_epi16,
            4 _mm_unpacklo_epi32 _mm_unpackhi_epi32, 8 _mm_unpacklo_epi64 _mm_unpackhi_epi64
        );
        in_lanes!(_mm_shuffle_epi8, _mm_add_epi8, _mm_set1_epi8, _mm_or_si128, _mm_blendv_epi8);
    }

    impl X32 {
        /// Two lanes.
        #[inline(always)]
        unsafe fn of(at: *const u8, [a, b]: [isize; 2]) -> X32 {
            // SAFETY: 16 bytes are readable at both offsets.
            unsafe {
                let (a, b) = (at.wrapping_offset(a), at.wrapping_offset(b));
                let low = _mm256_castsi128_si256(_mm_loadu_si128(a.cast()));
                X32(_mm256_inserti128_si256::<1>(low, _mm_loadu_si128(b.cast())))
            }
        }
    }

    impl Vector for X32 {
        const BYTES: usize = 32;
        const WINDOW: usize = 16;

        alike!(
            _mm256_loadu_si256, _mm256_storeu_si256, _mm256_stream_si256,
            _mm256_sll_epi64 _mm256_srl_epi64
            _mm256_and_si256 _mm256_andnot_si256 _mm256_or_si256,
            1 _mm256_unpacklo_epi8 _mm256_unpackhi_epi8,
            2 _mm256_unpacklo_epi16 _mm256_unpackhi_epi16,
            4 _mm256_unpacklo_epi32 _mm256_unpackhi_epi32,
            8 _mm256_unpacklo_epi64 _mm256_unpackhi_epi64
        );
        #[inline(always)]
        unsafe fn load_lanes(at: *const u8, rows: *const isize, apart: usize) -> Self {
            // SAFETY: 16 bytes are readable at each of two offsets, `apart` places apart in `rows`.
            unsafe { X32::of(at, [*rows, *rows.add(apart)]) }
        }
        #[inline(always)]
        unsafe fn load_square(at: *const u8, rows: *const isize, apart: usize) -> [Self; 4] {
            // SAFETY: 32 bytes are readable at each of two offsets, `apart` places apart in `rows`.
            unsafe {
                let row = |i: usize| Self::load(at.wrapping_offset(*rows.add(i * apart))).0;
                let (a, b) = (row(0), row(1));
                let low = X32(_mm256_permute2x128_si256::<0x20>(a, b));
                let high = X32(_mm256_permute2x128_si256::<0x31>(a, b));
                [low, high, low, high]
            }
        }
        #[inline(always)]
        unsafe fn load_windows(at: *const u8, offsets: *const isize) -> Self {
            // SAFETY: there are two offsets, and 16 bytes are readable at each.
            unsafe { X32::of(at, *offsets.cast()) }
        }
        in_lanes!(
            _mm256_shuffle_epi8,
            _mm256_add_epi8,
            _mm256_set1_epi8,
            _mm256_or_si256,
            _mm256_blendv_epi8
        );
    }

    impl<const WINDOW: usize> X64<WINDOW> {
        /// Four lanes.
        #[inline(always)]
        unsafe fn of(at: *const u8, [a, b, c, d]: [isize; 4]) -> Self {
            // SAFETY: 16 bytes are readable at each offset.
            unsafe {
                let (X32(low), X32(high)) = (X32::of(at, [a, b]), X32::of(at, [c, d]));
                X64(_mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high))
            }
        }
    }

    impl<const WINDOW: usize> Vector for X64<WINDOW> {
        const BYTES: usize = 64;
        const WINDOW: usize = WINDOW;

        alike!(
            _mm512_loadu_si512, _mm512_storeu_si512,
            _mm512_stream_si512,
            _mm512_sll_epi64 _mm512_srl_epi64
            _mm512_and_si512 _mm512_andnot_si512 _mm512_or_si512,
            1 _mm512_unpacklo_epi8 _mm512_unpackhi_epi8,
            2 _mm512_unpacklo_epi16 _mm512_unpackhi_epi16,
            4 _mm512_unpacklo_epi32 _mm512_unpackhi_epi32,
            8 _mm512_unpacklo_epi64 _mm512_unpackhi_epi64
        );
        #[inline(always)]
        unsafe fn store_some(self, at: *mut u8, mask: u64) {
            // SAFETY: the bytes of the mask are writable; masked bytes are not accessed.
            unsafe { _mm512_mask_storeu_epi8(at.cast(), mask, self.0) }
        }
        #[inline(always)]
        unsafe fn load_lanes(at: *const u8, rows: *const isize, apart: usize) -> Self {
            // SAFETY: 16 bytes are readable at each of four offsets, `apart` places apart in
            // `rows`.
            unsafe {
                let row = |i: usize| *rows.add(i * apart);
                Self::of(at, [row(0), row(1), row(2), row(3)])
            }
        }
        #[inline(always)]
        unsafe fn load_square(at: *const u8, rows: *const isize, apart: usize) -> [Self; 4] {
            // SAFETY: 64 bytes are readable at each of four offsets, `apart` places apart in
            // `rows`.
            unsafe {
                let row = |i: usize| Self::load(at.wrapping_offset(*rows.add(i * apart))).0;
                let (a, b, c, d) = (row(0), row(1), row(2), row(3));
                // The lower halves of two rows, and the upper ones; then every other lane of these.
                let low = _mm512_shuffle_i64x2::<0x44>(a, b);
                let low_2 = _mm512_shuffle_i64x2::<0x44>(c, d);
                let high = _mm512_shuffle_i64x2::<0xee>(a, b);
                let high_2 = _mm512_shuffle_i64x2::<0xee>(c, d);
                [
                    X64(_mm512_shuffle_i64x2::<0x88>(low, low_2)),
                    X64(_mm512_shuffle_i64x2::<0xdd>(low, low_2)),
                    X64(_mm512_shuffle_i64x2::<0x88>(high, high_2)),
                    X64(_mm512_shuffle_i64x2::<0xdd>(high, high_2)),
                ]
            }
        }
        #[inline(always)]
        unsafe fn load_windows(at: *const u8, offsets: *const isize) -> Self {
            // SAFETY: a window is readable at the one offset, or at each of four.
            unsafe {
                if WINDOW == 64 {
                    return Self::load(at.wrapping_offset(*offsets));
                }
                Self::of(at, *offsets.cast())
            }
        }
        #[inline(always)]
        unsafe fn permute(self, index: Self) -> Self {
            // SAFETY: the processor has the vector's instructions.
            unsafe {
                if WINDOW == 64 {
                    let keep = !_mm512_movepi8_mask(index.0);
                    return X64(_mm512_maskz_permutexvar_epi8(keep, index.0, self.0));
                }
                X64(_mm512_shuffle_epi8(self.0, index.0))
            }
        }
        #[inline(always)]
        unsafe fn permute2(self, other: Self, index: Self) -> Self {
            // SAFETY: the processor has the vector's instructions. In lanes, indices of the other
            // window get a top bit, which gives 0.
            unsafe {
                if WINDOW == 64 {
                    return X64(_mm512_permutex2var_epi8(self.0, index.0, other.0));
                }
                let low = _mm512_add_epi8(index.0, _mm512_set1_epi8(0x70));
                let high = _mm512_add_epi8(index.0, _mm512_set1_epi8(-0x10));
                let (low, high) =
                    (_mm512_shuffle_epi8(self.0, low), _mm512_shuffle_epi8(other.0, high));
                X64(_mm512_or_si512(low, high))
            }
        }
        #[inline(always)]
        unsafe fn over(self, under: Self, index: Self) -> Self {
            // SAFETY: the processor has the vector's instructions.
            unsafe { X64(_mm512_mask_blend_epi8(_mm512_movepi8_mask(index.0), self.0, under.0)) }
        }
    }

    unsafe fn fence() {
        // SAFETY: every processor with these vectors has the instruction.
        unsafe { _mm_sfence() }
    }

    /// Transposes of narrow blocks, at each level.
    #[target_feature(enable = "avx2,bmi2")]
    unsafe fn narrow(item: usize, block: &tile::Block) {
        // SAFETY: the block's elements are readable or writable; the processor has the level's
        // instructions.
        unsafe { tile::narrow::<X16>(item, block) }
    }

    wrappers!(avx2 [target_feature(enable = "avx2,bmi2")] [] X32, X32, narrow, X32, X32);
    wrappers!(
        avx512 [target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512vl")]
        [target_feature(enable = "avx512vbmi")] X32, X64<16>, narrow, X64<64>, X64<16>
    );

    pub(crate) static AVX2: Kernels = table!(Level::Avx2, avx2, avx2, 16, fence);
    /// Without VBMI: only shuffles and bits need its instructions, and those of AVX2 take their
    /// place.
    pub(crate) static AVX512: Kernels = table!(Level::Avx512, avx512, avx2, 16, fence);
    pub(crate) static VBMI: Kernels = table!(Level::Vbmi, avx512, avx512, 64, fence);
}

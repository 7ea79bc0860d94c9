//! The most profitable loops, vectorized: eight or four elements at a time.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]

#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::round::Target;
use super::simd::Blocks;
use super::steps::{self, Params};

macro_rules! vectors {
    ($($name:ident: $from:ty => $to:ty, |$x:ident, $p:ident| $body:expr;)*) => {
        /// The AVX2 loops of steps.
        pub static VECTORS: &[Blocks] = &[$({
            #[target_feature(enable = "avx2")]
            unsafe fn run(src: *const u8, dst: *mut u8, n: usize, $p: &Params) {
                let $p = &{ *$p }; // in registers
                let (src, dst) = (src.cast::<$from>(), dst.cast::<$to>());
                for i in 0..n {
                    // SAFETY: block `i` of `n` is readable at `src`, of any alignment; vectors are
                    // plain bytes.
                    let $x: $from = unsafe { src.add(i).read_unaligned() };
                    let wide: $to = $body;
                    // SAFETY: block `i` of `n` is writable at `dst`, of any alignment; the
                    // processor has AVX2.
                    unsafe { dst.add(i).write_unaligned(wide) };
                }
            }
            let sizes = [size_of::<$from>().ilog2() as u8, size_of::<$to>().ilog2() as u8];
            Blocks { of: steps::$name.run, run, sizes }
        }),*];
    };
}

vectors! {
    F32_TO_SMALL8: __m256i => u64, |x, p| low8(round(x, &p.target));
    F32_TO_SMALL16: __m256i => __m128i, |x, p| low16(round(x, &p.target));
    F16_TO_F32: __m128i => __m256i, |x, _p| f16_to_f32(x);
    BF16_TO_F32: __m128i => __m256i, |x, _p| _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(x));
    F32_TO_F64: __m128 => __m256d, |x, _p| _mm256_cvtps_pd(x);
    F64_TO_F32: __m256d => __m128, |x, _p| _mm256_cvtpd_ps(x);
    F64_TO_F32_ODD: __m256d => __m128i, |x, _p| f64_to_f32_odd(x);
    INT8_TO_INT32: u64 => __m256i, |x, p| {
        let shift = _mm_cvtsi32_si128(24 + (p.unused & 7) as i32);
        _mm256_sra_epi32(_mm256_sll_epi32(bytes(x), shift), shift)
    };
    UINT8_TO_INT32: u64 => __m256i, |x, p| {
        let x = _mm256_and_si256(bytes(x), _mm256_set1_epi32(0xff >> (p.unused & 7)));
        _mm256_min_epu32(x, _mm256_set1_epi32(p.most as i32))
    };
    INT16_TO_INT32: __m128i => __m256i, |x, _p| _mm256_cvtepi16_epi32(x);
    UINT16_TO_INT32: __m128i => __m256i, |x, _p| _mm256_cvtepu16_epi32(x);
    INT32_TO_INT64: __m128i => __m256i, |x, p| {
        _mm256_and_si256(_mm256_cvtepi32_epi64(x), _mm256_set1_epi64x(p.extended))
    };
    INT8_TO_INT8: __m256i => __m256i, |x, p| {
        let x = _mm256_min_epu8(x, _mm256_set1_epi8(p.most as i8));
        _mm256_and_si256(x, _mm256_set1_epi8(p.mask as i8))
    };
    INT8_TO_INT16: __m128i => __m256i, |x, _p| _mm256_cvtepi8_epi16(x);
    UINT8_TO_INT16: __m128i => __m256i, |x, p| {
        _mm256_min_epu16(_mm256_cvtepu8_epi16(x), _mm256_set1_epi16(p.most as i16))
    };
    INT16_TO_INT8: __m256i => __m128i, |x, p| {
        let x = _mm256_min_epu16(x, _mm256_set1_epi16(p.most as i16));
        let x = _mm256_and_si256(x, _mm256_set1_epi16(p.mask.into()));
        _mm_packus_epi16(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x))
    };
    UINT32_TO_F32: __m256i => __m256, |x, _p| {
        let high = _mm256_cvtepi32_ps(_mm256_srli_epi32::<16>(x));
        let low = _mm256_cvtepi32_ps(_mm256_and_si256(x, _mm256_set1_epi32(0xffff)));
        // Both are exact, so the sum is rounded once.
        _mm256_add_ps(_mm256_mul_ps(high, _mm256_set1_ps(65_536.0)), low)
    };
    F32_TO_INT32: __m256 => __m256i, |x, p| f32_to_int32(x, p);
    F32_TO_UINT32: __m256 => __m256i, |x, _p| f32_to_uint32(x);
    F64_TO_UINT32: __m256d => __m128i, |x, _p| {
        let x = _mm256_max_pd(x, _mm256_setzero_pd()); // 0 for NaN
        let x = _mm256_min_pd(x, _mm256_set1_pd(f64::from(u32::MAX)));
        let whole = _mm256_round_pd::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(x);
        even32(_mm256_castpd_si256(_mm256_add_pd(whole, _mm256_set1_pd(MAGIC))))
    };
    INT32_TO_8: __m256i => u64, |x, p| {
        let x = _mm256_min_epu32(x, _mm256_set1_epi32(p.most as i32));
        low8(_mm256_and_si256(x, _mm256_set1_epi32(p.mask.into())))
    };
    INT32_TO_16: __m256i => __m128i, |x, _p| {
        low16(_mm256_and_si256(x, _mm256_set1_epi32(0xffff)))
    };
    INT64_TO_INT32: __m256i => __m128i, |x, _p| even32(x);
    INT64_TO_ANY32: __m256i => __m128i, |x, _p| {
        even32(_mm256_or_si256(x, _mm256_srli_epi64::<32>(x)))
    };
    INT32_TO_F32: __m256i => __m256, |x, _p| _mm256_cvtepi32_ps(x);
    INT32_TO_F64: __m128i => __m256d, |x, p| {
        // An unsigned one less 2^31 is a signed one.
        let flip = _mm_set1_epi32(i32::from(!p.signed) << 31);
        _mm256_add_pd(_mm256_cvtepi32_pd(_mm_xor_si128(x, flip)), _mm256_set1_pd(p.flipped))
    };
    F32_TO_BOOL: __m256 => u64, |x, _p| {
        let not_zero = _mm256_cmp_ps::<_CMP_NEQ_UQ>(x, _mm256_setzero_ps());
        low8(_mm256_srli_epi32::<31>(_mm256_castps_si256(not_zero)))
    };
    INT64_TO_F64: __m256i => __m256d, |x, p| int64_to_f64(x, p);
    F64_TO_INT64: __m256d => __m256i, |x, p| f64_to_int64(x, p);
    F64_TO_INT32: __m256d => __m128i, |x, p| f64_to_int32(x, p);
}

/// [`Target::round`].
#[target_feature(enable = "avx2")]
#[inline]
fn round(x: __m256i, target: &Target) -> __m256i {
    let all = |value: u32| _mm256_set1_epi32(value as i32);
    let blend = |a, b, mask| _mm256_blendv_epi8(a, b, mask);
    let shift = _mm_cvtsi32_si128(target.shift as i32);
    let magnitude = _mm256_and_si256(x, all(0x7fff_ffff));
    let last = _mm256_and_si256(_mm256_srl_epi32(magnitude, shift), all(1));
    let tie = _mm256_add_epi32(last, all((1 << (target.shift & 31) >> 1) - 1));
    let normal = _mm256_srl_epi32(_mm256_add_epi32(magnitude, tie), shift);
    let normal = _mm256_sub_epi32(normal, all(target.rebias));
    let ruler = all(target.ruler.to_bits());
    let measured = _mm256_add_ps(_mm256_castsi256_ps(magnitude), _mm256_castsi256_ps(ruler));
    let subnormal = _mm256_sub_epi32(_mm256_castps_si256(measured), ruler);
    let code = blend(normal, subnormal, _mm256_cmpgt_epi32(all(target.normal_from), magnitude));
    let code = blend(code, all(target.beyond), _mm256_cmpgt_epi32(code, all(target.max)));
    let code = blend(code, all(target.nan), _mm256_cmpgt_epi32(magnitude, all(0x7f80_0000)));
    let sign_shift = _mm_cvtsi32_si128(target.sign_shift as i32);
    let sign = _mm256_sll_epi32(_mm256_srli_epi32::<31>(x), sign_shift);
    let zero = _mm256_cmpeq_epi32(_mm256_and_si256(code, all(target.max)), all(0));
    let unsigned = _mm256_and_si256(zero, all(u32::from(target.one_zero).wrapping_neg()));
    _mm256_xor_si256(code, _mm256_andnot_si256(unsigned, sign))
}

/// The low halves of 8 integers.
#[target_feature(enable = "avx2")]
#[inline]
fn low16(x: __m256i) -> __m128i {
    _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x))
}

/// The low bytes of 8 integers.
#[target_feature(enable = "avx2")]
#[inline]
fn low8(x: __m256i) -> u64 {
    let mut bytes = 0u64;
    let halves = low16(x);
    // SAFETY: 8 bytes are stored, in 8 bytes.
    unsafe { _mm_storel_epi64((&raw mut bytes).cast(), _mm_packus_epi16(halves, halves)) };
    bytes
}

/// Towards zero; values out of range are clamped, here or before.
#[target_feature(enable = "avx2")]
#[inline]
fn f32_to_int32(x: __m256, p: &Params) -> __m256i {
    let number = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_ORD_Q>(x, x));
    let x = _mm256_max_ps(x, _mm256_set1_ps(p.low as f32));
    let x = _mm256_min_ps(x, _mm256_set1_ps(p.high as f32));
    // 2^31, which 2^31 - 1 was rounded to, becomes -2^31, and that 2^31 - 1.
    let large = _mm256_cmp_ps::<_CMP_GE_OQ>(x, _mm256_set1_ps(2_147_483_648.0));
    let whole = _mm256_xor_si256(_mm256_cvttps_epi32(x), _mm256_castps_si256(large));
    _mm256_and_si256(whole, number)
}

#[target_feature(enable = "avx2")]
#[inline]
fn f32_to_uint32(x: __m256) -> __m256i {
    let x = _mm256_max_ps(x, _mm256_setzero_ps()); // 0 for NaN
    let two31 = _mm256_set1_ps(2_147_483_648.0);
    let upper = _mm256_cmp_ps::<_CMP_GE_OQ>(x, two31);
    let too_large = _mm256_cmp_ps::<_CMP_GE_OQ>(x, _mm256_set1_ps(4_294_967_296.0));
    let low = _mm256_cvttps_epi32(_mm256_sub_ps(x, _mm256_and_ps(upper, two31)));
    let high = _mm256_slli_epi32::<31>(_mm256_castps_si256(upper));
    _mm256_or_si256(_mm256_xor_si256(low, high), _mm256_castps_si256(too_large))
}

/// 1.5 * 2^52: the low bits of its sum with an integer are the integer.
const MAGIC: f64 = 6_755_399_441_055_744.0;

/// Towards zero, each half separately.
#[target_feature(enable = "avx2")]
#[inline]
fn f64_to_int64(x: __m256d, p: &Params) -> __m256i {
    let number = _mm256_castpd_si256(_mm256_cmp_pd::<_CMP_ORD_Q>(x, x));
    let too_large = _mm256_cmp_pd::<_CMP_GE_OQ>(x, _mm256_set1_pd(p.high));
    let (all, magic) = (|value: f64| _mm256_set1_pd(value), _mm256_set1_pd(MAGIC));
    let whole = _mm256_round_pd::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(x);
    let whole = _mm256_max_pd(whole, all(p.low));
    let high = _mm256_floor_pd(_mm256_mul_pd(whole, all(1.0 / 4_294_967_296.0)));
    let low = _mm256_sub_pd(whole, _mm256_mul_pd(high, all(4_294_967_296.0)));
    let high = _mm256_castpd_si256(_mm256_add_pd(high, magic));
    let low = _mm256_castpd_si256(_mm256_add_pd(low, magic));
    let both = _mm256_blend_epi32::<0b1010_1010>(low, _mm256_slli_epi64::<32>(high));
    let most = _mm256_set1_epi64x(p.range.1 as i64);
    let both = _mm256_blendv_epi8(both, most, _mm256_castpd_si256(too_large));
    _mm256_and_si256(both, number)
}

/// 8 bytes as integers.
#[target_feature(enable = "avx2")]
#[inline]
fn bytes(x: u64) -> __m256i {
    // SAFETY: 8 bytes are loaded, of 8 bytes.
    _mm256_cvtepu8_epi32(unsafe { _mm_loadl_epi64((&raw const x).cast()) })
}

/// The low halves of 4 integers.
#[target_feature(enable = "avx2")]
#[inline]
fn even32(x: __m256i) -> __m128i {
    let order = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(x, order))
}

#[target_feature(enable = "avx2")]
#[inline]
fn f16_to_f32(x: __m128i) -> __m256i {
    let all = |value: i32| _mm256_set1_epi32(value);
    let rebias = all((127 - 15) << 23);
    let x = _mm256_cvtepu16_epi32(x);
    let magnitude = _mm256_and_si256(x, all(0x7fff));
    let normal = _mm256_add_epi32(_mm256_slli_epi32::<13>(magnitude), rebias);
    let not_finite = _mm256_and_si256(_mm256_cmpgt_epi32(magnitude, all(0x7bff)), rebias);
    let scale = _mm256_set1_ps(1.0 / 16_777_216.0);
    let subnormal = _mm256_castps_si256(_mm256_mul_ps(_mm256_cvtepi32_ps(magnitude), scale));
    let small = _mm256_cmpgt_epi32(all(0x400), magnitude);
    let bits = _mm256_blendv_epi8(_mm256_add_epi32(normal, not_finite), subnormal, small);
    let sign = _mm256_slli_epi32::<31>(_mm256_srli_epi32::<15>(x));
    _mm256_or_si256(bits, sign)
}

#[target_feature(enable = "avx2")]
#[inline]
fn f64_to_f32_odd(x: __m256d) -> __m128i {
    let nearest = _mm256_cvtpd_ps(x);
    let bits = _mm_castps_si128(nearest);
    let no_sign = _mm256_castsi256_pd(_mm256_set1_epi64x(i64::MAX));
    let rounded = _mm256_and_pd(_mm256_cvtps_pd(nearest), no_sign);
    let exact = _mm256_and_pd(x, no_sign);
    let down = _mm256_castpd_si256(_mm256_cmp_pd::<_CMP_GT_OQ>(rounded, exact));
    let up = _mm256_castpd_si256(_mm256_cmp_pd::<_CMP_LT_OQ>(rounded, exact));
    // As numbers, a true mask is -1.
    let change = _mm_sub_epi32(even32(down), even32(up));
    let odd = _mm_sub_epi32(_mm_setzero_si128(), _mm_and_si128(bits, _mm_set1_epi32(1)));
    _mm_add_epi32(bits, _mm_andnot_si128(odd, change))
}

/// As the portable one; an exponent above the bits of each half makes it a number.
#[target_feature(enable = "avx2")]
#[inline]
fn int64_to_f64(x: __m256i, p: &Params) -> __m256d {
    let (all, none) = (|value: i64| _mm256_set1_epi64x(value), _mm256_setzero_si256());
    let signed = all(i64::from(p.signed).wrapping_neg());
    let negative = _mm256_and_si256(_mm256_cmpgt_epi64(none, x), signed);
    let magnitude = _mm256_sub_epi64(_mm256_xor_si256(x, negative), negative);
    let short = _mm256_cmpeq_epi64(_mm256_srli_epi64::<53>(magnitude), none);
    let low = _mm256_andnot_si256(short, all(i64::from(p.odd) * 0x7ff));
    let exact = _mm256_cmpeq_epi64(_mm256_and_si256(magnitude, low), none);
    let sticky = _mm256_andnot_si256(exact, all(1 << 11));
    let magnitude = _mm256_or_si256(_mm256_andnot_si256(low, magnitude), sticky);
    let (two52, two84) = (all(0x4330_0000_0000_0000), all(0x4530_0000_0000_0000));
    let high = _mm256_or_si256(_mm256_srli_epi64::<32>(magnitude), two84);
    let low = _mm256_blend_epi32::<0b1010_1010>(magnitude, two52);
    let both = _mm256_set1_pd(f64::from_bits(0x4530_0000_0010_0000)); // 2^84 + 2^52
    let high = _mm256_sub_pd(_mm256_castsi256_pd(high), both);
    let value = _mm256_add_pd(high, _mm256_castsi256_pd(low));
    _mm256_or_pd(value, _mm256_castsi256_pd(_mm256_slli_epi64::<63>(negative)))
}

#[target_feature(enable = "avx2")]
#[inline]
fn f64_to_int32(x: __m256d, p: &Params) -> __m128i {
    let number = _mm256_cmp_pd::<_CMP_ORD_Q>(x, x);
    let x = _mm256_and_pd(x, number);
    let x = _mm256_max_pd(x, _mm256_set1_pd(p.low));
    let x = _mm256_min_pd(x, _mm256_set1_pd(p.high));
    _mm256_cvttpd_epi32(x)
}

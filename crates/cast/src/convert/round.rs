//! Rounding a binary32 to the formats of at most 16 bits, to nearest, ties to even.
//!
//! The binary32 is exact, or was rounded to odd from more bits: with at least 24 - 11 extra bits,
//! double rounding gives the same result as rounding the exact value once.
//!
//! | format | too large, infinite | NaN (sign kept unless stated) | zero |
//! |---|---|---|---|
//! | float16, bfloat16, e3m4, e4m3, e5m2 | infinity | quiet, no payload | signed |
//! | e4m3fn | NaN | 0x7f | signed |
//! | e4m3fnuz, e4m3b11fnuz, e5m2fnuz | NaN | 0x80, no sign | 0 |
//! | e2m3fn, e3m2fn, e2m1fn | largest finite | -0, and of a negative NaN +0 | signed |
//! | e8m0fnu | NaN; so are zero and all negative numbers | 0xff | none |
//!
//! These are the results of ml_dtypes. e8m0 rounds ties up; values below 2^-127 become 2^-127,
//! values between it and 2^-126 become 2^-126.
#![forbid(unsafe_code)]

use crate::float_formats::{FloatFormat, Specials};

/// The rounding parameters of a signed format of at most 16 bits.
#[derive(Clone, Copy)]
pub struct Target {
    /// Mantissa bits of binary32 that the format lacks.
    pub shift: u32,
    /// Difference of the exponent fields, shifted to the field's position.
    pub rebias: u32,
    /// Below this magnitude (as binary32 bits) results are subnormal.
    pub normal_from: u32,
    /// A power of two at which the spacing of binary32 is that of the subnormal results.
    pub ruler: f32,
    /// The largest finite code.
    pub max: u32,
    /// The code of larger values.
    pub beyond: u32,
    /// The code of NaN.
    pub nan: u32,
    /// The bit position of the sign.
    pub sign_shift: u32,
    /// Zero has no sign.
    pub one_zero: bool,
}

const fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

/// A branch-free selection: these branches would be mispredicted.
#[inline(always)]
pub fn either(first: bool, a: u32, b: u32) -> u32 {
    let mask = u32::from(first).wrapping_neg();
    a & mask | b & !mask
}

impl Target {
    /// The parameters of a format.
    pub const fn new(format: &FloatFormat) -> Target {
        let (exponent_bits, mantissa_bits) = (format.exponent_bits, format.mantissa_bits);
        let width = (exponent_bits + mantissa_bits) as u32;
        let all = (1u32 << width) - 1;
        let infinity = all >> mantissa_bits << mantissa_bits;
        let (max, beyond, nan) = match format.specials {
            Specials::Ieee => (infinity - 1, infinity, infinity | 1 << (mantissa_bits - 1)),
            Specials::AllOnes => (all - 1, all, all),
            Specials::MinusZero => (all, all + 1, all + 1),
            Specials::None => (all, all, all + 1),
        };
        let step = 1 - format.bias - mantissa_bits as i32;
        // With the exponent range of binary32, its subnormals are truncated ones of binary32.
        let same_range = format.bias == 127;
        Target {
            shift: 23 - mantissa_bits as u32,
            rebias: ((127 - format.bias) as u32) << mantissa_bits,
            normal_from: if same_range { 0 } else { ((128 - format.bias) as u32) << 23 },
            ruler: power_of_two(step + 23),
            max,
            beyond,
            nan,
            sign_shift: width,
            one_zero: matches!(format.specials, Specials::MinusZero),
        }
    }

    /// The code for a binary32.
    #[inline(always)]
    pub fn round(&self, bits: u32) -> u32 {
        const INFINITY: u32 = 0x7f80_0000;
        let shift = self.shift & 31;
        let magnitude = bits & 0x7fff_ffff;
        let tie = (magnitude >> shift & 1) + ((1 << shift >> 1) - 1);
        let normal = ((magnitude + tie) >> shift).wrapping_sub(self.rebias);
        let measured = (f32::from_bits(magnitude) + self.ruler).to_bits();
        let subnormal = measured.wrapping_sub(self.ruler.to_bits());
        // Signed comparisons: baseline vector instructions have no unsigned ones.
        let small = (magnitude as i32) < self.normal_from as i32;
        let code = either(small, subnormal, normal);
        let code = either(code as i32 > self.max as i32, self.beyond, code);
        let code = either(magnitude as i32 > INFINITY as i32, self.nan, code);
        let sign = (bits >> 31) << (self.sign_shift & 31);
        code ^ either(self.one_zero & (code & self.max == 0), 0, sign)
    }
}

/// The e8m0 code for a binary32; when saturating, values that are too large become 2^127.
#[inline(always)]
pub fn octave(bits: u32, saturate: bool) -> u32 {
    const NAN: u32 = 0xff;
    const TOO_LARGE: u32 = 0x7f40_0000;
    if saturate && (TOO_LARGE..=0x7f80_0000).contains(&bits) {
        return NAN - 1;
    }
    // Rounds up from the midpoint; above 2^-127, which is subnormal here, always, as ml_dtypes
    // does.
    let code = if bits < 0x0080_0000 {
        u32::from(bits > 0x0040_0000)
    } else {
        bits.wrapping_add(0x0040_0000) >> 23
    };
    if bits == 0 || bits >= 0x7f80_0000 { NAN } else { code }
}

//! Rounding a binary32 to the formats of at most 16 bits, to nearest, ties to even.
//!
//! The binary32 is the exact value, or was rounded to odd from more bits: with at least 24 - 11
//! bits to spare, rounding it again gives what one rounding of the exact value would.
//!
//! | format | too large, infinite | NaN (sign kept unless said) | zero |
//! |---|---|---|---|
//! | float16, bfloat16, e3m4, e4m3, e5m2 | infinity | quiet, no payload | signed |
//! | e4m3fn | NaN | 0x7f | signed |
//! | e4m3fnuz, e4m3b11fnuz, e5m2fnuz | NaN | 0x80, no sign | 0 |
//! | e2m3fn, e3m2fn, e2m1fn | largest finite | -0, and of a negative NaN +0 | signed |
//! | e8m0fnu | NaN; so are zero and all negative numbers | 0xff | none |
//!
//! These are the answers of ml_dtypes. e8m0 rounds ties up; what is below 2^-127 to that, and what
//! is between it and 2^-126 to 2^-126.
#![forbid(unsafe_code)]

use crate::float_formats::{FloatFormat, Specials};

/// A signed format of at most 16 bits, in the numbers that rounding needs.
#[derive(Clone, Copy)]
pub struct Target {
    /// Mantissa bits of binary32 that the format does not have.
    pub shift: u32,
    /// What the exponent field differs by, at its place in the code.
    pub rebias: u32,
    /// Below this magnitude (as binary32 bits) results are subnormal.
    pub normal_from: u32,
    /// A power of two whose binary32 neighbours are as far apart as the subnormal results.
    pub ruler: f32,
    /// The largest finite code.
    pub max: u32,
    /// The code of what is larger.
    pub beyond: u32,
    /// The code of NaN.
    pub nan: u32,
    /// The place of the sign.
    pub sign_shift: u32,
    /// Magnitude codes of 0 take no sign.
    pub one_zero: bool,
}

const fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

/// A choice without a jump: these are taken too evenly to be predicted.
#[inline(always)]
pub fn either(first: bool, a: u32, b: u32) -> u32 {
    let mask = u32::from(first).wrapping_neg();
    a & mask | b & !mask
}

impl Target {
    /// The numbers of a format.
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
        // With the exponent range of binary32 its subnormals are ours, shortened.
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
        // Signed comparisons: the baseline's vectors have no others.
        let small = (magnitude as i32) < self.normal_from as i32;
        let code = either(small, subnormal, normal);
        let code = either(code as i32 > self.max as i32, self.beyond, code);
        let code = either(magnitude as i32 > INFINITY as i32, self.nan, code);
        let sign = (bits >> 31) << (self.sign_shift & 31);
        code ^ either(self.one_zero & (code & self.max == 0), 0, sign)
    }
}

/// The e8m0 code for a binary32; if it is to saturate, what is too large is 2^127.
#[inline(always)]
pub fn octave(bits: u32, saturate: bool) -> u32 {
    const NAN: u32 = 0xff;
    const TOO_LARGE: u32 = 0x7f40_0000;
    if saturate && (TOO_LARGE..=0x7f80_0000).contains(&bits) {
        return NAN - 1;
    }
    // From half of the way on up; what is above 2^-127, which is subnormal here, at once, as there.
    let code = if bits < 0x0080_0000 {
        u32::from(bits > 0x0040_0000)
    } else {
        bits.wrapping_add(0x0040_0000) >> 23
    };
    if bits == 0 || bits >= 0x7f80_0000 { NAN } else { code }
}

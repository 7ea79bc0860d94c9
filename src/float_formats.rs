//! The binary floating-point formats of DLPack as one table, and the exact value of their bits.
//!
//! Every format up to 64 bits is sign, exponent field, mantissa field; what differs is the width
//! of the fields, the bias, and which patterns are not numbers. The formats below 16 bits are
//! those of the OCP specifications and of ml_dtypes.
#![forbid(unsafe_code)]

use crate::abi::DLDataTypeCode::*;

/// Which bit patterns are not finite numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Specials {
    /// IEEE 754: the largest exponent field holds infinities and NaNs.
    Ieee,
    /// All exponent and mantissa bits set is NaN; no infinities ("fn").
    AllOnes,
    /// Minus zero is the only NaN; no infinities, no negative zero ("fnuz").
    MinusZero,
    /// Every pattern is a finite number.
    None,
}

/// The layout of one format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FloatFormat {
    /// Whether the top bit is a sign. Without it there is no zero either: field 0 of the exponent
    /// is an ordinary power of two (e8m0).
    pub signed: bool,
    /// Width of the exponent field.
    pub exponent_bits: u8,
    /// Width of the mantissa field.
    pub mantissa_bits: u8,
    /// What is subtracted from the exponent field.
    pub bias: i32,
    /// What is not finite.
    pub specials: Specials,
}

const fn float(exponent_bits: u8, mantissa_bits: u8, bias: i32, specials: Specials) -> FloatFormat {
    FloatFormat { signed: true, exponent_bits, mantissa_bits, bias, specials }
}

/// IEEE 754 binary16.
pub static FLOAT16: FloatFormat = float(5, 10, 15, Specials::Ieee);
/// IEEE 754 binary32.
pub static FLOAT32: FloatFormat = float(8, 23, 127, Specials::Ieee);
/// IEEE 754 binary64.
pub static FLOAT64: FloatFormat = float(11, 52, 1023, Specials::Ieee);
/// bfloat16: the upper half of a binary32.
pub static BFLOAT16: FloatFormat = float(8, 7, 127, Specials::Ieee);

/// The formats of the codes from `kDLFloat8_e3m4` on, in the order of the codes.
static SMALL: [FloatFormat; 11] = [
    float(3, 4, 3, Specials::Ieee),
    float(4, 3, 7, Specials::Ieee),
    float(4, 3, 11, Specials::MinusZero),
    float(4, 3, 7, Specials::AllOnes),
    float(4, 3, 8, Specials::MinusZero),
    float(5, 2, 15, Specials::Ieee),
    float(5, 2, 16, Specials::MinusZero),
    FloatFormat { signed: false, ..float(8, 0, 127, Specials::AllOnes) },
    float(2, 3, 1, Specials::None),
    float(3, 2, 3, Specials::None),
    float(2, 1, 1, Specials::None),
];

/// The format of a real floating-point dtype; of a complex one ask with code `kDLFloat` and half
/// the bits.
pub fn of(code: u8, bits: u8) -> Option<&'static FloatFormat> {
    const FLOAT: u8 = kDLFloat as u8;
    const BFLOAT: u8 = kDLBfloat as u8;
    let format = match (code, bits) {
        (FLOAT, 16) => &FLOAT16,
        (FLOAT, 32) => &FLOAT32,
        (FLOAT, 64) => &FLOAT64,
        (BFLOAT, 16) => &BFLOAT16,
        _ => SMALL.get(usize::from(code).checked_sub(kDLFloat8_e3m4 as usize)?)?,
    };
    (format.width() == u32::from(bits)).then_some(format)
}

/// The exact value of some bits, or NaN if they are none of a format of [`of`].
pub fn decode(code: u8, bits: u8, raw: u64) -> f64 {
    of(code, bits).map_or(f64::NAN, |format| format.parts(raw).value())
}

/// What kind of value it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// A number.
    Finite,
    /// An infinity.
    Infinite,
    /// Not a number.
    Nan,
}

/// A value taken apart: `mantissa * 2^exponent` if finite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parts {
    /// The sign bit; a NaN keeps it.
    pub negative: bool,
    /// What kind of value it is.
    pub class: Class,
    /// Whole number, the hidden bit included; 0 for zero.
    pub mantissa: u64,
    /// Power of two.
    pub exponent: i32,
    /// The neighbour below is half as far away as the one above: a power of two does that.
    pub closer_below: bool,
}

impl FloatFormat {
    /// Bits in all.
    pub const fn width(&self) -> u32 {
        self.signed as u32 + self.exponent_bits as u32 + self.mantissa_bits as u32
    }

    /// Takes the low [`FloatFormat::width`] bits apart; higher ones are ignored.
    pub fn parts(&self, raw: u64) -> Parts {
        let width = u32::from(self.mantissa_bits);
        let most = mask(self.exponent_bits);
        let fraction = raw & mask(self.mantissa_bits);
        let field = (raw >> width) & most;
        let negative = self.signed && raw >> (self.width() - 1) & 1 != 0;
        let class = match self.specials {
            Specials::Ieee if field == most && fraction == 0 => Class::Infinite,
            Specials::Ieee if field == most => Class::Nan,
            Specials::AllOnes if field == most && fraction == mask(self.mantissa_bits) => {
                Class::Nan
            }
            Specials::MinusZero if negative && field == 0 && fraction == 0 => Class::Nan,
            _ => Class::Finite,
        };
        let subnormal = field == 0 && self.signed;
        let hidden = if subnormal { 0 } else { 1 << width };
        let power = if subnormal { 1 } else { field as i32 };
        Parts {
            negative,
            class,
            mantissa: hidden | fraction,
            exponent: power - self.bias - width as i32,
            closer_below: field > 1 && fraction == 0,
        }
    }
}

impl Parts {
    /// The value. Exact for every format up to binary64.
    pub fn value(&self) -> f64 {
        let magnitude = match self.class {
            Class::Nan => return f64::NAN,
            Class::Infinite => f64::INFINITY,
            Class::Finite => {
                // In two steps: 2^-1074 has no reciprocal of its own kind.
                let half = self.exponent / 2;
                self.mantissa as f64 * power_of_two(half) * power_of_two(self.exponent - half)
            }
        };
        if self.negative { -magnitude } else { magnitude }
    }
}

const fn mask(bits: u8) -> u64 {
    (1 << bits) - 1
}

/// 2 to the `exponent`, for -1022 to 1023.
const fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

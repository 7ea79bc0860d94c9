//! The binary floating-point formats of DLPack, and the exact value of their bits.
//!
//! Every format up to 64 bits is sign, exponent field, mantissa field; what differs is the width
//! of the fields, the bias, and which patterns are not numbers. The formats below 16 bits are
//! those of the OCP specifications and of ml_dtypes.
#![forbid(unsafe_code)]

use crate::dtype;

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

/// A signed format.
pub const fn float(
    exponent_bits: u8,
    mantissa_bits: u8,
    bias: i32,
    specials: Specials,
) -> FloatFormat {
    FloatFormat { signed: true, exponent_bits, mantissa_bits, bias, specials }
}

/// IEEE 754 binary16.
pub const FLOAT16: FloatFormat = float(5, 10, 15, Specials::Ieee);
/// IEEE 754 binary32.
pub const FLOAT32: FloatFormat = float(8, 23, 127, Specials::Ieee);
/// IEEE 754 binary64.
pub const FLOAT64: FloatFormat = float(11, 52, 1023, Specials::Ieee);
/// bfloat16: the upper half of a binary32.
pub const BFLOAT16: FloatFormat = float(8, 7, 127, Specials::Ieee);

/// The format of the numbers of a floating-point dtype: of a complex one, that of both parts.
pub fn of(code: u8, bits: u8) -> Option<&'static FloatFormat> {
    let kind = dtype::kind(code)?;
    kind.floats.iter().find(|format| format.width() * u32::from(kind.parts) == u32::from(bits))
}

/// The exact value of a number's bits, or NaN if the dtype has no format of [`of`]. A NaN of
/// binary64 keeps all its bits.
pub fn decode(code: u8, bits: u8, raw: u64) -> f64 {
    match of(code, bits) {
        Some(format) if *format == FLOAT64 => f64::from_bits(raw),
        Some(format) => format.parts(raw).value(),
        None => f64::NAN,
    }
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
        }
    }
}

impl Parts {
    /// The value. Exact for every format up to binary64, whatever the caller's rounding, flushing
    /// and traps are: nothing is computed in floating point.
    pub fn value(&self) -> f64 {
        f64::from_bits(self.place(&FLOAT64))
    }

    /// The bits of the same value in a format of IEEE 754 that has it: a wider one than its own, or
    /// the same. A NaN becomes the format's quiet one.
    pub fn place(&self, format: &FloatFormat) -> u64 {
        let width = u32::from(format.mantissa_bits);
        let most = mask(format.exponent_bits) << width;
        let magnitude = match self.class {
            Class::Nan => most | 1 << (width - 1),
            Class::Infinite => most,
            Class::Finite if self.mantissa == 0 => 0,
            Class::Finite => {
                let top = self.mantissa.ilog2() as i32;
                match top + self.exponent + format.bias {
                    // The field counts from one below, since the hidden bit adds one.
                    field @ 1.. => {
                        ((field as u64 - 1) << width) + (self.mantissa << (width - top as u32))
                    }
                    _ => self.mantissa << (self.exponent + format.bias + width as i32 - 1),
                }
            }
        };
        magnitude | u64::from(self.negative) << (format.width() - 1)
    }
}

const fn mask(bits: u8) -> u64 {
    (1 << bits) - 1
}

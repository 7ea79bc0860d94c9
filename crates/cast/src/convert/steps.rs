//! The loops: each converts a run of elements from one representation to another.
//!
//! Between load and store an element is wide: an `i32`, an `i64` (or `u64` bits), an `f32` that is
//! exact or rounded to odd, or an `f64` rounded in the same way. Rounding to odd (the last bit is
//! set if the result is inexact) makes a later rounding to nearest correct, as if it were the only
//! one.
#![forbid(unsafe_code)]

use super::round::{Target, either, octave};
use crate::float_formats::{FLOAT32, FloatFormat};

/// The parameters of one conversion's steps.
#[derive(Clone, Copy)]
pub struct Params<'a> {
    /// Unused bits of a source integer's byte.
    pub unused: u32,
    /// Whether the source integer is signed.
    pub signed: bool,
    /// Whether a 64-bit integer is rounded to odd when converted to `f64`, else to nearest.
    pub odd: bool,
    /// The bits of a source integer of 32 that are those of the 64 it is extended to.
    pub extended: i64,
    /// Added to a source integer of 32 bits whose highest bit was flipped, if it is unsigned.
    pub flipped: f64,
    /// The largest integer, as a bit pattern: 1 if either type is bool.
    pub most: u32,
    /// Bits of a destination integer in its lowest byte.
    pub mask: u8,
    /// Minimum of the destination integer.
    pub low: f64,
    /// Maximum of the destination integer, rounded to nearest.
    pub high: f64,
    /// The format of a one-byte source float.
    pub source: Option<&'static FloatFormat>,
    /// Rounding to a destination float of at most 16 bits.
    pub target: Target,
    /// Whether values that are too large become the largest finite value.
    pub saturate: bool,
    /// Minimum and maximum of the destination integer, exact, for integers.
    pub range: (i64, u64),
    /// The values that replace one-byte sources.
    pub table: Option<&'a Table>,
}

/// Converts a run of elements, unaligned on both sides.
pub type Run = fn(&[u8], &mut [u8], &Params);

/// One loop and the size of its output elements.
#[derive(Clone, Copy)]
pub struct Step {
    /// The loop.
    pub run: Run,
    /// Bytes of an output element.
    pub nbytes: usize,
}

#[inline(always)]
fn map<const A: usize, const B: usize>(src: &[u8], dst: &mut [u8], f: impl Fn([u8; A]) -> [u8; B]) {
    for (to, from) in dst.as_chunks_mut().0.iter_mut().zip(src.as_chunks().0) {
        *to = f(*from);
    }
}

macro_rules! steps {
    ($($(#[$doc:meta])* $name:ident: $from:ty => $to:ty, |$x:ident, $p:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        pub const $name: Step = {
            fn run(src: &[u8], dst: &mut [u8], $p: &Params) {
                let _ = $p;
                map(src, dst, |bytes| {
                    let $x = <$from>::from_ne_bytes(bytes);
                    let wide: $to = $body;
                    wide.to_ne_bytes()
                });
            }
            Step { run, nbytes: size_of::<$to>() }
        };
    )*};
}

steps! {
    /// A signed integer of up to 8 bits.
    INT8_TO_INT32: u8 => i32, |x, p| i32::from((x << (p.unused & 7)) as i8 >> (p.unused & 7));
    /// An unsigned integer of up to 8 bits, or bool.
    UINT8_TO_INT32: u8 => u32, |x, p| u32::from(x & 0xff >> (p.unused & 7)).min(p.most);
    /// Sign extension.
    INT16_TO_INT32: i16 => i32, |x, _p| i32::from(x);
    /// Zero extension.
    UINT16_TO_INT32: u16 => i32, |x, _p| i32::from(x);
    /// Sign extension, or zero extension.
    INT32_TO_INT64: i32 => i64, |x, p| i64::from(x) & p.extended;

    /// The low bits, or whether it is not 0.
    INT8_TO_INT8: u8 => u8, |x, p| x.min(p.most as u8) & p.mask;
    /// Sign extension.
    INT8_TO_INT16: i8 => i16, |x, _p| i16::from(x);
    /// Zero extension, or bool.
    UINT8_TO_INT16: u8 => u16, |x, p| u16::from(x).min(p.most as u16);
    /// The low bits, or whether it is not 0.
    INT16_TO_INT8: u16 => u8, |x, p| x.min(p.most as u16) as u8 & p.mask;

    /// The low bits, or whether it is not 0.
    INT32_TO_8: u32 => u8, |x, p| x.min(p.most) as u8 & p.mask;
    /// Two's complement, the low bits.
    INT32_TO_16: i32 => u16, |x, _p| x as u16;
    /// Two's complement, the low bits.
    INT64_TO_INT32: i64 => i32, |x, _p| x as i32;
    /// Clamped to the destination's range; then the low bits.
    INT64_WITHIN_32: i64 => i32, |x, p| within(x, p) as i32;
    /// Clamped to the destination's range.
    INT64_WITHIN: i64 => i64, |x, p| within(x, p);
    /// A value that is 0 only for 0.
    INT64_TO_ANY32: i64 => i32, |x, _p| x as i32 | (x >> 32) as i32;

    /// Rounded to nearest.
    INT32_TO_F32: i32 => f32, |x, _p| x as f32;
    /// Rounded to nearest.
    UINT32_TO_F32: u32 => f32, |x, _p| x as f32;
    /// Exact.
    INT32_TO_F64: i32 => f64, |x, p| f64::from(x ^ i32::from(!p.signed) << 31) + p.flipped;
    /// An integer of 64 bits, rounded to nearest or to odd.
    INT64_TO_F64: i64 => f64, |x, p| int64_to_f64(x, p);

    /// IEEE 754 binary16.
    F16_TO_F32: u16 => f32, |x, _p| f16_to_f32(x);
    /// The upper half of a binary32.
    BF16_TO_F32: u16 => f32, |x, _p| f32::from_bits(u32::from(x) << 16);
    /// A float of up to 8 bits, by its format.
    SMALL_TO_F32: u8 => f32, |x, p| small_to_f32(x, p);
    /// Exact.
    F32_TO_F64: f32 => f64, |x, _p| f64::from(x);
    /// Rounded to nearest.
    F64_TO_F32: f64 => f32, |x, _p| x as f32;
    /// Rounded to odd.
    F64_TO_F32_ODD: f64 => f32, |x, _p| f64_to_f32_odd(x);

    /// Towards zero, saturated; NaN is 0. For ranges inside that of `i32`.
    F32_TO_INT32: f32 => i32, |x, p| bounded(f64::from(x), p) as i32;
    /// Towards zero, saturated; NaN is 0. For ranges inside that of `i32`.
    F64_TO_INT32: f64 => i32, |x, p| bounded(x, p) as i32;
    /// Towards zero, saturated; NaN is 0.
    F32_TO_UINT32: f32 => u32, |x, _p| x as u32;
    /// Towards zero, saturated; NaN is 0.
    F64_TO_UINT32: f64 => u32, |x, _p| x as u32;
    /// Towards zero, saturated; NaN is 0. For any range.
    F64_TO_INT64: f64 => u64, |x, p| f64_to_int64(x, p);
    /// Clamped to the destination's range, or NaN.
    F64_WITHIN: f64 => f64, |x, p| bounded(x, p);
    /// Whether it is not 0; true for NaN.
    F32_TO_BOOL: f32 => u8, |x, _p| u8::from(x != 0.0);

    /// To a float of up to 8 bits.
    F32_TO_SMALL8: u32 => u8, |x, p| p.target.round(x) as u8;
    /// To a float of 16 bits.
    F32_TO_SMALL16: u32 => u16, |x, p| p.target.round(x) as u16;
    /// To e8m0, which has only powers of two.
    F32_TO_OCTAVE: u32 => u8, |x, p| octave(x, p.saturate) as u8;
}

/// An integer of 64 bits, clamped to the destination's range.
#[inline(always)]
fn within(x: i64, p: &Params) -> i64 {
    let (low, high) = p.range;
    if p.signed && x < 0 { x.max(low) } else { (x as u64).min(high) as i64 }
}

#[inline(always)]
fn int64_to_f64(x: i64, p: &Params) -> f64 {
    let negative = x >> 63 & i64::from(p.signed).wrapping_neg(); // all bits or none
    let magnitude = (x ^ negative).wrapping_sub(negative) as u64;
    // 53 bits are kept above bit 11; of the lower ones only matters whether any is set.
    let lost = u64::from(p.odd & (magnitude >> 53 != 0)) * 0x7ff;
    let sticky = u64::from(magnitude & lost != 0) << 11;
    let magnitude = magnitude & !lost | sticky;
    // Both halves are exact, so the sum is rounded once.
    let high = f64::from((magnitude >> 32) as u32) * 4_294_967_296.0;
    let value = high + f64::from(magnitude as u32);
    f64::from_bits(value.to_bits() | (negative as u64) << 63)
}

#[inline(always)]
fn f16_to_f32(x: u16) -> f32 {
    const REBIAS: u32 = (127 - 15) << 23;
    let magnitude = u32::from(x & 0x7fff);
    let normal = (magnitude << 13) + REBIAS;
    let not_finite = if magnitude >= 0x7c00 { REBIAS } else { 0 };
    // As an integer times 2^-24: no subnormal intermediate.
    let subnormal = (magnitude as i32 as f32 * const { 1.0 / 16_777_216.0 }).to_bits();
    let bits = either(magnitude < 0x400, subnormal, normal + not_finite);
    f32::from_bits(bits | u32::from(x >> 15) << 31)
}

fn small_to_f32(x: u8, p: &Params) -> f32 {
    let Some(format) = p.source else { return f32::NAN };
    f32::from_bits(format.parts(x.into()).place(&FLOAT32) as u32)
}

#[inline(always)]
fn f64_to_f32_odd(x: f64) -> f32 {
    let nearest = x as f32;
    let bits = nearest.to_bits();
    let (rounded, exact) = (f64::from(nearest).abs(), x.abs());
    let even = bits & 1 == 0;
    let down = u32::from(even & (rounded > exact));
    let up = u32::from(even & (rounded < exact));
    f32::from_bits(bits.wrapping_sub(down).wrapping_add(up))
}

#[inline(always)]
fn f64_to_int64(x: f64, p: &Params) -> u64 {
    let (_, most) = p.range;
    let whole = if x < 0.0 { x.max(p.low) as i64 as u64 } else { x as u64 };
    if x >= p.high { most } else { whole }
}

/// Clamped to the destination's range, unless it is NaN.
#[inline(always)]
fn bounded(x: f64, p: &Params) -> f64 {
    let x = if x < p.low { p.low } else { x };
    if x > p.high { p.high } else { x }
}

/// The values of all 256 bytes, for sources of one byte.
pub struct Table(pub [u8; 2048]);

impl Table {
    /// A table of zeros.
    pub const ZERO: Table = Table([0; 2048]);
}

fn look_up<const B: usize>(src: &[u8], dst: &mut [u8], p: &Params) {
    let chunks = p.table.map_or(&[][..], |table| table.0.as_chunks::<B>().0);
    if let Some(values) = chunks.first_chunk::<256>() {
        map(src, dst, |[code]| values[usize::from(code)]);
    }
}

/// The step that replaces every byte by its value of `nbytes` bytes.
pub fn looked_up(nbytes: usize) -> Step {
    let run = match nbytes {
        1 => look_up::<1>,
        2 => look_up::<2>,
        4 => look_up::<4>,
        _ => look_up::<8>,
    };
    Step { run, nbytes }
}

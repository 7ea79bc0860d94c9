//! `DLDataType`: legal bits, sizes, and the name of every type.
//!
//! Two levels. *Defined* ([`defined`]): bits and lanes are not 0, so the bytes of an element can
//! be counted and moved. *Legal* ([`legal`]): the code has a row in [`KINDS`] and the bits are
//! among those of the row, so the value of an element can be interpreted.
//!
//! # Names
//!
//! `stem bits? ("x" lanes)?`, where the stem is that of NumPy or ml_dtypes; the types whose name
//! already fixes the bits (`bool`, `float8_*`, `float6_*`, `float4_*`) take none, and lanes of 1
//! are left out: `float32`, `bfloat16`, `float32x4`, `boolx2`, `float4_e2m1fnx2`, `handle64`.
//! A dtype that is not legal has the name `unknown(code=C)B` or `unknown(code=C)BxL`. So every
//! dtype, all 2³² of them, has exactly one name, and [`parse`] is the inverse of [`format`].
//!
//! Case-sensitive, ASCII, no white space, numbers without sign or leading zero. First the whole
//! text must fit the grammar (`DLRS_PARSE`, `value` is the byte position), then the numbers must
//! (`value` is the number, saturated). c_tests/catalogue_p.c and tests/names.rs have the results
//! for unusual texts. There are no aliases: torch's `float4_e2m1fn_x2` is `float4_e2m1fnx2` here,
//! TVM's `handle` is `handle64`, and neither its old `e4m3_float8` nor `custom[a]8` is a name.
#![forbid(unsafe_code)]

use crate::abi::DLDataType;
use crate::error::{Error, Field, Result, Status};
use crate::float_formats::{self as floats, FloatFormat, Specials};
use crate::integer_text::unsigned;
use crate::scan::Scan;
use core::fmt::{self, Write};

/// Dtype code of `dlpack.h` newer than v1.3: complex, two bfloat16, real part first, so 32 bits.
pub const DLRS_CODE_BCOMPLEX: u8 = 18;

/// One type code: all that the library knows of it.
pub struct Kind {
    /// Begin of the name; the whole name where it fixes the bits.
    pub stem: &'static str,
    /// The bits that the code may have.
    pub bits: &'static [u8],
    /// Whether the bits follow the stem in a name.
    pub bits_in_name: bool,
    /// The floating-point formats of its numbers, if they are floats.
    pub floats: &'static [FloatFormat],
    /// Numbers in a lane: 2 of a complex code, each of half the bits.
    pub parts: u8,
}

/// A code without floats.
const fn plain(stem: &'static str, bits: &'static [u8], bits_in_name: bool) -> Kind {
    Kind { stem, bits, bits_in_name, floats: &[], parts: 1 }
}

/// A code with the bits of its formats, times `parts`.
const fn float(
    stem: &'static str,
    bits: &'static [u8],
    floats: &'static [FloatFormat],
    parts: u8,
) -> Kind {
    assert!(bits.len() == floats.len());
    let mut place = 0;
    while place < bits.len() {
        assert!(bits[place] as u32 == floats[place].width() * parts as u32);
        place += 1;
    }
    Kind { stem, bits, bits_in_name: true, floats, parts }
}

/// A code with one format, whose bits its name fixes.
const fn small(stem: &'static str, bits: &'static [u8], format: &'static [FloatFormat]) -> Kind {
    Kind { bits_in_name: false, ..float(stem, bits, format, 1) }
}

/// Every type code that is known, those newer than DLPack 1.3 too: the place in the table is the
/// code, and a row is all that a new one needs.
pub const KINDS: [Kind; DLRS_CODE_BCOMPLEX as usize + 1] = {
    use floats::{BFLOAT16, FLOAT16, FLOAT32, FLOAT64, float as format};
    const E8M0: FloatFormat = FloatFormat { signed: false, ..format(8, 0, 127, Specials::AllOnes) };
    [
        plain("int", &[1, 2, 4, 8, 16, 32, 64], true),
        plain("uint", &[1, 2, 4, 8, 16, 32, 64], true),
        float("float", &[16, 32, 64], &[FLOAT16, FLOAT32, FLOAT64], 1),
        plain("handle", &[64], true),
        float("bfloat", &[16], &[BFLOAT16], 1),
        float("complex", &[32, 64, 128], &[FLOAT16, FLOAT32, FLOAT64], 2),
        plain("bool", &[8], false),
        small("float8_e3m4", &[8], &[format(3, 4, 3, Specials::Ieee)]),
        small("float8_e4m3", &[8], &[format(4, 3, 7, Specials::Ieee)]),
        small("float8_e4m3b11fnuz", &[8], &[format(4, 3, 11, Specials::MinusZero)]),
        small("float8_e4m3fn", &[8], &[format(4, 3, 7, Specials::AllOnes)]),
        small("float8_e4m3fnuz", &[8], &[format(4, 3, 8, Specials::MinusZero)]),
        small("float8_e5m2", &[8], &[format(5, 2, 15, Specials::Ieee)]),
        small("float8_e5m2fnuz", &[8], &[format(5, 2, 16, Specials::MinusZero)]),
        small("float8_e8m0fnu", &[8], &[E8M0]),
        small("float6_e2m3fn", &[6], &[format(2, 3, 1, Specials::None)]),
        small("float6_e3m2fn", &[6], &[format(3, 2, 3, Specials::None)]),
        small("float4_e2m1fn", &[4], &[format(2, 1, 1, Specials::None)]),
        float("bcomplex", &[32], &[BFLOAT16], 2),
    ]
};

const UNKNOWN: &str = "unknown(code=";

/// The row of a code, if it is known.
pub fn kind(code: u8) -> Option<&'static Kind> {
    const TABLE: &[Kind] = &KINDS;
    TABLE.get(usize::from(code))
}

/// Whether a code is of complex numbers.
pub fn is_complex(code: u8) -> bool {
    kind(code).is_some_and(|kind| kind.parts == 2)
}

/// Bits of one element, all lanes: at most 255 · 65535, so it never wraps.
pub const fn item_bits(dtype: DLDataType) -> u32 {
    dtype.bits as u32 * dtype.lanes as u32
}

/// Whether packed elements may start inside a byte.
pub const fn is_subbyte(dtype: DLDataType) -> bool {
    !item_bits(dtype).is_multiple_of(8)
}

/// The flags of elements of a dtype: padding is a property of numbers below whole bytes only.
pub const fn flags_of(dtype: DLDataType, flags: u64) -> u64 {
    match dtype.bits.is_multiple_of(8) {
        false => flags,
        true => flags & !crate::abi::DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED,
    }
}

/// Bytes of one element that has whole bytes of its own.
pub const fn padded_bytes(dtype: DLDataType) -> u32 {
    item_bits(dtype).div_ceil(8)
}

/// The bits that a code may have, less 1, as a set computed from the table at compile time: every
/// validation uses it.
const LEGAL: [u128; KINDS.len()] = {
    let mut sets = [0; KINDS.len()];
    let mut code = 0;
    while code < KINDS.len() {
        let mut place = 0;
        while place < KINDS[code].bits.len() {
            sets[code] |= 1 << (KINDS[code].bits[place] - 1);
            place += 1;
        }
        code += 1;
    }
    sets
};

/// Places of [`PLACED`]: enough for a search to be short.
const PLACES: usize = 128;

/// A dtype as one number: code, bits, lanes, as [`Error::dtypes`] has it.
#[inline(always)]
pub const fn word_of(dtype: DLDataType) -> u32 {
    dtype.code as u32 | (dtype.bits as u32) << 8 | (dtype.lanes as u32) << 16
}

/// Writes the name of the dtype of a number of [`word_of`].
pub fn format_word(word: u32, out: &mut dyn Write) -> fmt::Result {
    let (code, bits, lanes) = (word as u8, (word >> 8) as u8, (word >> 16) as u16);
    format(DLDataType { code, bits, lanes }, out)
}

/// The index of a dtype in the table of a factor.
#[inline(always)]
const fn place_of(word: u32, factor: u32) -> usize {
    (word.wrapping_mul(factor) >> (u32::BITS - PLACES.ilog2())) as usize
}

/// Every legal dtype of one lane that has whole bytes, if this factor gives each its own place.
const fn placed_by(factor: u32) -> Option<[u32; PLACES]> {
    let mut placed = [0; PLACES];
    let mut code = 0;
    while code < KINDS.len() {
        let mut bits = KINDS[code].bits;
        while let [first, rest @ ..] = bits {
            if first.is_multiple_of(8) {
                let word = word_of(DLDataType { code: code as u8, bits: *first, lanes: 1 });
                if placed[place_of(word, factor)] != 0 {
                    return None;
                }
                placed[place_of(word, factor)] = word;
            }
            bits = rest;
        }
        code += 1;
    }
    Some(placed)
}

/// A perfect hash of these dtypes: its factor, found by search, and its table.
const PLACED: (u32, [u32; PLACES]) = {
    let mut factor = 1u32;
    loop {
        factor = factor.wrapping_mul(0x9e37_79b1);
        if let Some(placed) = placed_by(factor) {
            break (factor, placed);
        }
    }
};

/// As [`plain_bytes`], for one lane; 0 for more. Every validation uses it.
#[inline(always)]
pub fn lane_bytes(dtype: DLDataType) -> u32 {
    const TABLE: &[u32; PLACES] = &PLACED.1;
    let word = word_of(dtype);
    if TABLE[place_of(word, PLACED.0)] == word { u32::from(dtype.bits / 8) } else { 0 }
}

/// Bytes of an element of a legal dtype whose lanes have whole bytes; 0 of any other. Such an
/// element is the same packed and padded.
#[inline(always)]
pub fn plain_bytes(dtype: DLDataType) -> u32 {
    lane_bytes(DLDataType { lanes: 1, ..dtype }) * u32::from(dtype.lanes)
}

/// Requires that bits and lanes are not 0: enough to count and copy bytes.
pub fn defined(dtype: DLDataType) -> Result<()> {
    if dtype.bits == 0 {
        return Err(bad_bits(0, 1));
    }
    if dtype.lanes == 0 {
        return Err(bad_lanes(0, 1));
    }
    Ok(())
}

/// Requires a known code with bits that it may have, and at least one lane.
pub fn legal(dtype: DLDataType) -> Result<()> {
    let place = u32::from(dtype.bits.wrapping_sub(1));
    match LEGAL.get(usize::from(dtype.code)) {
        Some(set) if place < u128::BITS && (set >> place) & 1 != 0 => defined(dtype),
        _ => Err(illegal(dtype)),
    }
}

/// Which of code and bits is not legal.
#[cold]
fn illegal(dtype: DLDataType) -> Error {
    match kind(dtype.code) {
        Some(kind) => illegal_bits(kind, dtype.bits.into()),
        None => bad_code(dtype.code.into(), KINDS.len() as i64 - 1),
    }
}

/// The description and the remedy of a text that is no dtype.
macro_rules! expected {
    ($what:literal) => {
        concat!(
            "cannot be parsed, expected ",
            $what,
            "\0Write dtypes as float32, bfloat16, float32x4.",
        )
    };
}

/// Reads the name of a dtype; the module's documentation has the grammar.
pub fn parse(text: &[u8]) -> Result<DLDataType> {
    const BITS: &str = expected!("the number of bits");
    let mut scan = Scan::new(text);
    let unknown = scan.eat(UNKNOWN);
    let (code, bits, named) = if unknown {
        let code = scan.number(expected!("a code"))?;
        scan.expect(")", expected!("a parenthesis"))?;
        (code, scan.number(BITS)?, None)
    } else {
        let found = scan.longest(KINDS.iter().enumerate(), |(_, kind)| kind.stem);
        let Some((code, kind)) = found else { return Err(scan.fail(expected!("a dtype"))) };
        let bits = match *kind {
            Kind { bits: [bits], bits_in_name: false, .. } => i64::from(*bits),
            _ => scan.number(BITS)?,
        };
        (code as i64, bits, Some(kind))
    };
    let (lanes, end) = match scan.eat("x") {
        true => (scan.number(expected!("the number of lanes"))?, expected!("the end")),
        false => (1, expected!("x and the number of lanes, or the end")),
    };
    scan.end(end)?;
    let code = u8::try_from(code).map_err(|_| bad_code(code, u8::MAX.into()))?;
    let illegal = |_| named.map_or(bad_bits(bits, u8::MAX.into()), |k| illegal_bits(k, bits));
    let dtype = DLDataType {
        code,
        bits: u8::try_from(bits).map_err(illegal)?,
        lanes: u16::try_from(lanes).map_err(|_| bad_lanes(lanes, u16::MAX.into()))?,
    };
    // "unknown" is how an illegal dtype is written; a name must be one of a legal dtype.
    if !unknown {
        legal(dtype)?;
    }
    Ok(dtype)
}

/// Writes the name of a dtype, whatever it is; [`parse`] reads it back.
#[inline(never)] // one copy for all kinds of `out`
pub fn format(dtype: DLDataType, out: &mut dyn Write) -> fmt::Result {
    match kind(dtype.code) {
        Some(kind) if legal(dtype).is_ok() => {
            out.write_str(kind.stem)?;
            if kind.bits_in_name {
                let width = WIDTHS.get(dtype.bits.trailing_zeros() as usize);
                out.write_str(width.unwrap_or(&""))?;
            }
        }
        _ => {
            let (code, bits) = (unsigned(dtype.code.into()), unsigned(dtype.bits.into()));
            write!(out, "{UNKNOWN}{code}){bits}")?;
        }
    }
    if dtype.lanes != 1 { write!(out, "x{}", unsigned(dtype.lanes.into())) } else { Ok(()) }
}

/// The widths that follow a stem, each a power of two.
const WIDTHS: [&str; 8] = ["1", "2", "4", "8", "16", "32", "64", "128"];
const _: () = {
    let mut code = 0;
    while code < KINDS.len() {
        let mut bits = KINDS[code].bits;
        while let [first, rest @ ..] = bits {
            assert!(!KINDS[code].bits_in_name || first.is_power_of_two());
            bits = rest;
        }
        code += 1;
    }
};

/// A dtype that prints as its name.
pub struct Name(pub DLDataType);

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        format(self.0, out)
    }
}

#[cold]
fn bad_code(code: i64, limit: i64) -> Error {
    Error::new(Status::DLRS_DTYPE_CODE).field(Field::DLRS_FIELD_DTYPE_CODE).value(code).limit(limit)
}

#[cold]
fn bad_bits(bits: i64, limit: i64) -> Error {
    Error::new(Status::DLRS_DTYPE_BITS).field(Field::DLRS_FIELD_DTYPE_BITS).value(bits).limit(limit)
}

/// The remedies for bits that a code cannot have: of those that are the bytes of a dtype, and of
/// others.
macro_rules! widths {
    ($widths:literal) => {
        [
            concat!("\0It counts bits, not bytes: ", $widths, "."),
            concat!("\0Use ", $widths, " bits."),
        ]
    };
}

/// Bits that the code cannot have: the limit is the most it can.
#[cold]
fn illegal_bits(kind: &Kind, bits: i64) -> Error {
    let most = kind.bits.last().map_or(0, |&most| most.into());
    let [of_bytes, of_others] = match kind.bits {
        [1, ..] => widths!("1, 2, 4, 8, 16, 32, 64"),
        [16, _, ..] => widths!("16, 32, 64"),
        [32, _, ..] => widths!("32, 64, 128"),
        [4] => widths!("4"),
        [6] => widths!("6"),
        [8] => widths!("8"),
        [16] => widths!("16"),
        [32] => widths!("32"),
        _ => widths!("64"),
    };
    let bytes = kind.bits.iter().any(|&legal| i64::from(legal) == bits.saturating_mul(8));
    bad_bits(bits, most).detail(if bytes { of_bytes } else { of_others })
}

/// Lanes that no dtype has.
#[cold]
pub fn bad_lanes(lanes: i64, limit: i64) -> Error {
    let error = Error::new(Status::DLRS_DTYPE_LANES).field(Field::DLRS_FIELD_DTYPE_LANES);
    error.value(lanes).limit(limit)
}

/// Bits from one element to the next in a layout without gaps: whole bytes per element when
/// `flags` say that sub-byte types are padded.
pub const fn slot_bits(dtype: DLDataType, flags: u64) -> u32 {
    if flags & crate::abi::DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED != 0 {
        padded_bytes(dtype) * 8
    } else {
        item_bits(dtype)
    }
}

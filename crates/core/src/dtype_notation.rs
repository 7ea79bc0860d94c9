//! Other notations of a dtype: PEP 3118 (the buffer protocol), typestr (the array interfaces), and
//! Arrow's format strings.
//!
//! One table; a dtype without a row has no notation. Only native byte order is supported, as in
//! DLPack. `l` and `L` of PEP 3118 are as wide as C's `long` unless the text starts with `=`, `<`
//! or `>`, and so are `n`, `N` and `P`, which then do not exist. Lanes are PEP 3118's count, `4f`;
//! the other notations have none.
#![forbid(unsafe_code)]

use core::ffi::CStr;
use core::ffi::c_long;
use core::fmt::{self, Write};

use crate::abi::{DLDataType, DLDataTypeCode, DLDataTypeCode::*};
use crate::dtype;
use crate::error::{Arg, Error, Field::*, Result, Status::*};
use crate::integer_text::unsigned;
use crate::scan::Scan;

/// Notations of dtypes in other interfaces.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(non_camel_case_types)]
pub enum Notation {
    /// The buffer protocol and the module struct: `f`, `<d`, `Zf`, `?`, `4f`.
    DLRS_NOTATION_PEP3118 = 1,
    /// `__array_interface__` and `__cuda_array_interface__`: `<f4`, `|b1`, `<c8`.
    DLRS_NOTATION_TYPESTR = 2,
    /// Arrow's C data interface: `f`, `g`, `c`, `C`.
    DLRS_NOTATION_ARROW = 3,
}

use Notation::*;

/// Code, bits, and the type's name in the three notations, "" for none. PEP 3118's is the one of
/// standard sizes.
type Row = (DLDataTypeCode, u8, [Short; 3]);

/// At most three letters: less than a pointer to them.
#[derive(Clone, Copy)]
struct Short([u8; 3]);

impl Short {
    const fn of(name: &str) -> Short {
        match *name.as_bytes() {
            [] => Short([0; 3]),
            [a] => Short([a, 0, 0]),
            [a, b] => Short([a, b, 0]),
            [a, b, c] => Short([a, b, c]),
            _ => panic!(), // when it is compiled
        }
    }

    fn text(&self) -> &str {
        let letters = self.0.split(|&letter| letter == 0).next().unwrap_or(&[]);
        core::str::from_utf8(letters).unwrap_or("")
    }
}

/// A row of the tables.
const fn row(code: DLDataTypeCode, bits: u8, [a, b, c]: [&str; 3]) -> Row {
    (code, bits, [Short::of(a), Short::of(b), Short::of(c)])
}

const TABLE: [Row; 20] = [
    row(kDLInt, 8, ["b", "i1", "c"]),
    row(kDLInt, 16, ["h", "i2", "s"]),
    row(kDLInt, 32, ["i", "i4", "i"]),
    row(kDLInt, 64, ["q", "i8", "l"]),
    row(kDLUInt, 8, ["B", "u1", "C"]),
    row(kDLUInt, 16, ["H", "u2", "S"]),
    row(kDLUInt, 32, ["I", "u4", "I"]),
    row(kDLUInt, 64, ["Q", "u8", "L"]),
    row(kDLFloat, 16, ["e", "f2", "e"]),
    row(kDLFloat, 32, ["f", "f4", "f"]),
    row(kDLFloat, 64, ["d", "f8", "g"]),
    row(kDLComplex, 64, ["Zf", "c8", ""]),
    row(kDLComplex, 128, ["Zd", "c16", ""]),
    row(kDLBool, 8, ["?", "b1", ""]),
    // Arrow packs its booleans into bits.
    row(kDLUInt, 1, ["", "", "b"]),
    // Read only: a character is a byte, and standard long has 4.
    row(kDLUInt, 8, ["c", "", ""]),
    row(kDLInt, 32, ["l", "", ""]),
    row(kDLUInt, 32, ["L", "", ""]),
    // Read only: Python 3.14 alone writes these.
    row(kDLComplex, 64, ["F", "", ""]),
    row(kDLComplex, 128, ["D", "", ""]),
];

const LONG_BITS: u8 = c_long::BITS as u8;
const POINTER_BITS: u8 = usize::BITS as u8;

/// What differs in PEP 3118's native sizes, which the prefix `@` or none stands for.
const NATIVE: [Row; 5] = [
    row(kDLInt, LONG_BITS, ["l", "", ""]),
    row(kDLUInt, LONG_BITS, ["L", "", ""]),
    row(kDLInt, POINTER_BITS, ["n", "", ""]),
    row(kDLUInt, POINTER_BITS, ["N", "", ""]),
    row(kDLOpaqueHandle, POINTER_BITS, ["P", "", ""]),
];

/// The description and the remedy of a text that is no dtype in a notation, whose place in the
/// three is the number.
#[cold]
fn expected(what: usize, notation: Notation) -> &'static str {
    macro_rules! expected {
        ($($what:literal),*) => {
            [$([
                expected!(@ $what, "f, <d, Zf, ? or 4f."),
                expected!(@ $what, "<f4, |b1 or <c8."),
                expected!(@ $what, "f, g, c or C."),
            ]),*]
        };
        (@ $what:literal, $names:literal) => {
            concat!("cannot be parsed, expected ", $what, "\0Write dtypes as ", $names)
        };
    }
    const TEXTS: [[&str; 3]; 3] = expected!["the byte order", "a dtype", "the end"];
    let texts = TEXTS.get(what).and_then(|texts| texts.get((notation as usize).wrapping_sub(1)));
    texts.copied().unwrap_or("")
}

/// The meaning of a prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Native order and sizes.
    Native,
    /// Native order, standard sizes.
    Standard,
    /// The other order: only for single bytes.
    Foreign,
    /// The type has none: only for single bytes.
    Absent,
}

/// Reads the prefix.
fn order(scan: &mut Scan, notation: Notation) -> Result<Order> {
    let (little, big) = match cfg!(target_endian = "little") {
        true => (Order::Standard, Order::Foreign),
        false => (Order::Foreign, Order::Standard),
    };
    let pep3118 = notation == DLRS_NOTATION_PEP3118;
    match notation {
        DLRS_NOTATION_ARROW => Ok(Order::Native),
        _ if scan.eat("<") => Ok(little),
        _ if scan.eat(">") || (pep3118 && scan.eat("!")) => Ok(big),
        DLRS_NOTATION_PEP3118 | DLRS_NOTATION_TYPESTR if scan.eat("=") => Ok(Order::Standard),
        DLRS_NOTATION_PEP3118 => {
            scan.eat("@");
            Ok(Order::Native)
        }
        DLRS_NOTATION_TYPESTR if scan.eat("|") => Ok(Order::Absent),
        DLRS_NOTATION_TYPESTR => Err(scan.fail(expected(0, notation))),
    }
}

fn name(row: &'static Row, notation: Notation) -> &'static str {
    let (.., [pep3118, typestr, arrow]) = row;
    match notation {
        DLRS_NOTATION_PEP3118 => pep3118,
        DLRS_NOTATION_TYPESTR => typestr,
        DLRS_NOTATION_ARROW => arrow,
    }
    .text()
}

/// Reads a dtype.
pub fn parse(text: &[u8], notation: Notation) -> Result<DLDataType> {
    let mut scan = Scan::new(text);
    let order = order(&mut scan, notation)?;
    let start = scan;
    let lanes = match notation {
        DLRS_NOTATION_PEP3118 => scan.number("").unwrap_or(1),
        _ => 1,
    };
    let &(code, bits, _) = read_name(&mut scan, notation, order == Order::Native)?;
    scan.end(expected(2, notation))?;
    match order {
        Order::Foreign if bits != 8 => {
            return Err(unsupported(
                "another byte order, which DLPack cannot say\0Swap the bytes of a copy first.",
            ));
        }
        Order::Absent if bits != 8 => return Err(start.fail(expected(1, notation))),
        _ => {}
    }
    match u16::try_from(lanes) {
        Ok(lanes @ 1..) => Ok(DLDataType { code: code as u8, bits, lanes }),
        Ok(_) => Err(dtype::bad_lanes(lanes, 1)),
        Err(_) => Err(dtype::bad_lanes(lanes, u16::MAX.into())),
    }
}

/// Reads the name of a type: the longest that fits, PEP 3118's native one before the standard one.
fn read_name(scan: &mut Scan, notation: Notation, native: bool) -> Result<&'static Row> {
    const ROWS: &[Row] = &TABLE;
    const NATIVE_ROWS: &[Row] = &NATIVE;
    let first = if native && notation == DLRS_NOTATION_PEP3118 { NATIVE_ROWS } else { &[] };
    let found = scan.longest(first.iter().chain(ROWS), |row| name(row, notation));
    found.ok_or_else(|| scan.fail(expected(1, notation)))
}

/// A dtype's name, with what stands before it.
pub struct Text {
    prefix: &'static str,
    lanes: u16,
    name: &'static str,
}

/// The row of a dtype without its lanes.
fn row_of(dtype: DLDataType) -> Option<&'static Row> {
    const ROWS: &[Row] = &TABLE;
    ROWS.iter().find(|row| (row.0 as u8, row.1) == (dtype.code, dtype.bits))
}

/// The format of a buffer with elements of a dtype, of one lane.
pub fn buffer_format(dtype: DLDataType) -> Option<&'static CStr> {
    let row = row_of(dtype).filter(|_| dtype.lanes == 1)?;
    CStr::from_bytes_until_nul(&row.2[0].0).ok().filter(|name| !name.is_empty())
}

/// What to write for a dtype; [`parse`] reads it back.
pub fn text(dtype: DLDataType, notation: Notation) -> Result<Text> {
    dtype::legal(dtype)?;
    let name = row_of(dtype).map_or("", |row| name(row, notation));
    if name.is_empty() || (dtype.lanes != 1 && notation != DLRS_NOTATION_PEP3118) {
        return Err(unsupported(
            "the notation has no name for this dtype\0Use a dtype that it has, such as float32.",
        ));
    }
    let prefix = match notation {
        DLRS_NOTATION_TYPESTR if dtype.bits == 8 => "|",
        DLRS_NOTATION_TYPESTR if cfg!(target_endian = "little") => "<",
        DLRS_NOTATION_TYPESTR => ">",
        _ => "",
    };
    Ok(Text { prefix, lanes: dtype.lanes, name })
}

impl Text {
    /// Writes it.
    #[inline(never)] // one copy for all kinds of `out`
    pub fn write(&self, out: &mut dyn Write) -> fmt::Result {
        out.write_str(self.prefix)?;
        if self.lanes != 1 {
            write!(out, "{}", unsigned(self.lanes.into()))?;
        }
        out.write_str(self.name)
    }
}

/// Items that have a kind are of 1, 2, 4, 8 or 16 bytes.
const SIZES: usize = 5;

/// The table's kinds and sizes, to look up in.
struct Kinds {
    /// By letter, from `a` on, and size: code and 1; 0 for none.
    codes: [[u8; SIZES]; 26],
    /// By code and size: the letter, 0 for none.
    letters: [[u8; SIZES]; dtype::KINDS.len()],
}

static KINDS: Kinds = {
    let mut kinds = Kinds { codes: [[0; SIZES]; 26], letters: [[0; SIZES]; dtype::KINDS.len()] };
    let mut place = 0;
    while place < TABLE.len() {
        let (code, bits, [_, typestr, _]) = TABLE[place];
        let letter = typestr.0[0];
        if letter != 0 {
            let size = (bits / 8).trailing_zeros() as usize;
            assert!(bits == 8 << size);
            kinds.codes[(letter - b'a') as usize][size] = code as u8 + 1;
            kinds.letters[code as usize][size] = letter;
        }
        place += 1;
    }
    kinds
};

/// The place of a size among [`SIZES`], if it is one.
fn place_of(nbytes: u32) -> Option<usize> {
    nbytes.is_power_of_two().then(|| nbytes.trailing_zeros() as usize)
}

/// The dtype of a kind, the letter of the array interface, and the bytes of an item.
pub fn from_kind(kind: i32, item_nbytes: u32) -> Result<DLDataType> {
    let codes = KINDS.codes.get(kind.wrapping_sub(b'a'.into()) as u32 as usize);
    match codes.and_then(|codes| codes.get(place_of(item_nbytes)?)) {
        Some(&code @ 1..) => {
            Ok(DLDataType { code: code - 1, bits: (item_nbytes * 8) as u8, lanes: 1 })
        }
        _ => {
            let known = codes.is_some_and(|codes| codes.iter().any(|code| *code != 0));
            Err(no_kind(kind, item_nbytes, known))
        }
    }
}

/// The parameters of [`from_kind`], for its errors.
pub const KIND: [Arg; 2] = [Arg::kind, Arg::itemsize];

#[cold]
fn no_kind(kind: i32, item_nbytes: u32, known: bool) -> Error {
    match known {
        true => unsupported(
            "DLPack has no dtype of this kind and size\0\
                             Convert to a size that it has, such as f of 4 bytes.",
        )
        .value(item_nbytes.into())
        .of(KIND[1]),
        false => unsupported(
            "DLPack has no dtype of this kind\0\
                              Kinds are letters: b, c, f, i and u.",
        )
        .value(kind.into())
        .of(KIND[0]),
    }
}

/// Kind and bytes of an item, the inverse of [`from_kind`].
pub fn to_kind(dtype: DLDataType) -> Result<(u8, u32)> {
    let letters = KINDS.letters.get(usize::from(dtype.code));
    let nbytes = u32::from(dtype.bits) / 8;
    let place = place_of(nbytes).filter(|_| dtype.bits.is_multiple_of(8));
    let letter = letters.and_then(|letters| letters.get(place?)).filter(|letter| **letter != 0);
    match letter {
        Some(letter) if dtype.lanes == 1 => Ok((*letter, nbytes)),
        _ => Err(no_letter(dtype, letter.is_some())),
    }
}

/// Why a dtype has no kind, though one with other `lanes` may have.
#[cold]
fn no_letter(dtype: DLDataType, lanes: bool) -> Error {
    dtype::legal(dtype).err().unwrap_or_else(|| {
        let error =
            unsupported("the dtype has no kind letter\0Cast to one that has, such as float32.");
        let letters = KINDS.letters.get(usize::from(dtype.code));
        match letters.is_some_and(|letters| letters.iter().any(|letter| *letter != 0)) {
            _ if lanes => error.field(DLRS_FIELD_DTYPE_LANES).value(dtype.lanes.into()).limit(1),
            true => error.field(DLRS_FIELD_DTYPE_BITS).value(dtype.bits.into()),
            false => error.field(DLRS_FIELD_DTYPE_CODE).value(dtype.code.into()),
        }
    })
}

#[cold]
fn unsupported(detail: &'static str) -> Error {
    Error::new(DLRS_UNSUPPORTED).detail(detail)
}

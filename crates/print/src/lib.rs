//! Tensors as text: one line that describes them, and their values as NumPy prints them.
//!
//! [`write_values`] gives, byte for byte, `str(array)` of NumPy 2.4 with default print options
//! for the dtypes that NumPy has; a test compares with its output. What NumPy lacks:
//!
//! - bfloat16 and the floats below 16 bits print like `str(array.astype(float32))`. (ml_dtypes
//!   prints 6 digits and does not align.)
//! - Integers below 8 bits print like int8, complex32 by the rules of float16.
//! - Handles print in hexadecimal, aligned to the right.
//! - Lanes are one more dimension, the innermost.
//!
//! What differs: more than 65536 (or `threshold`) elements that summarising leaves over, as of
//! shape (2, 2, …, 2), are not printed; `edge_items` of 0 counts as 1.
//!
//! Another thread may write the elements meanwhile: then columns may not align, no more.
//!
//! Nothing is allocated and nothing recurses: an index of 65 places walks over the elements that
//! are shown, three times for floats (range, widths, text), twice for the rest.
//!
//! Optional (the feature `print`). May use: `tensor`. Used by: the C interface, `python/module`.
#![no_std]

#[cfg(test)]
extern crate std;

use dlpack_tensor::*;

mod big;
mod column;
mod digits;
mod float;
mod page;
pub mod reader;
mod walk;
mod word;

use crate::abi::{self, DLDataType, DLDevice};
use crate::integer_text::{hex, signed, unsigned};
use crate::{device_type, dtype};
use column::{Reading, Style, write_scalar};
use core::fmt::{self, Write};
use page::Page;
use walk::{MOST_DIMS, Walk};
use word::Word;

/// Elements that are shown even if the threshold is lower.
const MOST_SHOWN: u64 = 1 << 16;

/// Source of the values. The caller reads the memory; nothing here dereferences a pointer.
pub trait Elements {
    /// The bits of one lane of the element at `index`, in the low bits of the answer; bits above
    /// those of the dtype are ignored. `index` is inside the shape and `lane` below the lanes.
    fn bits(&self, index: &[i64], lane: u16) -> u128;
}

impl<F: Fn(&[i64], u16) -> u128> Elements for F {
    fn bits(&self, index: &[i64], lane: u16) -> u128 {
        self(index, lane)
    }
}

/// NumPy's print options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrintOptions {
    /// Above this many elements only the edges of each dimension are shown.
    pub threshold: u64,
    /// How many elements an edge has.
    pub edge_items: u32,
    /// Where lines break.
    pub line_width: u32,
    /// The most digits behind the point.
    pub precision: u32,
}

impl PrintOptions {
    /// NumPy's own.
    pub const DEFAULT: PrintOptions =
        PrintOptions { threshold: 1000, edge_items: 3, line_width: 75, precision: 8 };
}

/// The contents of the first line.
#[derive(Clone, Copy, Debug)]
pub struct Description<'a> {
    /// Extents.
    pub shape: &'a [i64],
    /// Strides in elements; `None` if NULL.
    pub strides: Option<&'a [i64]>,
    /// Type of an element.
    pub dtype: DLDataType,
    /// Where it is.
    pub device: DLDevice,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
    /// Flags; `None` for a legacy tensor or a bare `DLTensor`, which have none.
    pub flags: Option<u64>,
}

/// Prints values like NumPy's `str(array)`, without a newline at the end.
///
/// Values that cannot be shown (illegal dtype, impossible shape, too many) are a text in `<>`.
pub fn write_values(
    elements: &dyn Elements,
    shape: &[i64],
    dtype: DLDataType,
    options: &PrintOptions,
    out: &mut dyn Write,
) -> fmt::Result {
    let Some(mut walk) = Walk::new(shape, dtype.lanes) else {
        return out.write_str("<values of this shape cannot be shown>");
    };
    let (count, _) = walk.counts();
    if count == 0 {
        return out.write_str("[]");
    }
    let Some(reading) = Reading::of(dtype) else {
        return out.write_str("<values of this dtype cannot be shown>");
    };
    if count > options.threshold {
        walk.only_edges(options.edge_items);
        if walk.counts().1 > options.threshold.max(MOST_SHOWN) {
            return out.write_str("<these are too many values to show>");
        }
    }
    if walk.axes() == 0 {
        let mut word = Word::EMPTY;
        write_scalar(elements.bits(walk.index(), 0), reading, &mut word)?;
        return out.write_str(word.text());
    }
    let style = Style::of(reading, &mut walk, elements, options);
    let mut page = Page::new(out, walk.axes(), options.line_width);
    page.open(0)?;
    loop {
        let mut word = Word::EMPTY;
        style.write(elements.bits(walk.index(), walk.lane()), &mut word)?;
        page.word(word)?;
        match walk.step() {
            Some(step) => page.between(&step)?,
            None => return page.close(walk.axes()),
        }
    }
}

/// Prints a tensor: its description, and on new lines its values if `elements` can give them.
///
/// `Tensor(shape=(2, 3), dtype=float32, device=cpu, strides=(3, 1), byte_offset=0,
/// flags=READ_ONLY|IS_COPIED)`, on one line.
pub fn write_tensor(
    tensor: &Description<'_>,
    elements: Option<&dyn Elements>,
    options: &PrintOptions,
    out: &mut dyn Write,
) -> fmt::Result {
    let (dtype, device) = (dtype::Name(tensor.dtype), device_type::Name(tensor.device));
    out.write_str("Tensor(shape=")?;
    write_tuple(tensor.shape, out)?;
    write!(out, ", dtype={dtype}, device={device}, strides=")?;
    match tensor.strides {
        Some(strides) => write_tuple(strides, out)?,
        None => out.write_str("NULL")?,
    }
    write!(out, ", byte_offset={}", unsigned(tensor.byte_offset))?;
    if let Some(flags) = tensor.flags {
        write_flags(flags, out)?;
    }
    out.write_str(")")?;
    match elements {
        Some(elements) => {
            out.write_str("\n")?;
            write_values(elements, tensor.shape, tensor.dtype, options, out)
        }
        None => Ok(()),
    }
}

/// Numbers as a Python tuple; dots stand for more than a tensor can have.
fn write_tuple(numbers: &[i64], out: &mut dyn Write) -> fmt::Result {
    out.write_str("(")?;
    for (place, number) in numbers.iter().take(MOST_DIMS).enumerate() {
        write!(out, "{}{}", if place > 0 { ", " } else { "" }, signed(*number))?;
    }
    out.write_str(match numbers.len() {
        1 => ",)",
        0..=MOST_DIMS => ")",
        _ => ", ...)",
    })
}

/// The names of the flags that are set, and the unknown ones as a number.
fn write_flags(flags: u64, out: &mut dyn Write) -> fmt::Result {
    let mut rest = flags;
    let mut before = ", flags=";
    for (flag, name) in [
        (abi::DLPACK_FLAG_BITMASK_READ_ONLY, "READ_ONLY"),
        (abi::DLPACK_FLAG_BITMASK_IS_COPIED, "IS_COPIED"),
        (abi::DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, "IS_SUBBYTE_TYPE_PADDED"),
    ] {
        if rest & flag != 0 {
            write!(out, "{before}{name}")?;
            before = "|";
            rest &= !flag;
        }
    }
    match (rest, flags) {
        (0, 0) => write!(out, "{before}0"),
        (0, _) => Ok(()),
        _ => write!(out, "{before}0x{}", hex(rest, 1)),
    }
}

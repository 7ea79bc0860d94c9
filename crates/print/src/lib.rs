//! Tensors as text: one line that describes them, and their values as nested lists.
//!
//! The format is stable and is the library's own. Each row is a line; `...` stands for what is left
//! out. Numbers are written as Python writes them: integers in decimal, `True` and `False`, floats
//! by the fewest digits that give the same float64 or float32 when read again. Narrower floats are
//! written like the float32 of the same value, NaNs all alike. A complex number is `1.0-2.0j`;
//! handles, and elements whose dtype is not known, are their bits in hexadecimal. Lanes are one
//! more dimension, the innermost.
//!
//! More than 65536 (or `threshold`) elements that summarising leaves over, as of shape
//! (2, 2, …, 2), are not printed; `edge_items` of 0 counts as 1.
//!
//! Nothing is allocated and nothing recurses: an index of 65 places walks over the elements that
//! are shown, once.
//!
//! Optional (the feature `print`). May use: `tensor`. Used by: the C interface, `python/module`.
#![no_std]
#![deny(unsafe_code)]

#[cfg(test)]
extern crate std;

use dlpack_tensor::*;

#[allow(unsafe_code)] // it reads memory; printing has what was read
pub mod reader;
mod walk;

use crate::abi::{self, DLDataType, DLDataTypeCode::*, DLDevice};
use crate::float_formats::{self, Class, FLOAT32, FLOAT64, FloatFormat};
use crate::integer_text::{hex, signed, unsigned};
use crate::{device_type, dtype};
use core::fmt::{self, Write};
use walk::{MOST_DIMS, Step, Walk};

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

/// How much is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrintOptions {
    /// Above this many elements only the edges of each dimension are shown.
    pub threshold: u64,
    /// How many elements an edge has.
    pub edge_items: u32,
}

impl PrintOptions {
    /// What is usual.
    pub const DEFAULT: PrintOptions = PrintOptions { threshold: 1000, edge_items: 3 };
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

/// Prints values as nested lists, without a newline at the end.
///
/// Values that cannot be shown (impossible shape, more than 128 bits, too many) are a text in `<>`.
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
    if u32::from(dtype.bits) > u128::BITS {
        return out.write_str("<values of this dtype cannot be shown>");
    }
    if count > options.threshold {
        walk.only_edges(options.edge_items);
        if walk.counts().1 > options.threshold.max(MOST_SHOWN) {
            return out.write_str("<these are too many values to show>");
        }
    }
    let axes = walk.axes();
    repeat("[", axes, out)?;
    loop {
        write_value(elements.bits(walk.index(), walk.lane()), dtype, out)?;
        match walk.step() {
            Some(step) => write_between(&step, axes, out)?,
            None => return repeat("]", axes, out),
        }
    }
}

fn repeat(text: &str, count: usize, out: &mut dyn Write) -> fmt::Result {
    (0..count).try_for_each(|_| out.write_str(text))
}

/// Writes what stands between two elements.
fn write_between(step: &Step, axes: usize, out: &mut dyn Write) -> fmt::Result {
    let outer = step.axis + 1;
    let inner = axes.saturating_sub(outer);
    repeat("]", inner, out)?;
    for text in [",", "...,"].iter().take(1 + usize::from(step.gap)) {
        out.write_str(text)?;
        // Between rows a new line, between matrices an empty one as well, and so on.
        repeat("\n", inner, out)?;
        repeat(" ", if inner == 0 { 1 } else { outer }, out)?;
    }
    repeat("[", inner, out)
}

/// Prints one lane of an element.
fn write_value(raw: u128, dtype: DLDataType, out: &mut dyn Write) -> fmt::Result {
    let unused = u128::BITS - u32::from(dtype.bits).clamp(1, u128::BITS);
    let signed_raw = (raw << unused) as i128 >> unused;
    let raw = raw << unused >> unused;
    let known = dtype::legal(dtype).is_ok();
    let is = |code| known && dtype.code == code as u8;
    match float_formats::of(dtype.code, dtype.bits) {
        _ if is(kDLInt) => write!(out, "{}", signed(signed_raw as i64)),
        _ if is(kDLUInt) => write!(out, "{}", unsigned(raw as u64)),
        _ if is(kDLBool) => out.write_str(if raw != 0 { "True" } else { "False" }),
        Some(format) if dtype::is_complex(dtype.code) => {
            write_float(raw as u64, format, false, out)?;
            write_float((raw >> format.width()) as u64, format, true, out)?;
            out.write_str("j")
        }
        Some(format) => write_float(raw as u64, format, false, out),
        None => match (raw >> 64) as u64 {
            0 => write!(out, "0x{}", hex(raw as u64, 1)),
            upper => write!(out, "0x{}{}", hex(upper, 1), hex(raw as u64, 16)),
        },
    }
}

/// Prints a float, with a sign in any case if `plus`.
fn write_float(raw: u64, format: &FloatFormat, plus: bool, out: &mut dyn Write) -> fmt::Result {
    let parts = format.parts(raw);
    let negative = parts.negative && parts.class != Class::Nan;
    out.write_str(if plus && !negative { "+" } else { "" })?;
    match parts.class {
        Class::Nan => out.write_str("nan"),
        Class::Infinite => out.write_str(if negative { "-inf" } else { "inf" }),
        Class::Finite if *format == FLOAT64 => {
            out.write_str(ryu::Buffer::new().format_finite(f64::from_bits(raw)))
        }
        Class::Finite => {
            let value = f32::from_bits(parts.place(&FLOAT32) as u32);
            out.write_str(ryu::Buffer::new().format_finite(value))
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

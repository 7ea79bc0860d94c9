//! The numbers of a tensor: its elements taken apart into lanes and complex parts.

use crate::abi::*;
use crate::array::Array;
use crate::convert::{Cast, Kind, Side};
use crate::copy::bit_strides;
use crate::dtype;
use crate::error::{Error, Field::*, Result, Status::*};
use crate::layout::MAX_NDIM;
use crate::plan::Dim;
use crate::validate::Snapshot;

/// One number of every lane of every element.
#[derive(Clone, Copy)]
pub struct Part {
    /// Its type; of a complex dtype, that of both parts.
    pub kind: Kind,
    /// Where the first one starts.
    pub first: *mut u8,
    /// Bits that are read or written per number.
    pub access_bits: u32,
    /// Bits from lane to lane.
    pub step: i64,
    /// Bits from element to element.
    pub strides: Array<i64, MAX_NDIM>,
}

const BYTE: Kind = Kind::Int { bits: 8, signed: false };

/// Whether a tensor's numbers are complex.
pub fn is_complex(tensor: &Snapshot) -> bool {
    dtype::is_complex(tensor.dtype.code)
}

impl Part {
    /// The numbers of a tensor, or the real parts of complex ones. Rejects elements that have none,
    /// and strides that overflow in bits.
    #[inline(never)]
    pub fn of(tensor: &Snapshot) -> Result<Part> {
        let dtype = tensor.dtype;
        let Some(kind) = Kind::of(dtype.code, dtype.bits) else {
            let error = Error::new(DLRS_UNSUPPORTED).field(DLRS_FIELD_DTYPE_CODE);
            return Err(error
                .detail("elements have no numeric value\0View them as another dtype.")
                .value(dtype.code.into()));
        };
        let mut strides = Array::new();
        for stride in bit_strides(tensor) {
            strides.push(stride?);
        }
        let own_byte = dtype.lanes == 1 && tensor.slot_bits() == 8;
        let access_bits = if own_byte { 8 } else { kind.bits() };
        Ok(Part { kind, first: tensor.first(), access_bits, step: dtype.bits.into(), strides })
    }

    /// A zero in place of every number.
    #[inline(always)]
    pub fn zero() -> Part {
        static ZERO: u8 = 0;
        let first = (&raw const ZERO).cast_mut(); // only read
        Part { kind: BYTE, first, access_bits: 8, step: 0, strides: Array::new() }
    }

    /// The imaginary parts, instead of the real ones.
    pub fn imaginary(&self) -> Part {
        Part { first: self.first.wrapping_add(self.kind.nbytes()), ..*self }
    }

    /// Both parts, as one row of numbers.
    pub fn both(&self) -> Part {
        Part { step: self.step / 2, ..*self }
    }

    /// Whole bytes, instead of numbers.
    pub fn bytes(&self) -> Part {
        Part { kind: BYTE, access_bits: 8, step: 8, ..*self }
    }

    fn stride(&self, dim: usize) -> i64 {
        self.strides.get(dim).map_or(0, |&stride| stride)
    }

    fn side(&self) -> Side {
        Side { kind: self.kind, bits: self.access_bits }
    }
}

/// How many lanes, or parts of lanes, an element has.
pub fn per_element(tensor: &Snapshot) -> i64 {
    i64::from(tensor.dtype.lanes) * if is_complex(tensor) { 2 } else { 1 }
}

/// The conversion of `numbers` numbers of every element.
#[inline(never)]
pub fn pair(shape: &[i64], src: &Part, dst: &Part, numbers: i64) -> Cast {
    let mut cast = Cast::new((src.first, src.side()), (dst.first, dst.side()));
    let elements = shape.iter().enumerate();
    let elements = elements.map(|(i, &n)| Dim { n, src: src.stride(i), dst: dst.stride(i) });
    let lanes = Dim { n: numbers, src: src.step, dst: dst.step };
    cast.plan.fill(elements.chain([lanes]));
    cast
}

/// Rejects a dtype with other lanes.
pub fn check_same_lanes(given: DLDataType, wanted: DLDataType) -> Result<()> {
    if given.lanes == wanted.lanes {
        return Ok(());
    }
    let error = Error::new(DLRS_DTYPE_MISMATCH).field(DLRS_FIELD_DTYPE_LANES);
    let error = error.detail(
        "\0Lanes must be equal: view them as an axis by dlrs_view_lanes.\0\
                              Lanes must be equal: ask for the same number.",
    );
    Err(error.dtypes(dtype::word_of(given), Some(dtype::word_of(wanted))))
}

/// Unused bits of an element: padding after several lanes.
pub fn has_gap(tensor: &Snapshot) -> bool {
    tensor.dtype.lanes > 1 && tensor.slot_bits() != dtype::item_bits(tensor.dtype)
}

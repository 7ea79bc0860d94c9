//! Steps that read the same bits as other elements.

use super::*;
use crate::abi::{DLDataTypeCode, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED};

const HANDLE: u8 = DLDataTypeCode::kDLOpaqueHandle as u8;

impl View<'_> {
    /// As in NumPy: another size of element needs a dense last axis, whose extent changes. The last
    /// of the bytes of packed elements may have others behind them.
    pub(super) fn bitcast(&mut self, dtype: DLDataType) -> Result<()> {
        dtype::legal(dtype).map_err(|e| e.of(Arg::dtype))?;
        if (dtype.code == HANDLE) != (self.dtype.code == HANDLE) {
            let error = Error::new(DLRS_DTYPE_MISMATCH).of(Arg::dtype);
            let error = error.detail(
                "opaque handles cannot be converted to or from bits\0Use a dtype of that code.",
            );
            return Err(error.value(dtype.code.into()).limit(self.dtype.code.into()));
        }
        self.recast(dtype)
    }

    /// As a bitcast to a dtype of the same size.
    fn recast(&mut self, dtype: DLDataType) -> Result<()> {
        let (from, to) = (self.slot_bits(), dtype::slot_bits(dtype, self.flags));
        self.dtype = dtype;
        self.flags = dtype::flags_of(dtype, self.flags);
        if from == to {
            return Ok(());
        }
        let Some(last) = self.ndim().checked_sub(1) else {
            let error = Error::new(DLRS_NOT_VIEWABLE).of(Arg::dtype).value(to.into());
            let error = error.detail(
                "a 0-d tensor has no axis for elements of another size\0Unsqueeze it first.",
            );
            return Err(error.limit(from.into()));
        };
        let (extent, empty) = (self.extent(last), self.is_empty());
        if extent != 1 && self.stride(last) != 1 && !empty {
            let error = not_viewable("the last axis must be dense", last, self.stride(last));
            return Err(error.field(DLRS_FIELD_STRIDES).limit(1));
        }
        let ratio = Ratio::new(from, to);
        for dim in 0..last {
            let stride = self.stride(dim);
            let scaled = match ratio.of(stride) {
                Some(scaled) => scaled,
                None if self.extent(dim) == 1 || empty => 0, // never used
                None => {
                    const WHAT: &str = "is no whole number of such elements\0\
                        Reshape a compact copy to one axis first.";
                    let error = not_viewable(WHAT, dim, stride);
                    return Err(error.field(DLRS_FIELD_STRIDES));
                }
            };
            self.set(dim, self.extent(dim), scaled)?;
        }
        let error = |status| Error::new(status).field(DLRS_FIELD_SHAPE).dim(last).value(extent);
        let count = match ratio.of(extent) {
            Some(count) => count,
            None if to == 8 => {
                self.set_read_only(); // the last byte may have bits of other elements
                ratio.up(extent)
            }
            None => {
                const WHAT: &str = "is no whole number of such elements\0Slice it to a multiple.";
                return Err(error(DLRS_NOT_VIEWABLE).detail(WHAT));
            }
        };
        match i64::try_from(count) {
            Ok(extent) => self.set(last, extent, 1),
            Err(_) => Err(error(DLRS_SIZE_OVERFLOW)),
        }
    }

    /// Lanes become a last axis when 1 is wanted, else a last axis of that extent becomes lanes.
    pub(super) fn lanes(&mut self, lanes: i32) -> Result<()> {
        let Some(wanted) = u16::try_from(lanes).ok().filter(|&lanes| lanes > 0) else {
            const LANES: &str = "lanes are 1 to 65535\0Give 1, or the last extent.";
            return Err(bad(Arg::lanes, LANES, lanes.into()).limit(u16::MAX.into()));
        };
        let padded = self.flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED != 0;
        if padded && !self.dtype.bits.is_multiple_of(8) {
            let error = Error::new(DLRS_FLAGS).field(DLRS_FIELD_FLAGS).value_u64(self.flags);
            const PADDING: &str =
                "lanes have no padding between them, elements have\0Convert to packed elements.";
            return Err(error.detail(PADDING));
        }
        let dtype = DLDataType { lanes: wanted, ..self.dtype };
        if wanted == 1 {
            self.insert(self.ndim(), 1, 1)?;
            return self.recast(dtype);
        }
        let last = self.ndim().saturating_sub(1);
        let extent = self.shape().last().copied().unwrap_or(0);
        if self.dtype.lanes != 1 || extent != i64::from(wanted) {
            let error = Error::new(DLRS_SHAPE_MISMATCH).of(Arg::lanes).dim(last);
            let error =
                error.detail("needs scalars and a last axis of so many\0Reshape the tensor first.");
            return Err(error.value(lanes.into()).limit(extent));
        }
        self.recast(dtype)?;
        self.remove(last);
        Ok(())
    }
}

/// Converts counts of elements of `from` bits to elements of `to` bits. Without 128-bit division,
/// which would link a large function.
struct Ratio {
    from: i64,
    to: i64,
}

impl Ratio {
    fn new(from: u32, to: u32) -> Self {
        let (mut divisor, mut rest) = (from, to);
        while let Some(next) = divisor.checked_rem(rest) {
            (divisor, rest) = (rest, next);
        }
        let reduced = |bits: u32| i64::from(bits.checked_div(divisor).unwrap_or(bits));
        Ratio { from: reduced(from), to: reduced(to) }
    }

    /// `None` for what is no whole number.
    fn of(&self, count: i64) -> Option<i128> {
        match (count.checked_rem(self.to), count.checked_div(self.to)) {
            (Some(0), Some(groups)) => Some(i128::from(groups) * i128::from(self.from)),
            _ => None,
        }
    }

    /// As [`Ratio::of`], rounded up; elements have 8 bits, of which `to` is a divisor.
    fn up(&self, count: i64) -> i128 {
        let eighths = i128::from(count) * i128::from(self.from) + i128::from(self.to) - 1;
        eighths >> self.to.trailing_zeros()
    }
}

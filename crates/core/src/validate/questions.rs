//! Queries on a snapshot that has been checked.
#![forbid(unsafe_code)]

use super::Snapshot;
use crate::abi::DLDevice;
use crate::device_type;
use crate::error::{Error, Field::*, Result, Status::*};
use crate::layout;

/// No memory is below: a caller without a base may pass smaller values.
const NO_BASE: u64 = 1 << 16;
/// Larger offsets are not inside one allocation.
const OFFSET_MOST: u128 = 1 << 46;

impl Snapshot {
    /// Number of elements.
    pub fn numel(&self) -> Result<i64> {
        layout::numel(self.shape())
    }

    /// Bytes of the elements laid out without gaps.
    pub fn nbytes(&self) -> Result<u64> {
        layout::packed_nbytes(self.numel()?, self.slot_bits())
    }

    /// Rejects a tensor whose `data` is a handle and not an address; without elements it has
    /// neither.
    pub fn check_addressed(&self) -> Result<()> {
        if self.empty { Ok(()) } else { check_addressed(self.device) }
    }

    /// Rejects a tensor that uses bytes outside `[base, base + nbytes)`. Layout has been checked.
    pub fn check_within(&self, base: *const u8, nbytes: u64) -> Result<()> {
        if self.empty {
            return Ok(());
        }
        let Some(end) = (base as u64).checked_add(nbytes) else {
            let error = Error::new(DLRS_OUT_OF_BOUNDS)
                .detail("base + nbytes wraps\0Give the size of the allocation.");
            return Err(error.value_u64(nbytes));
        };
        let first = self.first() as u64;
        let (low, high) = self.byte_extent;
        let low = i128::from(first) + i128::from(low) - i128::from(base as u64);
        let high = i128::from(first) + i128::from(high) - i128::from(base as u64);
        if low >= 0 && high <= i128::from(end - base as u64) {
            return Ok(());
        }
        // The offset from the caller's own base. From an invalid base, or one too far from the
        // tensor, it would be an address.
        let worst = if low < 0 { low } else { high };
        let error = Error::new(DLRS_OUT_OF_BOUNDS).field(DLRS_FIELD_DATA).limit_u64(nbytes);
        let near = base as u64 >= NO_BASE && worst.unsigned_abs() < OFFSET_MOST;
        Err(if near { error.value(worst as i64) } else { error })
    }

    /// Rejects a first element that is not aligned to `align_bytes`, a power of two.
    pub fn check_aligned(&self, align_bytes: usize) -> Result<()> {
        let off = (self.first() as usize) & (align_bytes - 1);
        if self.empty || off == 0 {
            return Ok(());
        }
        let error = Error::new(DLRS_MISALIGNED).field(DLRS_FIELD_DATA);
        // What it is aligned to: the address itself is nobody's business.
        Err(error.value((off & off.wrapping_neg()) as i64).limit(align_bytes as i64))
    }
}

/// Rejects a device on which `data` is a handle and not an address.
pub fn check_addressed(device: DLDevice) -> Result<()> {
    if !device_type::opaque_handle(device.device_type) {
        return Ok(());
    }
    let error = Error::new(DLRS_UNSUPPORTED).field(DLRS_FIELD_DEVICE_TYPE);
    let error = error.detail(
        "data is an opaque handle on this device, not an address\0Ask the device's own library.",
    );
    Err(error.value(device.device_type.into()))
}

//! What a consumer accepts: device types, numbers of dimensions, dtypes. Anything else is rejected,
//! never converted.

use core::ptr::null;

use super::Snapshot;
use crate::abi::{DLDataType, DLDevice};
use crate::dtype::word_of;
use crate::error::{Error, Field::*, Result, Status::*};

/// The limits of one consumer.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Bit n: device type n is accepted; 0 is any.
    pub device_types: u64,
    /// Bit n: n dimensions are accepted; 0 is any.
    pub ranks: u64,
    /// The accepted dtypes; NULL is any.
    pub dtypes: *const DLDataType,
    /// How many dtypes.
    pub dtypes_count: usize,
}

/// Whether a set of numbers has this one.
fn has(set: u64, number: i32) -> bool {
    u32::try_from(number).is_ok_and(|number| set.checked_shr(number).is_some_and(|s| s & 1 != 0))
}

impl Limits {
    /// Everything is accepted.
    pub const NONE: Limits = Limits { device_types: 0, ranks: 0, dtypes: null(), dtypes_count: 0 };

    /// Whether a tensor is accepted, if there is no list of dtypes.
    #[inline(always)]
    pub fn take(&self, device: DLDevice, ndim: usize) -> bool {
        let taken = |set, number| set == 0 || has(set, number);
        taken(self.device_types, device.device_type)
            && taken(self.ranks, ndim as i32)
            && self.dtypes.is_null()
    }

    /// Rejects what is not accepted. For a tensor to be copied to `target`, that device counts.
    ///
    /// # Safety
    /// `dtypes` is NULL or holds as many.
    pub unsafe fn check(&self, tensor: &Snapshot, target: Option<DLDevice>) -> Result<()> {
        if self.device_types | self.ranks == 0 && self.dtypes.is_null() {
            return Ok(());
        }
        // SAFETY: `dtypes` is NULL or holds `dtypes_count` values.
        unsafe { self.check_each(tensor, target.unwrap_or(tensor.device)) }
    }

    /// # Safety
    /// As [`Limits::check`].
    unsafe fn check_each(&self, tensor: &Snapshot, device: DLDevice) -> Result<()> {
        const DTYPE: &str = "the consumer does not take this dtype\0Cast to one that it takes.";
        const DEVICE: &str = "the consumer does not take tensors on this type of device\0\
                              Copy to a device that it takes.";
        const NDIM: &str = "the consumer does not take so many dimensions\0Reshape first.";
        let refuse = |detail| Error::new(DLRS_UNSUPPORTED).detail(detail);
        if self.device_types != 0 && !has(self.device_types, device.device_type) {
            let error = refuse(DEVICE);
            return Err(error.field(DLRS_FIELD_DEVICE_TYPE).value(device.device_type.into()));
        }
        let ndim = tensor.shape().len() as i32;
        if self.ranks != 0 && !has(self.ranks, ndim) {
            let error = refuse(NDIM);
            return Err(error.field(DLRS_FIELD_NDIM).value(ndim.into()));
        }
        // SAFETY: asked only for `i` below `dtypes_count`, where `dtypes` is not NULL.
        let taken = |i| unsafe { self.dtypes.add(i).read_volatile() };
        if self.dtypes.is_null() || (0..self.dtypes_count).any(|i| taken(i) == tensor.dtype) {
            return Ok(());
        }
        let DLDataType { code, bits, .. } = tensor.dtype;
        let codes = (0..self.dtypes_count).any(|i| taken(i).code == code);
        let sizes = (0..self.dtypes_count).any(|i| (taken(i).code, taken(i).bits) == (code, bits));
        let field = match (codes, sizes) {
            (false, _) => DLRS_FIELD_DTYPE_CODE,
            (true, false) => DLRS_FIELD_DTYPE_BITS,
            (true, true) => DLRS_FIELD_DTYPE_LANES,
        };
        let wanted = (self.dtypes_count > 0).then(|| word_of(taken(0)));
        Err(refuse(DTYPE).field(field).dtypes(word_of(tensor.dtype), wanted))
    }
}

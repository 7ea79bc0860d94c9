//! The usual case of a foreign tensor, in short. It must never accept what the checks in their
//! fixed order refuse: `tests/plain.rs`.

use core::ffi::c_void;

use super::FLAGS_KNOWN;
use crate::abi::*;
use crate::layout;
use crate::platform::LOW_HALF;
use crate::{device_type, dtype};

/// The usual tensor, recognised in one pass by conditions that suffice at every level: few
/// dimensions, moderate numbers, no negative stride, elements of whole bytes, everything known,
/// nothing empty, nothing wrong. Its strides may be missing; where they are due is the caller's to
/// know.
pub struct Plain {
    /// `data` as given, not NULL.
    pub data: *mut c_void,
    /// `byte_offset` as given.
    pub byte_offset: u64,
    /// The device, not one of opaque handles.
    pub device: DLDevice,
    /// The element type.
    pub dtype: DLDataType,
    /// Dimensions, 1 to `Sums::NDIM_MAX`.
    pub ndim: usize,
    pub(super) nbytes: u32,
    shape: *const i64,
    strides: *const i64,
}

impl Plain {
    /// Whether it is a usual one.
    ///
    /// # Safety
    /// As [`Snapshot::read`].
    #[inline(always)]
    pub unsafe fn is(tensor: *const DLTensor, flags: u64) -> bool {
        // SAFETY: the caller's word.
        unsafe {
            let plain = Plain::ndim(tensor).and_then(|ndim| Plain::head(tensor, ndim, flags));
            plain.and_then(|plain| plain.arrays(|_, _, _| ())).is_some()
        }
    }

    /// Its number of dimensions, when they are few but not none: what a caller must know first who
    /// makes room for them.
    ///
    /// # Safety
    /// As [`Snapshot::read`].
    #[inline(always)]
    pub unsafe fn ndim(tensor: *const DLTensor) -> Option<usize> {
        // SAFETY: a member of the caller's struct.
        let ndim = unsafe { (&raw const (*tensor).ndim).read_volatile() } as u32;
        (ndim.wrapping_sub(1) < layout::Sums::NDIM_MAX).then_some(ndim as usize)
    }

    /// Reads the rest of the struct, not yet its arrays of `ndim` values.
    ///
    /// # Safety
    /// As [`Snapshot::read`].
    #[inline(always)]
    pub unsafe fn head(tensor: *const DLTensor, ndim: usize, flags: u64) -> Option<Plain> {
        // SAFETY: the caller vouches for an aligned, readable struct; it is copied once.
        let DLTensor { data, device, dtype, shape, strides, byte_offset, .. } =
            unsafe { tensor.read() };
        let nbytes = dtype::plain_bytes(dtype);
        if nbytes == 0 || !device_type::plain(device) || flags & !FLAGS_KNOWN != 0 {
            return None;
        }
        if shape.is_null() || data.is_null() {
            return None;
        }
        let aligned = (shape.addr() | strides.addr()).is_multiple_of(align_of::<i64>());
        aligned.then_some(Plain { data, byte_offset, device, dtype, ndim, nbytes, shape, strides })
    }

    /// Whether strides were given.
    #[inline(always)]
    pub fn strides_given(&self) -> bool {
        !self.strides.is_null()
    }

    /// Reads extents and strides once, makes compact strides where there are none, and hands all
    /// of them to `put`; one past the last byte used, counted from the first element, or `None` if
    /// this is no usual tensor after all.
    ///
    /// # Safety
    /// As [`Snapshot::read`].
    #[inline(always)]
    pub unsafe fn arrays(&self, mut put: impl FnMut(usize, i64, i64)) -> Option<i64> {
        let mut sums = layout::Sums::START;
        let mut add = |sums: &mut layout::Sums, dim, extent, stride| {
            put(dim, extent, stride);
            sums.add(extent, stride);
        };
        // SAFETY: `ndim` values each, by the caller's word; volatile, as in `read_shape`. By
        // pointer: a third of the instructions of iterators.
        unsafe {
            let mut dim = 0;
            if self.strides_given() {
                while dim < self.ndim {
                    let stride = self.strides.add(dim).read_volatile();
                    add(&mut sums, dim, self.shape.add(dim).read_volatile(), stride);
                    dim += 1;
                }
            } else {
                dim = self.ndim;
                while dim > 0 {
                    dim -= 1;
                    let stride = sums.numel();
                    add(&mut sums, dim, self.shape.add(dim).read_volatile(), stride);
                }
            }
        }
        let end = sums.byte_end(i64::from(self.nbytes))?;
        // `end` is above 0: the data begins in the lower half and ends there.
        let first = (self.data as u64).checked_add(self.byte_offset)?;
        (first.checked_add(end as u64)? <= LOW_HALF).then_some(end)
    }
}

//! Fast path for the common foreign tensor. It must never accept what the checks in their fixed
//! order reject: `tests/plain.rs`.

use core::ffi::c_void;

use super::rules::FLAGS_KNOWN;
use crate::abi::*;
use crate::layout;
use crate::platform::LOW_HALF;
use crate::{device_type, dtype};

/// The common tensor, recognised in one pass by conditions that suffice at every level: few
/// dimensions, moderate numbers, no negative stride, one lane of whole bytes, everything known, not
/// empty, valid. Its strides may be missing; the caller checks where they are required.
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

/// What a walk over a tensor has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// A tensor that obeys all rules; where strides are due it may have none.
    Plain,
    /// A struct in order, whose arrays have been read; something is wrong with them, or empty.
    Arrays,
    /// Another struct, whose arrays have not been read.
    Unusual,
}

/// `ndim`, 1 to `Sums::NDIM_MAX`, and `dtype` of a tensor.
#[derive(Clone, Copy)]
pub struct Rank(u64);

impl Rank {
    /// How many dimensions.
    #[inline(always)]
    pub fn ndim(self) -> usize {
        let ndim = self.0 as u32;
        // SAFETY: `Plain::rank` makes none with more.
        unsafe { core::hint::assert_unchecked(ndim <= layout::Sums::NDIM_MAX) };
        ndim as usize
    }

    #[inline(always)]
    fn dtype(self) -> DLDataType {
        // SAFETY: both are four bytes, and any bytes are a type.
        unsafe { core::mem::transmute::<u32, DLDataType>((self.0 >> 32) as u32) }
    }
}

/// Two members of four bytes side by side, each read once; the first is the lower half.
///
/// # Safety
/// The place of the first is in a readable, aligned `DLTensor`.
#[inline(always)]
unsafe fn pair(place: *const u64) -> u64 {
    // Where pointers have eight bytes both pairs of a tensor are aligned.
    if size_of::<*const ()>() == 8 {
        // SAFETY: an aligned place in a readable `DLTensor`, with another member of four bytes
        // behind.
        let word = unsafe { place.read_volatile() };
        return if cfg!(target_endian = "big") { word.rotate_left(32) } else { word };
    }
    let halves = place.cast::<u32>();
    // SAFETY: two aligned members of four bytes in a readable `DLTensor`.
    let (low, high) = unsafe { (halves.read_volatile(), halves.add(1).read_volatile()) };
    u64::from(high) << 32 | u64::from(low)
}

/// All members of a tensor, each read once, even while another thread writes them.
///
/// # Safety
/// `tensor` is aligned and points to a readable struct.
#[inline(always)]
pub unsafe fn members(tensor: *const DLTensor) -> DLTensor {
    // SAFETY: `ndim` and `dtype` are neighbours in an aligned, readable struct; the word is theirs.
    unsafe { members_beside(tensor, Rank(pair((&raw const (*tensor).ndim).cast()))) }
}

/// As [`members`], where `ndim` and `dtype` have been read.
///
/// # Safety
/// As [`members`].
#[inline(always)]
unsafe fn members_beside(tensor: *const DLTensor, rank: Rank) -> DLTensor {
    // SAFETY: members of an aligned, readable struct; the two of a device are neighbours.
    unsafe {
        let device = pair((&raw const (*tensor).device).cast());
        DLTensor {
            data: (&raw const (*tensor).data).read_volatile(),
            device: DLDevice { device_type: device as i32, device_id: (device >> 32) as i32 },
            ndim: rank.0 as i32,
            dtype: rank.dtype(),
            shape: (&raw const (*tensor).shape).read_volatile(),
            strides: (&raw const (*tensor).strides).read_volatile(),
            byte_offset: (&raw const (*tensor).byte_offset).read_volatile(),
        }
    }
}

impl Plain {
    /// What it is, if it is a common one.
    ///
    /// # Safety
    /// As [`Snapshot::read`](crate::validate::Snapshot::read).
    #[inline(always)]
    pub unsafe fn of(tensor: *const DLTensor, flags: u64) -> Option<Plain> {
        // SAFETY: an aligned, readable struct; arrays that are not NULL hold `ndim` values.
        unsafe {
            let plain = Plain::rank(tensor).and_then(|rank| Plain::head(tensor, rank, flags))?;
            plain.arrays(|_, _, _| ()).map(|_| plain)
        }
    }

    /// Its number of dimensions, if few but not 0: for callers that allocate room for them first.
    ///
    /// # Safety
    /// As [`Snapshot::read`](crate::validate::Snapshot::read).
    #[inline(always)]
    pub unsafe fn rank(tensor: *const DLTensor) -> Option<Rank> {
        // SAFETY: `ndim` and `dtype` are neighbours in an aligned, readable struct.
        let rank = Rank(unsafe { pair((&raw const (*tensor).ndim).cast()) });
        ((rank.0 as u32).wrapping_sub(1) < layout::Sums::NDIM_MAX).then_some(rank)
    }

    /// Reads the rest of the struct, not yet its arrays.
    ///
    /// # Safety
    /// As [`Snapshot::read`](crate::validate::Snapshot::read); `rank` is the tensor's.
    #[inline(always)]
    pub unsafe fn head(tensor: *const DLTensor, rank: Rank, flags: u64) -> Option<Plain> {
        // SAFETY: an aligned, readable struct.
        Plain::among(&unsafe { members_beside(tensor, rank) }, flags)
    }

    /// What a struct with these members is, as far as they tell.
    #[inline(always)]
    pub fn among(members: &DLTensor, flags: u64) -> Option<Plain> {
        let &DLTensor { data, device, ndim, dtype, shape, strides, byte_offset } = members;
        let nbytes = dtype::lane_bytes(dtype);
        if (ndim as u32).wrapping_sub(1) >= layout::Sums::NDIM_MAX || nbytes == 0 {
            return None;
        }
        if !device_type::plain(device) {
            return None;
        }
        if flags & !FLAGS_KNOWN != 0 || shape.is_null() || data.is_null() {
            return None;
        }
        let aligned = (shape.addr() | strides.addr()).is_multiple_of(align_of::<i64>());
        let ndim = ndim as usize;
        aligned.then_some(Plain { data, byte_offset, device, dtype, ndim, nbytes, shape, strides })
    }

    /// Whether strides were given.
    #[inline(always)]
    pub fn strides_given(&self) -> bool {
        !self.strides.is_null()
    }

    /// Reads extents and strides once, computes compact strides where there are none, and passes
    /// all to `put`; returns one past the last byte used, counted from the first element, or `None`
    /// if this is no common tensor after all.
    ///
    /// # Safety
    /// As [`Snapshot::read`](crate::validate::Snapshot::read).
    #[inline(always)]
    pub unsafe fn arrays(&self, mut put: impl FnMut(usize, i64, i64)) -> Option<i64> {
        let mut sums = layout::Sums::START;
        // SAFETY: `shape` and, if not NULL, `strides` hold `ndim` values; there is at least one.
        unsafe {
            if self.strides_given() {
                self.given(&mut sums, &mut put);
            } else {
                self.compact(&mut sums, &mut put);
            }
        }
        let end = sums.byte_end(self.nbytes)?;
        // The data begins and ends in the lower half of the address space, so nothing wraps.
        let data = self.data as u64;
        let last = data.wrapping_add(self.byte_offset).wrapping_add(end as u64);
        (data | self.byte_offset | last < 1 << LOW_HALF.ilog2()).then_some(end)
    }

    /// Both arrays. Four dimensions are unrolled: half a cycle per jump saved.
    #[inline(always)]
    unsafe fn given(&self, sums: &mut layout::Sums, put: &mut impl FnMut(usize, i64, i64)) {
        // SAFETY: both arrays hold `ndim` values, at least one; `dim` stays below that.
        unsafe {
            self.one(0, sums, put);
            if self.ndim == 1 {
                return;
            }
            self.one(1, sums, put);
            if self.ndim == 2 {
                return;
            }
            self.one(2, sums, put);
            if self.ndim == 3 {
                return;
            }
            self.one(3, sums, put);
            let mut dim = 4;
            while dim < self.ndim {
                self.one(dim, sums, put);
                dim += 1;
            }
        }
    }

    /// One dimension; volatile: exactly one read of each, even while another thread writes. By
    /// pointer: a third of the instructions of iterators.
    #[inline(always)]
    unsafe fn one(
        &self,
        dim: usize,
        sums: &mut layout::Sums,
        put: &mut impl FnMut(usize, i64, i64),
    ) {
        // SAFETY: `dim` is below `ndim`, the length of both arrays, which are aligned.
        let (extent, stride) =
            unsafe { (self.shape.add(dim).read_volatile(), self.strides.add(dim).read_volatile()) };
        put(dim, extent, stride);
        sums.add(extent, stride);
    }

    /// The extents, and compact strides.
    #[inline(always)]
    unsafe fn compact(&self, sums: &mut layout::Sums, put: &mut impl FnMut(usize, i64, i64)) {
        let mut dim = self.ndim;
        while dim > 0 {
            dim -= 1;
            // SAFETY: `dim` is below `ndim`, the length of `shape`, which is aligned.
            let extent = unsafe { self.shape.add(dim).read_volatile() };
            let stride = sums.numel();
            put(dim, extent, stride);
            sums.add(extent, stride);
        }
    }
}

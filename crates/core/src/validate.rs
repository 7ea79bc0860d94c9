//! The fixed order of checks over a snapshot.
//!
//! A foreign struct is read once, into locals, and only the locals are used afterwards: if another
//! thread modifies the struct, the result is that of one state of each member. Here, in `plain.rs`
//! and in `header.rs` alone the members of a foreign tensor are read.
//!
//! Most tensors are common ones ([`Plain`]), which one walk over the arrays proves to be in order.
//! Where it does not, what it has read is judged.
//!
//! Order: version, flags, ndim, shape pointer, dtype, device, shape values, strides, sizes,
//! data and offset, bounds. The first error is reported, so the result is deterministic.

pub mod exchange;
mod header;
pub mod limits;
mod plain;
mod questions;
pub mod rules;

use core::ptr::null_mut;

use crate::abi::*;
use crate::error::{Error, Field, Field::*, Result, Status::*};
use crate::layout::{self, Dims, MAX_NDIM, Order};
use crate::platform::LOW_HALF;
use crate::{device_type, dtype};

pub use header::{check_version, flags_of, of_legacy};
pub use plain::{Found, Plain, Rank, members};
pub use questions::check_addressed;
pub use rules::{Level, Rules, check_flags};

/// A tensor's metadata, read once and checked.
pub struct Snapshot {
    /// The managed tensor that was read, NULL for a bare one: only its address is of use.
    pub managed: *const DLManagedTensorVersioned,
    /// `data` as given.
    pub data: *mut u8,
    /// Bytes from `data` to element (0, …, 0).
    pub byte_offset: u64,
    /// The device.
    pub device: DLDevice,
    /// The element type.
    pub dtype: DLDataType,
    /// The flags of the managed tensor, 0 for a bare one.
    pub flags: u64,
    /// Some extent is 0.
    pub empty: bool,
    /// Strides were given, and read.
    pub strides_given: bool,
    /// From element (0, …, 0) to the first byte used and one past the last; set by `layout`.
    pub byte_extent: (i64, i64),
    /// Extents, and strides in elements: compact row-major where none were given.
    pub dims: Dims,
}

/// An aligned pointer to `ndim` values, or why it is none.
fn check_array(array: *const i64, field: Field) -> Result<()> {
    if array.is_aligned() {
        return Ok(());
    }
    let error = Error::new(DLRS_MISALIGNED_STRUCT).field(field);
    Err(error.limit(align_of::<i64>() as i64))
}

/// How many dimensions, when their number is acceptable.
pub fn check_ndim(ndim: i32) -> Result<usize> {
    match usize::try_from(ndim) {
        Ok(count) if count <= MAX_NDIM => Ok(count),
        _ => {
            let error = Error::new(DLRS_NDIM).field(DLRS_FIELD_NDIM);
            Err(error.value(ndim.into()).limit(MAX_NDIM as i64))
        }
    }
}

impl Snapshot {
    /// An empty one to read into; costs nothing.
    #[inline(always)]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Snapshot {
        Snapshot {
            managed: core::ptr::null(),
            data: null_mut(),
            byte_offset: 0,
            device: DLDevice { device_type: 0, device_id: 0 },
            dtype: DLDataType { code: 0, bits: 0, lanes: 0 },
            flags: 0,
            empty: false,
            strides_given: false,
            byte_extent: (0, 0),
            dims: Dims::new(),
        }
    }

    /// Extents, one per dimension.
    pub fn shape(&self) -> &[i64] {
        self.dims.first()
    }

    /// Strides in elements, one per dimension; compact row-major where none were given.
    pub fn strides(&self) -> &[i64] {
        self.dims.second()
    }

    /// Bits from one element to the next in a layout without gaps: whole bytes when padded.
    pub fn slot_bits(&self) -> u32 {
        dtype::slot_bits(self.dtype, self.flags)
    }

    /// Address of element (0, …, 0). Only meaningful where addresses are (not on opaque handles).
    pub fn first(&self) -> *mut u8 {
        self.data.wrapping_add(self.byte_offset as usize)
    }

    /// Reads and checks a bare tensor. NULL strides are compact row-major.
    ///
    /// # Safety
    /// `tensor` is aligned and points to a readable `DLTensor` whose `shape` and `strides`, where
    /// not NULL, hold `ndim` values.
    pub unsafe fn read(&mut self, tensor: *const DLTensor, flags: u64, rules: Rules) -> Result<()> {
        self.managed = core::ptr::null();
        // SAFETY: an aligned, readable struct; arrays that are not NULL hold `ndim` values.
        unsafe { self.read_tensor(tensor, flags, rules, false) }
    }

    /// Reads and checks a versioned tensor.
    ///
    /// # Safety
    /// As [`Snapshot::read`], for the tensor inside; `tensor` may be of any major.
    pub unsafe fn read_managed(
        &mut self,
        tensor: *const DLManagedTensorVersioned,
        rules: Rules,
    ) -> Result<()> {
        // SAFETY: an aligned, readable struct, which starts with the version in every major.
        let version = unsafe { check_version(tensor) }?;
        // SAFETY: the major is 1.
        let flags = unsafe { flags_of(tensor) };
        // Since 1.2 strides must be given.
        let strides_due = rules.strides_given && version.minor >= 2;
        self.managed = tensor;
        // SAFETY: the major is 1, so `dl_tensor` is there; arrays not NULL hold `ndim` values.
        unsafe { self.read_tensor(&raw const (*tensor).dl_tensor, flags, rules, strides_due) }
    }

    #[inline(always)]
    unsafe fn read_tensor(
        &mut self,
        tensor: *const DLTensor,
        flags: u64,
        rules: Rules,
        strides_due: bool,
    ) -> Result<()> {
        // SAFETY: an aligned, readable struct; the arrays of its members, if not NULL, hold `ndim`
        // values.
        unsafe {
            let members = members(tensor);
            match self.read_plain(&members, flags) {
                Found::Plain if self.strides_given || !strides_due => Ok(()),
                Found::Plain | Found::Arrays => self.judge(self.strides_given, rules, strides_due),
                Found::Unusual => self.read_checked(members, flags, rules, strides_due),
            }
        }
    }

    /// The common case ([`Plain`]). Of anything else the arrays have been read, or nothing.
    ///
    /// # Safety
    /// The arrays of `members` are NULL, misaligned or hold `ndim` values.
    #[inline(always)]
    pub unsafe fn read_plain(&mut self, members: &DLTensor, flags: u64) -> Found {
        let Some(plain) = Plain::among(members, flags) else { return Found::Unusual };
        let [shape, strides] = self.dims.room();
        // SAFETY: its arrays hold `ndim` values; both arrays of ours hold more than
        // `Sums::NDIM_MAX`, and each value that is counted has been written.
        let end = unsafe {
            let end = plain.arrays(|dim, extent, stride| {
                shape.add(dim).write(extent);
                strides.add(dim).write(stride);
            });
            self.dims.set_len(plain.ndim);
            end
        };
        self.head(members, dtype::flags_of(plain.dtype, flags));
        (self.empty, self.strides_given) = (false, plain.strides_given());
        self.byte_extent = (0, end.unwrap_or(0));
        match end.is_some() || self.fits(plain.nbytes) {
            true => Found::Plain,
            false => Found::Arrays,
        }
    }

    /// Whether a tensor is in order whose struct is, where a stride is negative or a number is not
    /// moderate.
    #[inline(never)]
    fn fits(&mut self, nbytes: u32) -> bool {
        let Some(numel) = layout::plain_numel(self.shape()) else { return false };
        let sizes = layout::packed_nbytes(numel, nbytes * 8);
        match sizes.and_then(|_| layout::byte_extent(self.shape(), self.strides(), nbytes * 8)) {
            Ok(byte_extent) => self.byte_extent = byte_extent,
            Err(_) => return false,
        }
        self.addresses_fit()
    }

    /// The checks in their fixed order, of a struct whose arrays are still to be read.
    ///
    /// # Safety
    /// As [`Snapshot::read_plain`].
    #[cold]
    #[inline(never)]
    pub unsafe fn read_checked(
        &mut self,
        members: DLTensor,
        flags: u64,
        rules: Rules,
        strides_due: bool,
    ) -> Result<()> {
        self.head(&members, flags);
        let DLTensor { device, ndim, dtype, shape, strides, .. } = members;
        (self.strides_given, self.byte_extent) = (false, (0, 0));
        if rules.known {
            check_flags(flags)?;
        }
        let ndim = check_ndim(ndim)?;
        if ndim > 0 && shape.is_null() {
            return Err(Error::new(DLRS_SHAPE_NULL).field(DLRS_FIELD_SHAPE));
        }
        if ndim > 0 {
            check_array(shape, DLRS_FIELD_SHAPE)?;
        }
        dtype::defined(dtype)?;
        self.flags = dtype::flags_of(dtype, flags);
        if rules.legal {
            dtype::legal(dtype)?;
        }
        if rules.known {
            let check =
                if rules.host_ids { device_type::check_strictly } else { device_type::check };
            check(device)?;
        }
        // SAFETY: an aligned array holds `ndim` values. Volatile: exactly one read of each, even
        // while another thread writes.
        let value = |array: *const i64, dim| unsafe { array.add(dim).read_volatile() };
        self.dims.truncate(0);
        (0..ndim).for_each(|dim| self.dims.push((value(shape, dim), 0)));
        let given = ndim > 0 && !strides.is_null();
        if given {
            layout::check_shape(self.shape())?;
            check_array(strides, DLRS_FIELD_STRIDES)?;
            let (_, own) = self.dims.beside();
            own.iter_mut().enumerate().for_each(|(dim, stride)| *stride = value(strides, dim));
        }
        self.judge(given, rules, strides_due)
    }

    #[inline(always)]
    fn head(&mut self, members: &DLTensor, flags: u64) {
        (self.data, self.byte_offset) = (members.data.cast(), members.byte_offset);
        (self.device, self.dtype, self.flags) = (members.device, members.dtype, flags);
    }

    /// The checks of the arrays, which have been read, and of all behind them. Strides were
    /// `given`, or are no strides.
    #[inline(never)]
    fn judge(&mut self, given: bool, rules: Rules, strides_due: bool) -> Result<()> {
        (self.strides_given, self.byte_extent) = (false, (0, 0));
        self.empty = layout::check_shape(self.shape())?;
        self.strides_given = given;
        if !given {
            if strides_due && self.dims.len() > 0 {
                return Err(Error::new(DLRS_STRIDES_NULL).field(DLRS_FIELD_STRIDES));
            }
            layout::numel(self.shape())?; // compact strides are products of extents
            self.fill_strides(Order::C);
        }
        if rules.layout { self.check_layout(rules) } else { Ok(()) }
    }

    /// As if it had been read with these rules: for callers that know them only later. The strides
    /// were given or need not be.
    pub fn check(&mut self, rules: Rules) -> Result<()> {
        if rules.known {
            check_flags(self.flags)?;
        }
        if rules.legal {
            dtype::legal(self.dtype)?;
        }
        if rules.known {
            device_type::check(self.device)?;
        }
        if rules.layout { self.check_layout(rules) } else { Ok(()) }
    }

    /// Replaces the strides by those of a compact layout.
    pub fn fill_strides(&mut self, order: Order) {
        let (shape, strides) = self.dims.beside();
        layout::compact_strides(shape, order, strides);
    }

    /// Sizes, data, offset and addresses.
    fn check_layout(&mut self, rules: Rules) -> Result<()> {
        if self.empty {
            return Ok(()); // data, offset and strides are never used
        }
        let item_bits = self.slot_bits();
        layout::packed_nbytes(layout::numel(self.shape())?, item_bits)?;
        self.byte_extent = layout::byte_extent(self.shape(), self.strides(), item_bits)?;
        if rules.whole_bytes && !item_bits.is_multiple_of(8) {
            self.check_subbyte(item_bits)?;
        }
        if device_type::opaque_handle(self.device.device_type) {
            return Ok(()); // `data` is a handle: it has no address to check
        }
        if self.data.is_null() {
            return Err(Error::new(DLRS_DATA_NULL).field(DLRS_FIELD_DATA));
        }
        self.check_addresses()
    }

    /// Memory that starts in the lower half must end there: no allocation spans both halves.
    #[inline(always)]
    fn addresses_fit(&self) -> bool {
        let data = self.data as u64;
        let limit = if data < LOW_HALF { LOW_HALF } else { usize::MAX as u64 };
        let (low, high) = self.byte_extent;
        let Some(first) = data.checked_add(self.byte_offset) else { return false };
        first <= limit
            && first.checked_add_signed(low).is_some()
            && first.checked_add_signed(high).is_some_and(|end| end <= limit)
    }

    fn check_addresses(&self) -> Result<()> {
        if self.addresses_fit() {
            return Ok(());
        }
        let data = self.data as u64;
        let limit = if data < LOW_HALF { LOW_HALF } else { usize::MAX as u64 };
        if data.checked_add(self.byte_offset).is_none_or(|first| first > limit) {
            let error = Error::new(DLRS_OFFSET).field(DLRS_FIELD_BYTE_OFFSET);
            return Err(error.value_u64(self.byte_offset));
        }
        let (low, high) = self.byte_extent;
        let error = Error::new(DLRS_EXTENT_OVERFLOW).field(DLRS_FIELD_STRIDES);
        Err(error.value(if high as u64 > low.unsigned_abs() { high } else { low }))
    }

    /// A packed sub-byte layout must be one run of bits, or rows that start on whole bytes.
    fn check_subbyte(&self, item_bits: u32) -> Result<()> {
        if layout::is_contiguous(self.shape(), self.strides(), Order::C) {
            return Ok(());
        }
        let mut dense_dim = false;
        for (dim, (&extent, &stride)) in self.shape().iter().zip(self.strides()).enumerate() {
            let starts_on_byte = (i128::from(stride) * i128::from(item_bits)) % 8 == 0;
            if extent == 1 || (stride != 1 && starts_on_byte) {
                continue;
            }
            if stride != 1 || dense_dim {
                let error = Error::new(DLRS_SUBBYTE).field(DLRS_FIELD_STRIDES);
                return Err(error.dim(dim).value(stride).limit(1));
            }
            dense_dim = true;
        }
        if dense_dim || self.shape().iter().all(|&extent| extent == 1) {
            return Ok(());
        }
        Err(Error::new(DLRS_SUBBYTE).field(DLRS_FIELD_STRIDES).limit(1))
    }
}

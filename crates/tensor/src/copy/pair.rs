//! Checks of source and destination of a copy or conversion.

use core::ptr::NonNull;

use crate::abi::{DLManagedTensorVersioned as Managed, *};
use crate::copy::ends;
use crate::copy::one::{elements, memory, place, same_origin};
use crate::copy::options::{PADDED, Streams};
use crate::device_type;
use crate::dtype::word_of;
use crate::error::{Arg, Error, Field::*, Of, Result, Status, Status::*};
use crate::overlap::Verdict;
use crate::validate::{Rules, Snapshot};
use crate::view::sharing;

/// Two managed tensors of a caller: source and destination of a copy or conversion, or the two to
/// compare.
#[derive(Clone, Copy)]
pub struct Given {
    /// The first one.
    pub src: NonNull<Managed>,
    /// The second one.
    pub dst: NonNull<Managed>,
}

/// A bare tensor of a caller and the flags of its managed one.
#[derive(Clone, Copy)]
pub struct Described {
    /// The tensor.
    pub tensor: NonNull<DLTensor>,
    /// Its flags.
    pub flags: u64,
}

/// Two tensors, each read once, and their arguments, for the checks and their errors. Where one of
/// them was made of something else (bytes, a value), the argument is that.
pub struct Pair {
    /// The source, or the first of two that are compared.
    pub src: Snapshot,
    /// The destination, or the second one.
    pub dst: Snapshot,
    /// Which arguments they are.
    pub args: [Arg; 2],
}

impl Pair {
    /// Not read yet.
    #[inline(always)]
    pub const fn new(args: [Arg; 2]) -> Pair {
        Pair { src: Snapshot::new(), dst: Snapshot::new(), args }
    }

    /// Reads and checks both, the source first.
    ///
    /// # Safety
    /// Both are live.
    #[inline(always)]
    pub unsafe fn read(&mut self, given: Given, rules: Rules) -> Result<()> {
        let [source, target] = self.args;
        // SAFETY: both structs are live, with their shapes and strides.
        unsafe {
            self.src.read_managed(given.src.as_ptr(), rules).of(source)?;
            self.dst.read_managed(given.dst.as_ptr(), rules).of(target)
        }
    }

    /// As [`Pair::read`], of bare tensors.
    ///
    /// # Safety
    /// Both point to readable `DLTensor`s; shape and strides, where not NULL, hold `ndim` values.
    pub unsafe fn read_described(
        &mut self,
        [src, dst]: [Described; 2],
        rules: Rules,
    ) -> Result<()> {
        let [source, target] = self.args;
        // SAFETY: both point to readable `DLTensor`s; shape and strides, where not NULL, hold
        // `ndim` values.
        unsafe {
            self.src.read(src.tensor.as_ptr(), src.flags, rules).of(source)?;
            self.dst.read(dst.tensor.as_ptr(), dst.flags, rules).of(target)
        }
    }

    /// A destination that may be written, of the source's shape.
    #[inline(always)]
    pub fn check_target(&self) -> Result<()> {
        match self.dst.flags & DLPACK_FLAG_BITMASK_READ_ONLY {
            0 => self.check_same_shape(),
            _ => Err(read_only()).of(self.args[1]),
        }
    }

    /// Rejects different shapes; the error names the second.
    #[inline(always)]
    pub fn check_same_shape(&self) -> Result<()> {
        let (from, to) = (self.src.shape(), self.dst.shape());
        match from.len() == to.len() && from.iter().zip(to).all(|(from, to)| from == to) {
            true => Ok(()),
            false => Err(other_shape(from, to)).of(self.args[1]),
        }
    }

    /// Rejects different dtypes, except for padding; the error names the second.
    #[inline(always)]
    pub fn check_same_dtype(&self) -> Result<()> {
        let (from, to) = (self.src.dtype, self.dst.dtype);
        if from == to { Ok(()) } else { Err(other_dtype(from, to)).of(self.args[1]) }
    }

    #[inline(always)]
    pub(super) fn check_same_padding(&self) -> Result<()> {
        match same_slots(&self.src, &self.dst) {
            true => Ok(()),
            false => Err(other_padding(&self.src, &self.dst)).of(self.args[1]),
        }
    }

    /// Waits until the CPU may read the source and write the destination, both accessible to it.
    pub fn host_access(&self, streams: &Streams) -> Result<()> {
        ends::host_access(&memory(&self.src), &memory(&self.dst), streams)
    }

    /// Applies a check to each, the source first; the error names the one that fails.
    #[inline(always)]
    pub fn check_each(&self, check: impl Fn(&Snapshot) -> Result<()>) -> Result<()> {
        let [source, target] = self.args;
        check(&self.src).of(source)?;
        check(&self.dst).of(target)
    }

    /// Rejects a destination whose elements share memory. Returns whether it shares memory with the
    /// source; rejected unless allowed. The error names the destination.
    pub fn check_memory(&self, allowed: bool) -> Result<bool> {
        let Pair { src, dst, args: [_, target] } = self;
        check_distinct(dst).of(*target)?;
        match Places::of(src, dst).apart(src, dst) {
            true => Ok(false),
            false => check_shared(src, dst, allowed).of(*target),
        }
    }
}

#[cold]
#[inline(never)]
fn read_only() -> Error {
    Error::new(DLRS_READ_ONLY).field(DLRS_FIELD_FLAGS)
}

/// Rejects a tensor to be written whose elements share memory.
#[inline(never)]
pub(super) fn check_distinct(dst: &Snapshot) -> Result<()> {
    match sharing::self_verdict(dst.shape(), dst.strides(), dst.slot_bits()) {
        Verdict::Disjoint => Ok(()),
        verdict => Err(overlap_error(DLRS_OVERLAP_DST, verdict).field(DLRS_FIELD_STRIDES)),
    }
}

/// Whether source and destination share memory; rejected unless allowed.
#[inline(never)]
pub(super) fn check_shared(src: &Snapshot, dst: &Snapshot, allowed: bool) -> Result<bool> {
    match sharing::pair_verdict(&elements(src), &elements(dst)) {
        Verdict::Disjoint => Ok(false),
        _ if allowed => Ok(true),
        verdict => Err(overlap_error(DLRS_OVERLAP_SRC_DST, verdict)),
    }
}

/// Where element (0, ..., 0) of source and destination is.
pub(super) struct Places {
    pub(super) src: *mut u8,
    pub(super) dst: *mut u8,
    /// They are of [`same_origin`], and in one address space.
    comparable: bool,
}

impl Places {
    #[inline(always)]
    pub(super) fn of(src: &Snapshot, dst: &Snapshot) -> Places {
        let unified = |tensor: &Snapshot| device_type::unified_addresses(tensor.device.device_type);
        let comparable =
            same_origin(src, dst) && (src.device == dst.device || unified(src) && unified(dst));
        Places { src: place(src), dst: place(dst), comparable }
    }

    /// Whether the two certainly share no memory: all bytes of one are before all those of the
    /// other. Both are inside the address space, or the handle's object, which has been checked.
    #[inline(always)]
    pub(super) fn apart(&self, src: &Snapshot, dst: &Snapshot) -> bool {
        let bytes = |place: *mut u8, (low, high): (i64, i64)| {
            let place = place as u64;
            (place.wrapping_add_signed(low), place.wrapping_add_signed(high))
        };
        let (src, dst) = (bytes(self.src, src.byte_extent), bytes(self.dst, dst.byte_extent));
        !self.comparable || src.1 <= dst.0 || dst.1 <= src.0
    }

    /// Whether both are the same view of the same memory, so that there is nothing to copy.
    #[inline(always)]
    pub(super) fn same(&self, src: &Snapshot, dst: &Snapshot) -> bool {
        self.src == self.dst && self.comparable && same_view(src, dst)
    }
}

#[inline(never)]
fn same_view(src: &Snapshot, dst: &Snapshot) -> bool {
    let mut dims = src.shape().iter().zip(src.strides().iter().zip(dst.strides()));
    same_slots(src, dst) && dims.all(|(&extent, (from, to))| extent == 1 || from == to)
}

/// Whether two tensors of one dtype have equal strides.
#[inline(always)]
pub(super) fn same_slots(src: &Snapshot, dst: &Snapshot) -> bool {
    (src.flags ^ dst.flags) & PADDED == 0 || src.slot_bits() == dst.slot_bits()
}

fn overlap_error(status: Status, verdict: Verdict) -> Error {
    match verdict {
        Verdict::Undecided => {
            Error::new(status).detail("whether memory is shared cannot be decided")
        }
        _ => Error::new(status),
    }
}

#[cold]
#[inline(never)]
fn other_shape(from: &[i64], to: &[i64]) -> Error {
    let error = Error::new(DLRS_SHAPE_MISMATCH);
    match from.iter().zip(to).enumerate().find(|(_, (from, to))| from != to) {
        Some((dim, (&extent, &other))) if from.len() == to.len() => {
            error.field(DLRS_FIELD_SHAPE).dim(dim).value(other).limit(extent)
        }
        _ => error
            .field(DLRS_FIELD_NDIM)
            .detail("numbers of dimensions differ\0Reshape or expand one of the two first.")
            .value(to.len() as i64)
            .limit(from.len() as i64),
    }
}

#[cold]
#[inline(never)]
fn other_dtype(from: DLDataType, to: DLDataType) -> Error {
    let field = match (from.code == to.code, from.bits == to.bits) {
        (false, _) => DLRS_FIELD_DTYPE_CODE,
        (_, false) => DLRS_FIELD_DTYPE_BITS,
        _ => DLRS_FIELD_DTYPE_LANES,
    };
    Error::new(DLRS_DTYPE_MISMATCH).field(field).dtypes(word_of(to), Some(word_of(from)))
}

#[cold]
#[inline(never)]
fn other_padding(src: &Snapshot, dst: &Snapshot) -> Error {
    let error = Error::new(DLRS_DTYPE_MISMATCH).field(DLRS_FIELD_FLAGS).detail(
        "one is packed and the other padded\0Convert with dlrs_cast.\0Convert with astype().",
    );
    error.value((dst.flags & PADDED) as i64).limit((src.flags & PADDED) as i64)
}

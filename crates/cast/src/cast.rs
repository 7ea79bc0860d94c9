//! Conversion of a tensor's elements to another dtype, and filling with one value.

use core::ptr::NonNull;

use crate::abi::{DLManagedTensorVersioned as Managed, *};
use crate::convert::{self, Kind};
use crate::copy::{self, Options, Pair, Scratch};
use crate::dtype;
use crate::error::{Arg, Of, Result};
use crate::layout::MAX_NDIM;
use crate::numbers::{self, Part};
use crate::validate::{Rules, Snapshot};

const PADDED: u64 = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;

/// Converts one tensor to another, both read with [`Rules::COPY`]; equal dtypes are copied.
///
/// # Safety
/// Both are live.
pub unsafe fn cast(pair: &Pair, options: &Options) -> Result<()> {
    if pair.src.dtype == pair.dst.dtype {
        return copy::repack(pair, options);
    }
    // SAFETY: both tensors are live, and both were read.
    unsafe { convert(pair, options) }
}

/// Checks both, and converts.
///
/// # Safety
/// As [`cast()`].
#[inline(never)]
unsafe fn convert(pair: &Pair, options: &Options) -> Result<()> {
    let Pair { src, dst, args: [source, target] } = pair;
    pair.check_target()?;
    numbers::check_same_lanes(dst.dtype, src.dtype).of(*target)?;
    pair.check_each(|tensor| copy::check_host(tensor, options))?;
    if src.empty {
        return Ok(());
    }
    let (from, to) = (Part::of(src).of(*source)?, Part::of(dst).of(*target)?);
    let shared = pair.check_memory(options.allow_overlap)?;
    pair.host_access(&options.streams)?;
    if !shared {
        // SAFETY: the elements of the destination are distinct, and none of the source's.
        return unsafe { passes((src, &from), (dst, &to), options) };
    }
    let scratch = Scratch::new(Some(dst.nbytes().of(*target)?)).of(*target)?;
    let Some(memory) = scratch.memory() else { return Ok(()) };
    let mut compact = Snapshot::new();
    let place = (memory.as_ptr(), None);
    // SAFETY: the memory is large enough for a compact tensor like `dst`, and shared with nobody;
    // the elements of the destination are distinct.
    unsafe {
        copy::host_view(dst.shape(), dst.dtype, place, dst.flags & PADDED, &mut compact)
            .of(*target)?;
        let between = Part::of(&compact).of(*target)?;
        passes((src, &from), (&compact, &between), options)?;
        passes((&compact, &between), (dst, &to), options)?;
    }
    Ok(())
}

/// A tensor and its numbers, or the real parts of complex ones.
type Numbers<'a> = (&'a Snapshot, &'a Part);

/// Converts every number: first the bytes of elements with gaps become 0, then numbers are
/// converted, of complex ones both parts or the real ones. Imaginary parts without a source become
/// 0; to bool they count too.
///
/// # Safety
/// Every element of both lies in live memory; those of the destination are distinct, and none of
/// the source's.
unsafe fn passes((src, from): Numbers, (dst, to): Numbers, options: &Options) -> Result<()> {
    let pass = |from: &Part, to: &Part, numbers: i64, merge: bool| {
        let mut cast = numbers::pair(src.shape(), from, to, numbers);
        (cast.merge, cast.saturate) = (merge, options.saturate);
        // SAFETY: every number of both lies in live memory; those of the destination are distinct,
        // and none of the source's.
        unsafe { convert::run(&cast, &options.parallel) }
    };
    if numbers::has_gap(dst) {
        pass(&Part::zero(), &to.bytes(), i64::from(dst.slot_bits() / 8), false)?;
    }
    let lanes = i64::from(src.dtype.lanes);
    match (numbers::is_complex(src), numbers::is_complex(dst)) {
        (true, true) => return pass(&from.both(), &to.both(), lanes * 2, false),
        _ => pass(from, to, lanes, false)?,
    }
    if numbers::is_complex(dst) {
        pass(&Part::zero(), &to.imaginary(), lanes, false)?;
    } else if numbers::is_complex(src) && to.kind == Kind::Bool {
        pass(&from.imaginary(), to, lanes, true)?;
    }
    Ok(())
}

/// The most bits of an element that is converted once, instead of for every element it fills.
const ONCE: u32 = 128;

/// One element.
#[derive(Clone, Copy)]
pub struct Value {
    /// Where it is, unaligned.
    pub place: *const u8,
    /// What it is.
    pub dtype: DLDataType,
    /// Its argument.
    pub dtype_arg: Arg,
}

/// Writes one value to every element of a tensor. `args` are the value and the tensor.
///
/// # Safety
/// The tensor is live, and the value readable; its dtype is legal.
#[inline(never)]
pub unsafe fn fill(
    value: Value,
    dst: NonNull<Managed>,
    args: [Arg; 2],
    options: &Options,
) -> Result<()> {
    // The value may be freed when the call returns, so the call waits.
    let streams = copy::Streams { enqueue_only: false, ..options.streams };
    let options = &Options { streams, repack: true, ..*options };
    let mut pair = Pair::new(args);
    // SAFETY: the tensor is live and the value readable; the buffer has room for an element of so
    // many bits.
    unsafe {
        pair.dst.read_managed(dst.as_ptr(), Rules::COPY).of(args[1])?;
        numbers::check_same_lanes(value.dtype, pair.dst.dtype).of(value.dtype_arg)?;
        let (of, padded) = (pair.dst.dtype, pair.dst.flags & PADDED);
        let (mut buffer, bits) = ([0u8; ONCE as usize / 8], dtype::item_bits(of));
        let converted = Value { place: buffer.as_ptr(), dtype: of, ..value };
        let same = value.dtype == of;
        if same && bits.is_multiple_of(8) {
            spread(value, &mut pair)?;
            return copy::repack(&pair, options);
        }
        if bits > ONCE {
            spread(value, &mut pair)?;
            return convert(&pair, options);
        }
        if same {
            // Without the unused bits above.
            let nbytes = bits.div_ceil(8) as usize;
            buffer.as_mut_ptr().copy_from_nonoverlapping(value.place, nbytes);
            if let Some(last) = buffer.get_mut(nbytes.wrapping_sub(1)) {
                *last &= 0xff >> (8 - bits % 8);
            }
        } else {
            let mut one = Pair::new(args);
            let place = (buffer.as_mut_ptr(), None);
            let given = (value.place.cast_mut(), None); // only read
            copy::host_view(&[], value.dtype, given, padded, &mut one.src).of(args[0])?;
            copy::host_view(&[], of, place, padded, &mut one.dst).of(args[1])?;
            // Both are the call's own.
            convert(&one, &Options { streams: copy::Streams::NONE, ..*options })?;
        }
        spread(converted, &mut pair)?;
        copy::repack(&pair, options)
    }
}

/// Makes the source of a pair one element, repeated in the destination's shape, which has been
/// read.
///
/// # Safety
/// The value is readable, as long as the pair is used.
unsafe fn spread(value: Value, pair: &mut Pair) -> Result<()> {
    const STRIDES: &[i64; MAX_NDIM] = &[0; MAX_NDIM];
    let Pair { src, dst, args: [source, _] } = pair;
    let place = (value.place.cast_mut(), Some(STRIDES)); // only read
    // SAFETY: the value is readable as long as the pair is used: one element for all, as the
    // strides of 0 say.
    unsafe { copy::host_view(dst.shape(), value.dtype, place, dst.flags & PADDED, src).of(*source) }
}

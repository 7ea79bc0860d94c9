//! Conversion of a tensor's elements to another dtype, and filling with one value.

use crate::abi::*;
use crate::copy::{self, Options, Scratch};
use crate::device::cast;
use crate::device::cpu::{self, Parallel};
use crate::device::plan::Plan;
use crate::dtype;
use crate::error::Result;
use crate::layout::MAX_NDIM;
use crate::numbers::{self, Part};
use crate::validate::Snapshot;

const PADDED: u64 = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;

/// Converts `src` to `dst`, both read and checked with `Rules::COPY`. Equal dtypes are copied to
/// the bit, between packed and padded too.
#[inline(never)]
pub fn cast(src: &Snapshot, dst: &Snapshot, options: &Options) -> Result<()> {
    if src.dtype == dst.dtype {
        return copy::repack(src, dst, options);
    }
    copy::check_pair(src, dst)?;
    numbers::check_same_lanes(src, dst)?;
    copy::check_host(src, options)?;
    copy::check_host(dst, options)?;
    let [mut from, mut to] = [Part::zero(), Part::zero()];
    from.read(src)?;
    to.read(dst)?;
    if src.empty {
        return Ok(());
    }
    if copy::check_memory(src, dst, options.allow_overlap)? {
        return through(src, (dst, &from), options);
    }
    // SAFETY: every element has an address in memory that the caller vouched for, elements of
    // `dst` are distinct, and the two do not touch.
    unsafe { convert((src, &from), (dst, &to), &options.parallel) };
    Ok(())
}

/// Converts to compact memory of its own, and copies from there.
#[inline(never)]
fn through(src: &Snapshot, (dst, from): (&Snapshot, &Part), options: &Options) -> Result<()> {
    let scratch = Scratch::new(Some(dst.nbytes()?))?;
    let Some(memory) = scratch.memory() else { return Ok(()) };
    let mut compact = Snapshot::new();
    // SAFETY: the memory is large enough for a compact tensor like `dst`, and shared with nobody.
    unsafe {
        let place = (memory.as_ptr(), None);
        numbers::view(dst, dst.dtype, place, dst.flags & PADDED, &mut compact)?;
        let mut to = Part::zero();
        to.read(&compact)?;
        let mut back = Plan::none();
        copy::fill_plan(&compact, dst, &mut back)?;
        convert((src, from), (&compact, &to), &options.parallel);
        cpu::copy(&mut back, &options.parallel);
    }
    Ok(())
}

/// # Safety
/// As [`convert`].
#[inline(never)]
unsafe fn pass(
    shape: &[i64],
    (from, to): (&Part, &Part),
    numbers: i64,
    merge: bool,
    parallel: &Parallel,
) {
    let mut cast = numbers::pair(shape, from, to, numbers);
    cast.merge = merge;
    // SAFETY: the caller's word.
    unsafe { cast::run(&cast, parallel) };
}

/// # Safety
/// Every element of both lies in live memory; they do not touch, and those of `dst` are distinct.
#[inline(never)]
unsafe fn convert(
    (src, from): (&Snapshot, &Part),
    (dst, to): (&Snapshot, &Part),
    parallel: &Parallel,
) {
    // SAFETY: the caller's word.
    unsafe {
        if numbers::has_gap(dst) {
            clear((dst, to), parallel);
        }
        if numbers::is_complex(src) || numbers::is_complex(dst) {
            complex((src, from), (dst, to), parallel);
        } else {
            let lanes = i64::from(src.dtype.lanes);
            pass(src.shape(), (from, to), lanes, false, parallel);
        }
    }
}

/// Zeroes the bytes of a destination whose elements have gaps.
///
/// # Safety
/// As [`convert`].
#[inline(never)] // a frame of its own: stacks may be small
unsafe fn clear((dst, to): (&Snapshot, &Part), parallel: &Parallel) {
    let zero = Part::zero();
    let bytes = Part { kind: zero.kind, access_bits: 8, step: 8, ..*to };
    let numbers = i64::from(dst.slot_bits() / 8);
    // SAFETY: the caller's word.
    unsafe { pass(dst.shape(), (&zero, &bytes), numbers, false, parallel) }
}

/// Where one side is complex.
///
/// # Safety
/// As [`convert`].
#[inline(never)] // as above
unsafe fn complex(
    (src, from): (&Snapshot, &Part),
    (dst, to): (&Snapshot, &Part),
    parallel: &Parallel,
) {
    let (shape, lanes) = (src.shape(), i64::from(src.dtype.lanes));
    // SAFETY: the caller's word, for parts of the two tensors.
    let pass = |from: &_, to: &_, numbers, merge| unsafe {
        pass(shape, (from, to), numbers, merge, parallel)
    };
    match (numbers::is_complex(src), numbers::is_complex(dst)) {
        (true, true) => pass(&from.both(), &to.both(), 2 * lanes, false),
        (false, true) => {
            pass(from, to, lanes, false);
            pass(&Part::zero(), &to.imaginary(), lanes, false);
        }
        (complex, false) => {
            pass(from, to, lanes, false);
            if complex && to.kind == cast::Kind::Bool {
                pass(&from.imaginary(), to, lanes, true);
            }
        }
    }
}

/// The most bits of an element that is converted once, and not for every element it fills.
const ONCE: u32 = 128;

/// Writes one value, an element of `dtype` at `value`, to every element of `dst`.
///
/// # Safety
/// `value` points to an element of `dtype`, which is legal.
pub unsafe fn fill(
    value: *const u8,
    dtype: DLDataType,
    dst: &Snapshot,
    options: &Options,
) -> Result<()> {
    let padded = dst.flags & PADDED;
    // The value may be gone when the call returns, so the call waits.
    let streams = copy::Streams { enqueue_only: false, ..options.streams };
    let options = &Options { streams, ..*options };
    if dtype == dst.dtype || dtype::item_bits(dst.dtype) > ONCE {
        // SAFETY: the caller's word.
        return unsafe { spread(value, dtype, dst, options) };
    }
    let mut buffer = [0u8; ONCE as usize / 8];
    let [scalar, mut from, mut to] = [Snapshot::new(), Snapshot::new(), Snapshot::new()];
    // SAFETY: 0-d tensors: the value, and a buffer with room for an element of `dst`.
    unsafe {
        numbers::view(&scalar, dtype, (value.cast_mut(), None), padded, &mut from)?;
        let place = (buffer.as_mut_ptr(), None);
        numbers::view(&scalar, dst.dtype, place, padded, &mut to)?;
        cast(&from, &to, options)?;
        spread(buffer.as_ptr(), dst.dtype, dst, options)
    }
}

/// # Safety
/// As [`fill`].
unsafe fn spread(
    value: *const u8,
    dtype: DLDataType,
    dst: &Snapshot,
    options: &Options,
) -> Result<()> {
    let (strides, mut all) = ([0; MAX_NDIM], Snapshot::new());
    let place = (value.cast_mut(), Some(&strides));
    // SAFETY: one element for all, as the strides of 0 say.
    unsafe { numbers::view(dst, dtype, place, dst.flags & PADDED, &mut all)? };
    cast(&all, dst, options)
}

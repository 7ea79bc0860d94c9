//! Conversion of a tensor's elements to another dtype, and filling with one value.
//!
//! Tensors are read anew before every pass over their numbers, and gone when numbers move: stacks
//! may be small.

use core::ptr::NonNull;

use crate::abi::{DLManagedTensorVersioned as Managed, *};
use crate::batch::Pair;
use crate::copy::{self, Job, Options, Scratch};
use crate::device::cast::{self, Cast, Kind};
use crate::dtype;
use crate::error::{Arg, Result};
use crate::layout::MAX_NDIM;
use crate::numbers::{self, Part};
use crate::validate::{Rules, Snapshot};

const PADDED: u64 = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;

/// What is done to all elements in one go.
#[derive(Clone, Copy, PartialEq)]
enum Pass {
    /// The bytes of a destination whose elements have gaps become 0.
    Clear,
    /// Numbers are converted: of complex ones both parts, or the real ones.
    Numbers,
    /// The imaginary parts become 0; or count, too, for what is true.
    Imaginary,
}

/// A conversion and how far it has come.
struct Conversion {
    /// The pass that was prepared.
    cast: Cast,
    /// Whether one was.
    begun: bool,
    /// The one after it.
    next: Option<Pass>,
    /// Memory to convert to, where the tensors share theirs.
    scratch: Scratch,
    /// Whether the passes are those from there to the destination.
    back: bool,
}

impl Conversion {
    /// One to be made. A constant: it is copied to its place, and not made elsewhere first.
    const NONE: Conversion = Conversion {
        cast: Cast::NONE,
        begun: false,
        next: None,
        scratch: Scratch::none(),
        back: false,
    };

    /// Prepares the next pass over two tensors that were read with `Rules::COPY`; false if there
    /// are no elements. The first time all is checked.
    fn prepare(&mut self, src: &Snapshot, dst: &Snapshot, options: &Options) -> Result<bool> {
        if !self.begun && !self.begin(src, dst, options)? {
            return Ok(false);
        }
        match self.scratch.memory() {
            Some(memory) => self.pass_through(memory, src, dst)?,
            None => self.pass(src, dst)?,
        }
        Ok(true)
    }

    /// As [`Conversion::prepare`], from one element to another.
    ///
    /// # Safety
    /// Both are elements of their dtypes.
    #[inline(never)] // a frame of its own: stacks may be small
    unsafe fn prepare_value(
        &mut self,
        src: Value,
        dst: Value,
        flags: u64,
        options: &Options,
    ) -> Result<bool> {
        let [mut from, mut to] = [Snapshot::new(), Snapshot::new()];
        // SAFETY: 0-d tensors.
        unsafe {
            numbers::view(&[], src.1, (src.0.cast_mut(), None), flags, &mut from)?;
            numbers::view(&[], dst.1, (dst.0.cast_mut(), None), flags, &mut to)?;
        }
        self.prepare(&from, &to, options)
    }

    /// Whether the pass that was prepared is the last.
    fn ends(&self) -> bool {
        self.next.is_none() && (self.back || self.scratch.memory().is_none())
    }

    /// Checks all; false if there are no elements.
    fn begin(&mut self, src: &Snapshot, dst: &Snapshot, options: &Options) -> Result<bool> {
        copy::check_pair(src, dst)?;
        numbers::check_same_lanes(src, dst)?;
        copy::check_host(src, options)?;
        copy::check_host(dst, options)?;
        numbers::check(src)?;
        numbers::check(dst)?;
        if src.empty {
            return Ok(false);
        }
        if copy::check_memory(src, dst, options.allow_overlap)? {
            self.scratch = Scratch::new(Some(dst.nbytes()?))?;
        }
        Ok(true)
    }

    /// As [`Conversion::pass`], to compact memory first, and from there.
    #[inline(never)] // a frame of its own: stacks may be small
    fn pass_through(&mut self, memory: NonNull<u8>, src: &Snapshot, dst: &Snapshot) -> Result<()> {
        let mut compact = Snapshot::new();
        let place = (memory.as_ptr(), None);
        // SAFETY: the memory is large enough for a compact tensor like `dst`, and shared with
        // nobody.
        unsafe { numbers::view(dst.shape(), dst.dtype, place, dst.flags & PADDED, &mut compact)? };
        self.back |= self.begun && self.next.is_none();
        if self.back { self.pass(&compact, dst) } else { self.pass(src, &compact) }
    }

    /// Prepares the next pass between these two.
    #[inline(never)] // a frame of its own, as above
    fn pass(&mut self, src: &Snapshot, dst: &Snapshot) -> Result<()> {
        let [mut from, mut to] = [Part::zero(), Part::zero()];
        from.read(src)?;
        to.read(dst)?;
        let first = if numbers::has_gap(dst) { Pass::Clear } else { Pass::Numbers };
        let pass = self.next.unwrap_or(first);
        let complex = (numbers::is_complex(src), numbers::is_complex(dst));
        let both = complex == (true, true);
        let apart = complex == (false, true) || complex.0 && to.kind == Kind::Bool;
        let mut numbers = i64::from(src.dtype.lanes) * if both { 2 } else { 1 };
        match pass {
            Pass::Clear => {
                from = Part::zero();
                to.turn_bytes();
                numbers = i64::from(dst.slot_bits() / 8);
            }
            Pass::Numbers if both => {
                from.turn_both();
                to.turn_both();
            }
            Pass::Numbers => {}
            Pass::Imaginary if complex.0 => from.turn_imaginary(),
            Pass::Imaginary => {
                from = Part::zero();
                to.turn_imaginary();
            }
        }
        numbers::pair(src.shape(), &from, &to, numbers, &mut self.cast);
        self.cast.merge = pass == Pass::Imaginary && complex.0;
        self.begun = true;
        self.next = match pass {
            Pass::Clear => Some(Pass::Numbers),
            Pass::Numbers if apart => Some(Pass::Imaginary),
            _ => None,
        };
        Ok(())
    }

    /// Carries out every pass that `prepare` prepares; what it needs takes no stack then.
    ///
    /// # Safety
    /// Every element of both tensors lies in live memory; those of the destination are distinct.
    unsafe fn carry_out(
        &mut self,
        options: &Options,
        mut prepare: impl FnMut(&mut Conversion) -> Result<bool>,
    ) -> Result<()> {
        while prepare(self)? {
            // SAFETY: the caller's word; where the two touch, memory that is shared with nobody is
            // the source or the destination.
            unsafe { cast::run(&self.cast, &options.parallel) };
            if self.ends() {
                break;
            }
        }
        Ok(())
    }
}

/// Converts one tensor to another; false, and nothing is done, if their dtypes are equal.
///
/// # Safety
/// Both are live and stay as they are during the call.
#[inline(never)]
pub unsafe fn cast(pair: Pair, args: [Arg; 2], options: &Options) -> Result<bool> {
    let mut conversion = Conversion::NONE;
    let mut equal = false;
    // SAFETY: the caller's word.
    unsafe {
        conversion.carry_out(options, |conversion| {
            let left = prepare(pair, args, options, conversion)?;
            equal = left.is_none();
            Ok(left == Some(true))
        })?;
    }
    Ok(!equal)
}

/// As [`Conversion::prepare`]; `None` for equal dtypes.
///
/// # Safety
/// As [`cast`].
#[inline(never)]
unsafe fn prepare(
    (src, dst): Pair,
    [source, target]: [Arg; 2],
    options: &Options,
    conversion: &mut Conversion,
) -> Result<Option<bool>> {
    let [mut from, mut to] = [Snapshot::new(), Snapshot::new()];
    // SAFETY: the caller's word.
    unsafe {
        from.read_managed(src.as_ptr(), Rules::COPY).map_err(|e| e.of(source))?;
        to.read_managed(dst.as_ptr(), Rules::COPY).map_err(|e| e.of(target))?;
    }
    if from.dtype == to.dtype {
        return Ok(None);
    }
    conversion.prepare(&from, &to, options).map_err(|e| e.of(target)).map(Some)
}

/// The most bits of an element that is converted once, and not for every element it fills.
const ONCE: u32 = 128;

/// One element.
type Value = (*const u8, DLDataType);

/// Writes one value to every element of a tensor, whose dtype and flags are given.
///
/// # Safety
/// As [`cast`]; the value's dtype is legal.
#[inline(never)]
pub unsafe fn fill(
    (value, dtype): Value,
    dst: NonNull<Managed>,
    (of, flags): (DLDataType, u64),
    options: &Options,
) -> Result<()> {
    // The value may be gone when the call returns, so the call waits.
    let streams = copy::Streams { enqueue_only: false, ..options.streams };
    let options = &Options { streams, repack: true, ..*options };
    let (mut buffer, bits) = ([0u8; ONCE as usize / 8], dtype::item_bits(of));
    // SAFETY: the caller's word; the buffer has room for an element of so many bits.
    unsafe {
        if dtype == of && bits.is_multiple_of(8) {
            return fill_same((value, dtype), dst, options);
        }
        if dtype == of && bits <= ONCE {
            // Without the bits above, which are nobody's.
            let nbytes = bits.div_ceil(8) as usize;
            buffer.as_mut_ptr().copy_from_nonoverlapping(value, nbytes);
            if let Some(last) = buffer.get_mut(nbytes.wrapping_sub(1)) {
                *last &= 0xff >> (8 - bits % 8);
            }
            return fill_same((buffer.as_ptr(), of), dst, options);
        }
        if bits > ONCE {
            return fill_converted((value, dtype), dst, options);
        }
        convert_value((value, dtype), (buffer.as_mut_ptr(), of), flags & PADDED, options)?;
        fill_same((buffer.as_ptr(), of), dst, options)
    }
}

/// Converts one element.
///
/// # Safety
/// Both are elements of their dtypes.
#[inline(never)]
unsafe fn convert_value(
    from: Value,
    (into, of): (*mut u8, DLDataType),
    flags: u64,
    options: &Options,
) -> Result<()> {
    let mut conversion = Conversion::NONE;
    // SAFETY: the caller's word.
    unsafe {
        conversion.carry_out(options, |conversion| {
            conversion.prepare_value(from, (into.cast_const(), of), flags, options)
        })
    }
}

/// With a value of the tensor's dtype.
///
/// # Safety
/// As [`fill`].
#[inline(never)]
unsafe fn fill_same(value: Value, dst: NonNull<Managed>, options: &Options) -> Result<()> {
    let mut job = Job::none();
    let begin = &mut |all: &Snapshot, dst: &Snapshot| copy::check(all, dst, options, &mut job);
    // SAFETY: the caller's word.
    let moves = unsafe { spread(value, dst, begin)? };
    if moves { copy::finish(&mut job, options) } else { Ok(()) }
}

/// With a value that is converted for every element.
///
/// # Safety
/// As [`fill`].
#[inline(never)]
unsafe fn fill_converted(value: Value, dst: NonNull<Managed>, options: &Options) -> Result<()> {
    let mut conversion = Conversion::NONE;
    // SAFETY: the caller's word.
    unsafe {
        conversion.carry_out(options, |conversion| {
            spread(value, dst, &mut |all, dst| conversion.prepare(all, dst, options))
        })
    }
}

/// Shows `begin` a tensor of one element in place of all, and the destination.
///
/// # Safety
/// As [`fill`].
#[inline(never)]
unsafe fn spread(
    (value, dtype): Value,
    dst: NonNull<Managed>,
    begin: &mut dyn FnMut(&Snapshot, &Snapshot) -> Result<bool>,
) -> Result<bool> {
    const STRIDES: &[i64; MAX_NDIM] = &[0; MAX_NDIM];
    let [mut all, mut to] = [Snapshot::new(), Snapshot::new()];
    let place = (value.cast_mut(), Some(STRIDES)); // only read
    // SAFETY: the caller's word; one element for all, as the strides of 0 say.
    unsafe {
        to.read_managed(dst.as_ptr(), Rules::COPY)?;
        numbers::view(to.shape(), dtype, place, to.flags & PADDED, &mut all)?;
    }
    begin(&all, &to)
}

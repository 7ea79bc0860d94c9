//! Views: common rules, and several steps in one call.
//!
//! A view is a tensor over the memory of another one, its base. It has its own reference to the
//! base, so that both are released in any order. It never accesses a byte that the base does not
//! use. It starts at its byte_offset, so that opaque handles have views too; data changes only if
//! byte_offset would be negative. Flags are the base's, without IS_COPIED, which the base loses as
//! well. READ_ONLY is added where a step makes elements share memory: expand, unfold, as_strided. A
//! view without elements has data NULL and byte_offset 0. The base must be a tensor of this
//! library; dlrs_import_take boxes others.
//!
//! Every dlrs_view_... function is one dlrs_view_step. dlrs_view_apply takes any number of steps
//! and makes one tensor. What it says of steps is not for the others: their error->dimension is
//! the dimension at fault.
//!
//! Other operations are one of these: flatten is a reshape to {-1}; a[::-1] is a flip, or a slice
//! with start INT64_MAX, stop INT64_MIN, step -1; real and imaginary parts are a bitcast of the
//! unsqueezed tensor; broadcast_to is expand.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::arg::{Live, Sized32, live, needed_if, options, result, values};
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::array::Array;
use crate::error::{Arg, Error, Field::*, Of, Result, Status::*};
use crate::layout::MAX_NDIM;
use crate::tensor::block::Block;
use crate::tensor::share;
use crate::tensor::view::{self};
use crate::validate::{Level, Rules, Snapshot};
use crate::view::{Step, View};

/// As the axis of dlrs_view_squeeze and dlrs_view_flip: all axes.
pub const DLRS_ALL_AXES: i32 = i32::MIN;

/// The steps: each does what the function of the same name does, and uses these members.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(non_camel_case_types)]
pub enum dlrs_view_op {
    /// shape, strides, ndim; start is the offset.
    DLRS_VIEW_AS_STRIDED = 1,
    /// axis, start, stop, step.
    DLRS_VIEW_SLICE = 2,
    /// axis; start is the index.
    DLRS_VIEW_SELECT = 3,
    /// axis, start; stop is the count.
    DLRS_VIEW_NARROW = 4,
    /// axis.
    DLRS_VIEW_FLIP = 5,
    /// axis, step; start is the window.
    DLRS_VIEW_UNFOLD = 6,
    /// axis, other_axis; start is the offset.
    DLRS_VIEW_DIAGONAL = 7,
    /// shape has the axes; ndim.
    DLRS_VIEW_PERMUTE = 8,
    /// axis, other_axis.
    DLRS_VIEW_TRANSPOSE = 9,
    /// axis.
    DLRS_VIEW_SQUEEZE = 10,
    /// axis.
    DLRS_VIEW_UNSQUEEZE = 11,
    /// shape, ndim.
    DLRS_VIEW_RESHAPE = 12,
    /// shape, ndim.
    DLRS_VIEW_EXPAND = 13,
    /// dtype.
    DLRS_VIEW_BITCAST = 14,
    /// start is the number of lanes.
    DLRS_VIEW_LANES = 15,
    /// None.
    DLRS_VIEW_READ_ONLY = 16,
    /// start has the DLRS_NORMALIZE_* bits.
    DLRS_VIEW_NORMALIZE = 17,
}

/// One step of a view. Members that the step does not use may be 0.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct dlrs_view_step {
    /// `sizeof(dlrs_view_step)`; the same in every step of an array.
    pub struct_size: u32,
    /// A `dlrs_view_op`.
    pub op: i32,
    /// Counts from the end when negative.
    pub axis: i32,
    /// The second axis.
    pub other_axis: i32,
    /// Number of values in `shape`, and in `strides` if the step uses them.
    pub ndim: i32,
    /// The dtype.
    pub dtype: DLDataType,
    /// The first number.
    pub start: i64,
    /// The second number.
    pub stop: i64,
    /// The third number.
    pub step: i64,
    /// Extents or axes; NULL is allowed when ndim is 0.
    pub shape: *const i64,
    /// Strides in elements.
    pub strides: *const i64,
}

// SAFETY: plain data, u32 first.
unsafe impl Sized32 for dlrs_view_step {}

impl dlrs_view_step {
    /// The step in the core's words, with its arrays read into `room`.
    ///
    /// # Safety
    /// `shape` and `strides` are NULL or hold `ndim` values where the step takes them.
    unsafe fn read<'a>(&self, room: &'a mut [Array<i64, MAX_NDIM>; 2]) -> Result<Step<'a>> {
        use dlrs_view_op::*;
        let &Self { axis, other_axis, dtype, start, stop, step, .. } = self;
        if !(DLRS_VIEW_AS_STRIDED as i32..=DLRS_VIEW_NORMALIZE as i32).contains(&self.op) {
            let error = Error::new(DLRS_BAD_ARG).detail(
                "op is not a dlrs_view_op\0Set one of DLRS_VIEW_AS_STRIDED to DLRS_VIEW_NORMALIZE.",
            );
            return Err(error.value(self.op.into()));
        }
        // SAFETY: op lies between the first and the last operation, which have no gaps.
        let op = unsafe { core::mem::transmute::<i32, dlrs_view_op>(self.op) };
        let [shape, strides] = room;
        if matches!(op, DLRS_VIEW_AS_STRIDED | DLRS_VIEW_PERMUTE)
            || matches!(op, DLRS_VIEW_RESHAPE | DLRS_VIEW_EXPAND)
        {
            // SAFETY: shape is NULL or holds ndim values, as this operation takes it.
            unsafe { values(self.shape, self.ndim, [Arg::steps; 2], shape) }?;
        }
        if op == DLRS_VIEW_AS_STRIDED {
            // SAFETY: strides is NULL or holds ndim values, as this operation takes it.
            unsafe { values(self.strides, self.ndim, [Arg::steps; 2], strides) }?;
        }
        Ok(match op {
            DLRS_VIEW_AS_STRIDED => Step::AsStrided { shape, strides, offset: start },
            DLRS_VIEW_SLICE => Step::Slice { axis, start, stop, step },
            DLRS_VIEW_SELECT => Step::Select { axis, index: start },
            DLRS_VIEW_NARROW => Step::Narrow { axis, start, count: stop },
            DLRS_VIEW_FLIP => Step::Flip { axis },
            DLRS_VIEW_UNFOLD => Step::Unfold { axis, window: start, step },
            DLRS_VIEW_DIAGONAL => {
                Step::Diagonal { axis_a: axis, axis_b: other_axis, offset: start }
            }
            DLRS_VIEW_PERMUTE => Step::Permute { axes: shape },
            DLRS_VIEW_TRANSPOSE => Step::Transpose { axis_a: axis, axis_b: other_axis },
            DLRS_VIEW_SQUEEZE => Step::Squeeze { axis },
            DLRS_VIEW_UNSQUEEZE => Step::Unsqueeze { axis },
            DLRS_VIEW_RESHAPE => Step::Reshape { shape },
            DLRS_VIEW_EXPAND => Step::Expand { shape },
            DLRS_VIEW_BITCAST => Step::Bitcast { dtype },
            DLRS_VIEW_LANES => Step::Lanes { lanes: i32::try_from(start).unwrap_or(-1) },
            DLRS_VIEW_READ_ONLY => Step::ReadOnly,
            DLRS_VIEW_NORMALIZE => {
                Step::Normalize { what: u32::try_from(start).unwrap_or(u32::MAX) }
            }
        })
    }
}

/// An error of the core about an argument is about all of it; one that names none is the base's.
#[cold]
pub(super) fn named(error: Error) -> Error {
    match error.argument() {
        Some(_) => error.field(DLRS_FIELD_NONE),
        None => error.of(Arg::base),
    }
}

/// An error of a step, which has no parameters: names the step by its place.
#[cold]
fn at_step(mut error: Error, place: u64) -> Error {
    if error.argument().is_some_and(|argument| argument != Arg::steps) {
        error = error.field(DLRS_FIELD_NONE);
    }
    error.renamed(Arg::steps).dim(place.min(i8::MAX as u64) as usize)
}

/// Reads a base of this library, and finds its block.
#[inline]
fn base_of(
    base: Live<DLManagedTensorVersioned>,
    snapshot: &mut Snapshot,
) -> Result<NonNull<Block>> {
    // SAFETY: base is a live tensor.
    let block = unsafe { share::own(base.get()) }?;
    base.read(Rules::of(Level::DLRS_LEVEL_LAYOUT), snapshot)?;
    Ok(block)
}

/// The body of every function that makes a view of one step.
///
/// # Safety
/// `base` is NULL or a live tensor, `out` and `error` are NULL or writable.
#[inline(never)]
pub(super) unsafe fn one(
    function: &'static str,
    base: *mut DLManagedTensorVersioned,
    step: Result<Step>,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    let pointers = (live(base, Arg::base), result(out, Arg::out));
    // SAFETY: base and error are NULL or live, out is NULL or a writable variable; a base that is
    // live has a block.
    unsafe {
        run(function, error, pointers, |(base, out)| {
            let step = step.map_err(named)?;
            let mut snapshot = Snapshot::new();
            let block = base_of(base, &mut snapshot).of(Arg::base)?;
            let (base, mut changed) = view::start(&mut snapshot);
            changed.apply(&step).map_err(named)?;
            out.give(view::share(&changed, block, &base).of(Arg::base)?);
            Ok(())
        })
    }
}

/// Applies `count` steps; an error names the step by its place.
///
/// # Safety
/// `steps` holds `count` steps, each of the size that the first one says, and their arrays are as
/// for [`dlrs_view_step::read`].
unsafe fn apply(view: &mut View, steps: *const dlrs_view_step, count: u64) -> Result<()> {
    let (mut next, mut size) = (steps, None);
    let (mut room, mut of_step) = ([Array::new(), Array::new()], MaybeUninit::uninit());
    for place in 0..count {
        // SAFETY: next is step number `place` of `count`, readable with the size that it says.
        let step = unsafe { Live::new(next, Arg::steps) }
            .and_then(|step| options(Some(step), Arg::steps, &mut of_step))
            .map_err(|e| at_step(e, place))?;
        let Some(step) = step else { return Err(Error::new(DLRS_INTERNAL)) };
        let size = *size.get_or_insert(step.struct_size);
        if step.struct_size != size {
            let error = Error::new(DLRS_STRUCT_SIZE).field(DLRS_FIELD_STRUCT_SIZE);
            let error = error.detail("steps of one array have different sizes");
            let error = error.value(step.struct_size.into()).limit(size.into());
            return Err(at_step(error, place));
        }
        // SAFETY: shape and strides of the step are NULL or hold ndim values where it takes them.
        let done = unsafe { step.read(&mut room) }.and_then(|step| view.apply(&step));
        done.map_err(|e| at_step(e, place))?;
        next = next.wrapping_byte_add(size as usize);
    }
    Ok(())
}

/// Make a view of a tensor by several steps, one after the other.
///
/// Shape:     the result of the steps; with count 0, base's.
/// Bytes:     as if each step made a view of the previous one; nothing outside base's own bytes.
/// Device:    any.
/// Ownership: the caller owns *out, which keeps base alive; no intermediate view is made. The steps
///            and their arrays are only read.
/// Flags:     base's without IS_COPIED, which base loses too; READ_ONLY where a step adds it.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: base, steps (with count above 0), out.
///            DLRS_VERSION, DLRS_FOREIGN: base. What dlrs_validate_managed reports for base at
///            DLRS_LEVEL_LAYOUT. DLRS_STRUCT_SIZE: a step's, or not the same in all steps.
///            DLRS_BAD_ARG: op. For each step what its function reports; error->dimension is then
///            the index of the step, at most 127. DLRS_SUBBYTE, DLRS_OFFSET: the start of the whole
///            view. DLRS_REFCOUNT: too many references to base, or it is being freed. DLRS_NOMEM:
///            no memory for the header.
/// Threads:   any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_view_apply(
    base: *mut DLManagedTensorVersioned,
    steps: *const dlrs_view_step,
    count: u64,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    let given = needed_if(count > 0, live(steps, Arg::steps));
    let pointers = (live(base, Arg::base), given, result(out, Arg::out));
    // SAFETY: base and error are NULL or live, steps holds count steps of one size, out is NULL or
    // a writable variable; a base that is live has a block.
    unsafe {
        run("dlrs_view_apply", error, pointers, |(base, _, out)| {
            let mut snapshot = Snapshot::new();
            let block = base_of(base, &mut snapshot).of(Arg::base)?;
            let (base, mut changed) = view::start(&mut snapshot);
            apply(&mut changed, steps, count)?;
            out.give(view::share(&changed, block, &base).of(Arg::base)?);
            Ok(())
        })
    }
}

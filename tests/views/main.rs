//! Random chains of views against lists of element offsets: the view has exactly those elements,
//! never one outside its base; a chain equals its steps one by one; a description equals the
//! tensor.
#![allow(clippy::undocumented_unsafe_blocks)] // all: the C API with live tensors of this file

mod model;
#[path = "../lib/random.rs"]
mod random;

use std::ffi::c_void;
use std::ptr::{null_mut, without_provenance_mut};

use dlpack_rs::abi::*;
use dlpack_rs::capi::view::{dlrs_view_apply, dlrs_view_step};
use dlpack_rs::capi::{overlap::*, share::*, view_axes::*, view_index::*, view_shape::*, wrap::*};
use dlpack_rs::dtype::slot_bits;
use dlpack_rs::layout::Dims;
use dlpack_rs::view::{ALL_AXES, Step, View};
use model::Model;
use random::Random;

type Managed = *mut DLManagedTensorVersioned;

const READ_ONLY: u64 = DLPACK_FLAG_BITMASK_READ_ONLY;
const PADDED: u64 = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
const SUBBYTE: i32 = 216;
const OFFSET: i32 = 211;
const UNSUPPORTED: i32 = 501;

const fn dtype(code: u8, bits: u8, lanes: u16) -> DLDataType {
    DLDataType { code, bits, lanes }
}

const DTYPES: &[DLDataType] = &[
    dtype(2, 32, 1),
    dtype(2, 32, 1),
    dtype(1, 8, 1),
    dtype(0, 16, 1),
    dtype(5, 64, 1),
    dtype(2, 64, 1),
    dtype(2, 32, 3),
    dtype(2, 16, 4),
    dtype(17, 4, 1),
    dtype(17, 4, 2),
    dtype(15, 6, 1),
    dtype(1, 1, 1),
];

/// A base over unmapped memory: views never access it.
fn base(random: &mut Random) -> (Managed, Model, DLDataType, u64) {
    let dtype = random.one_of(DTYPES);
    let ndim = random.below(5) as usize;
    let flags = random.one_of(&[0, 0, 0, PADDED, READ_ONLY, DLPACK_FLAG_BITMASK_IS_COPIED]);
    let mut shape: Vec<i64> = (0..ndim).map(|_| random.within(1, 5)).collect();
    if ndim > 0 && random.once_in(12) {
        shape[random.below(ndim as u64) as usize] = 0;
    }
    let mut strides: Vec<i64> = vec![0; ndim];
    let mut step = 1;
    for dim in (0..ndim).rev() {
        strides[dim] = step;
        step *= shape[dim].max(1);
    }
    for stride in &mut strides {
        match random.below(10) {
            0 => *stride = -*stride,
            1 => *stride *= 2,
            2 => *stride = random.within(-3, 3),
            _ => {}
        }
    }
    if ndim > 1 && random.once_in(3) {
        let (a, b) = (random.below(ndim as u64) as usize, random.below(ndim as u64) as usize);
        shape.swap(a, b);
        strides.swap(a, b);
    }
    for (extent, stride) in shape.iter().zip(&mut strides) {
        if *extent == 1 && random.once_in(8) {
            *stride = random.one_of(&[i64::MIN, i64::MAX, 0]); // never used
        }
    }
    let device_type = random.one_of(&[1, 2, 8]); // CPU, CUDA, Metal
    let byte_offset = random.one_of(&[0u64, 4, 4096]);
    let tensor = DLTensor {
        data: without_provenance_mut(1 << 20),
        device: DLDevice { device_type, device_id: 0 },
        ndim: ndim as i32,
        dtype,
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset,
    };
    let mut out = null_mut();
    let status =
        unsafe { dlrs_tensor_wrap(&tensor, flags, None, null_mut(), &mut out, null_mut()) };
    assert_eq!(status, 0);
    let used: Vec<i64> =
        shape.iter().zip(&strides).map(|(n, s)| if *n == 1 { 0 } else { *s }).collect();
    (out, Model::strided(&shape, &used, slot_bits(dtype, flags), 0), dtype, flags)
}

/// A step, mostly a valid one, with its arrays.
struct Given {
    kind: i64,
    axis: i32,
    other: i32,
    numbers: [i64; 3],
    shape: Vec<i64>,
    strides: Vec<i64>,
    dtype: DLDataType,
}

impl Given {
    fn new(random: &mut Random, model: &Model) -> Given {
        let ndim = model.shape.len() as i64;
        let axis = |random: &mut Random| match ndim {
            0 => random.within(-1, 0) as i32,
            _ if random.once_in(25) => {
                random.one_of(&[ndim as i32, -1 - ndim as i32, i32::MIN + 1, i32::MAX])
            }
            _ => random.within(-ndim, ndim - 1) as i32,
        };
        let (first, other) = (axis(random), axis(random));
        let number = |random: &mut Random| match random.below(12) {
            0 => random.one_of(&[i64::MIN, i64::MAX, i64::MIN + 1]),
            _ => random.within(-6, 6),
        };
        let numbers = [number(random), number(random), number(random)];
        let kind = random.within(1, 17);
        let mut given = Given {
            kind,
            axis: first,
            other,
            numbers,
            shape: vec![],
            strides: vec![],
            dtype: random.one_of(DTYPES),
        };
        given.fill(random, model);
        given
    }

    fn fill(&mut self, random: &mut Random, model: &Model) {
        let ndim = model.shape.len();
        match self.kind {
            1 => {
                self.shape = (0..random.below(4)).map(|_| random.within(0, 3)).collect();
                self.strides = self.shape.iter().map(|_| random.within(-3, 4)).collect();
                self.numbers[0] = random.within(-2, 4);
            }
            5 | 10 if random.once_in(4) => self.axis = ALL_AXES,
            3 | 4 if !random.once_in(8) => {
                let dim = (self.axis as i64).rem_euclid(ndim.max(1) as i64) as usize;
                let extent = model.shape.get(dim).copied().unwrap_or(0);
                let at = random.within(0, (extent - 1).max(0));
                let from_end = if random.once_in(3) && extent > 0 { extent } else { 0 };
                self.numbers = [at - from_end, random.within(0, (extent - at).max(0)), 0];
            }
            6 if random.once_in(8) => self.numbers = [random.within(0, 6), 0, random.within(0, 3)],
            6 => self.numbers = [random.within(1, 3), 0, random.within(1, 3)],
            7 => self.numbers[0] = random.within(-4, 4),
            8 => {
                self.shape = (0..ndim as i64).collect();
                for place in (1..ndim).rev() {
                    self.shape.swap(place, random.below(place as u64 + 1) as usize);
                }
                if ndim > 0 && random.once_in(10) {
                    self.shape[0] = random.within(-2, 3);
                }
            }
            12 => self.shape = reshape(random, model),
            13 => {
                self.shape = (0..random.below(2)).map(|_| random.within(0, 2)).collect();
                let extents = model.shape.iter().map(|n| match random.below(10) {
                    0 => -1,
                    1 => random.within(0, 3),
                    _ if *n == 1 => random.within(1, 3),
                    _ => *n,
                });
                self.shape.extend(extents);
            }
            14 if random.once_in(2) => self.dtype = dtype(1, 8, 1),
            15 => {
                let last = model.shape.last().copied().unwrap_or(1);
                self.numbers[0] = random.one_of(&[1, last, last, 0]);
            }
            17 => self.numbers[0] = random.one_of(&[0, 1, 2, 3]),
            _ => {}
        }
        if self.kind == 4 {
            self.numbers = [self.numbers[0].max(-9), self.numbers[1].clamp(-1, 9), 0];
        }
    }

    /// As C gives it: a step ignores the members of others.
    fn c_step(&self) -> dlrs_view_step {
        dlrs_view_step {
            struct_size: size_of::<dlrs_view_step>() as u32,
            op: self.kind as i32,
            axis: self.axis,
            other_axis: self.other,
            ndim: self.shape.len() as i32,
            dtype: self.dtype,
            start: self.numbers[0],
            stop: self.numbers[1],
            step: self.numbers[2],
            shape: self.shape.as_ptr(),
            strides: self.strides.as_ptr(),
        }
    }

    fn step(&self) -> Step<'_> {
        let Given { axis, other, numbers: [a, b, c], .. } = *self;
        let (shape, strides) = (&self.shape[..], &self.strides[..]);
        match self.kind {
            1 => Step::AsStrided { shape, strides, offset: a },
            2 => Step::Slice { axis, start: a, stop: b, step: c },
            3 => Step::Select { axis, index: a },
            4 => Step::Narrow { axis, start: a, count: b },
            5 => Step::Flip { axis },
            6 => Step::Unfold { axis, window: a, step: c },
            7 => Step::Diagonal { axis_a: axis, axis_b: other, offset: a },
            8 => Step::Permute { axes: shape },
            9 => Step::Transpose { axis_a: axis, axis_b: other },
            10 => Step::Squeeze { axis },
            11 => Step::Unsqueeze { axis },
            12 => Step::Reshape { shape },
            13 => Step::Expand { shape },
            14 => Step::Bitcast { dtype: self.dtype },
            15 => Step::Lanes { lanes: a as i32 },
            16 => Step::ReadOnly,
            _ => Step::Normalize { what: a as u32 },
        }
    }
}

/// The extents of the model, split and joined at random.
fn reshape(random: &mut Random, model: &Model) -> Vec<i64> {
    let mut left: i64 = model.shape.iter().product();
    let mut shape = vec![];
    while left > 1 && shape.len() < 4 {
        let divisors: Vec<i64> = (1..=left).filter(|n| left % n == 0).collect();
        let extent = random.one_of(&divisors);
        shape.push(extent);
        left /= extent;
    }
    shape.push(left);
    if random.once_in(6) {
        shape.insert(random.below(shape.len() as u64) as usize, 1);
    }
    if random.once_in(3) {
        let place = random.below(shape.len() as u64) as usize;
        shape[place] = if random.once_in(9) { random.within(-2, 4) } else { -1 };
    }
    shape
}

fn named(base: Managed, step: &Step) -> Result<Managed, i32> {
    let mut out: Managed = null_mut();
    let (o, e) = (&raw mut out, null_mut());
    let n = |values: &[i64]| values.len() as i32;
    let p = |values: &[i64]| values.as_ptr();
    let status = unsafe {
        match *step {
            Step::AsStrided { shape, strides, offset } => {
                dlrs_view_as_strided(base, p(shape), p(strides), n(shape), offset, o, e)
            }
            Step::Slice { axis, start, stop, step } => {
                dlrs_view_slice(base, axis, start, stop, step, o, e)
            }
            Step::Select { axis, index } => dlrs_view_select(base, axis, index, o, e),
            Step::Narrow { axis, start, count } => dlrs_view_narrow(base, axis, start, count, o, e),
            Step::Flip { axis } => dlrs_view_flip(base, axis, o, e),
            Step::Unfold { axis, window, step } => dlrs_view_unfold(base, axis, window, step, o, e),
            Step::Diagonal { axis_a, axis_b, offset } => {
                dlrs_view_diagonal(base, axis_a, axis_b, offset, o, e)
            }
            Step::Permute { axes } => dlrs_view_permute(base, p(axes), n(axes), o, e),
            Step::Transpose { axis_a, axis_b } => dlrs_view_transpose(base, axis_a, axis_b, o, e),
            Step::Squeeze { axis } => dlrs_view_squeeze(base, axis, o, e),
            Step::Unsqueeze { axis } => dlrs_view_unsqueeze(base, axis, o, e),
            Step::Reshape { shape } => dlrs_view_reshape(base, p(shape), n(shape), o, e),
            Step::Expand { shape } => dlrs_view_expand(base, p(shape), n(shape), o, e),
            Step::Bitcast { dtype } => dlrs_view_bitcast(base, dtype, o, e),
            Step::Lanes { lanes } => dlrs_view_lanes(base, lanes, o, e),
            Step::ReadOnly => dlrs_view_read_only(base, o, e),
            Step::Normalize { what } => dlrs_view_normalize(base, what, o, e),
        }
    };
    assert_eq!(status == 0, !out.is_null());
    if status == 0 { Ok(out) } else { Err(status) }
}

unsafe fn arrays<'a>(tensor: &DLTensor) -> (&'a [i64], &'a [i64]) {
    if tensor.ndim == 0 {
        return (&[], &[]);
    }
    let of = |array: *mut i64| unsafe { std::slice::from_raw_parts(array, tensor.ndim as usize) };
    (of(tensor.shape), of(tensor.strides))
}

/// The model of a tensor of ours, with offsets from `origin`.
fn model_of(tensor: &DLTensor, flags: u64, origin: i128) -> Model {
    let (shape, strides) = unsafe { arrays(tensor) };
    let used: Vec<i64> =
        shape.iter().zip(strides).map(|(n, s)| if *n == 1 { 0 } else { *s }).collect();
    let first = tensor.data as usize as i128 + tensor.byte_offset as i128 - origin;
    Model::strided(shape, &used, slot_bits(tensor.dtype, flags), first * 8)
}

fn origin_of(base: Managed) -> i128 {
    let tensor = unsafe { &(*base).dl_tensor };
    tensor.data as usize as i128 + tensor.byte_offset as i128
}

/// The resulting dtype, so that the model has the bits of an element.
fn retyped(dtype: DLDataType, step: &Step) -> DLDataType {
    match *step {
        Step::Bitcast { dtype } => dtype,
        Step::Lanes { lanes } => DLDataType { lanes: lanes as u16, ..dtype },
        _ => dtype,
    }
}

fn refused(dtype: DLDataType, flags: u64, step: &Step) -> bool {
    match *step {
        Step::Lanes { lanes } => {
            lanes <= 0
                || flags & PADDED != 0 && !dtype.bits.is_multiple_of(8)
                || lanes > 1 && dtype.lanes != 1
        }
        _ => false,
    }
}

#[derive(Default)]
struct Counts {
    made: u32,
    failed: u32,
    elements: u64,
    kinds: [u32; 18],
}

/// Whether a step must set READ_ONLY, as one that repeats elements does.
fn repeats(step: &Step, before: &Model, after: &Model) -> bool {
    let answer = match *step {
        Step::ReadOnly => return true,
        Step::AsStrided { .. } => after.shares(),
        // Bits behind the last element come along.
        Step::Bitcast { .. } => {
            let row = |model: &Model| model.shape.last().map_or(0, |n| n * i64::from(model.item));
            return row(after) > row(before);
        }
        Step::Expand { .. } => after.bits.len() > before.bits.len(),
        Step::Unfold { axis, window, step } => {
            let dim = axis.rem_euclid(before.shape.len() as i32) as usize;
            !after.bits.is_empty() && after.shape[dim] > 1 && step < window
        }
        _ => false,
    };
    assert!(before.shares() || answer == after.shares(), "{step:?} of {before:?}");
    answer
}

/// One chain: steps that the model supports, and maybe a last one that fails.
fn chain(random: &mut Random, counts: &mut Counts) {
    let (base, start, mut dtype, mut flags) = base(random);
    let origin = origin_of(base);
    // Whole bytes: a bitcast to bytes has all of the last one.
    let room = start.span().map_or((0, 0), |(low, high)| (low & !7, (high + 7) & !7));
    let opaque = unsafe { (*base).dl_tensor.device.device_type } == 8;
    let (mut model, mut steps, mut one_by_one) = (start.clone(), vec![], Ok(base));
    let length = random.within(0, 5);
    let mut kept = vec![]; // the arrays that `steps` point to
    let (mut fails, mut fold, mut told) = (false, false, String::new());
    let mut expect_read_only = flags & READ_ONLY != 0;
    let kept_for = |dtype: DLDataType| if dtype.bits.is_multiple_of(8) { !PADDED } else { !0 };
    flags &= kept_for(dtype);
    for _ in 0..length {
        let given = Given::new(random, &model);
        let step = given.step();
        let item = |step: &Step| slot_bits(retyped(dtype, step), flags);
        let next = match refused(dtype, flags, &step) {
            true => None,
            false => model.apply(&step, room, item),
        };
        one_by_one = one_by_one.and_then(|held: Managed| {
            let next = named(held, &step);
            if held != base {
                unsafe { dlrs_release(held) };
            }
            next
        });
        steps.push(given.c_step());
        fold |= matches!(step, Step::Normalize { what: 1 | 3 });
        told = format!("{step:?}");
        let Some(next) = next else {
            fails = true;
            kept.push(given);
            break;
        };
        counts.kinds[given.kind as usize] += 1;
        expect_read_only |= repeats(&step, &model, &next);
        (model, dtype) = (next, retyped(dtype, &step));
        flags &= kept_for(dtype);
        kept.push(given);
    }
    flags &= !DLPACK_FLAG_BITMASK_IS_COPIED;
    let mut out: Managed = null_mut();
    let status =
        unsafe { dlrs_view_apply(base, steps.as_ptr(), steps.len() as u64, &mut out, null_mut()) };
    if status == 0 {
        assert!(!fails, "a step that cannot be done was done: {told:?} of {model:?} {dtype:?}");
        counts.made += 1;
        counts.elements += model.bits.len() as u64;
        check(base, out, &model, (dtype, flags, expect_read_only), (origin, room));
        match one_by_one {
            Ok(view) => unsafe {
                assert_eq!(arrays(&(*view).dl_tensor), arrays(&(*out).dl_tensor));
                assert_eq!((*view).flags | READ_ONLY, (*out).flags | READ_ONLY);
                assert_eq!(
                    (*view).flags,
                    if steps.is_empty() { (*view).flags } else { (*out).flags }
                );
            },
            Err(status) => {
                assert!(status == SUBBYTE || opaque && [OFFSET, UNSUPPORTED].contains(&status))
            }
        }
        unsafe { dlrs_release(out) };
    } else {
        counts.failed += 1;
        assert!(out.is_null());
        let inside = model.bits.first().is_some_and(|bit| bit % 8 != 0);
        let before = opaque && model.bits.first().is_some_and(|bit| *bit < 0);
        assert!(
            fails
                || status == SUBBYTE && inside
                || status == OFFSET && before
                || status == UNSUPPORTED && opaque && fold,
            "{status} {told} of {model:?}"
        );
        if fails {
            assert!(one_by_one.is_err());
        }
    }
    if let Ok(view) = one_by_one
        && view != base
    {
        unsafe { dlrs_release(view) };
    }
    unsafe {
        assert_eq!(dlrs_ref_count(base), 1);
        dlrs_release(base);
    }
}

/// The queries about shared memory, against the offsets.
fn check_sharing(
    base: &DLManagedTensorVersioned,
    view: &DLManagedTensorVersioned,
    model: &Model,
    (origin, base_flags): (i128, u64),
) {
    let (tensor, mut answer) = (&view.dl_tensor, 9);
    unsafe { dlrs_is_unique(tensor, view.flags, &mut answer, null_mut()) };
    assert!(answer == 2 || answer == i32::from(!model.shares()));
    let other = model_of(&base.dl_tensor, base_flags, origin);
    let meet = |a: i128| {
        let near = |b: &i128| *b < a + model.item as i128 && a < b + other.item as i128;
        other.bits.iter().any(near)
    };
    let base = &base.dl_tensor;
    unsafe { dlrs_may_overlap(tensor, view.flags, base, base_flags, &mut answer, null_mut()) };
    if tensor.data == base.data || base.device.device_type != 8 {
        assert!(answer == 2 || answer == i32::from(model.bits.iter().any(|bit| meet(*bit))));
    }
}

fn check(
    base: Managed,
    view: Managed,
    model: &Model,
    (dtype, flags, read_only): (DLDataType, u64, bool),
    (origin, room): (i128, (i128, i128)),
) {
    let (view, base) = unsafe { (&*view, &*base) };
    let tensor = &view.dl_tensor;
    assert_eq!((tensor.dtype.code, tensor.dtype.bits), (dtype.code, dtype.bits));
    assert_eq!(tensor.dtype.lanes, dtype.lanes);
    assert_eq!((view.version.major, view.version.minor), (1, 3));
    assert_eq!(view.flags & PADDED, flags & PADDED);
    assert_eq!((view.flags | base.flags) & DLPACK_FLAG_BITMASK_IS_COPIED, 0);
    assert_eq!(view.flags & READ_ONLY != 0, read_only, "of elements that share memory");
    if model.bits.is_empty() {
        assert_eq!((tensor.data, tensor.byte_offset), (null_mut::<c_void>(), 0));
        unsafe { assert_eq!(arrays(tensor).0, model.shape) };
        return;
    }
    let got = model_of(tensor, view.flags, origin);
    assert_eq!(got.shape, model.shape);
    assert_eq!(got.bits, model.bits);
    check_sharing(base, view, model, (origin, flags));
    let (low, high) = got.span().unwrap();
    assert!(low >= room.0 && high <= room.1, "outside of the base");
}

#[test]
fn chains_have_the_elements_that_their_steps_say() {
    let (mut random, mut counts) = (Random(0x9e3779b97f4a7c15), Counts::default());
    let chains = if cfg!(miri) { 200 } else { 80_000 };
    for _ in 0..chains {
        chain(&mut random, &mut counts);
    }
    println!("{} made, {} refused, {} elements", counts.made, counts.failed, counts.elements);
    println!("by step: {:?}", &counts.kinds[1..]);
    assert!(cfg!(miri) || counts.made >= 20_000);
    assert!(cfg!(miri) || counts.kinds[1..].iter().all(|count| *count > 1_000));
}

#[test]
fn merging_keeps_the_elements_and_leaves_nothing_to_merge() {
    let mut random = Random(0x2545f4914f6cdd1d);
    for _ in 0..5_000 {
        let (base, model, _, flags) = base(&mut random);
        let what = random.one_of(&[4, 6]);
        let view = named(base, &Step::Normalize { what }).unwrap();
        let tensor = unsafe { &(*view).dl_tensor };
        let (shape, strides) = unsafe { arrays(tensor) };
        if model.bits.is_empty() {
            assert_eq!(shape, model.shape);
        } else {
            assert_eq!(model_of(tensor, flags, origin_of(base)).bits, model.bits);
            assert!(!shape.contains(&1));
            let apart = |k: &usize| strides[*k] != shape[k + 1] * strides[k + 1];
            assert!((0..shape.len().saturating_sub(1)).all(|k| apart(&k)));
        }
        unsafe {
            dlrs_release(base);
            dlrs_release(view); // any order
        }
    }
}

/// No step can reach further, so only a base that lies about itself shows this check.
#[test]
fn settle_rejects_views_outside_the_base() {
    let mut dims = Dims::new();
    [(2, 3), (3, 1)].into_iter().for_each(|dim| dims.push(dim));
    let mut view = View::of(&mut dims, dtype(2, 32, 1), 0);
    assert_eq!(view.settle((0, 24)).unwrap(), Some(0));
    assert_eq!(view.settle((0, 23)).unwrap_err().status() as i32, 209);
    view.apply(&Step::Flip { axis: 1 }).unwrap();
    assert_eq!(view.settle((0, 24)).unwrap(), Some(8));
    assert_eq!(view.settle((1, 24)).unwrap_err().status() as i32, 209);
}

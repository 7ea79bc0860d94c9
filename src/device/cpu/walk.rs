//! Visits every index of the dimensions that a kernel does not handle itself.
use crate::device::{part::Part, plan::Dim};

/// Calls `visit(source offset, destination offset)`, in the unit of the plan's strides, for every
/// index of all dimensions but those in the set `inner`; the innermost of the others runs fastest.
pub(super) fn walk(plan: &Part, inner: u64, mut visit: impl FnMut(isize, isize)) {
    each(plan, inner, &mut visit);
}

/// As [`walk`], or from the last index to the first; `soon` is told the source offset one visit
/// earlier.
pub(super) fn walk_ahead(
    plan: &Part,
    inner: u64,
    backwards: bool,
    mut soon: impl FnMut(isize),
    mut visit: impl FnMut(isize, isize),
) {
    let mut waits = None;
    let last = if backwards { last(plan, inner) } else { (0, 0) };
    let from_last = |at: isize, last: isize| if backwards { last.wrapping_sub(at) } else { at };
    each(plan, inner, &mut |src, dst| {
        let (src, dst) = (from_last(src, last.0), from_last(dst, last.1));
        soon(src);
        if let Some((src, dst)) = waits.replace((src, dst)) {
            visit(src, dst);
        }
    });
    if let Some((src, dst)) = waits {
        visit(src, dst);
    }
}

/// Both offsets of the last index.
fn last(plan: &Part, inner: u64) -> (isize, isize) {
    let outer = (0..plan.ndim).filter(|i| inner >> (i & 63) & 1 == 0).map(|i| plan.dim(i));
    outer.fold((0, 0), |(src, dst), dim| {
        let steps = dim.n.wrapping_sub(1);
        let by = |stride: i64| stride.wrapping_mul(steps) as isize;
        (by(dim.src).wrapping_add(src), by(dim.dst).wrapping_add(dst))
    })
}

/// Once for all kernels: a loop over the fastest dimension, and around it one over all others.
/// Stacks may be small, so that the indices of these are one number, each in as many bits as it may
/// need: fewer than 128, for no two elements of the destination share memory.
#[inline(never)]
fn each(plan: &Part, inner: u64, visit: &mut dyn FnMut(isize, isize)) {
    let outer = |i: &usize| inner >> (i & 63) & 1 == 0;
    let fastest = (0..plan.ndim).rev().find(outer);
    let run = fastest.map_or(Dim::NONE, |i| plan.dim(i));
    let (mut src, mut dst, mut indices) = (0i64, 0i64, 0u128);
    loop {
        let (mut from, mut to) = (src, dst);
        for _ in 0..run.n {
            visit(from as isize, to as isize);
            (from, to) = (from.wrapping_add(run.src), to.wrapping_add(run.dst));
        }
        let (mut at, mut goes_on) = (0, false);
        for i in (0..fastest.unwrap_or(0)).rev().filter(outer) {
            let dim = plan.dim(i);
            let last = dim.n.wrapping_sub(1);
            let bits = i64::BITS - last.leading_zeros();
            let index = indices.wrapping_shr(at) as i64 & 1i64.wrapping_shl(bits).wrapping_sub(1);
            goes_on = index < last;
            let steps = if goes_on { 1 } else { index.wrapping_neg() };
            indices = indices.wrapping_add((steps as i128 as u128).wrapping_shl(at));
            src = src.wrapping_add(dim.src.wrapping_mul(steps));
            dst = dst.wrapping_add(dim.dst.wrapping_mul(steps));
            if goes_on {
                break;
            }
            at += bits;
        }
        if !goes_on {
            return;
        }
    }
}

/// The set of some dimensions.
pub(super) fn set(dims: &[Option<usize>]) -> u64 {
    dims.iter().flatten().fold(0, |set, &i| set | 1u64.wrapping_shl(i as u32))
}

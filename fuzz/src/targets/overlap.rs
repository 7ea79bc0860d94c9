//! Whether elements share memory, of one tensor and of two, against sets of the bits that they use.
//! "Undecided" is always allowed, "yes" and "no" must be true.

use crate::layout::{covered, shape, strides};
use crate::{Layout, Reader, call};
use dlpack_rs::abi::*;
use dlpack_rs::capi::overlap::*;

const CPU: DLDevice = DLDevice { device_type: 1, device_id: 0 };
const UNDECIDED: i32 = dlrs_answer::DLRS_UNDECIDED as i32;
/// Not dereferenced.
const BASE: usize = 1 << 20;

fn layout(reader: &mut Reader) -> Layout {
    let legal = reader.legal_dtype();
    let one = DLDataType { code: 1, bits: reader.of(&[8, 8, 4, 1, 2, 32]), lanes: 1 };
    let dtype = if reader.one_in(3) { legal } else { one };
    let flags = if reader.one_in(8) { 4 } else { 0 };
    let shape = match reader.below(3) {
        0 => shape(reader, 300),
        _ => (0..reader.below(6)).map(|_| reader.below(5) as i64 + 1).collect(),
    };
    let strides = match reader.below(3) {
        0 => strides(reader, &shape, 40),
        _ => (0..shape.len()).map(|_| i64::from(reader.byte() as i8) / 2).collect(),
    };
    Layout { dtype, flags, shape, strides }
}

/// The library's result, which must be the same for both orders.
fn asked(a: (&DLTensor, u64), b: (&DLTensor, u64)) -> i32 {
    let mut out = -1;
    // SAFETY: tensors with separate arrays; elements are not accessed.
    let status = call(|error| unsafe { dlrs_may_overlap(a.0, a.1, b.0, b.1, &mut out, error) });
    assert_eq!(status, 0);
    out
}

fn check_unique(layout: &Layout, tensor: &DLTensor, truth: bool) {
    let mut out = -1;
    // SAFETY: as above.
    let status = call(|error| unsafe { dlrs_is_unique(tensor, layout.flags, &mut out, error) });
    assert_eq!(status, 0);
    assert!(out == i32::from(truth) || out == UNDECIDED, "unique {out}, should be {truth}");
}

/// Builds the case of an input, and checks it.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let layouts = [layout(&mut reader), layout(&mut reader)];
    let shift = reader.byte() as i8 as isize * if reader.one_in(4) { 16 } else { 1 };
    let extents = layouts.each_ref().map(Layout::extent);
    if extents.iter().any(|&(below, above)| below.max(above) > 1 << 16) {
        return;
    }
    let first = [BASE, BASE.wrapping_add_signed(shift)];
    // One map of all bits from the lowest byte that either uses.
    let low = first[0] - extents[0].0;
    let low = low.min(first[1] - extents[1].0);
    let high = (first[0] + extents[0].1).max(first[1] + extents[1].1);
    if high - low > 1 << 16 {
        return;
    }
    let tensors = [0, 1].map(|side| {
        let offset = reader.below(9);
        layouts[side].tensor(first[side] as *mut u8, offset, CPU)
    });
    let maps = [0, 1].map(|side| covered(&layouts[side], first[side] - low, high - low));
    for ((layout, tensor), (_, unique)) in layouts.iter().zip(&tensors).zip(&maps) {
        check_unique(layout, tensor, *unique);
    }
    let shared = maps[0].0.iter().zip(&maps[1].0).any(|(a, b)| a & b != 0);
    let sides = [0, 1].map(|side| (&tensors[side], layouts[side].flags));
    for (a, b) in [(0, 1), (1, 0)] {
        let out = asked(sides[a], sides[b]);
        assert!(out == i32::from(shared) || out == UNDECIDED, "overlap {out}, should be {shared}");
    }
}

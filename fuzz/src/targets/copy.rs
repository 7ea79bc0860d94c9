//! Copies between small views, packed elements too, against one done bit by bit. Both sides are in
//! memory of exactly the bytes that they use, or in the same memory. A rejected copy has written
//! nothing, and had to be rejected.

use std::ptr::null_mut;

use crate::layout::{copy_bits, covered, shape, strides};
use crate::{Layout, Reader, call};
use dlpack_rs::abi::*;
use dlpack_rs::capi::{copy::*, copy_options::*, overlap::*};
use dlpack_rs::error::Status::*;

const CPU: DLDevice = DLDevice { device_type: 1, device_id: 0 };

/// A layout, and the offset of its first element in its memory.
struct Side {
    layout: Layout,
    at: usize,
    tensor: DLTensor,
}

impl Side {
    fn new(layout: Layout, memory: &mut [u8], at: usize, offset: usize) -> Side {
        let first = memory.as_mut_ptr().wrapping_add(at);
        let tensor = layout.tensor(first, offset, CPU);
        Side { layout, at, tensor }
    }

    /// The first bit of every element in the memory.
    fn bits(&self) -> Vec<usize> {
        self.layout.bits(self.at)
    }
}

/// Elements of 1 to 32 bytes, or of a few bits.
fn dtype(reader: &mut Reader) -> DLDataType {
    match reader.below(4) {
        0 => reader.legal_dtype(),
        1 => DLDataType { code: 1, bits: 8, lanes: reader.below(32) as u16 + 1 },
        2 => DLDataType { code: 1, bits: reader.of(&[1, 2, 4]), lanes: 1 },
        _ => DLDataType { code: 2, bits: reader.of(&[16, 32, 64]), lanes: 1 },
    }
}

/// Source and destination equal except for their strides, and memory of the required size.
fn sides(reader: &mut Reader) -> ([Layout; 2], bool) {
    let dtype = dtype(reader);
    let flags = if reader.one_in(4) { 4 } else { 0 };
    let bits = i64::from(dtype.bits) * i64::from(dtype.lanes);
    let shape = shape(reader, (65536 / bits).min(2048));
    let far = if shape.len() > 3 { 7 } else { 40 };
    let mut side =
        || Layout { dtype, flags, strides: strides(reader, &shape, far), shape: shape.clone() };
    ([side(), side()], reader.one_in(4))
}

fn fill(memory: &mut [u8], seed: u8) {
    let mut state = u32::from(seed) | 0x9E37_7900;
    for byte in memory {
        state = state.wrapping_mul(0x0019_660D).wrapping_add(0x3C6E_F35F);
        *byte = (state >> 24) as u8;
    }
}

/// The results of dlrs_is_unique and dlrs_may_overlap, which `overlap` checks.
fn answers(src: &Side, dst: &Side) -> (i32, i32) {
    let (mut unique, mut shared) = (-1, -1);
    let (from, to) = ((&src.tensor, src.layout.flags), (&dst.tensor, dst.layout.flags));
    // SAFETY: tensors with separate arrays, and variables for the results.
    unsafe {
        assert_eq!(call(|error| dlrs_is_unique(to.0, to.1, &mut unique, error)), 0);
        let ask = |error| dlrs_may_overlap(from.0, from.1, to.0, to.1, &mut shared, error);
        assert_eq!(call(ask), 0);
    }
    (unique, shared)
}

/// `memory` is the destination's, and the source's too if there is no other.
fn check(src: Side, dst: Side, source: Option<&[u8]>, memory: &mut [u8], reader: &mut Reader) {
    let before = memory.to_vec();
    let options = dlrs_copy_options {
        struct_size: size_of::<dlrs_copy_options>() as u32,
        flags: reader.below(4) as u32, // overlap allowed, raw bytes
        threads: 1,
        reserved: 0,
        parallel_for: None,
        parallel_context: null_mut(),
        src_stream: null_mut(),
        dst_stream: null_mut(),
    };
    let (unique, shared) = answers(&src, &dst);
    let read_only = u64::from(reader.one_in(32));
    let (from, to) = (src.layout.flags, dst.layout.flags | read_only);
    // SAFETY: every element is in memory of this test.
    let status = call(|error| unsafe {
        dlrs_copy_desc(&src.tensor, from, &dst.tensor, to, &options, error)
    });
    let mut expected = before.clone();
    let allowed = options.flags & DLRS_COPY_ALLOW_OVERLAP != 0;
    if status == 0 {
        assert_eq!(read_only, 0, "was to be refused");
        check_overlap(&src, &dst, allowed || source.is_some(), memory.len());
        let source = source.unwrap_or(&before);
        let bits = src.layout.slot_bits() as usize;
        for (from, to) in src.bits().into_iter().zip(dst.bits()) {
            copy_bits(source, from, &mut expected, to, bits);
        }
    } else {
        // Raw bytes or not: an opaque handle is not copied.
        let opaque = status == DLRS_UNSUPPORTED as i32 && src.layout.dtype.code == 3;
        let right = status == DLRS_READ_ONLY as i32 && read_only == 1
            || status == DLRS_OVERLAP_DST as i32 && unique != 1
            || status == DLRS_OVERLAP_SRC_DST as i32 && shared != 0 && !allowed;
        assert!(right || opaque, "refused with {status}");
    }
    assert!(memory == expected, "status {status}: the destination is not as it should be");
}

/// Properties that a successful copy must not have: shared destination elements, or overlap.
fn check_overlap(src: &Side, dst: &Side, allowed: bool, nbytes: usize) {
    let (written, distinct) = covered(&dst.layout, dst.at, nbytes);
    assert!(distinct, "was to be refused: elements share memory");
    if !allowed {
        let (read, _) = covered(&src.layout, src.at, nbytes);
        let apart = read.iter().zip(&written).all(|(read, written)| read & written == 0);
        assert!(apart || src.bits() == dst.bits(), "was to be refused: source and destination");
    }
}

/// Builds the case of an input, and checks it.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let ([from, to], together) = sides(&mut reader);
    let extents = [from.extent(), to.extent()];
    let [src_at, dst_at] = extents.map(|extent| extent.0);
    let room = |side: usize| extents[side].0 + extents[side].1;
    if room(0).max(room(1)) > 1 << 16 {
        return;
    }
    let offsets = [reader.below(9), reader.below(9)];
    if together {
        // Both in the same memory, the destination at a small offset.
        let shift = reader.below(64).min(room(0));
        let at = src_at.max(dst_at);
        let tail = extents[0].1.max(extents[1].1 + shift);
        let mut memory = vec![0; at + tail].into_boxed_slice();
        fill(&mut memory, reader.byte());
        let src = Side::new(from, &mut memory, at, offsets[0]);
        let dst = Side::new(to, &mut memory, at + shift, offsets[1]);
        check(src, dst, None, &mut memory, &mut reader);
    } else {
        // Any alignment, and no bytes around it.
        let skip = [reader.below(16), reader.below(16)];
        let mut memory = [0, 1].map(|side| vec![0; skip[side] + room(side)].into_boxed_slice());
        memory.iter_mut().for_each(|memory| fill(memory, reader.byte()));
        let [source, target] = &mut memory;
        let src = Side::new(from, source, skip[0] + src_at, offsets[0]);
        let dst = Side::new(to, target, skip[1] + dst_at, offsets[1]);
        check(src, dst, Some(source), target, &mut reader);
    }
}

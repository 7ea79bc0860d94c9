//! Conversion of elements between any two dtypes. The result of strided, packed and padded views
//! equals that of compact ones, element by element, and no other byte is written; a value that
//! float64 can represent survives a round trip; types that Rust has follow Rust's `as`.

use std::ptr::{null, null_mut};

use crate::layout::{copy_bits, covered, shape, strides};
use crate::{Layout, Reader, call};
use dlpack_rs::abi::*;
use dlpack_rs::capi::cast::*;
use dlpack_rs::cpu;
use dlpack_rs::dtype::DLRS_CODE_BCOMPLEX;
use dlpack_rs::error::Status::*;

const CPU: DLDevice = DLDevice { device_type: 1, device_id: 0 };
const DOUBLE: DLDataType = DLDataType { code: 2, bits: 64, lanes: 1 };
const PADDED: u64 = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
const NUMEL_MOST: i64 = 300;

/// A layout in new memory, of exactly the bytes that it uses.
struct View {
    layout: Layout,
    memory: Box<[u8]>,
    at: usize,
}

impl View {
    fn new(layout: Layout, fill: &[u8]) -> View {
        let (at, behind) = layout.extent();
        let bytes = fill.iter().copied().cycle().take(at + behind);
        let memory = if fill.is_empty() { vec![0; at + behind].into() } else { bytes.collect() };
        View { layout, memory, at }
    }

    fn managed(&mut self) -> DLManagedTensorVersioned {
        let first = self.memory.as_mut_ptr().wrapping_add(self.at);
        DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 3 },
            manager_ctx: null_mut(),
            deleter: None,
            flags: self.layout.flags,
            dl_tensor: self.layout.tensor(first, 0, CPU),
        }
    }

    /// The first bit of every element in the memory.
    fn bits(&self) -> Vec<usize> {
        self.layout.bits(self.at)
    }

    /// Takes the elements of another view, as bits.
    fn take(&mut self, from: &View) {
        let width = usize::from(self.layout.dtype.bits) * usize::from(self.layout.dtype.lanes);
        for (from_bit, to_bit) in from.bits().into_iter().zip(self.bits()) {
            copy_bits(&from.memory, from_bit, &mut self.memory, to_bit, width);
        }
    }

    /// The elements as numbers, each up to 128 bits of it.
    fn elements(&self) -> Vec<u128> {
        let width = usize::from(self.layout.dtype.bits) * usize::from(self.layout.dtype.lanes);
        let element = |bit| {
            let mut bytes = [0; 16];
            copy_bits(&self.memory, bit, &mut bytes, 0, width.min(128));
            u128::from_le_bytes(bytes)
        };
        self.bits().into_iter().map(element).collect()
    }
}

fn cast(from: &mut View, to: &mut View) -> i32 {
    let (src, mut dst) = (from.managed(), to.managed());
    // SAFETY: live tensors, with separate memory.
    call(|error| unsafe { dlrs_cast(&src, &mut dst, null(), error) })
}

/// A layout of the same shape in other strides, with distinct elements.
fn strided(reader: &mut Reader, like: &Layout, distinct: bool) -> Option<Layout> {
    let flags = if reader.one_in(3) { like.flags ^ PADDED } else { like.flags };
    let strides = strides(reader, &like.shape, 20);
    let layout = Layout { dtype: like.dtype, flags, shape: like.shape.clone(), strides };
    let (before, behind) = layout.extent();
    let small = before + behind < 1 << 15;
    (small && (!distinct || covered(&layout, before, before + behind).1)).then_some(layout)
}

/// Through views of any kind: the same elements, and nothing else is written.
fn check_strided(reader: &mut Reader, source: &View, result: &View) {
    // The source is filled from the compact one, so its elements must be distinct too.
    let from = strided(reader, &source.layout, true);
    let to = strided(reader, &result.layout, true);
    let (Some(from), Some(to)) = (from, to) else { return };
    let mut from = View::new(from, &[0xA5]);
    from.take(source);
    let mut to = View::new(to, &[reader.byte(), reader.byte()]);
    let mut expected = to.memory.clone();
    assert_eq!(cast(&mut from, &mut to), 0);
    assert!(to.elements() == result.elements(), "strided differs from compact");
    let (map, _) = covered(&to.layout, to.at, to.memory.len());
    for ((expected, now), mask) in expected.iter_mut().zip(&to.memory).zip(map) {
        *expected = *expected & !mask | now & mask;
    }
    assert!(to.memory == expected, "bytes beside the elements were written");
}

/// Whether double precision can represent every value of a dtype, except for kinds of NaN.
fn fits_double(dtype: DLDataType) -> bool {
    match dtype.code {
        0 | 1 => dtype.bits <= 32,
        3 | 5 | 6 | DLRS_CODE_BCOMPLEX => false,
        _ => dtype.lanes == 1,
    }
}

fn check_round_trip(source: &mut View) {
    if !fits_double(source.layout.dtype) || source.layout.dtype.lanes != 1 {
        return;
    }
    let mut double = View::new(source.layout.compact(DOUBLE, 0), &[]);
    assert_eq!(cast(source, &mut double), 0);
    let layout = source.layout.compact(source.layout.dtype, source.layout.flags);
    let mut back = View::new(layout, &[]);
    assert_eq!(cast(&mut double, &mut back), 0);
    let values = double.elements().into_iter().map(|bits| f64::from_bits(bits as u64));
    for ((old, new), value) in source.elements().into_iter().zip(back.elements()).zip(values) {
        assert!(old == new || value.is_nan(), "{old:#x} became {value}, {new:#x}");
    }
}

/// Between integers: two's complement, the low bits, or whether it is not 0; bool is 0 or 1.
fn by_bits(from: DLDataType, to: DLDataType, bits: u128) -> Option<u128> {
    if from == to || ![0, 1, 6].contains(&from.code) || ![0, 1, 6].contains(&to.code) {
        return None;
    }
    let unused = 128 - u32::from(from.bits);
    let number = match from.code {
        0 => (bits << unused) as i128 >> unused,
        1 => bits as i128,
        _ => i128::from(bits != 0),
    };
    let mask = u128::MAX >> (128 - u32::from(to.bits));
    Some(if to.code == 6 { u128::from(number != 0) } else { number as u128 & mask })
}

/// Rust's conversion of an element, where it has both types; as bits of the destination.
fn by_rust(from: DLDataType, to: DLDataType, bits: u128) -> Option<u128> {
    let low = bits as u64;
    let number = match (from.code, from.bits) {
        (2, 64) => f64::from_bits(low),
        (2, 32) => f32::from_bits(low as u32).into(),
        (0, 32) => f64::from(low as i32),
        (1, 32) => f64::from(low as u32),
        _ => return None,
    };
    if number.is_nan() && to.code == 2 {
        return None;
    }
    Some(match (to.code, to.bits) {
        (0, 8) => (number as i8 as u8).into(),
        (0, 16) => (number as i16 as u16).into(),
        (0, 32) => (number as i32 as u32).into(),
        (0, 64) => (number as i64 as u64).into(),
        (1, 8) => (number as u8).into(),
        (1, 16) => (number as u16).into(),
        (1, 32) => (number as u32).into(),
        (1, 64) => (number as u64).into(),
        (2, 32) => (number as f32).to_bits().into(),
        (2, 64) => number.to_bits().into(),
        (6, 8) => u128::from(number != 0.0),
        _ => return None,
    })
}

fn check_rust(source: &View, result: &View) {
    let (from, to) = (source.layout.dtype, result.layout.dtype);
    if from.lanes != 1 {
        return;
    }
    for (old, new) in source.elements().into_iter().zip(result.elements()) {
        let expected = by_bits(from, to, old).or_else(|| by_rust(from, to, old));
        assert!(expected.is_none_or(|expected| expected == new), "{old:#x} became {new:#x}");
    }
}

/// Without vector instructions, the same.
fn check_portable(source: &mut View, result: &View) {
    let mut again = View::new(result.layout.compact(result.layout.dtype, result.layout.flags), &[]);
    let level = cpu::level();
    cpu::set_level(cpu::Level::Portable);
    assert_eq!(cast(source, &mut again), 0);
    cpu::set_level(level);
    assert!(again.memory == result.memory, "another result without vectors");
}

/// Any dtype, a usual one half of the time.
fn dtype(reader: &mut Reader) -> DLDataType {
    let usual = [(2, 32), (2, 64), (2, 16), (4, 16), (0, 8), (1, 8), (0, 32), (0, 64), (6, 8)];
    match reader.of(&usual) {
        (code, bits) if reader.one_in(2) => DLDataType { code, bits, lanes: 1 },
        _ => reader.legal_dtype(),
    }
}

/// Bytes of elements: the input's, any, or many that are numbers near their limits.
fn fill(reader: &mut Reader) -> Vec<u8> {
    let how = reader.below(3);
    if how == 0 {
        return reader.bytes(64).to_vec();
    }
    let mut state = u32::from_le_bytes(reader.array()) | 1;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let [byte, kind, ..] = state.to_le_bytes();
        match kind % 8 {
            choice @ 0..5 if how == 2 => [0, 0xFF, 0x7F, 0x80, 0xF0][usize::from(choice)],
            _ => byte,
        }
    };
    (0..2048).map(|_| byte()).collect()
}

/// Builds the case of an input, and checks it.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let (from, mut to) = (dtype(&mut reader), dtype(&mut reader));
    if !reader.one_in(16) {
        to.lanes = from.lanes;
    }
    let shape = shape(&mut reader, NUMEL_MOST);
    let flags = [0, 1].map(|_| if reader.one_in(3) { PADDED } else { 0 });
    let strides = crate::layout::compact(&shape);
    let layout = Layout { dtype: from, flags: flags[0], shape, strides };
    let result = layout.compact(to, flags[1]);
    let mut source = View::new(layout, &fill(&mut reader));
    let mut result = View::new(result, &[]);
    let status = cast(&mut source, &mut result);
    if status != 0 {
        let lanes = status == DLRS_DTYPE_MISMATCH as i32 && from.lanes != to.lanes;
        let opaque = from.code == 3 || to.code == 3;
        assert!(lanes || opaque, "status {status}");
        assert!(result.memory.iter().all(|&byte| byte == 0), "written by a failure");
        return;
    }
    check_strided(&mut reader, &source, &result);
    check_round_trip(&mut source);
    check_rust(&source, &result);
    check_portable(&mut source, &result);
}

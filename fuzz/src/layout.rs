//! Layouts that are small enough to compare every bit.

use dlpack_rs::abi::*;

use crate::Reader;

/// Shape, strides and dtype of a tensor, in separate arrays.
pub struct Layout {
    /// The element type.
    pub dtype: DLDataType,
    /// Only "padded" matters here.
    pub flags: u64,
    /// Extents.
    pub shape: Box<[i64]>,
    /// In elements.
    pub strides: Box<[i64]>,
}

impl Layout {
    /// Bits from one element to the next, all of which are the element's.
    pub fn slot_bits(&self) -> i64 {
        let bits = i64::from(self.dtype.bits) * i64::from(self.dtype.lanes);
        match self.flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED {
            0 => bits,
            _ => (bits + 7) / 8 * 8,
        }
    }

    /// Elements.
    pub fn numel(&self) -> i64 {
        self.shape.iter().product()
    }

    /// Calls `visit` with the first bit of every element, in row-major order, counted from that of
    /// the first element.
    pub fn each(&self, mut visit: impl FnMut(i64)) {
        for mut place in 0..self.numel() {
            let mut bit = 0;
            for (n, stride) in self.shape.iter().zip(&self.strides).rev() {
                bit += place % n * stride * self.slot_bits();
                place /= n;
            }
            visit(bit);
        }
    }

    /// The first bit of every element, the first of which is at byte `at`.
    pub fn bits(&self, at: usize) -> Vec<usize> {
        let mut bits = Vec::new();
        self.each(|bit| bits.push((bit + 8 * at as i64) as usize));
        bits
    }

    /// Bytes used before the first element's start, and from there on.
    pub fn extent(&self) -> (usize, usize) {
        let (mut low, mut high) = (0, 0);
        let mut used = false;
        self.each(|bit| {
            used = true;
            low = low.min(bit);
            high = high.max(bit + self.slot_bits());
        });
        if used { ((7 - low) as usize / 8, (high + 7) as usize / 8) } else { (0, 0) }
    }

    /// The tensor whose first element is at `first`, with `byte_offset` as given.
    pub fn tensor(&self, first: *mut u8, byte_offset: usize, device: DLDevice) -> DLTensor {
        DLTensor {
            data: first.wrapping_sub(byte_offset).cast(),
            device,
            ndim: self.shape.len() as i32,
            dtype: self.dtype,
            shape: self.shape.as_ptr().cast_mut(),
            strides: self.strides.as_ptr().cast_mut(),
            byte_offset: byte_offset as u64,
        }
    }

    /// The same elements without gaps.
    pub fn compact(&self, dtype: DLDataType, flags: u64) -> Layout {
        Layout { dtype, flags, shape: self.shape.clone(), strides: compact(&self.shape) }
    }
}

/// Strides without gaps, the last dimension innermost.
pub fn compact(shape: &[i64]) -> Box<[i64]> {
    let (mut strides, mut step) = (vec![0; shape.len()], 1);
    for (stride, n) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step *= n.max(&1);
    }
    strides.into()
}

/// Extents of at most `most` elements, sometimes none.
pub fn shape(reader: &mut Reader, most: i64) -> Box<[i64]> {
    const EXTENTS: [i64; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 31, 33, 64, 65, 130];
    let mut total = 1;
    let mut extents = Vec::new();
    let dims = reader.byte();
    if dims >= 224 && most >= 300 {
        // A few rows of very many elements, or many of a few: enough for lookup tables.
        let few = 2 + reader.below(8) as i64;
        let many = 2048 / few + 1 + reader.below(64) as i64;
        return if reader.one_in(2) { [few, many].into() } else { [many, few].into() };
    }
    for _ in 0..dims % 7 {
        let n = if reader.one_in(32) { 0 } else { reader.of(&EXTENTS) };
        if total * n <= most {
            extents.push(n);
            total *= n.max(1);
        }
    }
    extents.into()
}

/// Strides: in any order of the dimensions, with gaps and both signs; anything small; or any with
/// distinct elements.
pub fn strides(reader: &mut Reader, shape: &[i64], far: i64) -> Box<[i64]> {
    let mut strides = compact(shape);
    let kind = reader.byte();
    let how = kind % 4;
    if how == 3 && kind >= 128 {
        return woven(reader, shape);
    } else if how == 3 {
        for stride in &mut strides {
            *stride = i64::from(reader.byte() as i8) % (far + 1);
        }
    } else if how > 0 {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        for place in (1..order.len()).rev() {
            order.swap(place, reader.below(place + 1));
        }
        let mut step = 1;
        for dim in order {
            step += if how == 2 { reader.below(4) as i64 } else { 0 };
            strides[dim] = if reader.one_in(3) { -step } else { step };
            step *= shape[dim].max(1);
        }
    }
    strides
}

/// Strides with distinct elements, and no other property: each dimension is placed wherever all of
/// it fits, among the elements of those before it, or beyond them.
fn woven(reader: &mut Reader, shape: &[i64]) -> Box<[i64]> {
    let (mut strides, mut starts, mut span) = (compact(shape), vec![0], 1);
    let mut order: Vec<usize> = (0..shape.len()).collect();
    for place in (1..order.len()).rev() {
        order.swap(place, reader.below(place + 1));
    }
    for dim in order {
        let n = shape[dim].max(1);
        let reach = span + reader.below(4) as i64;
        let by = 1 + i64::from(u16::from_le_bytes(reader.array())) % reach;
        let by = if distinct(&starts, n, by) { by } else { reach };
        strides[dim] = if reader.one_in(3) { -by } else { by };
        starts = (0..n).flat_map(|k| starts.iter().map(move |start| start + k * by)).collect();
        span += (n - 1) * by;
    }
    strides
}

/// Whether elements at these offsets, and their `n - 1` repetitions at distance `by`, are distinct.
fn distinct(starts: &[i64], n: i64, by: i64) -> bool {
    let mut places: Vec<i64> =
        (0..n).flat_map(|k| starts.iter().map(move |start| start + k * by)).collect();
    places.sort_unstable();
    places.windows(2).all(|pair| pair[0] != pair[1])
}

/// The bits that the elements cover, counted from `before` bytes before the first; `None` if two
/// elements share one.
pub fn covered(layout: &Layout, before: usize, nbytes: usize) -> (Vec<u8>, bool) {
    let (mut map, mut unique) = (vec![0u8; nbytes], true);
    layout.each(|start| {
        for bit in start..start + layout.slot_bits() {
            let at = (bit + 8 * before as i64) as usize;
            unique &= map[at / 8] >> (at % 8) & 1 == 0;
            map[at / 8] |= 1 << (at % 8);
        }
    });
    (map, unique)
}

/// `n` bits from `at` on, copied one by one.
pub fn copy_bits(from: &[u8], from_bit: usize, to: &mut [u8], to_bit: usize, n: usize) {
    if from_bit.is_multiple_of(8) && to_bit.is_multiple_of(8) && n.is_multiple_of(8) {
        to[to_bit / 8..][..n / 8].copy_from_slice(&from[from_bit / 8..][..n / 8]);
        return;
    }
    for i in 0..n {
        let (s, d) = (from_bit + i, to_bit + i);
        let bit = from[s / 8] >> (s % 8) & 1;
        to[d / 8] = to[d / 8] & !(1 << (d % 8)) | bit << (d % 8);
    }
}

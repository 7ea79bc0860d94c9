//! Strided numbers to and from dense bytes. Offsets and strides are in bits.

use super::pipeline::Tile;
use crate::device::plan::MAX_NDIM;

/// Maximum dimensions: those of a tensor, and one for the numbers in an element.
pub const DIMS: usize = MAX_NDIM + 1;

/// The addresses of one tensor's numbers.
#[derive(Clone, Copy)]
pub struct Side {
    /// The byte in which number (0, …, 0) starts.
    pub first: *mut u8,
    /// Bits that are read or written per number: fewer than 8, or whole bytes of 1, 2, 4, 8.
    pub bits: u32,
    /// Bits from number to number along each dimension.
    pub strides: [i64; DIMS],
}

/// The dimensions of an iteration, outermost first; at least one. Every extent is 1 or more.
#[derive(Clone, Copy)]
pub struct Dims {
    /// Number of dimensions in use.
    pub ndim: usize,
    /// Extents.
    pub shape: [i64; DIMS],
}

/// A position in an iteration over one side.
pub struct Cursor<'a> {
    side: &'a Side,
    shape: &'a [i64],
    at: i64,
    index: [i64; DIMS],
}

/// Neighbours along the innermost dimension.
struct Row {
    at: i64,
    stride: i64,
    n: usize,
}

impl<'a> Cursor<'a> {
    /// At number (0, …, 0).
    pub fn new(side: &'a Side, dims: &'a Dims) -> Self {
        let shape = dims.shape.get(..dims.ndim).unwrap_or(&[]);
        Cursor { side, shape, at: 0, index: [0; DIMS] }
    }

    /// Numbers left in this row, and their stride.
    fn rest(&self) -> (i64, i64) {
        let inner = self.shape.len().wrapping_sub(1);
        match (self.shape.last(), self.index.get(inner), self.side.strides.get(inner)) {
            (Some(&extent), Some(&index), Some(&stride)) => (extent - index, stride),
            _ => (1, 0),
        }
    }

    /// Returns the next numbers of one row, at most `most`, and advances behind them.
    #[inline(never)]
    fn row(&mut self, most: usize) -> Row {
        let (left, stride) = self.rest();
        let n = left.min(most as i64);
        let row = Row { at: self.at, stride, n: n as usize };
        self.step(n);
        row
    }

    /// Advances by `n` numbers of this row.
    fn step(&mut self, n: i64) {
        let mut n = n;
        let mut dim = self.shape.len();
        while dim > 0 {
            dim -= 1;
            let at = (self.shape.get(dim), self.side.strides.get(dim), self.index.get_mut(dim));
            let (Some(&extent), Some(&stride), Some(index)) = at else { return };
            *index += n;
            self.at = self.at.wrapping_add(stride.wrapping_mul(n));
            if *index < extent {
                return;
            }
            self.at = self.at.wrapping_sub(stride.wrapping_mul(*index));
            *index = 0;
            n = 1;
        }
    }

    /// How many of the next numbers are contiguous in whole bytes.
    pub fn run(&self) -> usize {
        let (left, stride) = self.rest();
        let dense = self.side.bits >= 8 && stride == i64::from(self.side.bits);
        if dense { left as usize } else { 0 }
    }

    /// The next `n` numbers, if contiguous in whole bytes.
    #[inline(never)]
    pub fn dense(&mut self, n: usize) -> Option<*mut u8> {
        if self.run() < n {
            return None;
        }
        let first = self.side.first.wrapping_offset((self.at >> 3) as isize);
        self.step(n as i64);
        Some(first)
    }

    /// The next `n` numbers in whole bytes: in place, or gathered in `tile`.
    ///
    /// # Safety
    /// The numbers are readable, and no more than a tile.
    #[inline(never)]
    pub unsafe fn tile(&mut self, tile: &mut Tile, n: usize) -> *const u8 {
        let dense = self.dense(n);
        dense.unwrap_or_else(|| {
            let to = tile.0.as_mut_ptr();
            // SAFETY: guaranteed by the caller.
            unsafe { self.gather(to, n) };
            to
        })
    }

    /// Reads the next `n` numbers into whole bytes.
    ///
    /// # Safety
    /// The numbers are readable; `to` has room for them.
    unsafe fn gather(&mut self, mut to: *mut u8, n: usize) {
        let (bits, mut left) = (self.side.bits, n);
        let size = bits.div_ceil(8) as i64;
        while left > 0 {
            let row = self.row(left);
            let from = self.side.first;
            // SAFETY: the row's numbers are those of the caller.
            unsafe {
                match bits {
                    0..8 => unpack(from, &row, bits, to),
                    _ => strided(from, row.at, row.stride, to, size, row.n, size),
                }
            }
            to = to.wrapping_add(row.n * size as usize);
            left -= row.n.max(1);
        }
    }

    /// Writes the next `n` numbers from whole bytes.
    ///
    /// # Safety
    /// The numbers are writable; `from` holds them.
    pub unsafe fn scatter(&mut self, mut from: *mut u8, n: usize, merge: bool) {
        let (bits, mut left) = (self.side.bits, n);
        let size = bits.div_ceil(8) as i64;
        while left > 0 {
            let row = self.row(left);
            let to = self.side.first;
            // SAFETY: the row's numbers are those of the caller.
            unsafe {
                match bits {
                    _ if merge => join(from, &row, to),
                    0..8 => pack(from, &row, bits, to),
                    _ => {
                        let to = to.wrapping_offset((row.at >> 3) as isize);
                        strided(from, 0, size * 8, to, row.stride >> 3, row.n, size)
                    }
                }
            }
            from = from.wrapping_add(row.n * size as usize);
            left -= row.n.max(1);
        }
    }
}

/// # Safety
/// `n` numbers of `size` bytes are readable and writable.
unsafe fn strided(
    from: *mut u8,
    at: i64,
    stride: i64,
    to: *mut u8,
    to_stride: i64,
    n: usize,
    size: i64,
) {
    let from = from.wrapping_offset((at >> 3) as isize);
    let (by_from, by_to) = ((stride >> 3) as isize, to_stride as isize);
    // SAFETY: guaranteed by the caller.
    unsafe {
        match size {
            1 => moved::<u8>(from, by_from, to, by_to, n),
            2 => moved::<u16>(from, by_from, to, by_to, n),
            4 => moved::<u32>(from, by_from, to, by_to, n),
            _ => moved::<u64>(from, by_from, to, by_to, n),
        }
    }
}

/// # Safety
/// As [`strided`].
unsafe fn moved<T: Copy>(from: *mut u8, by_from: isize, to: *mut u8, by_to: isize, n: usize) {
    for i in 0..n as isize {
        let from = from.wrapping_offset(i.wrapping_mul(by_from)).cast::<T>();
        let to = to.wrapping_offset(i.wrapping_mul(by_to)).cast::<T>();
        // SAFETY: guaranteed by the caller.
        unsafe { to.write_unaligned(from.read_unaligned()) };
    }
}

/// # Safety
/// The row is readable, `to` has a byte for every number.
unsafe fn unpack(from: *mut u8, row: &Row, bits: u32, to: *mut u8) {
    let (mut at, mask) = (row.at, (1u32 << bits) - 1);
    for i in 0..row.n {
        let byte = from.wrapping_offset((at >> 3) as isize);
        let shift = at as u32 & 7;
        // SAFETY: the second byte is read only if the number extends into it.
        unsafe {
            let high = if shift + bits > 8 { u32::from(byte.wrapping_add(1).read()) } else { 0 };
            let both = u32::from(byte.read()) | high << 8;
            to.add(i).write((both >> shift & mask) as u8);
        }
        at = at.wrapping_add(row.stride);
    }
}

/// # Safety
/// The row is writable, `from` has a byte for every number.
unsafe fn pack(from: *mut u8, row: &Row, bits: u32, to: *mut u8) {
    let (mut at, mask) = (row.at, (1u32 << bits) - 1);
    for i in 0..row.n {
        let byte = to.wrapping_offset((at >> 3) as isize);
        let shift = at as u32 & 7;
        // SAFETY: the second byte is accessed only if the number extends into it.
        unsafe {
            let value = (u32::from(from.add(i).read()) & mask) << shift;
            let keep = !(mask << shift);
            byte.write(byte.read() & keep as u8 | value as u8);
            if shift + bits > 8 {
                let byte = byte.wrapping_add(1);
                byte.write(byte.read() & (keep >> 8) as u8 | (value >> 8) as u8);
            }
        }
        at = at.wrapping_add(row.stride);
    }
}

/// # Safety
/// As [`pack`], for whole bytes.
unsafe fn join(from: *mut u8, row: &Row, to: *mut u8) {
    let mut at = row.at >> 3;
    for i in 0..row.n {
        let byte = to.wrapping_offset(at as isize);
        // SAFETY: guaranteed by the caller.
        unsafe { byte.write(byte.read() | from.add(i).read()) };
        at = at.wrapping_add(row.stride >> 3);
    }
}

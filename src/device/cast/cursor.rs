//! Strided numbers to and from dense bytes. Offsets and strides are in bits.

use super::Cast;
use super::pipeline::{Kind, Tile};
use crate::device::plan::{Dim, MAX_NDIM, Plan};

/// How the numbers of one side are stored.
#[derive(Clone, Copy)]
pub struct Side {
    /// Their type.
    pub kind: Kind,
    /// Bits that are read or written per number: fewer than 8, or whole bytes of 1, 2, 4, 8.
    pub bits: u32,
}

/// A position in an iteration over the numbers of one side.
pub struct Cursor<'a> {
    plan: &'a Plan,
    in_dst: bool,
    first: *mut u8,
    bits: u32,
    at: i64,
    index: [i64; MAX_NDIM],
}

/// Neighbours along the innermost dimension.
struct Row {
    at: i64,
    stride: i64,
    n: usize,
}

impl<'a> Cursor<'a> {
    /// At the first number of the source.
    pub fn of_src(cast: &'a Cast) -> Self {
        let first = cast.plan.src.cast_mut(); // only read
        let (plan, bits) = (&cast.plan, cast.src.bits);
        Cursor { plan, in_dst: false, first, bits, at: 0, index: [0; MAX_NDIM] }
    }

    /// At the first number of the destination.
    pub fn of_dst(cast: &'a Cast) -> Self {
        let (plan, first, bits) = (&cast.plan, cast.plan.dst, cast.dst.bits);
        Cursor { plan, in_dst: true, first, bits, at: 0, index: [0; MAX_NDIM] }
    }

    /// Numbers left in this row, and their stride.
    fn rest(&self) -> (i64, i64) {
        let Some(&Dim { n, src, dst }) = self.plan.dims.last() else { return (1, 0) };
        let index = self.index.get(self.plan.ndim() - 1);
        (n - index.map_or(0, |&index| index), if self.in_dst { dst } else { src })
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
        let (mut n, in_dst) = (n, self.in_dst);
        let dims = &*self.plan.dims;
        let indices = self.index.get_mut(..dims.len()).unwrap_or_default();
        for (dim, index) in dims.iter().zip(indices).rev() {
            let stride = if in_dst { dim.dst } else { dim.src };
            *index += n;
            self.at = self.at.wrapping_add(stride.wrapping_mul(n));
            if *index < dim.n {
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
        let dense = self.bits >= 8 && stride == i64::from(self.bits);
        if dense { left as usize } else { 0 }
    }

    /// The next `n` numbers, if contiguous in whole bytes.
    #[inline(never)]
    pub fn dense(&mut self, n: usize) -> Option<*mut u8> {
        if self.run() < n {
            return None;
        }
        let first = self.first.wrapping_offset((self.at >> 3) as isize);
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
        let (bits, mut left) = (self.bits, n);
        let size = bits.div_ceil(8) as i64;
        while left > 0 {
            let row = self.row(left);
            let from = self.first;
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
        let (bits, mut left) = (self.bits, n);
        let size = bits.div_ceil(8) as i64;
        while left > 0 {
            let row = self.row(left);
            let to = self.first;
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

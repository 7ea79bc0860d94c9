//! Strided numbers to and from dense bytes. Offsets and strides are in bits.

use core::mem::MaybeUninit;

use dlpack_kernels::{Bit, Bits, Packed, Runs};

use super::pipeline::{Kind, Tile};
use crate::cpu;
use crate::plan::{Dim, Item, MAX_NDIM, Plan};

/// How the numbers of one side are stored.
#[derive(Clone, Copy)]
pub struct Side {
    /// Their type.
    pub kind: Kind,
    /// Bits that are read or written per number: fewer than 8, or whole bytes of 1, 2, 4, 8.
    pub bits: u32,
}

/// A conversion of numbers.
#[derive(Clone, Copy)]
pub struct Cast {
    /// The source.
    pub src: Side,
    /// The destination.
    pub dst: Side,
    /// Where they are: strides in bits.
    pub plan: Plan,
    /// For bytes: results are ORed into the destination.
    pub merge: bool,
    /// Values that are too large become the largest finite value.
    pub saturate: bool,
}

impl Cast {
    /// A conversion of one number; with dimensions, of more. Its item has no width, since numbers
    /// that are neighbours on both sides stay numbers.
    pub fn new((from, src): (*const u8, Side), (to, dst): (*mut u8, Side)) -> Cast {
        let plan = Plan::new(from, to, Item::Bits { width: 0, dst_slot: dst.bits as usize });
        Cast { src, dst, plan, merge: false, saturate: false }
    }
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

/// Bytes behind a packed row that its kernels may read.
const BEHIND: usize = 64;

/// What is done with numbers in whole bytes.
enum Way {
    /// They are read.
    Gather,
    /// They are written.
    Scatter,
    /// They are ORed into bytes.
    Merge,
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
            // SAFETY: the next `n` numbers are readable, and the tile has room for as many.
            unsafe { self.rows(to, n, Way::Gather) };
            to
        })
    }

    /// Writes the next `n` numbers from whole bytes.
    ///
    /// # Safety
    /// The numbers are writable; `from` holds them.
    pub unsafe fn scatter(&mut self, from: *mut u8, n: usize, merge: bool) {
        // SAFETY: the next `n` numbers are writable, and `from` holds as many.
        unsafe { self.rows(from, n, if merge { Way::Merge } else { Way::Scatter }) }
    }

    /// Moves the next `n` numbers, row by row, to or from whole bytes in `dense`.
    ///
    /// # Safety
    /// As [`Cursor::tile`] and [`Cursor::scatter`].
    #[inline(never)]
    unsafe fn rows(&mut self, mut dense: *mut u8, mut n: usize, way: Way) {
        let width = self.bits as usize;
        let nbytes = width.div_ceil(8);
        while n > 0 {
            let (left, by) = self.rest();
            let row = left.min(n as i64);
            let (own, tile) = (Bit { base: self.first, bit: self.at }, Bit { base: dense, bit: 0 });
            self.step(row);
            let (src, dst, by_src, by_dst, slot) = match way {
                Way::Gather => (own, tile, by, 8 * nbytes as i64, 8 * nbytes),
                _ => (tile, own, 8 * nbytes as i64, by, width),
            };
            let row = row as usize;
            let runs = Runs { slot, ..Runs::new((src, by_src), (dst, by_dst), row, width) };
            // SAFETY: the row's numbers are readable, or writable; `dense` holds, or has room for,
            // as many.
            unsafe {
                match (&way, nbytes) {
                    (Way::Merge, _) => each::<1>(&runs, |from, to| [from[0] | to[0]]),
                    _ if width < 8 => packed(&runs, left as usize - row),
                    (_, 1) => each::<1>(&runs, |from, _| from),
                    (_, 2) => each::<2>(&runs, |from, _| from),
                    (_, 4) => each::<4>(&runs, |from, _| from),
                    _ => each::<8>(&runs, |from, _| from),
                }
            }
            dense = dense.wrapping_add(row * nbytes);
            n -= row.max(1);
        }
    }
}

/// Writes what a rule makes of every number and of the one that it replaces.
///
/// # Safety
/// They are `N` bytes, readable and writable.
#[inline(always)]
unsafe fn each<const N: usize>(runs: &Runs, rule: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
    let (mut from, mut to) = (runs.src.byte().cast::<[u8; N]>(), runs.dst.byte().cast());
    let (by_src, by_dst) = ((runs.by_src >> 3) as isize, (runs.by_dst >> 3) as isize);
    for _ in 0..runs.n {
        // SAFETY: `N` bytes are readable at `from` and writable at `to`, of any alignment: they are
        // arrays.
        unsafe { *to = rule(*from, *to) };
        (from, to) = (from.wrapping_byte_offset(by_src), to.wrapping_byte_offset(by_dst));
    }
}

/// Moves numbers of fewer than 8 bits from a row to a tile, or from a tile to a row. The row has
/// `left` more numbers.
///
/// # Safety
/// The row's numbers are readable or writable, and the tile has room for them.
unsafe fn packed(runs: &Runs, left: usize) {
    let &Runs { src, dst, n, width, .. } = runs;
    let all = n * width;
    let row = Packed {
        packed: src,
        by_row: 0,
        bytes: dst.base,
        field: width,
        width,
        n,
        rows: 1,
        ahead: 0,
    };
    let gathers = runs.slot != width;
    if gathers && (runs.by_src != width as i64 || left * width < 8 * BEHIND) {
        for i in 0..n {
            let at = src.by((i as i64).wrapping_mul(runs.by_src));
            let (byte, shift) = (at.byte(), (at.bit & 7) as usize);
            // SAFETY: the second byte is read only if the number extends into it.
            unsafe {
                let high = if shift + width > 8 { u32::from(*byte.add(1)) } else { 0 };
                let both = u32::from(*byte) | high << 8;
                *dst.base.add(i) = (both >> shift & ((1 << width) - 1)) as u8;
            }
        }
        return;
    }
    // The packed row, for which a tile has room, and the bytes behind it.
    let mut buffer = MaybeUninit::<Tile>::uninit();
    let between = Bit { base: buffer.as_mut_ptr().cast(), bit: 0 };
    let bits = if gathers {
        Bits::Unpack(row)
    } else if runs.by_dst == width as i64 {
        let row = Packed { packed: between, bytes: src.base, ..row };
        Bits::Pack(row, Runs { src: between, n: 1, width: all, slot: all, ..*runs })
    } else {
        Bits::Copy(*runs)
    };
    // SAFETY: the row's numbers are readable or writable, the tile has room for `n`. Bytes behind a
    // row are other numbers of it, or a tile's.
    unsafe { cpu::bits(&bits) }
}

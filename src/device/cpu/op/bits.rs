//! Items that are not whole bytes. Elements of 1 to 8 bits go through bytes, block by block: runs
//! of the source are unpacked, the bytes are copied by whichever op suits them, and packed to runs
//! of the destination. Wider items are copied as runs of bits.
//!
//! In transposes of elements of 4 bits, the elements of two source rows that become one byte of the
//! destination are joined at once, so that what is turned is already packed.
use core::mem::MaybeUninit;

use dlpack_kernels::{Bit, Bits, Face, How, Packed, Runs, Side as Loops, Space};

use super::super::level::kernels;
use super::super::policy::Reach;
use crate::array::Array;
use crate::device::nest::{Nest, only};
use crate::device::plan::{Dim, Item, MAX_NDIM, Plan};

/// Elements of a block, which are bytes in the first-level cache, unpacked and turned.
const BLOCK: usize = 8192;
/// Elements of a block's rows on either side, where the two are dense in different loops: a cache
/// line of elements of 4 bits in the destination.
const ROW: [usize; 2] = [64, 128];
/// Elements of both sides from which pairs of rows of 4 bits are turned as bytes.
const PAIRS_LEAST: i64 = 32;
/// Elements of a side of a block of pairs: a block that is less than the least along the other one
/// is not for pairs, and must have room.
const PAIRS_MOST: usize = 256;
const _: () = assert!(PAIRS_LEAST as usize * PAIRS_MOST <= BLOCK);

/// Carries out a simplified plan of bits; `bytes` does so with one of bytes in the caches.
///
/// # Safety
/// As [`super::super::copy`].
#[inline(never)]
pub(in super::super) unsafe fn copy(nest: &Nest, reach: Reach, bytes: unsafe fn(&Nest)) {
    let Item::Bits { width, dst_slot } = nest.item else { return };
    let slot = dst_slot.max(width);
    // SAFETY: the caller's promise.
    unsafe {
        if nest.is_empty() || !(1..=8).contains(&width) {
            return runs(nest, width, slot);
        }
        Blocks::new(nest, width, slot, reach.prefetch).copy(bytes);
    }
}

fn source(nest: &Nest) -> Bit {
    Bit { base: nest.src.cast_mut(), bit: nest.src_bit }
}

fn destination(nest: &Nest) -> Bit {
    Bit { base: nest.dst, bit: nest.dst_bit }
}

/// Item by item.
unsafe fn runs(nest: &Nest, width: usize, slot: usize) {
    let last = nest.len().wrapping_sub(1);
    let Dim { n, src: by_src, dst: by_dst } = nest.dim(last);
    nest.walk(only(last), &mut |src, dst| {
        let (src, dst) = (source(nest).by(src), destination(nest).by(dst));
        let runs = Runs { src, dst, n: n as usize, by_src, by_dst, width, slot };
        // SAFETY: some of the caller's items.
        unsafe { (kernels().bits)(&Bits::Copy(&runs)) }
    });
}

/// A loop and its part in a block.
#[derive(Clone, Copy)]
struct Axis {
    /// The whole loop.
    dim: Dim,
    /// Extent in a block, in the first one, and in this one, which begins at turn `at`.
    most: i64,
    first: i64,
    n: i64,
    at: i64,
    /// Bytes from one element of the block to the next, as it is unpacked and as it is packed.
    bytes: [i64; 2],
}

impl Axis {
    /// Bits from one element to the next on a side, forwards.
    fn stride(&self, side: usize) -> i64 {
        if side == 0 { self.dim.src.wrapping_abs() } else { self.dim.dst }
    }

    /// Goes to a part of the loop, of an even number of turns if there are pairs; true if it is as
    /// long as the one before.
    fn go(&mut self, at: i64, pairs: bool) -> bool {
        let n = if at == 0 { self.first } else { self.most.min(self.dim.n - at) };
        let n = if pairs && n > 1 { n & !1 } else { n };
        let same = n == self.n;
        (self.at, self.n) = (at, n);
        same
    }
}

/// The rows of one side of a block: `n` elements that follow one another in the side's memory and
/// in the block's, `by` bits apart; and the loops of rows, in bits and in bytes.
struct Side {
    n: usize,
    by: i64,
    rows: Plan,
}

struct Blocks<'a> {
    nest: &'a Nest<'a>,
    axes: Array<Axis, MAX_NDIM>,
    width: usize,
    slot: usize,
    /// The loop in which the source is nearest to dense, and the innermost one.
    near: usize,
    last: usize,
    prefetch: bool,
    /// Whether it is a transpose of elements of 4 bits.
    pairs: bool,
}

impl<'a> Blocks<'a> {
    fn new(nest: &'a Nest<'a>, width: usize, slot: usize, prefetch: bool) -> Blocks<'a> {
        let mut axes = Array::new();
        for i in 0..nest.len() {
            axes.push(Axis { dim: nest.dim(i), most: 1, first: 1, n: 0, at: 0, bytes: [0; 2] });
        }
        let last = nest.len() - 1;
        let step = |&i: &usize| nest.dim(i).src.unsigned_abs();
        let near = (0..nest.len()).rev().filter(|i| step(i) > 0).min_by_key(step).unwrap_or(last);
        let (row, column) = (nest.dim(last), nest.dim(near));
        let pairs = near != last
            && (width, slot, row.dst, column.src) == (4, 4, 4, 4)
            && row.n.min(column.n) >= PAIRS_LEAST;
        let mut blocks = Blocks { nest, axes, width, slot, near, last, prefetch, pairs };
        if near != last {
            blocks.grow(last, ROW[1]);
            blocks.grow(near, ROW[usize::from(pairs)]);
        }
        // Whatever still fits: of these loops, and then of those around them.
        let most = if pairs { PAIRS_MOST } else { BLOCK };
        blocks.grow(last, most);
        blocks.grow(near, most);
        (0..if pairs { 0 } else { nest.len() }).rev().for_each(|i| blocks.grow(i, BLOCK));
        // Rows that begin within a line of the destination end with it.
        let before = 8 * (nest.dst as usize % 64) as i64 + nest.dst_bit;
        let left = before.wrapping_neg() & 511;
        for axis in blocks.axes.iter_mut() {
            axis.first = axis.most;
        }
        if let Some(axis) = blocks.axes.last_mut() {
            let head = left.checked_div(slot as i64).unwrap_or(0);
            if axis.most < axis.dim.n && head > 0 && head * slot as i64 == left {
                axis.first = head.min(axis.most);
            }
        }
        blocks.axes.iter_mut().for_each(|axis| _ = axis.go(0, pairs));
        blocks
    }

    /// Takes up to `most` turns of a loop into the blocks, as far as there is room; whole lines of
    /// elements, if not all.
    fn grow(&mut self, i: usize, most: usize) {
        let all = self.axes.iter().map(|axis| axis.most as usize).product::<usize>();
        let Some(axis) = self.axes.get_mut(i) else { return };
        let others = all.checked_div(axis.most as usize).unwrap_or(all);
        // A byte of a pair holds two elements.
        let block = if self.pairs { 2 * BLOCK } else { BLOCK };
        let room = block.checked_div(others).unwrap_or(1).min(most);
        let room = if room > ROW[1] { room & !(ROW[1] - 1) } else { room };
        axis.most = axis.dim.n.min(room.max(1) as i64).max(axis.most);
    }

    /// Goes to the next block, along the source's runs first, then the destination's; whether it is
    /// shaped as the one before. `None`: that was the last one.
    fn next(&mut self) -> Option<bool> {
        let (near, last) = (self.near, self.last);
        let others = (0..last).rev().filter(|&i| i != near);
        let order = [near].into_iter().chain((near != last).then_some(last)).chain(others);
        let mut same = true;
        for i in order {
            let axis = self.axes.get_mut(i)?;
            let at = axis.at + axis.n;
            if at < axis.dim.n {
                return Some(axis.go(at, self.pairs) && same);
            }
            same &= axis.go(0, self.pairs);
        }
        None
    }

    /// Arranges a block's elements as a side has them.
    fn side(&mut self, side: usize, dense: i64) -> Side {
        let axes = &mut *self.axes;
        axes.iter_mut().for_each(|axis| axis.bytes[side] = 0);
        let strides = || axes.iter().filter(|axis| axis.n > 1).map(|axis| axis.stride(side));
        let by = strides().filter(|&by| by > 0).min().unwrap_or(dense);
        let mut rows = Plan::new(core::ptr::null(), core::ptr::null_mut(), Item::Bytes(1));
        let mut n = 1;
        let open = |axis: &Axis| axis.n > 1 && axis.bytes[side] == 0 && axis.stride(side) > 0;
        while let Some(axis) = axes
            .iter_mut()
            .rev()
            .find(|axis| open(axis) && Some(axis.stride(side)) == by.checked_mul(n))
        {
            axis.bytes[side] = n;
            n *= axis.n;
        }
        let mut all = axes.iter().filter(|axis| open(axis)).fold(n, |all, axis| all * axis.n);
        for axis in axes.iter_mut().filter(|axis| open(axis)) {
            all = all.checked_div(axis.n).unwrap_or(all);
            axis.bytes[side] = all;
            rows.push(Dim { n: axis.n, src: axis.stride(side), dst: all });
        }
        Side { n: n as usize, by, rows }
    }

    /// # Safety
    /// As [`copy`].
    unsafe fn copy(&mut self, bytes: unsafe fn(&Nest)) {
        #[repr(align(64))]
        struct Block([MaybeUninit<u8>; BLOCK + 64]);
        let [mut unpacked, mut turned] = [const { Block([MaybeUninit::uninit(); BLOCK + 64]) }; 2];
        let from: *mut u8 = unpacked.0.as_mut_ptr().cast();
        let to: *mut u8 = turned.0.as_mut_ptr().cast();
        loop {
            // SAFETY: both buffers have room for as many pairs as a block has.
            while unsafe { self.paired(from, to) } {
                if self.next().is_none() {
                    return;
                }
            }
            let (src, dst) = (self.side(0, self.width as i64), self.side(1, self.slot as i64));
            // Elements in between are copied as they come, backwards where the source runs so.
            let mut plan = Plan::new(from, to, Item::Bytes(1));
            let mut moves = false;
            for axis in self.axes.iter().filter(|axis| axis.n > 1) {
                let [mut src, dst] = axis.bytes;
                if axis.dim.src < 0 {
                    plan.src = plan.src.wrapping_offset((src * (axis.n - 1)) as isize);
                    src = -src;
                }
                moves |= src != dst;
                plan.push(Dim { n: axis.n, src, dst });
            }
            let all = plan.count() as usize;
            plan.simplify();
            let between = Nest::new(&plan);
            loop {
                let (mut src_at, mut dst_at) = (source(self.nest), destination(self.nest));
                for axis in self.axes.iter() {
                    let back = axis.dim.src < 0;
                    let turn = axis.at + if back { axis.n - 1 } else { 0 };
                    src_at = src_at.by(turn.wrapping_mul(axis.dim.src));
                    dst_at = dst_at.by(axis.at.wrapping_mul(axis.dim.dst));
                }
                // SAFETY: the block's elements are the caller's; they fill `all` bytes of both
                // buffers, behind which there is room.
                unsafe {
                    from.wrapping_add(all.min(BLOCK)).write_bytes(0, 8);
                    to.wrapping_add(all.min(BLOCK)).write_bytes(0, 8);
                    let ahead = self.ahead();
                    self.rows(&src, src_at, from, &mut |rows| Bits::Unpack(rows), ahead);
                    if moves {
                        bytes(&between);
                    }
                    let from = if moves { to } else { from };
                    self.rows(&dst, dst_at, from, &mut |rows| Bits::Pack(rows), 0);
                }
                match self.next() {
                    None => return,
                    Some(true) if !self.pairs => {}
                    Some(true) => break,
                    Some(false) => break,
                }
            }
        }
    }

    /// Transposes a block of elements of 4 bits: two of each other row's become a byte, bytes are
    /// turned, and are what the destination holds. False if the block is not for that.
    unsafe fn paired(&self, from: *mut u8, to: *mut u8) -> bool {
        let (Some(near), Some(last)) = (self.axes.get(self.near), self.axes.get(self.last)) else {
            return false;
        };
        let (n, rows) = (near.n as usize, last.n as usize);
        if !self.pairs || near.n.min(last.n) < PAIRS_LEAST || (n | rows) % 2 > 0 {
            return false;
        }
        let (mut at, mut dst) = (source(self.nest), destination(self.nest));
        for axis in self.axes.iter() {
            at = at.by(axis.at.wrapping_mul(axis.dim.src));
            dst = dst.by(axis.at.wrapping_mul(axis.dim.dst));
        }
        let (width, slot, by, by_row) = (4, 4, 4, last.dim.src);
        let (bytes, pitch, pairs, ahead) = (from, n, rows / 2, self.ahead());
        let packed = Packed { at, width, slot, by, by_row, bytes, pitch, n, rows: pairs, ahead };
        let bits = kernels().bits;
        // SAFETY: the block's elements are the caller's, which fill as many bytes of both buffers.
        unsafe {
            bits(&Bits::Pair(&packed));
            // The rows of the even columns, and of the odd ones.
            let columns = Loops::one(n / 2, rows as isize);
            let face = Face { src: from, dst: to, rows: Loops::one(pairs, n as isize), columns };
            let next = [n as isize / 2, pairs as isize];
            let how = How { stream: false, lines: 1, stage: false, faces: 2, next };
            let mut lists = MaybeUninit::uninit();
            (kernels().turn)(1, &face, &how, Space::near(&mut lists));
            let (src, width) = (Bit { base: to, bit: 0 }, 4 * rows);
            let (by_src, by_dst) = (width as i64, near.dim.dst);
            bits(&Bits::Copy(&Runs { src, dst, n, by_src, by_dst, width, slot: width }));
        }
        true
    }

    /// Unpacks or packs all rows of a side.
    unsafe fn rows(
        &self,
        side: &Side,
        at: Bit,
        bytes: *mut u8,
        what: &mut dyn for<'b> FnMut(&'b Packed) -> Bits<'b>,
        ahead: isize,
    ) {
        let &Blocks { width, slot, .. } = self;
        let nest = Nest::new(&side.rows);
        let last = nest.len().wrapping_sub(1);
        let row = nest.dim(last);
        nest.walk(only(last), &mut |bits, place| {
            let packed = Packed {
                at: at.by(bits),
                width,
                slot,
                by: side.by,
                by_row: row.src,
                bytes: bytes.wrapping_offset(place as isize),
                pitch: row.dst as usize,
                n: side.n,
                rows: row.n as usize,
                ahead,
            };
            // SAFETY: rows of the caller's block.
            unsafe { (kernels().bits)(&what(&packed)) }
        });
    }

    /// Bytes from this block's source to that of a block soon to come.
    fn ahead(&self) -> isize {
        let (Some(near), Some(last)) = (self.axes.get(self.near), self.axes.get(self.last)) else {
            return 0;
        };
        if !self.prefetch || self.near == self.last {
            return 0;
        }
        let bits = if near.at + 3 * near.most <= near.dim.n {
            (2 * near.most).wrapping_mul(near.dim.src)
        } else {
            last.n.wrapping_mul(last.dim.src).wrapping_sub(near.at.wrapping_mul(near.dim.src))
        };
        (bits >> 3) as isize
    }
}

//! Items that are not whole bytes. Elements of 1 to 8 bits go through bytes, block by block: runs
//! of the source are brought to whole bytes in a stage and unpacked, the bytes are copied by
//! whichever op suits them, packed into the stage, and brought to runs of the destination. Wider
//! items are copied as runs of bits.
use core::mem::MaybeUninit;

use dlpack_kernels::{Bit, Bits, LINE, Packed, Runs};

use super::super::level::kernels;
use super::super::policy::Reach;
use crate::array::Array;
use crate::device::nest::{Nest, only};
use crate::device::plan::{Dim, Item, MAX_NDIM, Plan};

/// Elements of a block, which are bytes in the first-level cache, unpacked and turned.
const BLOCK: usize = 16384;
/// Bytes behind them that the kernels may read and write.
const BEHIND: usize = 64;
/// Bits of a cache line.
const LINE_BITS: i64 = 8 * LINE as i64;

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
        Blocks::new(nest, width, slot, reach).copy(bytes);
        if reach.stream_scattered {
            (kernels().fence)();
        }
    }
}

/// Elements of `bits` bits that make whole cache lines.
fn line_of(bits: usize) -> usize {
    8 * LINE >> bits.trailing_zeros().min(9)
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
        let runs =
            Runs { src, dst, n: n as usize, by_src, by_dst, width, slot, stream: false, ahead: 0 };
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

    /// Goes to a part of the loop; true if it is as long as the one before.
    fn go(&mut self, at: i64) -> bool {
        let n = if at == 0 { self.first } else { self.most.min(self.dim.n - at) };
        let same = n == self.n;
        (self.at, self.n) = (at, n);
        same
    }
}

/// The rows of one side of a block: `n` elements that follow one another in the side's memory, `by`
/// bits apart, and in the block's; and the loops of rows, in bits and in bytes.
struct Side {
    n: usize,
    by: i64,
    rows: Plan,
}

/// The buffers of a block: bytes, and what waits for its turn.
#[derive(Clone, Copy)]
struct Space {
    bytes: *mut u8,
    stage: *mut u8,
}

struct Blocks<'a> {
    nest: &'a Nest<'a>,
    axes: Array<Axis, MAX_NDIM>,
    width: usize,
    slot: usize,
    /// The loop in which the source is nearest to dense, and the innermost one.
    near: usize,
    last: usize,
    reach: Reach,
}

impl<'a> Blocks<'a> {
    fn new(nest: &'a Nest<'a>, width: usize, slot: usize, reach: Reach) -> Blocks<'a> {
        let mut axes = Array::new();
        for i in 0..nest.len() {
            axes.push(Axis { dim: nest.dim(i), most: 1, first: 1, n: 0, at: 0, bytes: [0; 2] });
        }
        let last = nest.len() - 1;
        let step = |&i: &usize| nest.dim(i).src.unsigned_abs();
        let near = (0..nest.len()).rev().filter(|i| step(i) > 0).min_by_key(step).unwrap_or(last);
        let mut blocks = Blocks { nest, axes, width, slot, near, last, reach };
        let (row, column) = (line_of(slot), line_of(width));
        if near != last {
            // Whole lines of the destination, and of the source as many as fit.
            blocks.grow(last, row, row);
            blocks.grow(near, BLOCK, column);
        }
        // Whatever still fits: of this loop, and then of those around it.
        (0..nest.len()).rev().for_each(|i| blocks.grow(i, BLOCK, row));
        // Rows that begin within a line of the destination end with one.
        let before = 8 * (nest.dst as usize % LINE) as i64 + nest.dst_bit;
        let left = before.wrapping_neg() & (LINE_BITS - 1);
        for axis in blocks.axes.iter_mut() {
            axis.first = axis.most;
        }
        if let Some(axis) = blocks.axes.last_mut()
            && axis.most < axis.dim.n
        {
            let whole =
                |bits: i64| bits.checked_div(slot as i64).filter(|n| n * slot as i64 == bits);
            let head = (0..8).find_map(|lines| whole(left + lines * LINE_BITS));
            axis.first = head.filter(|&n| n > 0).map_or(axis.most, |n| n.min(axis.most));
        }
        blocks.axes.iter_mut().for_each(|axis| _ = axis.go(0));
        blocks
    }

    /// Takes up to `most` turns of a loop into the blocks, as far as there is room; in `units`, if
    /// not all.
    fn grow(&mut self, i: usize, most: usize, unit: usize) {
        let all = self.count();
        let Some(axis) = self.axes.get_mut(i) else { return };
        let others = all.checked_div(axis.most as usize).unwrap_or(all);
        let room = BLOCK.checked_div(others).unwrap_or(1).min(most);
        let room = if room > unit { room & !(unit - 1) } else { room };
        axis.most = axis.dim.n.min(room.max(1) as i64).max(axis.most);
    }

    /// Elements of a whole block.
    fn count(&self) -> usize {
        self.axes.iter().map(|axis| axis.most as usize).product()
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
                return Some(axis.go(at) && same);
            }
            same &= axis.go(0);
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
        struct Block([MaybeUninit<u8>; BLOCK + BEHIND]);
        let [mut first, mut second] = [const { Block([MaybeUninit::uninit(); BLOCK + BEHIND]) }; 2];
        let [from, to] = [&mut first, &mut second].map(|block| {
            let block: *mut u8 = block.0.as_mut_ptr().cast();
            // SAFETY: a block has no more elements. What is beside them is read, too.
            unsafe { block.write_bytes(0, self.count().min(BLOCK) + BEHIND) };
            block
        });
        loop {
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
                // SAFETY: the block's elements are the caller's, for all of which both buffers have
                // room.
                unsafe {
                    self.load(&src, src_at, Space { bytes: from, stage: to });
                    if moves {
                        bytes(&between);
                    }
                    let (bytes, stage) = if moves { (to, from) } else { (from, to) };
                    self.store(&dst, dst_at, Space { bytes, stage });
                }
                match self.next() {
                    None => return,
                    Some(true) => {}
                    Some(false) => break,
                }
            }
        }
    }

    /// Unpacks a block's rows.
    unsafe fn load(&self, side: &Side, at: Bit, space: Space) {
        let &Blocks { width, .. } = self;
        let &Side { n, by, .. } = side;
        let (stream, ahead) = (false, self.ahead());
        // SAFETY: rows of the caller's block, and room for them.
        unsafe {
            if !(width as i64..=8).contains(&by) {
                return side.each(0, &mut |bits, _, place| {
                    let dst = Bit { base: space.bytes.wrapping_offset(place as isize), bit: 0 };
                    let (src, by_src, by_dst) = (at.by(bits), by, 8);
                    Runs { src, dst, n, by_src, by_dst, width, slot: 8, stream, ahead: 0 }
                });
            }
            let pitch = (n * by as usize).div_ceil(8);
            let run = (n - 1) * by as usize + width;
            side.each(only(side.rows.ndim().wrapping_sub(1)), &mut |bits, rows, place| {
                let place = place.checked_div(n as i64).unwrap_or(0) as usize * pitch;
                let dst = Bit { base: space.stage.wrapping_add(place), bit: 0 };
                let (src, by_src, by_dst) = (at.by(bits), rows.src, 8 * pitch as i64);
                let (n, width, slot) = (rows.n as usize, run, run);
                Runs { src, dst, n, by_src, by_dst, width, slot, stream, ahead }
            });
            (kernels().bits)(&Bits::Unpack(&side.packed(space, by as usize, width)));
        }
    }

    /// Packs a block's rows.
    unsafe fn store(&self, side: &Side, at: Bit, space: Space) {
        let &Blocks { width, slot, .. } = self;
        let &Side { n, by, .. } = side;
        let (stream, ahead) = (self.reach.stream_scattered, 0);
        // SAFETY: rows of the caller's block.
        unsafe {
            if by != slot as i64 || slot > 8 {
                return side.each(0, &mut |bits, _, place| {
                    let src = Bit { base: space.bytes.wrapping_offset(place as isize), bit: 0 };
                    let (dst, by_src, by_dst) = (at.by(bits), 8, by);
                    Runs { src, dst, n, by_src, by_dst, width, slot, stream: false, ahead }
                });
            }
            (kernels().bits)(&Bits::Pack(&side.packed(space, slot, width)));
            let pitch = (n * slot).div_ceil(8);
            side.each(only(side.rows.ndim().wrapping_sub(1)), &mut |bits, rows, place| {
                let place = place.checked_div(n as i64).unwrap_or(0) as usize * pitch;
                let src = Bit { base: space.stage.wrapping_add(place), bit: 0 };
                let (dst, by_src, by_dst) = (at.by(bits), 8 * pitch as i64, rows.src);
                let (n, width) = (rows.n as usize, n * slot);
                Runs { src, dst, n, by_src, by_dst, width, slot: width, stream, ahead }
            });
        }
    }

    /// Bytes from this block's source to that of a block soon to come.
    fn ahead(&self) -> isize {
        let (Some(near), Some(last)) = (self.axes.get(self.near), self.axes.get(self.last)) else {
            return 0;
        };
        if !self.reach.prefetch || self.near == self.last {
            return 0;
        }
        // Two blocks on, or one of those that the next row of blocks begins with.
        let on = near.at + 2 * near.most;
        let (turns, rows) = if on < near.dim.n {
            (on - near.at, 0)
        } else {
            ((on - near.dim.n).checked_div(near.most).unwrap_or(0) * near.most - near.at, last.n)
        };
        (turns.wrapping_mul(near.dim.src).wrapping_add(rows.wrapping_mul(last.dim.src)) >> 3)
            as isize
    }
}

impl Side {
    /// Copies all rows: those of the loops in `inside` together.
    ///
    /// # Safety
    /// As [`copy`], of the runs.
    unsafe fn each(&self, inside: u64, runs: &mut dyn FnMut(i64, Dim, i64) -> Runs) {
        let nest = Nest::new(&self.rows);
        let rows = nest.dim(nest.len().wrapping_sub(1));
        nest.walk(inside, &mut |bits, place| {
            // SAFETY: the caller's runs.
            unsafe { (kernels().bits)(&Bits::Copy(&runs(bits, rows, place))) }
        });
    }

    /// All rows, packed in the stage, `field` bits from element to element.
    fn packed(&self, space: Space, field: usize, width: usize) -> Packed {
        let Space { bytes, stage } = space;
        let rows = self.rows.count() as usize;
        Packed { packed: stage, bytes, field, width, n: self.n, rows }
    }
}

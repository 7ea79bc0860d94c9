//! Items that are not whole bytes. Elements of 1 to 8 bits are copied block by block: runs of the
//! source are aligned to whole bytes in a staging buffer and unpacked to bytes, which are copied by
//! the op for bytes, packed into the staging buffer, and written to runs of the destination. Wider
//! items are copied as runs of bits.
use core::mem::MaybeUninit;

use dlpack_kernels::{Bit, Bits, LINE, Packed, Runs};

use super::super::level::kernels;
use super::super::policy::Reach;
use crate::array::Array;
use crate::nest::{Nest, only};
use crate::plan::{Dim, Item, MAX_NDIM, Plan};

/// Elements of a block of a transpose with whole cache lines on both sides: their bytes stay in L1,
/// unpacked and transposed.
const LARGE: usize = 16384;
/// Elements of other blocks, whose ops need more of the stack.
const SMALL: usize = 8192;
/// Bytes after them that the kernels may read and write.
const BEHIND: usize = 64;
/// Bits of a cache line.
const LINE_BITS: i64 = 8 * LINE as i64;

/// Executes a simplified plan of bits; `bytes` executes one of bytes in the caches.
///
/// # Safety
/// As [`super::super::copy`].
#[inline(never)]
pub(crate) unsafe fn copy(nest: &Nest, reach: Reach, bytes: unsafe fn(&Nest)) {
    let Item::Bits { width, dst_slot } = nest.item else { return };
    let slot = dst_slot.max(width);
    // SAFETY: all elements are readable or writable, the two sides apart, and the destination's
    // distinct.
    unsafe {
        if nest.is_empty() || !(1..=8).contains(&width) {
            return runs(nest, width, slot);
        }
        let axes = Array::new();
        let mut blocks = Blocks { nest, axes, width, slot, near: 0, last: 0, reach, room: 0 };
        blocks.shape();
        match blocks.room {
            LARGE => blocks.with::<{ LARGE + BEHIND }>(bytes),
            _ => blocks.with::<{ SMALL + BEHIND }>(bytes),
        }
        if reach.stream_scattered {
            (kernels().fence)();
        }
    }
}

/// Elements of `bits` bits that make whole cache lines.
fn line_of(bits: usize) -> usize {
    (8 * LINE) >> bits.trailing_zeros().min(9)
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
        let runs = Runs { slot, ..Runs::new((src, by_src), (dst, by_dst), n as usize, width) };
        // SAFETY: items of the nest, readable in the source and writable in the destination.
        unsafe { (kernels().bits)(&Bits::Copy(runs)) }
    });
}

/// A loop and its part in a block.
#[derive(Clone, Copy)]
struct Axis {
    /// The whole loop.
    dim: Dim,
    /// Extent in a block, in the first one, and in this one, which begins at iteration `at`.
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

    /// Selects a part of the loop; true if it is as long as the previous one.
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

/// The buffers of a block: bytes, and the staging buffer.
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
    /// The loop with the smallest source stride, and the innermost one.
    near: usize,
    last: usize,
    reach: Reach,
    /// Maximum elements of a block.
    room: usize,
}

impl<'a> Blocks<'a> {
    /// Computes the shape of blocks, in place: there may be many loops and a small stack.
    fn shape(&mut self) {
        let Blocks { nest, width, slot, .. } = *self;
        for i in 0..nest.len() {
            let axis = Axis { dim: nest.dim(i), most: 1, first: 1, n: 0, at: 0, bytes: [0; 2] };
            self.axes.push(axis);
        }
        let last = nest.len() - 1;
        let step = |&i: &usize| nest.dim(i).src.unsigned_abs();
        let near = (0..nest.len()).rev().filter(|i| step(i) > 0).min_by_key(step).unwrap_or(last);
        let (row, column) = (line_of(slot), line_of(width));
        let lines = nest.dim(last).n >= row as i64 && nest.dim(near).n >= column as i64;
        let room = if near != last && lines { LARGE } else { SMALL };
        (self.near, self.last, self.room) = (near, last, room);
        if near != last {
            // Whole lines of the destination, and of the source as many as fit.
            self.grow(last, row, row);
            self.grow(near, room, column);
        }
        // As much as fits: of this loop, and then of the outer ones.
        (0..nest.len()).rev().for_each(|i| self.grow(i, room, row));
        // Rows that begin within a line of the destination end at the end of one.
        let before = 8 * (nest.dst as usize % LINE) as i64 + nest.dst_bit;
        let left = before.wrapping_neg() & (LINE_BITS - 1);
        for axis in self.axes.iter_mut() {
            axis.first = axis.most;
        }
        if let Some(axis) = self.axes.last_mut()
            && axis.most < axis.dim.n
        {
            let whole =
                |bits: i64| bits.checked_div(slot as i64).filter(|n| n * slot as i64 == bits);
            let head = (0..8).find_map(|lines| whole(left + lines * LINE_BITS));
            axis.first = head.filter(|&n| n > 0).map_or(axis.most, |n| n.min(axis.most));
        }
        self.axes.iter_mut().for_each(|axis| _ = axis.go(0));
    }

    /// Adds up to `most` iterations of a loop to the blocks, if there is room; in `units`, if not
    /// all.
    fn grow(&mut self, i: usize, most: usize, unit: usize) {
        let all = self.count();
        let room = self.room;
        let Some(axis) = self.axes.get_mut(i) else { return };
        let others = all.checked_div(axis.most as usize).unwrap_or(all);
        let room = room.checked_div(others).unwrap_or(1).min(most);
        let room = if room > unit { room & !(unit - 1) } else { room };
        axis.most = axis.dim.n.min(room.max(1) as i64).max(axis.most);
    }

    /// Elements of a whole block.
    fn count(&self) -> usize {
        self.axes.iter().map(|axis| axis.most as usize).product()
    }

    /// Advances to the next block, along the source's runs first, then the destination's; returns
    /// whether it has the shape of the previous one. `None`: that was the last one.
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

    /// Describes a block's rows in the layout of one side.
    fn side(&mut self, side: usize, dense: i64, made: &mut Side) {
        let axes = &mut *self.axes;
        axes.iter_mut().for_each(|axis| axis.bytes[side] = 0);
        let strides = || axes.iter().filter(|axis| axis.n > 1).map(|axis| axis.stride(side));
        let by = strides().filter(|&by| by > 0).min().unwrap_or(dense);
        let rows = &mut made.rows;
        rows.dims.truncate(0);
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
        (made.n, made.by) = (n as usize, by);
    }

    /// Copies with buffers for `N` bytes and the bytes behind them.
    ///
    /// # Safety
    /// As [`copy`]; `N` is the room of a block and [`BEHIND`].
    #[inline(never)]
    unsafe fn with<const N: usize>(&mut self, bytes: unsafe fn(&Nest)) {
        #[repr(align(64))]
        struct Buffer<const N: usize>([MaybeUninit<u8>; N]);
        let mut buffers = [const { Buffer([MaybeUninit::<u8>::uninit(); N]) }; 2];
        let used = (self.count() + BEHIND).min(N);
        let [from, to] = buffers.each_mut().map(|buffer| {
            let buffer: *mut u8 = buffer.0.as_mut_ptr().cast();
            // SAFETY: a buffer has as many. Bytes beside the elements are read, too.
            unsafe { buffer.write_bytes(0, used) };
            buffer
        });
        // SAFETY: both buffers have `N` bytes, enough for a block and `BEHIND`; all elements are
        // readable or writable, the two sides apart.
        unsafe { self.copy(from, to, bytes) }
    }

    /// # Safety
    /// As [`copy`]; a block's bytes fit into both buffers.
    #[inline(never)]
    unsafe fn copy(&mut self, from: *mut u8, to: *mut u8, bytes: unsafe fn(&Nest)) {
        let (mut src, mut dst) = (Side::NONE, Side::NONE);
        loop {
            self.side(0, self.width as i64, &mut src);
            self.side(1, self.slot as i64, &mut dst);
            let mut plan = Plan::new(from, to, Item::Bytes(1));
            let moves = self.between(&mut plan);
            let between = Nest::new(&plan);
            loop {
                let [src_at, dst_at] = self.place();
                // SAFETY: the block's elements are readable or writable, and both buffers have room
                // for all of them.
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

    /// Fills the plan by which the bytes of a block are copied to the other buffer, backwards if
    /// the source stride is negative; false if they are in the order of the destination already.
    fn between(&self, plan: &mut Plan) -> bool {
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
        moves
    }

    /// The first bits of this block in the source and in the destination.
    fn place(&self) -> [Bit; 2] {
        let (mut src, mut dst) = (source(self.nest), destination(self.nest));
        for axis in self.axes.iter() {
            let turn = axis.at + if axis.dim.src < 0 { axis.n - 1 } else { 0 };
            src = src.by(turn.wrapping_mul(axis.dim.src));
            dst = dst.by(axis.at.wrapping_mul(axis.dim.dst));
        }
        [src, dst]
    }

    /// Unpacks a block's rows.
    unsafe fn load(&self, side: &Side, at: Bit, space: Space) {
        let (&Blocks { width, .. }, &Side { n, by, .. }) = (self, side);
        let (ahead, packed) = (self.ahead(), side.packed(space, width));
        let (by_row, run) = (packed.by_row, (n - 1) * packed.field + width);
        let dense = (width as i64..=8).contains(&by);
        let direct = by < 8 && self.beyond(by);
        // SAFETY: the block's rows are readable at `at`, and the space has room for them.
        unsafe {
            side.each(dense, &mut |bits, place, row| {
                let (src, rows) = (at.by(bits), row.n as usize);
                if !dense {
                    let dst = Bit { base: space.bytes, bit: place };
                    Bits::Copy(Runs { slot: 8, ..Runs::new((src, by), (dst, 8), n, width) })
                } else if direct {
                    let (bytes, by_row) = (space.bytes.wrapping_add(place as usize / 8), row.src);
                    Bits::Unpack(Packed { packed: src, by_row, bytes, rows, ahead, ..packed })
                } else {
                    let dst = packed.part(place, rows).packed;
                    let runs = Runs::new((src, row.src), (dst, by_row), rows, run);
                    Bits::Copy(Runs { ahead, ..runs })
                }
            });
            if dense && !direct {
                (kernels().bits)(&Bits::Unpack(packed));
            }
        }
    }

    /// Packs a block's rows.
    unsafe fn store(&self, side: &Side, at: Bit, space: Space) {
        let (&Blocks { width, slot, .. }, &Side { n, by, .. }) = (self, side);
        let packed = side.packed(space, width);
        let dense = by == slot as i64 && slot <= 8;
        // SAFETY: the block's rows are writable at `at`, and the space holds them.
        unsafe {
            side.each(dense, &mut |bits, place, row| {
                let dst = at.by(bits);
                if dense {
                    let packed = packed.part(place, row.n as usize);
                    let src = (packed.packed, packed.by_row);
                    let runs = Runs::new(src, (dst, row.src), packed.rows, n * slot);
                    Bits::Pack(packed, Runs { stream: self.reach.stream_scattered, ..runs })
                } else {
                    let src = Bit { base: space.bytes, bit: place };
                    Bits::Copy(Runs { slot, ..Runs::new((src, 8), (dst, by), n, width) })
                }
            });
        }
    }

    /// Whether a vector's bytes follow the block in the source, `by` bits from element to element:
    /// then the bytes read behind its rows are the caller's, too.
    fn beyond(&self, by: i64) -> bool {
        self.axes.get(self.near).is_some_and(|near| {
            let left = if near.dim.src < 0 { near.at } else { near.dim.n - near.at - near.n };
            near.stride(0) == by && left.saturating_mul(by) >= 8 * BEHIND as i64 + 8
        })
    }

    /// Bytes from this block's source to that of a later block, for prefetches.
    fn ahead(&self) -> isize {
        let (Some(near), Some(last)) = (self.axes.get(self.near), self.axes.get(self.last)) else {
            return 0;
        };
        if !self.reach.prefetch || self.near == self.last {
            return 0;
        }
        // Two blocks on, or one of the first blocks of the next row of blocks.
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
    /// An empty side.
    const NONE: Side = Side { n: 1, by: 0, rows: Plan::none() };

    /// Executes `what` for each row, or for the rows of the innermost loop together, given the
    /// first one's offset on this side and in the block, in bits.
    ///
    /// # Safety
    /// As [`copy`], for the operation.
    unsafe fn each(&self, together: bool, what: &mut dyn FnMut(i64, i64, Dim) -> Bits) {
        let nest = Nest::new(&self.rows);
        let last = nest.len().wrapping_sub(1);
        nest.walk(if together { only(last) } else { 0 }, &mut |bits, place| {
            // SAFETY: `what` makes operations on this side's bits and a buffer's, readable or
            // writable; the processor has the level in use.
            unsafe { (kernels().bits)(&what(bits, 8 * place, nest.dim(last))) }
        });
    }

    /// All rows, packed in the staging buffer, each from a whole byte on.
    fn packed(&self, space: Space, width: usize) -> Packed {
        let Space { bytes, stage } = space;
        let (n, field, rows) = (self.n, self.by as usize, self.rows.count() as usize);
        let packed = Bit { base: stage, bit: 0 };
        let by_row = (n.wrapping_mul(field).wrapping_add(7) & !7) as i64;
        Packed { packed, by_row, bytes, field, width, n, rows, ahead: 0 }
    }
}

//! Shuffles: where the destination is dense over a short period of bytes, or has gaps that are not
//! written, and the bytes come from nearby addresses of the source in any order. Channels and
//! planes, every n-th item, reversals, small matrices.
//!
//! The loops in the period, and how many periods make whole cache lines, are the [`Shape`]; from it
//! a program is compiled, which the kernel executes.
use core::mem::MaybeUninit;

use dlpack_kernels::{BYTES_MOST, GAP, LINE, Made, Period, Program, Shuffles, Steps};

use super::super::level::kernels;
use super::super::policy::Reach;
use super::scalar;
use crate::nest::{Loop, Nest, Set, only};

/// Loads for one line beyond which items are copied one by one as fast.
pub(crate) const LOADS_PER_LINE: usize = 6;

/// The loops of a program.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// Loops in one period, innermost first; of the rest `n` is 1.
    inside: [Loop; 3],
    /// Bytes of one period in the destination.
    period: usize,
    /// Destination stride of periods: larger than a period if bytes between them are not written.
    pitch: usize,
    /// The loop of periods.
    unit: Loop,
    /// Periods that make whole cache lines.
    units: usize,
    /// A loop of other destinations of the same source lines.
    beside: Loop,
    /// All of these.
    set: Set,
}

impl Shape {
    /// The shape of a nest, if a program can copy it.
    pub(crate) fn of(nest: &Nest) -> Option<Shape> {
        let window = kernels().shuffles?.window;
        if nest.bytes() > BYTES_MOST / 16 {
            return None;
        }
        let mut shape = Shape {
            inside: [Loop::NONE; 3],
            period: nest.bytes(),
            pitch: 0,
            unit: Loop::NONE,
            units: 1,
            beside: Loop::NONE,
            set: 0,
        };
        // Loops of the period: dense in the destination, while the next one out is dense, too. The
        // last may have gaps, if single bytes can be stored.
        let gaps = window == LINE && nest.bytes() < 8;
        let dense = |i: usize, bytes: usize| {
            let (one, bytes) = (nest.inner(i), bytes as isize);
            let gap = gaps && bytes < one.dst && one.dst <= LINE as isize;
            (i < nest.len() && (one.dst == bytes || gap)).then_some(one)
        };
        let mut taken = 0;
        loop {
            let one = dense(taken, shape.period)?;
            let wider = shape.period.saturating_mul(one.n);
            let more = taken < shape.inside.len()
                && wider <= LOADS_PER_LINE * LINE
                && one.dst == shape.period as isize
                && dense(taken + 1, wider).is_some();
            shape.set |= only(nest.len() - 1 - taken);
            if !more {
                shape.unit = one;
                break;
            }
            *shape.inside.get_mut(taken)? = one;
            shape.period = wider;
            taken += 1;
        }
        let Shape { unit, .. } = shape;
        shape.pitch = unit.dst as usize;
        let pitch = shape.pitch;
        if unit.src == 0 || unit.src.abs() > GAP {
            return None;
        }
        shape.units = LINE >> pitch.trailing_zeros().min(LINE.trailing_zeros());
        // A window must fit into the bytes of the source that are read.
        while shape.units.saturating_mul(unit.src.unsigned_abs()) < 64 && shape.units < 64 {
            shape.units *= 2;
        }
        let bytes = shape.units.saturating_mul(pitch);
        // Other destinations of the same source lines: the channels of pixels.
        let near = |&i: &usize| {
            let one = nest.at(i);
            let reach = one.src.unsigned_abs().saturating_mul(one.n);
            shape.set & only(i) == 0 && one.src != 0 && reach <= unit.src.unsigned_abs()
        };
        if let Some(i) = (0..nest.len()).find(near) {
            let one = nest.at(i);
            if one.n.saturating_mul(bytes) <= BYTES_MOST {
                shape.beside = one;
                shape.set |= only(i);
            }
        }
        let fits = bytes <= BYTES_MOST && bytes * shape.beside.n <= BYTES_MOST;
        (fits && unit.n >= shape.units && shape.worth()).then_some(shape)
    }

    /// Whether a line of the destination needs few windows.
    fn worth(&self) -> bool {
        let periods = (LINE + self.pitch - 1).checked_div(self.pitch).unwrap_or(LINE);
        let span = self.unit.src.unsigned_abs().saturating_mul(periods);
        let planes: usize = self
            .inside
            .iter()
            .map(|one| if one.src.unsigned_abs() > 64 { one.n } else { 1 })
            .product();
        let loads = span.div_ceil(64).saturating_mul(planes);
        loads <= LOADS_PER_LINE
    }
}

/// Copies a nest of a shape.
///
/// # Safety
/// As [`super::super::copy`].
#[inline(never)]
pub(crate) unsafe fn copy(nest: &Nest, shape: &Shape, reach: Reach) {
    let (unit, units, bytes) = (shape.unit, shape.units, shape.units * shape.pitch);
    let steps = |one: Loop| Steps { n: one.n, src: one.src };
    let [a, b, c] = shape.inside.map(steps);
    let gaps = shape.pitch > shape.period;
    let mut made = Made::new();
    let period = Period {
        item: nest.bytes(),
        loops: [a, b, c, Steps { n: units, src: unit.src }],
        gap: shape.pitch - shape.period,
        beside: steps(shape.beside),
        beside_dst: shape.beside.dst,
        prefetch: reach.prefetch,
    };
    // A test may have changed the level since the shape was computed.
    let able = |found: &Shuffles| !gaps || found.window == LINE;
    let found = kernels().shuffles.filter(able);
    let found = found.filter(|found| made.make(&period, found.window).is_some());
    let Some(Shuffles { run: kernel, .. }) = found else {
        // SAFETY: all elements are readable or writable, the two sides apart, and the destination's
        // distinct.
        return unsafe { scalar::copy(nest) };
    };
    let outer = (0..nest.len()).rev().find(|&i| shape.set & only(i) == 0);
    let next = outer.map_or(0, |i| nest.at(i).src);
    let program = made.program(units as isize * unit.src, bytes as isize, gaps, next);
    // The ends of streamed rows are computed in a buffer, and copied: a plain store to a line just
    // streamed would wait for memory.
    let ends = Program { lines: made.compact(), soon: &[], ..program };
    let mut made_beside = MaybeUninit::<[u8; BYTES_MOST]>::uninit();
    let made_beside: *mut u8 = made_beside.as_mut_ptr().cast();
    // Whole lines, if all destinations start at the same offset in a line.
    let streams = reach.stream_scattered && !gaps && shape.beside.dst % LINE as isize == 0;
    nest.each(shape.set, &mut |src, dst| {
        let run = |program: &Program, first: usize, n: usize, stream: bool| {
            let src = src.wrapping_offset(first as isize * unit.src);
            let dst = dst.wrapping_add(first * shape.pitch);
            // SAFETY: `n` periods of the nest, readable and writable; no window exceeds the bytes
            // they read.
            unsafe { kernel(program, src, dst, n, stream) }
        };
        // `n` periods from `from` on, of those from `first` on that are in the buffer.
        let end = |first: usize, from: usize, n: usize| {
            let src = src.wrapping_offset(first as isize * unit.src);
            // SAFETY: the program makes one group of periods in `made_beside`, which has room for
            // them; each parallel destination has `bytes` bytes.
            unsafe {
                kernel(&ends, src, made_beside, 1, false);
                for k in 0..shape.beside.n {
                    let from_byte = k * bytes + (from - first) * shape.pitch;
                    let dst = dst.wrapping_offset(k as isize * shape.beside.dst);
                    let dst = dst.wrapping_add(from * shape.pitch);
                    let made = made_beside.wrapping_add(from_byte);
                    // One by one, if there are gaps between them.
                    let (runs, run) = if gaps { (n, shape.period) } else { (1, n * shape.period) };
                    for i in 0..runs {
                        let (made, dst) =
                            (made.wrapping_add(i * shape.pitch), dst.wrapping_add(i * shape.pitch));
                        core::ptr::copy_nonoverlapping(made, dst, run);
                    }
                }
            }
        };
        let start = |&i: &usize| (dst as usize + i * shape.pitch).is_multiple_of(LINE);
        let aligned = if streams { (0..units).find(start) } else { None };
        let first = aligned.unwrap_or(0);
        let n = unit.n.saturating_sub(first) / units.max(1);
        let done = first + n * units;
        if first > 0 {
            end(0, 0, first);
        }
        run(&program, first, n, aligned.is_some());
        if done < unit.n {
            end(unit.n - units, done, unit.n - done);
        }
    });
}

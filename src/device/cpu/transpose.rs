//! Two-dimensional transposes: the source is dense along one dimension (columns), the destination
//! along the other.

use super::ops::{Ops, Square};
use super::stream::{BUFFER, Buffer};

/// A transpose. Along `n_dst` the destination is dense and the source steps by `src_stride`;
/// along `n_src` the source is dense and the destination steps by `dst_stride` (bytes, any sign).
#[derive(Clone, Copy)]
pub(super) struct Face {
    pub(super) src: *const u8,
    pub(super) dst: *mut u8,
    pub(super) n_dst: usize,
    pub(super) n_src: usize,
    pub(super) src_stride: isize,
    pub(super) dst_stride: isize,
    /// log2 of the element's bytes, 0 to 4.
    pub(super) log: u32,
}

impl Face {
    /// The part with `n_dst` by `n_src` elements that starts at (`at_dst`, `at_src`).
    fn part(&self, at_dst: usize, n_dst: usize, at_src: usize, n_src: usize) -> Face {
        let src = self.src.wrapping_offset(at_dst as isize * self.src_stride);
        let dst = self.dst.wrapping_offset(at_src as isize * self.dst_stride);
        Face {
            src: src.wrapping_add(at_src << self.log),
            dst: dst.wrapping_add(at_dst << self.log),
            n_dst,
            n_src,
            ..*self
        }
    }

    /// Elements in 16 and in 64 bytes.
    fn vector(&self) -> usize {
        16 >> self.log
    }

    fn line(&self) -> usize {
        64 >> self.log
    }

    /// Elements of the destination before its first whole line.
    fn head(&self) -> usize {
        ((self.dst as usize).wrapping_neg() & 63) >> self.log
    }
}

/// Elements of the destination's rows that are finished before the next strip of columns: bounds
/// the source pages in use.
const REACH: usize = 1024;

/// Bytes of a source row that are used up in one go: the processor fetches ahead along them.
const RUN: usize = 4096;

/// Transposes a face of at least 16 bytes either way.
///
/// # Safety
/// Every element is readable and writable; no overlap.
pub(super) unsafe fn transpose(ops: &Ops, face: &Face, streams: bool) {
    let line = face.line().max(1);
    // SAFETY: the caller's promise, and the sizes that each of the two asks for.
    unsafe {
        let least = if ops.square.is_some() { line } else { 4 * line };
        if face.n_dst < least || face.n_src < line {
            return direct(ops, face);
        }
        // Parts end where the destination's lines do, if its rows agree on that.
        let (mut at, mut count) = (0, REACH + face.head());
        while at < face.n_dst {
            let left = face.n_dst - at;
            count = if left < count + REACH { left } else { count };
            strips(ops, &face.part(at, count, 0, face.n_src), streams);
            (at, count) = (at + count, REACH);
        }
    }
}

/// Tiles straight from the source into the destination. The last tile of a row or column moves
/// back over its predecessor, and writes the same bytes again.
///
/// # Safety
/// As [`transpose`].
pub(super) unsafe fn direct(ops: &Ops, face: &Face) {
    let log = face.log as usize & 15;
    let wide = face.n_dst << log >= ops.width;
    let (width, tiles) = if wide { (ops.width, &ops.tiles) } else { (16, &ops.narrow) };
    let Some(tile) = tiles.get(log) else { return };
    let (rows, columns, line) = (width >> log, face.vector(), face.line());
    let mut s = 0;
    while s < face.n_src {
        let left = face.n_src - s;
        let blocks = (left.min(line) << log) / 16;
        let s_at = if blocks == 0 { face.n_src - columns } else { s };
        let blocks = blocks.max(1);
        let mut d = 0;
        while d < face.n_dst {
            let part = face.part(d.min(face.n_dst - rows), rows, s_at, columns * blocks);
            // SAFETY: the part lies within the face, which the caller vouches for.
            unsafe { tile(part.src, part.src_stride, part.dst, part.dst_stride, blocks) };
            d += rows;
        }
        s = s_at + blocks * columns;
    }
}

/// Strips of columns: whole squares, and what is left over.
unsafe fn strips(ops: &Ops, face: &Face, streams: bool) {
    let (vector, line) = (face.vector(), face.line());
    // Strips that start at the source's lines read each line once.
    let lead = (face.src as usize).wrapping_neg() & 63;
    let lead = if face.src_stride & 63 == 0 { lead >> face.log } else { 0 };
    let mut s = 0;
    // SAFETY: the strips are parts of the face, which is at least a line either way.
    unsafe {
        if lead > 0 {
            direct(ops, &face.part(0, face.n_dst, 0, lead.max(vector)));
            s = lead;
        }
        while s + line <= face.n_src {
            let count = (RUN >> face.log).min(face.n_src - s) & !(line - 1);
            strip(ops, &face.part(0, face.n_dst, s, count), streams);
            s += count;
        }
        if s < face.n_src {
            let count = (face.n_src - s).max(vector);
            direct(ops, &face.part(0, face.n_dst, face.n_src - count, count));
        }
    }
}

/// A strip of whole lines of source columns.
unsafe fn strip(ops: &Ops, face: &Face, streams: bool) {
    let aligned = face.dst_stride & 63 == 0 && face.dst as usize & ((1 << face.log) - 1) == 0;
    let head = face.head();
    // SAFETY: parts of the caller's face, at least 16 bytes either way.
    unsafe {
        let start = match ops.square {
            Some(_) if !streams && (!aligned || face.n_dst < 16 * face.line()) => 0,
            _ if aligned => head,
            _ => face.line(), // each row's first line is its own
        };
        if start > 0 {
            direct(ops, &face.part(0, start.max(face.vector()), 0, face.n_src));
        }
        let done = match ops.square {
            Some(square) if aligned || !streams => squares(ops, square, face, start, streams),
            _ => windows(ops, face, if aligned { head } else { 0 }, aligned, streams),
        };
        if done < face.n_dst {
            let count = (face.n_dst - done).max(face.vector());
            direct(ops, &face.part(face.n_dst - count, count, 0, face.n_src));
        }
    }
}

/// Squares straight from the source to aligned lines of the destination, from column `d` of it on;
/// returns where they end.
#[inline(never)] // a frame of its own: stacks may be small
unsafe fn squares(ops: &Ops, square: Square, face: &Face, mut d: usize, streams: bool) -> usize {
    let mut half = Buffer::new();
    let half = (half.ptr(), 64);
    let line = face.line().max(1);
    // Short destination rows are finished at once.
    let most = if face.n_dst < 9 * line { 8 } else { ROWS.div_ceil(line) };
    while d + line <= face.n_dst {
        let lines = ((face.n_dst - d) >> (6 - face.log)).min(most);
        for s in (0..face.n_src).step_by(line) {
            for i in 0..lines {
                let part = face.part(d + i * line, line, s, line);
                let Face { src, dst, src_stride, dst_stride, .. } = part;
                (ops.fetch)(src.wrapping_add(AHEAD), src_stride, line, 1);
                // SAFETY: a part of the caller's face, whose lines are aligned.
                unsafe { square(face.log, (src, src_stride), (dst, dst_stride), half, streams) };
            }
        }
        d += lines * line;
    }
    d
}

/// Source rows in use at a time, at least.
const ROWS: usize = 16;

/// How far ahead along a source row lines are asked for.
const AHEAD: usize = 128;

/// Windows of some lines of each of some destination rows, made in the buffer, from column `d` on;
/// returns where they end. Runs of destination lines are written
/// together, for memory is slow to change its rows. Of rows that start anywhere in a line, a
/// window shows one line less than it holds: those that are whole.
#[inline(never)] // a frame of its own: stacks may be small
unsafe fn windows(ops: &Ops, face: &Face, mut d: usize, aligned: bool, streams: bool) -> usize {
    let stream = if streams { ops.stream } else { super::portable::stream };
    let pitch = (64usize << face.log).max(128);
    let (rows, held) = (BUFFER / pitch, pitch / 64);
    let shown = held - usize::from(!aligned);
    let mut buffer = Buffer::new();
    let buffer = buffer.ptr();
    while d + held * face.line() <= face.n_dst {
        for s in (0..face.n_src).step_by(rows.max(1)) {
            let part = face.part(d, held * face.line(), s, rows.min(face.n_src - s));
            // SAFETY: a part of the caller's face; the buffer has `rows` rows of `held` lines.
            unsafe { fill(ops, &part, buffer, pitch) };
            for row in 0..part.n_src {
                let to = part.dst.wrapping_offset(row as isize * part.dst_stride);
                let skew = (to as usize).wrapping_neg() & 63;
                let from = buffer.wrapping_add(row * pitch + skew);
                // SAFETY: the row's first whole lines, in the buffer and in the destination.
                unsafe { stream(to.wrapping_add(skew), from, shown) };
            }
        }
        d += shown * face.line();
    }
    d
}

/// A window into the buffer.
unsafe fn fill(ops: &Ops, part: &Face, buffer: *mut u8, pitch: usize) {
    let Face { src_stride: ss, n_dst, n_src, log, .. } = *part;
    let line = part.line();
    let Some(&tile) = ops.tiles.get(log as usize) else { return };
    let square = ops.square.filter(|_| n_src & (line - 1) == 0);
    let step = if square.is_some() { line } else { ops.width >> log };
    for d in (0..n_dst).step_by(step.max(1)) {
        let src = part.src.wrapping_offset(d as isize * ss);
        let to = buffer.wrapping_add(d << log);
        // SAFETY: the caller's part, and `pitch` bytes of the buffer for each of its rows.
        unsafe {
            (ops.fetch)(src.wrapping_add(n_src << log), ss, step, (n_src << log) / 64);
            match square {
                Some(square) => {
                    for s in (0..n_src).step_by(line.max(1)) {
                        let src = src.wrapping_add(s << log);
                        let to = to.wrapping_add(s * pitch);
                        square(log, (src, ss), (to, pitch as isize), (to, pitch as isize), false);
                    }
                }
                None => tile(src, ss, to, pitch as isize, (n_src << log) / 16),
            }
        }
    }
}

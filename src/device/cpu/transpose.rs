//! Two-dimensional transposes: the source is dense along one dimension (columns), the destination
//! along the other.

use super::ops::Ops;
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
}

/// Elements of the destination's rows that are finished before the next strip of columns: bounds
/// the source pages in use.
const REACH: usize = 1024;

/// Transposes a face of at least 16 bytes either way.
///
/// # Safety
/// Every element is readable and writable; no overlap.
pub(super) unsafe fn transpose(ops: &Ops, face: &Face, streams: bool) {
    let line = face.line();
    // SAFETY: the caller's promise, and the sizes that each of the two asks for.
    unsafe {
        if face.n_dst < 4 * line || face.n_src < line {
            return direct(ops, face);
        }
        let mut at = 0;
        while at < face.n_dst {
            let left = face.n_dst - at;
            let count = if left < 2 * REACH { left } else { REACH };
            strips(ops, &face.part(at, count, 0, face.n_src), streams);
            at += count;
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

/// Strips of columns, through the buffer.
unsafe fn strips(ops: &Ops, face: &Face, streams: bool) {
    let vector = face.vector();
    let size = 1usize << face.log;
    let aligned = face.dst_stride & 63 == 0 && face.dst as usize & (size - 1) == 0;
    let pitch = if aligned { 64 } else { 128 };
    let most = (BUFFER / pitch).min(256 >> face.log);
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
        while s < face.n_src {
            let count = most.min(face.n_src - s) & !(vector - 1);
            if count == 0 {
                return direct(ops, &face.part(0, face.n_dst, face.n_src - vector, vector));
            }
            let strip = face.part(0, face.n_dst, s, count);
            if aligned {
                strip_aligned(ops, &strip, streams);
            } else {
                strip_shifted(ops, &strip, streams);
            }
            s += count;
        }
    }
}

/// A strip whose destination rows all start at the same offset in a line.
#[inline(never)] // a frame of its own: stacks may be small
unsafe fn strip_aligned(ops: &Ops, face: &Face, streams: bool) {
    let (vector, line) = (face.vector(), face.line());
    let flush = if streams { ops.flush } else { super::portable::flush };
    let mut buffer = Buffer::new();
    let head = ((face.dst as usize).wrapping_neg() & 63) >> face.log;
    let blocks = (face.n_src << face.log) / 16;
    let mut d = head;
    // SAFETY: parts of the caller's face; `flush` gets whole lines of it, and the buffer holds
    // one line for each of at most 64 rows.
    unsafe {
        if head > 0 {
            direct(ops, &face.part(0, head.max(vector), 0, face.n_src));
        }
        while d + line <= face.n_dst {
            let part = face.part(d, line, 0, face.n_src);
            ahead(ops, face, d + line);
            fill(ops, &part, buffer.ptr(), 64, blocks);
            flush(buffer.ptr(), 64, part.dst, part.dst_stride, face.n_src);
            d += line;
        }
        if d < face.n_dst {
            let count = (face.n_dst - d).max(vector);
            direct(ops, &face.part(face.n_dst - count, count, 0, face.n_src));
        }
    }
}

/// A strip whose destination rows start anywhere: the buffer keeps the former 64 bytes of each.
#[inline(never)] // a frame of its own: stacks may be small
unsafe fn strip_shifted(ops: &Ops, face: &Face, streams: bool) {
    let line = face.line();
    let flush = if streams { ops.flush_shifted } else { super::portable::flush_shifted };
    let mut buffer = Buffer::new();
    let buffer = buffer.ptr();
    let blocks = (face.n_src << face.log) / 16;
    let mut d = line;
    // SAFETY: as above, with two lines for each of at most 32 rows. The lines flushed lie between
    // the end of the first `line` elements of each row and that of the last whole `line`.
    unsafe {
        direct(ops, &face.part(0, line, 0, face.n_src));
        fill(ops, &face.part(0, line, 0, face.n_src), buffer, 128, blocks);
        while d + line <= face.n_dst {
            let part = face.part(d, line, 0, face.n_src);
            ahead(ops, face, d + line);
            fill(ops, &part, buffer.wrapping_add(64), 128, blocks);
            flush(buffer, part.dst, part.dst_stride, face.n_src);
            d += line;
        }
        let from = d - line;
        direct(ops, &face.part(from, face.n_dst - from, 0, face.n_src));
    }
}

/// Asks for the source of the line after this one.
#[inline]
unsafe fn ahead(ops: &Ops, face: &Face, d: usize) {
    let rows = face.line().min(face.n_dst.saturating_sub(d));
    let next = face.part(d, rows, 0, face.n_src);
    // SAFETY: a prefetch touches nothing.
    unsafe { (ops.prefetch)(next.src, next.src_stride, rows, face.n_src << face.log) };
}

/// One line of every destination row of `part` into the buffer.
#[inline]
unsafe fn fill(ops: &Ops, part: &Face, buffer: *mut u8, pitch: isize, blocks: usize) {
    let Some(&tile) = ops.tiles.get(part.log as usize) else { return };
    let rows = (ops.width >> part.log) as isize;
    let mut at = 0;
    let mut src = part.src;
    while at < 64 {
        // SAFETY: the caller's part is one line wide, and its buffer has `pitch` bytes a row.
        unsafe { tile(src, part.src_stride, buffer.wrapping_add(at), pitch, blocks) };
        src = src.wrapping_offset(rows * part.src_stride);
        at += ops.width;
    }
}

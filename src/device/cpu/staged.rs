//! Transposes of rows that are copied next to one another first, and turned there.
//!
//! Rows a large power of two apart share a few places in every cache, of which none has room for as
//! many of them as make long runs in the destination.
use super::face::{COLUMNS_MOST, Face, ROWS_MOST, Tables};
use super::ops::Ops;
use super::stream::{BUFFER, Buffer};
use super::transpose::Edges;
use super::tuning::tuning;
use crate::platform;

/// Source rows that are copied: 16 bytes of each fill the buffer.
const ROWS: usize = BUFFER / 16;

/// Bytes of each: as many as leave all of them below what `malloc` gives back to the system.
const BYTES: usize = 512;

/// From one copy to the next.
const PITCH: usize = BYTES + 64;

/// Bytes of a face from which memory is asked for.
const LEAST: usize = 1 << 20;

/// The memory of the copies.
pub(super) struct Memory(core::ptr::NonNull<u8>);

impl Memory {
    /// For a face that goes past the caches, if that suits it and there is memory.
    pub(super) fn new(face: &Face, aligned: bool, near: bool) -> Option<Memory> {
        let suits = suit(face, aligned, near) && face.n_dst * face.n_src << face.log >= LEAST;
        if suits { platform::memory(ROWS * PITCH + 64).map(Memory) } else { None }
    }

    /// Its first line.
    fn line(&self) -> *mut u8 {
        let at = self.0.as_ptr();
        at.wrapping_add((at as usize).wrapping_neg() & 63)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it came from there, and nobody else has it.
        unsafe { platform::give_back(self.0) };
    }
}

fn suit(face: &Face, _aligned: bool, _near: bool) -> bool {
    tuning().reads() && !face.wraps() && face.n_dst >= ROWS / 2 && face.n_dst >= 4 * face.line()
}

/// Bands of rows from column `d` of the destination on; returns where they end.
///
/// # Safety
/// As [`super::transpose::transpose`]; the face suits, and is at least a line either way.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(
    ops: &Ops,
    (face, edges): (&Face, &Edges),
    (mut d, aligned): (usize, bool),
    memory: &Memory,
) -> usize {
    let (log, line, memory) = (face.log, face.line().max(1), memory.line());
    let Some(stage) = ops.stage else { return d };
    let lost = if aligned { 0 } else { line };
    let (run, mut buffer, mut tables) = (BYTES >> log, Buffer::new(), Tables::new(face));
    let (size, many) = (ROWS << log, (16 >> log).max(1));
    loop {
        let rows = ROWS.min((face.n_dst - d) & !(line - 1));
        if rows <= lost {
            return d;
        }
        let lines = (rows - lost) << log >> 6;
        // SAFETY: as many of the caller's rows, of whole lines.
        unsafe {
            edges.beside(ops, d, rows, Some(&mut tables));
            for s in (0..face.n_src).step_by(run) {
                let n = run.min(face.n_src - s);
                for first in (0..rows).step_by(ROWS_MOST) {
                    let count = ROWS_MOST.min(rows - first);
                    let src = tables.rows(face, d + first, count).wrapping_add(s << log);
                    let to = memory.wrapping_add(first * PITCH);
                    (stage.copy)(
                        src,
                        tables.places(0, 0).1.source(),
                        to,
                        PITCH,
                        count,
                        n << log >> 6,
                    );
                }
                for first in (0..n).step_by(COLUMNS_MOST) {
                    let count = COLUMNS_MOST.min(n - first);
                    let dst = tables.columns(face, s + first, count).wrapping_add(d << log);
                    for i in (0..count).step_by(many) {
                        let src = memory.wrapping_add((first + i) << log);
                        (stage.turn)(log, src, PITCH, rows, buffer.ptr(), size);
                        let ([_, at], columns) = tables.places(0, i);
                        let dst = dst.wrapping_offset(at);
                        (stage.put)(buffer.ptr(), size, dst, columns.destination(), many, lines);
                    }
                }
            }
        }
        d += rows - lost;
    }
}

//! Transposes by windows in the buffer, where squares cannot write whole lines.
use core::ptr::null_mut;

use super::face::{Face, Tables};
use super::ops::{Ask, Band, Ops, Rows, To};
use super::stream::{BUFFER, Buffer};
use super::touch;
use super::transpose::{Away, Edges, listed};
use super::tuning::tuning;

/// Source rows that an unaligned window shows at least.
const WINDOW: usize = 32;

/// Bytes from one destination row to the next in a window.
const fn pitch(log: u32) -> usize {
    let pitch = 64usize << log;
    if pitch < 128 { 128 } else { pitch }
}

/// Makes some lines of each of some destination rows in the buffer, from column `d` on; returns
/// where they end. Runs of destination lines are written together, for memory is slow to change its
/// rows. Of rows that start anywhere in a line, a window shows one line less than it holds: those
/// that are whole.
///
/// # Safety
/// As [`super::transpose::transpose`]; the face is at least a line either way.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(
    ops: &Ops,
    (face, edges): (&Face, &Edges),
    (mut d, aligned): (usize, bool),
    away: Away,
) -> usize {
    let stream = if away.streams { ops.stream } else { super::portable::stream };
    let pitch = pitch(face.log);
    let ([chunk, distance], line) = (tuning().ahead, face.line().max(1));
    let (run, rows) = (away.touched >> face.log, BUFFER / pitch);
    let held = if aligned || run > 0 { pitch / 64 } else { 1 + WINDOW.div_ceil(line) };
    let shown = held - usize::from(!aligned);
    let mut buffer = Buffer::new();
    let buffer = buffer.ptr();
    let mut tables = Tables::new(face);
    let wide = held * line;
    while d + wide <= face.n_dst {
        // SAFETY: as many of the caller's rows.
        unsafe { edges.beside(ops, d, wide, Some(&mut tables)) };
        let src = tables.rows(face, d, wide);
        for s in (0..face.n_src).step_by(rows.max(1)) {
            let count = rows.min(face.n_src - s);
            let src = src.wrapping_add(s << face.log);
            let dst = tables.columns(face, s, count).wrapping_add(d << face.log);
            // SAFETY: a part of the caller's face; the buffer has `rows` rows of `held` lines.
            unsafe {
                let (n, left) = ((wide, 1 << face.log), face.n_src - s);
                touch::read(src, n, (run, s, left), &|i| tables.row(i));
                if run == 0 && (s << face.log) & (chunk - 1) == 0 {
                    let (_, rows) = tables.places(0, 0);
                    (ops.fetch)(src.wrapping_add(distance), rows.each()[0], wide, chunk / 64);
                }
                fill(ops, &tables, (face.log, wide, count), src, buffer);
            }
            for row in 0..count {
                let to = dst.wrapping_offset(tables.column(row));
                let skew = (to as usize).wrapping_neg() & 63;
                let from = buffer.wrapping_add(row * pitch + skew);
                // SAFETY: the row's first whole lines, in the buffer and in the destination.
                unsafe { stream(to.wrapping_add(skew), from, shown) };
            }
        }
        d += shown * line;
    }
    d
}

/// A window of `n_dst` by `n_src` elements into the buffer.
unsafe fn fill(
    ops: &Ops,
    tables: &Tables,
    (log, n_dst, n_src): (u32, usize, usize),
    src: *const u8,
    buffer: *mut u8,
) {
    /// As many rows as the buffer has room for; of bytes they are as far apart as of two.
    static PITCHES: [[i32; BUFFER / pitch(1)]; 4] =
        [listed(pitch(1)), listed(pitch(2)), listed(pitch(3)), listed(pitch(4))];
    let line = 64usize >> log;
    let Some(&tile) = ops.tiles.get(log as usize) else { return };
    let Some(pitches) = PITCHES.get(log.saturating_sub(1) as usize) else { return };
    let (pitch, pitches) = (pitch(log) as isize, pitches.as_ptr());
    if let Some(turn) = ops.squares.filter(|_| n_src & line.wrapping_sub(1) == 0) {
        let rows = match tables.places(0, 0).1 {
            Rows::Apart([a, _]) => Rows::Apart([a, pitch, pitch]),
            Rows::Listed([a, _]) => Rows::Listed([a, pitches, pitches]),
        };
        let (lines, columns) = (n_dst << log >> 6, n_src << log >> 6);
        let (half, to, ask) = (null_mut(), To::Rows, Ask::NONE);
        // SAFETY: the caller's part, and as many rows of the buffer as it has columns.
        return unsafe { turn(src, buffer, &Band { log, lines, columns, rows, half, to, ask }) };
    }
    for d in (0..n_dst).step_by((ops.width >> log).max(1)) {
        let ([at, _], rows) = tables.places(d, 0);
        let rows = match rows {
            Rows::Apart([a, _]) => Rows::Apart([a, pitch]),
            Rows::Listed([a, _]) => Rows::Listed([a, pitches]),
        };
        // SAFETY: as above.
        unsafe {
            tile(src.wrapping_offset(at), buffer.wrapping_add(d << log), rows, (n_src << log) / 16);
        }
    }
}

//! Transposes of rows that are copied next to one another first, and turned there.
//!
//! Rows a power of two apart share a few places in every cache, and none has room for as many lines
//! as runs of some lines in each destination row are made of; copies of them lie where all caches
//! have room. And memory is far faster with some lines of a row than with single ones.
use core::ptr::NonNull;

use super::face::{COLUMNS_MOST, Face, ROWS_MOST, Side, Tables};
use super::ops::{Ops, Rows};
use super::transpose::Edges;
use super::tuning::tuning;
use crate::platform;

/// Source rows that are copied; of single bytes that go to rows that start anywhere in a line more,
/// for each time a line of each is lost.
const ROWS: usize = 256;
pub(super) const MANY: usize = 512;

/// Bytes of each.
pub(super) const BYTES: usize = 512;

/// From one copy to the next: rows of tiles share no place.
pub(super) const PITCH: usize = BYTES + 64;

/// Bytes of each that are turned at once, in the nearest cache.
pub(super) const TURNED: usize = 16;

/// Rows a multiple of so many bytes apart share few places in the caches: to others, squares write
/// single lines as fast.
const FAR: isize = 1024;

/// Bytes of an output that stays in the caches, and elements of its rows, at least.
pub(super) const NEAR: u64 = 128 << 10;
const FEW: usize = 32;

/// Elements of destination rows and bytes of source rows at least, and bytes of a face.
const LONG: usize = 128;
const LARGE: usize = 64 << 10;

/// The instructions for it.
pub(super) struct Stage {
    /// Copies `lines` lines of each of `n` rows at `src` to rows `pitch` bytes apart, from `to` on.
    pub(super) copy:
        unsafe fn(src: *const u8, rows: Rows<1>, to: *mut u8, pitch: usize, n: usize, lines: usize),
    /// Makes bytes of two nibbles each, of `lines` lines of each of `n` such copies: at `to[0]` of
    /// the nibbles `from[0]`, low and high ones, at `to[1]` likewise. What is read lies nowhere
    /// before what is written at the same time.
    pub(super) pair: unsafe fn(from: &[[Nibbles; 2]; 2], to: [*mut u8; 2], n: usize, lines: usize),
    /// Turns 16 bytes of each of `n` such copies, [`PITCH`] bytes apart, of elements of 1 << `log`
    /// bytes, to rows `size` bytes apart.
    pub(super) turn: unsafe fn(log: u32, src: *const u8, n: usize, to: *mut u8, size: usize),
    /// Writes as many whole lines of each of `n` such rows, past the caches: the first ones from
    /// `dst` on, and from each of `rows`.
    pub(super) put: unsafe fn(
        from: *const u8,
        size: usize,
        dst: *mut u8,
        rows: Rows<1>,
        n: usize,
        lines: usize,
    ),
}

/// One nibble of each byte from there on: the low one, or the high one with a shift of 4.
#[derive(Clone, Copy)]
pub(super) struct Nibbles {
    pub(super) at: *const u8,
    pub(super) shift: i32,
}

/// What copies lie in, and what is turned: asked for when it is needed first.
pub(super) struct Memory(Option<NonNull<u8>>);

impl Memory {
    pub(super) fn none() -> Memory {
        Memory(None)
    }

    /// Room at a line for so many bytes, as many each time.
    pub(super) fn lines(&mut self, nbytes: usize) -> Option<*mut u8> {
        if self.0.is_none() {
            self.0 = platform::memory(nbytes + 63);
        }
        let at = self.0?.as_ptr();
        Some(at.wrapping_add((at as usize).wrapping_neg() & 63))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(memory) = self.0 {
            // SAFETY: it came from there, and nobody else has it.
            unsafe { platform::give_back(memory) };
        }
    }
}

/// Whether that is the fastest for a face that goes past the caches, and which they have room for
/// if it is `near`.
pub(super) fn suits(ops: &Ops, face: &Face, near: bool) -> bool {
    let (long, lined) = (face.n_dst.min(face.n_src << face.log), face.columns.lined());
    let far = |side: &Side| side.inner() & (FAR - 1) == 0;
    let (from, to) = (far(face.rows), lined && far(face.columns));
    // Of rows that start anywhere in a line a line is lost each time.
    let lost = if lined { 0 } else { face.line() };
    let suits = match face.log {
        log if log >= tuning().copied => false,
        0 => true,
        1 if !tuning().reads() => !lined,
        1 => from || to || !lined || !near,
        2 => to || !lined,
        3 => to || !lined,
        _ => to && near,
    };
    let large =
        long >= LONG && face.n_dst >= 4 * lost && (face.n_dst * face.n_src) << face.log >= LARGE;
    suits && large && ops.stage.is_some()
}

/// Likewise for one that stays in the caches.
pub(super) fn near(ops: &Ops, face: &Face) -> bool {
    let far = face.rows.inner() & ((FAR << face.log) - 1) == 0 && face.log <= 2;
    let long = face.n_dst >= face.line().max(FEW) && face.n_src << face.log >= LONG;
    far && face.strides().is_some() && long && ops.stage.is_some() && tuning().reads()
}

/// Copies of some rows at a time, from column `d` of the destination on, and what they become, past
/// the caches if that `streams`; returns where they end, or nothing if there is no memory.
///
/// # Safety
/// As [`super::transpose::transpose`]; the face suits, and is at least a line either way.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(
    ops: &Ops,
    (face, edges): (&Face, &Edges),
    (mut d, aligned): (usize, bool),
    streams: bool,
    memory: &mut Memory,
) -> Option<usize> {
    let room = if face.log > 0 { ROWS } else { MANY } * (PITCH + TURNED);
    let (stage, memory) = (ops.stage?, memory.lines(room)?);
    let (line, mut tables) = (face.line().max(1), Tables::new(face));
    // In the caches, what is turned goes to the destination at once.
    let at_once = if streams { None } else { Some(face.strides()?[1] as usize) };
    let lost = if aligned || !streams { 0 } else { line };
    let most = if lost == 0 || face.log > 0 { ROWS } else { MANY };
    loop {
        let rows = most.min((face.n_dst - d) & !(line - 1));
        if rows <= lost {
            return Some(d);
        }
        for s in (0..face.n_src).step_by((BYTES >> face.log).max(1)) {
            // SAFETY: as many of the caller's rows, of whole lines.
            unsafe { band(stage, (face, &mut tables), (d, s), (rows, lost), at_once, memory) };
        }
        // SAFETY: likewise.
        unsafe { edges.beside(ops, d, rows, Some(&mut tables)) };
        d += rows - lost;
    }
}

/// The copies of so many source rows, from `d` and `s` on, and what they become: all but the last
/// `lost` ones fill lines of each destination row, or parts of rows `at_once` bytes apart.
unsafe fn band(
    stage: &Stage,
    (face, tables): (&Face, &mut Tables),
    (d, s): (usize, usize),
    (rows, lost): (usize, usize),
    at_once: Option<usize>,
    memory: *mut u8,
) {
    let (log, n) = (face.log, (BYTES >> face.log).min(face.n_src - s));
    for first in (0..rows).step_by(ROWS_MOST) {
        let count = ROWS_MOST.min(rows - first);
        let src = tables.rows(face, d + first, count).wrapping_add(s << log);
        let ([from, _], to) = (tables.places(0, 0).1.each(), memory.wrapping_add(first * PITCH));
        // SAFETY: the caller's rows, and as much memory.
        unsafe { (stage.copy)(src, from, to, PITCH, count, n << log >> 6) };
    }
    let turned = memory.wrapping_add(rows * PITCH);
    let (many, lines) = ((TURNED >> log).max(1), (rows - lost) << log >> 6);
    for first in (0..n).step_by(COLUMNS_MOST) {
        let count = COLUMNS_MOST.min(n - first);
        let dst = tables.columns(face, s + first, count).wrapping_add(d << log);
        for i in (0..count).step_by(many) {
            let src = memory.wrapping_add((first + i) << log);
            let ([_, at], rows_of) = tables.places(0, i);
            let (dst, [_, to]) = (dst.wrapping_offset(at), rows_of.each());
            // SAFETY: these copies, as much memory behind them, and the caller's lines.
            unsafe {
                if let Some(size) = at_once {
                    (stage.turn)(log, src, rows, dst, size);
                    continue;
                }
                (stage.turn)(log, src, rows, turned, rows << log);
                (stage.put)(turned, rows << log, dst, to, many, lines);
            }
        }
    }
}

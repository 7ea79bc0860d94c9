//! Panels: 64 bytes of each of 96 source rows, turned in a buffer and written from there by runs of
//! lines.
//!
//! Memory and a third-level cache are far slower with single lines than with some of a row, most of
//! all where rows are a power of two apart; and of such rows the nearest cache has room for eight,
//! of which a panel needs each only once.
use core::mem::MaybeUninit;

use super::face::Face;
use super::ops::{Ops, Rows};
use super::touch;
use super::transpose::Edges;
use super::tuning::tuning;

/// Source rows of a panel: as many as stacks have room for.
const ROWS: usize = 96;

/// Bytes of source rows that are read before, for there are more of them than in squares.
const TOUCHED: usize = 2048;

/// Destination rows a multiple of so many bytes apart share few places in the caches: to others,
/// squares write single lines as fast.
const FAR: isize = 1024;

/// Whether panels are the fastest for a face that goes past the caches, whose destination rows may
/// be `aligned` to lines, and which the caches have room for if it is `near`.
pub(super) fn suit(face: &Face, aligned: bool, near: bool) -> bool {
    let Some([_, by]) = face.strides().filter(|_| face.long()) else { return false };
    let far = aligned && by & (FAR - 1) == 0;
    // Rows that start anywhere in a line lose one of each panel's: of f16, one of three.
    let suits = match face.log {
        0 => false,
        1 => far,
        2 => far || !aligned,
        _ => far && near,
    };
    suits && tuning().reads()
}

/// Panels from column `d` of the destination on; returns where they end.
///
/// # Safety
/// As [`super::transpose::transpose`]; the face suits, and is at least a line either way.
#[inline(always)] // a frame of its own would lie above that of each panel
pub(super) unsafe fn copy(
    ops: &Ops,
    (face, edges): (&Face, &Edges),
    (mut d, aligned): (usize, bool),
) -> usize {
    let Some(by) = face.strides() else { return d };
    let lost = if aligned { 0 } else { face.line() };
    while d + ROWS <= face.n_dst {
        for s in (0..face.n_src).step_by(run(face.log)) {
            let n = (run(face.log), s, face.n_src - s);
            // SAFETY: as many of the caller's rows, of whole lines.
            unsafe {
                let row = |i: usize| (i as isize).wrapping_mul(by[0]);
                touch::read(face.corner((d, s), by).0, (ROWS, 1 << face.log), n, &row);
                band(ops, face, (d, s), by, lost);
            }
        }
        // SAFETY: likewise.
        unsafe { edges.beside(ops, d, ROWS, None) };
        d += ROWS - lost;
    }
    d
}

/// The elements of source rows that are read before.
fn run(log: u32) -> usize {
    (TOUCHED >> log).max(1)
}

/// The panels of 96 source rows that were read, from `d` and `s` on; all but the last `lost` rows'
/// elements fill lines of each destination row.
#[inline(never)] // a frame of its own: stacks may be small
unsafe fn band(ops: &Ops, face: &Face, (d, s): (usize, usize), by: [isize; 2], lost: usize) {
    #[repr(C, align(32))]
    struct Panel(MaybeUninit<[u8; 64 * ROWS]>);
    let mut panel = Panel(MaybeUninit::uninit());
    let panel: *mut u8 = panel.0.as_mut_ptr().cast();
    let (mut src, mut dst) = face.corner((d, s), by);
    let log = face.log;
    for _ in 0..run(log).min(face.n_src - s) << log >> 6 {
        // SAFETY: the caller's rows, and as many bytes of the panel.
        unsafe {
            turn(ops, log, src, panel, by[0]);
            dst = put(ops, log, panel, dst, by[1], ROWS.saturating_sub(lost) << log >> 6);
        }
        src = src.wrapping_add(64);
    }
}

/// Writes the lines of a panel's rows; returns where the next one's go.
///
/// # Safety
/// They are in the panel and in the destination.
#[inline(always)]
unsafe fn put(
    ops: &Ops,
    log: u32,
    panel: *const u8,
    dst: *mut u8,
    by: isize,
    lines: usize,
) -> *mut u8 {
    let (mut dst, mut from) = (dst, panel);
    for _ in 0..64 >> log {
        let skew = (dst as usize).wrapping_neg() & 63;
        // SAFETY: the caller's lines.
        unsafe { (ops.stream)(dst.wrapping_add(skew), from.wrapping_add(skew), lines) };
        (dst, from) = (dst.wrapping_offset(by), from.wrapping_add(ROWS << log));
    }
    dst
}

/// Turns 64 bytes of a panel's source rows by tiles.
///
/// # Safety
/// They are there, a stride apart, and so is room for as many rows as each has elements.
#[inline(always)]
unsafe fn turn(ops: &Ops, log: u32, src: *const u8, panel: *mut u8, by: isize) {
    let Some(tile) = ops.tiles.get(log as usize) else { return };
    let rows = Rows::Apart([by, (ROWS << log) as isize]);
    for d in (0..ROWS).step_by((ops.width >> log).max(1)) {
        let (src, to) = (src.wrapping_offset(d as isize * by), panel.wrapping_add(d << log));
        // SAFETY: the caller's rows; they are whole tiles.
        unsafe { tile(src, to, rows, 4) };
    }
}

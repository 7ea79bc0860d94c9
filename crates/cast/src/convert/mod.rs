//! Conversion of numbers from one type to another, on the CPU: pointers, strides, two types.
//!
//! ```text
//! source ─ cursor (gather) ─ tile ─ pipeline (load, widen, round, store) ─ tile ─ cursor ─ dst
//! ```
//! Dense rows skip gather and scatter; for many strided numbers the copy engine does both
//! (`staged`). A pipeline is at most four loops, chosen once; types of one byte use a table of
//! their 256 values instead. `round` documents the rounding rules.
mod avx2;
mod cursor;
mod pipeline;
mod round;
mod simd;
mod staged;
mod steps;

pub use cursor::{Cast, Side};
pub use pipeline::{Kind, TILE};

use core::ffi::c_void;

use crate::cpu::{self, Parallel};
use crate::error::Result;
use crate::plan::Dim;
use crate::platform::FloatEnvironment;
use cursor::Cursor;
use pipeline::{Pipeline, Tile};
use steps::Table;

/// Number of one-byte numbers from which a table pays: it is made by converting half as many.
const TABLE_FROM: u64 = 2 * 256;

/// Converts, on several threads if that pays.
///
/// # Safety
/// Every number is in memory that is readable (source) or writable (destination); source and
/// destination do not overlap; the destination's numbers are distinct.
pub unsafe fn run(cast: &Cast, parallel: &Parallel) -> Result<()> {
    let parts = cpu::worth(cast.plan.nbytes(), parallel);
    let longest = (0..cast.plan.ndim()).max_by_key(|&i| cast.plan.dim(i).n);
    let dim = longest.filter(|_| parts > 1 && cast.dst.bits >= 8);
    let deal = dim.map(|dim| (dim, cast.plan.dim(dim).n));
    // SAFETY: all numbers are readable or writable, the two sides apart; `deal` outlives the call,
    // and its parts share no number, nor a byte of the destination.
    unsafe {
        let Some((dim, n)) = deal else {
            alone(cast);
            return Ok(());
        };
        // Parts begin at whole bytes of the source.
        let each = (n as u64).div_ceil(parts as u64).div_ceil(64).saturating_mul(64);
        let deal = Deal { cast, dim, n, each: each as i64 };
        let parts = (n as u64).div_ceil(each.max(1)) as usize;
        let context = (&raw const deal).cast_mut().cast();
        if !cpu::side_by_side(parallel, parts, body, context)? {
            alone(cast);
        }
    }
    Ok(())
}

/// A split for threads: each part has `each` of the `n` numbers along dimension `dim`.
struct Deal<'a> {
    cast: &'a Cast,
    dim: usize,
    n: i64,
    each: i64,
}

unsafe extern "C" fn body(deal: *mut c_void, i: usize) {
    // SAFETY: `run` made it from a Deal, which is only read.
    let deal = unsafe { &*deal.cast::<Deal>() };
    let first = (i as i64).saturating_mul(deal.each).min(deal.n);
    let mut part = *deal.cast;
    let dim = part.plan.dim(deal.dim);
    let by = |stride: i64| (first.wrapping_mul(stride) >> 3) as isize;
    part.plan.src = part.plan.src.wrapping_offset(by(dim.src));
    part.plan.dst = part.plan.dst.wrapping_offset(by(dim.dst));
    let n = deal.each.min(deal.n - first);
    part.plan.set(deal.dim, Dim { n, ..dim });
    if n > 0 {
        // SAFETY: the part's numbers are readable or writable, and no other part's.
        unsafe { alone(&part) };
    }
}

/// Converts on the calling thread.
#[inline(never)]
unsafe fn alone(cast: &Cast) {
    let environment = FloatEnvironment::enter();
    let pipeline = Pipeline::new(cast.src.kind, cast.dst.kind, cast.saturate);
    // SAFETY: all numbers are readable or writable, the two sides apart, and the destination's
    // distinct.
    unsafe {
        if !staged::pays(cast) || !staged::convert(cast, &pipeline) {
            direct(cast, &pipeline);
        }
    }
    environment.leave();
}

/// Converts without a staging buffer.
unsafe fn direct(cast: &Cast, pipeline: &Pipeline) {
    // SAFETY: all numbers are readable or writable, the two sides apart, and the destination's
    // distinct.
    unsafe {
        if tabular(cast) {
            let mut table = Table::ZERO;
            tiles(cast, &pipeline.tabulated(cast.dst.kind.nbytes(), &mut table));
        } else {
            tiles(cast, pipeline);
        }
    }
}

/// Whether a table of the source's values pays: not where vectors are as fast.
fn tabular(cast: &Cast) -> bool {
    let wide = match cast.dst.kind {
        Kind::Float(format) => format.width() >= 32,
        _ => true,
    };
    let vectors = simd::vectors() && !cast.src.kind.is_float() && wide;
    cast.src.kind.nbytes() == 1 && cast.plan.count() >= TABLE_FROM && !vectors
}

/// Converts tile by tile; longer runs in one piece, if they are contiguous on both sides.
#[inline(never)]
unsafe fn tiles(cast: &Cast, pipeline: &Pipeline) {
    let [mut from, mut to] = [Tile::ZERO, Tile::ZERO];
    let mut spares = [Tile::ZERO, Tile::ZERO];
    let (mut src, mut dst) = (Cursor::of_src(cast), Cursor::of_dst(cast));
    let nbytes @ [src_nbytes, dst_nbytes] = [cast.src, cast.dst].map(|side| side.kind.nbytes());
    let mut left = cast.plan.count();
    while left > 0 {
        let tile = left.min(TILE as u64) as usize;
        let run = if cast.merge { 0 } else { src.run().min(dst.run()) };
        let n = run.max(tile);
        // SAFETY: the next `n` numbers are readable or writable, the two sides apart; tiles have
        // room for them unless they are contiguous on both sides.
        unsafe {
            let read = src.tile(&mut from, n);
            let dense = if cast.merge { None } else { dst.dense(n) };
            let written = dense.unwrap_or(to.0.as_mut_ptr());
            let input = core::slice::from_raw_parts(read, n * src_nbytes);
            let output = core::slice::from_raw_parts_mut(written, n * dst_nbytes);
            pipeline.long(input, output, nbytes, &mut spares);
            if dense.is_none() {
                dst.scatter(written, n, cast.merge);
            }
        }
        left -= n as u64;
    }
}

/// Reads both sides in step, both converted to `kind`, and calls `visit` with their tiles, of
/// `kind`'s bytes per number, until it returns true.
///
/// # Safety
/// Every number of both sides is readable.
#[inline(never)]
pub unsafe fn side_by_side(pair: &Cast, kind: Kind, visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) {
    let environment = FloatEnvironment::enter();
    let mut tile = Tile::ZERO;
    let mut wide = [Tile::ZERO, Tile::ZERO];
    let mut spares = [Tile::ZERO, Tile::ZERO];
    let mut cursors = [Cursor::of_src(pair), Cursor::of_dst(pair)];
    let kinds = [pair.src.kind, pair.dst.kind];
    let pipelines = kinds.map(|from| Pipeline::new(from, kind, false));
    let mut left = pair.plan.count();
    while left > 0 {
        let n = left.min(TILE as u64) as usize;
        let nbytes = n * kind.nbytes();
        let places = cursors.iter_mut().zip(&mut wide).zip(kinds.iter().zip(&pipelines));
        for ((cursor, wide), (from, pipeline)) in places {
            // SAFETY: the next `n` numbers are readable, and a tile has room for them.
            let input = unsafe {
                core::slice::from_raw_parts(cursor.tile(&mut tile, n), n * from.nbytes())
            };
            pipeline.run(input, wide.first(nbytes), n, &mut spares);
        }
        let [a, b] = &mut wide;
        if visit(a.first(nbytes), b.first(nbytes)) {
            break;
        }
        left -= n as u64;
    }
    environment.leave();
}

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

pub use cursor::{Cursor, DIMS, Dims, Side};
pub use pipeline::{Kind, Pipeline, TILE, Tile};

use core::ffi::c_void;
use core::ptr::null_mut;

use crate::device::cpu::{self, Parallel};
use crate::error::Result;
use crate::platform::FloatEnvironment;
use staged::Stage;
use steps::Table;

/// A conversion of `dims` numbers.
#[derive(Clone, Copy)]
pub struct Cast {
    /// Type and layout of the source.
    pub src: (Kind, Side),
    /// Type and layout of the destination.
    pub dst: (Kind, Side),
    /// The dimensions of both.
    pub dims: Dims,
    /// For bytes: results are ORed into the destination.
    pub merge: bool,
    /// Values that are too large become the largest finite value.
    pub saturate: bool,
}

impl Cast {
    /// An empty conversion.
    pub const NONE: Cast = {
        let side = Side { first: null_mut(), bits: 8, strides: [0; DIMS] };
        let side = (Kind::Bool, side);
        Cast { src: side, dst: side, dims: Dims::NONE, merge: false, saturate: false }
    };
}

/// Number of one-byte numbers from which a table pays.
const TABLE_FROM: u64 = 1024;

impl Dims {
    /// No dimensions.
    pub const NONE: Dims = Dims { ndim: 0, shape: [1; DIMS] };

    /// Number of numbers (saturating).
    pub fn count(&self) -> u64 {
        let used = self.shape.iter().take(self.ndim);
        used.fold(1, |n: u64, &extent| n.saturating_mul(extent.max(0) as u64))
    }

    /// Adds an innermost dimension, or extends the innermost one if both sides allow it.
    pub fn push(&mut self, extent: i64, sides: [(&mut Side, i64); 2]) {
        let [(a, by_a), (b, by_b)] = sides;
        if extent == 1 && self.ndim > 0 {
            return;
        }
        let last = self.ndim.wrapping_sub(1);
        if let (Some(outer), Some(outer_a), Some(outer_b)) =
            (self.shape.get_mut(last), a.strides.get_mut(last), b.strides.get_mut(last))
        {
            let spans = |outer: i64, inner: i64| inner.checked_mul(extent) == Some(outer);
            let fits = *outer == 1 || (spans(*outer_a, by_a) && spans(*outer_b, by_b));
            if let (Some(merged), true) = (outer.checked_mul(extent), fits) {
                (*outer, *outer_a, *outer_b) = (merged, by_a, by_b);
                return;
            }
        }
        let next = self.ndim;
        if let (Some(shape), Some(to_a), Some(to_b)) =
            (self.shape.get_mut(next), a.strides.get_mut(next), b.strides.get_mut(next))
        {
            (*shape, *to_a, *to_b) = (extent, by_a, by_b);
            self.ndim += 1;
        }
    }
}

/// Converts, on several threads if that pays.
///
/// # Safety
/// Every number is in memory that is readable (source) or writable (destination); source and
/// destination do not overlap; the destination's numbers are distinct.
pub unsafe fn run(cast: &Cast, parallel: &Parallel) -> Result<()> {
    let nbytes = cast.dims.count().saturating_mul(cast.dst.0.nbytes() as u64);
    let parts = cpu::worth(nbytes, parallel);
    let longest = (0..cast.dims.ndim).max_by_key(|&i| cast.dims.shape.get(i));
    let dim = longest.filter(|_| parts > 1 && cast.dst.1.bits >= 8);
    let deal = dim.and_then(|dim| Some((dim, *cast.dims.shape.get(dim)?)));
    // SAFETY: guaranteed by the caller, for parts that share no number, nor a byte of the
    // destination.
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
    for side in [&mut part.src.1, &mut part.dst.1] {
        let stride = side.strides.get(deal.dim).copied().unwrap_or(0);
        side.first = side.first.wrapping_offset((first.wrapping_mul(stride) >> 3) as isize);
    }
    if let Some(extent) = part.dims.shape.get_mut(deal.dim) {
        *extent = deal.each.min(deal.n - first);
        if *extent > 0 {
            // SAFETY: a part of the caller's cast.
            unsafe { alone(&part) };
        }
    }
}

/// Converts on the calling thread.
#[inline(never)]
unsafe fn alone(cast: &Cast) {
    let environment = FloatEnvironment::enter();
    let pipeline = Pipeline::new(cast.src.0, cast.dst.0, cast.saturate);
    // SAFETY: guaranteed by the caller.
    unsafe {
        if !Stage::pays(cast) || !by_stage(cast, &pipeline) {
            direct(cast, &pipeline);
        }
    }
    environment.leave();
}

/// Converts through a staging buffer; false if there is no memory.
#[inline(never)] // a separate frame: stacks may be small
unsafe fn by_stage(cast: &Cast, pipeline: &Pipeline) -> bool {
    let Some(stage) = Stage::new(cast) else { return false };
    // SAFETY: guaranteed by the caller.
    unsafe { stage.convert(&mut |piece| direct(piece, pipeline)) };
    true
}

/// Converts without a staging buffer.
unsafe fn direct(cast: &Cast, pipeline: &Pipeline) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if tabular(cast) {
            tabulated(cast, pipeline);
        } else {
            stepwise(cast, pipeline);
        }
    }
}

/// Whether a table of the source's values pays: not where vectors are as fast.
fn tabular(cast: &Cast) -> bool {
    let wide = match cast.dst.0 {
        Kind::Float(format) => format.width() >= 32,
        _ => true,
    };
    let vectors = simd::vectors() && !cast.src.0.is_float() && wide;
    cast.src.0.nbytes() == 1 && cast.dims.count() >= TABLE_FROM && !vectors
}

#[inline(never)]
unsafe fn tabulated(cast: &Cast, pipeline: &Pipeline) {
    let mut table = Table([0; 2048]);
    pipeline.tabulate(cast.dst.0.nbytes(), &mut table);
    // SAFETY: guaranteed by the caller.
    unsafe { tiles(cast, &mut Way::Table(&table)) }
}

#[inline(never)] // a separate frame, as `tabulated`: stacks may be small
unsafe fn stepwise(cast: &Cast, pipeline: &Pipeline) {
    let mut spares = [Tile::ZERO, Tile::ZERO];
    // SAFETY: guaranteed by the caller.
    unsafe { tiles(cast, &mut Way::Steps(pipeline, &mut spares)) }
}

/// How tiles are converted: by a pipeline, with buffers between its steps, or by a table.
enum Way<'a> {
    Steps(&'a Pipeline, &'a mut [Tile; 2]),
    Table(&'a Table),
}

impl Way<'_> {
    /// Converts `n` numbers, of `nbytes` bytes each in `dst`.
    fn convert(&mut self, src: &[u8], dst: &mut [u8], n: usize, nbytes: usize) {
        match self {
            Way::Table(table) => table.look_up(src, dst, nbytes),
            Way::Steps(pipeline, spares) => pipeline.run(src, dst, n, spares),
        }
    }
}

/// Converts tile by tile.
#[inline(never)]
unsafe fn tiles(cast: &Cast, way: &mut Way) {
    let (mut from, mut to) = (Tile::ZERO, Tile::ZERO);
    let mut src = Cursor::new(&cast.src.1, &cast.dims);
    let mut dst = Cursor::new(&cast.dst.1, &cast.dims);
    let (src_nbytes, dst_nbytes) = (cast.src.0.nbytes(), cast.dst.0.nbytes());
    let mut left = cast.dims.count();
    while left > 0 {
        let n = left.min(TILE as u64) as usize;
        let long = match way {
            Way::Steps(..) if !cast.merge => src.run().min(dst.run()),
            _ => 0,
        };
        // Not both in one pattern: `dense` advances its cursor.
        if long > n
            && let Way::Steps(pipeline, spares) = &mut *way
            && let (Some(from), Some(to)) = (src.dense(long), dst.dense(long))
        {
            // SAFETY: as below; they are contiguous on both sides.
            unsafe {
                let input = core::slice::from_raw_parts(from, long * src_nbytes);
                let output = core::slice::from_raw_parts_mut(to, long * dst_nbytes);
                pipeline.long(input, output, [src_nbytes, dst_nbytes], spares);
            }
            left -= long as u64;
            continue;
        }
        // SAFETY: the next `n` numbers of both sides are the caller's; tiles have room for them,
        // and no number of the destination is one of the source.
        unsafe {
            let read = src.tile(&mut from, n);
            let dense = if cast.merge { None } else { dst.dense(n) };
            let written = dense.unwrap_or(to.0.as_mut_ptr());
            let input = core::slice::from_raw_parts(read, n * src_nbytes);
            let output = core::slice::from_raw_parts_mut(written, n * dst_nbytes);
            way.convert(input, output, n, dst_nbytes);
            if dense.is_none() {
                dst.scatter(written, n, cast.merge);
            }
        }
        left -= n as u64;
    }
}

/// Reads two sides in step, both converted to `kind`, and calls `visit` with their tiles, of
/// `kind`'s bytes per number, until it returns true.
///
/// # Safety
/// Every number of both sides is readable.
#[inline(never)]
pub unsafe fn side_by_side(
    sides: [&(Kind, Side); 2],
    kind: Kind,
    dims: &Dims,
    visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
) {
    let environment = FloatEnvironment::enter();
    let mut tile = Tile::ZERO;
    let mut wide = [Tile::ZERO, Tile::ZERO];
    let mut spares = [Tile::ZERO, Tile::ZERO];
    let mut cursors = sides.map(|(_, side)| Cursor::new(side, dims));
    let pipelines = sides.map(|&(from, _)| Pipeline::new(from, kind, false));
    let mut left = dims.count();
    while left > 0 {
        let n = left.min(TILE as u64) as usize;
        let nbytes = n * kind.nbytes();
        let places = cursors.iter_mut().zip(&mut wide).zip(sides.iter().zip(&pipelines));
        for ((cursor, wide), ((from, _), pipeline)) in places {
            // SAFETY: the next `n` numbers are the caller's; a tile has room for them.
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

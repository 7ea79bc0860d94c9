//! Destination rows: contiguous along the innermost dimension, made piece by piece.
use super::face::{Face, Side};
use super::nest::Stores;
use super::ops::{Ops, Rows};
use super::rows::elements;
use super::step::{Step, Weave};
use super::stream::{Joined, Lined};
use super::transpose::direct;
use super::tuning::tuning;
use super::walk::{set, walk, walk_ahead};
use super::{nest, strided};
use crate::device::{part::Part, plan::Dim};

/// Bytes from a row's end within which the next one begins, if the processor goes on to it.
const GAP: usize = 1024;

/// Copies a plan row by row: `produce(to, from, count)` makes `count` elements of a row. Rows
/// that share source lines are made together.
pub(super) unsafe fn rows(
    ops: &Ops,
    plan: &Part,
    size: usize,
    streams: bool,
    produce: &dyn Fn(*mut u8, *const u8, usize),
) {
    let last = plan.ndim.wrapping_sub(1);
    let near = plan.source_inner().filter(|_| streams || size < tuning().beside);
    let (row, beside) = (plan.inner(), near.map_or(Dim::NONE, |i| plan.dim(i)));
    let (n, ss) = (row.n as usize, row.src as isize);
    let block = if near.is_some() { (16384 / ss.unsigned_abs().max(1)).max(64) } else { n };
    // A source that is read backwards goes on with the row before, where that one follows; or the
    // next row is asked for, all of it.
    let outer = plan.dim(plan.ndim.wrapping_sub(2)).src as isize;
    let whole = streams && from_first(plan);
    let backwards = ss < 0 && outer > 0 && near.is_none() && !whole;
    // There the processor fetches ahead by itself.
    let on = outer.wrapping_sub(n as isize * ss.wrapping_abs()).unsigned_abs() < GAP;
    let asks = streams && near.is_none() && n * size >= 2048 && !on;
    let mut lined = Lined::new(ops, streams);
    let soon = |src_at| {
        if asks || whole {
            ask(ops, plan.src.wrapping_offset(src_at), (n, ss), whole);
        }
    };
    walk_ahead(plan, set(&[Some(last), near]), backwards, soon, |src_at, dst_at| {
        let mut at = 0;
        while at < n {
            let src = plan.src.wrapping_offset(src_at + at as isize * ss);
            let dst = plan.dst.wrapping_offset(dst_at).wrapping_add(at * size);
            let count = piece(dst, size, block, n - at);
            for s in 0..beside.n {
                let src = src.wrapping_offset((s * beside.src) as isize);
                let dst = dst.wrapping_offset((s * beside.dst) as isize);
                let from = |first: usize| src.wrapping_offset(first as isize * ss);
                let mut make = |to, first, count| produce(to, from(first), count);
                // SAFETY: a part of a row of the caller's plan.
                unsafe { lined.run(dst, count, size, &mut make) };
            }
            at += count;
        }
    });
    // SAFETY: the caller's plan.
    unsafe { lined.finish() };
}

/// Whether rows that are read backwards are made in the destination's order past the caches, and
/// the next ones asked for.
pub(super) fn from_first(plan: &Part) -> bool {
    let (Dim { n, src, .. }, outer) = (plan.inner(), plan.dim(plan.ndim.wrapping_sub(2)).src);
    let backwards = src < 0 && outer > 0 && plan.source_inner().is_none();
    backwards && n.saturating_mul(src.saturating_neg()) <= tuning().backwards
}

/// Elements of a row's next piece, of the `left` ones: a block, which ends where a line does, if it
/// can.
fn piece(dst: *mut u8, size: usize, block: usize, left: usize) -> usize {
    if left <= block {
        return left;
    }
    let over = (dst.wrapping_add(block * size) as usize & 63).checked_div(size).unwrap_or(0);
    block - over.min(block - 1)
}

/// Asks for the first lines of a row, which the processor does not foresee; or for as many as the
/// `whole` row has, of what is two kilobytes further on: of short rows, lines are needed soon.
fn ask(ops: &Ops, src: *const u8, (n, stride): (usize, isize), whole: bool) {
    const LINES: usize = 16;
    const AHEAD: isize = 2048;
    let (by, lines) = match whole {
        true => {
            let first = (n as isize).wrapping_sub(1).wrapping_mul(stride);
            (first.wrapping_add(AHEAD), n * stride.unsigned_abs() / 64 + 1)
        }
        false if stride < 0 => (-64 * (LINES as isize - 1), LINES),
        false => (0, LINES),
    };
    // SAFETY: a prefetch touches nothing.
    unsafe { (ops.fetch)(src.wrapping_offset(by), Rows::Apart([0]), 1, lines) };
}

/// Any element size up to a kilobyte, any source stride.
///
/// # Safety
/// As [`super::copy`]; the plan is simplified, and its destination's rows are dense.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn gather(ops: &Ops, plan: &Part, size: usize, streams: bool) {
    let ss = plan.inner().src as isize;
    let stores = if streams || size < 32 { Stores::Plain } else { nest::stores(plan) };
    // SAFETY: parts of the caller's plan; `rows` asks for no more than a row has.
    unsafe {
        rows(ops, plan, size, streams, &|to, from, n| {
            if size >= 64 || matches!(stores, Stores::Asked(_)) {
                let row = Dim { n: n as i64, src: ss as i64, dst: size as i64 };
                return (ops.runs)(size, [&row, &Dim::NONE, &Dim::NONE], from, to, stores);
            }
            strided::line(size, to, from, n, ss, size as isize);
        });
    }
}

/// Long elements, one by one.
///
/// # Safety
/// As [`super::copy`]; the plan is simplified.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn blocks(ops: &Ops, plan: &Part, size: usize, streams: bool) {
    let (last, row) = (plan.ndim.checked_sub(1), plan.inner());
    let mut joined = Joined::new(ops);
    walk(plan, set(&[last]), |src_at, dst_at| {
        let (mut src, mut dst) =
            (plan.src.wrapping_offset(src_at), plan.dst.wrapping_offset(dst_at));
        if streams && row.dst == size as i64 {
            // SAFETY: a row of the caller's plan.
            unsafe { joined.push_all((dst, src), size, row.n as usize, row.src as isize) };
            return;
        }
        for _ in 0..row.n {
            // SAFETY: an element of the caller's plan.
            unsafe {
                if streams {
                    joined.push(dst, src, size);
                } else {
                    core::ptr::copy_nonoverlapping(src, dst, size);
                }
            }
            src = src.wrapping_offset(row.src as isize);
            dst = dst.wrapping_offset(row.dst as isize);
        }
    });
    // SAFETY: the caller's plan.
    unsafe { joined.flush() };
}

/// Every `step`-th element.
///
/// # Safety
/// As [`super::copy`]; the plan is simplified, and its source's innermost stride is `step` times
/// `size` (1, 2, 4, 8).
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn step(ops: &Ops, plan: &Part, size: usize, step: i64, streams: bool) {
    let how = Step::new(size, step as isize);
    // SAFETY: parts of the caller's plan.
    unsafe {
        rows(ops, plan, size, streams, &|to, from, n| how.pick(ops, to, from, n));
    }
}

/// A few planes, the innermost dimension, woven into one run: the two innermost dimensions of
/// the destination together.
///
/// # Safety
/// As [`super::copy`]; the plan is simplified and of the kind that the kernel's name promises.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn interleave(ops: &Ops, plan: &Part, size: usize, streams: bool) {
    let (last, run) = (plan.ndim.wrapping_sub(1), plan.ndim.checked_sub(2));
    let (planes, n) = (plan.inner().n as usize, run.map_or(1, |i| plan.dim(i).n as usize));
    let stride = plan.inner().src as isize;
    // Planes that fill a vector are turned by tiles, fewer are woven, and some more where that was
    // measured to be faster (Zen 3, benches/notes.md).
    let most = if size >= 4 && tuning().reads() { 24 } else { 15 };
    let how = (planes * size <= most).then(|| Weave::new(size, planes));
    let inner = set(&[Some(last), run]);
    if let Some(how) = how.as_ref().filter(|_| !streams) {
        return walk(plan, inner, |src_at, dst_at| {
            let (src, dst) = (plan.src.wrapping_offset(src_at), plan.dst.wrapping_offset(dst_at));
            // SAFETY: the caller's planes and its contiguous destination.
            unsafe { how.weave(ops, dst, src, n, stride) };
        });
    }
    let (mut rows, mut columns) = (Side::new(), Side::new());
    rows.push(planes, stride);
    columns.push(n, (planes * size) as isize);
    let mut lined = Lined::new(ops, streams);
    walk(plan, inner, |src_at, dst_at| {
        let (src, dst) = (plan.src.wrapping_offset(src_at), plan.dst.wrapping_offset(dst_at));
        // SAFETY: the caller's planes and its contiguous destination.
        unsafe {
            lined.run(dst, n, planes * size, &mut |to, first, count| {
                let src = src.wrapping_add(first * size);
                if let Some(how) = &how {
                    return how.weave(ops, to, src, count, stride);
                }
                let sides = (&rows, &columns);
                let face = Face::new((src, to), (planes, count), sides, size.trailing_zeros());
                if count * size >= 16 {
                    return direct(ops, &face);
                }
                elements(&face, size, None);
            });
        }
    });
    // SAFETY: the caller's plan.
    unsafe { lined.finish() };
}

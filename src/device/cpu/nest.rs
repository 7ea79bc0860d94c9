//! Loops alone, nested: where all lies in the caches and no kernel is worth finding.
use super::level::{self, NEST_MOST};
use super::simd::eights;
use super::strided::{any, fixed, hundreds, one, pair, sixties, thirties};
use super::tuning::{LINES, Loops, SECOND, Tuning, tuning};
use super::walk::{set, walk};
use crate::device::{part::Part, plan::Dim};

/// Whether an output of so many bytes is made by a nest of loops over elements or runs of `size`
/// bytes as fast as by any kernel, which takes time to find. Innermost dimension first.
#[inline(always)]
pub fn few(size: i64, nbytes: i64, dims: &[Dim; NEST_DIMS]) -> bool {
    let most = match size {
        0..=3 => 512 * size,
        4..=7 => 4096,
        8 => 8192,
        9..=15 => 16384,
        _ => level::nest_most(NEST_MOST),
    };
    let most = if dims[0].src == 0 { most.min(4096) } else { most };
    nbytes <= most && (nbytes <= 4096 || near(size, nbytes, dims))
}

/// Whether the source's lines are used up while they are in the first-level cache, or near it, if
/// the loops go in the destination's order, innermost dimension first: few lie between neighbours.
#[inline(never)]
fn near(size: i64, nbytes: i64, dims: &[Dim; NEST_DIMS]) -> bool {
    let [smaller, larger] = loops(size);
    let [second, far] = if nbytes <= smaller.0 { smaller.1 } else { larger.1 };
    const SMALL: i64 = 64 << 10;
    // Of those whole pages apart, and parts of pages, the cache holds fewer.
    const CROWDED: i64 = 16;
    let (mut lines, mut between, mut crowded, mut nearest) = (1i64, 1, false, i64::MAX);
    // Bytes of the source that they lie in, and how many share a place in the first-level cache.
    let (mut span, mut reach, mut shared, mut sharing) = (0i64, 0, 1i64, 1);
    let ways = tuning().ways;
    for &Dim { n, src, .. } in dims.iter().filter(|dim| dim.n > 1) {
        let src = src.saturating_abs();
        if src < nearest {
            (nearest, between, reach, sharing) = (src, lines, span, shared);
        }
        crowded |= src & 1023 == 0 && n > CROWDED;
        let some = if src < 64 { n.saturating_mul(src) / 64 + 1 } else { n };
        shared = shared.saturating_mul((some - 1) / places(src) + 1);
        lines = lines.saturating_mul(some);
        span = span.saturating_add(n.saturating_mul(src));
    }
    let large = nbytes > NEST_MOST;
    let crowded = if ways > 0 { sharing > ways } else { crowded };
    let most = match () {
        () if crowded => CROWDED,
        () if large && size > 8 && reach > NEST_MOST => far,
        () if large && size > 8 => second,
        () => LINES,
    };
    let between = if large { between.saturating_mul(size / 64 + 1) } else { between };
    size >= 64 && !large || between <= most || nbytes <= SMALL && !crowded
}

/// Places of the first-level cache that lines so many bytes apart use: fewer, where they are a
/// multiple of two lines or more apart.
fn places(apart: i64) -> i64 {
    const PLACES: i64 = 64;
    if apart & 63 == 0 { PLACES >> (apart / 64).trailing_zeros().min(6) } else { PLACES }
}

/// Outputs of elements or runs of 8 bytes and more that loops alone copy ([`Tuning::sixteens`]).
/// Those that are one register are better off with tables ([`super::tables`]) if they are far away.
fn loops(size: i64) -> [Loops; 2] {
    let Tuning { nested, sixteens, runs, nines, .. } = tuning();
    match size {
        9..=15 => *nines,
        16 => *sixteens,
        ..=8 | 32 | 64 => [(nested.1, [SECOND; 2]); 2],
        17..=1024 => *runs,
        _ => [(NEST_MOST, [SECOND; 2]); 2],
    }
}

/// Dimensions of a nest of loops at most.
pub const NEST_DIMS: usize = 6;

/// Copies elements of `size` bytes, innermost dimension first.
///
/// # Safety
/// All are readable and writable, without overlap.
pub unsafe fn nested(
    size: usize,
    dims: &mut [Dim; NEST_DIMS],
    src: *const u8,
    dst: *mut u8,
    stores: Stores,
) {
    arrange(size as i64, dims);
    let [line, rows, planes, far, farther, farthest] = &*dims;
    if far.n == 1 && farther.n == 1 && farthest.n == 1 {
        // SAFETY: there are no dimensions beyond.
        return unsafe { three(size, [line, rows, planes], src, dst, stores) };
    }
    let mut at = (src, dst);
    for _ in 0..farthest.n {
        let mut outer = at;
        for _ in 0..farther.n {
            let mut inner = outer;
            for _ in 0..far.n {
                // SAFETY: some of the caller's elements.
                unsafe { three(size, [line, rows, planes], inner.0, inner.1, stores) };
                next(&mut inner, far);
            }
            next(&mut outer, farther);
        }
        next(&mut at, farthest);
    }
}

/// In the first-level cache any order will do: a long loop inside is the fastest.
#[inline(always)]
fn arrange(size: i64, dims: &mut [Dim; NEST_DIMS]) {
    const NEAR: i64 = 16 << 10;
    const LONG: i64 = 8;
    let [inner, others @ ..] = dims;
    if inner.n >= LONG || others.iter().all(|dim| dim.n < LONG) {
        return;
    }
    let n = others.iter().fold(inner.n, |n, dim| n.saturating_mul(dim.n));
    if n.saturating_mul(size) <= NEAR {
        for dim in others.iter_mut().filter(|dim| dim.n >= LONG) {
            core::mem::swap(inner, dim);
        }
    }
}

/// One further.
#[inline(always)]
fn next(at: &mut (*const u8, *mut u8), dim: &Dim) {
    *at = (at.0.wrapping_offset(dim.src as isize), at.1.wrapping_offset(dim.dst as isize));
}

/// The three innermost loops of a nest.
///
/// # Safety
/// As [`nested`].
#[inline(never)]
unsafe fn three(size: usize, dims: [&Dim; 3], src: *const u8, dst: *mut u8, stores: Stores) {
    macro_rules! lines {
        ($line:ident :: < $($size:literal),+ > ($($more:expr),*)) => {
            each_line(dims, src, dst, |from, to, n, ss, ds| {
                // SAFETY: a line of the caller's elements.
                unsafe { $line::<$($size),+>($($more,)* to, from, n, ss, ds) }
            })
        };
    }
    match size {
        1 => lines!(twos::<1>()),
        2 => lines!(twos::<2>()),
        3 => lines!(pair::<2, 2>(size)),
        4 => lines!(twos::<4>()),
        5..=7 => lines!(pair::<4, 4>(size)),
        8 => lines!(twos::<8>()),
        9..=15 => lines!(pair::<8, 8>(size)),
        16 => lines!(twos::<16>()),
        17..=31 => lines!(pair::<16, 16>(size)),
        // SAFETY: the caller's elements.
        _ => unsafe { (level::ops().runs)(size, dims, src, dst, stores) },
    }
}

/// As [`three`], of 32 bytes and more: compiled into what has `WIDE` registers, too. Long runs are
/// stored to `whole` parts of lines, if they are to be.
///
/// # Safety
/// As [`nested`].
#[inline(always)]
pub(super) unsafe fn runs<const WIDE: bool>(
    size: usize,
    dims: [&Dim; 3],
    src: *const u8,
    dst: *mut u8,
    whole: bool,
) {
    macro_rules! lines {
        ($line:expr $(, $more:expr)?) => {
            each_line(dims, src, dst, |from, to, n, ss, ds| {
                // SAFETY: a line of the caller's elements.
                unsafe { $line(size, to, from, n, ss, ds $(, $more)?) }
            })
        };
    }
    match size {
        32..=64 => lines!(pair::<32, 32>),
        128..=1024 if WIDE => lines!(hundreds, whole),
        65..=1024 => lines!(sixties),
        _ => lines!(any),
    }
}

/// As [`runs`], by 32 bytes at a time; `ask` is told where each run goes.
///
/// # Safety
/// As [`nested`].
#[inline(always)]
#[allow(dead_code)] // by targets without SIMD kernels
pub(super) unsafe fn runs_asked(
    size: usize,
    dims: [&Dim; 3],
    src: *const u8,
    dst: *mut u8,
    ask: impl Fn(*mut u8),
) {
    each_line(dims, src, dst, |from, to, n, ss, ds| {
        let mut at = (from, to);
        for _ in 0..n {
            ask(at.1);
            // SAFETY: a run of the caller's.
            unsafe { thirties(size, at.1, at.0) };
            at = (at.0.wrapping_offset(ss), at.1.wrapping_offset(ds));
        }
    });
}

/// Whether elements of less than 16 bytes, which could be turned in registers, are better left to
/// loops alone: 8, which take one instruction each; near by those that take four, but are long.
pub(super) fn light(plan: &Part, size: usize) -> bool {
    size == 8 || size >= 11 && plan.whole_bytes() <= NEST_MOST as u64
}

/// How runs are stored.
#[derive(Clone, Copy, PartialEq)]
pub enum Stores {
    /// One after the other.
    Plain,
    /// Their lines are asked for so many bytes ahead.
    Asked(usize),
    /// To whole parts of lines: in the caches, where stores across two lines are what takes time.
    Whole,
}

/// How those of a plan are.
pub(super) fn stores(plan: &Part) -> Stores {
    let (tuning, nbytes) = (tuning(), plan.whole_bytes());
    match tuning.soon {
        _ if tuning.reads() && nbytes < tuning.rows_from => Stores::Whole,
        1.. if nbytes > NEST_MOST as u64 => Stores::Asked(tuning.soon),
        _ => Stores::Plain,
    }
}

/// Elements of 16 bytes in a line beyond which it takes one at a time: one load for each round is
/// up to 1.27 times as fast as four (measured on a Xeon, benches/notes.md; why was not shown).
const FOLLOWED: usize = 256;

/// A line of elements: four at a time where they follow one another in the destination, else two,
/// for more need more addresses than there are registers.
///
/// # Safety
/// As [`nested`].
#[inline(always)]
unsafe fn twos<const SIZE: usize>(dst: *mut u8, src: *const u8, n: usize, ss: isize, ds: isize) {
    let (mut from, mut to) = (src, dst);
    // SAFETY: the caller's elements.
    unsafe {
        if ds == SIZE as isize && SIZE == 16 && n > FOLLOWED {
            for _ in 0..n {
                one::<SIZE>(to, from, (0, 0));
                (from, to) = (from.wrapping_offset(ss), to.wrapping_add(SIZE));
            }
            return;
        }
        if ds == SIZE as isize && SIZE == 8 {
            return beside(dst, src, n, ss);
        }
        if ds == SIZE as isize {
            return fixed::<SIZE>(dst, src, n, ss, SIZE as isize);
        }
        for _ in 0..n / 2 {
            one::<SIZE>(to, from, (0, 0));
            one::<SIZE>(to, from, (ss, ds));
            from = from.wrapping_offset(2 * ss);
            to = to.wrapping_offset(2 * ds);
        }
        if n & 1 == 1 {
            one::<SIZE>(to, from, (0, 0));
        }
    }
}

/// A line of elements of 8 bytes that follow one another in the destination: two with one store.
///
/// # Safety
/// As [`nested`].
#[inline(always)]
unsafe fn beside(dst: *mut u8, src: *const u8, n: usize, ss: isize) {
    let (mut from, mut to) = (src, dst);
    // SAFETY: the caller's elements.
    unsafe {
        for _ in 0..n / 4 {
            let next = from.wrapping_offset(2 * ss);
            eights(to, [from, from.wrapping_offset(ss)]);
            eights(to.wrapping_add(16), [next, next.wrapping_offset(ss)]);
            (from, to) = (next.wrapping_offset(2 * ss), to.wrapping_add(32));
        }
        if n & 2 > 0 {
            eights(to, [from, from.wrapping_offset(ss)]);
            (from, to) = (from.wrapping_offset(2 * ss), to.wrapping_add(16));
        }
        if n & 1 > 0 {
            one::<8>(to, from, (0, 0));
        }
    }
}

/// Calls `line(from, to, n, source stride, destination stride)` for every line.
#[inline(always)]
fn each_line(
    [inner, rows, planes]: [&Dim; 3],
    src: *const u8,
    dst: *mut u8,
    line: impl Fn(*const u8, *mut u8, usize, isize, isize),
) {
    // One by one: what has been written in parts is not read at once.
    let (n, ss, ds) = (inner.n as usize, inner.src as isize, inner.dst as isize);
    let (lines, by_src, by_dst) = (rows.n, rows.src as isize, rows.dst as isize);
    let mut plane = (src, dst);
    for _ in 0..planes.n {
        let (mut from, mut to) = plane;
        for _ in 0..lines {
            line(from, to, n, ss, ds);
            from = from.wrapping_offset(by_src);
            to = to.wrapping_offset(by_dst);
        }
        next(&mut plane, planes);
    }
}

/// The innermost dimensions of a plan, and the set of them.
fn innermost(plan: &Part) -> ([Dim; NEST_DIMS], u64) {
    let (mut dims, mut all) = ([Dim::NONE; NEST_DIMS], 0);
    for (i, dim) in (0..plan.ndim).rev().zip(&mut dims) {
        *dim = plan.dim(i);
        all |= set(&[Some(i)]);
    }
    (dims, all)
}

/// Whether a plan is for a nest of loops, if it has no kernel.
pub(super) fn suits(plan: &Part, size: usize) -> bool {
    let most = match size {
        0..=7 if tuning().nested.0 => i64::MAX,
        0..=2 => 4096,
        3..=7 => 16384,
        _ => loops(size as i64)[1].0,
    };
    fits(plan, size, most)
}

/// Whether the source's lines are used up while they are near, of outputs of so many bytes at most.
#[inline(never)]
pub(super) fn fits(plan: &Part, size: usize, most: i64) -> bool {
    let nbytes = plan.whole_bytes().min(i64::MAX as u64) as i64;
    nbytes <= level::nest_most(most)
        && plan.ndim <= NEST_DIMS
        && near(size as i64, nbytes, &innermost(plan).0)
}

/// Whether few source lines lie between neighbours, and these near one another, so that processors
/// fetch ahead by themselves.
#[inline(never)]
pub(super) fn compact(plan: &Part) -> bool {
    const LINES: i64 = 10;
    const NEAR: i64 = 16 << 10;
    let (mut lines, mut span) = (1i64, 0i64);
    for &Dim { n, src, .. } in innermost(plan).0.iter().filter(|dim| dim.n > 1) {
        let src = src.saturating_abs();
        if src <= 16 {
            let few = lines > 1 && lines <= LINES;
            return few && span <= NEAR && plan.ndim <= NEST_DIMS;
        }
        lines = lines.saturating_mul(n);
        span = span.saturating_add(src.saturating_mul(n));
    }
    false
}

/// Whether elements that follow one another in the destination are pixels apart in the source, of
/// which each has few, so that all lines of the source are used up while they are near.
pub(super) fn scans(plan: &Part, size: usize) -> bool {
    const PIXEL: i64 = 64;
    let (inner, size) = (plan.inner(), size as i64);
    let beside = plan.source_inner().map_or(Dim::NONE, |i| plan.dim(i));
    let (pixel, most) = (inner.src.abs(), if size < 16 { PIXEL - 1 } else { 4 * PIXEL });
    let near = beside.src == size && beside.n * size <= pixel && pixel <= most;
    near && inner.dst == size && plan.ndim <= NEST_DIMS
}

/// Copies a plan.
///
/// # Safety
/// As [`super::copy`]; the plan is simplified.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(plan: &Part, size: usize) {
    let ((mut inner, all), stores) = (innermost(plan), stores(plan));
    walk(plan, all, |src_at, dst_at| {
        let (src, dst) = (plan.src.wrapping_offset(src_at), plan.dst.wrapping_offset(dst_at));
        // SAFETY: elements of the caller's plan.
        unsafe { nested(size, &mut inner, src, dst, stores) }
    });
}

//! Elements of up to 80 bytes in any order: two tables of offsets in place of loops. One holds the
//! innermost dimensions of the destination, the other those of the source: lines on both sides are
//! used up while they are in the cache.
use super::strided::{fixed, one, pair};
use super::touch;
use super::walk::walk;
use crate::array::Array;
use crate::device::part::Part;
use crate::device::plan::Dim;

/// Offsets in a table at most; two tables are 4 KiB.
const MOST: usize = 128;

/// What a table covers on its side at most, in bytes, if its elements are not tiny: up to 8 bytes
/// of them, and more.
const REACH: [usize; 2] = [256, 512];

/// Elements of a run that are copied by themselves, at least.
const SHORT: usize = 8;

/// Lines that a place in the first-level cache has room for.
const WAYS: usize = 8;

/// The offsets of every index of some dimensions, in source and destination.
struct Table {
    at: Array<(isize, isize), MOST>,
    n: usize,
    most: usize,
    /// The dimension of which each table has only a part, and how much of it.
    part: Option<(usize, usize)>,
    /// The only dimension.
    line: Dim,
    /// The first dimension, in whole.
    first: Dim,
    /// How many elements are one run of the destination, over and over.
    run: usize,
    size: usize,
    dims: u64,
}

impl Table {
    #[inline(always)]
    fn new(size: usize) -> Table {
        let reach = REACH[usize::from(size > 8)];
        let most = reach.checked_div(size).unwrap_or(0).clamp(16, MOST);
        let (line, first) = (Dim::NONE, Dim::NONE);
        let mut at = Array::new();
        at.push((0, 0));
        Table { at, n: 1, most, part: None, line, first, run: 1, size, dims: 0 }
    }

    /// Adds dimension `i` outside those already there, or as much of it as there is room for.
    fn add(&mut self, i: usize, dim: Dim) {
        let n = self.n;
        // Lines of rows that are whole pages apart share one place in the first-level cache.
        if (9..=16).contains(&self.size) && self.dims == 0 && dim.src != 0 && dim.src % 4096 == 0 {
            self.most = WAYS;
        }
        let room = self.most.checked_div(n).unwrap_or(0);
        // Little is left for another table of a dimension that is a little longer.
        let whole = self.size > 16 && dim.n as usize <= room + room / 2;
        let count = if whole { dim.n as usize } else { room.min(dim.n as usize) };
        if count < dim.n as usize {
            self.part = Some((i, count));
        }
        for to in n..(n * count).min(MOST) {
            let Some(&(src, dst)) = self.at.get(to - n) else { return };
            self.at.push((src + dim.src as isize, dst + dim.dst as isize));
        }
        self.first = if self.dims == 0 { dim } else { self.first };
        if self.run == n && dim.dst == (self.size * n) as i64 {
            self.run = n * count;
        }
        self.line = if self.dims == 0 { Dim { n: count as i64, ..dim } } else { Dim::NONE };
        (self.n, self.dims) = (n * count, self.dims | 1 << (i & 63));
    }

    /// Whether nothing can be added.
    fn full(&self) -> bool {
        self.part.is_some() || 2 * self.n > self.most
    }
}

/// The two tables of a plan: the destination's, and the source's.
fn tables(plan: &Part, size: usize, inner: &mut Table, outer: &mut Table) {
    let last = plan.ndim.wrapping_sub(1);
    let mut crowded = false;
    loop {
        let free = |i: &usize| (inner.dims | outer.dims) >> (i & 63) & 1 == 0;
        // Of large elements only those that follow one another: others are in pages of their own.
        let next =
            |n: usize, by: i64| size <= 16 || n == 1 || by.unsigned_abs() == (n * size) as u64;
        let below = (0..plan.ndim).rev().find(free).filter(|_| !inner.full() && !crowded);
        let below = below.filter(|&i| next(inner.n, plan.dim(i).dst));
        let dense = |i: &usize| plan.dim(*i).src != 0 && (*i != last || plan.ndim == 1);
        let near = (0..plan.ndim).filter(free).filter(dense);
        let near = near.min_by_key(|&i| plan.dim(i).src.unsigned_abs()).filter(|_| !outer.full());
        let near = near.filter(|&i| next(outer.n, plan.dim(i).src));
        match (below, near) {
            (Some(i), near) if inner.n <= outer.n || near.is_none() => {
                inner.add(i, plan.dim(i));
                // Source lines that are whole pages apart share one place in the caches.
                crowded = inner.n * size >= 64 && plan.dim(i).src % 4096 == 0;
            }
            (_, Some(i)) => outer.add(i, plan.dim(i)),
            _ => return,
        }
    }
}

/// What copies blocks of elements of `size` bytes.
fn block(size: usize) -> Block {
    match size {
        1 => block_of::<1, 1>,
        2 => block_of::<2, 1>,
        3..=4 => block_of::<4, 2>,
        5..=8 => block_of::<8, 4>,
        9..=16 => block_of::<16, 8>,
        17..=32 => block_of::<32, 16>,
        33..=64 => block_of::<64, 32>,
        _ => block_of::<80, 40>,
    }
}

/// Copies a simplified plan of elements of 1 to 80 bytes.
///
/// # Safety
/// As [`super::copy`].
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(plan: &Part, size: usize) {
    let mut inner = Table::new(size);
    let mut outer = Table::new(size);
    tables(plan, size, &mut inner, &mut outer);
    let block = block(size);
    let dim = |part: Option<(usize, usize)>| part.map_or(Dim::NONE, |(i, _)| plan.dim(i));
    let (a, b) = (dim(inner.part), dim(outer.part));
    let step = |part: Option<(usize, usize)>| part.map_or(1, |(_, n)| n as i64).max(1);
    let (by_a, by_b) = (step(inner.part), step(outer.part));
    let each = |n: usize, by: i64| n.checked_div(by as usize).unwrap_or(n);
    let (each_a, each_b) = (each(inner.n, by_a), each(outer.n, by_b));
    let (line, first, many) = (inner.line, outer.first, touch::short(plan, size));
    walk(plan, inner.dims | outer.dims, |src_at, dst_at| {
        let mut i = 0;
        while i < a.n {
            inner.n = each_a * (a.n - i).min(by_a) as usize;
            inner.line.n = line.n.min(inner.n as i64);
            let mut j = 0;
            while j < b.n {
                outer.n = each_b * (b.n - j).min(by_b) as usize;
                // What is cut is the first dimension, or that has one extent.
                outer.first.n = (first.n - if each_b == 1 { j } else { 0 }).max(1);
                let src_at = src_at + (i * a.src + j * b.src) as isize;
                let dst_at = dst_at + (i * a.dst + j * b.dst) as isize;
                let src = plan.src.wrapping_offset(src_at);
                let dst = plan.dst.wrapping_offset(dst_at);
                // SAFETY: elements of the caller's plan.
                unsafe {
                    touched(src, (size, many), &inner, &outer);
                    block(dst, src, size, &inner, &outer);
                }
                j += by_b;
            }
            i += by_a;
        }
    });
}

/// Reads what a block needs of its source rows, if these are many and long.
///
/// # Safety
/// As [`block_of`].
unsafe fn touched(src: *const u8, (size, most): (usize, usize), inner: &Table, outer: &Table) {
    const MANY: usize = 17;
    const LONG: usize = 128;
    let run = outer.n.min(outer.first.n as usize).max(1);
    if most == 0 || outer.first.src != size as i64 || run * size < LONG || inner.n < MANY {
        return;
    }
    let rows = inner.at.get(..inner.n).unwrap_or(&[]);
    let mut at = 0;
    while at < outer.n {
        let src = src.wrapping_offset(outer.at.get(at).map_or(0, |&(from, _)| from));
        // SAFETY: the caller's elements.
        unsafe {
            touch::read(src, (rows.len(), size), (run, 0, run), &|i| {
                rows.get(i).map_or(0, |r| r.0)
            });
        }
        at += run;
    }
}

/// See [`block_of`].
type Block = unsafe fn(*mut u8, *const u8, usize, &Table, &Table);

/// Copies the elements at the offsets of both tables. `W` bytes at a time, of which the next
/// element overwrites those too many, where the next one is in the same run on both sides; else
/// two times `V` bytes, which may overlap.
///
/// # Safety
/// They are readable and writable, without overlap; `size` is more than `W` / 2 and at most `W`.
unsafe fn block_of<const W: usize, const V: usize>(
    dst: *mut u8,
    src: *const u8,
    size: usize,
    inner: &Table,
    outer: &Table,
) {
    let at = inner.at.get(..inner.n).unwrap_or(&[]);
    let Dim { n, src: ss, dst: ds } = inner.line;
    let (n, ss, ds) = (n as usize, ss as isize, ds as isize);
    let next = outer.first.src == size as i64;
    // Runs that are short are not worth a loop of their own.
    let run = match inner.run {
        _ if size == W => usize::MAX,
        run if run >= SHORT || run >= inner.n => run,
        _ => 1,
    };
    let mut left = outer.first.n;
    for &(from, to) in outer.at.iter().take(outer.n) {
        let (src, dst) = (src.wrapping_offset(from), dst.wrapping_offset(to));
        left = if left == 0 { outer.first.n - 1 } else { left - 1 };
        let wide = run > 1 && (size == W || next && left > 0);
        // The last element of a run is written exactly.
        let count = |n: usize| if wide { n - usize::from(size != W) } else { 0 };
        // SAFETY: the caller's elements.
        unsafe {
            if n > 1 {
                let count = count(n);
                fixed::<W>(dst, src, count, ss, ds);
                let rest = count as isize;
                let (src, dst) = (src.wrapping_offset(rest * ss), dst.wrapping_offset(rest * ds));
                pair::<V, V>(size, dst, src, n - count, ss, ds);
                continue;
            }
            for run in at.chunks(if wide { run } else { at.len().max(1) }) {
                listed::<W, V>(dst, src, size, run, count(run.len()));
            }
        }
    }
}

/// Elements at places of a table, of which the first `count` are copied `W` bytes at a time.
///
/// # Safety
/// As [`block_of`].
#[inline(always)] // its callers' loops are short
unsafe fn listed<const W: usize, const V: usize>(
    dst: *mut u8,
    src: *const u8,
    size: usize,
    at: &[(isize, isize)],
    count: usize,
) {
    let (wide, exact) = at.split_at_checked(count).unwrap_or_default();
    let (fours, rest) = if W > 16 { (&[][..], wide) } else { wide.as_chunks::<4>() };
    // SAFETY: the caller's elements.
    unsafe {
        for &[a, b, c, d] in fours {
            one::<W>(dst, src, a);
            one::<W>(dst, src, b);
            one::<W>(dst, src, c);
            one::<W>(dst, src, d);
        }
        for &at in rest {
            one::<W>(dst, src, at);
        }
        for &(from, to) in exact {
            let (src, dst) = (src.wrapping_offset(from), dst.wrapping_offset(to));
            pair::<V, V>(size, dst, src, 1, 0, 0);
        }
    }
}

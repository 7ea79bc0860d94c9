//! Shuffles: a short period of bytes in any order. A program lists the source windows of each cache
//! line of the destination's period, and the position of each byte. One loop executes any program:
//! load windows, permute pairs of them, combine.
use crate::vector::{LINE, Vector};

/// The byte of an [`Index`] that selects no byte.
pub const NONE: u8 = 0x80;

/// A window of the source: its offset for each 16 bytes of the line. With windows of a whole line,
/// the offsets are equal.
#[derive(Clone, Copy, PartialEq)]
pub struct Window {
    pub offsets: [isize; 4],
}

/// Byte `i` selects byte `i` of a line from two consecutive windows (of its lane), or [`NONE`]: it
/// comes from another pair.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub struct Index(pub [u8; LINE]);

/// A cache line of the destination.
#[derive(Clone, Copy)]
pub struct Line {
    /// Its offset in the period.
    pub dst: isize,
    /// A mask of the bytes that are written.
    pub mask: u64,
    /// The first of its indexes: one for every two windows of its group.
    pub index: usize,
}

/// Lines made of the same windows.
#[derive(Clone, Copy)]
pub struct Group {
    /// The first window.
    pub window: usize,
    /// Number of them.
    pub windows: usize,
    /// The first line.
    pub line: usize,
    /// Number of them.
    pub lines: usize,
}

/// The work of one period, and the strides of periods.
#[derive(Clone, Copy)]
pub struct Program<'a> {
    /// Lines that share windows.
    pub groups: &'a [Group],
    /// Lines of the destination's period.
    pub lines: &'a [Line],
    /// The windows that are loaded.
    pub windows: &'a [Window],
    /// The indexes of the permutations.
    pub indexes: &'a [Index],
    /// Offsets that are prefetched per period.
    pub soon: &'a [isize],
    /// Bytes from one period to the next in the source.
    pub by_src: isize,
    /// Bytes from one period to the next in the destination.
    pub by_dst: isize,
    /// Whether some bytes of its lines are not written: only with windows of a line.
    pub gaps: bool,
    /// Bytes from the first period of this run to that of the next, which is prefetched at the end
    /// of this one; 0: none.
    pub next: isize,
}

/// Bytes of periods that are executed group by group: their data stays in L1. Also the prefetch
/// distance.
const BLOCK: usize = 8192;

/// How lines are written.
#[derive(Clone, Copy)]
enum Store {
    Plain,
    Stream,
    /// Only the bytes of a line's mask.
    Some,
}

impl Store {
    #[inline(always)]
    unsafe fn put<V: Vector>(self, all: V, to: *mut u8, line: u64, k: usize) {
        // SAFETY: bytes that are stored are writable; `to` is aligned for streams.
        unsafe {
            match self {
                // Only where it is fast: programs with gaps have windows of a line.
                Store::Some if V::WINDOW == LINE => all.store_some(to, line >> (k * V::BYTES)),
                Store::Stream => all.stream(to),
                _ => all.store(to),
            }
        }
    }
}

/// The part of a run for one group.
#[derive(Clone, Copy)]
struct Part<'a> {
    src: *const u8,
    dst: *mut u8,
    /// Number of periods.
    n: usize,
    by_src: isize,
    by_dst: isize,
    store: Store,
    /// Prefetch offsets per period, and their base address.
    soon: &'a [isize],
    ahead: isize,
}

#[inline(always)]
pub(crate) unsafe fn run<V: Vector, const K: usize>(
    program: &Program,
    src: *const u8,
    dst: *mut u8,
    n: usize,
    stream: bool,
) {
    let groups = program.groups.len();
    let by_src = program.by_src.unsigned_abs();
    let span = (program.lines.len() * LINE).max(by_src).max(1);
    let block = (BLOCK / span).max(1);
    let share = if groups > 1 { program.soon.len().div_ceil(groups) } else { program.soon.len() };
    let mut at = 0;
    while at < n {
        let left = n - at;
        let last = left <= block;
        // A single group needs no blocks until its prefetches reach the next run.
        let count = match (last, groups) {
            (true, _) => left,
            (_, 1) => left - block,
            _ => block,
        };
        let by = at as isize * program.by_src;
        let ahead =
            if last { program.next.wrapping_sub(by) } else { block as isize * program.by_src };
        let part = Part {
            src: src.wrapping_offset(by),
            dst: dst.wrapping_offset(at as isize * program.by_dst),
            n: count,
            by_src: program.by_src,
            by_dst: program.by_dst,
            store: match (stream, program.gaps) {
                (_, true) => Store::Some,
                (true, _) => Store::Stream,
                _ => Store::Plain,
            },
            soon: &[],
            ahead,
        };
        let mut soon = if last && program.next == 0 { &[] } else { program.soon };
        let mut i = 0;
        while i < groups {
            let (mine, rest) = soon.split_at_checked(share).unwrap_or((soon, &[]));
            soon = rest;
            // SAFETY: `i` is less than the groups; the part's periods are readable, and their
            // destination writable.
            unsafe {
                let group = program.groups.get_unchecked(i);
                let part = Part { soon: mine, ..part };
                match (group.windows, group.lines) {
                    (1, 1) => lines::<V, 1, 1, K>(program, group, part),
                    (2, 1) => lines::<V, 2, 1, K>(program, group, part),
                    (3, 1) => lines::<V, 3, 1, K>(program, group, part),
                    (4, 1) => lines::<V, 4, 1, K>(program, group, part),
                    (2, 2) => lines::<V, 2, 2, K>(program, group, part),
                    (3, 3) => lines::<V, 3, 3, K>(program, group, part),
                    (4, 4) => lines::<V, 4, 4, K>(program, group, part),
                    _ => any::<V, K>(program, group, part),
                }
            }
            i += 1;
        }
        at += count;
    }
}

#[inline(always)]
unsafe fn prefetch<V: Vector>(part: &Part, from: *const u8) {
    let from = from.wrapping_offset(part.ahead);
    let mut i = 0;
    while i < part.soon.len() {
        // SAFETY: `i` is in range; a prefetch of any address is harmless.
        unsafe { V::prefetch_near(from.wrapping_offset(*part.soon.get_unchecked(i))) };
        i += 1;
    }
}

/// Loads vector `k` of window `w` of a group.
#[inline(always)]
unsafe fn load<V: Vector>(windows: *const Window, w: usize, k: usize, from: *const u8) -> V {
    // SAFETY: `w` is one of a group's windows, each of which lies in readable memory.
    unsafe {
        let offsets = (*windows.add(w)).offsets.as_ptr();
        V::load_windows(from, offsets.add(k * V::BYTES / 16))
    }
}

/// Makes `G` lines of `N` windows, with windows and indexes in registers if these suffice.
#[inline(always)]
unsafe fn lines<V: Vector, const N: usize, const G: usize, const K: usize>(
    program: &Program,
    group: &Group,
    part: Part,
) {
    // SAFETY: a group's windows, lines and indexes are in the program; its windows are readable,
    // its lines writable. Array indexes are below the constants.
    unsafe {
        let windows = program.windows.as_ptr().add(group.window);
        let line = program.lines.as_ptr().add(group.line);
        let indexes = program.indexes.as_ptr();
        // A copy, since stores could alias memory behind a pointer.
        let mut at = [*windows; 4];
        let mut w = 1;
        while w < N {
            at[w] = *windows.add(w);
            w += 1;
        }
        let mut index = [[[V::load(indexes.cast()); 2]; G]; K];
        let (mut to, mut masks) = ([part.dst; G], [u64::MAX; G]);
        let mut g = 0;
        while g < G {
            let mut k = 0;
            while k < K {
                let mut pair = 0;
                while pair < N.div_ceil(2) {
                    let bytes = (*indexes.add((*line.add(g)).index + pair)).0.as_ptr();
                    index[k][g][pair] = V::load(bytes.add(k * V::BYTES));
                    pair += 1;
                }
                k += 1;
            }
            to[g] = part.dst.wrapping_offset((*line.add(g)).dst);
            masks[g] = (*line.add(g)).mask;
            g += 1;
        }
        let (mut from, mut i) = (part.src, 0);
        while i < part.n {
            prefetch::<V>(&part, from);
            let mut k = 0;
            while k < K {
                let mut window = [load::<V>(&at[0], 0, k, from); 4];
                let mut w = 1;
                while w < N {
                    window[w] = load::<V>(&at[w], 0, k, from);
                    w += 1;
                }
                let mut g = 0;
                while g < G {
                    let [first, second] = index[k][g];
                    let mut all = match N {
                        1 => window[0].permute(first),
                        _ => window[0].permute2(window[1], first),
                    };
                    if N == 3 {
                        all = window[2].permute(second).over(all, second);
                    }
                    if N == 4 {
                        all = window[2].permute2(window[3], second).over(all, second);
                    }
                    part.store.put(all, to[g].wrapping_add(k * V::BYTES), masks[g], k);
                    g += 1;
                }
                k += 1;
            }
            let mut g = 0;
            while g < G {
                to[g] = to[g].wrapping_offset(part.by_dst);
                g += 1;
            }
            from = from.wrapping_offset(part.by_src);
            i += 1;
        }
    }
}

/// Makes any number of lines of any number of windows.
#[inline(always)]
unsafe fn any<V: Vector, const K: usize>(program: &Program, group: &Group, part: Part) {
    // SAFETY: a group's windows, lines and indexes are in the program; its windows are readable,
    // its lines writable. `g`, the windows and pairs are within the group's counts.
    unsafe {
        let windows = program.windows.as_ptr().add(group.window);
        let (mut from, mut to, mut i) = (part.src, part.dst, 0);
        while i < part.n {
            prefetch::<V>(&part, from);
            let mut g = 0;
            while g < group.lines {
                let line = &*program.lines.as_ptr().add(group.line + g);
                let mut k = 0;
                while k < K {
                    let index = |pair: usize| {
                        let bytes = (*program.indexes.as_ptr().add(line.index + pair)).0.as_ptr();
                        V::load(bytes.add(k * V::BYTES))
                    };
                    let one = load::<V>(windows, 0, k, from);
                    let mut all = if group.windows > 1 {
                        one.permute2(load::<V>(windows, 1, k, from), index(0))
                    } else {
                        one.permute(index(0))
                    };
                    let mut w = 2;
                    while w < group.windows {
                        let (one, index) = (load::<V>(windows, w, k, from), index(w / 2));
                        let pair = if w + 1 < group.windows {
                            one.permute2(load::<V>(windows, w + 1, k, from), index)
                        } else {
                            one.permute(index)
                        };
                        all = pair.over(all, index);
                        w += 2;
                    }
                    let to = to.wrapping_offset(line.dst).wrapping_add(k * V::BYTES);
                    part.store.put(all, to, line.mask, k);
                    k += 1;
                }
                g += 1;
            }
            from = from.wrapping_offset(part.by_src);
            to = to.wrapping_offset(part.by_dst);
            i += 1;
        }
    }
}

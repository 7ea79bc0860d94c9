//! Compiles shuffle programs: from the loops of one period, it computes the source windows of each
//! line of the destination, and the position of each byte in them. It does so item by item, since
//! it must pay for outputs of a few cache lines.
use core::mem::MaybeUninit;

use crate::shuffle::{Group, Index, Line, NONE, Program, Window};
use crate::vector::LINE;

/// Maximum bytes of the destination in a period, with all parallel destinations.
pub const BYTES_MOST: usize = 1024;
/// Windows per line (per lane) beyond which the scalar copy is as fast.
const WINDOWS_PER_LINE: usize = 12;
/// Maximum gap between bytes that are read: a page less a window, so that every page in the range
/// holds one of them.
pub const GAP: isize = 4096 - 64;

/// Maximum bytes of the source in a period, so that offsets fit an `i32`.
const REACH_MOST: usize = 1 << 30;
/// Stands for the source of a byte that is not written.
const HOLE: i32 = i32::MAX;

/// A loop over items of a period: extent, and source stride.
#[derive(Clone, Copy)]
pub struct Steps {
    /// Extent.
    pub n: usize,
    /// Bytes from one item to the next in the source.
    pub src: isize,
}

/// One period of a program: the destination is dense over all loops except for `gap`.
#[derive(Clone, Copy)]
pub struct Period {
    /// Bytes of an item.
    pub item: usize,
    /// Loops, innermost first.
    pub loops: [Steps; 4],
    /// Bytes of the destination after each iteration of the outermost loop that are not written.
    pub gap: usize,
    /// Parallel destinations from the same part of the source: their number, and their stride in
    /// the source.
    pub beside: Steps,
    /// Their stride in the destination.
    pub beside_dst: isize,
    /// Whether prefetch offsets are recorded.
    pub prefetch: bool,
}

/// A list of at most `N` items, in place.
struct List<T, const N: usize> {
    items: [MaybeUninit<T>; N],
    len: usize,
}

impl<T: Copy, const N: usize> List<T, N> {
    #[inline(always)]
    const fn new() -> Self {
        List { items: [const { MaybeUninit::uninit() }; N], len: 0 }
    }

    #[inline(always)]
    fn push(&mut self, one: T) -> Option<()> {
        self.items.get_mut(self.len)?.write(one);
        self.len += 1;
        Some(())
    }

    #[inline(always)]
    fn all(&self) -> &[T] {
        // SAFETY: `push` has written the first `len`, at most `N`.
        unsafe { core::slice::from_raw_parts(self.items.as_ptr().cast(), self.len) }
    }

    #[inline(always)]
    fn all_mut(&mut self) -> &mut [T] {
        // SAFETY: `push` has written the first `len`, at most `N`; `self` is borrowed for the
        // change.
        unsafe { core::slice::from_raw_parts_mut(self.items.as_mut_ptr().cast(), self.len) }
    }
}

/// A region of the source without a gap of a page: its first and last byte.
#[derive(Clone, Copy)]
struct Region {
    low: isize,
    high: isize,
}

impl Region {
    fn near(&self, other: &Region) -> bool {
        other.low <= self.high + GAP && self.low <= other.high + GAP
    }

    fn with(&self, other: &Region) -> Region {
        Region { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    fn moved(&self, by: isize) -> Region {
        Region { low: self.low + by, high: self.high + by }
    }
}

/// Offsets of the windows of one lane of a line, ascending.
#[derive(Clone, Copy)]
struct Starts {
    at: [i32; WINDOWS_PER_LINE],
    n: usize,
}

/// A program, and the storage of its parts.
pub struct Made {
    groups: List<Group, { BYTES_MOST / LINE }>,
    lines: List<Line, { BYTES_MOST / LINE }>,
    compact: List<Line, { BYTES_MOST / LINE }>,
    windows: List<Window, 64>,
    indexes: List<Index, 40>,
    soon: List<isize, 96>,
    /// The source offset of each byte of the period.
    from: List<i32, BYTES_MOST>,
    regions: List<Region, 16>,
    /// The windows of the current line, per lane, and the number of indexes per line.
    lanes: [Starts; 4],
    pairs: usize,
}

impl Made {
    /// No program.
    #[inline(always)]
    pub const fn new() -> Made {
        Made {
            groups: List::new(),
            lines: List::new(),
            compact: List::new(),
            windows: List::new(),
            indexes: List::new(),
            soon: List::new(),
            from: List::new(),
            regions: List::new(),
            lanes: [Starts { at: [0; WINDOWS_PER_LINE], n: 0 }; 4],
            pairs: 0,
        }
    }

    /// The program of one period; periods are `by_src` and `by_dst` bytes apart.
    #[inline(always)]
    pub fn program(&self, by_src: isize, by_dst: isize, gaps: bool, next: isize) -> Program<'_> {
        Program {
            groups: self.groups.all(),
            lines: self.lines.all(),
            windows: self.windows.all(),
            indexes: self.indexes.all(),
            soon: self.soon.all(),
            by_src,
            by_dst,
            gaps,
            next,
        }
    }

    /// The lines of the program with contiguous destinations: for one period in a buffer.
    #[inline(always)]
    pub fn compact(&self) -> &[Line] {
        self.compact.all()
    }

    /// Compiles the program of a period whose destination is whole lines, for windows of so many
    /// bytes. None if it needs too many windows, or one beyond the bytes that are read.
    #[inline(never)]
    pub fn make(&mut self, period: &Period, window: usize) -> Option<()> {
        self.bytes(period)?;
        self.regions(period)?;
        let mut at = 0;
        while at < self.from.len {
            self.line(period, window, at)?;
            at += LINE;
        }
        Some(())
    }

    /// Records the source offsets of all bytes.
    #[inline(always)]
    fn bytes(&mut self, period: &Period) -> Option<()> {
        let [a, b, c, d] = period.loops;
        let reach = period.loops.iter().fold(0usize, |reach, one| {
            reach.saturating_add(one.src.unsigned_abs().saturating_mul(one.n.saturating_sub(1)))
        });
        if reach > REACH_MOST {
            return None;
        }
        // A local counter: `len` would be stored to memory for each byte.
        let mut n = 0;
        for l in 0..d.n as isize {
            for k in 0..c.n as isize {
                for j in 0..b.n as isize {
                    let mut at = (l * d.src + k * c.src + j * b.src) as i32;
                    for _ in 0..a.n {
                        for byte in 0..period.item as i32 {
                            self.from.items.get_mut(n)?.write(at + byte);
                            n += 1;
                        }
                        at += a.src as i32;
                    }
                }
            }
            for _ in 0..period.gap {
                self.from.items.get_mut(n)?.write(HOLE);
                n += 1;
            }
        }
        self.from.len = n;
        Some(())
    }

    /// Records the regions that are read, for all parallel destinations.
    #[inline(always)]
    fn regions(&mut self, period: &Period) -> Option<()> {
        let [a, b, c, d] = period.loops;
        self.regions.push(Region { low: 0, high: period.item as isize - 1 })?;
        for one in [period.beside, a, b, c, d] {
            for i in 0..self.regions.len {
                let region = self.regions.all_mut().get_mut(i)?;
                let (first, last) = (*region, region.moved(one.src * (one.n as isize - 1)));
                if first.near(&first.moved(one.src)) {
                    *region = first.with(&last);
                } else {
                    for k in 1..one.n as isize {
                        self.regions.push(first.moved(k * one.src))?;
                    }
                }
            }
        }
        // Merges regions that overlap now.
        let mut i = 0;
        while let Some((&last, rest)) = self.regions.all().split_last() {
            let Some(&one) = rest.get(i) else { break };
            i += 1;
            if last.near(&one) {
                *self.regions.all_mut().get_mut(i - 1)? = last.with(&one);
                self.regions.len -= 1;
                i = 0;
            }
        }
        if period.prefetch {
            for region in self.regions.all() {
                let mut at = region.low;
                // Lines that do not fit the list are not prefetched.
                while at <= region.high && self.soon.push(at).is_some() {
                    at += LINE as isize;
                }
            }
        }
        Some(())
    }

    /// Adds the windows and indexes of the line at byte `at` of the period, for all parallel
    /// destinations.
    #[inline(always)]
    fn line(&mut self, period: &Period, window: usize, at: usize) -> Option<()> {
        let line: [i32; LINE] = *self.from.all().get(at..)?.first_chunk()?;
        let mut mask = 0;
        for (i, &from) in line.iter().enumerate() {
            mask |= u64::from(from != HOLE) << i;
        }
        if mask == 0 {
            return Some(());
        }
        // Reuses the previous line's windows if they hold all bytes of this one.
        let (lines, windows) = (self.lines.len, self.windows.len);
        if lines > 0 && self.indexes(period, window, at, &line, mask).is_some() {
            self.groups.all_mut().last_mut()?.lines += self.lines.len - lines;
            return Some(());
        }
        self.lines.len = lines;
        self.compact.len = lines;
        let (mut byte, mut n) = (0, 0);
        for lane in 0..LINE.checked_div(window)? {
            let mut starts = Starts { at: [0; WINDOWS_PER_LINE], n: 0 };
            self.starts(period, line.get(byte..byte + window)?, &mut starts)?;
            n = starts.n.max(n);
            *self.lanes.get_mut(lane)? = starts;
            byte += window;
        }
        for w in 0..n {
            let mut offsets = [0; 4];
            for (lane, offset) in offsets.iter_mut().enumerate() {
                let starts = self.lanes.get((lane * 16).checked_div(window)?)?;
                // A lane that needs no further window loads its first one again.
                let w = if w < starts.n { w } else { 0 };
                *offset = *starts.at.get(w)? as isize;
            }
            self.windows.push(Window { offsets })?;
        }
        self.indexes(period, window, at, &line, mask)?;
        let group = Group { window: windows, windows: n, line: lines, lines: period.beside.n };
        self.groups.push(group)
    }

    /// Adds the indexes of a line for all parallel destinations, if the windows hold all of their
    /// bytes.
    #[inline(never)]
    fn indexes(
        &mut self,
        period: &Period,
        window: usize,
        at: usize,
        line: &[i32; LINE],
        mask: u64,
    ) -> Option<()> {
        let n = self.lanes.iter().map(|lane| lane.n).max()?;
        for beside in 0..period.beside.n {
            let index = self.lines.all().last().map_or(0, |line| line.index + self.pairs);
            self.indexes.len = index;
            self.pairs = n.div_ceil(2);
            for _ in 0..self.pairs {
                self.indexes.push(Index([NONE; LINE]))?;
            }
            let shift = beside as i32 * period.beside.src as i32;
            let indexes = self.indexes.all_mut().get_mut(index..)?;
            let mut byte = 0;
            for starts in self.lanes.iter().take(LINE.checked_div(window)?) {
                fill(indexes, line, byte, shift, window as i32, starts)?;
                byte += window;
            }
            let dst = beside as isize * period.beside_dst + at as isize;
            self.lines.push(Line { dst, mask, index })?;
            self.compact.push(Line { dst: (beside * self.from.len + at) as isize, mask, index })?;
        }
        Some(())
    }

    /// The fewest windows that hold the bytes of a lane for all parallel destinations: each begins
    /// at the first byte that the previous one does not hold.
    #[inline(always)]
    fn starts(&self, period: &Period, lane: &[i32], starts: &mut Starts) -> Option<()> {
        let (beside, by) = (period.beside.n as i32, period.beside.src as i32);
        let (window, reach) = (lane.len() as i32, by * (beside - 1));
        let (mut low, mut high) = (HOLE, i32::MIN);
        for &from in lane {
            low = low.min(from);
            high = high.max(if from == HOLE { i32::MIN } else { from });
        }
        if low == HOLE {
            // Nothing is written: any window.
            low = *self.from.all().first()?;
            high = low;
        }
        let (low, high) = (low + reach.min(0), high + reach.max(0));
        let dense = high - low < window * beside;
        let mut next = low;
        while next <= high {
            let at = next as isize;
            let region = self.regions.all().iter().find(|one| one.low <= at && at <= one.high)?;
            // No window ends behind the bytes that are read: the next page may be unmapped.
            let start = at.min(region.high + 1 - window as isize);
            if start < region.low {
                return None;
            }
            *starts.at.get_mut(starts.n)? = start as i32;
            starts.n += 1;
            let end = start as i32 + window;
            next = end;
            if !dense && next <= high {
                let mut least = u32::MAX;
                for beside in 0..beside {
                    // Offsets below wrap to large values.
                    let end = end - beside * by;
                    for from in lane {
                        least = least.min(from.wrapping_sub(end) as u32);
                    }
                }
                next = end.wrapping_add(least as i32);
            }
        }
        Some(())
    }
}

impl Default for Made {
    fn default() -> Made {
        Made::new()
    }
}

/// Writes the sources of a lane's bytes, the first of which is `byte`, to the indexes: `shift`
/// bytes on from those of `line`.
#[inline(always)]
fn fill(
    indexes: &mut [Index],
    line: &[i32; LINE],
    byte: usize,
    shift: i32,
    window: i32,
    starts: &Starts,
) -> Option<()> {
    let (mut w, mut second) = (0, 0);
    let mut first = *starts.at.first()? - shift;
    let mut row = indexes.first_mut()?;
    for at in byte..byte + window as usize {
        let from = *line.get(at)?;
        if from == HOLE {
            continue;
        }
        let mut inside = from.wrapping_sub(first) as u32;
        if inside >= window as u32 {
            // Bytes of several planes alternate: the next window is the likeliest.
            let mut left = starts.n;
            while inside >= window as u32 {
                left = left.checked_sub(1)?;
                w = if w + 1 < starts.n { w + 1 } else { 0 };
                first = *starts.at.get(w)? - shift;
                inside = from.wrapping_sub(first) as u32;
            }
            second = if w % 2 == 1 { window as u8 } else { 0 };
            row = indexes.get_mut(w / 2)?;
        }
        *row.0.get_mut(at)? = inside as u8 + second;
    }
    Some(())
}

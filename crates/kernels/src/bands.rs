//! Transposes beyond the caches: bands of source rows are prefetched, and whole cache lines are
//! written by non-temporal stores. If destination rows start at different offsets in a line, tiles
//! are written to the stage, and from there whole lines to the destination; a partial line is
//! carried over to the next band. Narrow tiles handle the ends of rows, together with the columns
//! beside them.
use core::ptr::{null, null_mut};

use crate::leave::Leave;
use crate::side::{List, Side};
use crate::space::{BAND, STRIP};
use crate::tile::{Block, Permutations, Soon, odd_columns};
use crate::transpose::{GROUP, How, Listed, Matrix, Part, Transpose, steps};
use crate::vector::LINE;

/// A matrix in bands: what holds for all of them, in elements.
struct Bands<'a> {
    by: &'a Transpose<'a>,
    matrix: &'a Matrix,
    how: &'a How,
    item: usize,
    n_dst: usize,
    n_src: usize,
    /// Columns per step; rows that make a whole line, or as many columns of an odd size.
    line: usize,
    /// Tiles are written to the stage; and partial lines carried over, too.
    stages: bool,
    carries: bool,
    /// Rows in front of the first whole line of the destination.
    head: usize,
    /// Columns in front of the first whole line of the source, in whole lines, and behind them.
    lead: usize,
    columns: usize,
    tail: usize,
    /// Lines that a group spans at any offset.
    group_lines: usize,
    /// Rows of a band: a whole line at least.
    most: usize,
    /// Bytes from row to row of the stage.
    pitch: usize,
    /// Those of an element of odd size, for the stage.
    loose: *const Permutations,
    /// The destination rows of a step, and those of the stage.
    listed: List,
    out: List,
}

/// Columns whose partial lines are carried over together: from `at` on behind the lead, with
/// `first` in front and `last` behind that are no whole lines.
struct Strip {
    at: usize,
    n: usize,
    first: usize,
    last: usize,
}

/// Rows that are transposed together, and those that follow.
struct Band {
    from: usize,
    to: usize,
    /// Whether they are whole lines of the destination.
    whole: bool,
    rows: List,
    next: List,
    next_n: usize,
    next_src: *const u8,
}

/// Transposes a matrix, and prefetches for the next one if there are `more`.
pub(crate) unsafe fn transpose(by: &Transpose, matrix: &Matrix, how: &How, more: bool) {
    // Not needed where tiles are transposed in registers. Not in `Bands`, which stay in registers.
    let permutations = if by.odd { Permutations::new(by.item()) } else { Permutations::NONE };
    // SAFETY: the space's lists are live, and used by this call alone.
    let bands = unsafe { Bands::new(by, matrix, how, &permutations) };
    // The elements outside of square tiles.
    let mut ends = Transpose { listed: Listed::NONE, ..*by };
    // SAFETY: the matrix's rows are readable, its columns writable; the space has room for a band
    // and its lists.
    unsafe {
        let lists = by.space.lists;
        let [mut rows, mut next] =
            [(&raw mut (*lists).bands[0]).cast(), (&raw mut (*lists).bands[1]).cast()];
        bands.stage().list(0, bands.line, bands.out);
        matrix.rows.list(0, bands.most.min(bands.n_dst), next);
        let mut at = 0;
        while at < bands.columns {
            let strip = bands.strip(at);
            let mut from = 0;
            while from < bands.n_dst {
                (rows, next) = (next, rows);
                let band = bands.band(&strip, from, [rows, next], more);
                matrix.rows.list(
                    if band.to < bands.n_dst { band.to } else { 0 },
                    band.next_n,
                    next,
                );
                ends.listed = Listed::NONE;
                let mut s = 0;
                while s < strip.n && (band.whole || bands.carries) {
                    bands.step(&mut ends, &strip, &band, s);
                    s += bands.line;
                }
                bands.sides(&mut ends, &strip, &band);
                from = band.to;
            }
            at += strip.n;
        }
    }
}

impl<'a> Bands<'a> {
    /// # Safety
    /// The space's lists are live.
    #[inline(always)]
    unsafe fn new(
        by: &'a Transpose,
        matrix: &'a Matrix,
        how: &'a How,
        permutations: *const Permutations,
    ) -> Bands<'a> {
        let (odd, item, lists) = (by.odd, by.item(), by.space.lists);
        let (n_dst, n_src) = (matrix.rows.rows(), matrix.columns.rows());
        let some = if odd { odd_columns(item) } else { 1 };
        let line = (LINE / item / some * some).max(1);
        let misplaced = (matrix.dst as usize).wrapping_neg() % LINE;
        // Whether all destination rows start at the same offset in a line, a multiple of an
        // element; and all source rows.
        let alike = !odd && matrix.columns.in_phase() && misplaced.is_multiple_of(item);
        let in_phase = !odd && matrix.rows.in_phase();
        let stages = how.stream && (!alike || by.bytes(false) < LINE);
        let lead = if in_phase { (matrix.src as usize).wrapping_neg() % LINE / item } else { 0 };
        // Bytes of up to two more elements of an odd size are read, in the same row.
        let columns = (n_src - lead - if odd { 2 } else { 0 }) / line * line;
        let most = (how.lines.max(if odd { 2 } else { 1 }) * line).min(BAND / line * line);
        Bands {
            by,
            matrix,
            how,
            item,
            n_dst,
            n_src,
            line,
            stages,
            carries: stages && !alike,
            head: if how.stream && alike { misplaced / item } else { 0 },
            lead,
            columns,
            tail: n_src - lead - columns,
            group_lines: if in_phase { GROUP } else { GROUP + 1 },
            most,
            pitch: (most * item).next_multiple_of(LINE) + 2 * LINE,
            loose: if stages { permutations } else { null() },
            // SAFETY: the space's lists are live.
            listed: unsafe { (&raw mut (*lists).columns).cast() },
            // SAFETY: the space's lists are live.
            out: unsafe { (&raw mut (*lists).transposed).cast() },
        }
    }

    /// The rows of the stage.
    #[inline(always)]
    fn stage(&self) -> Side {
        Side::one(self.line, self.pitch as isize)
    }

    #[inline(always)]
    fn strip(&self, at: usize) -> Strip {
        let left = self.columns - at;
        let n = if self.carries { left.min(STRIP / self.line * self.line) } else { left };
        let first = if at == 0 { self.lead } else { 0 };
        Strip { at, n, first, last: if n == left { self.tail } else { 0 } }
    }

    /// The band from a row on. After the ends of its rows follow the next band's, strip's, or
    /// matrix's.
    #[inline(always)]
    fn band(&self, strip: &Strip, from: usize, [rows, next]: [List; 2], more: bool) -> Band {
        let Bands { matrix, item, n_dst, line, most, .. } = *self;
        // The last carried bytes are written with the last rows: some are left.
        let left = n_dst - from - usize::from(self.carries);
        let whole = from >= self.head && left >= line;
        let to = if whole {
            from + most.min(left / line * line)
        } else if from < self.head {
            self.head
        } else {
            n_dst
        };
        let begin = matrix.src.wrapping_add((self.lead + strip.at) * item);
        let last = strip.at + strip.n == self.columns;
        let (next_n, next_src) = match (to < n_dst, last) {
            (true, _) => (most.min(n_dst - to), begin),
            (false, false) => (most.min(n_dst), begin.wrapping_add(strip.n * item)),
            (false, true) => {
                let src = matrix.src.wrapping_offset(self.how.next[0]);
                (if more { most.min(n_dst) } else { 0 }, src.wrapping_add(self.lead * item))
            }
        };
        Band { from, to, whole, rows, next, next_n, next_src }
    }

    /// The rows that are prefetched during a step: while a group of lines is transposed, the next
    /// one of each row; some rows per step.
    #[inline(always)]
    fn soon(&self, strip: &Strip, band: &Band, s: usize) -> Soon {
        let Bands { item, line, .. } = *self;
        let step = s / line;
        let group = step / GROUP * GROUP;
        let (first, every) = (step - group, steps(strip.n / line - group));
        let (ahead, n) = ((group + GROUP) * line * item, band.to - band.from);
        let (src, rows, n) = if ahead < strip.n * item {
            let begin = (self.lead + strip.at) * item;
            (self.matrix.src.wrapping_add(begin + ahead), band.rows, n)
        } else {
            (band.next_src, band.next, band.next_n.min(n))
        };
        let n = if first < every { n } else { 0 };
        Soon { src, rows, n, every, first, lines: self.group_lines }
    }

    /// Transposes a line of columns, from `s` on in the strip.
    ///
    /// # Safety
    /// As [`transpose`], for rows and columns of the matrix.
    #[inline(always)]
    unsafe fn step(&self, ends: &mut Transpose, strip: &Strip, band: &Band, s: usize) {
        let Bands { by, matrix, item, line, stages, loose, .. } = *self;
        let at = self.lead + strip.at + s;
        let src = matrix.src.wrapping_add(at * item);
        let dst = matrix.dst.wrapping_add(band.from * item);
        let stage = by.space.transposed();
        // SAFETY: the matrix's rows are readable, its columns writable; the space has room for a
        // band and its lists.
        unsafe {
            matrix.columns.list(at, line, self.listed);
            if band.whole {
                let (dst, columns) = match stages {
                    true => (stage.wrapping_add(LINE), self.out),
                    false => (dst, self.listed),
                };
                let (n, stream) = ([band.to - band.from, line], self.how.stream && !stages);
                let soon = self.soon(strip, band, s);
                by.block(
                    false,
                    &Block { src, dst, rows: band.rows, columns, n, stream, loose, soon },
                );
            } else {
                // The last rows, behind the carried bytes.
                let dst = stage.wrapping_add(LINE).wrapping_sub(band.from * item);
                let matrix = Matrix { src, dst, rows: matrix.rows, columns: self.stage() };
                let row = band.from.min(self.n_dst - by.high(true));
                let part = Part { row, rows: self.n_dst - row, column: 0, columns: line };
                ends.tiles(true, &matrix, part, false, 0);
            }
            if stages {
                let carry = by.space.carry().wrapping_add(s * LINE);
                (by.micro.leave)(&Leave {
                    from: stage,
                    pitch: self.pitch,
                    dst,
                    columns: self.listed,
                    rows: line,
                    bytes: (band.to - band.from) * item,
                    carry: if self.carries { carry } else { null_mut() },
                    first: band.from == 0,
                    last: band.to == self.n_dst,
                });
            }
        }
    }

    /// Transposes the columns outside of square tiles; at the ends of destination rows, all
    /// columns.
    ///
    /// # Safety
    /// As [`transpose`], for rows of the matrix.
    #[inline(always)]
    unsafe fn sides(&self, ends: &mut Transpose, strip: &Strip, band: &Band) {
        let (n_dst, n_src, high) = (self.n_dst, self.n_src, self.by.high(true));
        let sides = if band.whole || self.carries {
            [(0, strip.first), (n_src - strip.last, strip.last)]
        } else {
            let columns = strip.first + strip.n + strip.last;
            [(self.lead + strip.at - strip.first, columns), (0, 0)]
        };
        let wide = band.whole && self.how.stream && !self.stages;
        let row = band.from.min(n_dst - high);
        for (at, n) in sides {
            if n > 0 {
                let n = n.max(self.by.tile);
                let rows = (band.to - row).max(high);
                let part = Part { row, rows, column: at.min(n_src - n), columns: n };
                ends.listed = Listed::NONE;
                // SAFETY: the matrix's rows are readable, its columns writable.
                unsafe { ends.tiles(!wide, self.matrix, part, wide, 0) };
            }
        }
    }
}

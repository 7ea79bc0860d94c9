//! Transposes of matrices, whose rows are dense in the source and whose columns are dense in the
//! destination.
//!
//! Two macro-kernels call the micro-kernels of a level for blocks: `tiles` writes directly to the
//! destination, or to a linear stage; [`bands`] are for data beyond the caches. Neither uses
//! vectors: both are compiled once for all levels.
use crate::bands;
use crate::rows::Writer;
use crate::side::{Side, Step};
use crate::space::{BAND, Space, TRANSPOSED};
use crate::tile::{Block, MicroKernels, Soon, elements};
use crate::vector::LINE;

/// A matrix and its transpose.
#[derive(Clone, Copy)]
pub struct Matrix {
    /// First element of the source.
    pub src: *const u8,
    /// First element of the destination.
    pub dst: *mut u8,
    /// The source's rows: the destination is dense in these loops.
    pub rows: Side,
    /// The destination's rows: the source is dense in these loops.
    pub columns: Side,
}

/// How a matrix is transposed.
#[derive(Clone, Copy)]
pub struct How {
    /// Whether stores are non-temporal.
    pub stream: bool,
    /// Cache lines of a destination row that are written together, at most [`LINES_MOST`].
    pub lines: usize,
    /// Whether to use the stage: the output does not fit into L2.
    pub stage: bool,
    /// Number of matrices.
    pub matrices: usize,
    /// Their strides in the source and in the destination, in bytes.
    pub next: [isize; 2],
}

/// Cache lines per destination row in the stage.
pub const LINES_MOST: usize = 8;
/// Largest element.
pub const ELEMENT_MOST: usize = 64;
/// Maximum bytes of contiguous destination rows that are written from the stage as one run.
const JOINED: usize = 8 * LINE;
/// Bytes of matrices that are written from it together: few, so that loads and stores interleave.
const RUN: usize = TRANSPOSED / 4;
/// Lines of a source row that are prefetched together: a power of two.
pub(crate) const GROUP: usize = 4;

/// The lists of `tiles`: first rows and columns, and their numbers.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Listed {
    rows: [usize; 2],
    columns: [usize; 2],
}

impl Listed {
    pub(crate) const NONE: Listed = Listed { rows: [0; 2], columns: [0; 2] };
}

/// Transposes without vectors, in blocks of a line of columns.
pub(crate) unsafe fn plain(item: usize, matrix: &Matrix, how: &How, space: Space) {
    let item = item.clamp(1, ELEMENT_MOST);
    let [n_dst, n_src] = [matrix.rows.rows(), matrix.columns.rows()];
    let line = (LINE / item).max(1);
    // SAFETY: the space's lists are live, and used by this call alone.
    let (rows, columns) = unsafe {
        let lists = space.lists;
        ((&raw mut (*lists).tile_rows).cast(), (&raw mut (*lists).tile_columns).cast())
    };
    let mut d = 0;
    while d < n_dst {
        let high = BAND.min(n_dst - d);
        // SAFETY: the matrix's rows are readable, its columns writable; the lists have room for a
        // band and a line.
        unsafe {
            matrix.rows.list(d, high, rows);
            let mut c = 0;
            while c < n_src {
                let wide = line.min(n_src - c);
                matrix.columns.list(c, wide, columns);
                let mut i = 0;
                while i < how.matrices as isize {
                    let src = matrix.src.wrapping_offset(i * how.next[0]).wrapping_add(c * item);
                    let dst = matrix.dst.wrapping_offset(i * how.next[1]).wrapping_add(d * item);
                    let n = [high, wide];
                    elements(&Block { src, dst, rows, columns, n, ..Block::NONE }, item);
                    i += 1;
                }
                c += wide;
            }
        }
        d += high;
    }
}

/// Some rows and columns of a matrix.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) row: usize,
    pub(crate) rows: usize,
    pub(crate) column: usize,
    pub(crate) columns: usize,
}

/// The size of elements, and the functions that transpose them.
pub(crate) struct Transpose<'a> {
    pub(crate) micro: &'a MicroKernels,
    pub(crate) item: usize,
    /// Whether their size is not a power of two up to a register's.
    pub(crate) odd: bool,
    /// Columns of a tile.
    pub(crate) tile: usize,
    pub(crate) space: Space,
    pub(crate) listed: Listed,
}

impl<'a> Transpose<'a> {
    #[inline(always)]
    fn new(micro: &'a MicroKernels, item: usize, space: Space) -> Transpose<'a> {
        let odd = item > 16 || !item.is_power_of_two();
        let tile = if odd { 1 } else { 16 / item };
        Transpose { micro, item, odd, tile, space, listed: Listed::NONE }
    }

    /// Bytes of an element, visibly not 0 to the compiler.
    #[inline(always)]
    pub(crate) fn item(&self) -> usize {
        self.item.clamp(1, ELEMENT_MOST)
    }

    /// Bytes of a vector.
    #[inline(always)]
    pub(crate) fn bytes(&self, narrow: bool) -> usize {
        let [one, more] = self.micro.bytes;
        if narrow | self.odd {
            16
        } else if self.item == 1 {
            one
        } else {
            more
        }
    }

    /// Rows of a tile.
    #[inline(always)]
    pub(crate) fn high(&self, narrow: bool) -> usize {
        if self.odd { 1 } else { self.bytes(narrow) / self.item() }
    }

    #[inline(always)]
    pub(crate) unsafe fn block(&self, narrow: bool, block: &Block) {
        let kernel = if narrow | self.odd { self.micro.narrow } else { self.micro.wide };
        // SAFETY: the block is readable or writable on its sides; the processor has the level's
        // instructions.
        unsafe { kernel(self.item, block) }
    }

    /// Transposes tiles directly to the destination. The last ones of a row or column overlap the
    /// previous ones and write the same bytes again: there are at least a tile's rows and columns.
    pub(crate) unsafe fn tiles(
        &mut self,
        narrow: bool,
        matrix: &Matrix,
        part: Part,
        stream: bool,
        ahead: usize,
    ) {
        let item = self.item();
        let (line, high) = ((LINE / item).max(self.tile), self.high(narrow));
        let (row_end, column_end) = (part.row + part.rows, part.column + part.columns);
        // SAFETY: the part's rows are readable, its columns writable; the space's lists have room
        // for a band and for a line.
        unsafe {
            let rows = (&raw mut (*self.space.lists).tile_rows).cast();
            let columns = (&raw mut (*self.space.lists).tile_columns).cast();
            let mut row = part.row;
            while row < row_end {
                let to = row_end.min(row + BAND);
                row = row.min(row_end - high);
                let n = to - row;
                if self.listed.rows != [row, n] {
                    matrix.rows.list(row, n, rows);
                    self.listed.rows = [row, n];
                }
                let (mut s, mut step, every) = (part.column, 0, steps(part.columns / line));
                while s < column_end {
                    let end = column_end.min(s + line);
                    let first = s.min(column_end - self.tile);
                    if self.listed.columns != [first, end - first] {
                        matrix.columns.list(first, end - first, columns);
                        self.listed.columns = [first, end - first];
                    }
                    let soon = ahead > 0 && step < every;
                    let soon = Soon {
                        src: matrix.src.wrapping_add(ahead),
                        rows,
                        n: if soon { n } else { 0 },
                        every,
                        first: step,
                        lines: GROUP.min(part.columns.div_ceil(line)),
                    };
                    let block = Block {
                        src: matrix.src.wrapping_add(first * item),
                        dst: matrix.dst.wrapping_add(row * item),
                        rows,
                        columns,
                        n: [n, end - first],
                        stream,
                        soon,
                        ..Block::NONE
                    };
                    self.block(narrow, &block);
                    (s, step) = (end, step + 1);
                }
                row = to;
            }
        }
    }
}

/// Transposes matrices by the kernels of a level.
pub(crate) unsafe fn any(
    micro: &MicroKernels,
    item: usize,
    first: &Matrix,
    how: &How,
    space: Space,
) {
    let item = item.clamp(1, ELEMENT_MOST);
    let mut transpose = Transpose::new(micro, item, space);
    let (n_dst, n_src) = (first.rows.rows(), first.columns.rows());
    let row = n_dst * item;
    let (whole, joined) = (n_src * row, joins(first, how, row, n_src));
    let stages = how.stage && row >= 4 * LINE && n_src * item >= 2 * LINE && !joined;
    // Columns that are transposed together: all; or, if the destination's rows are contiguous, some
    // that fit into the stage, to be written as one run.
    let some = (TRANSPOSED / row.max(1)).max(32).min(GROUP * LINE / item) / 16 * 16;
    let some = (RUN / row.max(1)).max(32).min(some.max(16));
    let block = if joined && n_src > some { some } else { n_src };
    // SAFETY: the matrices are readable or writable on their sides; the space has a stage where one
    // is used.
    unsafe {
        let stage: *mut u8 = space.transposed();
        let mut writer = Writer::new();
        let mut held = 0;
        // Blocks start at source lines, if all rows have the same offset in a line.
        let squares = !transpose.odd && item > 2 && joined && first.rows.in_phase();
        let mut i = 0;
        while i < how.matrices {
            let matrix = Matrix {
                src: first.src.wrapping_offset(i as isize * how.next[0]),
                dst: first.dst.wrapping_offset(i as isize * how.next[1]),
                ..*first
            };
            i += 1;
            if stages {
                bands::transpose(&transpose, &matrix, how, i < how.matrices);
                continue;
            }
            let mut s = 0;
            while s < n_src {
                // The rest is at least a tile.
                let left = n_src - s;
                let count = if left <= block {
                    left
                } else if s == 0 && squares {
                    block - LINE / item + (matrix.src as usize).wrapping_neg() % LINE / item
                } else if left - block < transpose.tile {
                    block - transpose.tile
                } else {
                    block
                };
                let mut part = Part { row: 0, rows: n_dst, column: s, columns: count };
                let (mut from, mut ahead) = (matrix, 0);
                if joined {
                    let next = how.next[0] as usize;
                    ahead = match (n_src > block, i < how.matrices) {
                        (true, _) => count * item,
                        // Smaller ones share a page: the hardware prefetches them.
                        (_, true) if whole >= RUN => next,
                        _ => 0,
                    };
                    from.src = matrix.src.wrapping_add(s * item);
                    from.dst = stage.wrapping_add(held);
                    from.columns = Side::one(count, row as isize);
                    part.column = 0;
                }
                let narrow = row < transpose.bytes(false);
                transpose.tiles(narrow, &from, part, false, ahead);
                s += count;
                if joined {
                    held += count * row;
                    let follows = i < how.matrices && how.next[1] == whole as isize;
                    if s < n_src || !follows || held + whole > RUN {
                        let to = matrix.dst.wrapping_add(s * row).wrapping_sub(held);
                        (micro.put)(&mut writer, to, stage, held);
                        held = 0;
                    }
                }
            }
        }
        writer.flush();
    }
}

/// Whether destination rows are contiguous, and several fit into the stage.
#[inline(always)]
fn joins(matrix: &Matrix, how: &How, row: usize, n: usize) -> bool {
    let Step { n: inner, by } = matrix.columns.loops[0];
    how.stream
        && inner == n
        && by == row as isize
        && row <= JOINED
        && (n >= LINE || how.next[1] == (n * row) as isize)
}

/// At how many of these steps rows are prefetched, each time different ones.
#[inline(always)]
pub(crate) const fn steps(n: usize) -> usize {
    match n {
        GROUP.. => GROUP,
        2.. => 2,
        _ => 1,
    }
}

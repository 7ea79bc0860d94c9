//! Transposes of a face: a matrix whose rows are dense in the source and whose columns are dense in
//! the destination.
//!
//! The micro-kernel turns a tile in registers, or moves elements of odd sizes one by one. Around it
//! are two macro-kernels: `tiles` writes to the destination, or to a linear stage, as it is;
//! `staged` is for what does not stay in the caches: bands of source rows, prefetched, and whole
//! cache lines by non-temporal stores. Where destination rows start at different places of a line,
//! tiles are put into the stage, and lines leave it wherever they start; the part of a line that is
//! not complete yet is carried over to the next band.
use core::mem::MaybeUninit;

use crate::LINE;
use crate::rows::Writer;
use crate::vector::Vector;

/// Loops of a side, at most.
pub const SIDE_LOOPS: usize = 3;

/// A loop of a side: its extent, and the bytes from one turn to the next.
#[derive(Clone, Copy)]
pub struct Step {
    /// Extent.
    pub n: usize,
    /// Stride.
    pub by: isize,
}

impl Step {
    /// A loop that is not there.
    pub const NONE: Step = Step { n: 1, by: 0 };
}

/// The rows of a matrix: loops inside one another, the innermost first.
#[derive(Clone, Copy)]
pub struct Side {
    /// The loops; those beyond the last are [`Step::NONE`].
    pub loops: [Step; SIDE_LOOPS],
}

/// Where rows are, in bytes from the first one.
type List = *mut isize;

impl Side {
    /// One loop.
    #[inline(always)]
    pub const fn one(n: usize, by: isize) -> Side {
        Side { loops: [Step { n, by }, Step::NONE, Step::NONE] }
    }

    /// Rows in all.
    #[inline(always)]
    pub const fn rows(&self) -> usize {
        let [a, b, c] = self.loops;
        a.n * b.n * c.n
    }

    /// Whether all rows start in the same place of a cache line.
    #[inline(always)]
    fn in_phase(&self) -> bool {
        let [a, b, c] = self.loops;
        ((a.by | b.by | c.by) as usize).is_multiple_of(LINE)
    }

    /// Writes to `list` where `n` rows from row `first` on are. No vectors: once for all kernels.
    #[inline(never)]
    unsafe fn list(&self, first: usize, n: usize, list: List) {
        let (mut turn, mut at) = ([0; SIDE_LOOPS], 0isize);
        let (mut l, mut rest) = (0, first);
        while l < SIDE_LOOPS && rest > 0 {
            let Step { n, by } = self.loops[l];
            let outer = if rest < n { 0 } else { rest.checked_div(n).unwrap_or(0) };
            turn[l] = rest - outer * n;
            at += turn[l] as isize * by;
            (l, rest) = (l + 1, outer);
        }
        let mut i = 0;
        while i < n {
            let Step { n: extent, by } = self.loops[0];
            let end = n.min(i + extent - turn[0]);
            turn[0] += end - i;
            while i < end {
                // SAFETY: the caller's list has room for `n`.
                unsafe { list.add(i).write(at) };
                at += by;
                i += 1;
            }
            let mut l = 0;
            while l + 1 < SIDE_LOOPS && turn[l] == self.loops[l].n {
                let (inner, outer) = (self.loops[l], self.loops[l + 1]);
                at += outer.by - inner.n as isize * inner.by;
                turn[l] = 0;
                turn[l + 1] += 1;
                l += 1;
            }
        }
    }
}

/// A matrix and its transpose.
#[derive(Clone, Copy)]
pub struct Face {
    /// First element of the source.
    pub src: *const u8,
    /// First element of the destination.
    pub dst: *mut u8,
    /// The source's rows: the destination is dense in these loops.
    pub rows: Side,
    /// The destination's rows: the source is dense in these.
    pub columns: Side,
}

/// How a face is transposed.
#[derive(Clone, Copy)]
pub struct How {
    /// By non-temporal stores.
    pub stream: bool,
    /// Cache lines of a destination row that are written at a time, at most [`LINES_MOST`].
    pub lines: usize,
    /// Through the stage: the output does not fit into the second-level cache.
    pub stage: bool,
    /// How many faces.
    pub faces: usize,
    /// How many bytes apart they are in the source and in the destination.
    pub next: [isize; 2],
}

/// Cache lines per destination row in the stage.
pub const LINES_MOST: usize = 8;
/// Largest element.
pub const ELEMENT_MOST: usize = 64;
/// Source rows at a time.
const BAND: usize = 128;
/// Bytes of turned rows in the stage: a line of columns, each with what was carried over and a band
/// of new bytes, and a line more so that rows do not compete for the same set of the first-level
/// cache.
const TURNED: usize = 256 * LINE;
/// Bytes of destination rows that follow one another up to which they leave the stage as one run.
const JOINED: usize = 8 * LINE;
/// Bytes of faces that leave it together: few, so that loads and stores do not come in phases.
const RUN: usize = TURNED / 4;
/// Destination rows whose partial lines are carried at a time.
const STRIP: usize = 256;
/// Lines of a source row that are prefetched together: a power of two.
const GROUP: usize = 4;

/// What a transpose needs of its caller's stack.
#[derive(Clone, Copy)]
pub struct Space {
    lists: *mut Lists,
    /// Dangling where nothing is staged or streamed.
    stage: *mut Stage,
}

impl Space {
    /// Of transposes that are neither staged nor streamed.
    #[inline(always)]
    pub const fn near(lists: &mut MaybeUninit<Lists>) -> Space {
        Space { lists: lists.as_mut_ptr(), stage: core::ptr::dangling_mut() }
    }

    /// Of any transpose.
    #[inline(always)]
    pub const fn any(lists: &mut MaybeUninit<Lists>, stage: &mut MaybeUninit<Stage>) -> Space {
        Space { lists: lists.as_mut_ptr(), stage: stage.as_mut_ptr() }
    }

    /// Bytes of turned rows.
    #[inline(always)]
    fn turned(&self) -> *mut u8 {
        self.stage.cast()
    }

    /// Bytes of partial lines.
    #[inline(always)]
    fn carry(&self) -> *mut u8 {
        self.turned().wrapping_add(TURNED)
    }
}

/// Rows turned, and parts of lines that are carried over.
#[repr(align(64))]
pub struct Stage(#[allow(dead_code)] [u8; TURNED + STRIP * LINE]);

/// Where rows and columns are.
pub struct Lists {
    /// Source rows of this band and of the next one.
    bands: [[isize; BAND]; 2],
    /// Destination rows, of a line of columns.
    columns: [isize; LINE],
    /// The same of `tiles`.
    tile_rows: [isize; BAND],
    tile_columns: [isize; LINE + 16],
    /// Rows of the stage.
    turned: [isize; LINE],
    /// Permutations of 16 bytes: elements of an odd size to a power of two, and back.
    widen: [u8; 16],
    narrow: [u8; 16],
}

/// What is listed for `tiles`: first rows and columns, and how many.
#[derive(Clone, Copy, PartialEq)]
struct Listed {
    rows: [usize; 2],
    columns: [usize; 2],
}

impl Listed {
    const NONE: Listed = Listed { rows: [0; 2], columns: [0; 2] };
}

/// `B` for single bytes, `W` for larger elements, `N` where a side is shorter than these.
#[inline(always)]
pub(crate) unsafe fn any<B: Vector, W: Vector, N: Vector>(
    item: usize,
    face: &Face,
    how: &How,
    space: Space,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match item {
            1 => size::<B, N, 1, 16>(face, how, item, space),
            2 => size::<W, N, 2, 8>(face, how, item, space),
            4 => size::<W, N, 4, 4>(face, how, item, space),
            8 => size::<W, N, 8, 2>(face, how, item, space),
            16 => size::<W, N, 16, 1>(face, how, item, space),
            _ => size::<W, N, 0, 1>(face, how, item, space),
        }
    }
}

/// The same without vectors, in blocks of a line of columns.
pub(crate) unsafe fn plain(item: usize, face: &Face, how: &How, space: Space) {
    let item = item.clamp(1, ELEMENT_MOST);
    let [n_dst, n_src] = [face.rows.rows(), face.columns.rows()];
    let line = (LINE / item).max(1);
    // SAFETY: places in the caller's space.
    let (rows, columns) = unsafe {
        let lists = space.lists;
        (list(&raw mut (*lists).tile_rows), list(&raw mut (*lists).tile_columns))
    };
    let mut d = 0;
    while d < n_dst {
        let high = BAND.min(n_dst - d);
        // SAFETY: the caller's rows and columns, and lists with room for as many.
        unsafe {
            face.rows.list(d, high, rows);
            let mut c = 0;
            while c < n_src {
                let wide = line.min(n_src - c);
                face.columns.list(c, wide, columns);
                let mut i = 0;
                while i < how.faces as isize {
                    let src = face.src.wrapping_offset(i * how.next[0]).wrapping_add(c * item);
                    let dst = face.dst.wrapping_offset(i * how.next[1]).wrapping_add(d * item);
                    elements(&Block { src, dst, rows, columns, n: [high, wide] }, item);
                    i += 1;
                }
                c += wide;
            }
        }
        d += high;
    }
}

#[inline(always)]
fn list<const N: usize>(list: *mut [isize; N]) -> List {
    list.cast()
}

/// Some rows and columns of a face.
#[derive(Clone, Copy)]
struct Part {
    row: usize,
    rows: usize,
    column: usize,
    columns: usize,
}

/// Elements of `S` bytes, or of `item` if `S` is 0; tiles are `E` elements wide.
#[inline(always)]
unsafe fn size<V: Vector, N: Vector, const S: usize, const E: usize>(
    first: &Face,
    how: &How,
    item: usize,
    space: Space,
) {
    let item = if S > 0 { S } else { item.clamp(1, ELEMENT_MOST) };
    let (n_dst, n_src) = (first.rows.rows(), first.columns.rows());
    let row = n_dst * item;
    let (whole, joined) = (n_src * row, joins(first, how, row, n_src));
    let stages = how.stage && row >= 4 * LINE && n_src * item >= 2 * LINE && !joined;
    // Columns that are turned at a time: all; or, if the destination's rows follow one another, some
    // that fit into the stage, from where they leave as one run.
    let some = (TURNED / row.max(1)).max(32).min(GROUP * LINE / item) / 16 * 16;
    let some = some.max(16);
    let block = if joined && n_src > some { some } else { n_src };
    // SAFETY: a place in the caller's space; the rest is the caller's promise.
    unsafe {
        let stage: *mut u8 = space.turned();
        let mut writer = Writer::new();
        let (mut held, mut listed) = (0, Listed::NONE);
        // Blocks start where source lines do, if all rows start in the same place.
        let squares = S > 2 && joined && first.rows.in_phase();
        let mut i = 0;
        while i < how.faces {
            let face = Face {
                src: first.src.wrapping_offset(i as isize * how.next[0]),
                dst: first.dst.wrapping_offset(i as isize * how.next[1]),
                ..*first
            };
            i += 1;
            if stages {
                staged::<V, N, S, E>(&face, how, item, i < how.faces, space);
                continue;
            }
            let mut s = 0;
            while s < n_src {
                // What is left is at least a tile.
                let left = n_src - s;
                let count = if left <= block {
                    left
                } else if s == 0 && squares {
                    block - LINE / item + (face.src as usize).wrapping_neg() % LINE / item
                } else if left - block < E {
                    block - E
                } else {
                    block
                };
                let mut part = Part { row: 0, rows: n_dst, column: s, columns: count };
                let (mut from, mut ahead) = (face, 0);
                if joined {
                    ahead = if n_src > block { count * item } else { 0 };
                    from.src = face.src.wrapping_add(s * item);
                    from.dst = stage.wrapping_add(held);
                    from.columns = Side::one(count, row as isize);
                    part.column = 0;
                }
                if row >= V::BYTES {
                    tiles::<V, S, E>(&from, part, item, ahead, false, &mut listed, space);
                } else {
                    tiles::<N, S, E>(&from, part, item, ahead, false, &mut listed, space);
                }
                s += count;
                if joined {
                    held += count * row;
                    let follows = i < how.faces && how.next[1] == whole as isize;
                    if s < n_src || !follows || held + whole > RUN {
                        let to = face.dst.wrapping_add(s * row).wrapping_sub(held);
                        writer.put::<V>(to, stage, held);
                        held = 0;
                    }
                }
            }
        }
        writer.flush::<V>();
    }
}

/// Whether destination rows follow one another, and several fit into the stage.
#[inline(always)]
fn joins(face: &Face, how: &How, row: usize, n: usize) -> bool {
    let Step { n: inner, by } = face.columns.loops[0];
    how.stream
        && inner == n
        && by == row as isize
        && row <= JOINED
        && (n >= LINE || how.next[1] == (n * row) as isize)
}

/// Rows that are needed soon: some lines of each `every`th one from `first` on are prefetched.
/// Memory gives some lines of a row faster than single ones.
#[derive(Clone, Copy)]
struct Soon {
    src: *const u8,
    rows: List,
    n: usize,
    /// A power of two.
    every: usize,
    first: usize,
    lines: usize,
}

impl Soon {
    /// Rows `i` to `i + n`, as far as there are some.
    #[inline(always)]
    unsafe fn prefetch<V: Vector>(&self, i: usize, n: usize) {
        let end = self.n.min(i + n);
        let mut i = i + (self.first.wrapping_sub(i) & (self.every - 1));
        while i < end {
            // SAFETY: row `i` is listed, and a prefetch never faults.
            unsafe {
                let row = self.src.wrapping_offset(*self.rows.add(i));
                let mut l = 0;
                while l < self.lines {
                    V::prefetch(row.wrapping_add(l * LINE));
                    l += 1;
                }
            }
            i += self.every;
        }
    }
}

/// At how many of so many steps rows are prefetched, each time others.
#[inline(always)]
const fn steps(n: usize) -> usize {
    match n {
        GROUP.. => GROUP,
        2.. => 2,
        _ => 1,
    }
}

/// Rows and columns that are turned at once: where their first elements are, and where each is.
#[derive(Clone, Copy)]
struct Block {
    src: *const u8,
    dst: *mut u8,
    rows: List,
    columns: List,
    /// Rows and columns, of elements that are moved one by one.
    n: [usize; 2],
}

impl Block {
    /// The same, from a row and a column on.
    #[inline(always)]
    unsafe fn from(&self, item: usize, row: usize, column: usize) -> Block {
        // SAFETY: both are listed.
        let (rows, columns) = unsafe { (self.rows.add(row), self.columns.add(column)) };
        let (src, dst) = (self.src.wrapping_add(column * item), self.dst.wrapping_add(row * item));
        Block { src, dst, rows, columns, n: self.n }
    }

    /// Stores vectors to their columns.
    #[inline(always)]
    unsafe fn store<V: Vector, const E: usize>(&self, tile: [V; E], stream: bool) {
        let mut j = 0;
        while j < E {
            // SAFETY: the caller's columns.
            unsafe {
                let at = self.dst.wrapping_offset(*self.columns.add(j));
                if stream { tile[j].stream(at) } else { tile[j].store(at) }
            }
            j += 1;
        }
    }
}

/// The micro-kernel: 16 bytes of each of `BYTES / S` source rows become `E` = `16 / S` destination
/// rows of `BYTES`.
#[inline(always)]
unsafe fn tile<V: Vector, const S: usize, const E: usize>(block: &Block) -> [V; E] {
    let Block { src, rows, .. } = *block;
    // SAFETY: the caller's rows.
    unsafe {
        let mut tile = [V::load_lanes(src, rows, E); E];
        let mut i = 1;
        while i < E {
            tile[i] = V::load_lanes(src, rows.add(i), E);
            i += 1;
        }
        zips::<V, S, E>(tile)
    }
}

/// Rounds of zips on `E` vectors: each brings elements one power of two nearer to their places.
#[inline(always)]
unsafe fn zips<V: Vector, const S: usize, const E: usize>(mut rows: [V; E]) -> [V; E] {
    let mut round = 1;
    while round < E {
        let old = rows;
        let mut i = 0;
        while i < E / 2 {
            // SAFETY: registers alone.
            [rows[2 * i], rows[2 * i + 1]] = unsafe { old[i].zip::<S>(old[i + E / 2]) };
            i += 1;
        }
        round *= 2;
    }
    rows
}

/// A square: `BYTES` of each of `BYTES / S` source rows become as many destination rows of `BYTES`.
/// Each source row is loaded once.
#[inline(always)]
unsafe fn square<V: Vector, const S: usize, const E: usize>(block: &Block, stream: bool) {
    let Block { src, rows, .. } = *block;
    // SAFETY: the caller's rows and columns.
    unsafe {
        let lanes = V::BYTES / 16;
        let mut parts = [[V::load(src.wrapping_offset(*rows)); E]; 4];
        let mut i = 0;
        while i < E {
            let four = V::load_square(src, rows.add(i), E);
            let mut c = 0;
            while c < lanes {
                parts[c][i] = four[c];
                c += 1;
            }
            i += 1;
        }
        let mut c = 0;
        while c < lanes {
            block.from(S, 0, c * E).store::<V, E>(zips::<V, S, E>(parts[c]), stream);
            c += 1;
        }
    }
}

/// Columns of a tile of elements of an odd size.
#[inline(always)]
const fn odd_columns(item: usize) -> usize {
    match item {
        3 => 4,
        5..=7 => 2,
        _ => 1,
    }
}

/// Elements of an odd size into the stage, with bytes that follow in the source's rows and are
/// overwritten in the stage.
#[inline(always)]
unsafe fn loose<V: Vector>(block: &Block, item: usize, lists: *mut Lists) {
    // SAFETY: the caller's rows and columns, and what he says may be read and written.
    unsafe {
        match item {
            3 => widened::<V, 4, 4>(block, item, lists),
            5..=7 => widened::<V, 8, 2>(block, item, lists),
            9..=15 => moved::<[u64; 2]>(block, item, 0),
            _ => elements(block, item),
        }
    }
}

/// Tiles of `E` rows and columns, whose elements have `S` bytes in registers. `V` is one lane.
#[inline(always)]
unsafe fn widened<V: Vector, const S: usize, const E: usize>(
    block: &Block,
    item: usize,
    lists: *mut Lists,
) {
    let n = block.n;
    // SAFETY: as `loose`; rows are a multiple of columns, and these of `E`.
    unsafe {
        let widen = V::load((&raw const (*lists).widen).cast());
        let narrow = V::load((&raw const (*lists).narrow).cast());
        let mut c = 0;
        while c < n[1] {
            let mut d = 0;
            while d < n[0] {
                let part = block.from(item, d, c);
                let mut tile = [widen; E];
                let mut i = 0;
                while i < E {
                    let row = part.src.wrapping_offset(*part.rows.add(i));
                    tile[i] = V::load(row).permute(widen);
                    i += 1;
                }
                tile = zips::<V, S, E>(tile);
                i = 0;
                while i < E {
                    tile[i] = tile[i].permute(narrow);
                    i += 1;
                }
                part.store::<V, E>(tile, false);
                d += E;
            }
            c += E;
        }
    }
}

/// Makes the permutations for elements of an odd size.
#[inline(never)]
unsafe fn permutations(item: usize, lists: *mut Lists) {
    let item = item.clamp(1, 16);
    let wide = item.next_power_of_two();
    let mut i = 0;
    while i < 16 {
        let (element, byte) = (i >> wide.trailing_zeros(), i & (wide - 1));
        let widen = if byte < item { element * item + byte } else { 0x80 };
        let (element, byte) = (i / item, i % item);
        let at = element * wide + byte;
        // SAFETY: places of the caller's lists.
        unsafe {
            (*lists).widen[i] = widen as u8;
            (*lists).narrow[i] = if at < 16 { at as u8 } else { 0x80 };
        }
        i += 1;
    }
}

/// Moves elements one by one: each as two that overlap. No vectors: once for all kernels.
#[inline(never)]
unsafe fn elements(block: &Block, item: usize) {
    // SAFETY: the caller's rows and columns; two `T` that overlap are an element.
    unsafe {
        match item {
            1 => moved::<u8>(block, item, 0),
            2..4 => moved::<u16>(block, item, item - 2),
            4..8 => moved::<u32>(block, item, item - 4),
            8..16 => moved::<u64>(block, item, item - 8),
            16..32 => moved::<[u64; 2]>(block, item, item - 16),
            _ => moved::<[u64; 4]>(block, item, item - 32),
        }
    }
}

/// Elements as a `T`, and another one `second` bytes behind it.
#[inline(always)]
unsafe fn moved<T: Copy>(block: &Block, item: usize, second: usize) {
    let Block { src, dst, rows, columns, n } = *block;
    let mut d = 0;
    while d < n[0] {
        // SAFETY: as `elements`.
        unsafe {
            let mut from = src.wrapping_offset(*rows.add(d));
            let to = dst.wrapping_add(d * item);
            let mut c = 0;
            while c < n[1] {
                let out = to.wrapping_offset(*columns.add(c));
                let low = from.cast::<T>().read_unaligned();
                if second > 0 {
                    let high = from.wrapping_add(second).cast::<T>().read_unaligned();
                    out.wrapping_add(second).cast::<T>().write_unaligned(high);
                }
                out.cast::<T>().write_unaligned(low);
                from = from.wrapping_add(item);
                c += 1;
            }
        }
        d += 1;
    }
}

/// Tiles straight to the destination. The last ones of a row or column move back over their
/// predecessors and write the same bytes again: there are at least a tile's rows and columns.
#[inline(always)]
unsafe fn tiles<V: Vector, const S: usize, const E: usize>(
    face: &Face,
    part: Part,
    item: usize,
    ahead: usize,
    stream: bool,
    listed: &mut Listed,
    space: Space,
) {
    let item = if S > 0 { S } else { item.clamp(1, ELEMENT_MOST) };
    let (line, wide) = ((LINE / item).max(E), V::BYTES / item);
    let high = if S > 0 { wide } else { 1 };
    let (row_end, column_end) = (part.row + part.rows, part.column + part.columns);
    // SAFETY: the caller's rows and columns, and places in its space.
    unsafe {
        let rows = list(&raw mut (*space.lists).tile_rows);
        let columns = list(&raw mut (*space.lists).tile_columns);
        let mut row = part.row;
        while row < row_end {
            let to = row_end.min(row + BAND);
            row = row.min(row_end - high);
            let n = to - row;
            if listed.rows != [row, n] {
                face.rows.list(row, n, rows);
                listed.rows = [row, n];
            }
            let mut s = part.column;
            while s < column_end {
                let end = column_end.min(s + line);
                let first = s.min(column_end - E);
                if listed.columns != [first, end - first] {
                    face.columns.list(first, end - first, columns);
                    listed.columns = [first, end - first];
                }
                let block = Block {
                    src: face.src.wrapping_add(first * item),
                    dst: face.dst.wrapping_add(row * item),
                    rows,
                    columns,
                    n: [n, end - first],
                };
                if S == 0 {
                    elements(&block, item);
                }
                let mut d = 0;
                while S > 0 && d < n {
                    let d_at = d.min(n - high);
                    if ahead > 0 {
                        let (step, every) = ((s - part.column) / line, steps(part.columns / line));
                        let src = face.src.wrapping_add(ahead);
                        let n = if step < every { n } else { 0 };
                        let soon = Soon { src, rows, n, every, first: step, lines: GROUP };
                        soon.prefetch::<V>(d_at, high);
                    }
                    let mut c = s;
                    while c < end {
                        if S > 2 && V::BYTES > 16 && c + wide <= end {
                            square::<V, S, E>(&block.from(S, d_at, c - first), stream);
                            c += wide;
                        } else {
                            let block = block.from(S, d_at, c.min(end - E) - first);
                            block.store::<V, E>(tile::<V, S, E>(&block), stream);
                            c += E;
                        }
                    }
                    d += high;
                }
                s = end;
            }
            row = to;
        }
    }
}

/// The macro-kernel: bands of source rows, whole lines of the destination at a time, which leave
/// the tiles for the destination or for the stage. The ends of rows are made by narrow tiles,
/// together with what is beside them.
#[inline(always)]
unsafe fn staged<V: Vector, N: Vector, const S: usize, const E: usize>(
    face: &Face,
    how: &How,
    item: usize,
    more: bool,
    space: Space,
) {
    let item = if S > 0 { S } else { item.clamp(1, ELEMENT_MOST) };
    let (n_dst, n_src) = (face.rows.rows(), face.columns.rows());
    // Columns at a time; rows that make a whole line, or that many columns of an odd size.
    let tile = if S > 0 { 1 } else { odd_columns(item) };
    let line = LINE / item / tile * tile;
    let line = line.max(1);
    let misplaced = (face.dst as usize).wrapping_neg() % LINE;
    // Whether all destination rows start in the same place of a line, and elements in it.
    let alike = S > 0 && face.columns.in_phase() && misplaced.is_multiple_of(item);
    let stages = how.stream && (!alike || V::BYTES < LINE);
    let carries = stages && !alike;
    let head = if how.stream && alike { misplaced / item } else { 0 };
    // Whole source lines, if all source rows start in the same place.
    let lead = if S > 0 && face.rows.in_phase() {
        (face.src as usize).wrapping_neg() % LINE / item
    } else {
        0
    };
    // Lines that a group of lines at any place is in.
    let group_lines = if S > 0 && face.rows.in_phase() { GROUP } else { GROUP + 1 };
    // Bytes of up to two more elements of an odd size are read, in the same row.
    let columns = (n_src - lead - if S > 0 { 0 } else { 2 }) / line * line;
    let tail = n_src - lead - columns;
    // Rows of a band: a whole line at least.
    let least = if S > 0 { 1 } else { 2 };
    let most = (how.lines.max(least) * line).min(BAND / line * line);
    let pitch = (most * item).next_multiple_of(LINE) + 2 * LINE;
    // SAFETY: the caller's rows and columns, and places in its space.
    unsafe {
        let lists = space.lists;
        let turned: *mut u8 = space.turned();
        let carry: *mut u8 = space.carry();
        let [mut rows, mut next] =
            [list(&raw mut (*lists).bands[0]), list(&raw mut (*lists).bands[1])];
        let (listed, out) = (list(&raw mut (*lists).columns), list(&raw mut (*lists).turned));
        let own = Side::one(line, pitch as isize);
        own.list(0, line, out);
        if S == 0 {
            permutations(item, lists);
        }
        face.rows.list(0, most.min(n_dst), next);
        let mut strip = 0;
        while strip < columns {
            let strip_n =
                if carries { (columns - strip).min(STRIP / line * line) } else { columns };
            let first = if strip == 0 { lead } else { 0 };
            let last = if strip + strip_n == columns { tail } else { 0 };
            let mut d = 0;
            while d < n_dst {
                // What is carried over in the end leaves with the last rows: some are left.
                let left = n_dst - d - usize::from(carries);
                let whole = d >= head && left >= line;
                let band = if whole { most.min(left / line * line) } else { 0 };
                let to = if whole {
                    d + band
                } else if d < head {
                    head
                } else {
                    n_dst
                };
                // Beyond the ends of these rows come the next band's, the next strip's, or the next
                // face's.
                (rows, next) = (next, rows);
                let (begin, end) = ((lead + strip) * item, strip_n * item);
                let (start, next_src) = if to < n_dst {
                    (to, face.src.wrapping_add(begin))
                } else if strip + strip_n < columns {
                    (0, face.src.wrapping_add(begin + end))
                } else {
                    (0, face.src.wrapping_offset(how.next[0]).wrapping_add(lead * item))
                };
                let done = to == n_dst && strip + strip_n == columns && !more;
                let n = if done { 0 } else { most.min(n_dst - start) };
                face.rows.list(start, n, next);
                let (mut s, mut ends) = (0, Listed::NONE);
                while s < strip_n && (whole || carries) {
                    let at = lead + strip + s;
                    face.columns.list(at, line, listed);
                    let carry = carry.wrapping_add(s * LINE);
                    let src = face.src.wrapping_add(at * item);
                    if whole {
                        // While a group of lines is turned, the next one of each row is
                        // prefetched: at each step of some rows.
                        let step = s / line;
                        let group = step / GROUP * GROUP;
                        let every = steps(strip_n / line - group);
                        let ahead = (group + GROUP) * line * item;
                        let (src_soon, rows_soon, n) = if ahead < end {
                            (face.src.wrapping_add(begin + ahead), rows, band)
                        } else {
                            (next_src, next, n.min(band))
                        };
                        let n = if step - group < every { n } else { 0 };
                        let soon = Soon {
                            src: src_soon,
                            rows: rows_soon,
                            n,
                            every,
                            first: step - group,
                            lines: group_lines,
                        };
                        let (dst, columns) = if stages {
                            (turned.wrapping_add(LINE), out)
                        } else {
                            (face.dst.wrapping_add(d * item), listed)
                        };
                        let block = Block { src, dst, rows, columns, n: [line; 2] };
                        let mut l = 0;
                        while l < band {
                            let block = block.from(item, l, 0);
                            let soon = Soon {
                                rows: soon.rows.add(l),
                                n: soon.n.saturating_sub(l),
                                ..soon
                            };
                            lines::<V, N, S, E>(&block, item, soon, stages, how.stream, space);
                            l += line;
                        }
                    } else {
                        // The last rows, behind what was carried over.
                        let dst = turned.wrapping_add(LINE).wrapping_sub(d * item);
                        let face = Face { src, dst, rows: face.rows, columns: own };
                        let high = if S > 0 { N::BYTES / item } else { 1 };
                        let row = d.min(n_dst - high);
                        let part = Part { row, rows: n_dst - row, column: 0, columns: line };
                        tiles::<N, S, E>(&face, part, item, 0, false, &mut ends, space);
                    }
                    let mut c = 0;
                    while stages && c < line {
                        let from = turned.wrapping_add(c * pitch);
                        let row = face.dst.wrapping_offset(*listed.add(c)).wrapping_add(d * item);
                        let carry = carry.wrapping_add(c * LINE);
                        let edge = Edge { carries, first: d == 0, last: to == n_dst };
                        leave::<V>(from, row, carry, (to - d) * item, edge);
                        c += 1;
                    }
                    s += line;
                }
                // Beside the squares; or, at the ends of destination rows, all columns.
                let high = if S > 0 { N::BYTES / item } else { 1 };
                let row = d.min(n_dst - high);
                let high = (to - row).max(high);
                let mut side = 0;
                while side < 2 {
                    let (at, n) = match (side, whole || carries) {
                        (0, true) => (0, first),
                        (0, false) => (lead + strip - first, first + strip_n + last),
                        (_, true) => (n_src - last, last),
                        (_, false) => (0, 0),
                    };
                    let mut beside = Listed::NONE;
                    let n = if n > 0 { n.max(E) } else { 0 };
                    let part = Part { row, rows: high, column: at.min(n_src - n), columns: n };
                    if n > 0 && whole && how.stream && alike && V::BYTES == LINE {
                        tiles::<V, S, E>(face, part, item, 0, true, &mut beside, space);
                    } else if n > 0 {
                        tiles::<N, S, E>(face, part, item, 0, false, &mut beside, space);
                    }
                    side += 1;
                }
                d = to;
            }
            strip += strip_n;
        }
    }
}

/// `LINE` bytes of each of `LINE / S` source rows become as many whole lines of the destination, or
/// of the stage.
#[inline(always)]
unsafe fn lines<V: Vector, N: Vector, const S: usize, const E: usize>(
    block: &Block,
    item: usize,
    soon: Soon,
    stages: bool,
    stream: bool,
    space: Space,
) {
    let stream = stream && !stages;
    // SAFETY: the caller's rows and columns, and places in its space.
    unsafe {
        if S == 0 {
            soon.prefetch::<V>(0, block.n[0]);
            if stages {
                loose::<N>(block, item, space.lists);
            } else {
                elements(block, item);
            }
            return;
        }
        let (line, side) = (LINE / S.max(1), V::BYTES / S.max(1));
        let mut k = 0;
        while k < line {
            soon.prefetch::<V>(k, side);
            let mut c = 0;
            while c < line {
                square::<V, S, E>(&block.from(S, k, c), stream);
                c += side;
            }
            k += side;
        }
    }
}

/// Where in its row a band is, and whether parts of lines are carried from band to band.
#[derive(Clone, Copy)]
struct Edge {
    carries: bool,
    first: bool,
    last: bool,
}

/// One row of the stage leaves it for `row`: `n` new bytes, behind the 64 that were carried over.
/// The last 64 bytes are carried on, or leave as they are at the end of the row.
#[inline(always)]
unsafe fn leave<V: Vector>(from: *mut u8, row: *mut u8, carry: *mut u8, n: usize, edge: Edge) {
    use core::ptr::copy_nonoverlapping;
    // SAFETY: the caller's row and places in its space.
    unsafe {
        // Where the first whole line starts in the stage: 1 to 64.
        let mut at = LINE - row as usize % LINE;
        let (dst, end) = (row.wrapping_sub(LINE), n + LINE);
        if edge.carries {
            if edge.first {
                copy_nonoverlapping(from.wrapping_add(LINE), row, at % LINE);
                at += if at < LINE { LINE } else { 0 };
            } else {
                copy_nonoverlapping(carry, from, LINE);
            }
        }
        while at + LINE <= end {
            let mut k = 0;
            while k < LINE {
                V::load(from.wrapping_add(at + k)).stream(dst.wrapping_add(at + k));
                k += V::BYTES;
            }
            at += LINE;
        }
        if edge.carries && edge.last {
            copy_nonoverlapping(from.wrapping_add(at), dst.wrapping_add(at), end - at);
        } else if edge.carries {
            copy_nonoverlapping(from.wrapping_add(n), carry, LINE);
        }
    }
}

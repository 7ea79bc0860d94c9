//! The micro-kernels of transposes: they transpose blocks of rows and columns. Elements of 1, 2, 4,
//! 8 and 16 bytes are transposed in registers, tile by tile, by one function for each size and
//! vector; those of other sizes are copied one by one, or widened to one of these.
use core::ptr::{null, null_mut};

use crate::leave::Leave;
use crate::rows::Writer;
use crate::side::List;
use crate::vector::{LINE, Vector};

/// A level's functions for transposes.
pub(crate) struct MicroKernels {
    /// Vector sizes in bytes: for single bytes, and for larger elements.
    pub(crate) bytes: [usize; 2],
    /// Transposes a block of elements of so many bytes by these vectors.
    pub(crate) wide: unsafe fn(usize, &Block),
    /// As `wide`, by vectors of 16 bytes and for elements of any size.
    pub(crate) narrow: unsafe fn(usize, &Block),
    /// Writes rows of the stage to the destination.
    pub(crate) leave: unsafe fn(&Leave),
    /// [`Writer::put`].
    pub(crate) put: unsafe fn(&mut Writer, *mut u8, *const u8, usize),
}

/// Rows to prefetch: some lines of each `every`th one from `first` on. Several lines of a row load
/// faster than single ones.
#[derive(Clone, Copy)]
pub(crate) struct Soon {
    pub(crate) src: *const u8,
    pub(crate) rows: List,
    pub(crate) n: usize,
    /// A power of two.
    pub(crate) every: usize,
    pub(crate) first: usize,
    pub(crate) lines: usize,
}

impl Soon {
    /// Prefetches for rows `i` to `i + n`, where they exist.
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

/// Rows and columns that are transposed together: the addresses of their first elements, and their
/// offsets.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) src: *const u8,
    pub(crate) dst: *mut u8,
    pub(crate) rows: List,
    pub(crate) columns: List,
    /// Rows and columns: at least those of a tile. The last tiles overlap the previous ones and
    /// write the same bytes again.
    pub(crate) n: [usize; 2],
    /// Whether stores are non-temporal: only with vectors of a whole line.
    pub(crate) stream: bool,
    /// For elements of other sizes: up to two more may be read behind each row and overwritten
    /// behind each column; null: none may.
    pub(crate) loose: *const Permutations,
    /// The rows that are prefetched meanwhile.
    pub(crate) soon: Soon,
}

impl Block {
    /// No rows or permutations.
    pub(crate) const NONE: Block = Block {
        src: null(),
        dst: null_mut(),
        rows: null_mut(),
        columns: null_mut(),
        n: [0; 2],
        stream: false,
        loose: null(),
        soon: Soon { src: null(), rows: null_mut(), n: 0, every: 1, first: 0, lines: 0 },
    };

    /// The tile at a row and a column, and the rest of the lists from there.
    #[inline(always)]
    unsafe fn at(&self, item: usize, row: usize, column: usize) -> At {
        // SAFETY: both are listed.
        let (rows, columns) = unsafe { (self.rows.add(row), self.columns.add(column)) };
        let (src, dst) = (self.src.wrapping_add(column * item), self.dst.wrapping_add(row * item));
        At { src, dst, rows, columns }
    }
}

/// The first element of a tile.
#[derive(Clone, Copy)]
struct At {
    src: *const u8,
    dst: *mut u8,
    rows: List,
    columns: List,
}

impl At {
    /// Stores `N` times `E` vectors to their columns. Two loops: one with a branch inside would not
    /// be unrolled, and its vectors not stay in registers.
    #[inline(always)]
    unsafe fn store<V: Vector, const E: usize, const N: usize>(
        &self,
        tiles: [[V; E]; N],
        stream: bool,
    ) {
        // SAFETY: `columns` has an offset for each vector, where its bytes are writable; those of a
        // line are aligned if `stream`.
        unsafe {
            let at = |i: usize| self.dst.wrapping_offset(*self.columns.add(i));
            let mut i = 0;
            if stream && V::BYTES == LINE {
                while i < N * E {
                    tiles[i / E][i % E].stream(at(i));
                    i += 1;
                }
            } else {
                while i < N * E {
                    tiles[i / E][i % E].store(at(i));
                    i += 1;
                }
            }
        }
    }
}

/// Transposes a block: `B` for single bytes, `W` for larger elements of a size that is a power of
/// two.
#[inline(always)]
pub(crate) unsafe fn wide<B: Vector, W: Vector>(item: usize, block: &Block) {
    // SAFETY: the block's rows are readable and its columns writable, of `item` bytes each; the
    // processor has the instructions of both vectors.
    unsafe {
        match item {
            1 => transposed::<B, 1, 16>(block),
            2 => transposed::<W, 2, 8>(block),
            4 => transposed::<W, 4, 4>(block),
            8 => transposed::<W, 8, 2>(block),
            _ => transposed::<W, 16, 1>(block),
        }
    }
}

/// As `wide`, by vectors of 16 bytes and for elements of any size.
#[inline(always)]
pub(crate) unsafe fn narrow<N: Vector>(item: usize, block: &Block) {
    // SAFETY: the block's rows are readable and its columns writable, of `item` bytes each; the
    // processor has the vector's instructions.
    unsafe {
        match item {
            1 | 2 | 4 | 8 | 16 => wide::<N, N>(item, block),
            _ => odd::<N>(item, block),
        }
    }
}

/// Transposes elements of `S` bytes; tiles are `E` = `16 / S` columns wide, and a vector high.
#[inline(always)]
unsafe fn transposed<V: Vector, const S: usize, const E: usize>(block: &Block) {
    let high = V::BYTES / S;
    let [rows, columns] = block.n;
    // SAFETY: the block's rows are readable and its columns writable, at least a tile of them.
    unsafe {
        let mut d = 0;
        while d < rows {
            let row = d.min(rows - high);
            block.soon.prefetch::<V>(row, high);
            let mut c = 0;
            while c < columns {
                if S > 2 && V::BYTES > 16 && c + high <= columns {
                    let at = block.at(S, row, c);
                    if V::BYTES == 64 {
                        square::<V, S, E, 4>(at, block.stream);
                    } else {
                        square::<V, S, E, 2>(at, block.stream);
                    }
                    c += high;
                } else {
                    let at = block.at(S, row, c.min(columns - E));
                    at.store::<V, E, 1>([tile::<V, S, E>(at)], block.stream);
                    c += E;
                }
            }
            d += high;
        }
    }
}

/// 16 bytes of each of `BYTES / S` source rows become `E` destination rows of `BYTES`.
#[inline(always)]
unsafe fn tile<V: Vector, const S: usize, const E: usize>(at: At) -> [V; E] {
    // SAFETY: 16 bytes are readable at each of `BYTES / S` rows, whose offsets are in the list.
    unsafe {
        let mut tile = [V::load_lanes(at.src, at.rows, E); E];
        let mut i = 1;
        while i < E {
            tile[i] = V::load_lanes(at.src, at.rows.add(i), E);
            i += 1;
        }
        zips::<V, S, E>(tile)
    }
}

/// Rounds of zips on `E` vectors: a butterfly network, one power of two per round.
#[inline(always)]
unsafe fn zips<V: Vector, const S: usize, const E: usize>(mut rows: [V; E]) -> [V; E] {
    let mut round = 1;
    while round < E {
        let old = rows;
        let mut i = 0;
        while i < E / 2 {
            // SAFETY: no memory is accessed.
            [rows[2 * i], rows[2 * i + 1]] = unsafe { old[i].zip::<S>(old[i + E / 2]) };
            i += 1;
        }
        round *= 2;
    }
    rows
}

/// A square tile: `BYTES` of each of `BYTES / S` source rows become as many destination rows of
/// `BYTES`. Each source row is loaded once. `L` lanes are a vector.
#[inline(always)]
unsafe fn square<V: Vector, const S: usize, const E: usize, const L: usize>(at: At, stream: bool) {
    // SAFETY: a vector is readable at each of `BYTES / S` rows and writable at as many columns.
    unsafe {
        let mut parts = [[V::load(at.src.wrapping_offset(*at.rows)); E]; L];
        let mut i = 0;
        while i < E {
            let four = V::load_square(at.src, at.rows.add(i), E);
            let mut c = 0;
            while c < L {
                parts[c][i] = four[c];
                c += 1;
            }
            i += 1;
        }
        let mut c = 0;
        while c < L {
            parts[c] = zips::<V, S, E>(parts[c]);
            c += 1;
        }
        at.store::<V, E, L>(parts, stream);
    }
}

/// Columns of a tile of elements of odd size.
#[inline(always)]
pub(crate) const fn odd_columns(item: usize) -> usize {
    match item {
        3 => 4,
        5..=7 => 2,
        _ => 1,
    }
}

/// Permutations of 16 bytes: elements of odd size to a power of two, and back.
pub(crate) struct Permutations {
    widen: [u8; 16],
    narrow: [u8; 16],
}

impl Permutations {
    /// No rows or permutations.
    pub(crate) const NONE: Permutations = Permutations { widen: [0; 16], narrow: [0; 16] };

    /// Those for elements of `item` bytes.
    #[inline(never)]
    pub(crate) fn new(item: usize) -> Permutations {
        let item = item.clamp(1, 16);
        let wide = item.next_power_of_two();
        let mut made = Self::NONE;
        let mut i = 0;
        while i < 16 {
            let (element, byte) = (i >> wide.trailing_zeros(), i & (wide - 1));
            let widen = if byte < item { element * item + byte } else { 0x80 };
            let (element, byte) = (i / item, i % item);
            let at = element * wide + byte;
            made.widen[i] = widen as u8;
            made.narrow[i] = if at < 16 { at as u8 } else { 0x80 };
            i += 1;
        }
        made
    }
}

/// Transposes a block of elements of odd size.
#[inline(always)]
unsafe fn odd<N: Vector>(item: usize, block: &Block) {
    let (rows, mut d) = (block.n[0], 0);
    // SAFETY: the block's rows are readable and its columns writable.
    unsafe {
        while d < rows {
            // A few rows, so that prefetches are spread.
            let n = [if rows - d < 16 { rows - d } else { 16 }, block.n[1]];
            block.soon.prefetch::<N>(d, n[0]);
            let At { src, dst, rows, columns } = block.at(item, d, 0);
            let some = Block { src, dst, rows, columns, n, ..*block };
            match (item, block.loose.is_null()) {
                (3, false) => widened::<N, 4, 4>(&some, item),
                (5..=7, false) => widened::<N, 8, 2>(&some, item),
                (9..=15, false) => moved::<[u64; 2]>(&some, item, 0),
                _ => elements(&some, item),
            }
            d += n[0];
        }
    }
}

/// Tiles of `E` rows and columns, whose elements have `S` bytes in registers. `V` is one lane, and
/// rows and columns are multiples of `E`.
#[inline(always)]
unsafe fn widened<V: Vector, const S: usize, const E: usize>(block: &Block, item: usize) {
    // SAFETY: a loose block's rows, columns and permutations.
    unsafe {
        let Permutations { widen, narrow } = &*block.loose;
        let (widen, narrow) = (V::load(widen.as_ptr()), V::load(narrow.as_ptr()));
        let mut c = 0;
        while c < block.n[1] {
            let mut d = 0;
            while d < block.n[0] {
                let at = block.at(item, d, c);
                let mut tile = [widen; E];
                let mut i = 0;
                while i < E {
                    tile[i] = V::load_lanes(at.src, at.rows.add(i), 1).permute(widen);
                    i += 1;
                }
                tile = zips::<V, S, E>(tile);
                i = 0;
                while i < E {
                    tile[i] = tile[i].permute(narrow);
                    i += 1;
                }
                at.store::<V, E, 1>([tile], false);
                d += E;
            }
            c += E;
        }
    }
}

/// Copies elements one by one: each as two that overlap. Without vectors: compiled once.
#[inline(never)]
pub(crate) unsafe fn elements(block: &Block, item: usize) {
    // SAFETY: the block's rows are readable and its columns writable; two `T` that overlap are an
    // element.
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

/// Copies each element as a `T` and another one `second` bytes behind it.
#[inline(always)]
unsafe fn moved<T: Copy>(block: &Block, item: usize, second: usize) {
    let Block { src, dst, rows, columns, n, .. } = *block;
    let mut d = 0;
    while d < n[0] {
        // SAFETY: row `d` is readable and column `c` writable, `item` bytes of each element; two
        // `T` are within it.
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

//! The table of kernels that a level provides. The drivers are written once, against this.
use super::deal::Dealt;
use super::fills::Fill;
use super::nest::Stores;
use super::staged::Stage;
use crate::device::plan::Dim;

/// Where the rows of `N` places lie, from a common address each: so many bytes apart, or at the
/// offsets listed. Strides are faster, where they will do.
#[derive(Clone, Copy)]
pub(super) enum Rows<const N: usize> {
    /// Strides.
    Apart([isize; N]),
    /// Lists of as many offsets as there are rows.
    Listed([*const i32; N]),
}

impl Rows<2> {
    /// Each of them alone.
    pub(super) fn each(self) -> [Rows<1>; 2] {
        match self {
            Rows::Apart(places) => places.map(|by| Rows::Apart([by])),
            Rows::Listed(places) => places.map(|list| Rows::Listed([list])),
        }
    }

    /// Both, and rows of 64 bytes, one after the other, between them: `lines` lists these.
    pub(super) fn through(self, lines: *const i32) -> Rows<3> {
        match self {
            Rows::Apart([first, second]) => Rows::Apart([first, second, 64]),
            Rows::Listed([first, second]) => Rows::Listed([first, second, lines]),
        }
    }
}

/// One place's rows.
pub(super) trait Place: Copy {
    /// The offset of row `i`.
    ///
    /// # Safety
    /// There is such a row.
    unsafe fn at(self, i: usize) -> isize;

    /// The rows from `i` on, to be added to the address of row 0, and that address's offset.
    fn from(self, i: usize) -> (isize, Self);

    /// Three places' rows.
    #[allow(dead_code)] // by targets without kernels that ask
    fn three(places: [Self; 3]) -> Rows<3>;
}

impl Place for isize {
    #[inline(always)]
    unsafe fn at(self, i: usize) -> isize {
        (i as isize).wrapping_mul(self)
    }

    #[inline(always)]
    fn from(self, i: usize) -> (isize, isize) {
        ((i as isize).wrapping_mul(self), self)
    }

    #[inline(always)]
    fn three(places: [isize; 3]) -> Rows<3> {
        Rows::Apart(places)
    }
}

impl Place for *const i32 {
    #[inline(always)]
    unsafe fn at(self, i: usize) -> isize {
        // SAFETY: the caller's word.
        unsafe { *self.wrapping_add(i) as isize }
    }

    #[inline(always)]
    fn from(self, i: usize) -> (isize, *const i32) {
        (0, self.wrapping_add(i))
    }

    #[inline(always)]
    fn three(places: [*const i32; 3]) -> Rows<3> {
        Rows::Listed(places)
    }
}

/// Transposes `blocks` blocks that lie side by side in the source's rows. One block is
/// `width / size` source rows of 16 bytes each, and becomes `16 / size` destination rows of
/// `width` bytes each.
pub(super) type Tile = unsafe fn(src: *const u8, dst: *mut u8, rows: Rows<2>, blocks: usize);

/// Squares: of each, 64 bytes of 64 / size source rows become as many destination rows of 64 bytes.
/// There are `lines` of them one below the other in the source, side by side in the destination,
/// and `columns` side by side in the source.
#[allow(dead_code)] // by targets without such kernels
pub(super) struct Band {
    /// Elements have 1 << `log` bytes.
    pub(super) log: u32,
    /// Squares one below the other.
    pub(super) lines: usize,
    /// Squares side by side.
    pub(super) columns: usize,
    /// The source's rows, those of the destination, and those of what is half done: 64 bytes apart
    /// if squares share lines.
    pub(super) rows: Rows<3>,
    /// Where that is put: of bytes it may be where the source is. NULL: where the destination is.
    pub(super) half: *mut u8,
    /// Where squares go.
    pub(super) to: To,
    /// What is asked for.
    pub(super) ask: Ask,
}

impl Band {
    /// One square, for which nothing is asked.
    pub(super) fn one(log: u32, rows: Rows<3>, half: *mut u8, to: To) -> Band {
        Band { log, lines: 1, columns: 1, rows, half, to, ask: Ask::NONE }
    }

    /// Where what is half done of the square that goes to `dst` is put.
    #[inline(always)]
    #[allow(dead_code)] // likewise
    pub(super) fn half_or(&self, dst: *mut u8) -> *mut u8 {
        if self.half.is_null() { dst } else { self.half }
    }
}

/// What is asked for before a square is made, or while it is.
#[allow(dead_code)] // likewise
#[derive(Clone, Copy)]
pub(super) struct Ask {
    /// So many lines of its source rows, a power of two, wherever as many begin; 0: none.
    pub(super) lines: usize,
    /// So many bytes further on.
    pub(super) ahead: usize,
    /// In the first so many columns only.
    pub(super) columns: usize,
    /// Columns that precede the first one, as far as lines are counted.
    pub(super) first: usize,
    /// Whether they are to come into the first-level cache.
    pub(super) near: bool,
    /// Whether lines of the destination are asked for, too: of the first column's squares, and of
    /// that to the right of each.
    pub(super) beside: bool,
}

impl Ask {
    /// Nothing.
    pub(super) const NONE: Ask =
        Ask { lines: 0, ahead: 0, columns: 0, first: 0, near: false, beside: false };

    /// Whether a square asks among its own loads and stores, for itself: for one line of each row,
    /// into the second-level cache.
    #[inline(always)]
    #[allow(dead_code)] // likewise
    pub(super) fn among(&self) -> bool {
        self.lines == 1 && !self.near
    }

    /// What is asked for in the column of this number, of so many that have `BYTES` bytes: whether
    /// lines of the source, and whether those of the destination beside it.
    #[inline(always)]
    #[allow(dead_code)] // likewise
    pub(super) fn when<const BYTES: usize>(&self, column: usize, columns: usize) -> (bool, bool) {
        let every = self.lines * 64 / BYTES;
        let asks = column < self.columns && (self.first + column) & every.wrapping_sub(1) == 0;
        (asks && self.lines > 0, self.beside && column + 1 < columns)
    }
}

/// Makes squares.
pub(super) type Squares = unsafe fn(src: *const u8, dst: *mut u8, how: &Band);

/// Asks for `lines` lines from `at` on, in each of `n` rows; any address will do.
pub(super) type Fetch = unsafe fn(at: *const u8, rows: Rows<1>, n: usize, lines: usize);

/// Where a square's rows of 64 bytes go.
#[derive(Clone, Copy)]
pub(super) enum To {
    /// To where the destination's rows are.
    Rows,
    /// There, past the caches: they are whole lines.
    Lines,
    /// Likewise, but rows start anywhere in a line (at a whole element): each
    /// row's first bytes fill the line that the last ones of the same row of the square above
    /// begin. Those are kept here, or in registers; one more square lies above the first of a
    /// column.
    Shared(*mut u8),
}

/// A part of some destination rows, element by element: what is between two source rows. It begins
/// and ends with the first line after these, but for the rows' own beginnings and ends.
#[allow(dead_code)] // likewise
pub(super) struct Straight {
    /// Elements have 1 << `log` bytes.
    pub(super) log: u32,
    /// The source's rows from the first one on, and the destination's.
    pub(super) rows: Rows<2>,
    /// So many of the destination's.
    pub(super) columns: usize,
    /// So many of the destination's are known.
    pub(super) listed: usize,
    /// Elements of a whole row.
    pub(super) n_dst: usize,
    /// The two source rows.
    pub(super) from: usize,
    /// See `from`.
    pub(super) end: usize,
}

/// Copies elements of 8 and 16 bytes, past the caches where lines are whole. The destination's rows
/// start at whole elements.
pub(super) type Lines = unsafe fn(src: *const u8, dst: *mut u8, how: &Straight);

/// Copies `n` elements of 16 bytes, `stride` bytes apart in the source; asks for the line that has
/// the byte so many further on than each.
pub(super) type Asked = unsafe fn(dst: *mut u8, src: *const u8, n: usize, stride: isize, on: usize);

/// How to pick every k-th element out of contiguous bytes with byte shuffles, or to weave k
/// planes into one run: one table for both directions.
pub(super) struct Masks {
    /// `masks[j][b]`: which byte of load `j` becomes byte `b`; 0x80 for none.
    pub(super) masks: [[u8; 16]; 8],
    /// The number of loads, 1 to 8.
    pub(super) loads: usize,
    /// From an element's address to the first byte loaded for it and its followers.
    pub(super) first: isize,
    /// Bytes from one 16-byte result's source to the next's.
    pub(super) advance: isize,
}

/// How elements of up to 15 bytes, in rows of at most 16 bytes, are turned.
pub(super) struct Odd {
    /// Bytes of an element.
    pub(super) size: usize,
    /// Elements of a tile, either way: 4 or 2; of 1 and 2 bytes 8, of 9 and more one.
    pub(super) side: usize,
    /// Which byte of a row becomes which: to elements of 2, 4, 8 or 16 bytes, and back; 0x80 for
    /// none.
    pub(super) spread: [u8; 16],
    /// See `spread`.
    pub(super) close: [u8; 16],
    /// As `spread`, of a row's first and last eight bytes.
    pub(super) spread_ends: [u8; 16],
    /// As `close`, to a row's last eight bytes.
    pub(super) close_end: [u8; 16],
}

impl Odd {
    pub(super) fn new(size: usize) -> Odd {
        let (side, wide) = match size {
            0..=2 => (8, 2),
            3..=4 => (4, 4),
            5..=8 => (2, 8),
            _ => (1, 16),
        };
        let none = [0x80; 16];
        let mut how =
            Odd { size, side, spread: none, close: none, spread_ends: none, close_end: none };
        let put = |mask: &mut [u8; 16], at: usize, from: usize| {
            if let Some(to) = mask.get_mut(at) {
                *to = from as u8;
            }
        };
        // Bytes that are not among the last eight.
        let before = (side * size).saturating_sub(8);
        for near in 0..side * size {
            let far = near.checked_div(size).unwrap_or(0) * (wide - size) + near;
            put(&mut how.spread, far, near);
            put(&mut how.close, near, far);
            put(&mut how.spread_ends, far, if near < 8 { near } else { near + 8 - before });
            if near >= before {
                put(&mut how.close_end, near - before, far);
            }
        }
        how
    }

    /// From a tile's row to its last eight bytes.
    pub(super) fn end(&self) -> usize {
        (self.side * self.size).saturating_sub(8)
    }
}

/// Transposes tiles that follow one another in the destination's rows: `tiles` times `how.side`
/// source rows become `how.side` destination rows. 16 bytes of each source row are read, of which
/// `how.side` elements count; if they are the source's `last`, these alone. Only they are written.
pub(super) type OddTiles =
    unsafe fn(src: *const u8, dst: *mut u8, rows: Rows<2>, tiles: usize, how: &Odd, last: bool);

/// How elements that lie in turn become planes: from lines of the source to a line of each.
#[allow(dead_code)] // by targets without such kernels
pub(super) struct Planes {
    /// Which byte of its first two lines, or of the next two, becomes which byte of each plane. Or,
    /// 16 bytes four times: which byte of the first 16, of the second, ... becomes which of 16 of
    /// each plane; 0x80 for none.
    pub(super) order: [[u8; 64]; 4],
    /// Which bytes of it come from the next two lines.
    pub(super) masks: [u64; 4],
    /// Planes that are made, 1 to 4.
    pub(super) n: usize,
    /// Lines of the source for a line of each plane, 2 to 4.
    pub(super) lines: usize,
    /// Bytes from a plane to the next one.
    pub(super) apart: isize,
}

/// Writes `n` lines of each plane, past the caches.
pub(super) type Split = unsafe fn(dst: *mut u8, src: *const u8, n: usize, how: &Planes);

/// How two rows of elements of 3 to 15 bytes take turns; of 1 and 2 bytes, only their size.
#[allow(dead_code)] // by targets without such kernels
pub(super) struct Turns {
    /// Bytes of an element.
    pub(super) size: usize,
    /// Whether lines of the destination are asked for.
    pub(super) asks: bool,
    /// Whether those of the source are not, for they have been read.
    pub(super) read: bool,
    /// log2 of the elements of a row, the greatest power of two of them in 64 bytes: 2, 3, 4.
    pub(super) log: u32,
    /// Which byte of both rows becomes which: an element of the first row's first half, one of the
    /// second's, the next of the first's, ... The first 64 count.
    pub(super) low: [u8; 80],
    /// Likewise of their second halves.
    pub(super) high: [u8; 80],
    /// How a few elements are spread and closed up.
    pub(super) odd: Odd,
}

impl Turns {
    pub(super) fn new(size: usize, (asks, read): (bool, bool)) -> Turns {
        /// 16 bytes that follow one another.
        const RUN: u128 = 0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100;
        let log = 64usize.checked_div(size).and_then(usize::checked_ilog2).unwrap_or(0);
        let odd = Odd::new(size);
        let mut how = Turns { size, asks, read, log, low: [0; 80], high: [0; 80], odd };
        let put = |to: &mut [u8], from: usize| {
            if let Some(to) = to.first_chunk_mut() {
                *to = (RUN + (u128::MAX / 0xff) * from as u128).to_le_bytes();
            }
        };
        let elements = if size > 2 { 1 << log } else { 0 };
        // What is too much of a run, the next one covers.
        for element in 0..elements {
            let (to, from) = (element * size, element / 2 * size + element % 2 * 64);
            put(how.low.get_mut(to..).unwrap_or_default(), from);
            put(how.high.get_mut(to..).unwrap_or_default(), from + (size << log) / 2);
        }
        how
    }
}

/// Transposes up to 128 elements of up to 15 bytes either way: `n.0` of the destination's rows and
/// `n.1` of the source's. Element (`d`, `s`) is `rows[d]` bytes and `s` elements after the source's
/// address, and goes `columns[s]` bytes and `d` elements after the destination's. `rows` has a
/// multiple of 16, of which those too many are any rows. No byte of others is read or written.
pub(super) type OddSquares =
    unsafe fn(from: (*const u8, &[isize]), to: (*mut u8, &[isize]), n: (usize, usize), how: &Turns);

/// Such squares, and what they are for: of elements of 1 to 15 bytes.
#[allow(dead_code)] // by targets without such kernels
#[derive(Clone, Copy)]
pub(super) struct OddKernel {
    /// Elements of a side, at least, of so many bytes each.
    pub(super) least: fn(usize) -> usize,
    pub(super) turn: OddSquares,
}

/// How up to 16 rows take turns, element by element.
#[allow(dead_code)] // by targets without such kernels
pub(super) struct Strands {
    /// Bytes of an element.
    pub(super) size: usize,
    /// Rows.
    pub(super) rows: usize,
    /// Elements of every row that 64 bytes have room for, of 16 bytes of it.
    pub(super) columns: usize,
    /// The greatest multiple of them in 16 bytes.
    pub(super) block: usize,
    /// Of 16 bytes of each of eight rows, which byte comes where; and of the next eight.
    pub(super) order: [[u8; 64]; 2],
    /// Where those of the next eight come.
    pub(super) next: u64,
}

impl Strands {
    /// Up to 16 rows of elements of 1 or 2 bytes.
    pub(super) fn new(size: usize, rows: usize) -> Strands {
        let (size, rows) = (size.max(1), rows.max(1));
        let most = 16usize.checked_div(size).unwrap_or(1);
        let columns = 64usize.checked_div(size * rows).unwrap_or(1).min(most).max(1);
        let block = most.checked_div(columns).unwrap_or(1) * columns;
        let mut how = Strands { size, rows, columns, block, order: [[0; 64]; 2], next: 0 };
        for to in 0..(columns * rows * size).min(64) {
            // Both are at least 1.
            let (column, at) = (to.checked_div(size * rows), to.checked_rem(size * rows));
            let (column, at) = (column.unwrap_or(0), at.unwrap_or(0));
            let (row, byte) = (at >> (size / 2), at & (size - 1));
            how.next |= u64::from(row >= 8) << (to & 63);
            let order = how.order.get_mut(row / 8);
            if let Some(from) = order.and_then(|order| order.get_mut(to)) {
                *from = (row % 8 * 16 + column * size + byte) as u8;
            }
        }
        how
    }
}

/// Writes the first elements of some rows, then the second ones, ... up to the `n`-th. Row `i`
/// begins `rows[i]` bytes from `src` on; those too many are any rows. No byte of others is read or
/// written.
pub(super) type Braid =
    unsafe fn(src: *const u8, rows: &[isize; 16], dst: *mut u8, n: usize, how: &Strands);

/// Bytes of the largest window that [`Groups`] are made of, or written to.
pub(super) const WINDOW: usize = 256;

/// Some bytes of a window, by bits.
pub(super) type Bytes = [u128; WINDOW / 128];

/// How groups of bytes of the source become groups of the destination: of as many as are made at
/// once, all bytes are in one window on either side.
#[allow(dead_code)] // by targets without such kernels
pub(super) struct Groups {
    /// Which byte of the source's window becomes which of the destination's.
    pub(super) order: [u8; WINDOW],
    /// The bytes of the destination's window that are written.
    pub(super) mask: Bytes,
    /// Bytes of a window: 16, 32 or [`WINDOW`] (without gaps in the destination), 64 or 128.
    pub(super) width: usize,
    /// From the source's address of the first group to its window.
    pub(super) first: isize,
    /// Bytes from a group to the next one: in the source, and in the destination.
    pub(super) strides: [isize; 2],
    /// Bytes of a group.
    pub(super) bytes: usize,
    /// Groups that one window has.
    pub(super) at_once: usize,
    /// Bytes from a group's first one to its last: in the source.
    pub(super) span: usize,
    /// Likewise in the destination.
    pub(super) reach: usize,
}

impl Groups {
    /// Of windows that are read and written in whole: so many groups, or fewer, have a byte of one
    /// outside.
    #[allow(dead_code)] // likewise
    pub(super) fn outside(&self) -> usize {
        let Groups { width, span, bytes, .. } = *self;
        let behind = (width - span.min(width)).checked_div(self.strides[0].unsigned_abs());
        let after = width.checked_div(bytes).unwrap_or(width);
        behind.map_or(usize::MAX, |behind| behind + 1).max(after).max(self.at_once)
    }
}

/// Writes `n` groups. No other byte is written, and of the source none is read that is not between
/// two of theirs.
pub(super) type Shuffle = unsafe fn(dst: *mut u8, src: *const u8, n: usize, how: &Groups);

/// Where 16 packed elements of each of some tiles of source rows are, or if they are `wide` 32 of 4
/// bits: of the first row at `bit`, of the others `apart`, all at whole elements.
pub(super) struct Packed {
    pub(super) src: *const u8,
    pub(super) bit: i64,
    pub(super) apart: i64,
    pub(super) tiles: usize,
    /// Whether none precede them in the first row. At least 16 bytes of each row are there.
    #[allow(dead_code)] // by targets without SIMD kernels
    pub(super) first: bool,
    pub(super) wide: bool,
}

/// Transposes tiles of packed elements into as many destination rows, `pitch` bytes apart, at whole
/// bytes: of 64 rows of 4 bits (the even columns' rows, and then the odd ones'), or of 32 of 6.
pub(super) type Turn = unsafe fn(ops: &Ops, from: &Packed, to: *mut u8, pitch: usize);

/// Makes two rows of 64 bytes of nibbles one, 64 times over: a byte of theirs becomes the byte of
/// its low nibbles, or of its high ones. Rows are `apart` bytes from one another.
pub(super) type Pairs = unsafe fn(to: *mut u8, src: *const u8, apart: isize, high: bool);

/// A level's kernels.
pub(super) struct Ops {
    /// Bytes of a full-width tile's destination rows: 16, 32 or 64.
    pub(super) width: usize,
    /// Full-width tiles for elements of 1, 2, 4, 8 and 16 bytes.
    pub(super) tiles: [Tile; 5],
    /// The same with destination rows of 16 bytes.
    pub(super) narrow: [Tile; 5],
    /// Squares of 64 bytes either way, where there is something better than tiles.
    pub(super) squares: Option<Squares>,
    /// Whether they can share lines, of more than a byte.
    pub(super) shares: bool,
    /// What shares those of bytes: half a square, 32 bytes of each source row.
    pub(super) bytes: Option<Squares>,
    /// Elements of 8 and 16 bytes, one by one, to rows that start anywhere in a line.
    pub(super) lines: Option<Lines>,
    /// Tiles of elements of 3, 5, 6 and 7 bytes.
    pub(super) odd: Option<OddTiles>,
    /// Copies `n` bytes, whole lines, that begin at bit `shift` of `from`. They may overlap from
    /// below.
    pub(super) shift: unsafe fn(to: *mut u8, from: *const u8, shift: u32, n: usize),
    /// Tiles of packed elements of 4 bits.
    pub(super) fours: Turn,
    /// What makes nibbles bytes, where squares of these are faster than tiles.
    pub(super) pairs: Option<Pairs>,
    /// Tiles of packed elements of 6 bits.
    pub(super) sixes: Option<Turn>,
    /// What asks for lines.
    pub(super) fetch: Fetch,
    /// Copies elements of 16 bytes that follow one another in the destination, and asks for what
    /// follows each.
    pub(super) asked: Asked,
    /// See [`Fill`].
    pub(super) fill: Fill,
    /// Copies whole lines to an aligned destination, past the caches.
    pub(super) stream: unsafe fn(dst: *mut u8, src: *const u8, lines: usize),
    /// Writes an aligned line, past the caches if it can: `n` bytes at `tail` and the first of
    /// those at `head`.
    pub(super) join: unsafe fn(line: *mut u8, tail: *const u8, head: *const u8, n: usize),
    /// See [`Pieces`].
    pub(super) pieces: Pieces,
    /// Picks up to `n` elements by [`Masks`]; returns how many 16-byte results were written.
    pub(super) step: unsafe fn(dst: *mut u8, src: *const u8, results: usize, how: &Masks) -> usize,
    /// Weaves `planes` planes: `rounds` times 16 bytes of each. `masks` has one table of `planes`
    /// results of `planes` loads.
    pub(super) weave: Weave,
    /// Unpacks up to `groups` times eight elements of `width` bits, each to a byte, from bit
    /// `shift` of `from` on, by loads of eight bytes; returns how many groups.
    pub(super) unpack:
        unsafe fn(to: *mut u8, from: *const u8, shift: u32, width: u32, groups: usize) -> usize,
    /// Packs likewise, by stores of eight bytes; `carry` is what precedes in the first byte.
    /// Returns how many groups, and what precedes the next.
    pub(super) pack: Pack,
    /// Whether `unpack` and `pack` do anything.
    pub(super) packs: bool,
    /// Squares of elements of any size up to 15 bytes.
    pub(super) odd_squares: Option<OddKernel>,
    /// Where rows are copied before they are turned.
    pub(super) stage: Option<&'static Stage>,
    /// Few rows in turn.
    pub(super) braid: Option<Braid>,
    /// Groups of bytes in any order, of how large windows they can be made, and whether only those
    /// bytes of a window are read and written that belong to groups, or all.
    pub(super) groups: Option<(&'static [usize], bool, Shuffle)>,
    /// Elements that lie in turn, to planes, and of how many bytes at once: 16 or 64.
    pub(super) planes: Option<(usize, Split)>,
    /// Pixels to planes, and back.
    pub(super) deal: Option<Dealt>,
    /// Copies elements of 32 bytes and more in three dimensions, innermost first; if they have at
    /// most a kilobyte, lines of the destination may be asked for `soon` bytes ahead; or all is
    /// near (`NEAR`).
    pub(super) runs: Runs,
    /// Orders the stores that went past the caches before whatever follows.
    pub(super) fence: unsafe fn(),
    /// Whether `stream` is worth using for large outputs.
    pub(super) streams: bool,
}

/// Writes the lines, past the caches if it can, of `count` pieces of `size` bytes, 64 or more, that
/// are `stride` bytes apart from `src` on and follow `n` bytes at `tail`, with which a piece ends
/// that has 64 bytes, too: from `line` on, all but what does not fill the last line.
pub(super) type Pieces = unsafe fn(
    line: *mut u8,
    tail: (*const u8, usize),
    src: *const u8,
    size: usize,
    count: usize,
    stride: isize,
);

/// Copies runs: `runs(size, dims, src, dst, stores)`.
pub(super) type Runs = unsafe fn(usize, [&Dim; 3], *const u8, *mut u8, Stores);

/// Weaves `planes` (2 to 8) runs of `rounds` × 16 bytes into one. `masks[result][plane]`.
/// Returns the rounds done: all, or none.
pub(super) type Weave = unsafe fn(
    dst: *mut u8,
    src: *const u8,
    plane_stride: isize,
    rounds: usize,
    planes: usize,
    masks: &[[[u8; 16]; 8]; 8],
) -> usize;

/// See [`Ops::pack`].
pub(super) type Pack = unsafe fn(
    to: *mut u8,
    from: *const u8,
    shift: u32,
    width: u32,
    groups: usize,
    carry: u64,
) -> (usize, u64);

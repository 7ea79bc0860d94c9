//! Transposes of packed elements of 4 and 6 bits, of rows that begin anywhere in a byte: strips of
//! some destination rows are made in the buffer, tile by tile, and moved to their bits.
use core::ptr::copy_nonoverlapping;

use super::bitrun;
use super::ops::{Band, Ops, Packed, Pairs, Rows, Squares, To};
use super::packed_staged;
use super::staged::Memory;
use super::stream::Buffer;
use super::tuning::tuning;
use super::walk::{set, walk};
use crate::device::part::Part;

/// Source columns of which strips that are turned in part twice find the lines in the caches.
const BLOCK: i64 = 2048;
/// Elements of either side of a square.
const SQUARE: i64 = 128;
/// The bits of a place that tell where in a line it is.
pub(super) const LINE: i64 = 511;

/// How the elements of one width are turned.
pub(super) struct Way {
    /// Bits of an element.
    width: i64,
    /// Elements that are turned at a time along the destination's innermost dimension.
    tile: i64,
    /// A strip's elements of a destination row: whole lines, past the caches or through them.
    lined: i64,
    cached: i64,
    /// Its source columns, a power of 2.
    columns: i64,
    /// The same where lines begin at another element in each row, of 16 columns: elements, and
    /// those of which the lines that begin among them are whole.
    held: i64,
    shown: i64,
    /// In the time of so many columns, a power of 2, lines of as many that follow are asked for.
    round: i64,
}

static FOUR: Way = Way {
    width: 4,
    tile: 64,
    lined: 128,
    cached: 256,
    columns: 32,
    held: 512,
    shown: 384,
    round: 512,
};
static SIX: Way = Way {
    width: 6,
    tile: 32,
    lined: 256,
    cached: 256,
    columns: 16,
    held: 320,
    shown: 234,
    round: 256,
};

impl Way {
    /// The way for elements of a width, so many along the destination's innermost dimension and
    /// along the source's, if there is one. `odd`: the bits of their places that are not 0 in all.
    pub(super) fn new(
        ops: &Ops,
        width: usize,
        (n_dst, n_src): (i64, i64),
        odd: i64,
    ) -> Option<&'static Way> {
        match width {
            // The kernels read 16 bytes, and take each second or fourth row's phase to be the same.
            4 if n_dst >= FOUR.tile && n_src >= 32 && odd & 3 == 0 => Some(&FOUR),
            6 if n_dst >= SIX.tile && n_src >= 24 && odd & 1 == 0 => ops.sixes.map(|_| &SIX),
            _ => None,
        }
    }
}

/// One of a plan's transposes. Places and strides are bits.
pub(super) struct BitFace<'a> {
    pub(super) ops: &'a Ops,
    pub(super) src: *const u8,
    pub(super) src_bit: i64,
    /// From one source row to the next.
    pub(super) ss: i64,
    /// The start of a line.
    pub(super) dst: *mut u8,
    pub(super) dst_bit: i64,
    /// From one destination row to the next.
    pub(super) ds: i64,
    pub(super) n_dst: i64,
    pub(super) n_src: i64,
    way: &'static Way,
    /// Whether whole lines go past the caches.
    pub(super) streams: bool,
    /// Whether they do, and lines begin at another element in each row.
    skewed: bool,
    /// Source columns turned at a time.
    columns: i64,
    /// Whether lines of the destination are asked for.
    asks: bool,
}

/// A place in destination rows: where an element begins, or with [`LINE`] the first line from there
/// on.
type Cut = (i64, i64);

/// Elements of destination rows that are turned together, whole tiles, and what of them is written.
struct Strip {
    first: i64,
    n: i64,
    from: Cut,
    to: Cut,
}

/// All elements of a plan's innermost dimension and of `dense`, for which there is the `way`.
///
/// # Safety
/// As [`super::copy`].
pub(super) unsafe fn tiles(ops: &Ops, way: &'static Way, plan: &Part, dense: usize, streams: bool) {
    let (row, column) = (plan.inner(), plan.dim(dense));
    let past = plan.dst as usize & 63;
    let (src, dst) = (plan.src, plan.dst.wrapping_sub(past));
    let (ss, ds, n_dst, n_src) = (row.src, column.dst, row.n, column.n);
    let skewed = streams && ds & LINE != 0;
    let columns = if skewed { 16 } else { way.columns };
    let mut memory = Memory::none();
    walk(plan, set(&[plan.ndim.checked_sub(1), Some(dense)]), |src_at, dst_at| {
        let src_bit = plan.src_bit + src_at as i64;
        let dst_bit = plan.dst_bit + dst_at as i64 + 8 * past as i64;
        let face = BitFace {
            ops,
            src,
            src_bit,
            ss,
            dst,
            dst_bit,
            ds,
            n_dst,
            n_src,
            way,
            streams,
            skewed,
            columns,
            asks: false,
        };
        // SAFETY: elements of the caller's plan.
        unsafe {
            match packed_staged::copy(&face, &mut memory) {
                Some(done) => face.beside(done),
                None => face.blocks(),
            }
        }
    });
}

impl BitFace<'_> {
    /// Whether elements have 4 bits.
    pub(super) fn four(&self) -> bool {
        self.way.width == 4
    }

    /// Whether elements of 4 bits are halves of bytes that both sides' rows are made of.
    fn bytes(&self) -> bool {
        self.four() && (self.src_bit | self.dst_bit | self.ss | self.ds) & 7 == 0
    }

    /// The face of `n_dst` and `n_src` elements from `d` and `s` on.
    fn part(&self, (d, n_dst): (i64, i64), (s, n_src): (i64, i64)) -> Self {
        let width = self.way.width;
        let src_bit = self.src_bit + d * self.ss + s * width;
        let dst_bit = self.dst_bit + s * self.ds + d * width;
        BitFace { src_bit, dst_bit, n_dst, n_src, ..*self }
    }

    /// What is not between these elements of destination rows and of source rows: a tile at least.
    #[inline(never)] // a frame of its own: stacks may be small
    unsafe fn beside(&self, [ds, ss]: [(i64, i64); 2]) {
        let (tile, columns) = (self.way.tile, self.way.columns);
        let some = |n: i64, least: i64| if n > 0 { n.max(least) } else { 0 };
        let below = some(self.n_dst - ds.1, tile);
        let after = some(self.n_src - ss.1, columns);
        let (whole, between) = ((0, self.n_src), (ds.0, ds.1 - ds.0));
        for part in [
            self.part((0, some(ds.0, tile)), whole),
            self.part((self.n_dst - below, below), whole),
            self.part(between, (0, some(ss.0, columns))),
            self.part(between, (self.n_src - after, after)),
        ] {
            if part.n_dst > 0 && part.n_src > 0 {
                // SAFETY: a part of the face, which the caller vouches for.
                unsafe { BitFace { asks: self.streams, ..part }.strips() };
            }
        }
    }

    /// Blocks of source columns, or all of them.
    unsafe fn blocks(&self) {
        // Squares of bytes reach rows that start anywhere in a line through the caches.
        let through = self.skewed && self.bytes() && self.ops.pairs.is_some() && !tuning().packed;
        let mut s = 0;
        while s < self.n_src {
            let left = self.n_src - s;
            let n_src = if left < 2 * BLOCK || !self.skewed { left } else { BLOCK };
            let part = self.part((0, self.n_dst), (s, n_src));
            let (streams, skewed) = (self.streams && !through, self.skewed && !through);
            // SAFETY: a part of the face, which the caller vouches for.
            unsafe { BitFace { streams, skewed, ..part }.strips() };
            s += n_src;
        }
    }

    /// Strips that end where the destination's lines do. The last tile of a row or column moves
    /// back over its predecessor, and makes the same bits again.
    unsafe fn strips(&self) {
        let &Way { tile, held, shown, .. } = self.way;
        let narrow = self.streams && tuning().packed;
        let lined = match self.columns {
            _ if narrow => self.way.lined,
            few if few < self.way.columns => held,
            _ => self.way.cached,
        };
        let head = self.head();
        let mut from = (0, 0);
        while from.0 < self.n_dst {
            let first = from.0.min(self.n_dst - tile);
            let (most, to) = if self.skewed {
                (held, (from.0 + shown, LINE))
            } else if from.0 < head {
                ((head - first + tile - 1) & -tile, (head, 0))
            } else {
                (lined, (from.0 + lined, 0))
            };
            let n = most.min((self.n_dst - first) & -tile);
            let end = first + n;
            let to = if n < most || end == self.n_dst { (end, 0) } else { to };
            let strip = Strip { first, n, from, to };
            // SAFETY: a part of the face, which the caller vouches for.
            unsafe { self.strip(&strip) };
            from = to;
        }
    }

    /// Elements before the first line of a destination row where an element begins, if all rows
    /// agree on that; else none.
    pub(super) fn head(&self) -> i64 {
        let before = self.dst_bit.wrapping_neg() & LINE;
        match self.way.width {
            _ if self.ds & LINE != 0 => 0,
            4 => before >> 2,
            _ => ((before >> 1) * 171) & 255,
        }
    }

    /// Squares, where they will do, and tiles.
    unsafe fn strip(&self, strip: &Strip) {
        let (square, lead) = (self.square(strip), self.lead());
        let mut s = 0;
        while s < self.n_src {
            let left = self.n_src - s;
            // SAFETY: parts of the caller's strip.
            unsafe {
                match square {
                    Some(square) if s >= lead && left >= SQUARE => {
                        self.squares(square, strip, s);
                        s += SQUARE;
                        continue;
                    }
                    _ => self.fetch(strip, s),
                }
                if self.asks {
                    let below = self.dst_bit + (s + 2 * self.columns) * self.ds;
                    let at = bitrun::at(self.dst, below + strip.first * self.way.width).0;
                    let rows = Rows::Apart([(self.ds >> 3) as isize]);
                    (self.ops.fetch)(at, rows, self.columns as usize, 1);
                }
                self.window(strip, s.min(self.n_src - self.columns));
            }
            let next = s + self.columns;
            s = if square.is_some() && s < lead { next.min(lead) } else { next };
        }
    }

    /// The kernels of squares of nibbles, if a strip's rows are whole lines of the destination, or
    /// bytes where these do not go past the caches, and the source's begin at whole bytes.
    fn square(&self, strip: &Strip) -> Option<(Pairs, Squares)> {
        let &Strip { first, n, from, to } = strip;
        let part = if self.streams { LINE } else { 7 };
        let starts = (self.ds | (self.dst_bit + first * self.way.width)) & part == 0;
        let whole = starts && n & (SQUARE - 1) == 0 && from == (first, 0) && to == (first + n, 0);
        let suits = whole && self.way.width == 4 && self.ss & 7 == 0 && tuning().nibbles;
        self.ops.pairs.zip(self.ops.squares).filter(|_| suits)
    }

    /// The first source column of squares of nibbles: where lines begin, if the rows agree on that,
    /// or bytes.
    fn lead(&self) -> i64 {
        let start = self.src_bit + ((self.src as i64 & 63) << 3);
        (start.wrapping_neg() & if self.ss & LINE == 0 { LINE } else { 7 }) >> 2
    }

    /// A strip's elements of the destination rows from `s` on, so many that bytes of two elements
    /// make squares: the even rows of the destination, and the odd ones.
    #[inline(never)] // a frame of its own: stacks may be small
    unsafe fn squares(&self, (pairs, squares): (Pairs, Squares), strip: &Strip, s: i64) {
        let [chunk, distance] = tuning().ahead;
        let mut buffer = Buffer::new();
        let half = buffer.ptr();
        let apart = (self.ss >> 3) as isize;
        let rows = Rows::Apart([64, (self.ds >> 2) as isize, 64]);
        let to = if self.streams { To::Lines } else { To::Rows };
        let one = Band::one(0, rows, half, to);
        let bytes = (s - self.lead()) as usize / 2;
        let asks = self.streams && bytes & (chunk - 1) == 0;
        for d in (strip.first..strip.first + strip.n).step_by(SQUARE as usize) {
            let bit = self.src_bit + d * self.ss + s * self.way.width;
            let src = bitrun::at(self.src, bit).0;
            let dst = self.dst_bit + s * self.ds + d * self.way.width;
            // SAFETY: a square of the caller's strip, of whole lines or bytes. The buffer has room
            // for one of bytes, and a prefetch touches nothing.
            unsafe {
                if asks {
                    let soon = src.wrapping_add(distance);
                    (self.ops.fetch)(soon, Rows::Apart([apart]), SQUARE as usize, chunk / 64);
                }
                for (high, dst) in [(false, dst), (true, dst + self.ds)] {
                    pairs(half, src, apart, high);
                    squares(half, bitrun::at(self.dst, dst).0.cast_mut(), &one);
                }
            }
        }
    }

    /// A strip's elements of the destination rows from `s` on.
    #[inline(never)] // a frame of its own: stacks may be small
    unsafe fn window(&self, strip: &Strip, s: i64) {
        let &Way { width, tile, .. } = self.way;
        let mut buffer = Buffer::new();
        let lines = buffer.ptr();
        let pitch = (strip.n * width / 8) as usize;
        let from = Packed {
            src: self.src,
            bit: self.src_bit + strip.first * self.ss + s * width,
            apart: self.ss,
            tiles: (strip.n >> tile.trailing_zeros()) as usize,
            first: s == 0,
            wide: self.columns > 16,
        };
        let turn = self.ops.sixes.filter(|_| width == 6).unwrap_or(self.ops.fours);
        // SAFETY: tiles of the face, and as many bytes of the buffer's rows.
        unsafe { turn(self.ops, &from, lines, pitch) };
        for i in 0..self.columns {
            // Of nibbles, the even columns come first.
            let column = match 2 * i {
                _ if width != 4 => i,
                even if even < self.columns => even,
                odd => odd + 1 - self.columns,
            };
            let row = self.dst_bit + (s + column) * self.ds;
            let cut = |(d, line): Cut| (row + d * width + line) & !line;
            let (from, to) = (cut(strip.from), cut(strip.to));
            let line = lines.wrapping_add(i as usize * pitch);
            // SAFETY: the strip's bits of a destination row; none, if what it was to begin with,
            // the end of its predecessor's lines, is beyond them.
            unsafe {
                let skip = from - row - strip.first * width;
                self.write(from, line, skip, (to - from).max(0));
            }
        }
    }

    /// Writes `n` bits from bit `skip` of `line` on, whole lines of them past the caches.
    ///
    /// # Safety
    /// They are readable and writable, without overlap.
    unsafe fn write(&self, to: i64, line: *mut u8, skip: i64, n: i64) {
        let head = (to.wrapping_neg() & LINE).min(n);
        let whole = if self.streams { (n - head) & !LINE } else { 0 };
        // SAFETY: head, whole lines and tail make up the caller's bits.
        unsafe {
            if whole <= 0 {
                return self.bits(to, line, skip, n);
            }
            self.bits(to, line, skip, head);
            let (at, _) = bitrun::at(self.dst, to + head);
            let (from, shift) = bitrun::at(line, skip + head);
            if shift > 0 {
                (self.ops.shift)(from.cast_mut(), from, shift, (whole >> 3) as usize);
            }
            (self.ops.stream)(at.cast_mut(), from, (whole >> 9) as usize);
            let done = head + whole;
            self.bits(to + done, line, skip + done, n - done);
        }
    }

    /// Likewise, through the caches.
    unsafe fn bits(&self, to: i64, line: *const u8, skip: i64, n: i64) {
        if n == 0 {
            return;
        }
        // SAFETY: the caller's bits.
        unsafe {
            if (to | skip | n) & 7 > 0 {
                return bitrun::copy(self.dst, to, line, skip, n as usize);
            }
            let (from, to) = (bitrun::at(line, skip).0, bitrun::at(self.dst, to).0);
            copy_nonoverlapping(from, to.cast_mut(), (n >> 3) as usize);
        }
    }

    /// Asks for the source's lines that the next tiles of a strip need, each tile for its share of
    /// the rows. (Memory is slow to change its rows: several lines of a row at once.)
    fn fetch(&self, strip: &Strip, s: i64) {
        let &Way { width, round, .. } = self.way;
        let (share, ahead) = (s & (round - 1), round.trailing_zeros());
        let rows = (strip.n * self.columns + round - 1) >> ahead;
        let (mut row, mut column) =
            ((share >> self.columns.trailing_zeros()) * rows, s - share + round);
        // After the last ones, the next strip's first.
        if column >= self.n_src {
            (row, column) = (row + strip.to.0 - strip.first, 0);
        }
        let bit = self.src_bit + (strip.first + row) * self.ss + column * width;
        if tuning().packed && strip.first + row < self.n_dst {
            let apart = Rows::Apart([(self.ss >> 3) as isize]);
            // SAFETY: any address will do, and no list is read.
            unsafe { (self.ops.fetch)(bitrun::at(self.src, bit).0, apart, rows as usize, 5) };
        }
    }
}

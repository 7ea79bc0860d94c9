//! Converts a plan to launches: selects the kernel, and each launch's part of the plan.
use super::kernels::{KernelArgs, Launch, MAX_DIGITS};
use crate::nest::Nest;
use crate::plan::{Dim, Item, MAX_NDIM, Plan};

/// Maximum elements of a launch: indices of 31 bits, runs of less than 2^32 bytes.
const MAX_COUNT: i64 = 1 << 27;
/// Minimum pixels of an image for a block.
const PIXELS_LEAST: i64 = 128;
/// Maximum bits of a row of packed elements.
const MAX_BITS: i64 = 1 << 30;

/// A dimension and its split into launches: blocks of `block`, or, if that is the whole extent,
/// every `fold`th index.
#[derive(Clone, Copy)]
struct Loop {
    dim: Dim,
    block: i64,
    fold: i64,
    /// The number of the next launch along this dimension.
    at: i64,
}

impl Loop {
    const NONE: Loop = Loop { dim: Dim::NONE, block: 1, fold: 1, at: 0 };

    /// First index and dimension of the next launch.
    fn now(&self) -> (i64, Dim) {
        let Loop { dim: Dim { n, src, dst }, block, fold, at } = *self;
        if fold > 1 {
            let left = n - at + fold - 1;
            let n = left.checked_div(fold).unwrap_or(0);
            return (at, Dim { n, src: src.wrapping_mul(fold), dst: dst.wrapping_mul(fold) });
        }
        (at * block, Dim { n: block.min(n - at * block), src, dst })
    }

    /// Advances to the next launch along this dimension; false: back to the first.
    fn advance(&mut self) -> bool {
        self.at += 1;
        let more = if self.fold > 1 {
            self.at < self.fold.min(self.dim.n)
        } else {
            self.at.saturating_mul(self.block) < self.dim.n
        };
        if !more {
            self.at = 0;
        }
        more
    }
}

/// The family of kernels for a plan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Elements of so many bytes; the innermost dimension is dense in the destination, or a
    /// dimension of one element.
    Words(u32),
    /// Elements of so many bytes: 4, 8 or 16.
    Elements(u32),
    /// Elements of so many bytes; the innermost dimension is dense in the destination, the next in
    /// the source.
    Transpose(u32),
    /// Elements of so many bytes, a few channels of them innermost, then pixels: interleaved in the
    /// source and planes in the destination (`true`), or the reverse.
    Pixels(u32, bool),
    /// Packed elements, a row of them innermost: bits of an element, and of its slot.
    Bits(u32, u32),
}

/// The launches of a plan.
pub struct Launches {
    way: Way,
    src: *const u8,
    dst: *mut u8,
    /// Bits from `src` and from `dst` to the first element.
    src_bit: i64,
    dst_bit: i64,
    ndim: usize,
    /// Innermost first.
    loops: [Loop; MAX_NDIM + 1],
    done: bool,
}

impl Launches {
    /// The launches of a plan, which is simplified and has at least one element.
    pub fn new(plan: &Plan) -> Launches {
        Launches::limited(plan, MAX_COUNT)
    }

    /// As [`Launches::new`]; no launch has more than about `limit` elements.
    pub fn limited(plan: &Plan, limit: i64) -> Launches {
        let nest = Nest::new(plan);
        let Nest { src, dst, src_bit, dst_bit, .. } = nest;
        let loops = [Loop::NONE; MAX_NDIM + 1];
        let way = Way::Elements(16);
        let done = plan.count() == 0 || plan.nbytes() == 0;
        let mut all = Launches { way, src, dst, src_bit, dst_bit, ndim: 0, loops, done };
        match nest.item {
            Item::Bytes(nbytes) => all.bytes(&nest, nbytes as i64),
            Item::Bits { width, dst_slot } => all.bits(&nest, width as i64, dst_slot as i64),
        }
        let most = match all.way {
            // Bits of a row are counted in an `int`.
            Way::Bits(..) => MAX_BITS.checked_div(all.dim(0).dst).unwrap_or(1).clamp(8, MAX_COUNT),
            _ => MAX_COUNT,
        };
        all.cut(limit.min(most).max(8));
        all
    }

    fn push(&mut self, dim: Dim) {
        if let Some(place) = self.loops.get_mut(self.ndim) {
            *place = Loop { dim, block: dim.n, ..Loop::NONE };
            self.ndim += 1;
        }
    }

    fn push_all(&mut self, nest: &Nest) {
        for i in (0..nest.len()).rev() {
            self.push(nest.dim(i));
        }
    }

    fn dim(&self, i: usize) -> Dim {
        self.loops.get(i).map_or(Dim::NONE, |l| l.dim)
    }

    /// Selects the widest elements that sizes, strides and addresses allow.
    fn bytes(&mut self, nest: &Nest, nbytes: i64) {
        let all = (0..nest.len()).fold(nbytes, |all, i| all | nest.dim(i).src | nest.dim(i).dst);
        let all = all | self.src as i64 | self.dst as i64;
        let size = 1i64 << all.trailing_zeros().min(4);
        if nbytes > size {
            self.push(Dim { n: nbytes >> size.trailing_zeros(), src: size, dst: size });
        }
        self.push_all(nest);
        if let Some(apart) = self.pixels(size) {
            self.way = Way::Pixels(size as u32, apart);
        } else if self.transposes(size) {
            self.way = Way::Transpose(size as u32);
        } else if size >= 4 {
            self.way = Way::Elements(size as u32);
        } else {
            self.way = Way::Words(size as u32);
            if self.dim(0).dst != size {
                self.lead(Dim { n: 1, src: 0, dst: 0 });
            }
        }
    }

    /// Whether the pixel kernels apply, and whether they split pixels; if so, makes channels and
    /// pixels the first dimensions.
    fn pixels(&mut self, size: i64) -> Option<bool> {
        // Four channels of 4 bytes or more are transposed 16 bytes at a time.
        let few = |dim: Dim| size < 16 && matches!(dim.n, 2 | 3 | 5..=7) || size < 4 && dim.n == 4;
        let row = self.dim(0);
        let apart = row.n >= PIXELS_LEAST;
        if row.dst != size {
            return None;
        }
        let at = (1..self.ndim).find(|&i| {
            let other = self.dim(i);
            let (channels, pixels) = if apart { (other, row) } else { (row, other) };
            let together = channels.n.wrapping_mul(size);
            let dense = if apart { (other.src, row.src) } else { (other.src, together) };
            few(channels)
                && pixels.n >= PIXELS_LEAST
                && dense == (size, together)
                && (apart || other.dst == together)
        })?;
        let other = self.dim(at);
        self.shift(1, at);
        self.set(0, if apart { other } else { row });
        self.set(1, if apart { row } else { other });
        Some(apart)
    }

    /// Whether tiles apply; if so, makes the source's dense dimension the second.
    fn transposes(&mut self, size: i64) -> bool {
        let row = self.dim(0);
        let dense = |i: &usize| self.dim(*i).src.wrapping_abs() == size;
        let Some(at) = (0..self.ndim).find(dense) else { return false };
        if at == 0 || row.dst != size || row.n < 4 || self.dim(at).n < 4 {
            return false;
        }
        let mut column = self.dim(at);
        if column.src < 0 {
            let last = column.n - 1;
            self.src = self.src.wrapping_offset(last.wrapping_mul(column.src) as isize);
            self.dst = self.dst.wrapping_offset(last.wrapping_mul(column.dst) as isize);
            column.src = column.src.wrapping_neg();
            column.dst = column.dst.wrapping_neg();
        }
        self.shift(1, at);
        self.set(1, column);
        true
    }

    fn set(&mut self, i: usize, dim: Dim) {
        if let Some(place) = self.loops.get_mut(i) {
            *place = Loop { dim, block: dim.n, ..Loop::NONE };
        }
    }

    /// Moves dimensions outwards by one.
    fn shift(&mut self, from: usize, to: usize) {
        for i in (from..to).rev() {
            let below = self.dim(i);
            self.set(i + 1, below);
        }
    }

    /// Makes `dim` the innermost dimension.
    fn lead(&mut self, dim: Dim) {
        self.shift(0, self.ndim);
        self.set(0, dim);
        self.ndim += 1;
    }

    /// Pushes a row of elements, then dimensions, folded until no two rows of a launch share a
    /// byte.
    fn bits(&mut self, nest: &Nest, width: i64, slot: i64) {
        let slot = slot.max(width);
        // Wide elements without padding are rows of narrow ones.
        let narrow = 1i64 << width.trailing_zeros().min(3);
        let inner = nest.dim(nest.len().wrapping_sub(1));
        self.way = Way::Bits(width as u32, slot as u32);
        if width == slot && width > 8 {
            self.way = Way::Bits(narrow as u32, narrow as u32);
            self.push(Dim { n: width >> narrow.trailing_zeros(), src: narrow, dst: narrow });
        } else if nest.is_empty() || inner.dst > 16.max(slot) {
            self.push(Dim { n: 1, src: 0, dst: slot });
        }
        self.push_all(nest);
        let ragged = (1..self.ndim).fold(0, |all, i| all | self.dim(i).dst) & 7 != 0;
        let phase = if ragged { 7 } else { self.dst_bit & 7 };
        let row = self.dim(0);
        let mut span = (row.n - 1).wrapping_mul(row.dst).wrapping_add(slot);
        for i in 1..self.ndim {
            let Dim { n, dst, .. } = self.dim(i);
            let bytes = (phase + span + 7) & !7;
            let mut fold = 1;
            while fold < n && ((fold * dst) & 7 != 0 || fold * dst < bytes) {
                fold *= 2;
            }
            if let Some(place) = self.loops.get_mut(i) {
                place.fold = fold.min(n);
            }
            span = (n - 1).wrapping_mul(dst).wrapping_add(span);
        }
    }

    /// Limits a launch to the inner dimensions that fit.
    fn cut(&mut self, limit: i64) {
        let (mut count, mut digits) = (1i64, 0);
        for each in self.loops.iter_mut().take(self.ndim) {
            let n = each.now().1.n;
            let whole = count.saturating_mul(n) <= limit && digits < MAX_DIGITS;
            let full = count > limit || digits >= MAX_DIGITS;
            if !whole {
                let part = limit.checked_div(count).unwrap_or(1).min(each.dim.n).max(1);
                // Whole tiles, and whole bytes of bits.
                let part = if part > 256 {
                    part & !255
                } else if part > 8 {
                    part & !7
                } else {
                    part
                };
                each.block = if full || each.fold > 1 { 1 } else { part };
                each.fold = 1;
            }
            count = if whole { count * n } else { limit + 1 };
            digits += 1;
        }
    }
}

impl Iterator for Launches {
    type Item = Launch;

    fn next(&mut self) -> Option<Launch> {
        if self.done {
            return None;
        }
        let mut dims = [Dim::NONE; MAX_DIGITS];
        let (mut src_at, mut dst_at, mut kept) = (0i64, 0i64, 0);
        let heads = if let Way::Transpose(_) | Way::Pixels(..) = self.way { 2 } else { 1 };
        for (i, each) in self.loops.iter().take(self.ndim).enumerate() {
            let (first, dim) = each.now();
            src_at = src_at.wrapping_add(first.wrapping_mul(each.dim.src));
            dst_at = dst_at.wrapping_add(first.wrapping_mul(each.dim.dst));
            if i < heads || dim.n != 1 {
                if let Some(place) = dims.get_mut(kept) {
                    *place = dim;
                }
                kept += 1;
            }
        }
        self.done = !self.loops.iter_mut().take(self.ndim).any(Loop::advance);
        let dims = dims.get(..kept).unwrap_or(&[]);
        let (src, dst) = (self.src, self.dst);
        if let Way::Bits(width, slot) = self.way {
            let (src_bit, dst_bit) = (self.src_bit + src_at, self.dst_bit + dst_at);
            let src = src.wrapping_offset((src_bit >> 3) as isize);
            let dst = dst.wrapping_offset((dst_bit >> 3) as isize);
            let lead = [(src_bit & 7) as u32, (dst_bit & 7) as u32];
            return Some(KernelArgs::at(src, dst).bits(dims, lead, [width, slot]));
        }
        let src = src.wrapping_offset(src_at as isize);
        let args = KernelArgs::at(src, dst.wrapping_offset(dst_at as isize));
        Some(match self.way {
            Way::Transpose(size) => args.tiles(dims, size),
            Way::Pixels(size, apart) => args.pixels(dims, size, apart),
            Way::Words(size) => args.words(dims, size),
            Way::Elements(size) | Way::Bits(size, _) => args.elements(dims, size),
        })
    }
}

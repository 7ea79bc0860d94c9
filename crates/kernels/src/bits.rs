//! Items that are not whole bytes: runs of bits, and elements of 1 to 8 bits, unpacked to bytes and
//! packed, eight at a time in each 64 bits of a vector.
//!
//! Of runs, exactly the bytes that hold a bit of an item are accessed; the other bits of shared
//! bytes are preserved. Elements are packed into a buffer of the caller with extra space at its
//! end, and unpacked from one, or from memory that extends as far.
use core::ptr::copy_nonoverlapping;

use crate::rows::{LONG, short};
use crate::vector::{LINE, Vector};

/// The address of a bit, counted from the least significant one of a byte.
#[derive(Clone, Copy)]
pub struct Bit {
    /// A byte.
    pub base: *mut u8,
    /// Bits from its least significant one.
    pub bit: i64,
}

impl Bit {
    /// The address `bits` bits further on.
    #[inline(always)]
    pub fn by(self, bits: i64) -> Bit {
        Bit { bit: self.bit.wrapping_add(bits), ..self }
    }

    /// The byte that holds it.
    #[inline(always)]
    pub fn byte(self) -> *mut u8 {
        self.base.wrapping_offset((self.bit >> 3) as isize)
    }

    /// Its position in that byte.
    #[inline(always)]
    fn shift(self) -> usize {
        (self.bit & 7) as usize
    }
}

/// Items, each a run of bits.
#[derive(Clone, Copy)]
pub struct Runs {
    /// The first item in the source.
    pub src: Bit,
    /// The first item in the destination.
    pub dst: Bit,
    /// Number of items.
    pub n: usize,
    /// Source stride in bits.
    pub by_src: i64,
    /// Destination stride in bits.
    pub by_dst: i64,
    /// Bits of an item.
    pub width: usize,
    /// Bits that are written: those above `width` become 0.
    pub slot: usize,
    /// Whether whole cache lines are written by non-temporal stores.
    pub stream: bool,
    /// Bytes from a source item to the data of the same size that is prefetched meanwhile; 0: none.
    pub ahead: isize,
}

impl Runs {
    /// Items of `width` bits, from one address to another; strides in bits.
    #[inline(always)]
    pub fn new(
        (src, by_src): (Bit, i64),
        (dst, by_dst): (Bit, i64),
        n: usize,
        width: usize,
    ) -> Runs {
        Runs { src, dst, n, by_src, by_dst, width, slot: width, stream: false, ahead: 0 }
    }
}

/// Rows of contiguous elements of 1 to 8 bits, and of bytes that hold one each.
#[derive(Clone, Copy)]
pub struct Packed {
    /// The first element. If elements have 8 bits or are to be packed, each row begins at a whole
    /// byte. Up to 63 bytes behind a row may be read, or written by packing.
    pub packed: Bit,
    /// Bits from one row to the next.
    pub by_row: i64,
    /// The bytes, row after row; 63 behind them may be read or written.
    pub bytes: *mut u8,
    /// Bits from one element to the next.
    pub field: usize,
    /// Bits of an element: unpacking clears those above; packing expects them to be 0.
    pub width: usize,
    /// Elements per row.
    pub n: usize,
    /// Rows.
    pub rows: usize,
    /// Bytes from a row to the data of the same size that is prefetched as it is unpacked; 0: none.
    pub ahead: isize,
}

impl Packed {
    /// The `rows` rows that begin `place` bits behind the first byte.
    #[inline]
    pub fn part(self, place: i64, rows: usize) -> Packed {
        let i = place.checked_div(8 * self.n as i64).unwrap_or(0);
        let packed = self.packed.by(i.wrapping_mul(self.by_row));
        Packed { packed, bytes: self.bytes.wrapping_offset((place >> 3) as isize), rows, ..self }
    }

    /// Contiguous rows become one.
    #[inline(always)]
    fn joined(self) -> Packed {
        let Packed { n, rows, .. } = self;
        if self.by_row == (n * self.field) as i64 {
            return Packed { n: n * rows, rows: 1, ..self };
        }
        self
    }
}

/// An operation on bits.
pub enum Bits {
    /// Copies runs.
    Copy(Runs),
    /// Unpacks elements to bytes.
    Unpack(Packed),
    /// Packs bytes to elements, and copies these as runs: one per row.
    Pack(Packed, Runs),
}

/// Bytes that are packed before they are copied, which interleaves stores to memory with
/// computation.
const GROUP: usize = 1024;

#[inline(always)]
pub(crate) unsafe fn run<V: Vector>(bits: &Bits) {
    let (packed, runs) = match *bits {
        // SAFETY: the rows are readable and the bytes writable, with those behind them; the
        // processor has the level's instructions.
        Bits::Unpack(packed) => return unsafe { unpack::<V>(packed.joined()) },
        Bits::Copy(runs) => (None, runs),
        // SAFETY: the processor has the level's instructions.
        Bits::Pack(packed, runs) => unsafe {
            (Some((packed, regroup::<V>(packed.field, 8), halves::<V>(packed.field))), runs)
        },
    };
    let most = if packed.is_some() { (8 * GROUP / runs.width.max(1)).max(1) } else { runs.n };
    let mut i = 0;
    while i < runs.n {
        let rows = most.min(runs.n - i);
        let (src, dst) = (runs.src.by(runs.by_src * i as i64), runs.dst.by(runs.by_dst * i as i64));
        // SAFETY: these rows' bytes are readable or writable, and the processor has the level's
        // instructions.
        unsafe {
            if let Some((packed, index, halves)) = packed {
                let packed = packed.part((8 * i * packed.n) as i64, rows);
                pack::<V>(packed.joined(), index, halves);
            }
            copy_all::<V>(&Runs { src, dst, n: rows, ..runs });
        }
        i += rows;
    }
}

#[inline(always)]
unsafe fn copy_all<V: Vector>(runs: &Runs) {
    let &Runs { src, dst, n, by_src, by_dst, width, slot, stream, ahead } = runs;
    let done = if width <= 8 { slot.min(8) } else { width };
    let (bytes, odd) = (width / 8, src.bit | dst.bit | by_src | by_dst | width as i64);
    let whole = odd & 7 == 0 && bytes >= 16;
    let (mut src, mut dst, mut i) = (src, dst, 0);
    while i < n {
        // SAFETY: one item, whose bytes are readable at `src` and writable at `dst`.
        unsafe {
            ahead_of::<V>(src, ahead, width);
            if whole {
                move_bytes::<V>(dst.byte(), src.byte(), bytes, stream);
            } else if width <= 8 {
                write(dst, done, read(src, width));
            } else {
                copy::<V>(dst, src, width, stream);
            }
            if slot > done {
                zero(dst.by(done as i64), slot - done);
            }
        }
        (src, dst, i) = (src.by(by_src), dst.by(by_dst), i + 1);
    }
}

/// Prefetches `n` bits, `ahead` bytes further on; nothing if that is 0.
#[inline(always)]
unsafe fn ahead_of<V: Vector>(at: Bit, ahead: isize, bits: usize) {
    let mut line = 0;
    while ahead != 0 && line <= bits / 8 {
        // SAFETY: a prefetch of any address is harmless.
        unsafe { V::prefetch(at.byte().wrapping_offset(ahead).wrapping_add(line)) };
        line += LINE;
    }
}

/// A mask of the low `n` bits, at most 63.
#[inline(always)]
const fn low(n: usize) -> u64 {
    (1 << (n & 63)) - 1
}

/// Reads `n` (1 to 8) bits.
#[inline(always)]
unsafe fn read(at: Bit, n: usize) -> u8 {
    let (from, shift) = (at.byte(), at.shift());
    // SAFETY: the second byte is read only if it holds some of the bits.
    let both = unsafe {
        let second = if shift + n > 8 { *from.wrapping_add(1) } else { 0 };
        u32::from(*from) | u32::from(second) << 8
    };
    (both >> shift & ((1 << n) - 1)) as u8
}

/// Writes the low `n` (1 to 8) bits of `value`.
#[inline(always)]
unsafe fn write(at: Bit, n: usize, value: u8) {
    let (to, shift) = (at.byte(), at.shift());
    let mask = ((1u32 << n) - 1) << shift;
    let bits = u32::from(value) << shift & mask;
    // SAFETY: the second byte is accessed only if it holds some of the bits.
    unsafe {
        if n == 8 && shift == 0 {
            return *to = value;
        }
        *to = (*to & !(mask as u8)) | bits as u8;
        if shift + n > 8 {
            let second = to.wrapping_add(1);
            *second = (*second & !((mask >> 8) as u8)) | (bits >> 8) as u8;
        }
    }
}

/// Copies whole bytes.
#[inline(always)]
unsafe fn move_bytes<V: Vector>(to: *mut u8, from: *const u8, bytes: usize, stream: bool) {
    // SAFETY: `bytes` bytes are readable at `from` and writable at `to`, without overlap.
    unsafe {
        if stream && (to as usize | bytes).is_multiple_of(LINE) {
            let mut at = 0;
            while at < bytes {
                V::load(from.wrapping_add(at)).stream(to.wrapping_add(at));
                at += V::BYTES;
            }
        } else if (16..LONG).contains(&bytes) {
            short::<V>(to, from, bytes);
        } else {
            copy_nonoverlapping(from, to, bytes);
        }
    }
}

/// Copies a run of `n` bits.
#[inline(always)]
unsafe fn copy<V: Vector>(dst: Bit, src: Bit, n: usize, stream: bool) {
    let head = (dst.shift().wrapping_neg() & 7).min(n);
    let (bytes, tail) = ((n - head) / 8, (n - head) % 8);
    let (to, from) = (dst.by(head as i64), src.by(head as i64));
    // SAFETY: head, whole bytes and tail make up the run, readable and writable.
    unsafe {
        edge(dst, src, head);
        if from.shift() > 0 {
            shifted::<V>(to.byte(), from.byte(), from.shift(), bytes);
        } else {
            move_bytes::<V>(to.byte(), from.byte(), bytes, stream);
        }
        let done = 8 * bytes as i64;
        edge(to.by(done), from.by(done), tail);
    }
}

/// Copies fewer than 8 bits. Without vectors, as `zero`: compiled once.
#[inline(never)]
unsafe fn edge(dst: Bit, src: Bit, n: usize) {
    if n > 0 {
        // SAFETY: the bytes of `n` bits are readable at `src`, and readable and writable at `dst`.
        unsafe { write(dst, n, read(src, n)) };
    }
}

/// Copies to whole bytes of the destination, each from two of the source. The last word or vector
/// overlaps the previous one.
#[inline(always)]
unsafe fn shifted<V: Vector>(to: *mut u8, from: *const u8, shift: usize, bytes: usize) {
    let word = |at: usize| {
        let from = from.wrapping_add(at).cast::<u64>();
        // SAFETY: nine bytes are readable from `at` on.
        let [low, high] = unsafe { [from.read_unaligned(), from.byte_add(1).read_unaligned()] };
        let made = u64::from_le(low) >> shift | u64::from_le(high) << (8 - shift);
        // SAFETY: eight bytes are writable from `at` on.
        unsafe { to.wrapping_add(at).cast::<u64>().write_unaligned(made.to_le()) }
    };
    let mut i = 0;
    // SAFETY: `bytes` of the destination are read from one more of the source.
    unsafe {
        if bytes >= V::BYTES {
            let mask = all::<V>(low(56));
            while i < bytes {
                let at = i.min(bytes - V::BYTES);
                let from = from.wrapping_add(at);
                let above = V::load(from.wrapping_add(1)).up(8 - shift);
                V::load(from).down(shift).mixed(above, mask).store(to.wrapping_add(at));
                i += V::BYTES;
            }
        } else if bytes >= 8 {
            while i < bytes {
                word(i.min(bytes - 8));
                i += 8;
            }
        }
        while i < bytes {
            let from = from.wrapping_add(i).cast::<u16>().read_unaligned();
            *to.wrapping_add(i) = (u16::from_le(from) >> shift) as u8;
            i += 1;
        }
    }
}

/// Clears `n` bits.
#[inline(never)]
unsafe fn zero(dst: Bit, n: usize) {
    let head = (dst.shift().wrapping_neg() & 7).min(n);
    let (bytes, tail) = ((n - head) / 8, (n - head) % 8);
    let to = dst.by(head as i64);
    // SAFETY: head, whole bytes and tail make up the run, which is writable.
    unsafe {
        if head > 0 {
            write(dst, head, 0);
        }
        to.byte().write_bytes(0, bytes);
        if tail > 0 {
            write(to.by(8 * bytes as i64), tail, 0);
        }
    }
}

/// A vector that repeats one word.
#[inline(always)]
unsafe fn all<V: Vector>(word: u64) -> V {
    let words = [word.to_le(); 8];
    // SAFETY: no vector is longer.
    unsafe { V::load(words.as_ptr().cast()) }
}

/// The permutation that moves groups of eight bytes in each window from positions `from` bytes
/// apart to positions `to` bytes apart; later groups overwrite earlier ones.
#[inline(always)]
unsafe fn regroup<V: Vector>(to: usize, from: usize) -> V {
    let (mut index, mut i) = ([0u8; 64], 0);
    let groups = V::WINDOW / 8;
    while i < V::BYTES / 8 {
        let (window, group) = (i / groups * V::WINDOW, i % groups);
        let bytes = 0x0706_0504_0302_0100 + (group * from) as u64 * 0x0101_0101_0101_0101;
        // SAFETY: neither distance is more than eight bytes.
        unsafe {
            let at = index.as_mut_ptr().add(window + group * to);
            at.cast::<u64>().write_unaligned(bytes.to_le());
        }
        i += 1;
    }
    // SAFETY: no vector is longer.
    unsafe { V::load(index.as_ptr()) }
}

/// Masks of four elements of `width` bits in each eight bytes, two in each four, one in each two.
#[inline(always)]
unsafe fn halves<V: Vector>(width: usize) -> [V; 3] {
    let (two, one) = (low(2 * width) * 0x1_0000_0001, low(width) * 0x0001_0001_0001_0001);
    // SAFETY: the processor has the level's instructions.
    unsafe { [all(low(4 * width)), all(two), all(one)] }
}

/// Unpacks a group of eight elements in each eight bytes: three steps of halving and shifting the
/// upper half.
#[inline(always)]
unsafe fn unpack<V: Vector>(packed: Packed) {
    let Packed { field, n, ahead, .. } = packed;
    let apart = (V::WINDOW / 8 * field) as isize;
    let offsets = [0, apart, 2 * apart, 3 * apart];
    let (mut at, mut to, mut i) = (packed.packed, packed.bytes, 0);
    // SAFETY: the rows are readable and the bytes writable, and those behind them that may be
    // accessed: they are the next row's, which is unpacked later.
    unsafe {
        let index = regroup::<V>(8, field);
        let [half, quarter, eighth] = halves::<V>(field);
        let keep = all::<V>(low(packed.width) * 0x0101_0101_0101_0101);
        let zero = all::<V>(0);
        while i < packed.rows {
            ahead_of::<V>(at, ahead, n * field);
            let (mut from, mut j) = (at.byte(), 0);
            while j < n {
                let x = V::load_windows(from, offsets.as_ptr()).permute(index).down(at.shift());
                let x = x.mixed(x.up(32 - 4 * field), half);
                let x = x.mixed(x.up(16 - 2 * field), quarter);
                let x = x.mixed(x.up(8 - field), eighth);
                x.mixed(zero, keep).store(to.wrapping_add(j));
                from = from.wrapping_add(V::BYTES / 8 * field);
                j += V::BYTES;
            }
            (at, to, i) = (at.by(packed.by_row), to.wrapping_add(n), i + 1);
        }
    }
}

/// Packs: the inverse.
#[inline(always)]
unsafe fn pack<V: Vector>(packed: Packed, index: V, [half, quarter, eighth]: [V; 3]) {
    let Packed { field, n, .. } = packed;
    let (mut at, mut from, mut i) = (packed.packed, packed.bytes, 0);
    // SAFETY: the rows' bytes are readable, and the packed ones writable, with the bytes behind
    // them; the processor has the level's instructions.
    unsafe {
        while i < packed.rows {
            let (mut to, mut j) = (at.byte(), 0);
            while j < n {
                let x = V::load(from.wrapping_add(j));
                let x = x.mixed(x.down(8 - field), eighth);
                let x = x.mixed(x.down(16 - 2 * field), quarter);
                let x = x.mixed(x.down(32 - 4 * field), half);
                x.permute(index).store_windows(to, V::WINDOW / 8 * field);
                to = to.wrapping_add(V::BYTES / 8 * field);
                j += V::BYTES;
            }
            (at, from, i) = (at.by(packed.by_row), from.wrapping_add(n), i + 1);
        }
    }
}

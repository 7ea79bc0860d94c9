//! Items that are not whole bytes: runs of bits, copied by words, and elements of 1 to 8 bits,
//! unpacked to bytes and packed again, eight at a time in a word of 64 bits.
//!
//! Exactly the bytes that hold a bit of an item are touched, and in those that a run shares with
//! its neighbours the other bits are kept.
use core::ptr::copy_nonoverlapping;

use crate::LINE;
use crate::vector::Vector;

/// A place in memory: a bit, counted from the least significant one of a byte.
#[derive(Clone, Copy)]
pub struct Bit {
    /// A byte.
    pub base: *mut u8,
    /// Bits from its least significant one.
    pub bit: i64,
}

impl Bit {
    /// So many bits further on.
    #[inline(always)]
    pub fn by(self, bits: i64) -> Bit {
        Bit { bit: self.bit.wrapping_add(bits), ..self }
    }

    #[inline(always)]
    fn byte(self) -> *mut u8 {
        self.base.wrapping_offset((self.bit >> 3) as isize)
    }

    /// Its place in that byte.
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
    /// The same in the destination.
    pub dst: Bit,
    /// How many.
    pub n: usize,
    /// Bits from one to the next in the source.
    pub by_src: i64,
    /// The same in the destination.
    pub by_dst: i64,
    /// Bits of an item.
    pub width: usize,
    /// Bits that are written: those above `width` become 0.
    pub slot: usize,
}

/// Rows of elements of 1 to 8 bits, and rows of bytes that hold one each.
#[derive(Clone, Copy)]
pub struct Packed {
    /// The first element.
    pub at: Bit,
    /// Bits of an element.
    pub width: usize,
    /// Bits that are written of it: those above `width` are 0.
    pub slot: usize,
    /// Bits from one element to the next.
    pub by: i64,
    /// Bits from one row to the next.
    pub by_row: i64,
    /// The bytes. Behind the last one, 7 may be read, and written by unpacking.
    pub bytes: *mut u8,
    /// Bytes from one row of them to the next.
    pub pitch: usize,
    /// Elements of a row.
    pub n: usize,
    /// Rows.
    pub rows: usize,
    /// Bytes from a row to what is prefetched meanwhile, as much of it as is read of the row; or 0.
    pub ahead: isize,
}

/// What is to be done with bits.
pub enum Bits<'a> {
    /// Runs.
    Copy(&'a Runs),
    /// Bytes from elements.
    Unpack(&'a Packed),
    /// Elements from bytes.
    Pack(&'a Packed),
    /// Of two rows each of elements of 4 bits, as many bytes as a row has elements: of the even
    /// elements of both, and of the odd ones. `rows` counts pairs; `n` is even.
    Pair(&'a Packed),
}

#[inline(always)]
pub(crate) unsafe fn run<V: Vector>(bits: &Bits) {
    // SAFETY: the caller vouches for all bytes of the items.
    unsafe {
        match bits {
            Bits::Copy(runs) => copy_all::<V>(runs),
            Bits::Pair(packed) => pair::<V>(packed),
            Bits::Unpack(packed) => unpack::<V>(packed),
            Bits::Pack(packed) => pack(packed),
        }
    }
}

#[inline(always)]
unsafe fn copy_all<V: Vector>(runs: &Runs) {
    let &Runs { src, dst, n, by_src, by_dst, width, slot } = runs;
    let (bytes, odd) = (width / 8, src.bit | dst.bit | by_src | by_dst | width as i64);
    if odd & 7 == 0 && bytes % V::BYTES == 0 && slot == width {
        // Not one call for each of many short runs.
        let (mut from, mut to, mut i) = (src.byte(), dst.byte(), 0);
        while i < n {
            let mut at = 0;
            while at < bytes {
                // SAFETY: one of the caller's items.
                unsafe { V::load(from.wrapping_add(at)).store(to.wrapping_add(at)) };
                at += V::BYTES;
            }
            from = from.wrapping_offset((by_src >> 3) as isize);
            to = to.wrapping_offset((by_dst >> 3) as isize);
            i += 1;
        }
        return;
    }
    let mut i = 0;
    while i < n {
        let src = src.by(by_src.wrapping_mul(i as i64));
        let dst = dst.by(by_dst.wrapping_mul(i as i64));
        // SAFETY: one of the caller's items.
        unsafe {
            copy(dst, src, width);
            if slot > width {
                zero(dst.by(width as i64), slot - width);
            }
        }
        i += 1;
    }
}

/// The low `n` bits, of at most 63.
#[inline(always)]
const fn low(n: usize) -> u64 {
    (1 << (n & 63)) - 1
}

/// `n` (at most 8) bytes, the lowest first.
#[inline(always)]
unsafe fn load(from: *const u8, n: usize) -> u64 {
    // SAFETY: the caller's bytes; of five to seven, both halves share some.
    unsafe {
        match n {
            8 => return u64::from_le(from.cast::<u64>().read_unaligned()),
            4.. => {
                let last = n - 4;
                let high = u32::from_le(from.wrapping_add(last).cast::<u32>().read_unaligned());
                let all = u32::from_le(from.cast::<u32>().read_unaligned());
                return u64::from(all) | u64::from(high) << (8 * last);
            }
            2 => return u64::from(u16::from_le(from.cast::<u16>().read_unaligned())),
            _ => {}
        }
        let (mut word, mut i) = (0, 0);
        while i < n {
            word |= u64::from(*from.wrapping_add(i)) << (8 * i);
            i += 1;
        }
        word
    }
}

/// Writes the low `n` (at most 8) bytes.
#[inline(always)]
unsafe fn store(to: *mut u8, word: u64, n: usize) {
    // SAFETY: as above.
    unsafe {
        match n {
            8 => return to.cast::<u64>().write_unaligned(word.to_le()),
            4.. => {
                let last = n - 4;
                let high = (word >> (8 * last)) as u32;
                to.cast::<u32>().write_unaligned((word as u32).to_le());
                return to.wrapping_add(last).cast::<u32>().write_unaligned(high.to_le());
            }
            2 => return to.cast::<u16>().write_unaligned((word as u16).to_le()),
            _ => {}
        }
        let mut i = 0;
        while i < n {
            *to.wrapping_add(i) = (word >> (8 * i)) as u8;
            i += 1;
        }
    }
}

/// `n` (1 to 8) bits.
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
    // SAFETY: the second byte is touched only if it holds some of the bits.
    unsafe {
        *to = (*to & !(mask as u8)) | bits as u8;
        if shift + n > 8 {
            let second = to.wrapping_add(1);
            *second = (*second & !((mask >> 8) as u8)) | (bits >> 8) as u8;
        }
    }
}

/// Copies a run of `n` bits.
#[inline(always)]
unsafe fn copy(dst: Bit, src: Bit, n: usize) {
    let head = (dst.shift().wrapping_neg() & 7).min(n);
    let (bytes, tail) = ((n - head) / 8, (n - head) % 8);
    let (to, from) = (dst.by(head as i64), src.by(head as i64));
    // SAFETY: head, whole bytes and tail make up the caller's run.
    unsafe {
        if head > 0 {
            write(dst, head, read(src, head));
        }
        if from.shift() == 0 {
            copy_nonoverlapping(from.byte(), to.byte(), bytes);
        } else {
            shifted(to.byte(), from.byte(), from.shift(), bytes);
        }
        if tail > 0 {
            let done = 8 * bytes as i64;
            write(to.by(done), tail, read(from.by(done), tail));
        }
    }
}

/// Whole bytes of the destination, each of two of the source.
#[inline(always)]
unsafe fn shifted(to: *mut u8, from: *const u8, shift: usize, bytes: usize) {
    let mut i = 0;
    // SAFETY: `bytes` of the destination take their bits from one more of the source.
    unsafe {
        while i + 8 <= bytes {
            let (low, high) = (load(from.wrapping_add(i), 8), load(from.wrapping_add(i + 1), 8));
            store(to.wrapping_add(i), low >> shift | high << (8 - shift), 8);
            i += 8;
        }
        while i < bytes {
            *to.wrapping_add(i) = (load(from.wrapping_add(i), 2) >> shift) as u8;
            i += 1;
        }
    }
}

/// Sets `n` bits to 0.
#[inline(always)]
unsafe fn zero(dst: Bit, n: usize) {
    let head = (dst.shift().wrapping_neg() & 7).min(n);
    let (bytes, tail) = ((n - head) / 8, (n - head) % 8);
    let to = dst.by(head as i64);
    // SAFETY: head, whole bytes and tail make up the caller's run.
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

/// How eight elements of `width` bits spread over the bytes of a word: three rounds of halving.
#[derive(Clone, Copy)]
struct Spread {
    width: usize,
    /// The low 4, 2 and 1 × `width` bits of each field of 64, 32 and 16 bits.
    masks: [u64; 3],
}

impl Spread {
    #[inline(always)]
    const fn new(width: usize) -> Spread {
        let quarter = low(2 * width) | low(2 * width) << 32;
        let eighth = low(width) * 0x0001_0001_0001_0001;
        Spread { width, masks: [low(4 * width), quarter, eighth] }
    }

    /// Each element in the low bits of a byte.
    #[inline(always)]
    fn spread(&self, packed: u64) -> u64 {
        let [half, quarter, eighth] = self.masks;
        let x = (packed & half) | (packed >> (4 * self.width) & half) << 32;
        let x = (x & quarter) | (x >> (2 * self.width) & quarter) << 16;
        (x & eighth) | (x >> self.width & eighth) << 8
    }

    /// The inverse; bits above `width` in a byte are dropped.
    #[inline(always)]
    fn gather(&self, bytes: u64) -> u64 {
        let [half, quarter, eighth] = self.masks;
        let x = (bytes & eighth) | (bytes >> 8 & eighth) << self.width;
        let x = (x & quarter) | (x >> 16 & quarter) << (2 * self.width);
        (x & half) | (x >> 32 & half) << (4 * self.width)
    }
}

#[inline(always)]
unsafe fn unpack<V: Vector>(packed: &Packed) {
    let &Packed { width, by, by_row, pitch, n, rows, ahead, .. } = packed;
    if n == 0 {
        return;
    }
    // Elements with gaps between them are unpacked together with these.
    let dense = if (width as i64..=8).contains(&by) { by as usize } else { 0 };
    let spread = Spread::new(dense);
    let read_of_row = (by.unsigned_abs() as usize).saturating_mul(n) / 8;
    let mut i = 0;
    while i < rows {
        let at = packed.at.by(by_row.wrapping_mul(i as i64));
        let to = packed.bytes.wrapping_add(i * pitch);
        if ahead != 0 {
            let mut line = 0;
            while line <= read_of_row {
                // SAFETY: a prefetch of any address is harmless.
                unsafe { V::prefetch(at.byte().wrapping_offset(ahead).wrapping_add(line)) };
                line += LINE;
            }
        }
        // SAFETY: one of the caller's rows; 7 bytes behind it are those of the next one, which is
        // unpacked later.
        unsafe {
            match dense {
                1 => unpack_row(Spread::new(1), width, to, at, n),
                2 => unpack_row(Spread::new(2), width, to, at, n),
                4 => unpack_row(Spread::new(4), width, to, at, n),
                8 => {
                    *to.wrapping_add(n - 1) = 0;
                    copy(Bit { base: to, bit: 0 }, at, 8 * (n - 1) + width);
                    let mut j = 0;
                    while j < n {
                        *to.wrapping_add(j) &= low(width) as u8;
                        j += 1;
                    }
                }
                3 | 5..=7 => unpack_rest(&spread, width, to, at, n),
                _ => {
                    let mut j = 0;
                    while j < n {
                        *to.wrapping_add(j) = read(at.by(by.wrapping_mul(j as i64)), width);
                        j += 1;
                    }
                }
            }
        }
        i += 1;
    }
}

/// Elements whose groups of eight are so many bytes as can be loaded at once.
#[inline(always)]
unsafe fn unpack_row(spread: Spread, width: usize, to: *mut u8, at: Bit, n: usize) {
    let (w, from, shift) = (spread.width, at.byte(), at.shift());
    let keep = low(width) * 0x0101_0101_0101_0101;
    // Bytes that hold elements, of which each group needs one more if it begins within one.
    let held = (shift + (n - 1) * w + width).div_ceil(8);
    let (next, back) = if shift > 0 { (1, 8 - shift) } else { (0, 0) };
    let groups = (n / 8).min((held - next) / w);
    let mut g = 0;
    // SAFETY: what is read holds elements; `n` bytes are written, and the rest is as said below.
    unsafe {
        while g + WORDS <= groups {
            let (mut all, mut k) = ([0; WORDS], 0);
            while k < WORDS {
                let from = from.wrapping_add((g + k) * w);
                let x = load(from, w) >> shift | load(from.wrapping_add(next), w) << back;
                all[k] = spread.spread(x) & keep;
                k += 1;
            }
            store_words(to.wrapping_add(8 * g), all);
            g += WORDS;
        }
        while g < groups {
            let from = from.wrapping_add(g * w);
            let x = load(from, w) >> shift | load(from.wrapping_add(next), w) << back;
            store(to.wrapping_add(8 * g), spread.spread(x) & keep, 8);
            g += 1;
        }
        if 8 * g < n {
            let at = at.by((8 * g * w) as i64);
            unpack_rest(&spread, width, to.wrapping_add(8 * g), at, n - 8 * g);
        }
    }
}

/// Elements of any number of bits below 8; up to 7 bytes are written behind them.
#[inline(always)]
unsafe fn unpack_rest(spread: &Spread, width: usize, to: *mut u8, at: Bit, n: usize) {
    let (w, from, shift) = (spread.width, at.byte(), at.shift());
    let keep = low(width) * 0x0101_0101_0101_0101;
    let held = (shift + (n - 1) * w + width).div_ceil(8);
    // SAFETY: the `held` bytes are the caller's: eight of them at a time, the last of which are
    // moved back, or all.
    unsafe {
        let few = if held < 8 { load(from, held) } else { 0 };
        let mut g = 0;
        while 8 * g < n {
            let first = (g * w).min(held.saturating_sub(8));
            let x = if held < 8 { few } else { load(from.wrapping_add(first), 8) };
            let x = x >> ((8 * (g * w - first) + shift) & 63);
            store(to.wrapping_add(8 * g), spread.spread(x) & keep, 8);
            g += 1;
        }
    }
}

/// Words that are made at a time, all of them loaded before one is stored: they are vectors then.
const WORDS: usize = 4;

/// `8 * n` bits from byte `i` on, of which a further byte holds some if they begin within one.
#[inline(always)]
unsafe fn word(at: Bit, i: usize, n: usize) -> u64 {
    let (next, back) = if at.shift() > 0 { (1, 8 - at.shift()) } else { (0, 0) };
    let from = at.byte().wrapping_add(i);
    // SAFETY: the caller's bytes.
    unsafe { load(from, n) >> at.shift() | load(from.wrapping_add(next), n) << back }
}

#[inline(always)]
unsafe fn words(at: Bit, i: usize) -> [u64; WORDS] {
    let (mut all, mut k) = ([0; WORDS], 0);
    while k < WORDS {
        // SAFETY: the caller's bytes.
        all[k] = unsafe { word(at, i + 8 * k, 8) };
        k += 1;
    }
    all
}

#[inline(always)]
unsafe fn store_words(to: *mut u8, words: [u64; WORDS]) {
    let mut k = 0;
    while k < WORDS {
        // SAFETY: the caller's bytes.
        unsafe { store(to.wrapping_add(8 * k), words[k], 8) };
        k += 1;
    }
}

#[inline(always)]
unsafe fn pair<V: Vector>(packed: &Packed) {
    const LOW: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    let &Packed { by_row, bytes, pitch, n, rows, ahead, .. } = packed;
    let half = n / 2;
    let mut i = 0;
    while i < rows {
        let at = packed.at.by(by_row.wrapping_mul(2 * i as i64));
        let other = at.by(by_row);
        if ahead != 0 {
            let mut line = 0;
            while line <= half {
                // SAFETY: a prefetch of any address is harmless.
                unsafe {
                    V::prefetch(at.byte().wrapping_offset(ahead).wrapping_add(line));
                    V::prefetch(other.byte().wrapping_offset(ahead).wrapping_add(line));
                }
                line += LINE;
            }
        }
        let to = bytes.wrapping_add(i * pitch);
        // SAFETY: the bytes of two rows; one more of each that begins within a byte.
        unsafe {
            let (mut j, mut g) = (0, 0);
            if (at.shift() | other.shift()) == 0 {
                // Counted, so that the compiler makes vectors of the words.
                let (a, b, all) = (at.byte(), other.byte(), half / 8);
                while g < all {
                    let (a, b) = (load(a.wrapping_add(8 * g), 8), load(b.wrapping_add(8 * g), 8));
                    store(to.wrapping_add(8 * g), a & LOW | (b & LOW) << 4, 8);
                    store(to.wrapping_add(half + 8 * g), a >> 4 & LOW | b & !LOW, 8);
                    g += 1;
                }
                j = 8 * all;
            }
            while j + 8 * WORDS <= half {
                let (a, b) = (words(at, j), words(other, j));
                let (mut even, mut odd, mut k) = ([0; WORDS], [0; WORDS], 0);
                while k < WORDS {
                    even[k] = a[k] & LOW | (b[k] & LOW) << 4;
                    odd[k] = a[k] >> 4 & LOW | b[k] & !LOW;
                    k += 1;
                }
                store_words(to.wrapping_add(j), even);
                store_words(to.wrapping_add(half + j), odd);
                j += 8 * WORDS;
            }
            while j < half {
                let n = (half - j).min(8);
                let (a, b) = (word(at, j, n), word(other, j, n));
                store(to.wrapping_add(j), a & LOW | (b & LOW) << 4, n);
                store(to.wrapping_add(half + j), a >> 4 & LOW | b & !LOW, n);
                j += n;
            }
        }
        i += 1;
    }
}

#[inline(always)]
unsafe fn pack(packed: &Packed) {
    let &Packed { width, slot, by, by_row, pitch, n, rows, .. } = packed;
    let dense = by == slot as i64 && slot <= 8;
    let spread = Spread::new(slot.min(8));
    let mut i = 0;
    while i < rows {
        let at = packed.at.by(by_row.wrapping_mul(i as i64));
        let from = packed.bytes.wrapping_add(i * pitch);
        // SAFETY: one of the caller's rows, behind which 7 bytes may be read.
        unsafe {
            match slot {
                1 if dense => pack_row(Spread::new(1), at, from, n),
                2 if dense => pack_row(Spread::new(2), at, from, n),
                4 if dense => pack_row(Spread::new(4), at, from, n),
                8 if dense => copy(at, Bit { base: from, bit: 0 }, 8 * n),
                _ if dense => pack_rest(&spread, at, from, n),
                _ => {
                    let mut j = 0;
                    while j < n {
                        let at = at.by(by.wrapping_mul(j as i64));
                        write(at, width, *from.wrapping_add(j));
                        if slot > width {
                            zero(at.by(width as i64), slot - width);
                        }
                        j += 1;
                    }
                }
            }
        }
        i += 1;
    }
}

/// Elements whose groups of eight are so many bytes as can be stored at once.
#[inline(always)]
unsafe fn pack_row(spread: Spread, at: Bit, from: *const u8, n: usize) {
    let w = spread.width;
    // SAFETY: the caller's elements.
    unsafe {
        if !at.shift().is_multiple_of(w) {
            return pack_rest(&spread, at, from, n);
        }
        let head = ((at.shift().wrapping_neg() & 7) / w).min(n);
        let mut i = 0;
        while i < head {
            write(at.by((i * w) as i64), w, *from.wrapping_add(i));
            i += 1;
        }
        let (at, from, n) = (at.by((head * w) as i64), from.wrapping_add(head), n - head);
        let (to, mut g) = (at.byte(), 0);
        while g + WORDS <= n / 8 {
            let (mut all, mut k) = ([0; WORDS], 0);
            while k < WORDS {
                all[k] = spread.gather(load(from.wrapping_add(8 * (g + k)), 8));
                k += 1;
            }
            k = 0;
            while k < WORDS {
                store(to.wrapping_add((g + k) * w), all[k], w);
                k += 1;
            }
            g += WORDS;
        }
        while g < n / 8 {
            let x = spread.gather(load(from.wrapping_add(8 * g), 8));
            store(to.wrapping_add(g * w), x, w);
            g += 1;
        }
        let (mut i, to) = (8 * g, at);
        while i < n {
            write(to.by((i * w) as i64), w, *from.wrapping_add(i));
            i += 1;
        }
    }
}

/// Elements of any number of bits below 8, from any bit on: what does not fill a byte is carried
/// over to the next group.
#[inline(always)]
unsafe fn pack_rest(spread: &Spread, at: Bit, from: *const u8, n: usize) {
    let (w, to, shift) = (spread.width, at.byte(), at.shift());
    let whole = (shift + n * w) / 8;
    // SAFETY: the caller's elements. What eight-byte stores write beyond a group is in whole bytes
    // of the run, which come later; the last byte keeps what is not the run's.
    unsafe {
        let mut carry = if shift > 0 { u64::from(*to) & low(shift) } else { 0 };
        let (mut g, mut at) = (0, 0);
        while g < n / 8 {
            let word = carry | spread.gather(load(from.wrapping_add(8 * g), 8)) << shift;
            store(to.wrapping_add(at), word, if at + 8 <= whole { 8 } else { w });
            carry = word >> (8 * w);
            at += w;
            g += 1;
        }
        let (left, rest) = (whole - at, (shift + n * w) % 8);
        if !n.is_multiple_of(8) {
            let word = carry | spread.gather(load(from.wrapping_add(8 * g), 8)) << shift;
            store(to.wrapping_add(at), word, left);
            carry = word >> (8 * left);
        }
        if rest > 0 {
            write(Bit { base: to, bit: 8 * whole as i64 }, rest, carry as u8);
        }
    }
}

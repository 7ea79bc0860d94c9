//! Packed elements of 1 to 8 bits to bytes and back, eight at a time in a 64-bit word.
use super::bitrun;
use super::ops::Ops;

/// How elements of `width` bits spread over the bytes of a word: three rounds of halving.
#[derive(Clone, Copy)]
pub(super) struct Spread<'a> {
    ops: &'a Ops,
    width: u32,
    /// Groups at a run's end that an eight-byte store of the first of them could run over.
    behind: usize,
    /// The low `4`, `2`, `1` × `width` bits of each 64-, 32- and 16-bit field.
    masks: [u64; 3],
}

impl Spread<'_> {
    pub(super) fn new(ops: &Ops, width: u32) -> Spread<'_> {
        let low = |n: u32| if n >= 64 { u64::MAX } else { (1u64 << n) - 1 };
        let quarter = low(2 * width) | low(2 * width) << 32;
        let eighth = low(width) * 0x0001_0001_0001_0001;
        let behind = 8usize.div_ceil(width.max(1) as usize);
        Spread { ops, width, behind, masks: [low(4 * width), quarter, eighth] }
    }

    /// Eight packed elements, one to each byte.
    #[inline(always)]
    fn spread(&self, packed: u64) -> u64 {
        let [half, quarter, eighth] = self.masks;
        let w = self.width;
        let x = (packed & half) | (packed >> (4 * w) & half) << 32;
        let x = (x & quarter) | (x >> (2 * w) & quarter) << 16;
        (x & eighth) | (x >> w & eighth) << 8
    }

    /// The inverse; bits above `width` in a byte are dropped.
    #[inline(always)]
    fn gather(&self, bytes: u64) -> u64 {
        let [half, quarter, eighth] = self.masks;
        let w = self.width;
        let x = (bytes & eighth) | (bytes >> 8 & eighth) << w;
        let x = (x & quarter) | (x >> 16 & quarter) << (2 * w);
        (x & half) | (x >> 32 & half) << (4 * w)
    }

    /// `n` packed elements to bytes. `room` bits from the first on may be read, at least theirs.
    ///
    /// # Safety
    /// As said; `n` bytes are writable.
    pub(super) unsafe fn unpack(
        &self,
        to: *mut u8,
        src: *const u8,
        bit: i64,
        n: usize,
        room: usize,
    ) {
        let (from, shift) = bitrun::at(src, bit);
        let w = self.width as usize;
        if w == 8 {
            // SAFETY: the caller's n bytes.
            return unsafe { bitrun::copy(to, 0, src, bit, 8 * n) };
        }
        if w == 4 && shift == 0 && !self.ops.packs {
            // SAFETY: the caller's n elements and bytes.
            return unsafe { unpack_nibbles(to, from, n) };
        }
        // Groups of eight whose eight-byte load stays within the room; then byte by byte.
        let groups = match room {
            _ if room >= n * w + 64 => n / 8,
            0..64 => 0,
            _ => (((room - 64) >> 3) / w.max(1) + 1).min(n / 8),
        };
        // SAFETY: every load ends at most 64 bits after its group's first bit, in the room.
        let done = unsafe { (self.ops.unpack)(to, from, shift, self.width, groups) };
        for group in done..groups {
            let from: *const u64 = from.wrapping_add(group * w).cast();
            // SAFETY: the load ends at most 64 bits after the group's first bit, in the room.
            unsafe {
                let packed = u64::from_le(from.read_unaligned()) >> shift;
                let bytes: *mut u64 = to.wrapping_add(8 * group).cast();
                bytes.write_unaligned(self.spread(packed).to_le());
            }
        }
        for at in (8 * groups..n).step_by(8) {
            let count = (n - at).min(8);
            // SAFETY: the bytes that hold `count` elements, and `count` bytes.
            unsafe {
                let held = (shift as usize + count * w).div_ceil(8);
                let packed = load(from.wrapping_add(at / 8 * w), held) >> shift;
                store(to.wrapping_add(at), self.spread(packed), count);
            }
        }
    }

    /// `n` bytes to packed elements.
    ///
    /// # Safety
    /// `n` bytes are readable, and the destination's bytes readable and writable.
    pub(super) unsafe fn pack(&self, dst: *mut u8, bit: i64, from: *const u8, n: usize) {
        let (to, shift) = bitrun::at(dst, bit);
        let to = to.cast_mut();
        let w = self.width as usize;
        if w == 8 {
            // SAFETY: the caller's n bytes.
            return unsafe { bitrun::copy(dst, bit, from, 0, 8 * n) };
        }
        if w == 4 && shift == 0 && !self.ops.packs {
            // SAFETY: the caller's n elements and bytes.
            return unsafe { pack_nibbles(to, from, n) };
        }
        // An eight-byte store may run over what this call writes next, never further.
        let groups = (n / 8).saturating_sub(self.behind);
        let keep = |bits: u32| (1u64 << bits) - 1;
        // SAFETY: groups as just said; the carry starts with the bits below ours, and the last
        // byte keeps those above.
        unsafe {
            let carry = if shift > 0 { u64::from(*to) & keep(shift) } else { 0 };
            let (done, mut carry) = (self.ops.pack)(to, from, shift, self.width, groups, carry);
            for group in done..groups {
                let bytes: *const u64 = from.wrapping_add(8 * group).cast();
                let packed = self.gather(u64::from_le(bytes.read_unaligned()));
                let word = carry | packed << shift;
                let to: *mut u64 = to.wrapping_add(group * w).cast();
                to.write_unaligned(word.to_le());
                carry = word >> (8 * w);
            }
            let (to, from) = (to.wrapping_add(groups * w), from.wrapping_add(8 * groups));
            self.pack_rest(to, shift, from, n - 8 * groups, carry);
        }
    }

    /// What no eight-byte store fits: byte by byte. `carry` is what precedes in the first byte.
    unsafe fn pack_rest(&self, to: *mut u8, shift: u32, from: *const u8, n: usize, carry: u64) {
        let keep = |bits: u32| (1u64 << bits) - 1;
        let (w, mut carry) = (self.width as usize, carry);
        for at in (0..n).step_by(8) {
            let count = (n - at).min(8);
            let bits = shift as usize + count * w;
            let whole = if count == 8 { w } else { bits / 8 };
            let to = to.wrapping_add(at / 8 * w);
            let (last, rest) = (to.wrapping_add(whole), (bits - 8 * whole) as u32);
            // SAFETY: the caller's bytes, and exactly those that hold the elements.
            unsafe {
                let packed = self.gather(load(from.wrapping_add(at), count));
                let word = carry | packed << shift;
                store(to, word, whole);
                carry = word >> (8 * whole);
                if at + 8 >= n && rest > 0 {
                    *last = (*last & !(keep(rest) as u8)) | (carry & keep(rest)) as u8;
                }
            }
        }
    }
}

/// The low `n` (at most 8) bytes of a little-endian word.
#[inline]
unsafe fn load(from: *const u8, n: usize) -> u64 {
    // SAFETY: the caller's n bytes.
    unsafe {
        if n == 8 {
            return u64::from_le(from.cast::<u64>().read_unaligned());
        }
        (0..n.min(8)).fold(0, |word, i| word | u64::from(*from.wrapping_add(i)) << (8 * i))
    }
}

/// Writes the low `n` (at most 8) bytes of `word`, the lowest first.
#[inline]
unsafe fn store(to: *mut u8, word: u64, n: usize) {
    // SAFETY: the caller's n bytes; of four and more, the second half may overlap the first.
    unsafe {
        if n >= 4 {
            let (last, high) = (to.wrapping_add(n - 4), word >> (8 * (n - 4)));
            to.cast::<u32>().write_unaligned((word as u32).to_le());
            return last.cast::<u32>().write_unaligned((high as u32).to_le());
        }
        for i in 0..n {
            *to.wrapping_add(i) = (word >> (8 * i)) as u8;
        }
    }
}

/// The bits of nibbles and bytes that stay where they are in each round.
const LOW: [u64; 3] = [0x0000_ffff_0000_ffff, 0x00ff_00ff_00ff_00ff, 0x0f0f_0f0f_0f0f_0f0f];

/// The common case, with every shift known.
unsafe fn unpack_nibbles(to: *mut u8, from: *const u8, n: usize) {
    // SAFETY: the caller's n elements and n bytes; an odd last one uses half a byte.
    unsafe {
        for at in 0..n / 8 {
            let x = u32::from_le(from.wrapping_add(4 * at).cast::<u32>().read_unaligned());
            let x = (u64::from(x) | u64::from(x) << 16) & LOW[0];
            let x = (x | x << 8) & LOW[1];
            let x = (x | x << 4) & LOW[2];
            to.wrapping_add(8 * at).cast::<u64>().write_unaligned(x.to_le());
        }
        for i in n & !7..n {
            *to.wrapping_add(i) = *from.wrapping_add(i / 2) >> (i % 2 * 4) & 15;
        }
    }
}

/// Likewise; what follows an odd last element is kept.
unsafe fn pack_nibbles(to: *mut u8, from: *const u8, n: usize) {
    // SAFETY: as above.
    unsafe {
        for at in 0..n / 8 {
            let x = u64::from_le(from.wrapping_add(8 * at).cast::<u64>().read_unaligned());
            let x = x & LOW[2];
            let x = (x | x >> 4) & LOW[1];
            let x = (x | x >> 8) & LOW[0];
            let x = (x | x >> 16) as u32;
            to.wrapping_add(4 * at).cast::<u32>().write_unaligned(x.to_le());
        }
        for i in n & !7..n {
            let (last, shift) = (to.wrapping_add(i / 2), i % 2 * 4);
            *last = *last & 0xf0 >> shift | (*from.wrapping_add(i) & 15) << shift;
        }
    }
}

//! What the kernels need of an instruction set.

/// A vector register, seen as lanes of 16 bytes.
///
/// # Safety
/// Whoever calls a method runs on a processor that has the vector's instructions, in a function
/// compiled for them (or else is slow); the methods that take addresses say what is read or written
/// there. Addresses need no alignment but [`Vector::stream`]'s. Loads of several lanes are given for
/// vectors of one.
pub trait Vector: Copy {
    /// Bytes of it: 16, 32 or 64.
    const BYTES: usize;
    /// Bytes that an index of [`Vector::permute`] reaches: 16 (of the same lane), or all.
    const WINDOW: usize;
    /// The `BYTES` bytes at `at`.
    ///
    /// # Safety
    /// They are readable.
    unsafe fn load(at: *const u8) -> Self;
    /// Lane `l` is the 16 bytes at `at + rows[l * apart]`.
    ///
    /// # Safety
    /// They are readable, as are the offsets.
    #[inline(always)]
    unsafe fn load_lanes(at: *const u8, rows: *const isize, apart: usize) -> Self {
        let _ = apart;
        // SAFETY: the caller's lane, and its offset.
        unsafe { Self::load(at.wrapping_offset(*rows)) }
    }
    /// The same of neighbouring lanes: lane `l` of vector `c` is the 16 bytes at
    /// `at + rows[l * apart] + 16 * c`; with as many vectors as one has lanes, each source line is
    /// read once, and whole. The rest are any vectors.
    ///
    /// # Safety
    /// `BYTES` bytes are readable at each `at + rows[l * apart]`, as are the offsets.
    #[inline(always)]
    unsafe fn load_square(at: *const u8, rows: *const isize, apart: usize) -> [Self; 4] {
        // SAFETY: the caller's bytes.
        [unsafe { Self::load_lanes(at, rows, apart) }; 4]
    }
    /// Each window from its own offset. With one window, the first offset is its.
    ///
    /// # Safety
    /// A window is readable at each, and as many offsets as there are windows.
    #[inline(always)]
    unsafe fn load_windows(at: *const u8, offsets: *const isize) -> Self {
        // SAFETY: the caller's window.
        unsafe { Self::load(at.wrapping_offset(*offsets)) }
    }
    /// Stores `BYTES` bytes.
    ///
    /// # Safety
    /// They are writable.
    unsafe fn store(self, at: *mut u8);
    /// Stores the bytes whose bits are set, and touches no others. Fast only with windows of a whole
    /// line.
    ///
    /// # Safety
    /// Bytes whose bits are set are writable; the mask has a bit for each byte.
    #[inline(always)]
    unsafe fn store_some(self, at: *mut u8, mask: u64) {
        let (mut bytes, mut i) = ([0u8; 64], 0);
        // SAFETY: no vector is longer.
        unsafe { self.store(bytes.as_mut_ptr()) };
        while i < Self::BYTES {
            if mask >> i & 1 == 1 {
                // SAFETY: the caller's byte, and one of the vector's.
                unsafe { at.wrapping_add(i).write(*bytes.as_ptr().add(i)) };
            }
            i += 1;
        }
    }
    /// A non-temporal store.
    ///
    /// # Safety
    /// `BYTES` bytes are writable, and `at` is a multiple of `BYTES`.
    unsafe fn stream(self, at: *mut u8);
    /// The elements of `S` bytes of both, alternating: of the low halves of all lanes, and of the
    /// high halves.
    ///
    /// # Safety
    /// The trait's.
    unsafe fn zip<const S: usize>(self, other: Self) -> [Self; 2];
    /// Byte `i` is the byte of its window that `index[i]`, less than `WINDOW`, names, or 0 where
    /// that is 0x80.
    ///
    /// # Safety
    /// The trait's.
    unsafe fn permute(self, index: Self) -> Self;
    /// Byte `i` is byte `index[i]`, less than `2 * WINDOW`, of two windows, `self`'s and then
    /// `other`'s; any byte where the index has its top bit set.
    ///
    /// # Safety
    /// The trait's.
    unsafe fn permute2(self, other: Self, index: Self) -> Self;
    /// Byte `i` is `under`'s where the top bit of `index[i]` is set, and else `self`'s.
    ///
    /// # Safety
    /// The trait's.
    unsafe fn over(self, under: Self, index: Self) -> Self;
    /// Each eight bytes, as a number of 64 bits, so many bits (less than 64) up: times a power of two.
    ///
    /// # Safety
    /// The trait's.
    unsafe fn up(self, bits: usize) -> Self;
    /// The same down.
    ///
    /// # Safety
    /// The trait's.
    unsafe fn down(self, bits: usize) -> Self;
    /// Bits of `self` where the mask's are set, and else of `other`.
    ///
    /// # Safety
    /// The trait's.
    unsafe fn mixed(self, other: Self, mask: Self) -> Self;
    /// Stores windows `apart` bytes apart, in order: of what overlaps, the later one's stays.
    ///
    /// # Safety
    /// The bytes are writable.
    #[inline(always)]
    unsafe fn store_windows(self, at: *mut u8, apart: usize) {
        let (mut bytes, mut i) = ([0u8; 64], 0);
        // SAFETY: the caller's bytes; no vector is longer, and windows of part of one have 16.
        unsafe {
            if Self::WINDOW == Self::BYTES {
                return self.store(at);
            }
            self.store(bytes.as_mut_ptr());
            while i < Self::BYTES / 16 {
                let window = bytes.as_ptr().add(16 * i).cast::<[u8; 16]>().read();
                at.wrapping_add(i * apart).cast::<[u8; 16]>().write(window);
                i += 1;
            }
        }
    }
    /// Prefetches a cache line, of any address, into the second-level cache. Not into the first
    /// level: of rows that are a power of two apart it has room for 8, and would lose the others.
    ///
    /// # Safety
    /// The trait's.
    unsafe fn prefetch(at: *const u8);
    /// The same into the first level, for what is read in order.
    ///
    /// # Safety
    /// The trait's.
    unsafe fn prefetch_near(at: *const u8);
}

//! The interface between the kernels and an instruction set.

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// A vector register of lanes of 16 bytes.
///
/// # Safety
/// The processor has the vector's instructions; the calling function should be compiled for them,
/// or it is slow. Methods that take addresses state what else they need. Only [`Vector::stream`]
/// needs alignment. Defaults of multi-lane loads are for vectors of one lane.
pub trait Vector: Copy {
    /// Size in bytes: 16, 32 or 64.
    const BYTES: usize;
    /// Bytes that an index of [`Vector::permute`] addresses: 16 (of the same lane), or all.
    const WINDOW: usize;
    /// Loads `BYTES` bytes.
    ///
    /// # Safety
    /// They are readable.
    unsafe fn load(at: *const u8) -> Self;
    /// Loads lane `l` from the 16 bytes at `at + rows[l * apart]`.
    ///
    /// # Safety
    /// They are readable, as are the offsets.
    #[inline(always)]
    unsafe fn load_lanes(at: *const u8, rows: *const isize, apart: usize) -> Self {
        let _ = apart;
        // SAFETY: a vector of one lane is readable at the first offset.
        unsafe { Self::load(at.wrapping_offset(*rows)) }
    }
    /// As `load_lanes`, for neighbouring lanes: lane `l` of vector `c` is the 16 bytes `16 * c`
    /// behind `at + rows[l * apart]`; with as many vectors as one has lanes, each source line is
    /// read once, in whole. The other vectors are unspecified.
    ///
    /// # Safety
    /// `BYTES` bytes are readable at each `at + rows[l * apart]`, as are the offsets.
    #[inline(always)]
    unsafe fn load_square(at: *const u8, rows: *const isize, apart: usize) -> [Self; 4] {
        // SAFETY: a vector of one lane is readable at the first offset.
        [unsafe { Self::load_lanes(at, rows, apart) }; 4]
    }
    /// Loads each window from its own offset. A single window uses the first offset.
    ///
    /// # Safety
    /// A window is readable at each, and as many offsets as there are windows.
    #[inline(always)]
    unsafe fn load_windows(at: *const u8, offsets: *const isize) -> Self {
        // SAFETY: a window, which is the whole vector, is readable at the first offset.
        unsafe { Self::load(at.wrapping_offset(*offsets)) }
    }
    /// Stores `BYTES` bytes.
    ///
    /// # Safety
    /// They are writable.
    unsafe fn store(self, at: *mut u8);
    /// Stores the bytes whose bits are set, and accesses no others. Fast only with windows of a
    /// whole line.
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
                // SAFETY: the byte's bit is set, so it is writable; `i` is below `BYTES`.
                unsafe { at.wrapping_add(i).write(*bytes.as_ptr().add(i)) };
            }
            i += 1;
        }
    }
    /// Stores `BYTES` bytes by a non-temporal store.
    ///
    /// # Safety
    /// `BYTES` bytes are writable, and `at` is a multiple of `BYTES`.
    unsafe fn stream(self, at: *mut u8);
    /// Interleaves the elements of `S` bytes of both: the low halves of all lanes, and the high
    /// halves.
    unsafe fn zip<const S: usize>(self, other: Self) -> [Self; 2];
    /// Byte `i` is byte `index[i]`, less than `WINDOW`, of its window, or 0 where the index is
    /// 0x80.
    unsafe fn permute(self, index: Self) -> Self;
    /// Byte `i` is byte `index[i]`, less than `2 * WINDOW`, of two windows, `self`'s and then
    /// `other`'s; any byte where the index has its top bit set.
    unsafe fn permute2(self, other: Self, index: Self) -> Self;
    /// Byte `i` is `under`'s where the top bit of `index[i]` is set, and else `self`'s.
    unsafe fn over(self, under: Self, index: Self) -> Self;
    /// Shifts each eight bytes, as a number of 64 bits, left by `bits` (less than 64).
    unsafe fn up(self, bits: usize) -> Self;
    /// Shifts them right.
    unsafe fn down(self, bits: usize) -> Self;
    /// Bits of `self` where the mask's are set, else of `other`.
    unsafe fn mixed(self, other: Self, mask: Self) -> Self;
    /// Stores windows `apart` bytes apart, in order: later ones overwrite earlier ones.
    ///
    /// # Safety
    /// The bytes are writable.
    #[inline(always)]
    unsafe fn store_windows(self, at: *mut u8, apart: usize) {
        let (mut bytes, mut i) = ([0u8; 64], 0);
        // SAFETY: the windows' bytes are writable; no vector is longer than `bytes`, and windows
        // smaller than a vector have 16 bytes.
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
    /// Prefetches a cache line, at any address, into L2. Not into L1: its sets hold 8 rows that are
    /// a power of two apart, and would evict the others.
    unsafe fn prefetch(at: *const u8);
    /// Prefetches a cache line into L1, for data that is read in order.
    unsafe fn prefetch_near(at: *const u8);
}

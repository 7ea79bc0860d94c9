//! A vector in plain Rust. With one lane it is the portable level, for every target. With more
//! lanes, and permutations in lanes or across all, it is for tests: it executes the algorithms of
//! AVX2 and AVX-512 on any machine, and under Miri. There it checks for errors that a processor
//! traps (unaligned non-temporal stores) or ignores (indices outside of a window).
use crate::level::{Kernels, Level};
use crate::vector::Vector;
use crate::{bits, rows, transpose};

/// Whether wider vectors are compiled, and all vectors check their arguments.
const CHECKED: bool = cfg!(any(test, feature = "emulated"));

#[derive(Clone, Copy)]
#[repr(align(16))]
pub(crate) struct Emulated<const BYTES: usize, const WINDOW: usize>([u8; BYTES]);

impl<const BYTES: usize, const WINDOW: usize> Emulated<BYTES, WINDOW> {
    /// Loads lanes, or windows, of `N` bytes, each from its own address.
    #[inline(always)]
    unsafe fn parts<const N: usize>(place: impl Fn(usize) -> *const u8) -> Self {
        let (mut to, mut i) = (Emulated([0; BYTES]), 0);
        while i < BYTES / N {
            let part: *mut u8 = (&raw mut to.0).cast::<u8>().wrapping_add(i * N);
            // SAFETY: `N` bytes are readable at `place(i)`; part `i` is one of as many as there
            // are.
            unsafe { part.cast::<[u8; N]>().write(place(i).cast::<[u8; N]>().read()) };
            i += 1;
        }
        to
    }

    /// Combines each eight bytes with those of another vector by a function.
    #[inline(always)]
    unsafe fn words(self, other: Self, rule: impl Fn(u64, u64) -> u64) -> Self {
        let (mut to, mut i) = (self, 0);
        while i < BYTES / 8 {
            let at = (&raw mut to.0).cast::<[u8; 8]>().wrapping_add(i);
            let by = other.0.as_ptr().cast::<[u8; 8]>().wrapping_add(i);
            // SAFETY: word `i` of both vectors, below `BYTES / 8`.
            unsafe {
                let word = rule(u64::from_le_bytes(*at), u64::from_le_bytes(*by));
                *at = word.to_le_bytes();
            }
            i += 1;
        }
        to
    }

    /// Byte `i`.
    #[inline(always)]
    unsafe fn byte(&self, i: usize) -> u8 {
        // SAFETY: `i` is below `BYTES`.
        unsafe { *self.0.get_unchecked(i) }
    }
}

impl<const BYTES: usize, const WINDOW: usize> Vector for Emulated<BYTES, WINDOW> {
    const BYTES: usize = BYTES;
    const WINDOW: usize = WINDOW;

    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: `BYTES` bytes are readable at `at`.
        Emulated(unsafe { at.cast::<[u8; BYTES]>().read() })
    }

    #[inline(always)]
    unsafe fn load_lanes(at: *const u8, rows: *const isize, apart: usize) -> Self {
        // SAFETY: 16 bytes are readable at each offset, and `rows` has one for each lane.
        unsafe { Self::parts::<16>(|lane| at.wrapping_offset(*rows.add(lane * apart))) }
    }

    #[inline(always)]
    unsafe fn load_square(at: *const u8, rows: *const isize, apart: usize) -> [Self; 4] {
        let (mut all, mut i) = ([Emulated([0; BYTES]); 4], 0);
        while i < BYTES / 16 {
            let at = at.wrapping_add(16 * i);
            // SAFETY: 16 bytes are readable for each lane; a vector has at most 4 lanes.
            unsafe { *all.get_unchecked_mut(i) = Self::load_lanes(at, rows, apart) };
            i += 1;
        }
        all
    }

    #[inline(always)]
    unsafe fn load_windows(at: *const u8, offsets: *const isize) -> Self {
        // SAFETY: a window is readable at each offset, and there are as many offsets as windows.
        unsafe { Self::parts::<WINDOW>(|i| at.wrapping_offset(*offsets.add(i))) }
    }

    #[inline(always)]
    unsafe fn store(self, at: *mut u8) {
        // SAFETY: `BYTES` bytes are writable at `at`.
        unsafe { at.cast::<[u8; BYTES]>().write(self.0) }
    }

    #[inline(always)]
    unsafe fn stream(self, at: *mut u8) {
        if CHECKED {
            assert!((at as usize).is_multiple_of(BYTES), "a streaming store that is not aligned");
        }
        // SAFETY: `BYTES` bytes are writable at `at`.
        unsafe { self.store(at) }
    }

    #[inline(always)]
    unsafe fn zip<const S: usize>(self, other: Self) -> [Self; 2] {
        let (mut low, mut high, mut i) = (self, self, 0);
        while i < BYTES {
            let (element, byte) = (i % 16 / S, i % S);
            let from = if element % 2 == 0 { &self } else { &other };
            let at = i / 16 * 16 + element / 2 * S + byte;
            // SAFETY: byte `i` of a vector, from the same half of its lane.
            unsafe {
                *low.0.get_unchecked_mut(i) = from.byte(at);
                *high.0.get_unchecked_mut(i) = from.byte(at + 8);
            }
            i += 1;
        }
        [low, high]
    }

    #[inline(always)]
    unsafe fn permute(self, index: Self) -> Self {
        let (mut to, mut i) = (self, 0);
        while i < BYTES {
            // SAFETY: byte `i` of a vector, from its window.
            unsafe {
                let at = index.byte(i);
                if CHECKED {
                    assert!(at == 0x80 || usize::from(at) < WINDOW, "index {at} of {WINDOW}");
                }
                let from = self.byte(i / WINDOW * WINDOW + usize::from(at) % WINDOW);
                *to.0.get_unchecked_mut(i) = if at < 0x80 { from } else { 0 };
            }
            i += 1;
        }
        to
    }

    #[inline(always)]
    unsafe fn permute2(self, other: Self, index: Self) -> Self {
        let (mut to, mut i) = (self, 0);
        while i < BYTES {
            // SAFETY: byte `i` of a vector, from one of its windows.
            unsafe {
                let at = usize::from(index.byte(i));
                if CHECKED {
                    assert!(at >= 0x80 || at < 2 * WINDOW, "index {at} of twice {WINDOW}");
                }
                let from = if at % (2 * WINDOW) < WINDOW { &self } else { &other };
                *to.0.get_unchecked_mut(i) = from.byte(i / WINDOW * WINDOW + at % WINDOW);
            }
            i += 1;
        }
        to
    }

    #[inline(always)]
    unsafe fn over(self, under: Self, index: Self) -> Self {
        let (mut to, mut i) = (self, 0);
        while i < BYTES {
            // SAFETY: byte `i` of a vector.
            unsafe {
                if index.byte(i) >= 0x80 {
                    *to.0.get_unchecked_mut(i) = under.byte(i);
                }
            }
            i += 1;
        }
        to
    }

    #[inline(always)]
    unsafe fn up(self, bits: usize) -> Self {
        // SAFETY: no instructions are needed.
        unsafe { self.words(self, |word, _| word << (bits & 63)) }
    }

    #[inline(always)]
    unsafe fn down(self, bits: usize) -> Self {
        // SAFETY: no instructions are needed.
        unsafe { self.words(self, |word, _| word >> (bits & 63)) }
    }

    #[inline(always)]
    unsafe fn mixed(self, other: Self, mask: Self) -> Self {
        // SAFETY: no instructions are needed.
        unsafe {
            let [own, others] = [
                self.words(mask, |word, mask| word & mask),
                other.words(mask, |word, mask| word & !mask),
            ];
            own.words(others, |a, b| a | b)
        }
    }

    #[inline(always)]
    unsafe fn prefetch(_: *const u8) {}

    #[inline(always)]
    unsafe fn prefetch_near(_: *const u8) {}
}

type One = Emulated<16, 16>;

/// Without shuffles: compiled from plain Rust, permutations are slower than the scalar copy.
pub(crate) const PORTABLE: Kernels = Kernels {
    level: Level::Portable,
    transpose: transpose::plain,
    shuffles: None,
    rows: rows::copy::<One>,
    bits: bits::run::<One>,
    fill: rows::fill::<One>,
    fence,
};

unsafe fn fence() {}

/// As AVX-512 with VBMI, and as AVX2.
#[cfg(any(test, feature = "emulated"))]
mod of_tests {
    use super::*;
    use crate::level::{table, wrappers};
    use crate::tile;

    type Two = Emulated<32, 16>;
    type Four = Emulated<64, 64>;
    unsafe fn narrow(item: usize, block: &tile::Block) {
        // SAFETY: the block's elements are readable or writable.
        unsafe { tile::narrow::<One>(item, block) }
    }

    wrappers!(four [] [] Two, Four, narrow, Four, Four);
    wrappers!(two [] [] Two, Two, narrow, Two, Two);

    pub(crate) static EMULATED: Kernels = table!(Level::Emulated, four, four, 64, fence);
    pub(crate) static EMULATED_LANES: Kernels = table!(Level::EmulatedLanes, two, two, 16, fence);
}
#[cfg(any(test, feature = "emulated"))]
pub(crate) use of_tests::{EMULATED, EMULATED_LANES};

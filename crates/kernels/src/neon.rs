//! AArch64 vectors, part of the target's baseline. All stores are plain: few processors heed the
//! hint of a non-temporal pair.
use core::arch::{aarch64::*, asm};

use crate::level::{Kernels, Level, table, wrappers};
use crate::tile;
use crate::vector::Vector;

#[derive(Clone, Copy)]
pub(crate) struct Neon(uint8x16_t);

/// Zips two vectors of elements.
macro_rules! zipped {
    ($a:ident $b:ident $low:ident $high:ident $as:ident $back:ident) => {
        [Neon($back($low($as($a), $as($b)))), Neon($back($high($as($a), $as($b))))]
    };
}

impl Vector for Neon {
    const BYTES: usize = 16;
    const WINDOW: usize = 16;

    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: 16 bytes are readable at `at`.
        Neon(unsafe { vld1q_u8(at) })
    }

    #[inline(always)]
    unsafe fn store(self, at: *mut u8) {
        // SAFETY: 16 bytes are writable at `at`.
        unsafe { vst1q_u8(at, self.0) }
    }

    #[inline(always)]
    unsafe fn stream(self, at: *mut u8) {
        // SAFETY: 16 bytes are writable at `at`.
        unsafe { self.store(at) }
    }

    #[inline(always)]
    unsafe fn zip<const S: usize>(self, other: Self) -> [Self; 2] {
        let (a, b) = (self.0, other.0);
        // SAFETY: the target has the instructions.
        unsafe {
            match S {
                1 => [Neon(vzip1q_u8(a, b)), Neon(vzip2q_u8(a, b))],
                2 => zipped!(a b vzip1q_u16 vzip2q_u16 vreinterpretq_u16_u8 vreinterpretq_u8_u16),
                4 => zipped!(a b vzip1q_u32 vzip2q_u32 vreinterpretq_u32_u8 vreinterpretq_u8_u32),
                8 => zipped!(a b vzip1q_u64 vzip2q_u64 vreinterpretq_u64_u8 vreinterpretq_u8_u64),
                _ => [self, other],
            }
        }
    }

    /// An index beyond the vector gives 0.
    #[inline(always)]
    unsafe fn permute(self, index: Self) -> Self {
        // SAFETY: the target has the instruction.
        Neon(unsafe { vqtbl1q_u8(self.0, index.0) })
    }

    #[inline(always)]
    unsafe fn permute2(self, other: Self, index: Self) -> Self {
        // SAFETY: the target has the instruction.
        Neon(unsafe { vqtbl2q_u8(uint8x16x2_t(self.0, other.0), index.0) })
    }

    #[inline(always)]
    unsafe fn over(self, under: Self, index: Self) -> Self {
        // SAFETY: the target has the instructions.
        unsafe {
            let top = vcltzq_s8(vreinterpretq_s8_u8(index.0));
            Neon(vbslq_u8(top, under.0, self.0))
        }
    }

    #[inline(always)]
    unsafe fn up(self, bits: usize) -> Self {
        // SAFETY: the target has the instructions.
        unsafe {
            let words = vreinterpretq_u64_u8(self.0);
            Neon(vreinterpretq_u8_u64(vshlq_u64(words, vdupq_n_s64(bits as i64))))
        }
    }

    #[inline(always)]
    unsafe fn down(self, bits: usize) -> Self {
        // SAFETY: the target has the instructions.
        unsafe {
            let words = vreinterpretq_u64_u8(self.0);
            Neon(vreinterpretq_u8_u64(vshlq_u64(words, vdupq_n_s64(-(bits as i64)))))
        }
    }

    #[inline(always)]
    unsafe fn mixed(self, other: Self, mask: Self) -> Self {
        // SAFETY: the target has the instruction.
        Neon(unsafe { vbslq_u8(mask.0, self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const u8) {
        // SAFETY: a prefetch never faults.
        unsafe { asm!("prfm pldl2keep, [{}]", in(reg) at, options(nostack, preserves_flags)) }
    }

    #[inline(always)]
    unsafe fn prefetch_near(at: *const u8) {
        // SAFETY: a prefetch never faults.
        unsafe { asm!("prfm pldl1keep, [{}]", in(reg) at, options(nostack, preserves_flags)) }
    }
}

unsafe fn narrow(item: usize, block: &tile::Block) {
    // SAFETY: the block's elements are readable or writable; the target has the instructions.
    unsafe { tile::narrow::<Neon>(item, block) }
}

wrappers!(neon [] [] Neon, Neon, narrow, Neon, Neon);

pub(crate) static NEON: Kernels = table!(Level::Neon, neon, neon, 16, fence);

unsafe fn fence() {}

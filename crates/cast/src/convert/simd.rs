//! Selects this target's vector instructions for casts.
use super::steps::{Params, Run, Step};

/// A vectorized loop.
pub struct Blocks {
    /// The portable loop that does the same.
    pub of: Run,
    /// Converts so many blocks, unaligned on both sides, with vector instructions that the
    /// processor has.
    pub run: unsafe fn(*const u8, *mut u8, usize, &Params),
    /// The bytes of a block in the source and in the destination, as powers of two.
    pub sizes: [u8; 2],
}

/// A step in the processor's best instructions.
#[derive(Clone, Copy)]
pub struct Fastest {
    /// The step.
    pub step: Step,
    blocks: Option<&'static Blocks>,
}

impl Fastest {
    /// The step in portable instructions.
    pub const fn portable(step: Step) -> Fastest {
        Fastest { step, blocks: None }
    }

    /// The step in vector instructions, if there are any.
    pub fn of(step: Step) -> Fastest {
        let vectors = if vectors() { VECTORS } else { &[] };
        let same = |blocks: &&Blocks| core::ptr::fn_addr_eq(blocks.of, step.run);
        Fastest { step, blocks: vectors.iter().find(same) }
    }

    /// Converts a run of elements: blocks, then the rest.
    #[inline(always)]
    pub fn run(&self, mut src: &[u8], mut dst: &mut [u8], p: &Params) {
        if let Some(Blocks { run, sizes: [from, to], .. }) = self.blocks {
            let n = (src.len() >> from).min(dst.len() >> to);
            // SAFETY: both have `n` blocks; the processor has the loop's instructions.
            unsafe { run(src.as_ptr(), dst.as_mut_ptr(), n, p) };
            if n << from == src.len() {
                return;
            }
            src = src.get(n << from..).unwrap_or_default();
            dst = dst.get_mut(n << to..).unwrap_or_default();
        }
        (self.step.run)(src, dst, p);
    }
}

/// Whether vector casts are available.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub fn vectors() -> bool {
    use crate::cpu::{Level, level};
    cfg!(feature = "vectors") && (Level::Avx2..=Level::Vbmi).contains(&level())
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::avx2::VECTORS;

/// None are available.
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
pub fn vectors() -> bool {
    false
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
static VECTORS: &[Blocks] = &[];

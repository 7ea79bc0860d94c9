//! Which vector instructions this target has for casts.
use super::steps::Step;

/// Whether there are vectors for numbers.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub fn vectors() -> bool {
    use crate::device::cpu::{Level, level};
    cfg!(feature = "vectors") && (Level::Avx2..=Level::Vbmi).contains(&level())
}

/// The step in the best instructions that the processor has.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub fn fastest(step: Step) -> Step {
    if vectors() { super::avx2::step(step) } else { step }
}

/// The step itself.
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
pub fn fastest(step: Step) -> Step {
    step
}

/// There are none.
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
pub fn vectors() -> bool {
    false
}

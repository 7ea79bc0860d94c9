//! Selects this target's vector instructions for casts.
use super::steps::Step;

/// Whether vector casts are available.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub fn vectors() -> bool {
    use crate::device::cpu::{Level, level};
    cfg!(feature = "vectors") && (Level::Avx2..=Level::Vbmi).contains(&level())
}

/// The step in the processor's best instructions.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub fn fastest(step: Step) -> Step {
    if vectors() { super::avx2::step(step) } else { step }
}

/// The unchanged step.
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
pub fn fastest(step: Step) -> Step {
    step
}

/// None are available.
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
pub fn vectors() -> bool {
    false
}

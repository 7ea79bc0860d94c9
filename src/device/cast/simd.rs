//! Which vector instructions this target has for casts.
use super::steps::Step;

/// The step in the best instructions that the processor has.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub fn fastest(step: Step) -> Step {
    use crate::device::cpu::{Level, level};
    if level() >= Level::Avx2 { super::avx2::step(step) } else { step }
}

/// The step itself.
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
pub fn fastest(step: Step) -> Step {
    step
}

//! Which kernels this target has: the one list of processor families.
//!
//! A family's files start with the `cfg` under which they exist; here it gives `detect`, the
//! highest level of the processor at hand, `maker`, who made it, and `table`, a level's
//! kernels; `eights` joins two elements, if every processor of the target can.
#[cfg(target_arch = "aarch64")]
pub(super) use super::neon::{detect, maker, table};
#[cfg(not(target_feature = "sse2"))]
pub(super) use super::strided::eights;
#[cfg(target_feature = "sse2")]
pub(super) use super::x86::eights;
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(super) use super::x86::{detect, maker, table};

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
mod none {
    use crate::device::cpu::level::Level;
    use crate::device::cpu::ops::Ops;
    use crate::device::cpu::portable;
    use crate::device::cpu::tuning::Make;

    pub(in crate::device::cpu) fn detect() -> Level {
        Level::Portable
    }

    pub(in crate::device::cpu) fn maker() -> Make {
        Make::Usual
    }

    pub(in crate::device::cpu) fn table(_: Level) -> &'static Ops {
        &portable::OPS
    }
}
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use none::{detect, maker, table};

//! Which kernels this target has: the one list of processor families.
//!
//! A family's files start with the `cfg` under which they exist; here it gives `detect`, the
//! highest level of the processor at hand, `amd`, whether AMD made it, and `table`, a level's
//! kernels.
#[cfg(target_arch = "aarch64")]
pub(super) use super::neon::{amd, detect, table};
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(super) use super::x86::{amd, detect, table};

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
mod none {
    use crate::device::cpu::level::Level;
    use crate::device::cpu::ops::Ops;
    use crate::device::cpu::portable;

    pub(in crate::device::cpu) fn detect() -> Level {
        Level::Portable
    }

    pub(in crate::device::cpu) fn amd() -> bool {
        false
    }

    pub(in crate::device::cpu) fn table(_: Level) -> &'static Ops {
        &portable::OPS
    }
}
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use none::{amd, detect, table};

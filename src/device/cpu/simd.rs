//! Which kernels this target has: the one list of processor families.
//!
//! A family's files start with the `cfg` under which they exist; here it gives `detect`, the
//! highest level of the processor at hand, `amd`, whether AMD made it, `table`, the kernels of a
//! level, and `odd_squares`, `braid` and `groups`, which few have.
#[cfg(target_arch = "aarch64")]
pub(super) use super::neon::{amd, braid, detect, groups, odd_squares, table};
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(super) use super::x86::{amd, braid, detect, groups, odd_squares, table};

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
mod none {
    use crate::device::cpu::level::Level;
    use crate::device::cpu::ops::{Braid, OddSquares, Ops, Shuffle};
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

    pub(in crate::device::cpu) fn braid(_: Level) -> Option<Braid> {
        None
    }

    pub(in crate::device::cpu) fn groups(_: Level) -> Option<(&'static [usize], Shuffle)> {
        None
    }

    pub(in crate::device::cpu) fn odd_squares(_: Level) -> Option<OddSquares> {
        None
    }
}
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use none::{amd, braid, detect, groups, odd_squares, table};

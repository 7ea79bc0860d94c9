//! The instructions of the kernels with AVX-512: the processor's, or what tests have in their place
//! (`x86_emulated.rs`).
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(all(target_arch = "x86", not(emulated)))]
pub(super) use core::arch::x86::*;
#[cfg(all(target_arch = "x86_64", not(emulated)))]
pub(super) use core::arch::x86_64::*;

#[cfg(emulated)]
pub(super) use super::x86_emulated::*;

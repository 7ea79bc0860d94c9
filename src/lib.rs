//! libdlpack_rs: what DLPack leaves to each project, done once, behind a C ABI.
//!
//! ```text
//!   src/capi       │ C, C++, ctypes, cffi: include/dlpack_rs.h is generated from it. One file per
//!                  │ topic; each body a few lines, its comment is the manual
//!   python/module  │ the Python module with the type Tensor: in the wheel's library, not in C's
//!   crates/python, │ optional: CPython (capsules, `__dlpack__`, the exchange API), elements as
//!   cast, print    │ numbers, tensors as text
//!   crates/tensor  │ who owns a tensor; a pair of tensors becomes a byte plan, for a device
//!   crates/gpu     │ CUDA and ROCm; optional
//!   crates/device  │ the interface of a device, host memory, backends given from C
//!   crates/engine  │ plans (bytes, no tensors) in host memory; its vector kernels: crates/kernels
//!   crates/core    │ a foreign struct is read once, checked in a fixed order; layouts, dtypes,
//!                  │ errors and each message, what the operating system gives
//!   crates/abi     │ upstream's dlpack.h as plain data
//! ```
//! Cargo keeps the layers: a crate names those that it may use, and its `lib.rs` says the rest.
//! `crates/cdylib` is the artefact: these crates with a panic handler; `crates/headers` writes the
//! headers.
//!
//! The six laws, each with a test:
//! 1. Upstream's namespace is read-only: ours is `dlrs_` and `DLRS_`.
//! 2. On error no ownership is taken; an input is consumed only by a `_take` that succeeds.
//! 3. One definition per fact: the version in Cargo.toml, the exports in include/exports.txt.
//! 4. Code for bytes does not use tensors; code for tensors does not use the C interface.
//! 5. What C passes is followed in `capi/arg` alone, which judges each pointer once and makes it a
//!    type; the members of a foreign tensor are read in `validate`.
//! 6. No panics, no hidden allocations, no TLS, no `abort`, a short list of imports.
//!
//! Where is what? A function of the header: `src/capi/<topic>.rs`. A message: `error/` of
//! `crates/core`; a rule that rejects a tensor: `validate.rs` there. Ownership: `tensor/block/` of
//! `crates/tensor`; the choice of who copies: `copy/route.rs` there. A slow copy: `cpu/` of
//! `crates/engine`. A driver's call: `crates/gpu`. A new function or backend: CONTRIBUTING.md.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod capi;

#[cfg(feature = "cast")]
pub use dlpack_cast::{cast, compare, convert, numbers};
#[cfg(feature = "module")]
pub use dlpack_module as module;
#[cfg(feature = "print")]
pub use dlpack_print::{self as print, reader};
#[cfg(feature = "python")]
pub use dlpack_python as python;
pub use dlpack_tensor::*;

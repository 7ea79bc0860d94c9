//! Copies in host memory. A copy is a [`plan`]: addresses, extents and strides in bytes, no dtype.
//!
//! ```text
//!   cpu    │ the copy engine: six operations, the choice among them, threads; docs/engine.md
//!   nest   │ the loops around an operation
//!   pieces │ a plan cut into parts that fit a buffer
//!   plan   │ what is copied: dimensions that belong together are merged here
//! ```
//! May use: `core`, and `kernels` for vector instructions. Used by: `device` and what is above it.
#![no_std]

#[cfg(test)]
extern crate std;

pub use dlpack_core::*;

pub mod cpu;
pub mod nest;
pub mod pieces;
pub mod plan;

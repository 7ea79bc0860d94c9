//! Tensors, who owns them, and copies between them.
//!
//! ```text
//!   batch    │ many copies as one; import: a foreign tensor as the caller wants it
//!   copy     │ a pair of tensors becomes a plan; route: who executes it; clone, stage
//!   tensor   │ block (a tensor of ours), alloc, wrap, convert, chain, share, view, release
//!   registry │ the backend of each kind of device: a registered one, or one of the library's own
//! ```
//! May use: `device` and `gpu`. Used by: `cast`, `print`, `python`, the C interface.
#![no_std]

#[cfg(test)]
extern crate std;

pub use dlpack_device::*;
pub use dlpack_gpu as gpu;

pub mod batch;
pub mod copy;
pub mod import;
pub mod registry;
pub mod tensor;

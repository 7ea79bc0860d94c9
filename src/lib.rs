//! libdlpack_rs: what DLPack leaves to each project, done once, behind a C ABI.
//!
//! ```text
//!   C, C++, ctypes, cffi          include/dlpack_rs.h is generated from capi/
//!            │
//!   capi     │ one file per topic; each body a few lines, its comment is the manual
//!   python   │ capsules, `__dlpack__`, the exchange API; CPython's functions found at run time;
//!            │ module (the feature of that name): the extension module with the type Tensor
//!   copy     │ a pair of tensors becomes a byte plan, and a device runs it; import, cast,
//!            │ compare, batch, numbers; print (tensors as text) and reader (their elements)
//!   tensor   │ block: alloc, wrap, convert, chain, share, view, deferred release
//!   device   │ plan (bytes, no tensors) and nest (its loops), cpu (the copy engine; its vector
//!            │ kernels are the package kernels/), cast (conversion of elements);
//!            │ backend (the interface), registry (who serves a device), gpu (CUDA and ROCm),
//!            │ plugged (backends given from C)
//!   validate │ a foreign struct is read once, checked in a fixed order
//!   layout, view, overlap, dtype(_notation), device_type, ... scan      arithmetic and tables
//!   platform │ what the operating system gives
//!   error    │ Status, Field, Error: errors, and their messages in one place
//!   abi      │ upstream's dlpack.h as plain data; array: a few values; integer_text
//! ```
//! Each layer imports only those below it; `tests/house.rs` checks the `use` lines.
//!
//! The six laws, each with a test:
//! 1. Upstream's namespace is read-only: ours is `dlrs_` and `DLRS_`.
//! 2. On error no ownership is taken; an input is consumed only by a `_take` that succeeds.
//! 3. One definition per fact: the version in Cargo.toml, the exports in include/exports.txt.
//! 4. Code for bytes does not use tensors; code for tensors does not use the C interface.
//! 5. A foreign pointer is dereferenced in two places only: `capi/arg.rs` and `validate`.
//! 6. No panics, no hidden allocations, no TLS, no `abort`, a short list of imports.
//!
//! Where is what? A function of the header: `capi/<topic>.rs`. A message: `error/`. A rule that
//! rejects a tensor: `validate.rs`. Ownership: `tensor/block/`. A slow copy: `device/cpu/`. The
//! choice of who copies: `copy/route.rs`. A driver's call: `device/gpu/`. A new function or
//! backend: CONTRIBUTING.md.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod abi;
mod array;
pub mod batch;
pub mod capi;
#[cfg(feature = "cast")]
pub mod cast;
#[cfg(feature = "cast")]
pub mod compare;
pub mod copy;
pub mod device;
pub mod device_type;
pub mod dtype;
pub mod dtype_notation;
pub mod error;
pub mod float_formats;
pub mod import;
mod integer_text;
pub mod layout;
#[cfg(feature = "cast")]
pub mod numbers;
pub mod overlap;
pub mod platform;
#[cfg(feature = "print")]
pub mod print;
#[cfg(feature = "python")]
pub mod python;
#[cfg(feature = "print")]
pub mod reader;
mod scan;
pub mod tensor;
pub mod validate;
pub mod view;

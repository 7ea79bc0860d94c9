//! CUDA and ROCm: one backend over two similar drivers.
//!
//! ```text
//!   gpu      │ a vendor's devices, by DLPack's kinds
//!   backend  │ the trait Backend: makes the device current, calls the driver
//!   order    │ dependencies of streams: marks, other streams
//!   copy     │ strategies of copies: the driver's copies, kernels, pinned buffers; runs: several
//!            │ copies by one call
//!   memory   │ allocation, queries of addresses
//!   context  │ the current context or device, changed and restored
//!   launch   │ loads and launches kernels; kernels.rs selects them; hiprtc compiles for ROCm;
//!            │ packed unpacks their text
//!   stage    │ staging through pinned buffers, by several threads
//!   peers    │ strided copies between two devices, compact on one of them
//!   cuda, rocm  vendor-specific code
//!   driver   │ the library, its functions by both vendors' names; codes: error codes
//!   place, state, structs, vendor   where a copy happens; what is kept of a device; the drivers'
//!            │ structs; what both vendors have
//! ```
//! No two files use each other.
//!
//! No library is loaded before a function of a device is called. After a failure the next call
//! tries again. The driver is started once; in a process forked later every call returns an error.
//!
//! CUDA's context is the caller's current one if it is the device's, that of the stream if there is
//! a stream, else the device's primary one, which is retained on first use and never released.
//! Every call restores the previous context.
//!
//! Calls that would break a stream's capture return an error first; contiguous copies and kernels
//! are captured. Waits, queries and allocations also break other threads' captures, except in the
//! relaxed mode ([`Driver::relaxed`]).
//!
//! Copies never enable peer access: it would change the caller's contexts. Contiguous copies
//! between two devices use the driver's peer copy, which is direct if the caller enabled peer
//! access, else through the host. Kernels access the current device's memory only, by the addresses
//! that the driver reports for it.
//!
//! Kernels, stored buffers and several threads are used in primary contexts only: in the caller's
//! other contexts, strided copies go through host memory. CUDA's green contexts, which are current
//! to one thread only, use the primary context's kernels.
//!
//! CUDA was run on an H200 and an H100 (docs/devices.md), ROCm on stand-in drivers only.
//!
//! May use: `device`. Used by: `tensor::registry`, which asks [`of`].
#![no_std]

#[cfg(test)]
extern crate std;

pub use dlpack_device::{abi, array, cpu, error, nest, pieces, plan, platform};

mod backend;
pub mod codes;
mod context;
mod copy;
mod cuda;
pub mod driver;
mod gpu;
mod hiprtc;
pub mod kernels;
mod launch;
pub mod launches;
mod memory;
mod order;
pub mod packed;
mod peers;
mod place;
mod rocm;
mod runs;
mod stage;
mod state;
mod structs;
mod vendor;

pub use gpu::{of, set_path};

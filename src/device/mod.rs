//! Devices: the description of a copy (`plan`), its execution (`cpu` in host memory, a `backend`
//! from the `registry` elsewhere), and conversions (`cast`).
pub mod backend;
#[cfg(feature = "cast")]
pub mod cast;
pub mod cpu;
#[cfg(any(feature = "cuda", feature = "rocm"))]
pub mod gpu;
#[cfg(not(any(feature = "cuda", feature = "rocm")))]
#[path = "no_gpu.rs"]
pub mod gpu;
pub mod host;
pub mod nest;
pub mod per_kind;
pub mod pieces;
pub mod plan;
pub mod plugged;
pub mod ready;
pub mod registry;

//! Devices: what a copy is (`plan`), who carries it out (`cpu` in memory of the host, a `backend`
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

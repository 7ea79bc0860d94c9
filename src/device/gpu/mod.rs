//! One backend for CUDA and ROCm.
pub mod kernels;
pub mod launches;

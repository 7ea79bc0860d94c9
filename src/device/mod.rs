//! Devices.
pub mod cpu;
pub mod plan;

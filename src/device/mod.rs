//! Devices: what a copy is (`plan`), who carries it out (`cpu`), and conversions (`cast`).
pub mod cast;
pub mod cpu;
pub mod gpu;
pub mod part;
pub mod plan;

//! Devices: what a copy is (`plan`), and who carries it out.
pub mod cpu;
pub mod part;
pub mod plan;

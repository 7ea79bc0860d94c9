//! The case and checks of each input: run by `src/bin/` for libFuzzer, by `replay.rs` for
//! `cargo test`.

pub mod cast;
pub mod convert_chain;
pub mod copy;
pub mod names;
pub mod overlap;
pub mod validate;

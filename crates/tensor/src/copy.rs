//! Copies of tensors.
//!
//! ```text
//! pair     │ two tensors of a copy: what is checked of both; one: of each; options
//! job      │ their byte plan, checked, and its execution
//! route    │ who executes it; ends: the streams of both sides; alike: several copies at a time
//! stage    │ between devices that cannot access each other; clone, explain
//! ```

mod alike;
mod clone;
mod ends;
mod explain;
mod job;
mod one;
mod options;
mod pair;
pub mod route;
mod stage;

pub use clone::*;
pub use explain::{Explained, explain};
pub use job::{Job, check, copy, finish, repack, run};
pub use one::*;
pub use options::{CopyPolicy, Options, Streams};
pub use pair::*;
pub use stage::Scratch;

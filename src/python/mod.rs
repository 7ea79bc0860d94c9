//! CPython, as far as tensors meet it: its functions, found at run time.
//!
//! Nothing links libpython. One library serves every CPython from 3.9 on, with and without the
//! GIL, because only functions of the stable ABI are called and only opaque objects are seen.

pub mod array_interface;
pub mod buffer;
pub mod capsule;
pub mod constants;
pub mod exchange;
pub mod export;
pub mod import;
pub mod module;
mod object;
pub mod raise;
pub mod stream;
mod symbols;
mod ticket;

pub use object::{Owned, detached};
pub use symbols::*;

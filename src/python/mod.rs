//! CPython, as far as tensors meet it: its functions, found at run time.
//!
//! Nothing links libpython. One library serves every CPython from 3.9 on, with and without the
//! GIL, because only functions of the stable ABI are called and only opaque objects are seen.

mod object;
mod symbols;

pub use object::Owned;
pub use symbols::*;

//! CPython, as far as tensors meet it: its functions, found at run time.
//!
//! libpython is not linked. One library supports every CPython from 3.9 on, with and without the
//! GIL: it calls functions of the stable ABI, and a few that every CPython exports or for which
//! there is a substitute (`symbols.rs` lists them all), and sees objects as opaque, but for the
//! type at the end of their header, which is looked at only where it was found to be there.
//!
//! Optional (the feature `python`). May use: `tensor`. Used by: the C interface, `python/module`.
#![no_std]

#[cfg(test)]
extern crate std;

pub use dlpack_tensor::{
    abi, copy, device_type, dtype, dtype_notation, error, integer_text, layout, platform, ready,
    registry, tensor, validate,
};

pub mod array_interface;
mod attached;
mod behind;
pub mod buffer;
pub mod capsule;
pub mod constants;
pub mod exchange;
pub mod export;
pub mod home;
pub mod import;
#[cfg(feature = "module")]
mod module_symbols;
mod object;
pub mod payload;
pub mod raise;
pub mod stream;
mod symbols;
mod ticket;
pub mod words;
pub mod wrap;

#[cfg(feature = "module")]
pub use module_symbols::Comparison;
pub use object::{
    Object, Owned, detached, is, is_a, kinds, numbers, pointer, raised, required, text, text_of,
    tuple, tuple_of,
};
pub use raise::{
    KindOf, Message, Quoted, aside, class_of, comes_through, forgive, known, meanwhile, refused,
    utf8,
};
pub use symbols::*;

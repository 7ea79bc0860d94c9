//! The block: one allocation with a versioned and a legacy struct.
//!
//! Every block has both structs, so converting one of our tensors to the other kind neither
//! allocates nor can fail. They overlap: the versioned one ends with the DLTensor with which the
//! legacy one begins. Each pointer returned, of either kind, is one reference; the last deleter
//! call frees. Freeing walks from wrapper to base in a loop, never by recursion, so a chain of a
//! million wrappers needs no stack. No lock is held while a caller's callback runs.

mod create;
pub mod head;
mod release;

pub use create::*;
pub use head::*;
pub use release::{drop_reference, drop_reference_by, release, release_legacy};

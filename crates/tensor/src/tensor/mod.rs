//! Allocating, wrapping, converting, sharing and freeing tensors.
//!
//! Every tensor that the library returns is in a [`block::Block`]: the versioned struct, the legacy
//! struct, a reference count, the owner of the data, chains of callbacks, the extents and
//! strides, and (for CPU tensors made here) the data itself, in one allocation.

pub mod alloc;
pub mod block;
pub mod chain;
pub mod convert;
pub mod deferred;
pub mod ready;
pub mod share;
pub mod view;
pub mod wrap;

use core::ptr::NonNull;

use crate::abi::{DLManagedTensor, DLManagedTensorVersioned};

/// A live versioned tensor.
pub type Versioned = NonNull<DLManagedTensorVersioned>;
/// A live legacy tensor.
pub type Legacy = NonNull<DLManagedTensor>;

//! Tensors as text.

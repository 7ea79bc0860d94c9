//! libdlpack_rs: what DLPack leaves to each project, done once, as a C ABI.
//!
//! ## The contract of every function
//!
//! Objects. Every function takes and returns plain DLPack structs. What this library returns, any
//! other library may free by calling its `deleter`; what others made, this library frees the same
//! way. Tensors made here have a `deleter` and a `manager_ctx` that are never NULL, strides that
//! are always filled, and version 1.3.
//!
//! Pointers. A pointer must be NULL where the text allows it, or point to a live, aligned object
//! of its type; `shape` and `strides` of a tensor, where not NULL, hold `ndim` values. A wild
//! pointer, a freed struct or a buffer shorter than described cannot be detected by any library:
//! the behaviour is then undefined. Callers who know the allocation can ask dlrs_validate_within.
//!
//! Errors. 0 is success; other values are `dlrs_status_code`s. On any error nothing was taken,
//! nothing was written, no deleter has run, and `*out`, where it is a pointer, is NULL (a number
//! is what it was, or 0); only after a device's fault (class 6) the destination of a copy is
//! undefined, and with DLRS_BUF_SMALL a text was cut and its size told. The last parameter
//! receives the details when it is not NULL; set its `struct_size` first. It is written only on
//! failure. With several faults one is reported. Pointers come first, in the order of the
//! parameters: what is NULL and must not be, then what is not aligned; an array whose length is
//! read from elsewhere is asked for when that is known. Then options, numbers and tensors, in an
//! order of each function's own. Of one tensor it is: DLRS_FOREIGN or a version, flags, ndim, shape
//! pointer, dtype, device, extents, strides, sizes, data and offset, bounds, required alignment.
//! What concerns several tensors, policy and resources come last.
//!
//! Ownership. An input is consumed only by a function whose name ends in `_take`, and only when it
//! succeeds: the caller's pointer is then set to NULL.
//!
//! Options. Every options struct starts with `struct_size`, to be set to `sizeof` the struct; the
//! other members are 0 for the default. NULL options are defaults throughout. Later versions add
//! members at the end only, and take the shorter structs of callers that were built before; a
//! longer one is taken where all that the library does not know of it is 0, else DLRS_STRUCT_SIZE.
//!
//! Units. `ndim`, `shape` and `strides` count elements; `nbytes`, `align_bytes` and `byte_offset`
//! count bytes.
//!
//! Threads. All functions are thread-safe: several may run at a time, on the same tensor too, as
//! long as each caller holds it and nobody writes its struct. No lock is held while a callback
//! runs.
//! A callback must return: not throw, longjmp, or end its thread. A signal handler may retain, and
//! release what is not the last reference: references are counted by atomic instructions.
//!
//! Threads that the library makes are joined before the call returns. Functions with copy options
//! are cancellation points before they begin (pthread_cancel), and not while they wait for those
//! threads or for a caller's own pool. There every signal is blocked but those that an instruction
//! raises (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS).
//!
//! Fork, exit, unload. Nothing here uses thread-local storage or needs start-up; the library is
//! never unloaded, so a deleter stays callable for as long as the process lives. On macOS no
//! library can say so of itself: who loads it there does not call dlclose.
// In the header's text brackets are no links.
#![allow(rustdoc::broken_intra_doc_links)]

pub mod abi_layout;
pub mod alloc;
mod arg;
pub mod backend;
pub mod batch;
#[cfg(feature = "cast")]
pub mod cast;
pub mod chain;
#[cfg(feature = "cast")]
pub mod compare;
pub mod convert;
pub mod copy;
pub mod device;
pub mod error;
#[cfg(feature = "python")]
pub mod exchange;
pub mod names;
pub mod notation;
pub mod overlap;
pub mod pool;
#[cfg(feature = "print")]
pub mod print;
#[cfg(feature = "module")]
pub mod py_module;
#[cfg(feature = "python")]
pub mod python;
#[cfg(feature = "python")]
pub mod python_error;
#[cfg(feature = "python")]
pub mod python_private;
#[cfg(feature = "python")]
pub mod python_stream;
#[cfg(feature = "python")]
pub mod python_wrap;
pub mod query;
pub mod ready;
pub mod shape;
pub mod share;
pub mod stream;
pub mod validate;
pub mod version;
pub mod view;
pub mod view_axes;
pub mod view_index;
pub mod view_shape;
pub mod wrap;

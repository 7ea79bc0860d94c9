//! libdlpack_rs: what DLPack leaves to each project, done once, as a C ABI.
//!
//! ## The contract of every function
//!
//! Objects. Every function takes and returns plain DLPack structs. Any library may free a tensor of
//! this one by calling its `deleter`; this library frees foreign tensors the same way. Tensors made
//! here never have a NULL `deleter` or `manager_ctx`; their strides are always filled, and their
//! version is 1.3.
//!
//! Pointers. A pointer must be NULL where the text allows it, or point to a live, aligned object
//! of its type; `shape` and `strides` of a tensor, where not NULL, hold `ndim` values. A wild
//! pointer, a freed struct or a buffer shorter than described cannot be detected by any library:
//! the behaviour is then undefined. Callers who know the allocation can call dlrs_validate_within.
//!
//! Errors. 0 is success; other values are `dlrs_status_code`s. On any error no ownership is taken,
//! nothing is written, no deleter has run, and `*out`, if it is a pointer, is NULL (a number is
//! unchanged or 0, and so is the handle of dlrs_stream_from_py, whose NULL is a stream). Two
//! exceptions: after a device error (class 6) the destination of a copy is undefined, and with
//! DLRS_BUF_SMALL a text is truncated and its full size returned. The last parameter receives the
//! details when it is not NULL; set its `struct_size` first. It is written only on failure. Of
//! several errors one is reported. Pointers are checked first, in the order of the parameters: for
//! NULL, then for alignment; an array whose length is an input too, once that is known. Then
//! options, numbers and tensors, in an order that depends on the function. The order within one
//! tensor: DLRS_FOREIGN or a version, flags, ndim, shape pointer, dtype, device, extents, strides,
//! sizes, data and offset, bounds, required alignment. Conditions on several tensors, policy and
//! resources come last.
//!
//! Ownership. An input is consumed only by a function whose name ends in `_take`, and only when it
//! succeeds: the caller's pointer is then set to NULL.
//!
//! Options. Every options struct starts with `struct_size`, to be set to `sizeof` the struct; the
//! other members are 0 for the default. NULL options are defaults throughout. Later versions only
//! append members, and accept the shorter structs of older callers. A longer struct is accepted if
//! all members unknown to the library are 0, else DLRS_STRUCT_SIZE.
//!
//! Units. `ndim`, `shape` and `strides` count elements; `nbytes`, `align_bytes` and `byte_offset`
//! count bytes.
//!
//! Headings. A Safety adds to what the other headings, Pointers and Threads ask of the caller.
//! Source is the text from which a rule comes; without one the rule is this library's own.
//!
//! Threads. All functions are thread-safe: several may run at a time, on the same tensor too, as
//! long as each caller has a reference and none writes the struct. No lock is held while a callback
//! runs.
//! A callback must return: not throw, longjmp, or end its thread. A signal handler may retain, and
//! release a reference that is not the last: reference counts are atomic.
//!
//! Threads that the library creates are joined before the call returns, those of dlrs_workers_new
//! by dlrs_workers_free. Functions with copy options are cancellation points before they begin
//! (pthread_cancel), and not while they wait for those threads or for a caller's own pool. Those
//! threads block every signal except those that an instruction raises (SIGSEGV, SIGBUS, SIGFPE,
//! SIGILL, SIGTRAP, SIGSYS).
//!
//! Fork, exit, unload. The library uses no thread-local storage and needs no initialisation. Once
//! it has allocated a tensor it is not unloaded, so a deleter stays callable until the process
//! ends. On macOS a library cannot prevent unloading: do not call dlclose there.
// In the header's text brackets are no links.
#![allow(rustdoc::broken_intra_doc_links)]
// What has no section `# Safety` is safe to call as the preface says.
#![allow(clippy::missing_safety_doc)]

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
pub mod copy_options;
pub mod device;
pub mod error;
#[cfg(feature = "python")]
pub mod exchange;
pub mod names;
pub mod notation;
pub mod overlap;
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
pub mod workers;
pub mod wrap;

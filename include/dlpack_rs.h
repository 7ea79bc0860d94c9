/*!
 * \file dlpack_rs.h
 * \brief libdlpack_rs: what DLPack leaves to each framework, as one C library.
 *
 * Generated from src/capi by `BLESS=1 cargo test -p headers`; do not edit.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DLPACK_RS_H_
#define DLPACK_RS_H_

#include "dlpack.h"

#if !defined(DLPACK_MAJOR_VERSION) || DLPACK_MAJOR_VERSION != 1
#error "dlpack_rs.h needs dlpack.h of DLPack 1.x; another one was included before it"
#endif

/** Version of this header, as Cargo.toml has it. */
#define DLRS_VERSION_MAJOR 0
#define DLRS_VERSION_MINOR 1
#define DLRS_VERSION_PATCH 0

/** Version of this header as one number; dlrs_version() returns that of the library. */
#define DLRS_HEADER_VERSION \
  (DLRS_VERSION_MAJOR * 1000000u + DLRS_VERSION_MINOR * 1000u + DLRS_VERSION_PATCH)

/**
 * Marks the functions of the library. On Windows, define DLRS_STATIC to link the static library;
 * DLRS_EXPORTS is for building a library that contains this one.
 */
#ifndef DLRS_API
#if defined(DLRS_STATIC)
#define DLRS_API
#elif defined(_WIN32) && defined(DLRS_EXPORTS)
#define DLRS_API __declspec(dllexport)
#elif defined(_WIN32)
#define DLRS_API __declspec(dllimport)
#elif defined(__GNUC__)
#define DLRS_API __attribute__((visibility("default")))
#else
#define DLRS_API
#endif
#endif

/*
 * A library that was built with fewer features lacks functions. Each of these macros, if defined,
 * leaves out their declarations:
 *
 *   DLRS_NO_CAST     dlrs_cast, dlrs_fill, dlrs_equal, dlrs_max_diff
 *   DLRS_NO_PRINT    dlrs_tensor_to_string, dlrs_managed_to_string
 *   DLRS_NO_PYTHON   dlrs_py_*, dlrs_stream_from_py, dlrs_stream_to_py, dlrs_exchange_api_*,
 *                    dlrs_managed_tensor_allocator
 *
 * CMake's targets and pkg-config define the macros for what their library lacks.
 */

/**
 * Initialiser of a struct that starts with struct_size: sets that, and all other members to 0.
 * Works for constants too: `static const dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);`
 */
#ifdef __cplusplus
#define DLRS_INIT(type)               \
  ([] {                               \
    type init_ = type();              \
    init_.struct_size = sizeof(type); \
    return init_;                     \
  }())
#else
#define DLRS_INIT(type) \
  { .struct_size = sizeof(type) }
#endif

/* DLPack 1.0 and 1.1, if such a dlpack.h was included before, lack these names. */
#if DLPACK_MINOR_VERSION < 2
typedef struct DLManagedTensorVersioned DLManagedTensorVersioned;
typedef struct DLPackExchangeAPI DLPackExchangeAPI;
typedef struct DLPackExchangeAPIHeader DLPackExchangeAPIHeader;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------
 * libdlpack_rs: what DLPack leaves to each project, done once, as a C ABI.
 *
 * The contract of every function:
 *
 * Objects. Every function takes and returns plain DLPack structs. Any library may free a tensor of
 * this one by calling its `deleter`; this library frees foreign tensors the same way. Tensors made
 * here never have a NULL `deleter` or `manager_ctx`; their strides are always filled, and their
 * version is 1.3.
 *
 * Pointers. A pointer must be NULL where the text allows it, or point to a live, aligned object
 * of its type; `shape` and `strides` of a tensor, where not NULL, hold `ndim` values. A wild
 * pointer, a freed struct or a buffer shorter than described cannot be detected by any library:
 * the behaviour is then undefined. Callers who know the allocation can call dlrs_validate_within.
 *
 * Errors. 0 is success; other values are `dlrs_status_code`s. On any error no ownership is taken,
 * nothing is written, no deleter has run, and `*out`, if it is a pointer, is NULL (a number is
 * unchanged or 0, and so is the handle of dlrs_stream_from_py, whose NULL is a stream). Two
 * exceptions: after a device error (class 6) the destination of a copy is undefined, and with
 * DLRS_BUF_SMALL a text is truncated and its full size returned. The last parameter receives the
 * details when it is not NULL; set its `struct_size` first. It is written only on failure. Of
 * several errors one is reported. Pointers are checked first, in the order of the parameters: for
 * NULL, then for alignment; an array whose length is an input too, once that is known. Then
 * options, numbers and tensors, in an order that depends on the function. The order within one
 * tensor: DLRS_FOREIGN or a version, flags, ndim, shape pointer, dtype, device, extents, strides,
 * sizes, data and offset, bounds, required alignment. Conditions on several tensors, policy and
 * resources come last.
 *
 * Ownership. An input is consumed only by a function whose name ends in `_take`, and only when it
 * succeeds: the caller's pointer is then set to NULL.
 *
 * Options. Every options struct starts with `struct_size`, to be set to `sizeof` the struct; the
 * other members are 0 for the default. NULL options are defaults throughout. Later versions only
 * append members, and accept the shorter structs of older callers. A longer struct is accepted if
 * all members unknown to the library are 0, else DLRS_STRUCT_SIZE.
 *
 * Units. `ndim`, `shape` and `strides` count elements; `nbytes`, `align_bytes` and `byte_offset`
 * count bytes.
 *
 * Headings. A Safety adds to what the other headings, Pointers and Threads ask of the caller.
 * Source is the text from which a rule comes; without one the rule is this library's own.
 *
 * Threads. All functions are thread-safe: several may run at a time, on the same tensor too, as
 * long as each caller has a reference and none writes the struct. No lock is held while a callback
 * runs.
 * A callback must return: not throw, longjmp, or end its thread. A signal handler may retain, and
 * release a reference that is not the last: reference counts are atomic.
 *
 * Threads that the library creates are joined before the call returns, those of dlrs_workers_new
 * by dlrs_workers_free. Functions with copy options are cancellation points before they begin
 * (pthread_cancel), and not while they wait for those threads or for a caller's own pool. Those
 * threads block every signal except those that an instruction raises (SIGSEGV, SIGBUS, SIGFPE,
 * SIGILL, SIGTRAP, SIGSYS).
 *
 * Fork, exit, unload. The library uses no thread-local storage and needs no initialisation. Once
 * it has allocated a tensor it is not unloaded, so a deleter stays callable until the process
 * ends. On macOS a library cannot prevent unloading: do not call dlclose there.
 */

typedef struct dlrs_error dlrs_error;
typedef struct dlrs_abi_table dlrs_abi_table;
typedef struct dlrs_allocator dlrs_allocator;
typedef struct dlrs_alloc_options dlrs_alloc_options;
typedef struct dlrs_import_options dlrs_import_options;
typedef struct dlrs_view_step dlrs_view_step;
typedef struct dlrs_fault dlrs_fault;
typedef struct dlrs_byte_plan dlrs_byte_plan;
typedef struct dlrs_backend dlrs_backend;
typedef struct dlrs_pointer_info dlrs_pointer_info;
typedef struct dlrs_copy_options dlrs_copy_options;
typedef struct dlrs_workers_options dlrs_workers_options;
typedef struct dlrs_print_options dlrs_print_options;
typedef struct dlrs_py_request dlrs_py_request;
typedef struct dlrs_py_import_options dlrs_py_import_options;
typedef struct dlrs_py_kind dlrs_py_kind;
typedef struct dlrs_py_error_options dlrs_py_error_options;

/* ---------------------------------------------------------------------------------------------
 * Errors: the struct for their details, and names of statuses.
 */

/**
 * Result of a function. 0 is success; `status / 100` is the class: 1 argument, 2 malformed tensor,
 * 3 policy, 4 resource, 5 unavailable or unsupported, 6 device, 9 internal. The numbers are stable
 * and never reused.
 */
enum dlrs_status_code {
  /** Success. */
  DLRS_OK = 0,
  /** A required pointer is NULL. */
  DLRS_NULL_ARG = 101,
  /** A pointer to a struct or array is not aligned for it. */
  DLRS_MISALIGNED_STRUCT = 102,
  /** `struct_size` is not supported. */
  DLRS_STRUCT_SIZE = 103,
  /** An argument's value is out of range. */
  DLRS_BAD_ARG = 104,
  /** The caller's buffer is too small. */
  DLRS_BUF_SMALL = 105,
  /** A text is not in the documented grammar. */
  DLRS_PARSE = 106,
  /** The DLPack major version is not 1. */
  DLRS_VERSION = 201,
  /** A flag bit is unknown or does not fit the tensor. */
  DLRS_FLAGS = 202,
  /** `ndim` is negative or above 64. */
  DLRS_NDIM = 203,
  /** `shape` is NULL although `ndim` is not 0. */
  DLRS_SHAPE_NULL = 204,
  /** An extent is negative. */
  DLRS_SHAPE_NEG = 205,
  /** `strides` is NULL although DLPack 1.2 and newer require it. */
  DLRS_STRIDES_NULL = 206,
  /** The number of elements or bytes does not fit. */
  DLRS_SIZE_OVERFLOW = 207,
  /** The strides reach outside the address space. */
  DLRS_EXTENT_OVERFLOW = 208,
  /** The tensor reaches outside the memory given. */
  DLRS_OUT_OF_BOUNDS = 209,
  /** `data` is NULL although there are elements. */
  DLRS_DATA_NULL = 210,
  /** `byte_offset` leads outside the address space. */
  DLRS_OFFSET = 211,
  /** The first element is not aligned as required. */
  DLRS_MISALIGNED = 212,
  /** The dtype code is not known. */
  DLRS_DTYPE_CODE = 213,
  /** The dtype's bits are not legal for its code. */
  DLRS_DTYPE_BITS = 214,
  /** The dtype's lanes are 0 or not legal. */
  DLRS_DTYPE_LANES = 215,
  /** An element of a packed sub-byte tensor would start inside a byte. */
  DLRS_SUBBYTE = 216,
  /** The device type is not known, or the function does not support it. */
  DLRS_DEVICE_TYPE = 217,
  /** The device ordinal is negative, or does not exist. */
  DLRS_DEVICE_ID = 218,
  /** A stride in bytes is no multiple of the item size, which DLPack cannot express. */
  DLRS_STRIDES_UNEVEN = 219,
  /** The data is read-only. */
  DLRS_READ_ONLY = 301,
  /** Two shapes differ. */
  DLRS_SHAPE_MISMATCH = 302,
  /** Two dtypes differ. */
  DLRS_DTYPE_MISMATCH = 303,
  /** Elements of the destination share memory. */
  DLRS_OVERLAP_DST = 304,
  /** Source and destination share memory. */
  DLRS_OVERLAP_SRC_DST = 305,
  /** The tensor has other references, or the reference count is exhausted. */
  DLRS_REFCOUNT = 306,
  /** The function was called from inside a callback that it is running. */
  DLRS_REENTRANT = 307,
  /** No view has the requested shape: a copy is needed. */
  DLRS_NOT_VIEWABLE = 308,
  /** The requested layout, device or writability needs a copy, which was forbidden. */
  DLRS_COPY_NEEDED = 309,
  /** The tensor was not made by this library. */
  DLRS_FOREIGN = 310,
  /** Memory is exhausted. */
  DLRS_NOMEM = 401,
  /** Device memory is exhausted. */
  DLRS_DEV_OOM = 402,
  /** A callback of the caller reported failure. */
  DLRS_CALLBACK = 403,
  /** The combination is not supported. */
  DLRS_UNSUPPORTED = 501,
  /** The driver library is not installed. */
  DLRS_DRV_MISSING = 502,
  /** The driver is older than the oldest supported. */
  DLRS_DRV_OLD = 503,
  /** Only the driver's stub library was found. */
  DLRS_DRV_STUB = 504,
  /** The driver lacks a function. */
  DLRS_DRV_SYMBOL = 505,
  /** The driver works but there is no device. */
  DLRS_NO_DEVICE = 506,
  /** The driver failed to start. */
  DLRS_DRV_INIT = 601,
  /** Direct access between two devices failed. */
  DLRS_PEER = 602,
  /** The stream is not usable here. */
  DLRS_STREAM = 603,
  /** The stream is being captured and the operation cannot be. */
  DLRS_CAPTURING = 604,
  /** A kernel could not be loaded or launched. */
  DLRS_LAUNCH = 605,
  /** The device reported a fault of asynchronous work. */
  DLRS_ASYNC_FAULT = 606,
  /** The device context is lost. */
  DLRS_CTX_LOST = 607,
  /** The process was forked after the driver started. */
  DLRS_FORKED = 608,
  /** The driver is shutting down with the process. */
  DLRS_SHUTDOWN = 609,
  /** A defect of this library or an impossible result from a driver. */
  DLRS_INTERNAL = 901,
};

/** Which field of the argument an error is about. */
enum dlrs_field {
  /** The argument itself. */
  DLRS_FIELD_NONE = 0,
  /** `version` of a managed tensor. */
  DLRS_FIELD_VERSION = 1,
  /** `flags` of a managed tensor. */
  DLRS_FIELD_FLAGS = 2,
  /** `ndim`. */
  DLRS_FIELD_NDIM = 3,
  /** `shape`, or one extent. */
  DLRS_FIELD_SHAPE = 4,
  /** `dtype.code`. */
  DLRS_FIELD_DTYPE_CODE = 5,
  /** `dtype.bits`. */
  DLRS_FIELD_DTYPE_BITS = 6,
  /** `dtype.lanes`. */
  DLRS_FIELD_DTYPE_LANES = 7,
  /** `device.device_type`. */
  DLRS_FIELD_DEVICE_TYPE = 8,
  /** `device.device_id`. */
  DLRS_FIELD_DEVICE_ID = 9,
  /** `strides`, or one stride. */
  DLRS_FIELD_STRIDES = 10,
  /** `data`. */
  DLRS_FIELD_DATA = 11,
  /** `byte_offset`. */
  DLRS_FIELD_BYTE_OFFSET = 12,
  /** `struct_size` of an options struct or table. */
  DLRS_FIELD_STRUCT_SIZE = 13,
  /** `deleter`, or another function pointer. */
  DLRS_FIELD_DELETER = 14,
  /** Another member of an options struct or table; the message names it. */
  DLRS_FIELD_OPTION = 15,
};

/** Result of a function: 0, or a `dlrs_status_code`. */
typedef int32_t dlrs_status;

/** Size of a message with its NUL. */
#define DLRS_ERROR_MESSAGE_SIZE 256

/**
 * The details of a failure, in the caller's memory.
 *
 * Set `struct_size` to `sizeof(dlrs_error)` before the first call; no call changes it. A call that
 * fails writes the other members that `struct_size` covers; one that succeeds writes nothing. The
 * message is UTF-8, always ends with NUL and never contains an address.
 */
struct dlrs_error {
  /** `sizeof(dlrs_error)`. */
  uint32_t struct_size;
  /** The status that the function returned. */
  dlrs_status status;
  /** Which parameter, counted from 1; 0 when none is at fault. */
  int32_t argument;
  /** Which member of it, a `dlrs_field`. */
  int32_t field;
  /** Which dimension, or -1. */
  int32_t dimension;
  /** The driver's own code, or 0. */
  int32_t driver_code;
  /** The value found, if any. */
  int64_t value;
  /** The limit that it exceeds, if any. */
  int64_t limit;
  /** Function, argument, member, what is wrong, value, limit, and what to do. */
  char message[DLRS_ERROR_MESSAGE_SIZE];
  /** First byte of the part of message that describes the error, with value and limit. */
  uint16_t text_start;
  /** One past its last byte; equal to text_start if there was no room. */
  uint16_t text_end;
  /** First byte of the part of message that gives the remedy. */
  uint16_t hint_start;
  /** One past its last byte; equal to hint_start if there is none, or no room. */
  uint16_t hint_end;
};

/**
 * DLPack's error callback: receives a Python exception's name and a message, both valid during the
 * call.
 */
typedef void (*dlrs_set_error_fn)(void *error_ctx, const char *kind, const char *message);

/**
 * Name a status, for logs.
 *
 * Ownership: the text is static; never free it.
 * Errors:    none: NULL for a number that is no status.
 * Threads:   any.
 * Source:    the list of statuses in this header.
 */
DLRS_API const char *dlrs_status_name(dlrs_status status);

/**
 * Report a failure through the `SetError` of DLPack's managed tensor allocator.
 *
 * Ownership: nothing is kept; kind and message are valid during the callback.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: failure. DLRS_STRUCT_SIZE: it is too short to
 *            contain a message. A NULL set_error is accepted and does nothing.
 *            The kind is "BufferError" for classes 3 and 5 and for what DLPack 1.3 or this library
 *            does not support: DLRS_VERSION, DLRS_FLAGS, DLRS_DTYPE_CODE, DLRS_DTYPE_BITS,
 *            DLRS_DTYPE_LANES, DLRS_DEVICE_TYPE, DLRS_DEVICE_ID and DLRS_STRIDES_UNEVEN;
 *            "ValueError" for DLRS_SHAPE_MISMATCH, DLRS_NOT_VIEWABLE and the rest of classes 1 and
 *            2; "TypeError" for DLRS_DTYPE_MISMATCH; "MemoryError" for class 4 but DLRS_CALLBACK;
 *            "RuntimeError" for that and all else: classes 6 and 9, and numbers of no class.
 * Threads:   as the callback.
 * Source:    DLPackManagedTensorAllocator in dlpack.h.
 *
 * Safety:
 * `failure` was filled by a function of this library, with its full `struct_size`.
 */
DLRS_API
dlrs_status dlrs_error_forward(const dlrs_error *failure,
                               void *error_ctx,
                               dlrs_set_error_fn set_error,
                               dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Versions: of this library and of DLPack.
 */

/**
 * Return the version of the running library, as major * 1000000 + minor * 1000 + patch.
 *
 * Ownership: none.
 * Errors:    none.
 * Threads:   any.
 * Source:    compare with DLRS_HEADER_VERSION; the SONAME carries the version of the interface.
 */
DLRS_API uint32_t dlrs_version(void);

/**
 * Return the version of the running library, as text: "major.minor.patch".
 *
 * Ownership: the text is static; never free it.
 * Errors:    none.
 * Threads:   any.
 * Source:    the library's release.
 */
DLRS_API const char *dlrs_version_string(void);

/* ---------------------------------------------------------------------------------------------
 * The layout of DLPack's structs as this library was compiled, for callers that do not compile
 * this header: ctypes, cffi, another compiler, CI.
 */

/**
 * Sizes and offsets, in bytes, of every struct of dlpack.h: version_size is that of DLPackVersion,
 * tensor_align the alignment of DLTensor, tensor_data the offset of data in it. legacy is
 * DLManagedTensor, versioned DLManagedTensorVersioned, exchange DLPackExchangeAPI.
 */
struct dlrs_abi_table {
  /** `sizeof(dlrs_abi_table)`. */
  uint32_t struct_size;
  /** `sizeof(void *)`. */
  uint32_t pointer_size;
  /** 1 on a machine that stores the most significant byte first, else 0. */
  uint32_t big_endian;
  /** `DLPACK_MAJOR_VERSION`. */
  uint32_t dlpack_major;
  /** `DLPACK_MINOR_VERSION`. */
  uint32_t dlpack_minor;
  uint32_t version_size;
  uint32_t device_size;
  uint32_t dtype_size;
  uint32_t tensor_size;
  uint32_t tensor_align;
  uint32_t tensor_data;
  uint32_t tensor_device;
  uint32_t tensor_ndim;
  uint32_t tensor_dtype;
  uint32_t tensor_shape;
  uint32_t tensor_strides;
  uint32_t tensor_byte_offset;
  uint32_t legacy_size;
  uint32_t legacy_dl_tensor;
  uint32_t legacy_manager_ctx;
  uint32_t legacy_deleter;
  uint32_t versioned_size;
  uint32_t versioned_version;
  uint32_t versioned_manager_ctx;
  uint32_t versioned_deleter;
  uint32_t versioned_flags;
  uint32_t versioned_dl_tensor;
  uint32_t exchange_header_size;
  uint32_t exchange_api_size;
};

/**
 * Return the layout of DLPack's structs as this library was compiled.
 *
 * Bytes:     sizes and offsets.
 * Ownership: the table is static; never write or free it.
 * Errors:    none.
 * Threads:   any.
 * Source:    dlpack.h 1.3.
 */
DLRS_API const dlrs_abi_table *dlrs_abi_layout(void);

/**
 * Check that a caller has the same struct layout and a compatible version.
 *
 * Ownership: nothing is kept.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: expected.
 *            DLRS_VERSION: header_version, the caller's DLRS_HEADER_VERSION, has another major
 *            version than the library, or is newer than it.
 *            DLRS_STRUCT_SIZE: expected->struct_size is smaller than the table.
 *            DLRS_BAD_ARG: a number differs; the message names it.
 * Threads:   any.
 * Source:    dlpack.h 1.3.
 *
 * Safety:
 * `expected` is as large as its `struct_size` says.
 */
DLRS_API
dlrs_status dlrs_abi_check(uint32_t header_version,
                           const dlrs_abi_table *expected,
                           dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Allocation.
 */

/** Frees borrowed memory: called with the context given, exactly once, on any thread. */
typedef void (*dlrs_free_fn)(void *context);

/**
 * A caller's allocator for the data of tensors. Every member must be set; both functions may be
 * called on any thread.
 */
struct dlrs_allocator {
  /** `sizeof(dlrs_allocator)`. */
  uint32_t struct_size;
  /** Passed to both functions. */
  void *context;
  /**
   * Returns `nbytes` (above 0) bytes on `device`, aligned to `align_bytes` (a power of two), or
   * NULL.
   */
  void *(*alloc)(void *context, uint64_t nbytes, uint64_t align_bytes, DLDevice device);
  /** Frees what `alloc` returned for the same three values. */
  void (*free)(void *context, void *data, uint64_t nbytes, uint64_t align_bytes, DLDevice device);
};

/** How to allocate. All members but `struct_size` may be 0. */
struct dlrs_alloc_options {
  /** `sizeof(dlrs_alloc_options)`. */
  uint32_t struct_size;
  /** Alignment of the data in bytes: a power of two up to 2^30; 0 for 256. */
  uint32_t align_bytes;
  /** Flags of the result: 0 or DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED. */
  uint64_t flags;
  /**
   * Allocator of the data; NULL for that of dlrs_allocator_set, else the library's own. Read
   * during the call; `free` and `context` are kept.
   */
  const dlrs_allocator *allocator;
  /**
   * The order of a compact tensor: 'C' (row-major) or 0, 'F' (column-major), or 'K' for that of
   * a prototype's strides.
   */
  int32_t order;
  /** Must be 0. */
  uint32_t reserved;
  /**
   * One stride per extent, in elements, in place of order; NULL for a compact tensor. None is
   * negative, and no two elements share memory; gaps, such as those of a pitch, are allocated
   * too.
   */
  const int64_t *strides;
};

/**
 * Allocate an uninitialised tensor, compact unless options have strides.
 *
 * Shape:     ndim extents (0 to 64), copied; may be NULL when ndim is 0.
 * Bytes:     packed sub-byte types round up to whole bytes; data is aligned to align_bytes.
 * Device:    any that an allocator or a backend supports; the CPU always.
 * Ownership: the caller owns *out; header, shape, strides and CPU data are one block. Data from an
 *            allocator is a separate block, freed by the allocator.
 * Flags:     as in options; byte_offset is 0; a tensor of size zero has data NULL.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: shape or out; an allocator's function.
 *            DLRS_NDIM, DLRS_SHAPE_NULL, DLRS_SHAPE_NEG, DLRS_SIZE_OVERFLOW: the shape.
 *            DLRS_DTYPE_CODE, DLRS_DTYPE_BITS, DLRS_DTYPE_LANES: the dtype.
 *            DLRS_DEVICE_TYPE, DLRS_DEVICE_ID: the device.
 *            DLRS_STRUCT_SIZE, DLRS_BAD_ARG, DLRS_FLAGS: the options. Of their strides:
 *            DLRS_BAD_ARG: a negative one; DLRS_OVERLAP_DST: elements would share memory;
 *            DLRS_EXTENT_OVERFLOW, DLRS_SUBBYTE.
 *            DLRS_NOMEM, DLRS_DEV_OOM: no memory; DLRS_MISALIGNED: the allocator's was less
 *            aligned than requested. DLRS_UNSUPPORTED: the backend does not allocate. Classes 5
 *            and 6: its driver.
 * Threads:   any.
 * Source:    "Producer" rules of dlpack.h: 256-byte alignment, strides since 1.2.
 */
DLRS_API
dlrs_status dlrs_tensor_new(const int64_t *shape,
                            int32_t ndim,
                            DLDataType dtype,
                            DLDevice device,
                            const dlrs_alloc_options *options,
                            DLManagedTensorVersioned **out,
                            dlrs_error *error);

/**
 * Allocate an uninitialised tensor of another one's shape, dtype and device.
 *
 * Shape:     the prototype's; its data and byte_offset are never read, its strides only for order
 *            'K' of the options.
 * Device:    the prototype's.
 * Ownership: nothing of the prototype is kept. All else as dlrs_tensor_new, whose shape, dtype and
 *            device are the prototype here.
 * Source:    DLPackManagedTensorAllocator in dlpack.h.
 */
DLRS_API
dlrs_status dlrs_tensor_new_like(const DLTensor *prototype,
                                 const dlrs_alloc_options *options,
                                 DLManagedTensorVersioned **out,
                                 dlrs_error *error);

/**
 * Set the allocator of new tensors of a device type, for the whole process.
 *
 * Bytes:     the allocator receives the size and the alignment of the data.
 * Device:    any known type, the CPU included.
 * Ownership: *allocator is copied during the call and the copy never freed: reuse one struct
 *            instead of setting new ones. Its functions and context must stay valid until another
 *            is set, calls that began before have returned, and the last tensor made with it is
 *            freed. NULL restores the default. *old, when old is not NULL, receives the address of
 *            the previous struct, or NULL.
 * Errors:    DLRS_DEVICE_TYPE: device_type is not known.
 *            DLRS_MISALIGNED_STRUCT: allocator or old.
 *            DLRS_STRUCT_SIZE: allocator->struct_size is too small.
 *            DLRS_NULL_ARG: a function of the allocator is NULL.
 *            DLRS_NOMEM: no memory for the copy. On any error *old is NULL.
 * Threads:   any; concurrent allocations use either allocator, and are freed by the same one.
 */
DLRS_API
dlrs_status dlrs_allocator_set(DLDeviceType device_type,
                               const dlrs_allocator *allocator,
                               const dlrs_allocator **old,
                               dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Wrapping memory that the caller owns.
 */

/**
 * Wrap memory of the caller into a managed tensor.
 *
 * Shape:     shape and strides are copied; NULL strides become compact row-major.
 * Bytes:     data and byte_offset are not modified; a tensor of size zero has data NULL.
 * Device:    any, known or not.
 * Ownership: the caller owns *out. When its last reference is released, free_fn(context) is called
 *            once, on that thread; with a NULL free_fn the memory is only borrowed. On error
 *            free_fn is not called.
 * Flags:     exactly flags, but IS_SUBBYTE_TYPE_PADDED only for a dtype below whole bytes.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or out.
 *            DLRS_FLAGS: flags has unknown bits.
 *            what dlrs_validate reports at DLRS_LEVEL_LAYOUT.
 *            DLRS_NOMEM: no memory for the header.
 * Threads:   any.
 * Source:    "Producer" rules of dlpack.h.
 *
 * Safety:
 * The memory stays valid until `free_fn` is called.
 */
DLRS_API
dlrs_status dlrs_tensor_wrap(const DLTensor *tensor,
                             uint64_t flags,
                             dlrs_free_fn free_fn,
                             void *context,
                             DLManagedTensorVersioned **out,
                             dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Legacy and versioned tensors; import of foreign tensors.
 */

/** Handling of a flag that the legacy struct lacks. */
enum dlrs_legacy_policy {
  /** Reject a read-only tensor. */
  DLRS_LEGACY_REFUSE = 0,
  /** Drop the flag: the consumer must know that the data is read-only. */
  DLRS_LEGACY_DROP = 1,
  /** Copy a read-only tensor. */
  DLRS_LEGACY_COPY = 2,
};

/** How much is checked. Higher levels include the lower ones. */
enum dlrs_level {
  /** The struct is readable: version, ndim, pointers, extents not negative, dtype sized. */
  DLRS_LEVEL_STRUCT = 1,
  /** Also every element has an address: sizes, strides, data and byte_offset. */
  DLRS_LEVEL_LAYOUT = 2,
  /** Also everything is known and valid: dtype, device, flags, strides given, whole bytes. */
  DLRS_LEVEL_STRICT = 3,
  /** Also the device's driver, if it can tell, reports the kind of memory that the tensor has. */
  DLRS_LEVEL_DEVICE = 4,
};

/**
 * Convert a legacy tensor into a versioned one.
 *
 * Shape:     copied; NULL strides become compact row-major.
 * Bytes:     data and byte_offset stay as they are.
 * Device:    any; the data is not accessed.
 * Ownership: on success *tensor is taken and set to NULL; releasing *out calls its deleter once.
 * Flags:     exactly flags: a legacy tensor does not record writability. NumPy treats legacy
 *            tensors as read-only: pass DLPACK_FLAG_BITMASK_READ_ONLY to do the same.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor, *tensor, out.
 *            DLRS_FLAGS: unknown bits. DLRS_NOMEM: no memory.
 *            what dlrs_validate reports at DLRS_LEVEL_STRUCT.
 * Threads:   any.
 * Source:    dlpack.h 1.0: DLManagedTensor is legacy.
 *
 * Safety:
 * A versioned struct passed as a legacy one cannot be detected.
 */
DLRS_API
dlrs_status dlrs_from_legacy_take(DLManagedTensor **tensor,
                                  uint64_t flags,
                                  DLManagedTensorVersioned **out,
                                  dlrs_error *error);

/**
 * Convert a versioned tensor into a legacy one.
 *
 * Shape:     unchanged; strides are filled.
 * Bytes:     data and byte_offset stay as they are, unless the policy copies.
 * Device:    any; the data is accessed only by a copy, which stays on the device.
 * Ownership: on success *tensor is taken and set to NULL; releasing *out calls its deleter once.
 *            A tensor of this library changes without any allocation.
 * Flags:     the legacy struct has none. READ_ONLY: by policy, a dlrs_legacy_policy. IS_COPIED is
 *            lost, which is harmless. IS_SUBBYTE_TYPE_PADDED on a sub-byte type and unknown flags
 *            are always rejected.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor, *tensor, out.
 *            DLRS_BAD_ARG: policy. DLRS_VERSION: major version is not 1.
 *            DLRS_READ_ONLY, DLRS_FLAGS: see Flags. DLRS_NOMEM: no memory.
 *            what dlrs_validate reports at DLRS_LEVEL_STRUCT; with a copy, what dlrs_clone does.
 * Threads:   any.
 * Source:    python_spec: read-only data must not be exported in the legacy struct.
 */
DLRS_API
dlrs_status dlrs_to_legacy_take(DLManagedTensorVersioned **tensor,
                                int32_t policy,
                                DLManagedTensor **out,
                                dlrs_error *error);

/** Requirements on an imported tensor. All members but `struct_size` may be 0. */
struct dlrs_import_options {
  /** `sizeof(dlrs_import_options)`. */
  uint32_t struct_size;
  /** The level of validation, a `dlrs_level`; 0 for DLRS_LEVEL_STRICT. */
  int32_t level;
  /** Whether to copy: -1 never, 0 if the tensor does not meet the requirements, 1 always. */
  int32_t copy;
  /** Dense in this order: 'C', 'F', 'A' (C or F), 'K' (any dense); 0 for any layout. */
  int32_t order;
  /** Alignment of the first element in bytes, a power of two; 0 for any. */
  uint32_t align_bytes;
  /** Not 0: the data must be writable. */
  int32_t writable;
  /** How a copy is made; NULL for the defaults. */
  const dlrs_copy_options *copy_options;
  /**
   * The accepted device types: bit n is type n; 0 is any. If dlrs_py_import copies to a device,
   * the type of that device counts.
   */
  uint64_t device_types;
  /**
   * The accepted numbers of dimensions: bit n is n of them; 0 is any. Exactly 2 is
   * `1 << 2`, at most 9 is `(1 << 10) - 1`.
   */
  uint64_t ranks;
  /** The accepted dtypes; NULL is any. */
  const DLDataType *dtypes;
  /** The number of dtypes. */
  uint64_t dtypes_count;
};

/**
 * Import a tensor: check it, and return a tensor of this library that meets options.
 *
 * Shape:     unchanged; NULL strides are filled.
 * Bytes:     data and byte_offset stay as they are, unless a copy is made: dense, aligned to
 *            options->align_bytes and at least 256 bytes, byte_offset 0.
 * Device:    any; a copy is on the CPU if the CPU can access the data, else on the same device.
 * Ownership: on success *tensor is taken and set to NULL. A tensor of this library that meets
 *            options is returned itself; a foreign one is boxed (put behind a struct of this
 *            library) once, so that it can be shared, chained and viewed; after a copy the
 *            original is released at once.
 * Flags:     kept; a copy has IS_COPIED and no READ_ONLY.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor, *tensor, out.
 *            DLRS_STRUCT_SIZE, DLRS_BAD_ARG: options.
 *            what dlrs_validate_managed reports at options->level, except DLRS_STRIDES_NULL;
 *            an ordinal of pinned or managed memory is kept as it is.
 *            DLRS_UNSUPPORTED: options do not accept the device type, ndim or dtype; the tensor is
 *            then neither boxed nor copied. DLRS_READ_ONLY, DLRS_COPY_NEEDED, DLRS_MISALIGNED: the
 *            tensor does not meet options and copying was forbidden; DLRS_UNSUPPORTED: the same,
 *            for the alignment of an opaque handle. DLRS_NOMEM: no memory. With a copy, what
 *            dlrs_clone reports; DLRS_MISALIGNED with argument 0: an allocator or backend returned
 *            memory less aligned than requested.
 * Threads:   any.
 * Source:    "Consumer" rules of dlpack.h and python_spec; on another major version call
 *            dlrs_release.
 */
DLRS_API
dlrs_status dlrs_import_take(DLManagedTensorVersioned **tensor,
                             const dlrs_import_options *options,
                             DLManagedTensorVersioned **out,
                             dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * References: release, retain, flags, the caller's own pointer.
 */

/**
 * Release the caller's reference to a versioned tensor, ours or a foreign one.
 *
 * Ownership: the pointer is invalid afterwards. The deleter is called once; a tensor without one
 *            is not modified. NULL does nothing.
 * Errors:    none.
 * Threads:   any, without any interpreter's lock.
 * Source:    dlpack.h: the deleter may be called on any major version.
 *
 * Safety:
 * A second release of the same reference cannot be detected.
 */
DLRS_API
void dlrs_release(DLManagedTensorVersioned *tensor);

/**
 * Release the caller's reference to a legacy tensor, ours or a foreign one.
 *
 * Source:    dlpack.h. All else as dlrs_release.
 *
 * Safety:
 * A second release of the same reference cannot be detected.
 */
DLRS_API void dlrs_release_legacy(DLManagedTensor *tensor);

/**
 * Share a tensor of this library: one more reference to the same struct.
 *
 * Shape:     unchanged: *out is tensor itself.
 * Ownership: *out is a separate reference and must be released too; the data is freed with the
 *            last one.
 * Flags:     IS_COPIED is cleared: a shared tensor is not solely owned.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or out.
 *            DLRS_VERSION: major version is not 1. DLRS_FOREIGN: not made here: a foreign
 *            tensor is boxed once by dlrs_import_take. DLRS_REFCOUNT: too many references, or
 *            none: a callback of the tensor that is being freed.
 * Threads:   any; the count is atomic, in signal handlers too.
 * Source:    this library; the meaning of IS_COPIED is dlpack.h's.
 */
DLRS_API
dlrs_status dlrs_retain(DLManagedTensorVersioned *tensor,
                        DLManagedTensorVersioned **out,
                        dlrs_error *error);

/**
 * Return the reference count of a tensor of this library.
 *
 * Ownership: unchanged. The number may be outdated when it is read, unless it is 1.
 * Errors:    none: 0 for NULL and for a tensor that was not made here.
 * Threads:   any.
 */
DLRS_API int64_t dlrs_ref_count(const DLManagedTensorVersioned *tensor);

/**
 * Return whether a tensor was made by this loaded copy of the library.
 *
 * Ownership: unchanged.
 * Errors:    none: 1 for yes, 0 for no and for NULL.
 * Threads:   any.
 * Source:    this library: its tensors are recognised by their deleter.
 */
DLRS_API int32_t dlrs_is_own(const DLManagedTensorVersioned *tensor);

/**
 * Set and clear flags of a tensor of this library, where they remain correct.
 *
 * Ownership: unchanged.
 * Flags:     READ_ONLY can always be set; it is cleared only with one reference and no base.
 *            IS_COPIED is set under the same condition, and can always be cleared.
 *            IS_SUBBYTE_TYPE_PADDED is a property of the data and cannot be changed.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor. DLRS_VERSION, DLRS_FOREIGN: tensor.
 *            DLRS_FLAGS: unknown bits, the same bit set and cleared, or padding changed.
 *            DLRS_REFCOUNT: IS_COPIED set without sole ownership.
 *            DLRS_READ_ONLY: READ_ONLY cleared without sole ownership.
 * Threads:   any; consumers that already read the flags do not see the change.
 * Source:    dlpack.h: IS_COPIED means solely owned by the consumer.
 */
DLRS_API
dlrs_status dlrs_set_flags(DLManagedTensorVersioned *tensor,
                           uint64_t set,
                           uint64_t clear,
                           dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Deleter chains.
 */

/** Run the callback before the data is freed. */
#define DLRS_BEFORE_FREE 0

/**
 * Run the callback after the data of this tensor is freed. A view has no own data: that of its
 * base may stay.
 */
#define DLRS_AFTER_FREE 1

/**
 * Attach a callback to a tensor of this library, to run once when its last reference is released.
 *
 * Ownership: context is passed to the callback. Callbacks of one order run last in, first out:
 *            those of DLRS_BEFORE_FREE, then the data is freed, then those of DLRS_AFTER_FREE. A
 *            foreign tensor must be boxed by dlrs_import_take first. Memory of detached callbacks
 *            is reused.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT, DLRS_VERSION, DLRS_FOREIGN: tensor.
 *            DLRS_NULL_ARG: callback. DLRS_BAD_ARG: order. DLRS_NOMEM: no memory.
 *            On error the chain is unchanged and the callback will not run.
 * Threads:   any, concurrently too; the callback runs on the thread of the last release. It may
 *            use and release other tensors. With DLRS_BEFORE_FREE it may also call the deleter of
 *            this tensor, which does nothing, attach callbacks to it, which run too, and detach
 *            others. It cannot retain or view the tensor, nor pass it to a `_take` function:
 *            DLRS_REFCOUNT. The tensor's free_fn can no longer attach.
 */
DLRS_API
dlrs_status dlrs_attach(DLManagedTensorVersioned *tensor,
                        dlrs_free_fn callback,
                        void *context,
                        int32_t order,
                        dlrs_error *error);

/**
 * Detach the callback that was attached last with this function and context.
 *
 * Ownership: context is the caller's again; the callback will not run. All callbacks of both
 *            orders are searched, the last attached first.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT, DLRS_VERSION, DLRS_FOREIGN: tensor.
 *            DLRS_NULL_ARG: callback. DLRS_BAD_ARG: no such callback is attached.
 * Threads:   any, while the caller has a reference or is one of the tensor's DLRS_BEFORE_FREE
 *            callbacks.
 */
DLRS_API
dlrs_status dlrs_detach(DLManagedTensorVersioned *tensor,
                        dlrs_free_fn callback,
                        void *context,
                        dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Views: common rules, and several steps in one call.
 *
 * A view is a tensor over the memory of another one, its base. It has its own reference to the
 * base, so that both are released in any order. It never accesses a byte that the base does not
 * use. It starts at its byte_offset, so that opaque handles have views too; data changes only if
 * byte_offset would be negative. Flags are the base's, without IS_COPIED, which the base loses as
 * well. READ_ONLY is added where a step makes elements share memory: expand, unfold, as_strided. A
 * view without elements has data NULL and byte_offset 0. The base must be a tensor of this
 * library; dlrs_import_take boxes others.
 *
 * Every dlrs_view_... function is one dlrs_view_step. dlrs_view_apply takes any number of steps
 * and makes one tensor. What it says of steps is not for the others: their error->dimension is
 * the dimension at fault.
 *
 * Other operations are one of these: flatten is a reshape to {-1}; a[::-1] is a flip, or a slice
 * with start INT64_MAX, stop INT64_MIN, step -1; real and imaginary parts are a bitcast of the
 * unsqueezed tensor; broadcast_to is expand.
 */

/** As the axis of dlrs_view_squeeze and dlrs_view_flip: all axes. */
#define DLRS_ALL_AXES INT32_MIN

/** The steps: each does what the function of the same name does, and uses these members. */
enum dlrs_view_op {
  /** shape, strides, ndim; start is the offset. */
  DLRS_VIEW_AS_STRIDED = 1,
  /** axis, start, stop, step. */
  DLRS_VIEW_SLICE = 2,
  /** axis; start is the index. */
  DLRS_VIEW_SELECT = 3,
  /** axis, start; stop is the count. */
  DLRS_VIEW_NARROW = 4,
  /** axis. */
  DLRS_VIEW_FLIP = 5,
  /** axis, step; start is the window. */
  DLRS_VIEW_UNFOLD = 6,
  /** axis, other_axis; start is the offset. */
  DLRS_VIEW_DIAGONAL = 7,
  /** shape has the axes; ndim. */
  DLRS_VIEW_PERMUTE = 8,
  /** axis, other_axis. */
  DLRS_VIEW_TRANSPOSE = 9,
  /** axis. */
  DLRS_VIEW_SQUEEZE = 10,
  /** axis. */
  DLRS_VIEW_UNSQUEEZE = 11,
  /** shape, ndim. */
  DLRS_VIEW_RESHAPE = 12,
  /** shape, ndim. */
  DLRS_VIEW_EXPAND = 13,
  /** dtype. */
  DLRS_VIEW_BITCAST = 14,
  /** start is the number of lanes. */
  DLRS_VIEW_LANES = 15,
  /** None. */
  DLRS_VIEW_READ_ONLY = 16,
  /** start has the DLRS_NORMALIZE_* bits. */
  DLRS_VIEW_NORMALIZE = 17,
};

/** One step of a view. Members that the step does not use may be 0. */
struct dlrs_view_step {
  /** `sizeof(dlrs_view_step)`; the same in every step of an array. */
  uint32_t struct_size;
  /** A `dlrs_view_op`. */
  int32_t op;
  /** Counts from the end when negative. */
  int32_t axis;
  /** The second axis. */
  int32_t other_axis;
  /** Number of values in `shape`, and in `strides` if the step uses them. */
  int32_t ndim;
  /** The dtype. */
  DLDataType dtype;
  /** The first number. */
  int64_t start;
  /** The second number. */
  int64_t stop;
  /** The third number. */
  int64_t step;
  /** Extents or axes; NULL is allowed when ndim is 0. */
  const int64_t *shape;
  /** Strides in elements. */
  const int64_t *strides;
};

/**
 * Make a view of a tensor by several steps, one after the other.
 *
 * Shape:     the result of the steps; with count 0, base's.
 * Bytes:     as if each step made a view of the previous one; nothing outside base's own bytes.
 * Device:    any.
 * Ownership: the caller owns *out, which keeps base alive; no intermediate view is made. The steps
 *            and their arrays are only read.
 * Flags:     base's without IS_COPIED, which base loses too; READ_ONLY where a step adds it.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: base, steps (with count above 0), out.
 *            DLRS_VERSION, DLRS_FOREIGN: base. What dlrs_validate_managed reports for base at
 *            DLRS_LEVEL_LAYOUT. DLRS_STRUCT_SIZE: a step's, or not the same in all steps.
 *            DLRS_BAD_ARG: op. For each step what its function reports; error->dimension is then
 *            the index of the step, at most 127. DLRS_SUBBYTE, DLRS_OFFSET: the start of the whole
 *            view. DLRS_REFCOUNT: too many references to base, or it is being freed. DLRS_NOMEM:
 *            no memory for the header.
 * Threads:   any.
 */
DLRS_API
dlrs_status dlrs_view_apply(DLManagedTensorVersioned *base,
                            const dlrs_view_step *steps,
                            uint64_t count,
                            DLManagedTensorVersioned **out,
                            dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Views: selecting elements along an axis.
 */

/**
 * View every step-th element of an axis from start on, stop excluded: Python's a[start:stop:step].
 *
 * Shape:     along axis, as many elements as the slice has; start and stop count from the end when
 *            negative and are then clamped, so INT64_MAX and INT64_MIN stand for omitted bounds.
 * Bytes:     byte_offset changes to that of the first element selected.
 * Errors:    DLRS_BAD_ARG: there is no such axis; step is 0. All else as dlrs_view_apply.
 * Source:    Python's slice.indices.
 */
DLRS_API
dlrs_status dlrs_view_slice(DLManagedTensorVersioned *base,
                            int32_t axis,
                            int64_t start,
                            int64_t stop,
                            int64_t step,
                            DLManagedTensorVersioned **out,
                            dlrs_error *error);

/**
 * View one index of an axis, and drop the axis: a[index].
 *
 * Shape:     without axis; index counts from the end when negative.
 * Bytes:     byte_offset changes to that of the first element selected.
 * Errors:    DLRS_BAD_ARG: there is no such axis or index. All else as dlrs_view_apply.
 * Source:    the select of torch.
 */
DLRS_API
dlrs_status dlrs_view_select(DLManagedTensorVersioned *base,
                             int32_t axis,
                             int64_t index,
                             DLManagedTensorVersioned **out,
                             dlrs_error *error);

/**
 * View count elements of an axis from start on, exactly: nothing is clamped.
 *
 * Shape:     count along axis; start counts from the end when negative.
 * Bytes:     byte_offset changes to that of the first element selected.
 * Errors:    DLRS_BAD_ARG: there is no such axis or start, or count is not between 0 and the
 *            number of elements left (limit). All else as dlrs_view_apply.
 * Source:    the narrow of torch.
 */
DLRS_API
dlrs_status dlrs_view_narrow(DLManagedTensorVersioned *base,
                             int32_t axis,
                             int64_t start,
                             int64_t count,
                             DLManagedTensorVersioned **out,
                             dlrs_error *error);

/**
 * View an axis, or with DLRS_ALL_AXES every axis, in the opposite direction.
 *
 * Shape:     unchanged; strides change sign.
 * Bytes:     byte_offset changes to that of the first element selected.
 * Errors:    DLRS_BAD_ARG: there is no such axis. All else as dlrs_view_apply.
 * Source:    the flip of NumPy; torch copies.
 */
DLRS_API
dlrs_status dlrs_view_flip(DLManagedTensorVersioned *base,
                           int32_t axis,
                           DLManagedTensorVersioned **out,
                           dlrs_error *error);

/**
 * View the windows of an axis: window elements each, step apart.
 *
 * Shape:     axis indexes the windows, 1 + (extent - window) / step; a new last axis of extent
 *            window indexes the elements in one.
 * Bytes:     the same elements; byte_offset does not change.
 * Flags:     as dlrs_view_apply; READ_ONLY where windows overlap.
 * Errors:    DLRS_BAD_ARG: there is no such axis, window is not between 1 and the extent, or step
 *            is not above 0.
 *            DLRS_NDIM: base has 64 dimensions. All else as dlrs_view_apply.
 * Source:    the unfold of torch, sliding_window_view of NumPy.
 */
DLRS_API
dlrs_status dlrs_view_unfold(DLManagedTensorVersioned *base,
                             int32_t axis,
                             int64_t window,
                             int64_t step,
                             DLManagedTensorVersioned **out,
                             dlrs_error *error);

/**
 * View the diagonal of two axes, as a last axis.
 *
 * Shape:     without axis_a and axis_b; the new last axis begins at index (0, offset) of the two,
 *            or at (-offset, 0) when offset is negative; 0 elements where there is no diagonal.
 * Bytes:     byte_offset changes to that of the first element selected.
 * Errors:    DLRS_BAD_ARG: there is no such axis, or both are the same.
 *            All else as dlrs_view_apply.
 * Source:    the diagonal of NumPy and torch.
 */
DLRS_API
dlrs_status dlrs_view_diagonal(DLManagedTensorVersioned *base,
                               int32_t axis_a,
                               int32_t axis_b,
                               int64_t offset,
                               DLManagedTensorVersioned **out,
                               dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Views: permuting, dropping and adding axes.
 */

/**
 * View a tensor with its axes in another order.
 *
 * Shape:     axis axes[k] of base becomes axis k; ndim axes, as many as base has, each once;
 *            negative ones count from the end.
 * Bytes:     the same elements; byte_offset does not change.
 * Errors:    DLRS_SHAPE_NULL, DLRS_MISALIGNED_STRUCT: axes. DLRS_NDIM: ndim.
 *            DLRS_BAD_ARG: ndim is not base's; an axis does not exist or is repeated.
 *            All else as dlrs_view_apply.
 * Source:    the transpose of NumPy, permute of torch.
 */
DLRS_API
dlrs_status dlrs_view_permute(DLManagedTensorVersioned *base,
                              const int64_t *axes,
                              int32_t ndim,
                              DLManagedTensorVersioned **out,
                              dlrs_error *error);

/**
 * View a tensor with two axes swapped.
 *
 * Shape:     the extents of axis_a and axis_b change places.
 * Bytes:     the same elements; byte_offset does not change.
 * Errors:    DLRS_BAD_ARG: there is no such axis. All else as dlrs_view_apply.
 * Source:    the swapaxes of NumPy, transpose of torch.
 */
DLRS_API
dlrs_status dlrs_view_transpose(DLManagedTensorVersioned *base,
                                int32_t axis_a,
                                int32_t axis_b,
                                DLManagedTensorVersioned **out,
                                dlrs_error *error);

/**
 * View a tensor without an axis of extent 1, or with DLRS_ALL_AXES without any such axis.
 *
 * Shape:     without the axis.
 * Bytes:     the same elements; byte_offset does not change.
 * Errors:    DLRS_BAD_ARG: there is no such axis.
 *            DLRS_SHAPE_MISMATCH: its extent is not 1. All else as dlrs_view_apply.
 * Source:    the squeeze of NumPy.
 */
DLRS_API
dlrs_status dlrs_view_squeeze(DLManagedTensorVersioned *base,
                              int32_t axis,
                              DLManagedTensorVersioned **out,
                              dlrs_error *error);

/**
 * View a tensor with one more axis, of extent 1.
 *
 * Shape:     the new axis has index axis in the result; -1 is after the last.
 * Bytes:     the same elements; byte_offset does not change.
 * Errors:    DLRS_BAD_ARG: axis is not between -ndim - 1 and ndim.
 *            DLRS_NDIM: base has 64 dimensions. All else as dlrs_view_apply.
 * Source:    the expand_dims of NumPy, unsqueeze of torch.
 */
DLRS_API
dlrs_status dlrs_view_unsqueeze(DLManagedTensorVersioned *base,
                                int32_t axis,
                                DLManagedTensorVersioned **out,
                                dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Views: changing shape or dtype.
 */

/** Move byte_offset into data. */
#define DLRS_NORMALIZE_OFFSET (1U << 0U)

/** Give every extent of 1, and all of an empty tensor, its compact row-major stride. */
#define DLRS_NORMALIZE_STRIDES (1U << 1U)

/** Drop extents of 1 and merge dimensions that are contiguous with each other. */
#define DLRS_NORMALIZE_MERGE (1U << 2U)

/**
 * View a tensor's memory with any shape, strides and offset inside it.
 *
 * Shape:     shape and strides, ndim values each; strides and offset count elements.
 * Bytes:     element (0, ..., 0) is offset elements after base's; only memory between the first
 *            and the last byte that base uses, or bit where types are packed, is accessed.
 * Flags:     as dlrs_view_apply; READ_ONLY where elements share
 *            memory, or that cannot be decided.
 * Errors:    DLRS_SHAPE_NULL, DLRS_MISALIGNED_STRUCT: shape, strides. DLRS_NDIM: ndim.
 *            DLRS_SHAPE_NEG, DLRS_SIZE_OVERFLOW: an extent, all of them.
 *            DLRS_EXTENT_OVERFLOW, DLRS_OUT_OF_BOUNDS: value is the byte farthest outside, limit
 *            the base's, both from base's first element; in bits, as the message says, inside a
 *            byte. DLRS_SUBBYTE: the first element would start inside a byte.
 *            All else as dlrs_view_apply.
 * Source:    the as_strided of NumPy and torch, with the bounds that they leave to the caller.
 */
DLRS_API
dlrs_status dlrs_view_as_strided(DLManagedTensorVersioned *base,
                                 const int64_t *shape,
                                 const int64_t *strides,
                                 int32_t ndim,
                                 int64_t offset,
                                 DLManagedTensorVersioned **out,
                                 dlrs_error *error);

/**
 * View the elements of a tensor, in row-major order, in another shape.
 *
 * Shape:     ndim extents with as many elements; one may be -1 and is then computed. {-1}
 *            flattens.
 * Bytes:     the same elements; byte_offset does not change.
 * Errors:    DLRS_SHAPE_NULL, DLRS_MISALIGNED_STRUCT: shape. DLRS_NDIM: ndim. DLRS_SHAPE_NEG,
 *            DLRS_SIZE_OVERFLOW: an extent, all of them.
 *            DLRS_SHAPE_MISMATCH: another number of elements. DLRS_BAD_ARG: more than one -1, or
 *            one beside an extent of 0.
 *            DLRS_NOT_VIEWABLE: no strides give this shape; copy first (dlrs_contiguous).
 *            All else as dlrs_view_apply.
 * Source:    the reshape of NumPy with copy=False, view of torch.
 */
DLRS_API
dlrs_status dlrs_view_reshape(DLManagedTensorVersioned *base,
                              const int64_t *shape,
                              int32_t ndim,
                              DLManagedTensorVersioned **out,
                              dlrs_error *error);

/**
 * View a tensor repeated along axes of extent 1, and along new first axes.
 *
 * Shape:     ndim extents, right-aligned to base's; an extent of 1 of base becomes any, other
 *            extents must be equal; -1 keeps base's.
 * Bytes:     repeated elements have stride 0; nothing is copied.
 * Flags:     as dlrs_view_apply; READ_ONLY where elements repeat.
 * Errors:    DLRS_SHAPE_NULL, DLRS_MISALIGNED_STRUCT: shape. DLRS_NDIM: ndim. DLRS_SHAPE_NEG,
 *            DLRS_SIZE_OVERFLOW: an extent, all of them.
 *            DLRS_SHAPE_MISMATCH: fewer dimensions than base, or an extent that is not 1 would
 *            change. All else as dlrs_view_apply.
 * Source:    the broadcast_to of NumPy, expand of torch.
 */
DLRS_API
dlrs_status dlrs_view_expand(DLManagedTensorVersioned *base,
                             const int64_t *shape,
                             int32_t ndim,
                             DLManagedTensorVersioned **out,
                             dlrs_error *error);

/**
 * View the same bits as elements of another dtype.
 *
 * Shape:     unchanged for elements of the same size; else the last axis must be dense and its
 *            extent is scaled: complex64 becomes twice as many float32, and float4 pairs become
 *            uint8. Elements of 8 bits are all bytes that the last axis touches.
 * Bytes:     the same; the result may be less aligned than its dtype.
 * Flags:     as dlrs_view_apply; READ_ONLY where the last byte of a
 *            row has bits behind base's elements.
 * Errors:    DLRS_DTYPE_CODE, DLRS_DTYPE_BITS, DLRS_DTYPE_LANES: dtype. DLRS_DTYPE_MISMATCH: one
 *            of the two is an opaque handle.
 *            DLRS_NOT_VIEWABLE: the last axis is not dense, or it or a stride is no whole number
 *            of new elements; no axis in a 0-d tensor.
 *            DLRS_SIZE_OVERFLOW, DLRS_EXTENT_OVERFLOW: the new extent, a new stride.
 *            All else as dlrs_view_apply.
 * Source:    the view of NumPy and torch.
 */
DLRS_API
dlrs_status dlrs_view_bitcast(DLManagedTensorVersioned *base,
                              DLDataType dtype,
                              DLManagedTensorVersioned **out,
                              dlrs_error *error);

/**
 * View lanes as a last axis, or a last axis as lanes.
 *
 * Shape:     when lanes is 1, dtype.lanes becomes the extent of a new last axis; else base has 1
 *            lane and a dense last axis of extent lanes, which is dropped.
 * Bytes:     the same elements; byte_offset does not change.
 * Errors:    DLRS_BAD_ARG: lanes is not between 1 and 65535. DLRS_SHAPE_MISMATCH: base has lanes
 *            already, or no last axis of that extent.
 *            DLRS_NOT_VIEWABLE: the last axis is not dense, or a stride is no whole number of new
 *            elements. DLRS_FLAGS: padded sub-byte elements. DLRS_NDIM: base has 64 dimensions.
 *            All else as dlrs_view_apply.
 */
DLRS_API
dlrs_status dlrs_view_lanes(DLManagedTensorVersioned *base,
                            int32_t lanes,
                            DLManagedTensorVersioned **out,
                            dlrs_error *error);

/**
 * View a tensor that consumers must not write.
 *
 * Shape:     unchanged.
 * Bytes:     the same elements; byte_offset does not change.
 * Flags:     READ_ONLY is set; base loses IS_COPIED.
 * Source:    DLPACK_FLAG_BITMASK_READ_ONLY of dlpack.h. All else as dlrs_view_apply.
 */
DLRS_API
dlrs_status dlrs_view_read_only(DLManagedTensorVersioned *base,
                                DLManagedTensorVersioned **out,
                                dlrs_error *error);

/**
 * View the same elements in a form that strict consumers accept.
 *
 * Shape:     unchanged, unless DLRS_NORMALIZE_MERGE drops extents of 1 and merges contiguous
 *            dimensions; elements stay in row-major order.
 * Bytes:     DLRS_NORMALIZE_OFFSET moves byte_offset into data. DLRS_NORMALIZE_STRIDES gives every
 *            extent of 1, and all of an empty tensor, the strides of a compact row-major tensor.
 * Errors:    DLRS_BAD_ARG: what has other bits. DLRS_UNSUPPORTED: data is an opaque handle and
 *            byte_offset cannot be moved into it. All else as dlrs_view_apply.
 * Source:    bugs of consumers that ignore byte_offset or use strides of extents of 1.
 */
DLRS_API
dlrs_status dlrs_view_normalize(DLManagedTensorVersioned *base,
                                uint32_t what,
                                DLManagedTensorVersioned **out,
                                dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Queries on a tensor.
 */

/**
 * Count the elements of a tensor.
 *
 * Shape:     the product of the extents; 1 when ndim is 0.
 * Ownership: unchanged.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or out; DLRS_SIZE_OVERFLOW: too many;
 *            what dlrs_validate reports at DLRS_LEVEL_STRUCT. On any error *out is not modified.
 * Threads:   any.
 * Source:    dlpack.h.
 */
DLRS_API
dlrs_status dlrs_numel(const DLTensor *tensor,
                       int64_t *out,
                       dlrs_error *error);

/**
 * Compute the bits from one element to the next in a compact tensor.
 *
 * Shape:     shape and strides are ignored.
 * Bytes:     bits times lanes of the dtype; padded sub-byte elements fill whole bytes each.
 * Ownership: unchanged.
 * Flags:     those of its managed tensor, or 0; only IS_SUBBYTE_TYPE_PADDED is used.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or out;
 *            what dlrs_validate reports at DLRS_LEVEL_STRUCT. On any error *out is not modified.
 * Threads:   any.
 * Source:    dlpack.h; NumPy's itemsize, in bits.
 */
DLRS_API
dlrs_status dlrs_itemsize_bits(const DLTensor *tensor,
                               uint64_t flags,
                               uint64_t *out,
                               dlrs_error *error);

/**
 * Compute the bytes of the elements of a tensor without gaps.
 *
 * Shape:     strides are ignored: this is the size of a compact copy.
 * Bytes:     packed sub-byte types round up to whole bytes; padded ones fill whole bytes each.
 * Ownership: unchanged.
 * Flags:     those of its managed tensor, or 0; only IS_SUBBYTE_TYPE_PADDED is used.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or out; DLRS_SIZE_OVERFLOW: too many;
 *            what dlrs_validate reports at DLRS_LEVEL_STRUCT. On any error *out is not modified.
 * Threads:   any.
 * Source:    dlpack.h; its GetDataSize is the padded size.
 */
DLRS_API
dlrs_status dlrs_nbytes(const DLTensor *tensor,
                        uint64_t flags,
                        uint64_t *out,
                        dlrs_error *error);

/**
 * Return whether a tensor is dense in a memory order.
 *
 * Shape:     strides of extents of 1, and of empty tensors, are ignored.
 * Ownership: unchanged.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or out.
 *            DLRS_BAD_ARG: order is not 'C' (row-major), 'F' (column-major), 'A' (either) or 'K'
 *            (dense in some order of the dimensions).
 *            what dlrs_validate reports at DLRS_LEVEL_STRUCT. On any error *out is not modified.
 * Threads:   any.
 * Source:    the orders of NumPy.
 */
DLRS_API
dlrs_status dlrs_is_contiguous(const DLTensor *tensor,
                               int32_t order,
                               int32_t *out,
                               dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Queries on shared memory.
 */

/** Result of a query whose work is bounded. */
enum dlrs_answer {
  /** Proved: no. */
  DLRS_NO = 0,
  /** Proved: yes. */
  DLRS_YES = 1,
  /** Not decided within the bound. */
  DLRS_UNDECIDED = 2,
};

/**
 * Return whether no two elements of a tensor share memory.
 *
 * Bytes:     *out is DLRS_YES, DLRS_NO (two elements share at least a bit, as in a broadcast or a
 *            sliding window), or, after bounded work, DLRS_UNDECIDED.
 * Device:    any: only shape, strides and dtype are used.
 * Ownership: unchanged.
 * Flags:     those of its managed tensor, or 0; only IS_SUBBYTE_TYPE_PADDED is used.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or out.
 *            what dlrs_validate reports at DLRS_LEVEL_LAYOUT. On any error *out is not modified.
 * Threads:   any.
 * Source:    bounded Diophantine equations, as in NumPy's solve_may_share_memory.
 */
DLRS_API
dlrs_status dlrs_is_unique(const DLTensor *tensor,
                           uint64_t flags,
                           int32_t *out,
                           dlrs_error *error);

/**
 * Return whether elements of two tensors share memory.
 *
 * Bytes:     *out is DLRS_NO, DLRS_YES (at least one bit is shared), or, after bounded work,
 *            DLRS_UNDECIDED. Interleaved tensors that share no bit give DLRS_NO.
 * Device:    addresses are compared regardless of the devices. Two different opaque handles give
 *            DLRS_UNDECIDED.
 * Ownership: unchanged.
 * Flags:     those of their managed tensors, or 0; only IS_SUBBYTE_TYPE_PADDED is used.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: a, b or out.
 *            what dlrs_validate reports at DLRS_LEVEL_LAYOUT. On any error *out is not modified.
 * Threads:   any.
 * Source:    bounded Diophantine equations, as in NumPy's shares_memory.
 */
DLRS_API
dlrs_status dlrs_may_overlap(const DLTensor *a,
                             uint64_t a_flags,
                             const DLTensor *b,
                             uint64_t b_flags,
                             int32_t *out,
                             dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Shapes and strides.
 */

/**
 * Compute the strides of a compact tensor.
 *
 * Shape:     ndim extents (0 to 64); may be NULL when ndim is 0. An extent of 0 counts as 1; what
 *            does not fit beside it becomes INT64_MAX.
 * Ownership: strides is an array of the caller with room for ndim values; it may be shape.
 * Errors:    DLRS_NULL_ARG, DLRS_SHAPE_NULL, DLRS_MISALIGNED_STRUCT: shape, strides.
 *            DLRS_NDIM, DLRS_SHAPE_NEG, DLRS_SIZE_OVERFLOW: the shape.
 *            DLRS_BAD_ARG: order is neither 'C' (row-major) nor 'F' (column-major).
 *            On any error nothing is written.
 * Threads:   any.
 * Source:    dlpack.h: strides count elements.
 */
DLRS_API
dlrs_status dlrs_compact_strides(const int64_t *shape,
                                 int32_t ndim,
                                 int32_t order,
                                 int64_t *strides,
                                 dlrs_error *error);

/**
 * Convert strides in bytes into strides in elements.
 *
 * Shape:     ndim extents (0 to 64) and strides; NULL byte_strides are compact row-major. A stride
 *            without effect, of an extent of 1 or of a tensor without elements, is ignored: it
 *            becomes that of a compact row-major tensor, at most INT64_MAX.
 * Bytes:     itemsize is the size of one element, above 0.
 * Ownership: strides is an array of the caller with room for ndim values; it may be byte_strides
 *            or shape.
 * Errors:    DLRS_NULL_ARG, DLRS_SHAPE_NULL, DLRS_MISALIGNED_STRUCT: shape, byte_strides, strides.
 *            DLRS_NDIM, DLRS_SHAPE_NEG, DLRS_SIZE_OVERFLOW: the shape. DLRS_BAD_ARG: itemsize.
 *            DLRS_STRIDES_UNEVEN: a stride is no multiple of itemsize; see dimension and value. On
 *            any error nothing is written.
 * Threads:   any.
 * Source:    dlpack.h: strides count elements. NumPy's and the buffer protocol's count bytes.
 */
DLRS_API
dlrs_status dlrs_strides_from_bytes(const int64_t *shape,
                                    const int64_t *byte_strides,
                                    int32_t ndim,
                                    uint32_t itemsize,
                                    int64_t *strides,
                                    dlrs_error *error);

/**
 * Convert strides in elements into strides in bytes.
 *
 * Shape:     ndim extents (0 to 64) and strides; NULL strides are compact row-major. A stride
 *            without effect is ignored, as by dlrs_strides_from_bytes.
 * Bytes:     itemsize is the size of one element, above 0.
 * Ownership: byte_strides is an array of the caller with room for ndim values; it may be strides
 *            or shape.
 * Errors:    DLRS_NULL_ARG, DLRS_SHAPE_NULL, DLRS_MISALIGNED_STRUCT: shape, strides, byte_strides.
 *            DLRS_NDIM, DLRS_SHAPE_NEG, DLRS_SIZE_OVERFLOW: the shape. DLRS_BAD_ARG: itemsize.
 *            DLRS_EXTENT_OVERFLOW: a stride does not fit; see dimension and value.
 *            On any error nothing is written.
 * Threads:   any.
 * Source:    see dlrs_strides_from_bytes, whose inverse it is.
 */
DLRS_API
dlrs_status dlrs_strides_to_bytes(const int64_t *shape,
                                  const int64_t *strides,
                                  int32_t ndim,
                                  uint32_t itemsize,
                                  int64_t *byte_strides,
                                  dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Validation.
 */

/**
 * Check a bare tensor.
 *
 * Shape:     read once, at most 64 dimensions; NULL strides are compact row-major.
 * Bytes:     sizes and addresses from DLRS_LEVEL_LAYOUT on; the data itself is never read.
 * Device:    known codes from DLRS_LEVEL_STRICT on; on opaque-handle devices (OpenCL, Vulkan,
 *            Metal, WebGPU) addresses are not checked.
 * Ownership: unchanged.
 * Flags:     those of its managed tensor, or 0.
 * Errors:    in this order:
 *            DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor. DLRS_BAD_ARG: level.
 *            DLRS_FLAGS (strict): unknown bits. Padding on a type of whole bytes is ignored.
 *            DLRS_NDIM: below 0 or above 64. DLRS_SHAPE_NULL: NULL with ndim above 0.
 *            DLRS_MISALIGNED_STRUCT: shape. DLRS_DTYPE_BITS, DLRS_DTYPE_LANES: 0.
 *            DLRS_DTYPE_CODE, DLRS_DTYPE_BITS (strict): unknown, or not of the code.
 *            DLRS_DEVICE_TYPE, DLRS_DEVICE_ID (strict): unknown, negative, or not 0 for host,
 *            pinned and managed memory. DLRS_SHAPE_NEG: an extent.
 *            DLRS_MISALIGNED_STRUCT: strides. DLRS_SIZE_OVERFLOW: they are NULL, and compact ones
 *            do not fit.
 *            DLRS_SIZE_OVERFLOW, DLRS_EXTENT_OVERFLOW (layout): sizes and strides.
 *            DLRS_SUBBYTE (strict): packed elements are neither row-major without gaps, nor rows
 *            without gaps that start on whole bytes.
 *            DLRS_DATA_NULL, DLRS_OFFSET, DLRS_EXTENT_OVERFLOW (layout): the addresses.
 *            DLRS_DEVICE_TYPE, DLRS_DEVICE_ID, DLRS_OUT_OF_BOUNDS (device): the driver reports
 *            other memory; limit is its value. Classes 5 and 6: the driver.
 * Threads:   any; a struct that another thread modifies meanwhile is read once.
 * Source:    "Consumer" rules of dlpack.h and python_spec.
 */
DLRS_API
dlrs_status dlrs_validate(const DLTensor *tensor,
                          uint64_t flags,
                          int32_t level,
                          dlrs_error *error);

/**
 * Check a versioned tensor.
 *
 * Shape:     as dlrs_validate; DLRS_LEVEL_STRICT requires strides from version 1.2 on.
 * Flags:     its own.
 * Errors:    DLRS_VERSION, before all others of the tensor: the major version is not 1; no member
 *            after flags is read then. DLRS_STRIDES_NULL (strict): see Shape. A NULL deleter is
 *            legal. All else as dlrs_validate.
 * Source:    "Consumer" rules of dlpack.h and python_spec.
 */
DLRS_API
dlrs_status dlrs_validate_managed(const DLManagedTensorVersioned *tensor,
                                  int32_t level,
                                  dlrs_error *error);

/**
 * Check a legacy tensor.
 *
 * Flags:     none.
 * Errors:    a NULL deleter is legal. All else as dlrs_validate.
 * Source:    "Consumer" rules of dlpack.h and python_spec.
 */
DLRS_API
dlrs_status dlrs_validate_legacy(const DLManagedTensor *tensor,
                                 int32_t level,
                                 dlrs_error *error);

/**
 * Check that a tensor stays inside an allocation known to the caller.
 *
 * Shape:     as dlrs_validate at DLRS_LEVEL_LAYOUT.
 * Bytes:     every byte of every element must lie in [base, base + nbytes).
 * Device:    any whose data is an address.
 * Ownership: unchanged.
 * Flags:     those of its managed tensor, or 0.
 * Errors:    DLRS_OUT_OF_BOUNDS: value is the offset farthest outside, limit is nbytes; or base +
 *            nbytes wraps. value is not set where base is below 65,536, or 2^46 bytes and more
 *            away: it would be an address. DLRS_UNSUPPORTED: data is an opaque handle. A tensor of
 *            size zero uses no byte, so it is inside.
 *            The rest as dlrs_validate.
 * Threads:   any.
 * Source:    this library: no tensor carries the size of its allocation.
 *
 * Safety:
 * `base` is never dereferenced.
 */
DLRS_API
dlrs_status dlrs_validate_within(const DLTensor *tensor,
                                 uint64_t flags,
                                 const void *base,
                                 uint64_t nbytes,
                                 dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Backends: drivers of devices, supplied by the caller.
 */

/** Details of a failure, from a function of a backend. All 0 when it is called. */
struct dlrs_fault {
  /** The driver's own code. */
  int32_t driver_code;
  /** Must stay 0. */
  uint32_t reserved;
  /** The error, as static ASCII text; NULL for that of the status. */
  const char *detail;
};

/**
 * A copy in bytes: `shape` items of `item_nbytes` contiguous bytes each. Normalised: no extent is
 * 1, destination strides are positive and sorted, outermost first, and bytes contiguous on both
 * sides are one item; so a contiguous copy has `ndim` 0.
 */
struct dlrs_byte_plan {
  /** `sizeof(dlrs_byte_plan)`. */
  uint32_t struct_size;
  /** Number of dimensions, 0 to 64. */
  int32_t ndim;
  /** Device of the source. */
  DLDevice src_device;
  /** Device of the destination. */
  DLDevice dst_device;
  /** Address of the first item of the source, or the opaque handle. */
  const void *src;
  /** Address of the first item of the destination, or the opaque handle. */
  void *dst;
  /** Bytes from `src` to the first item: 0 unless it is a handle. */
  uint64_t src_offset;
  /** Bytes from `dst` to the first item: 0 unless it is a handle. */
  uint64_t dst_offset;
  /** Contiguous bytes of one item. */
  uint64_t item_nbytes;
  /** Extents, `ndim` of them. */
  const int64_t *shape;
  /** Strides of the source in bytes: any, 0 and negative included. */
  const int64_t *src_strides;
  /** Strides of the destination in bytes. */
  const int64_t *dst_strides;
};

/**
 * A device's driver, supplied by the caller. Members that are NULL are not supported.
 *
 * Every function returns 0 or a `dlrs_status_code` and may be called on any thread.
 * `DLRS_UNSUPPORTED` means that nothing was done: the library then copies through host memory, for
 * which contiguous copies between the device and
 * `kDLCPU` (plans with `ndim` 0) are enough. `fault` is never NULL. `device` is always one of a
 * type that the table was registered for.
 */
struct dlrs_backend {
  /** `sizeof(dlrs_backend)`. */
  uint32_t struct_size;
  /** Must be 0. */
  uint32_t reserved;
  /** Name of the backend, static ASCII text; NULL for none. */
  const char *name;
  /** Passed to every function. */
  void *context;
  /** Number of devices. */
  int32_t (*device_count)(void *context,
                          int32_t device_type,
                          int32_t *out_count,
                          dlrs_fault *fault);
  /**
   * Allocates `nbytes` (above 0) bytes, aligned to `align_bytes`. `stream` uses them first;
   * NULL: any stream.
   */
  int32_t (*alloc)(void *context,
                   DLDevice device,
                   uint64_t nbytes,
                   uint64_t align_bytes,
                   void *stream,
                   void **out_data,
                   dlrs_fault *fault);
  /** Frees memory after the work on `stream`; NULL: after all work of the device. */
  int32_t (*free)(void *context,
                  DLDevice device,
                  void *data,
                  uint64_t nbytes,
                  uint64_t align_bytes,
                  void *stream,
                  dlrs_fault *fault);
  /**
   * Enqueues a copy on a stream of `device`, or copies before it returns. Both sides stay
   * allocated until `stream_sync`.
   */
  int32_t (*copy)(void *context,
                  DLDevice device,
                  const dlrs_byte_plan *plan,
                  void *stream,
                  dlrs_fault *fault);
  /** Waits for all work of a stream; NULL when `copy` is synchronous. */
  int32_t (*stream_sync)(void *context, DLDevice device, void *stream, dlrs_fault *fault);
  /** Creates a stream that does not synchronize with the default stream. */
  int32_t (*stream_create)(void *context, DLDevice device, void **out_stream, dlrs_fault *fault);
  /** Destroys a stream; work on it still completes. */
  int32_t (*stream_destroy)(void *context, DLDevice device, void *stream, dlrs_fault *fault);
  /** Creates an event. */
  int32_t (*event_create)(void *context, DLDevice device, void **out_event, dlrs_fault *fault);
  /** Destroys an event. */
  int32_t (*event_destroy)(void *context, DLDevice device, void *event, dlrs_fault *fault);
  /** Records an event: it completes after the work enqueued on the stream so far. */
  int32_t (*event_record)(void *context,
                          DLDevice device,
                          void *event,
                          void *stream,
                          dlrs_fault *fault);
  /** Makes later work of the stream wait for the event. */
  int32_t (*event_wait)(void *context,
                        DLDevice device,
                        void *event,
                        void *stream,
                        dlrs_fault *fault);
  /** Waits for an event. */
  int32_t (*event_sync)(void *context, DLDevice device, void *event, dlrs_fault *fault);
  /** Whether an event has completed: 0 or 1. */
  int32_t (*event_query)(void *context,
                         DLDevice device,
                         void *event,
                         int32_t *out_done,
                         dlrs_fault *fault);
  /** The kind of memory of an address, and its allocation (NULL and 0 when not known). */
  int32_t (*pointer)(void *context,
                     const void *data,
                     DLDevice *out_device,
                     void **out_base,
                     uint64_t *out_nbytes,
                     dlrs_fault *fault);
};

/**
 * Set the backend of a device type, for the whole process.
 *
 * Device:    any known type but kDLCPU; a table may be set for several types. It replaces the
 *            library's own backend for the type.
 * Ownership: *backend is copied during the call and the copy never freed: reuse one table instead
 *            of setting new ones. Its functions, context and name must stay valid until another is
 *            set, calls that began before have returned, and nothing made with it is left. A
 *            tensor stores the backend that allocated it, or with which dlrs_ready_record first
 *            recorded, and is freed by it. Memory, streams and events of dlrs_mem_alloc,
 *            dlrs_stream_create and dlrs_event_create do not: free them before another backend is
 *            set. NULL restores the library's own. *old, when old is not NULL, receives the
 *            address of the previous table, or NULL.
 * Errors:    DLRS_DEVICE_TYPE: unknown, or kDLCPU. DLRS_STRUCT_SIZE: backend.
 *            DLRS_MISALIGNED_STRUCT: backend or old. DLRS_BAD_ARG: its reserved is not 0.
 *            DLRS_NULL_ARG: it does not copy, or allocates and does not free. DLRS_NOMEM: no
 *            memory for the copy. On any error *old is NULL.
 * Threads:   any; as its functions. A concurrent call uses either backend.
 *
 * Safety:
 * The functions of the backend do what dlrs_backend documents.
 */
DLRS_API
dlrs_status dlrs_backend_set(int32_t device_type,
                             const dlrs_backend *backend,
                             const dlrs_backend **old,
                             dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Devices and their memory.
 */

/** What a driver reports about an address. */
struct dlrs_pointer_info {
  /** `sizeof(dlrs_pointer_info)`. */
  uint32_t struct_size;
  /** Must be 0. */
  uint32_t reserved;
  /** The kind of memory and its device, as in a DLTensor. */
  DLDevice device;
  /** Start of its allocation; NULL when the driver does not report it. */
  void *base;
  /** Size of that allocation in bytes; 0 when the driver does not report it. */
  uint64_t nbytes;
};

/**
 * Count the devices of a type; this loads the driver, if it was not loaded yet.
 *
 * Device:    any type that has a backend; 1 for the CPU and host memory.
 * Ownership: *out is the caller's; it is 0 on error.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out. DLRS_DEVICE_TYPE: unknown, or without a
 *            backend. Classes 5 and 6: why the driver cannot be used, with the names tried:
 *            DLRS_DRV_MISSING, DLRS_DRV_STUB, DLRS_DRV_OLD, DLRS_DRV_SYMBOL, DLRS_DRV_INIT,
 *            DLRS_NO_DEVICE, DLRS_FORKED.
 * Threads:   any.
 */
DLRS_API
dlrs_status dlrs_device_count(int32_t device_type,
                              int32_t *out,
                              dlrs_error *error);

/**
 * Set the file to load as the driver of a device type, in place of the usual names (libcuda.so.1,
 * libamdhip64.so.7, ...), for the whole process.
 *
 * Device:    kDLCUDA and its kinds, or kDLROCM and its kinds.
 * Ownership: path is not copied and must stay valid until the process ends or another one is set;
 *            NULL restores the usual names. On Windows path is in the ANSI code page, which is
 *            UTF-8 only if the program's manifest or the system sets it.
 * Errors:    DLRS_DEVICE_TYPE: no driver is loaded for it. DLRS_BAD_ARG: it is loaded already. A
 *            missing file is reported when the driver is loaded.
 * Threads:   any; call it before the first use of a device.
 *
 * Safety:
 * path ends with NUL, and names a driver.
 */
DLRS_API
dlrs_status dlrs_driver_path_set(int32_t device_type,
                                 const char *path,
                                 dlrs_error *error);

/**
 * Allocate memory on a device.
 *
 * Bytes:     nbytes, aligned to align_bytes (a power of two, 0 for 256); none for 0 bytes, and
 *            then *out is NULL.
 * Device:    any that has a backend. stream uses the memory first, for drivers with stream-ordered
 *            allocation; other devices' kernels and other processes (IPC) cannot access such
 *            memory. NULL: any stream.
 * Ownership: the caller owns *out and frees it by dlrs_mem_free.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out. DLRS_DEVICE_TYPE, DLRS_DEVICE_ID: the
 *            device. DLRS_BAD_ARG: align_bytes. DLRS_NOMEM, DLRS_DEV_OOM: no memory;
 *            DLRS_MISALIGNED with argument 0: the backend's was less aligned than requested.
 *            DLRS_UNSUPPORTED: the backend does not allocate. Classes 5 and 6: its driver.
 * Threads:   any.
 * Source:    this library; stream order as cuMemAllocAsync has it.
 *
 * Safety:
 * stream is NULL or a live stream of the device.
 */
DLRS_API
dlrs_status dlrs_mem_alloc(DLDevice device,
                           uint64_t nbytes,
                           uint64_t align_bytes,
                           void *stream,
                           void **out,
                           dlrs_error *error);

/**
 * Free memory of a device.
 *
 * Bytes:     nbytes and align_bytes as they were allocated.
 * Device:    as it was allocated. The memory is freed after the work on stream; with NULL after
 *            all work of the device.
 * Ownership: data is invalid afterwards; NULL does nothing.
 * Errors:    as dlrs_mem_alloc; then data is still allocated.
 * Threads:   any.
 * Source:    this library; stream order as cuMemFreeAsync has it.
 *
 * Safety:
 * data came from dlrs_mem_alloc for the same values.
 */
DLRS_API
dlrs_status dlrs_mem_free(DLDevice device,
                          void *data,
                          uint64_t nbytes,
                          uint64_t align_bytes,
                          void *stream,
                          dlrs_error *error);

/**
 * Return the kind of memory of an address, as a driver reports it.
 *
 * Device:    device_type selects the backend; the result may be another type, such as
 *            kDLCUDAManaged, or kDLCPU for memory unknown to the driver.
 * Ownership: unchanged. out->struct_size is set by the caller; members of *out that only a newer
 *            version has are set to 0.
 * Errors:    DLRS_NULL_ARG: data or out. DLRS_MISALIGNED_STRUCT, DLRS_STRUCT_SIZE: out.
 *            DLRS_BAD_ARG: its reserved is not 0. DLRS_DEVICE_TYPE: it has no backend.
 *            DLRS_UNSUPPORTED: its backend does not report it. Classes 5 and 6: its driver.
 * Threads:   any.
 * Source:    cuPointerGetAttribute, hipPointerGetAttributes.
 *
 * Safety:
 * data is not dereferenced.
 */
DLRS_API
dlrs_status dlrs_pointer_device(int32_t device_type,
                                const void *data,
                                dlrs_pointer_info *out,
                                dlrs_error *error);

/**
 * Register (pin) host memory with a driver, for faster and asynchronous copies.
 *
 * Bytes:     nbytes (above 0) from data on.
 * Device:    device_type selects the backend.
 * Ownership: unchanged; call dlrs_mem_unregister_host before freeing the memory.
 * Errors:    DLRS_NULL_ARG: data. DLRS_DEVICE_TYPE: it has no backend. DLRS_UNSUPPORTED: its
 *            backend cannot register. Classes 5 and 6: its driver.
 * Threads:   any.
 * Source:    cuMemHostRegister, hipHostRegister.
 */
DLRS_API
dlrs_status dlrs_mem_register_host(int32_t device_type,
                                   void *data,
                                   uint64_t nbytes,
                                   dlrs_error *error);

/**
 * Undo dlrs_mem_register_host.
 *
 * Device:    as it was registered.
 * Ownership: unchanged.
 * Errors:    as dlrs_mem_register_host.
 * Threads:   any.
 * Source:    cuMemHostUnregister, hipHostUnregister.
 *
 * Safety:
 * No device uses the memory any more.
 */
DLRS_API
dlrs_status dlrs_mem_unregister_host(int32_t device_type,
                                     void *data,
                                     dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Streams, events, and stream-ordered release of tensors.
 */

/**
 * Create a stream that does not synchronize with the default stream.
 *
 * Device:    any whose backend has streams.
 * Ownership: the caller owns *out and frees it by dlrs_stream_destroy.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out. DLRS_DEVICE_TYPE, DLRS_DEVICE_ID:
 *            the device. DLRS_UNSUPPORTED: its backend has none. Classes 5 and
 *            6: its driver.
 * Threads:   any.
 * Source:    CU_STREAM_NON_BLOCKING.
 */
DLRS_API dlrs_status dlrs_stream_create(DLDevice device, void **out, dlrs_error *error);

/**
 * Destroy a stream; work enqueued on it still completes.
 *
 * Device:    of the stream.
 * Ownership: stream is invalid afterwards.
 * Errors:    DLRS_NULL_ARG: stream. DLRS_DEVICE_TYPE, DLRS_DEVICE_ID: the device.
 *            DLRS_UNSUPPORTED: its backend has none. Classes 5 and 6: its driver.
 * Threads:   any.
 *
 * Safety:
 * stream came from dlrs_stream_create for the device.
 */
DLRS_API dlrs_status dlrs_stream_destroy(DLDevice device, void *stream, dlrs_error *error);

/**
 * Wait for all work of a stream.
 *
 * Device:    of the stream; NULL is its default stream. On the CPU, where nothing is pending,
 *            only NULL.
 * Ownership: unchanged.
 * Errors:    DLRS_DEVICE_TYPE, DLRS_DEVICE_ID: the device. DLRS_UNSUPPORTED: its backend has none.
 *            DLRS_STREAM: not a stream of the device. Classes 5 and 6: its driver.
 * Threads:   any.
 *
 * Safety:
 * stream is NULL or a live stream of the device.
 */
DLRS_API
dlrs_status dlrs_stream_sync(DLDevice device,
                             void *stream,
                             dlrs_error *error);

/**
 * Make later work of one stream wait for the work enqueued on another so far.
 *
 * Device:    of both streams; the host does not wait. On the CPU both must be NULL, and nothing
 *            happens. A consumer that is being captured does not wait for a default stream.
 * Ownership: unchanged.
 * Errors:    as dlrs_stream_sync.
 * Threads:   any.
 * Source:    __dlpack__(stream=...) of the array API: the producer does this for the consumer.
 *
 * Safety:
 * Both are NULL or live streams of the device.
 */
DLRS_API
dlrs_status dlrs_stream_wait(DLDevice device,
                             void *consumer,
                             void *producer,
                             dlrs_error *error);

/**
 * Create an event.
 *
 * Device:    any whose backend has events.
 * Ownership: the caller owns *out and frees it by dlrs_event_destroy.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out; others as dlrs_stream_create.
 * Threads:   any.
 */
DLRS_API dlrs_status dlrs_event_create(DLDevice device, void **out, dlrs_error *error);

/**
 * Destroy an event; pending waits for it are not affected.
 *
 * Device:    of the event.
 * Ownership: event is invalid afterwards.
 * Errors:    DLRS_NULL_ARG: event; others as dlrs_stream_sync.
 * Threads:   any.
 *
 * Safety:
 * event came from dlrs_event_create for the device.
 */
DLRS_API dlrs_status dlrs_event_destroy(DLDevice device, void *event, dlrs_error *error);

/**
 * Record an event: it completes after the work enqueued on a stream so far.
 *
 * Device:    of both.
 * Ownership: unchanged.
 * Errors:    DLRS_NULL_ARG: event; others as dlrs_stream_sync.
 * Threads:   any.
 *
 * Safety:
 * event and stream are the device's.
 */
DLRS_API
dlrs_status dlrs_event_record(DLDevice device,
                              void *event,
                              void *stream,
                              dlrs_error *error);

/**
 * Make later work of a stream wait for an event; the host does not wait.
 *
 * Device:    of the stream; the event may be another device's of the same backend.
 * Ownership: unchanged.
 * Errors:    DLRS_NULL_ARG: event; others as dlrs_stream_sync.
 * Threads:   any.
 *
 * Safety:
 * event and stream are live.
 */
DLRS_API
dlrs_status dlrs_event_wait(DLDevice device,
                            void *event,
                            void *stream,
                            dlrs_error *error);

/**
 * Wait for an event.
 *
 * Device:    of the event.
 * Ownership: unchanged.
 * Errors:    DLRS_NULL_ARG: event; others as dlrs_stream_sync.
 * Threads:   any.
 *
 * Safety:
 * event came from dlrs_event_create for the device.
 */
DLRS_API dlrs_status dlrs_event_sync(DLDevice device, void *event, dlrs_error *error);

/**
 * Release a tensor after the work enqueued on a stream so far, and after its readiness event
 * (dlrs_ready_record).
 *
 * Device:    of the stream, which may still use the tensor.
 * Ownership: the caller's reference is taken and *tensor set to NULL. dlrs_release_drain releases
 *            it later; nothing else does, so call it now and then.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or *tensor. DLRS_REFCOUNT: a callback
 *            of the tensor that is being freed. DLRS_NOMEM: no memory. DLRS_CAPTURING: the stream
 *            is being captured, and its graph may use the tensor at any time; others as
 *            dlrs_stream_sync. On any error no ownership is taken.
 * Threads:   any.
 * Source:    dlpack.h: keep the tensor alive until asynchronous work on it is done.
 *
 * Safety:
 * stream is NULL or a live stream of the device.
 */
DLRS_API
dlrs_status dlrs_release_after_take(DLManagedTensorVersioned **tensor,
                                    DLDevice device,
                                    void *stream,
                                    dlrs_error *error);

/**
 * Release the tensors of dlrs_release_after_take whose streams have done their work, and which are
 * ready.
 *
 * Device:    any.
 * Ownership: their references are released: deleters run, on this thread.
 * Errors:    DLRS_MISALIGNED_STRUCT: out. A device that reports an error counts as done. For a
 *            backend without event_query the call waits.
 * Threads:   any; several may drain concurrently.
 * Source:    this library; for threads on which deleters may run.
 */
DLRS_API
dlrs_status dlrs_release_drain(uint64_t *out_waiting,
                               dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Readiness of tensors, and access between devices.
 */

/**
 * Record that the data of a tensor, and of all tensors that share its memory, is ready after the
 * work enqueued on a stream so far. A later call replaces it.
 *
 * DLPack's structs have no stream: a consumer can wait for a tensor that is still being computed
 * only if its producer records this. These wait for the record: dlrs_ready_wait and
 * dlrs_ready_sync; every function that takes copy options or compares, when it reads or writes the
 * tensor (as a managed struct: a bare DLTensor does not identify its memory); dlrs_py_export,
 * whose consumer's stream waits for it instead of for work_stream; dlrs_release_drain, which keeps
 * a tensor until it is ready. For a copy it replaces the source's stream where none is given, and
 * is waited for before the destination's. A copy with DLRS_COPY_ASYNC records again for its
 * destination, if that had a record. Without a record nothing changes.
 *
 * Device:    of the tensor; NULL is its default stream. Pinned memory: a stream of the driver, and
 *            later ones of the same device and context. On the CPU only NULL, and nothing is
 *            recorded.
 * Ownership: one event of the driver, created at the first call, destroyed with the memory.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor. DLRS_FOREIGN: tensor is not this
 *            library's. DLRS_REFCOUNT: a callback of the tensor that is being freed.
 *            DLRS_DEVICE_TYPE: its device has no backend. DLRS_UNSUPPORTED: the backend has no
 *            events. DLRS_STREAM: not a stream of the device. DLRS_CAPTURING: the stream is being
 *            captured, and its graph has not begun. DLRS_NOMEM: no memory. Classes 5 and 6: its
 *            driver. On any error the previous record stays.
 * Threads:   any, also on the same tensor; one of two concurrent calls is the later.
 * Source:    sync_event of Arrow's C device data interface; dmlc/dlpack#175.
 *
 * Safety:
 * stream is NULL or a live stream of the tensor's device.
 */
DLRS_API
dlrs_status dlrs_ready_record(DLManagedTensorVersioned *tensor,
                              void *stream,
                              dlrs_error *error);

/**
 * Make later work of a stream wait until a tensor is ready, as its producer recorded; without a
 * record nothing happens.
 *
 * Device:    of the stream; NULL is its default stream. On the CPU, and where another backend has
 *            recorded, the call waits. A stream that is being captured cannot wait for work
 *            outside the capture: the tensor must be ready.
 * Ownership: unchanged.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor. DLRS_DEVICE_TYPE, DLRS_DEVICE_ID: the
 *            device. DLRS_FOREIGN: tensor is not this library's, so has no record. DLRS_STREAM:
 *            not a stream of the device. DLRS_CAPTURING: the stream is being captured, and the
 *            tensor not ready. DLRS_UNSUPPORTED: the backend cannot wait. Classes 5 and 6: its
 *            driver.
 * Threads:   any, also on the same tensor.
 * Source:    as dlrs_ready_record.
 *
 * Safety:
 * stream is NULL or a live stream of the device.
 */
DLRS_API
dlrs_status dlrs_ready_wait(const DLManagedTensorVersioned *tensor,
                            DLDevice device,
                            void *stream,
                            dlrs_error *error);

/**
 * Wait until a tensor is ready, as its producer recorded; return at once without a record.
 * When the call returns, the CPU may access managed memory: without a record, it waits for the
 * default stream of its device.
 *
 * Device:    any.
 * Ownership: unchanged.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor. DLRS_FOREIGN: tensor is not this
 *            library's, and not in managed memory: it has no record. DLRS_UNSUPPORTED: the
 *            backend cannot wait. Classes 5 and 6: its driver.
 * Threads:   any, also on the same tensor.
 * Source:    as dlrs_ready_record.
 */
DLRS_API dlrs_status dlrs_ready_sync(const DLManagedTensorVersioned *tensor, dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * How copies are made.
 */

/** Source and destination may share memory: the result is as if copied through a temporary. */
#define DLRS_COPY_ALLOW_OVERLAP (1U << 0U)

/**
 * Elements are copied as bytes: any dtype is accepted, known or not, and opaque handles. Flags and
 * device must be known.
 */
#define DLRS_COPY_RAW_BYTES (1U << 1U)

/**
 * A copy by a device alone may return once it is enqueued. The caller keeps source and destination
 * alive, and the source's elements unchanged, until the stream has completed it (dlrs_stream_sync,
 * an event, or dlrs_release_after_take). Copies that need a staging buffer in host memory wait as
 * without this flag.
 */
#define DLRS_COPY_ASYNC (1U << 2U)

/**
 * For dlrs_cast and dlrs_fill only: values too large for the destination's dtype become its
 * largest finite value of that sign. Without it integers keep their low bits, and floats become
 * infinity, or NaN where there is none.
 */
#define DLRS_COPY_SATURATE (1U << 3U)

/**
 * Runs parts of a copy on the caller's own threads: calls `body(body_context, index)` once for
 * every `index` below `n`, on threads of its choice, and returns 0 after the last one has
 * returned. Not 0 means that it called none: the calling thread then does all the work. If it
 * returns 0 without having called all, the copy fails with DLRS_CALLBACK and the destination is
 * undefined.
 */
typedef int32_t (*dlrs_parallel_for_fn)(void *context,
                                        size_t n,
                                        void (*body)(void *body_context, size_t index),
                                        void *body_context);

/**
 * How to copy. All members but `struct_size` may be 0.
 *
 * There is no option to write to READ_ONLY data: to do so, describe it without the flag
 * (dlrs_copy_desc). The backend chooses the host memory of its staging buffers; scratch memory
 * comes from malloc.
 *
 * Order: a side has a stream, which is
 *
 *  its memory     without a name                      with src_stream or dst_stream
 *  of a device    the device's default stream         that one
 *  managed        the default stream of the device    that one
 *                 that the driver says it is on
 *  pinned         none                                that one
 *  of the CPU     none                                that one, of the other side's
 *                                                     device: the call waits for it
 *
 * and every function that takes these options follows one rule: the copy starts after the work
 * enqueued so far on the source's stream, and on the destination's stream, which may still be
 * reading; later work on the destination's stream sees the result. Without DLRS_COPY_ASYNC the
 * call also returns after it. Work on pinned memory is known only to the caller: give its stream,
 * or wait for it before. Where the CPU copies, or the two sides have different backends, the call
 * waits for streams; the CPU accesses managed memory of a device without concurrentManagedAccess
 * only while that device is idle. What dlrs_ready_record recorded for a side is waited for in any
 * case, and replaces the stream of a source where none is given.
 *
 * CUDA's 1 (legacy) and 2 (per thread) are streams of the device, or of the current context
 * where the memory is not a device's. A stream that is being captured does not wait for a default
 * stream: a graph cannot wait for work outside it. DLRS_CAPTURING: the copy would have to wait for
 * a capture. DLRS_STREAM: a stream is given for a side that has none.
 */
struct dlrs_copy_options {
  /** `sizeof(dlrs_copy_options)`. */
  uint32_t struct_size;
  /** `DLRS_COPY_*` bits. */
  uint32_t flags;
  /**
   * Most threads for one copy: 0 lets the library decide, by the processors that the calling
   * thread may run on; 1 uses only the caller's.
   */
  uint32_t threads;
  /** Must be 0. */
  uint32_t reserved;
  /** Runs the parts of a copy on the caller's own pool; NULL to spawn and join threads. */
  dlrs_parallel_for_fn parallel_for;
  /** Passed to `parallel_for`. */
  void *parallel_context;
  /** Stream that computes the source's elements; NULL: see Order. */
  void *src_stream;
  /** Stream that reads the destination and will use the result; NULL: see Order. */
  void *dst_stream;
};

/* ---------------------------------------------------------------------------------------------
 * Copies.
 */

/**
 * Copy the elements of one tensor into another of the same shape and dtype.
 *
 * Shape:     equal in rank and extents; nothing is broadcast. Any strides on both sides,
 *            including 0 (source only) and negative; elements may be unaligned.
 * Bytes:     only those of the destination's elements are written; packed sub-byte elements are
 *            written bit by bit; other elements in the same byte are not modified.
 * Device:    any pair, in the order of dlrs_copy_options. Between CPU, pinned and managed memory
 *            the CPU copies, unless a driver can access both sides and the copy is only enqueued.
 *            Else the backend of the destination's stream copies, or that of the source's; if
 *            neither can, the copy goes through a staging buffer in host memory.
 * Ownership: unchanged.
 * Flags:     dst must not be READ_ONLY; both must agree on IS_SUBBYTE_TYPE_PADDED for sub-byte
 *            types. No flag is changed.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: src or dst. DLRS_STRUCT_SIZE, DLRS_BAD_ARG:
 *            options. what dlrs_validate_managed reports at DLRS_LEVEL_STRICT, except
 *            DLRS_STRIDES_NULL, DLRS_SUBBYTE and an ordinal of pinned or managed memory; first for
 *            src, then for dst.
 *            DLRS_READ_ONLY: dst. DLRS_SHAPE_MISMATCH, DLRS_DTYPE_MISMATCH: dst differs.
 *            DLRS_UNSUPPORTED: opaque handles. DLRS_DEVICE_TYPE: the device has no backend; both
 *            first for src, then for dst.
 *            DLRS_OVERLAP_DST: elements of dst share memory, or that cannot be decided.
 *            DLRS_OVERLAP_SRC_DST: src and dst do, without DLRS_COPY_ALLOW_OVERLAP; copying a
 *            view onto itself is allowed and does nothing. DLRS_NOMEM: no temporary memory.
 *            DLRS_CALLBACK: options->parallel_for did not run all parts; dst is undefined then.
 *            Classes 5 and 6, DLRS_DEV_OOM: what the device's driver reports. On any error of
 *            classes 1 to 4 nothing has been written; after a device error dst is undefined.
 * Threads:   any; large copies create threads, or use options->parallel_for. Each may allocate up
 *            to 300 KiB by malloc until it returns, for copies that are not contiguous; if that
 *            fails the copy is slower.
 *
 * Safety:
 * No other thread writes the elements of src or accesses those of dst meanwhile.
 */
DLRS_API
dlrs_status dlrs_copy(const DLManagedTensorVersioned *src,
                      DLManagedTensorVersioned *dst,
                      const dlrs_copy_options *options,
                      dlrs_error *error);

/**
 * Copy the elements of one bare tensor into another of the same shape and dtype.
 *
 * Flags:     those of their managed tensors, or 0: READ_ONLY in dst_flags is an error. All else as
 *            dlrs_copy.
 *
 * Safety:
 * As dlrs_copy.
 */
DLRS_API
dlrs_status dlrs_copy_desc(const DLTensor *src,
                           uint64_t src_flags,
                           const DLTensor *dst,
                           uint64_t dst_flags,
                           const dlrs_copy_options *options,
                           dlrs_error *error);

/**
 * Describe how a copy would be done: by the CPU or which backend, its loops after simplification,
 * and the staging memory that an overlap or a device requires. Nothing is copied.
 *
 * Where the CPU copies, the text names the operation; whether the output goes through a staging
 * buffer, which fits into a cache, and whether by non-temporal stores; the number of threads; and
 * the instructions. The operations are internals of the library and not documented here.
 *
 * Shape:     as dlrs_copy.
 * Bytes:     as dlrs_dtype_format.
 * Device:    as dlrs_copy; a device's driver may be loaded.
 * Ownership: unchanged.
 * Flags:     as dlrs_copy_desc.
 * Errors:    as dlrs_dtype_format, and what dlrs_copy_desc reports before it calls a driver.
 * Threads:   any. The text is not a stable format: it may change with every version.
 *
 * Safety:
 * Elements are not accessed.
 */
DLRS_API
dlrs_status dlrs_copy_explain(const DLTensor *src,
                              uint64_t src_flags,
                              const DLTensor *dst,
                              uint64_t dst_flags,
                              const dlrs_copy_options *options,
                              char *buffer,
                              size_t capacity,
                              size_t *nbytes,
                              dlrs_error *error);

/**
 * Copy a tensor to a device into a new, compact, row-major tensor.
 *
 * Shape:     the source's, compact row-major; any strides are read.
 * Bytes:     256-byte aligned, byte_offset 0; exact to the bit. Unused bits of the last byte are
 *            0.
 * Device:    from any to any, as dlrs_copy.
 * Ownership: the caller owns *out; nothing of src is kept.
 * Flags:     IS_COPIED is set and READ_ONLY clear; IS_SUBBYTE_TYPE_PADDED is kept.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: src or out. DLRS_STRUCT_SIZE, DLRS_BAD_ARG:
 *            options. what dlrs_copy reports of src alone.
 *            DLRS_DEVICE_TYPE, DLRS_DEVICE_ID: src or device. DLRS_NOMEM, DLRS_DEV_OOM: no
 *            memory; DLRS_MISALIGNED with argument 0: an allocator's was not aligned. Classes 5
 *            and 6: what the device's driver reports.
 * Threads:   as dlrs_copy.
 * Source:    python_spec: IS_COPIED on every copy.
 *
 * Safety:
 * No other thread writes the elements of src meanwhile.
 */
DLRS_API
dlrs_status dlrs_clone(const DLManagedTensorVersioned *src,
                       DLDevice device,
                       const dlrs_copy_options *options,
                       DLManagedTensorVersioned **out,
                       dlrs_error *error);

/**
 * Return a tensor that is dense in a memory order: the tensor itself, or a dense copy.
 *
 * Shape:     unchanged. order is 'C', 'F', 'A' (C or F; copies to C) or 'K' (any dense order;
 *            copies keep the order of the strides).
 * Bytes:     a copy as dlrs_clone.
 * Device:    any; a copy stays on it.
 * Ownership: the caller owns *out: one more reference to src, or an independent copy.
 * Flags:     a copy as dlrs_clone; without one as dlrs_retain.
 * Errors:    as dlrs_clone, and DLRS_BAD_ARG: order. DLRS_FOREIGN: no copy is needed, and src was
 *            not made here: call dlrs_import_take first.
 * Threads:   as dlrs_copy.
 *
 * Safety:
 * As dlrs_clone.
 */
DLRS_API
dlrs_status dlrs_contiguous(DLManagedTensorVersioned *src,
                            int32_t order,
                            const dlrs_copy_options *options,
                            DLManagedTensorVersioned **out,
                            dlrs_error *error);

/**
 * Return a tensor that is on a device: the tensor itself, its memory as the CPU's, or a copy.
 *
 * Shape:     unchanged; a copy is compact row-major.
 * Bytes:     a copy as dlrs_clone.
 * Device:    from any to any, as dlrs_copy. Pinned and managed memory of a tensor of this library
 *            becomes the CPU's without a copy, after its stream, as in dlrs_copy_options, has
 *            written it.
 * Ownership: the caller owns *out: one more reference to src, a tensor that has one, or an
 *            independent copy.
 * Flags:     a copy as dlrs_clone; without one src's, without IS_COPIED, which src loses too.
 * Errors:    as dlrs_clone, and DLRS_BAD_ARG: copy is not -1 (never), 0 (if needed), 1 (always).
 *            DLRS_COPY_NEEDED: src is elsewhere and copy is -1.
 *            DLRS_FOREIGN: no copy is needed, and src was not made here.
 * Threads:   as dlrs_copy.
 * Source:    dl_device and copy of the array API's __dlpack__.
 *
 * Safety:
 * As dlrs_clone.
 */
DLRS_API
dlrs_status dlrs_to_device(DLManagedTensorVersioned *src,
                           DLDevice device,
                           int32_t copy,
                           const dlrs_copy_options *options,
                           DLManagedTensorVersioned **out,
                           dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Threads that wait for copies.
 */

/** How workers are made. All members but `struct_size` may be 0. */
struct dlrs_workers_options {
  /** `sizeof(dlrs_workers_options)`. */
  uint32_t struct_size;
  /**
   * Threads that share a copy, its caller's with them: at most 64; 0 for one on each processor
   * that the calling thread may run on, at most 16.
   */
  uint32_t threads;
  /**
   * Microseconds for which a worker without work keeps its processor before it sleeps: copies
   * in quick succession find it awake. 0 for 40.
   */
  uint32_t spin_us;
  /** Must be 0. */
  uint32_t reserved;
};

/**
 * Make threads that wait for copies, which then need not create and join theirs: in the options of
 * a copy, dlrs_workers_run is parallel_for and *out parallel_context. Its parts are as small as
 * 64 KiB; threads of the options, if not 0, is their most.
 *
 * Ownership: the caller owns *out and frees it by dlrs_workers_free.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out. DLRS_STRUCT_SIZE, DLRS_BAD_ARG: options.
 *            DLRS_NOMEM: no memory, or the system gives fewer threads; then none is left.
 * Threads:   any. Any may use the workers: those of a copy that runs do not help another, which
 *            its caller then does alone. The workers' signals are as those of a copy's threads. A
 *            forked child has no workers: there copies are made by their caller alone, and it may
 *            make workers of its own.
 */
DLRS_API
dlrs_status dlrs_workers_new(const dlrs_workers_options *options,
                             void **out,
                             dlrs_error *error);

/**
 * Free workers: their threads have ended when it returns.
 *
 * Ownership: workers is invalid afterwards; NULL does nothing. In a child that was forked after
 *            dlrs_workers_new only memory is freed.
 * Errors:    none.
 * Threads:   any but one that runs a part for these workers. A copy that uses them is waited for;
 *            none may begin.
 *
 * Safety:
 * workers is NULL or came from dlrs_workers_new.
 */
DLRS_API
void dlrs_workers_free(void *workers);

/**
 * Call body(body_context, index) for every index below n, on the calling thread and the workers:
 * what parallel_for of the copy options asks for (dlrs_parallel_for_fn).
 *
 * Ownership: unchanged.
 * Errors:    not 0, and nothing was called, if workers is NULL, in use by another thread or made
 *            by another process, or if n is below 2 or above 65534.
 * Threads:   any.
 *
 * Safety:
 * workers is NULL or came from dlrs_workers_new; body may be called so, on any
 * thread.
 */
DLRS_API
int32_t dlrs_workers_run(void *workers,
                         size_t n,
                         void (*body)(void *body_context, size_t index),
                         void *body_context);

#ifndef DLRS_NO_CAST
/* ---------------------------------------------------------------------------------------------
 * Conversion and filling.
 */

/**
 * Convert the elements of one tensor to the dtype of another of the same shape.
 *
 * Between all of bool, int and uint of 1 to 64 bits, float16/32/64, bfloat16, the eight float8,
 * the two float6, float4 and complex; lanes are converted one by one. Equal dtypes are copied bit
 * for bit, so this also converts between packed and padded sub-byte elements. If elements are not
 * contiguous on both sides, a buffer of at most 520 KiB per thread is allocated; if that fails the
 * conversion is slower.
 *
 * To a float:   one rounding from the exact value, to nearest, ties to even. Too large values
 *               become infinity; NaN in formats without infinity (float8_*fn, *fnuz); the largest
 *               finite value in float6 and float4, infinity too.
 * NaN:          stays NaN with its sign; from 16 bits down it is the format's one quiet NaN, but
 *               between a format and complex numbers of it every bit is kept; *fnuz have only
 *               0x80. Float6 and float4 have none: -0, and +0 for a negative NaN.
 * float8_e8m0fnu: a power of two, ties up; 2^-127 for all below it, 2^-126 for all between the
 *               two; NaN for zero, negative or too large values.
 * Float to int: towards zero; out of range saturates; NaN becomes 0.
 * Int to int:   the low bits (two's complement).
 * With DLRS_COPY_SATURATE: integers saturate, too. Values too large for a float become its largest
 *               finite value; in types of at most 16 bits, and from float64 to float32, infinity
 *               too. Wider types represent all values.
 * To bool:      whether it is not 0; NaN is not. From bool: 0 or 1, any byte but 0 being true.
 * Complex:      the imaginary part is dropped, except that to bool either part counts; from a
 *               real dtype it is 0.
 *
 * Shape:     equal in rank and extents, lanes too; nothing is broadcast. Any strides on both
 *            sides, including 0 (source only) and negative; elements may be unaligned.
 * Bytes:     only those of the destination's elements are written; packed sub-byte elements bit by
 *            bit; the unused bits of padded ones become 0, except where both sides are padded and
 *            of one dtype, whose bytes are copied unchanged.
 * Device:    both accessible by the CPU: CPU, pinned, managed.
 * Ownership: unchanged.
 * Flags:     dst must not be READ_ONLY. IS_SUBBYTE_TYPE_PADDED may differ. None is changed.
 * Errors:    as dlrs_copy, but DLRS_DTYPE_MISMATCH is only for different lanes. DLRS_BAD_ARG:
 *            options, also for DLRS_COPY_RAW_BYTES.
 *            DLRS_OVERLAP_SRC_DST: memory is shared, without DLRS_COPY_ALLOW_OVERLAP.
 *            On any error nothing has been written.
 * Threads:   any; large ones use more threads as dlrs_copy does. The thread's rounding mode,
 *            denormal mode and floating-point exception flags are neither used nor changed.
 * Source:    the casts of NumPy and ml_dtypes, bit for bit where they round once and the result is
 *            no NaN.
 *
 * Safety:
 * As dlrs_copy.
 */
DLRS_API
dlrs_status dlrs_cast(const DLManagedTensorVersioned *src,
                      DLManagedTensorVersioned *dst,
                      const dlrs_copy_options *options,
                      dlrs_error *error);

/**
 * Write one value to every element of a tensor.
 *
 * Shape:     any strides without shared memory of elements; size zero is allowed.
 * Bytes:     value points to one element of value_dtype, all its lanes, unaligned; a sub-byte one
 *            in the low bits. It is converted as by dlrs_cast, or copied bit for bit if the dtype
 *            is dst's: a double fills a tensor of any dtype.
 * Device:    accessible by the CPU: CPU, pinned, managed.
 * Ownership: unchanged.
 * Flags:     dst must not be READ_ONLY. None is changed.
 * Errors:    DLRS_NULL_ARG: dst or value. DLRS_MISALIGNED_STRUCT: dst. DLRS_STRUCT_SIZE,
 *            DLRS_BAD_ARG: options. what dlrs_copy reports of src, for dst. DLRS_DTYPE_CODE,
 *            DLRS_DTYPE_BITS, DLRS_DTYPE_LANES: value_dtype.
 *            DLRS_DTYPE_MISMATCH: its lanes are not dst's. DLRS_READ_ONLY, DLRS_UNSUPPORTED,
 *            DLRS_DEVICE_TYPE, DLRS_OVERLAP_DST: dst. DLRS_OVERLAP_SRC_DST: value lies in dst,
 *            without DLRS_COPY_ALLOW_OVERLAP; except where it is read first, because it is
 *            converted or of sub-byte size, and dst's elements have at most 128 bits.
 *            DLRS_NOMEM: no temporary memory. On any error nothing has been written.
 * Threads:   any; large fills use threads as dlrs_copy.
 *
 * Safety:
 * value is readable, and no other thread accesses the elements of dst meanwhile.
 */
DLRS_API
dlrs_status dlrs_fill(DLManagedTensorVersioned *dst,
                      const void *value,
                      DLDataType value_dtype,
                      const dlrs_copy_options *options,
                      dlrs_error *error);
#endif  /* DLRS_NO_CAST */

#ifndef DLRS_NO_CAST
/* ---------------------------------------------------------------------------------------------
 * Comparison.
 */

/** Elements are equal if their bits are: -0 is not 0, and a NaN equals itself. */
#define DLRS_EQUAL_BITS 1

/** Elements are equal if their values are: -0 is 0, and NaN is not equal to anything. */
#define DLRS_EQUAL_VALUES 2

/** As DLRS_EQUAL_VALUES, but any NaN is equal to any other. */
#define DLRS_EQUAL_VALUES_OR_NAN 3

/**
 * Return whether two tensors have the same shape and equal elements.
 *
 * Shape:     different shapes give 0, without an error; any strides; tensors of size zero are
 *            equal. Elements that a stride of 0 repeats are compared once.
 * Bytes:     level is DLRS_EQUAL_BITS, DLRS_EQUAL_VALUES or DLRS_EQUAL_VALUES_OR_NAN. The values
 *            of float, complex and bool (any byte but 0 is true) differ from their bits. Of
 *            complex elements, both parts are equal, each for itself. *out becomes 1 or 0.
 * Device:    both accessible by the CPU: CPU, pinned, managed. For managed memory the call waits
 *            for its device's default stream.
 * Ownership: unchanged.
 * Flags:     IS_SUBBYTE_TYPE_PADDED may differ; the unused bits of padded elements are ignored.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: a, b or out. DLRS_BAD_ARG: level.
 *            what dlrs_copy reports of src; first for a, then for b.
 *            DLRS_DTYPE_MISMATCH: convert one with dlrs_cast. DLRS_UNSUPPORTED: opaque handles.
 *            DLRS_DEVICE_TYPE: not accessible by the CPU. On any error *out is not modified.
 * Threads:   any.
 * Source:    array_equal of NumPy, with and without equal_nan; to NumPy any two complex numbers
 *            with a NaN in either part are equal then.
 *
 * Safety:
 * No other thread writes the elements meanwhile.
 */
DLRS_API
dlrs_status dlrs_equal(const DLManagedTensorVersioned *a,
                       const DLManagedTensorVersioned *b,
                       int32_t level,
                       int32_t *out,
                       dlrs_error *error);

/**
 * Compute the largest absolute difference of elements at the same index.
 *
 * Shape:     equal in rank and extents; any strides. For tensors of size zero *out becomes 0.
 *            Elements that strides of 0 repeat in both are compared once.
 * Bytes:     computed in double; for integers exact and rounded once. Equal elements differ by 0,
 *            infinities and NaNs too; where just one of the two is NaN, *out becomes NaN, so that
 *            `*out <= tolerance` is false. Of complex elements, the larger difference of the
 *            parts. True and false differ by 1.
 * Errors:    DLRS_SHAPE_MISMATCH: the two differ. All else as dlrs_equal, but for level and
 *            its source.
 *
 * Safety:
 * As dlrs_equal.
 */
DLRS_API
dlrs_status dlrs_max_diff(const DLManagedTensorVersioned *a,
                          const DLManagedTensorVersioned *b,
                          double *out,
                          dlrs_error *error);
#endif  /* DLRS_NO_CAST */

/* ---------------------------------------------------------------------------------------------
 * Batched copies.
 */

/**
 * Copy several tensors; nothing is written unless every pair can be copied.
 *
 * Shape:     src and dst are arrays of n tensors, possibly NULL when n is 0; each pair as in
 *            dlrs_copy.
 * Bytes:     as dlrs_copy. No dst may share memory with a tensor of another pair: this is not
 *            checked, and the order of the pairs is undefined.
 * Device:    as dlrs_copy. Successive pairs of the same devices, streams and dlrs_ready_record are
 *            ordered once and waited for once, whatever their number.
 * Errors:    as dlrs_copy for every pair, in the order of the pairs. When a pair is at fault and
 *            failed is not NULL, *failed is its index; else *failed is n or not modified.
 *            On any error but a device's nothing has been written. After a device's any dst may
 *            have been; nothing is pending, unless DLRS_COPY_ASYNC was given. All else as
 *            dlrs_copy.
 *
 * Safety:
 * As dlrs_copy, for every pair; no other thread modifies the structs meanwhile.
 */
DLRS_API
dlrs_status dlrs_copy_batch(uint64_t n,
                            const DLManagedTensorVersioned *const *src,
                            DLManagedTensorVersioned *const *dst,
                            const dlrs_copy_options *options,
                            uint64_t *failed,
                            dlrs_error *error);

/* ---------------------------------------------------------------------------------------------
 * Names of dtypes and devices.
 */

/** Dtype code of `dlpack.h` newer than v1.3: complex, two bfloat16, real part first, so 32 bits. */
#define DLRS_CODE_BCOMPLEX 18

/** Device type of `dlpack.h` newer than v1.3: memory of a Google TPU. */
#define DLRS_CODE_TPU 19

/** Device type of `dlpack.h` newer than v1.3: host memory, pinned for a Google TPU. */
#define DLRS_CODE_TPU_HOST 20

/** Device type of `dlpack.h` newer than v1.3: memory of a Huawei Ascend NPU. */
#define DLRS_CODE_ASCEND 21

/**
 * Parse the name of a dtype, such as "float32", "uint4", "bfloat16" or "int8x4".
 *
 * Bytes:     nbytes bytes of text are read; no NUL is needed.
 * Ownership: nothing is kept.
 * Errors:    DLRS_NULL_ARG: text or out. DLRS_MISALIGNED_STRUCT: out.
 *            DLRS_BAD_ARG: nbytes exceeds the address space.
 *            DLRS_PARSE: not a name; value is the index of the byte at fault.
 *            DLRS_DTYPE_CODE, DLRS_DTYPE_BITS, DLRS_DTYPE_LANES: a name with impossible numbers.
 *            On any error *out is not modified.
 * Threads:   any; independent of the locale.
 * Source:    the names of NumPy and ml_dtypes; the text must match exactly, without spaces. Lanes
 *            other than 1 follow as "x4". Unknown codes are written
 *            "unknown(code=200)7x3".
 */
DLRS_API
dlrs_status dlrs_dtype_parse(const char *text,
                             size_t nbytes,
                             DLDataType *out,
                             dlrs_error *error);

/**
 * Write the name of a dtype.
 *
 * Bytes:     at most capacity bytes are written, a NUL included; *nbytes, when nbytes is not
 *            NULL, is the length of the whole name without NUL. A NULL buffer with capacity 0
 *            only returns this length.
 * Ownership: nothing is kept.
 * Errors:    DLRS_NULL_ARG: buffer is NULL and capacity is not 0. DLRS_MISALIGNED_STRUCT: nbytes.
 *            DLRS_BAD_ARG: capacity exceeds the address space.
 *            DLRS_BUF_SMALL: the name is truncated, and still ends with NUL.
 * Threads:   any; independent of the locale.
 * Source:    see dlrs_dtype_parse, which accepts every name written here.
 */
DLRS_API
dlrs_status dlrs_dtype_format(DLDataType dtype,
                              char *buffer,
                              size_t capacity,
                              size_t *nbytes,
                              dlrs_error *error);

/**
 * Write the name of a device.
 *
 * Source:    the names of torch and JAX. All else as dlrs_dtype_format.
 */
DLRS_API
dlrs_status dlrs_device_format(DLDevice device,
                               char *buffer,
                               size_t capacity,
                               size_t *nbytes,
                               dlrs_error *error);

#ifndef DLRS_NO_PRINT
/* ---------------------------------------------------------------------------------------------
 * Tensors as text.
 */

/** How much to print. A member that is 0 means its default. */
struct dlrs_print_options {
  /** `sizeof(dlrs_print_options)`. */
  uint32_t struct_size;
  /** Elements printed at each edge of a dimension of a large tensor; 0 for 3. */
  uint32_t edge_items;
  /** A tensor with more elements than this is large; 0 for 1000. */
  uint64_t threshold;
};

/**
 * Describe a bare tensor, and print its values as nested lists.
 *
 * One line describes it; then each row is a line. Integers are decimal, truth values True and
 * False, floats the shortest decimal numbers that are read back as the same float64 or float32;
 * narrower floats are written like the float32 of the same value. Complex numbers are 1.0-2.0j;
 * handles and elements of unknown dtypes are hexadecimal; "..." stands for what is left out.
 *
 * Shape:     any; large tensors are summarised. Invalid extents and strides are printed, with a
 *            line that describes the error instead of values.
 * Bytes:     as dlrs_dtype_format.
 * Device:    values are printed if the CPU can access them; for managed memory the call waits for
 *            its device's default stream.
 * Ownership: unchanged; nothing is kept.
 * Flags:     those of its managed tensor, or 0.
 * Errors:    as dlrs_dtype_format. DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor.
 *            DLRS_STRUCT_SIZE: options. DLRS_NDIM, DLRS_SHAPE_NULL, DLRS_DTYPE_BITS,
 *            DLRS_DTYPE_LANES: nothing to describe.
 * Threads:   any; no other thread writes the elements meanwhile.
 */
DLRS_API
dlrs_status dlrs_tensor_to_string(const DLTensor *tensor,
                                  uint64_t flags,
                                  const dlrs_print_options *options,
                                  char *buffer,
                                  size_t capacity,
                                  size_t *nbytes,
                                  dlrs_error *error);

/**
 * Describe a versioned tensor, and print its values as nested lists.
 *
 * Flags:     its own.
 * Errors:    DLRS_VERSION: the major version is not 1. All else as dlrs_tensor_to_string.
 */
DLRS_API
dlrs_status dlrs_managed_to_string(const DLManagedTensorVersioned *tensor,
                                   const dlrs_print_options *options,
                                   char *buffer,
                                   size_t capacity,
                                   size_t *nbytes,
                                   dlrs_error *error);
#endif  /* DLRS_NO_PRINT */

/* ---------------------------------------------------------------------------------------------
 * Dtypes in other notations: buffer protocol, array interface, Arrow.
 */

/** Notations of dtypes in other interfaces. */
enum dlrs_notation {
  /** The buffer protocol and the module struct: `f`, `<d`, `Zf`, `?`, `4f`. */
  DLRS_NOTATION_PEP3118 = 1,
  /** `__array_interface__` and `__cuda_array_interface__`: `<f4`, `|b1`, `<c8`. */
  DLRS_NOTATION_TYPESTR = 2,
  /** Arrow's C data interface: `f`, `g`, `c`, `C`. */
  DLRS_NOTATION_ARROW = 3,
};

/**
 * Write a dtype in the notation of the buffer protocol, the array interface or Arrow.
 *
 * Errors:    DLRS_BAD_ARG: notation (a dlrs_notation); what dlrs_validate reports for a dtype;
 *            DLRS_UNSUPPORTED: it has no name in the notation. All else as dlrs_dtype_format.
 * Source:    PEP 3118, the array interface of NumPy, and format strings of Arrow.
 */
DLRS_API
dlrs_status dlrs_dtype_format_as(DLDataType dtype,
                                 int32_t notation,
                                 char *buffer,
                                 size_t capacity,
                                 size_t *nbytes,
                                 dlrs_error *error);

/**
 * Return the dtype of a kind and an item size of the array interface: 'f' of 4 bytes.
 *
 * Bytes:     itemsize is that of one item; native byte order.
 * Ownership: *out is the caller's.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out. DLRS_UNSUPPORTED: the kind is none of 'b'
 *            (bool), 'i', 'u', 'f' and 'c', or DLPack does not have the size, such as long double.
 *            On any error *out is not modified.
 * Threads:   any.
 * Source:    the typestr of NumPy's array interface, without the byte order.
 */
DLRS_API
dlrs_status dlrs_dtype_from_kind(int32_t kind,
                                 uint32_t itemsize,
                                 DLDataType *out,
                                 dlrs_error *error);

/**
 * Return the kind and the item size of a dtype in the array interface.
 *
 * Bytes:     *itemsize is that of one item.
 * Ownership: *kind and *itemsize are the caller's.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: kind, itemsize.
 *            what dlrs_validate reports for a dtype. DLRS_UNSUPPORTED: it has no kind, such as
 *            bfloat16, float8_e4m3fn, types of less than a byte, and lanes other than 1; the field
 *            is code, bits or lanes.
 *            On any error nothing is written.
 * Threads:   any.
 * Source:    see dlrs_dtype_from_kind, which accepts these values.
 */
DLRS_API
dlrs_status dlrs_dtype_to_kind(DLDataType dtype,
                               int32_t *kind,
                               uint32_t *itemsize,
                               dlrs_error *error);

#ifndef DLRS_NO_PYTHON
/* ---------------------------------------------------------------------------------------------
 * DLPack's C exchange API: the allocator of this library.
 */

/**
 * Allocate a tensor like a prototype: the managed_tensor_allocator of an exchange API table.
 *
 * Shape:     as dlrs_tensor_new_like.
 * Bytes:     as dlrs_tensor_new_like.
 * Device:    as dlrs_tensor_new_like; no stream waits.
 * Ownership: on 0 the caller owns *out; on -1 *out is NULL.
 * Flags:     0.
 * Errors:    -1, after SetError(error_ctx, kind, message) was called once, if it is not NULL; the
 *            kinds are those of dlrs_error_forward. Python is not called.
 * Threads:   any, attached to Python or not.
 * Source:    DLPackManagedTensorAllocator in dlpack.h.
 */
DLRS_API
int dlrs_managed_tensor_allocator(DLTensor *prototype,
                                  DLManagedTensorVersioned **out,
                                  void *error_ctx,
                                  dlrs_set_error_fn SetError);
#endif  /* DLRS_NO_PYTHON */

#ifndef DLRS_NO_PYTHON
/* ---------------------------------------------------------------------------------------------
 * Stream numbers of `__dlpack__`.
 */

/** The stream number that stands for Python's `None`. */
#define DLRS_PY_STREAM_NONE INT64_MIN

/**
 * Convert the `stream` argument of `__dlpack__` into a stream handle.
 *
 * Device:    CUDA, its managed and pinned memory: None and 1 are the legacy default stream, 2 the
 *            per-thread one. ROCm, its pinned memory: None and 0 are the default stream; 1 and 2
 *            are errors. Elsewhere None is the default. Larger numbers are the handle; -1 requests
 *            no synchronization. In other host memory there are only None and -1.
 * Ownership: *out is a handle of the device's API; NULL is its default stream. For CUDA's default
 *            streams it is the handle 1 or 2, independent of compiler flags.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out or sync.
 *            DLRS_STREAM: the number is invalid on this device. On any error nothing is written.
 * Threads:   any; needs no Python.
 * Source:    the array API standard's `__dlpack__`. *sync is 0 for -1, else 1.
 */
DLRS_API
dlrs_status dlrs_stream_from_py(int64_t number,
                                DLDevice device,
                                void **out,
                                int32_t *sync,
                                dlrs_error *error);

/**
 * Convert a stream handle into a `stream` argument of `__dlpack__`.
 *
 * Device:    as dlrs_stream_from_py; NULL is the device's default stream.
 * Ownership: nothing is kept.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out.
 *            DLRS_STREAM: the stream has no number on this device. *out is then not modified.
 * Threads:   any; needs no Python.
 * Source:    the array API standard's `__dlpack__`. DLRS_PY_STREAM_NONE is to be passed as None.
 */
DLRS_API
dlrs_status dlrs_stream_to_py(void *stream,
                              DLDevice device,
                              int64_t *out,
                              dlrs_error *error);
#endif  /* DLRS_NO_PYTHON */

#ifndef DLRS_NO_PYTHON
/* ---------------------------------------------------------------------------------------------
 * Python: capsules, and export and import by `__dlpack__`. The library does not link libpython.
 */

/**
 * Put a tensor into a capsule named "dltensor_versioned".
 *
 * Shape:     unchanged. A foreign tensor without deleter, manager_ctx or strides is boxed in one
 *            that has them, which some consumers need.
 * Bytes:     data and byte_offset stay as they are.
 * Device:    any; no stream waits.
 * Ownership: on success *tensor is taken and set to NULL, and *out is a new reference. If the
 *            capsule is not consumed, its destructor calls the tensor's deleter.
 * Flags:     unchanged.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor, *tensor, out.
 *            DLRS_VERSION: major version is not 1. DLRS_UNSUPPORTED: there is no Python in this
 *            process, it is not running, or this thread is not attached to it.
 *            DLRS_CALLBACK: Python raised an exception, which stays set.
 *            when it must be boxed, what dlrs_import_take reports at DLRS_LEVEL_STRUCT.
 * Threads:   attached to Python (holding its lock, where it has one).
 * Source:    python_spec: the producer names the capsule and frees a tensor that is not consumed.
 */
DLRS_API
dlrs_status dlrs_py_capsule_new_take(DLManagedTensorVersioned **tensor,
                                     void **out,
                                     dlrs_error *error);

/**
 * Put a legacy tensor into a capsule named "dltensor".
 *
 * Shape:     unchanged.
 * Device:    any; no stream waits. If the host cannot access the data, the destructor checks more
 *            than the name: TensorFlow calls the deleter of a tensor that it rejects, and leaves
 *            the capsule's name.
 * Ownership: a foreign tensor is boxed, so its deleter may be NULL.
 * Flags:     the legacy struct has none.
 * Errors:    when it is boxed, what dlrs_validate reports at DLRS_LEVEL_STRUCT; no DLRS_VERSION.
 *            All else as dlrs_py_capsule_new_take.
 * Source:    python_spec: max_version None requests the legacy struct.
 */
DLRS_API
dlrs_status dlrs_py_capsule_new_legacy_take(DLManagedTensor **tensor,
                                            void **out,
                                            dlrs_error *error);

/**
 * Take the tensor out of a capsule, of either kind.
 *
 * Shape:     unchanged; a legacy tensor's NULL strides become compact row-major.
 * Bytes:     data and byte_offset stay as they are.
 * Device:    any; no stream waits.
 * Ownership: the caller owns *out, and the capsule is renamed: "used_dltensor_versioned" or
 *            "used_dltensor". A legacy tensor is boxed in a versioned one. On error the capsule
 *            keeps its tensor and its name.
 * Flags:     kept; those of a legacy tensor are legacy_flags, for its struct has none. NumPy
 *            treats legacy tensors as DLPACK_FLAG_BITMASK_READ_ONLY.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: capsule or out. DLRS_FLAGS: legacy_flags.
 *            DLRS_BAD_ARG: no capsule of DLPack, or it was consumed before.
 *            DLRS_VERSION: major version is not 1; the capsule will call the deleter.
 *            DLRS_UNSUPPORTED: as dlrs_py_capsule_new_take. for a legacy tensor, what
 *            dlrs_validate reports at DLRS_LEVEL_STRUCT. A versioned one is not validated: call
 *            dlrs_validate_managed, or use dlrs_py_import.
 * Threads:   attached to Python. Of several threads that consume one capsule at once one gets the
 *            tensor, without the GIL too; this does not hold for consumers in other libraries.
 * Source:    python_spec: the consumer renames the capsule.
 *
 * Safety:
 * `capsule` is a live Python object.
 */
DLRS_API
dlrs_status dlrs_py_capsule_consume(void *capsule,
                                    uint64_t legacy_flags,
                                    DLManagedTensorVersioned **out,
                                    dlrs_error *error);

/** The arguments of `__dlpack__`: borrowed objects; NULL and None are the default. */
struct dlrs_py_request {
  /** `sizeof(dlrs_py_request)`. */
  uint32_t struct_size;
  /** `stream`: an integer, see dlrs_stream_from_py. */
  void *stream;
  /** `max_version`: two integers; None requests the legacy struct. */
  void *max_version;
  /** `dl_device`: two integers, device type and ordinal. */
  void *dl_device;
  /** `copy`: true always, false never, None if needed. */
  void *copy;
  /** From the producer: the stream that computes the data; NULL for the default one. */
  void *work_stream;
};

/**
 * Implement `__dlpack__(stream, max_version, dl_device, copy)` for a tensor of this library.
 *
 * Shape:     unchanged; a copy is dense in the order of the strides.
 * Bytes:     data and byte_offset stay as they are, unless a copy is made.
 * Device:    the tensor's own; for another one the data is copied as by dlrs_clone, synchronously.
 *            Else the consumer's stream is made to wait for work_stream, or for the record of
 *            dlrs_ready_record instead; for a consumer in host memory, which has no stream, the
 *            call waits. With a copy to host memory, stream is one of the tensor's device
 *            (dlpack#152). Pinned and managed memory becomes the CPU's without a copy, as in
 *            dlrs_to_device.
 * Ownership: *out is a new reference to a capsule with its own reference, "dltensor_versioned"
 *            when max_version is 1.0 or newer, else "dltensor". The caller keeps its reference.
 * Flags:     kept; a copy has IS_COPIED and no READ_ONLY.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or out. DLRS_STRUCT_SIZE: request.
 *            DLRS_FOREIGN, DLRS_VERSION: the tensor was not made here.
 *            DLRS_BAD_ARG: max_version or dl_device. DLRS_STREAM: stream does not fit the device.
 *            DLRS_COPY_NEEDED: copy is false and the device another. DLRS_READ_ONLY, DLRS_FLAGS:
 *            the legacy struct lacks the flag; a copy can be legacy. DLRS_DEVICE_TYPE,
 *            DLRS_UNSUPPORTED: no backend can copy so, or has streams. DLRS_NOMEM: no memory;
 *            DLRS_MISALIGNED: as dlrs_clone. Classes 5 and 6: the driver. DLRS_CALLBACK: Python
 *            raised an exception, which stays set; dlrs_py_error_set_as raises one for every other
 *            failure.
 * Threads:   attached to Python.
 * Source:    the array API standard's `__dlpack__`.
 *
 * Safety:
 * The request's objects are NULL or live.
 */
DLRS_API
dlrs_status dlrs_py_export(DLManagedTensorVersioned *tensor,
                           const dlrs_py_request *request,
                           void **out,
                           dlrs_error *error);

/** Treat legacy tensors as writable: their struct lacks the flag, and read-only is the default. */
#define DLRS_PY_LEGACY_WRITABLE (1U << 0U)

/**
 * Of `protocols`: the exchange API of the object's type. `__dlpack__` is called instead where a
 * tensor requires gradients or has complex elements: PyTorch's API exports what its `__dlpack__`
 * rejects.
 */
#define DLRS_PY_EXCHANGE_API (1U << 0U)

/** Of `protocols`: `__dlpack__`. */
#define DLRS_PY_DUNDER_DLPACK (1U << 1U)

/** Of `protocols`: the object is a capsule of DLPack. */
#define DLRS_PY_CAPSULE (1U << 2U)

/** Of `protocols`: the buffer protocol. */
#define DLRS_PY_BUFFER (1U << 3U)

/** Of `protocols`: `__cuda_array_interface__` and `__array_interface__`. */
#define DLRS_PY_ARRAY_INTERFACE (1U << 4U)

/** How to import a Python object. All members but `struct_size` may be 0. */
struct dlrs_py_import_options {
  /** `sizeof(dlrs_py_import_options)`. */
  uint32_t struct_size;
  /** `DLRS_PY_*` bits. */
  uint32_t flags;
  /**
   * The stream that will use the tensor, as dlrs_stream_to_py returns it; 0 or
   * DLRS_PY_STREAM_NONE for the default stream. One of dl_device, if that is given. Not passed
   * to the producer for CPU or pinned memory.
   */
  int64_t stream;
  /** The device of the result; device_type 0 for that of the object. */
  DLDevice dl_device;
  /** Requirements on the tensor, and whether to copy; NULL for the defaults. */
  const dlrs_import_options *import_options;
  /**
   * The protocols to try, in the order of their bits; 0 is all of them. A from_dlpack uses
   * DLRS_PY_EXCHANGE_API and DLRS_PY_DUNDER_DLPACK.
   */
  uint32_t protocols;
  /** Must be 0. */
  uint32_t reserved;
  /**
   * `device` of a from_dlpack, a Python object: a pair of integers, or a name such as
   * "cuda:1"; NULL and None leave dl_device.
   */
  void *device;
  /**
   * `copy` of a from_dlpack, a Python object: True or False; NULL and None leave
   * import_options->copy.
   */
  void *copy;
};

/**
 * Import the tensor of a Python object, by any of the protocols.
 *
 * Shape:     as dlrs_import_take.
 * Bytes:     as dlrs_import_take.
 * Device:    the object's; options->dl_device is passed to the producer, and if it does not copy,
 *            the library does. A copy that no backend supports is requested from the producer by
 *            `copy=True`; its result must be other memory, on the requested device. The stream of
 *            options is passed to the producer and waits for the producer's; for a capsule, or an
 *            object without `__dlpack_device__`, it waits for the default stream. A copy by the
 *            library is ordered by it too.
 * Ownership: the caller owns *out, which keeps the object's data alive. It may be released on any
 *            thread; Python references are then released attached to their interpreter, or leaked
 *            if that has ended. Before Python 3.15 no interpreter but the main one may end while
 *            another thread is releasing its objects.
 * Flags:     the producer's; see DLRS_PY_LEGACY_WRITABLE for legacy tensors.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: object or out.
 *            DLRS_STRUCT_SIZE, DLRS_BAD_ARG: options.
 *            DLRS_CALLBACK: the object raised an exception, or one is raised here: AttributeError
 *            for an object with none of the protocols, TypeError for a device that is no pair of
 *            integers and no name, BufferError for a dtype of a buffer or array interface that
 *            DLPack cannot express. It stays set.
 *            DLRS_UNSUPPORTED: other contents of a buffer or array interface; no Python, as
 *            dlrs_py_capsule_new_take.
 *            DLRS_VERSION: major version is not 1. DLRS_COPY_NEEDED: see options.
 *            what dlrs_import_take reports.
 * Threads:   attached to Python.
 * Source:    the array API standard's from_dlpack. Tried in this order, if options allow: the
 *            exchange API of the type; `__dlpack__` with the keywords of 2023.12, then, after a
 *            TypeError, with fewer; a capsule itself; the buffer protocol; array interfaces. The
 *            struct that the object returns is used, regardless of the request.
 *
 * Safety:
 * `object` is a live Python object.
 */
DLRS_API
dlrs_status dlrs_py_import(void *object,
                           const dlrs_py_import_options *options,
                           DLManagedTensorVersioned **out,
                           dlrs_error *error);
#endif  /* DLRS_NO_PYTHON */

#ifndef DLRS_NO_PYTHON
/* ---------------------------------------------------------------------------------------------
 * Python: memory that a Python object owns, and the arguments of its `__dlpack__`.
 */

/**
 * Wrap memory that a Python object owns into a managed tensor.
 *
 * Ownership: the caller owns *out, which takes a reference to owner, a Python object, on success.
 *            It is released with the last reference to *out, on that thread, attached to the
 *            interpreter of this call meanwhile. If that interpreter or Python is ending or has
 *            ended, it is leaked.
 * Errors:    DLRS_NULL_ARG: owner. DLRS_UNSUPPORTED, DLRS_CALLBACK: as
 *            dlrs_py_capsule_new_take. All else as dlrs_tensor_wrap.
 * Threads:   attached to Python. *out may be released on any thread, attached or not.
 * Source:    "Producer" rules of dlpack.h; python_spec: a deleter may be called on any thread.
 *
 * Safety:
 * `owner` is a live Python object, and the memory is valid as long as it lives.
 */
DLRS_API
dlrs_status dlrs_py_wrap(const DLTensor *tensor,
                         uint64_t flags,
                         void *owner,
                         DLManagedTensorVersioned **out,
                         dlrs_error *error);

/**
 * Implement `__dlpack__(stream, max_version, dl_device, copy)` for memory that a Python object
 * owns.
 *
 * Shape:     as dlrs_py_wrap; a copy is dense in the order of the strides.
 * Bytes:     as dlrs_py_wrap, unless a copy is made.
 * Device:    as dlrs_py_export.
 * Ownership: *out is a new reference to a capsule, as dlrs_py_export's, whose tensor takes a
 *            reference to owner as dlrs_py_wrap's. It is dlrs_py_wrap and dlrs_py_export in one
 *            call, with one allocation besides the capsule.
 * Flags:     exactly flags; a copy has IS_COPIED and no READ_ONLY.
 * Errors:    as dlrs_py_wrap, and as dlrs_py_export.
 * Threads:   attached to Python.
 * Source:    the array API standard's `__dlpack__`.
 *
 * Safety:
 * As dlrs_py_wrap; the request's objects are NULL or live.
 */
DLRS_API
dlrs_status dlrs_py_export_desc(const DLTensor *tensor,
                                uint64_t flags,
                                void *owner,
                                const dlrs_py_request *request,
                                void **out,
                                dlrs_error *error);

/**
 * Read the arguments of a `__dlpack__(self, *, stream, max_version, dl_device, copy)`.
 *
 * Ownership: *out is the caller's, with its struct_size set before the call; its objects are
 *            borrowed from args, NULL for an omitted argument. work_stream becomes NULL.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: args, unless there are none; out.
 *            DLRS_STRUCT_SIZE: out. DLRS_UNSUPPORTED: as dlrs_py_capsule_new_take.
 *            DLRS_CALLBACK: TypeError is set, for a positional argument or a keyword that
 *            `__dlpack__` does not have, so that a consumer retries with fewer.
 *            On any error *out is not modified.
 * Threads:   attached to Python.
 * Source:    METH_FASTCALL | METH_KEYWORDS of CPython: args, nargs and kwnames are what such a
 *            method is called with, and kwnames is NULL or a tuple of names.
 *
 * Safety:
 * The arguments are those that Python has passed.
 */
DLRS_API
dlrs_status dlrs_py_request_parse(void *const *args,
                                  ptrdiff_t nargs,
                                  void *kwnames,
                                  dlrs_py_request *out,
                                  dlrs_error *error);
#endif  /* DLRS_NO_PYTHON */

#ifndef DLRS_NO_PYTHON
/* ---------------------------------------------------------------------------------------------
 * Python: tensors in private capsules, which no consumer takes.
 */

/**
 * Put a tensor into a private capsule, which no consumer takes: the base of an array.
 *
 * Shape:     unchanged.
 * Bytes:     data and byte_offset stay as they are.
 * Device:    any; no stream waits.
 * Ownership: on success *tensor is taken and set to NULL, and *out is a new reference to a capsule
 *            of that name, whose destructor releases the tensor. name is not copied: a static text
 *            of the caller, such as "mylib.tensor".
 * Flags:     unchanged.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor, *tensor, name, out.
 *            DLRS_BAD_ARG: name is one of DLPack's, under which consumers would take the tensor.
 *            DLRS_VERSION, DLRS_UNSUPPORTED, DLRS_CALLBACK: as dlrs_py_capsule_new_take.
 * Threads:   attached to Python.
 * Source:    capsules of CPython; python_spec: only capsules of DLPack's names are consumed.
 *
 * Safety:
 * `name` stays valid as long as the process.
 */
DLRS_API
dlrs_status dlrs_py_holder_new_take(DLManagedTensorVersioned **tensor,
                                    const char *name,
                                    void **out,
                                    dlrs_error *error);

/**
 * Return the tensor in a private capsule, as dlrs_py_holder_new_take makes them.
 *
 * Ownership: the tensor is borrowed from object, and valid as long as object is.
 * Errors:    none: NULL for any object but a capsule of that name that this library made, and
 *            where Python cannot be called; no exception is set.
 * Threads:   attached to Python.
 *
 * Safety:
 * `object` is NULL or a live Python object, `name` NULL or a text that ends with NUL.
 */
DLRS_API DLManagedTensorVersioned *dlrs_py_holder_get(void *object, const char *name);
#endif  /* DLRS_NO_PYTHON */

#ifndef DLRS_NO_PYTHON
/* ---------------------------------------------------------------------------------------------
 * Python: exceptions for failures.
 */

/** The exception for a failure. */
struct dlrs_py_kind {
  /** A status, or a class of them as its hundreds: 200 is all of 2xx. */
  dlrs_status status;
  /** The `dlrs_field` at fault, or DLRS_FIELD_NONE for any. */
  int32_t field;
  /** The name of a built-in exception: "BufferError". */
  const char *kind;
};

/** How a failure is raised. All members but `struct_size` may be 0. */
struct dlrs_py_error_options {
  /** `sizeof(dlrs_py_error_options)`. */
  uint32_t struct_size;
  /** The number of kinds. */
  uint32_t kinds_count;
  /** Exceptions in place of those of dlrs_error_forward; the first match is used. NULL for none. */
  const dlrs_py_kind *kinds;
  /**
   * Replaces function, argument and member at the start of the message, which then ends before
   * the name of the status. "" for nothing, NULL for the whole message.
   */
  const char *prefix;
};

/**
 * Raise the Python exception for a failure, with a framework's kinds and prefix, if any.
 *
 * Ownership: nothing is kept. NULL options are those of dlrs_error_forward.
 * Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: failure, options, options->kinds.
 *            DLRS_STRUCT_SIZE: failure is too short to contain a message; options. DLRS_BAD_ARG:
 *            the matching kind is no built-in exception; none is then set. DLRS_UNSUPPORTED: as
 *            dlrs_py_capsule_new_take. Where the failure is DLRS_CALLBACK and an exception is
 *            already set, that one stays.
 * Threads:   attached to Python.
 * Source:    the array API standard leaves most exceptions to each framework.
 *
 * Safety:
 * `failure` was filled by a function of this library, with its full `struct_size`; the texts of
 * options end with NUL.
 */
DLRS_API
dlrs_status dlrs_py_error_set_as(const dlrs_error *failure,
                                 const dlrs_py_error_options *options,
                                 dlrs_error *error);
#endif  /* DLRS_NO_PYTHON */

#ifdef __cplusplus
}  /* extern "C" */
#endif

#endif  /* DLPACK_RS_H_ */

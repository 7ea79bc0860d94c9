/*!
 * \file dlpack_rs.h
 * \brief libdlpack_rs: what DLPack leaves to each framework, as one C library.
 *
 * Generated from src/capi by `cargo run -p headers`; do not edit.
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

/** Version of this header as one number; dlrs_version() answers that of the library. */
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

/* DLPack 1.0 and 1.1, if such a dlpack.h was included before, lack these names. */
#if DLPACK_MINOR_VERSION < 2
typedef struct DLManagedTensorVersioned DLManagedTensorVersioned;
typedef struct DLPackExchangeAPI DLPackExchangeAPI;
#endif

#ifdef __cplusplus
extern "C" {
#endif



/**
 * What a function answers. 0 is success; `status / 100` is the class: 1 argument, 2 malformed
 * tensor, 3 policy, 4 resource, 5 unavailable or unsupported, 6 device, 9 internal. The numbers
 * are stable and never reused.
 */
enum dlrs_status_code {
  /** Success. */
  DLRS_OK = 0,
  /** A required pointer is NULL. */
  DLRS_NULL_ARG = 101,
  /** A pointer to a struct or array is not aligned for it. */
  DLRS_MISALIGNED_STRUCT = 102,
  /** `struct_size` is not one this library knows. */
  DLRS_STRUCT_SIZE = 103,
  /** An argument's value is outside what the function takes. */
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
  /** The dtype code is not one of DLPack 1.3. */
  DLRS_DTYPE_CODE = 213,
  /** The dtype's bits are not legal for its code. */
  DLRS_DTYPE_BITS = 214,
  /** The dtype's lanes are 0 or not legal. */
  DLRS_DTYPE_LANES = 215,
  /** An element of a packed sub-byte tensor would start inside a byte. */
  DLRS_SUBBYTE = 216,
  /** The device type is not one of DLPack 1.3, or not one the function serves. */
  DLRS_DEVICE_TYPE = 217,
  /** The device ordinal is negative, or does not exist. */
  DLRS_DEVICE_ID = 218,
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
  /** Other holders share the tensor, or the count of holders is exhausted. */
  DLRS_REFCOUNT = 306,
  /** The function was called from inside a callback that it is running. */
  DLRS_REENTRANT = 307,
  /** No view has the wanted shape: a copy is needed. */
  DLRS_NOT_VIEWABLE = 308,
  /** The layout, device or writability asked for needs a copy, which was forbidden. */
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
  /** The stream is being captured and the work cannot be. */
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
  /** A defect of this library or an impossible answer of a driver. */
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
  /** Another member of an options struct or table; `note` in the message says which. */
  DLRS_FIELD_OPTION = 15,
};

#ifdef __cplusplus
}  /* extern "C" */
#endif

#endif  /* DLPACK_RS_H_ */

//! `Status`: the return value of a function, its description and remedy.
#![allow(non_camel_case_types)]
#![forbid(unsafe_code)]

use core::ffi::CStr;

use crate::array::{Texts, starts};

/// Result of a function. 0 is success; `status / 100` is the class: 1 argument, 2 malformed tensor,
/// 3 policy, 4 resource, 5 unavailable or unsupported, 6 device, 9 internal. The numbers are stable
/// and never reused.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Success.
    DLRS_OK = 0,
    /// A required pointer is NULL.
    DLRS_NULL_ARG = 101,
    /// A pointer to a struct or array is not aligned for it.
    DLRS_MISALIGNED_STRUCT = 102,
    /// `struct_size` is not supported.
    DLRS_STRUCT_SIZE = 103,
    /// An argument's value is out of range.
    DLRS_BAD_ARG = 104,
    /// The caller's buffer is too small.
    DLRS_BUF_SMALL = 105,
    /// A text is not in the documented grammar.
    DLRS_PARSE = 106,
    /// The DLPack major version is not 1.
    DLRS_VERSION = 201,
    /// A flag bit is unknown or does not fit the tensor.
    DLRS_FLAGS = 202,
    /// `ndim` is negative or above 64.
    DLRS_NDIM = 203,
    /// `shape` is NULL although `ndim` is not 0.
    DLRS_SHAPE_NULL = 204,
    /// An extent is negative.
    DLRS_SHAPE_NEG = 205,
    /// `strides` is NULL although DLPack 1.2 and newer require it.
    DLRS_STRIDES_NULL = 206,
    /// The number of elements or bytes does not fit.
    DLRS_SIZE_OVERFLOW = 207,
    /// The strides reach outside the address space.
    DLRS_EXTENT_OVERFLOW = 208,
    /// The tensor reaches outside the memory given.
    DLRS_OUT_OF_BOUNDS = 209,
    /// `data` is NULL although there are elements.
    DLRS_DATA_NULL = 210,
    /// `byte_offset` leads outside the address space.
    DLRS_OFFSET = 211,
    /// The first element is not aligned as required.
    DLRS_MISALIGNED = 212,
    /// The dtype code is not known.
    DLRS_DTYPE_CODE = 213,
    /// The dtype's bits are not legal for its code.
    DLRS_DTYPE_BITS = 214,
    /// The dtype's lanes are 0 or not legal.
    DLRS_DTYPE_LANES = 215,
    /// An element of a packed sub-byte tensor would start inside a byte.
    DLRS_SUBBYTE = 216,
    /// The device type is not known, or the function does not support it.
    DLRS_DEVICE_TYPE = 217,
    /// The device ordinal is negative, or does not exist.
    DLRS_DEVICE_ID = 218,
    /// A stride in bytes is no multiple of the item size, which DLPack cannot express.
    DLRS_STRIDES_UNEVEN = 219,
    /// The data is read-only.
    DLRS_READ_ONLY = 301,
    /// Two shapes differ.
    DLRS_SHAPE_MISMATCH = 302,
    /// Two dtypes differ.
    DLRS_DTYPE_MISMATCH = 303,
    /// Elements of the destination share memory.
    DLRS_OVERLAP_DST = 304,
    /// Source and destination share memory.
    DLRS_OVERLAP_SRC_DST = 305,
    /// The tensor has other references, or the reference count is exhausted.
    DLRS_REFCOUNT = 306,
    /// The function was called from inside a callback that it is running.
    DLRS_REENTRANT = 307,
    /// No view has the requested shape: a copy is needed.
    DLRS_NOT_VIEWABLE = 308,
    /// The requested layout, device or writability needs a copy, which was forbidden.
    DLRS_COPY_NEEDED = 309,
    /// The tensor was not made by this library.
    DLRS_FOREIGN = 310,
    /// Memory is exhausted.
    DLRS_NOMEM = 401,
    /// Device memory is exhausted.
    DLRS_DEV_OOM = 402,
    /// A callback of the caller reported failure.
    DLRS_CALLBACK = 403,
    /// The combination is not supported.
    DLRS_UNSUPPORTED = 501,
    /// The driver library is not installed.
    DLRS_DRV_MISSING = 502,
    /// The driver is older than the oldest supported.
    DLRS_DRV_OLD = 503,
    /// Only the driver's stub library was found.
    DLRS_DRV_STUB = 504,
    /// The driver lacks a function.
    DLRS_DRV_SYMBOL = 505,
    /// The driver works but there is no device.
    DLRS_NO_DEVICE = 506,
    /// The driver failed to start.
    DLRS_DRV_INIT = 601,
    /// Direct access between two devices failed.
    DLRS_PEER = 602,
    /// The stream is not usable here.
    DLRS_STREAM = 603,
    /// The stream is being captured and the operation cannot be.
    DLRS_CAPTURING = 604,
    /// A kernel could not be loaded or launched.
    DLRS_LAUNCH = 605,
    /// The device reported a fault of asynchronous work.
    DLRS_ASYNC_FAULT = 606,
    /// The device context is lost.
    DLRS_CTX_LOST = 607,
    /// The process was forked after the driver started.
    DLRS_FORKED = 608,
    /// The driver is shutting down with the process.
    DLRS_SHUTDOWN = 609,
    /// A defect of this library or an impossible result from a driver.
    DLRS_INTERNAL = 901,
}

macro_rules! texts {
    ($($status:ident: $meaning:literal, $remedy:literal $(, $python:literal)?;)*) => {
        impl Status {
            /// Every status, in the order of the numbers.
            pub const ALL: &[Status] = &[$(Status::$status),*];
        }

        /// Name, description and remedy of every status, and Python's remedy where it differs: the
        /// only texts of it.
        const TEXTS: Texts = Texts(concat!(
            $(stringify!($status), "\0", $meaning, "\0", $remedy, "\0", $($python,)? "\0"),*
        ));
    };
}

texts! {
    DLRS_OK: "success", "";
    DLRS_NULL_ARG: "must not be NULL", "Pass a valid pointer.";
    DLRS_MISALIGNED_STRUCT: "pointer is not aligned for its type",
        "Pass the address of a properly aligned object.";
    DLRS_STRUCT_SIZE: "struct_size is too small",
        "Set struct_size to sizeof the struct before the call.";
    // Of dlrs_abi_check alone: every other use has a remedy of its own.
    DLRS_BAD_ARG: "value is out of range", "Compile with this library's headers.";
    DLRS_BUF_SMALL: "buffer is too small",
        "Give a buffer of the size reported, plus one for the NUL of a text.";
    DLRS_PARSE: "text cannot be parsed",
        "See the function's manual.";
    DLRS_VERSION: "DLPack major version is not 1",
        "Request version 1 from the producer; this tensor can only be released.";
    DLRS_FLAGS: "flag bits are unknown to DLPack 1.3 or do not apply here",
        "Clear them, or use a library that supports them.";
    DLRS_NDIM: "number of dimensions is out of range", "Use 0 to 64 dimensions.";
    DLRS_SHAPE_NULL: "shape is NULL although ndim is not 0",
        "Give ndim extents; only a 0-d tensor may leave shape NULL.", "Give a shape.";
    DLRS_SHAPE_NEG: "extent is negative", "Give every extent as 0 or more.";
    DLRS_STRIDES_NULL: "strides are NULL, which DLPack forbids since 1.2",
        "Fill the strides, or import the tensor with dlrs_import_take.",
        "Fill the strides.";
    DLRS_SIZE_OVERFLOW: "number of elements or bytes does not fit",
        "Check the extents: no memory is this large.";
    DLRS_EXTENT_OVERFLOW: "strides reach outside the address space",
        "Check strides (counted in elements) against shape and data.";
    DLRS_OUT_OF_BOUNDS: "reaches outside the memory given",
        "Check shape, strides and byte_offset against the allocation.";
    DLRS_DATA_NULL: "data is NULL although there are elements",
        "Only a tensor of size zero may have no data.";
    DLRS_OFFSET: "byte_offset leads outside the address space",
        "Give the bytes from data to element (0, ..., 0).";
    DLRS_MISALIGNED: "first element is not aligned as required",
        "Copy the tensor, or request a smaller alignment.";
    DLRS_DTYPE_CODE: "dtype code is unknown",
        "Use a code of dlpack.h; DLRS_LEVEL_LAYOUT and DLRS_COPY_RAW_BYTES accept any.",
        "Use a dtype of DTYPES.";
    DLRS_DTYPE_BITS: "dtype bits are not legal for the code",
        "Use a width that the code has.";
    DLRS_DTYPE_LANES: "dtype lanes are out of range", "Use 1 lane for scalars.";
    DLRS_SUBBYTE: "elements of a packed sub-byte type would start inside a byte",
        "Make a compact copy: DLPack has no bit offset.";
    DLRS_DEVICE_TYPE: "device type is unknown",
        "Use a DLDeviceType of dlpack.h.", "Use a name such as 'cpu' or 'cuda:0'.";
    DLRS_DEVICE_ID: "device ordinal is out of range",
        "The host has ordinal 0; other devices count from 0.";
    DLRS_STRIDES_UNEVEN: "stride in bytes is no multiple of the item size",
        "Copy the array first: strides count elements.";
    DLRS_READ_ONLY: "data is read-only",
        "Copy the tensor, or request a writable one from the producer.",
        "Write to a copy(), or ask the producer for a writable one.";
    DLRS_SHAPE_MISMATCH: "shapes differ", "Shapes must be equal; nothing is broadcast silently.";
    DLRS_DTYPE_MISMATCH: "dtypes differ",
        "Code, bits, lanes and padding must be equal; use a cast to convert.",
        "Convert one of the two by astype().";
    DLRS_OVERLAP_DST: "elements of the destination share memory",
        "Write to a tensor whose elements are distinct.";
    DLRS_OVERLAP_SRC_DST: "source and destination share memory",
        "Set DLRS_COPY_ALLOW_OVERLAP to copy as if through a temporary.",
        "Copy from a copy().";
    DLRS_REFCOUNT: "the tensor has other references, or the reference count is exhausted",
        "Release the other references, or clone the tensor.";
    DLRS_REENTRANT: "called from inside a callback that it is running",
        "Return from the callback first.";
    DLRS_NOT_VIEWABLE: "no view has this shape", "Make a compact copy first.";
    DLRS_COPY_NEEDED: "a copy is needed but was forbidden",
        "Allow the copy, or relax the requirements.";
    DLRS_FOREIGN: "tensor was not made by this library", "Import it with dlrs_import_take first.",
        "Import it by from_dlpack() first.";
    DLRS_NOMEM: "out of memory", "Ask for less, or free memory and call again.";
    DLRS_DEV_OOM: "out of device memory", "Ask for less, or free device memory and call again.";
    DLRS_CALLBACK: "the caller's callback failed", "See what the callback reports.";
    DLRS_UNSUPPORTED: "not supported", "Copy through the host.";
    DLRS_DRV_MISSING: "driver library not found", "Install the vendor's driver.";
    DLRS_DRV_OLD: "driver is too old", "Install a newer driver.";
    DLRS_DRV_STUB: "only the driver's stub library was found",
        "Install the driver, and keep the stubs folder off the search path.";
    DLRS_DRV_SYMBOL: "driver lacks a function", "Install a newer driver.";
    DLRS_NO_DEVICE: "there is no such device",
        "Check the hardware and the vendor's VISIBLE_DEVICES variable.";
    DLRS_DRV_INIT: "driver failed to start", "See the driver's own code.";
    DLRS_PEER: "direct access between two devices failed", "Allow staging through the host.";
    DLRS_STREAM: "stream cannot be used here", "Pass a live stream of the device.";
    DLRS_CAPTURING: "stream is being captured and this operation cannot be",
        "End the capture first.";
    DLRS_LAUNCH: "kernel could not be launched", "See the driver's own code.";
    DLRS_ASYNC_FAULT: "the driver reported a fault, which may stem from earlier work",
        "Destination contents are undefined; see the driver's own code.";
    DLRS_CTX_LOST: "device context is lost", "Restart the process's device work.";
    DLRS_FORKED: "the process was forked after the driver started",
        "Use devices only in the process that started the driver, or spawn.";
    DLRS_SHUTDOWN: "the driver is shutting down with the process",
        "Finish device work before exit.";
    DLRS_INTERNAL: "internal error", "Please report this with the message.";
}

static STARTS: [u16; Status::ALL.len() + 1] = starts(TEXTS.0, 0, 4);

impl Status {
    /// Name, description, and the remedy of C and that of Python, "" for the same.
    pub fn explain(self) -> (&'static CStr, &'static str, [&'static str; 2]) {
        let place = Status::ALL.iter().take_while(|&&status| status != self).count();
        let start = STARTS.get(place).map_or(0, |&start| start.into());
        let its = Texts(TEXTS.0.get(start..).unwrap_or(""));
        (its.c_str(0), its.get(1), [its.get(2), its.get(3)])
    }
}

//! `Status`, `Field`, `Error`: what went wrong, as plain data, and how it is put into words.
//!
//! The core reports an [`Error`]; `capi` adds the function and writes it into the caller's
//! `dlrs_error`. Nothing here allocates, nothing is thread-local. The wording of every status
//! (what it means, what to do) stands once, in [`Status::explain`].
#![allow(non_camel_case_types)]
#![forbid(unsafe_code)]

use core::ffi::CStr;
use core::fmt::{self, Write};

/// What a function answers. 0 is success; `status / 100` is the class: 1 argument, 2 malformed
/// tensor, 3 policy, 4 resource, 5 unavailable or unsupported, 6 device, 9 internal. The numbers
/// are stable and never reused.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Success.
    DLRS_OK = 0,
    /// A required pointer is NULL.
    DLRS_NULL_ARG = 101,
    /// A pointer to a struct or array is not aligned for it.
    DLRS_MISALIGNED_STRUCT = 102,
    /// `struct_size` is not one this library knows.
    DLRS_STRUCT_SIZE = 103,
    /// An argument's value is outside what the function takes.
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
    /// The dtype code is not one of DLPack 1.3.
    DLRS_DTYPE_CODE = 213,
    /// The dtype's bits are not legal for its code.
    DLRS_DTYPE_BITS = 214,
    /// The dtype's lanes are 0 or not legal.
    DLRS_DTYPE_LANES = 215,
    /// An element of a packed sub-byte tensor would start inside a byte.
    DLRS_SUBBYTE = 216,
    /// The device type is not one of DLPack 1.3, or not one the function serves.
    DLRS_DEVICE_TYPE = 217,
    /// The device ordinal is negative, or does not exist.
    DLRS_DEVICE_ID = 218,
    /// A stride in bytes is no multiple of the item size, which DLPack cannot say.
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
    /// Other holders share the tensor, or the count of holders is exhausted.
    DLRS_REFCOUNT = 306,
    /// The function was called from inside a callback that it is running.
    DLRS_REENTRANT = 307,
    /// No view has the wanted shape: a copy is needed.
    DLRS_NOT_VIEWABLE = 308,
    /// The layout, device or writability asked for needs a copy, which was forbidden.
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
    /// The stream is being captured and the work cannot be.
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
    /// A defect of this library or an impossible answer of a driver.
    DLRS_INTERNAL = 901,
}

/// The Python exception that fits a status: the only place where one is chosen. The array API
/// standard wants BufferError for what cannot be exchanged as asked; an argument that is wrong in
/// itself, or that does not fit another one, is Python's own ValueError or TypeError.
pub fn exception_of(status: i32) -> &'static CStr {
    const VERSION: i32 = Status::DLRS_VERSION as i32;
    const FLAGS: i32 = Status::DLRS_FLAGS as i32;
    const DTYPE_CODE: i32 = Status::DLRS_DTYPE_CODE as i32;
    const DTYPE_BITS: i32 = Status::DLRS_DTYPE_BITS as i32;
    const DTYPE_LANES: i32 = Status::DLRS_DTYPE_LANES as i32;
    const DEVICE_TYPE: i32 = Status::DLRS_DEVICE_TYPE as i32;
    const DEVICE_ID: i32 = Status::DLRS_DEVICE_ID as i32;
    const STRIDES_UNEVEN: i32 = Status::DLRS_STRIDES_UNEVEN as i32;
    const SHAPE_MISMATCH: i32 = Status::DLRS_SHAPE_MISMATCH as i32;
    const DTYPE_MISMATCH: i32 = Status::DLRS_DTYPE_MISMATCH as i32;
    const NOT_VIEWABLE: i32 = Status::DLRS_NOT_VIEWABLE as i32;
    const CALLBACK: i32 = Status::DLRS_CALLBACK as i32;
    match (status, status / 100) {
        (VERSION | FLAGS | DTYPE_CODE | DTYPE_BITS | DTYPE_LANES, _) => c"BufferError",
        (DEVICE_TYPE | DEVICE_ID | STRIDES_UNEVEN, _) => c"BufferError",
        (SHAPE_MISMATCH | NOT_VIEWABLE, _) => c"ValueError",
        (DTYPE_MISMATCH, _) => c"TypeError",
        (CALLBACK, _) | (_, 6 | 9) => c"RuntimeError",
        (_, 3 | 5) => c"BufferError",
        (_, 4) => c"MemoryError",
        _ => c"ValueError",
    }
}

impl Status {
    /// Every status, in the order of the numbers.
    pub const ALL: &[Status] = &[
        Status::DLRS_OK,
        Status::DLRS_NULL_ARG,
        Status::DLRS_MISALIGNED_STRUCT,
        Status::DLRS_STRUCT_SIZE,
        Status::DLRS_BAD_ARG,
        Status::DLRS_BUF_SMALL,
        Status::DLRS_PARSE,
        Status::DLRS_VERSION,
        Status::DLRS_FLAGS,
        Status::DLRS_NDIM,
        Status::DLRS_SHAPE_NULL,
        Status::DLRS_SHAPE_NEG,
        Status::DLRS_STRIDES_NULL,
        Status::DLRS_SIZE_OVERFLOW,
        Status::DLRS_EXTENT_OVERFLOW,
        Status::DLRS_OUT_OF_BOUNDS,
        Status::DLRS_DATA_NULL,
        Status::DLRS_OFFSET,
        Status::DLRS_MISALIGNED,
        Status::DLRS_DTYPE_CODE,
        Status::DLRS_DTYPE_BITS,
        Status::DLRS_DTYPE_LANES,
        Status::DLRS_SUBBYTE,
        Status::DLRS_DEVICE_TYPE,
        Status::DLRS_DEVICE_ID,
        Status::DLRS_STRIDES_UNEVEN,
        Status::DLRS_READ_ONLY,
        Status::DLRS_SHAPE_MISMATCH,
        Status::DLRS_DTYPE_MISMATCH,
        Status::DLRS_OVERLAP_DST,
        Status::DLRS_OVERLAP_SRC_DST,
        Status::DLRS_REFCOUNT,
        Status::DLRS_REENTRANT,
        Status::DLRS_NOT_VIEWABLE,
        Status::DLRS_COPY_NEEDED,
        Status::DLRS_FOREIGN,
        Status::DLRS_NOMEM,
        Status::DLRS_DEV_OOM,
        Status::DLRS_CALLBACK,
        Status::DLRS_UNSUPPORTED,
        Status::DLRS_DRV_MISSING,
        Status::DLRS_DRV_OLD,
        Status::DLRS_DRV_STUB,
        Status::DLRS_DRV_SYMBOL,
        Status::DLRS_NO_DEVICE,
        Status::DLRS_DRV_INIT,
        Status::DLRS_PEER,
        Status::DLRS_STREAM,
        Status::DLRS_CAPTURING,
        Status::DLRS_LAUNCH,
        Status::DLRS_ASYNC_FAULT,
        Status::DLRS_CTX_LOST,
        Status::DLRS_FORKED,
        Status::DLRS_SHUTDOWN,
        Status::DLRS_INTERNAL,
    ];

    /// Name, meaning and remedy: the only place where a status is put into words.
    pub const fn explain(self) -> (&'static CStr, &'static str, &'static str) {
        use Status::*;
        match self {
            DLRS_OK => (c"DLRS_OK", "success", ""),
            DLRS_NULL_ARG => (c"DLRS_NULL_ARG", "must not be NULL", "Pass a valid pointer."),
            DLRS_MISALIGNED_STRUCT => (
                c"DLRS_MISALIGNED_STRUCT",
                "pointer is not aligned for its type",
                "Pass the address of a properly aligned object.",
            ),
            DLRS_STRUCT_SIZE => (
                c"DLRS_STRUCT_SIZE",
                "struct_size is too small",
                "Set struct_size to sizeof the struct before the call.",
            ),
            DLRS_BAD_ARG => (
                c"DLRS_BAD_ARG",
                "value is not accepted",
                "Give a value that the argument takes, within the limit where one is named.",
            ),
            DLRS_BUF_SMALL => (
                c"DLRS_BUF_SMALL",
                "buffer is too small",
                "Give a buffer of the size reported, plus one for the NUL of a text.",
            ),
            DLRS_PARSE => (
                c"DLRS_PARSE",
                "text is not understood",
                "Write dtypes as float32, bfloat16, float32x4, devices as cpu, cuda:0, rocm:1.",
            ),
            DLRS_VERSION => (
                c"DLRS_VERSION",
                "DLPack major version is not 1",
                "Ask the producer for version 1; this tensor can only be released.",
            ),
            DLRS_FLAGS => (
                c"DLRS_FLAGS",
                "flag bits are not known to DLPack 1.3 or do not fit here",
                "Clear them, or use a library that knows them.",
            ),
            DLRS_NDIM => {
                (c"DLRS_NDIM", "number of dimensions is out of range", "Use 0 to 64 dimensions.")
            }
            DLRS_SHAPE_NULL => (
                c"DLRS_SHAPE_NULL",
                "shape is NULL although ndim is not 0",
                "Give ndim extents; only a 0-d tensor may leave shape NULL.",
            ),
            DLRS_SHAPE_NEG => {
                (c"DLRS_SHAPE_NEG", "extent is negative", "Give every extent as 0 or more.")
            }
            DLRS_STRIDES_NULL => (
                c"DLRS_STRIDES_NULL",
                "strides are NULL, which DLPack forbids since 1.2",
                "Fill the strides, or take the tensor in with dlrs_import_take.",
            ),
            DLRS_SIZE_OVERFLOW => (
                c"DLRS_SIZE_OVERFLOW",
                "number of elements or bytes does not fit",
                "Check the extents: no memory is this large.",
            ),
            DLRS_EXTENT_OVERFLOW => (
                c"DLRS_EXTENT_OVERFLOW",
                "strides reach outside the address space",
                "Check strides (counted in elements) against shape and data.",
            ),
            DLRS_OUT_OF_BOUNDS => (
                c"DLRS_OUT_OF_BOUNDS",
                "reaches outside the memory given",
                "Check shape, strides and byte_offset against the allocation.",
            ),
            DLRS_DATA_NULL => (
                c"DLRS_DATA_NULL",
                "data is NULL although there are elements",
                "Only a tensor of size zero may have no data.",
            ),
            DLRS_OFFSET => (
                c"DLRS_OFFSET",
                "byte_offset leads outside the address space",
                "Give the bytes from data to element (0, ..., 0).",
            ),
            DLRS_MISALIGNED => (
                c"DLRS_MISALIGNED",
                "first element is not aligned as required",
                "Copy the tensor, or ask for a smaller alignment.",
            ),
            DLRS_DTYPE_CODE => (
                c"DLRS_DTYPE_CODE",
                "dtype code is not known to DLPack 1.3",
                "Convert the tensor first, or use the LAYOUT level or raw bytes.",
            ),
            DLRS_DTYPE_BITS => (
                c"DLRS_DTYPE_BITS",
                "dtype bits are not legal for the code",
                "Use a width that the type has: dlpack_rs.h lists the dtypes.",
            ),
            DLRS_DTYPE_LANES => {
                (c"DLRS_DTYPE_LANES", "dtype lanes are out of range", "Use 1 lane for scalars.")
            }
            DLRS_SUBBYTE => (
                c"DLRS_SUBBYTE",
                "elements of a packed sub-byte type would start inside a byte",
                "Make a compact copy: DLPack has no bit offset.",
            ),
            DLRS_DEVICE_TYPE => (
                c"DLRS_DEVICE_TYPE",
                "device type is not one that can be used here",
                "Move the tensor to a supported device first.",
            ),
            DLRS_DEVICE_ID => (
                c"DLRS_DEVICE_ID",
                "device ordinal is out of range",
                "The host has ordinal 0; other devices count from 0.",
            ),
            DLRS_STRIDES_UNEVEN => (
                c"DLRS_STRIDES_UNEVEN",
                "stride in bytes is no multiple of the item size",
                "Copy the array first: strides count elements.",
            ),
            DLRS_READ_ONLY => (
                c"DLRS_READ_ONLY",
                "data is read-only",
                "Copy the tensor, or ask the producer for a writable one.",
            ),
            DLRS_SHAPE_MISMATCH => (
                c"DLRS_SHAPE_MISMATCH",
                "shapes differ",
                "Shapes must be equal; nothing is broadcast silently.",
            ),
            DLRS_DTYPE_MISMATCH => (
                c"DLRS_DTYPE_MISMATCH",
                "dtypes differ",
                "Code, bits, lanes and padding must be equal; use a cast to convert.",
            ),
            DLRS_OVERLAP_DST => (
                c"DLRS_OVERLAP_DST",
                "elements of the destination share memory",
                "Write to a tensor whose elements are distinct.",
            ),
            DLRS_OVERLAP_SRC_DST => (
                c"DLRS_OVERLAP_SRC_DST",
                "source and destination share memory",
                "Set DLRS_COPY_ALLOW_OVERLAP to copy as if through a temporary.",
            ),
            DLRS_REFCOUNT => (
                c"DLRS_REFCOUNT",
                "other holders share the tensor or their number is exhausted",
                "Release the other holders, or clone the tensor.",
            ),
            DLRS_REENTRANT => (
                c"DLRS_REENTRANT",
                "called from inside a callback that it is running",
                "Return from the callback first.",
            ),
            DLRS_NOT_VIEWABLE => {
                (c"DLRS_NOT_VIEWABLE", "no view has this shape", "Make a compact copy first.")
            }
            DLRS_COPY_NEEDED => (
                c"DLRS_COPY_NEEDED",
                "a copy is needed but was forbidden",
                "Allow the copy, or ask for less.",
            ),
            DLRS_FOREIGN => (
                c"DLRS_FOREIGN",
                "tensor was not made by this library",
                "Take it in with dlrs_import_take first.",
            ),
            DLRS_NOMEM => (c"DLRS_NOMEM", "out of memory", "Free memory and call again."),
            DLRS_DEV_OOM => {
                (c"DLRS_DEV_OOM", "out of device memory", "Free device memory and call again.")
            }
            DLRS_CALLBACK => {
                (c"DLRS_CALLBACK", "the caller's callback failed", "See what the callback reports.")
            }
            DLRS_UNSUPPORTED => (
                c"DLRS_UNSUPPORTED",
                "not supported",
                "Use what is supported: another type, layout, device or way to the same end.",
            ),
            DLRS_DRV_MISSING => {
                (c"DLRS_DRV_MISSING", "driver library not found", "Install the vendor's driver.")
            }
            DLRS_DRV_OLD => (c"DLRS_DRV_OLD", "driver is too old", "Install a newer driver."),
            DLRS_DRV_STUB => (
                c"DLRS_DRV_STUB",
                "only the driver's stub library was found",
                "Install the driver, and keep the stubs folder off the search path.",
            ),
            DLRS_DRV_SYMBOL => {
                (c"DLRS_DRV_SYMBOL", "driver lacks a function", "Install a newer driver.")
            }
            DLRS_NO_DEVICE => (
                c"DLRS_NO_DEVICE",
                "there is no such device",
                "Check the hardware and the vendor's VISIBLE_DEVICES variable.",
            ),
            DLRS_DRV_INIT => {
                (c"DLRS_DRV_INIT", "driver failed to start", "See the driver's own code.")
            }
            DLRS_PEER => (
                c"DLRS_PEER",
                "direct access between two devices failed",
                "Allow staging through the host.",
            ),
            DLRS_STREAM => {
                (c"DLRS_STREAM", "stream cannot be used here", "Pass a live stream of the device.")
            }
            DLRS_CAPTURING => (
                c"DLRS_CAPTURING",
                "stream is being captured and this work cannot be",
                "End the capture first.",
            ),
            DLRS_LAUNCH => {
                (c"DLRS_LAUNCH", "kernel could not be launched", "See the driver's own code.")
            }
            DLRS_ASYNC_FAULT => (
                c"DLRS_ASYNC_FAULT",
                "the driver reported a fault, which may stem from earlier work",
                "Destination contents are undefined; see the driver's own code.",
            ),
            DLRS_CTX_LOST => {
                (c"DLRS_CTX_LOST", "device context is lost", "Restart the process's device work.")
            }
            DLRS_FORKED => (
                c"DLRS_FORKED",
                "the process was forked after the driver started",
                "Use devices only in the process that started the driver, or spawn.",
            ),
            DLRS_SHUTDOWN => (
                c"DLRS_SHUTDOWN",
                "the driver is shutting down with the process",
                "Finish device work before exit.",
            ),
            DLRS_INTERNAL => {
                (c"DLRS_INTERNAL", "internal error", "Please report this with the message.")
            }
        }
    }
}

/// Which field of the argument an error is about.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// The argument itself.
    DLRS_FIELD_NONE = 0,
    /// `version` of a managed tensor.
    DLRS_FIELD_VERSION = 1,
    /// `flags` of a managed tensor.
    DLRS_FIELD_FLAGS = 2,
    /// `ndim`.
    DLRS_FIELD_NDIM = 3,
    /// `shape`, or one extent.
    DLRS_FIELD_SHAPE = 4,
    /// `dtype.code`.
    DLRS_FIELD_DTYPE_CODE = 5,
    /// `dtype.bits`.
    DLRS_FIELD_DTYPE_BITS = 6,
    /// `dtype.lanes`.
    DLRS_FIELD_DTYPE_LANES = 7,
    /// `device.device_type`.
    DLRS_FIELD_DEVICE_TYPE = 8,
    /// `device.device_id`.
    DLRS_FIELD_DEVICE_ID = 9,
    /// `strides`, or one stride.
    DLRS_FIELD_STRIDES = 10,
    /// `data`.
    DLRS_FIELD_DATA = 11,
    /// `byte_offset`.
    DLRS_FIELD_BYTE_OFFSET = 12,
    /// `struct_size` of an options struct or table.
    DLRS_FIELD_STRUCT_SIZE = 13,
    /// `deleter`, or another function pointer.
    DLRS_FIELD_DELETER = 14,
    /// Another member of an options struct or table; the message names it.
    DLRS_FIELD_OPTION = 15,
}

impl Field {
    /// The member as C writes it behind the argument's name.
    const fn text(self) -> &'static str {
        use Field::*;
        match self {
            DLRS_FIELD_NONE | DLRS_FIELD_OPTION => "",
            DLRS_FIELD_VERSION => "version",
            DLRS_FIELD_FLAGS => "flags",
            DLRS_FIELD_NDIM => "ndim",
            DLRS_FIELD_SHAPE => "shape",
            DLRS_FIELD_DTYPE_CODE => "dtype.code",
            DLRS_FIELD_DTYPE_BITS => "dtype.bits",
            DLRS_FIELD_DTYPE_LANES => "dtype.lanes",
            DLRS_FIELD_DEVICE_TYPE => "device.device_type",
            DLRS_FIELD_DEVICE_ID => "device.device_id",
            DLRS_FIELD_STRIDES => "strides",
            DLRS_FIELD_DATA => "data",
            DLRS_FIELD_BYTE_OFFSET => "byte_offset",
            DLRS_FIELD_STRUCT_SIZE => "struct_size",
            DLRS_FIELD_DELETER => "deleter",
        }
    }
}

/// A parameter of a C function: its 1-based place and its name in the header.
#[derive(Debug)]
pub struct Parameter(pub i32, pub &'static str);

/// An argument: the parameter that it stands for.
pub type Arg = &'static Parameter;

/// No argument is at fault, but the allocator or backend that gave what it should not.
pub const NOBODY: Arg = &Parameter(0, "");

/// Whether and how a number is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shown {
    No,
    Signed,
    Unsigned,
}

/// The parts of a message, in their order; the remedy is the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Function, argument and member.
    Place,
    /// What is wrong, with value and limit.
    Text,
    /// The status.
    Status,
}

/// What went wrong. Built by the core, put into words by [`Error::write`]. Kept small: it travels
/// by value through every `?`.
#[derive(Clone, Copy, Debug)]
pub struct Error {
    /// The answer of the function.
    pub status: Status,
    /// The member at fault.
    pub field: Field,
    /// The dimension at fault, or -1.
    pub dimension: i8,
    value_shown: Shown,
    limit_shown: Shown,
    /// The driver's own code, or 0.
    pub driver_code: i32,
    /// The value found, where one is shown.
    pub value: i64,
    /// The limit it broke, where one is shown.
    pub limit: i64,
    /// The argument at fault, once someone who knows it has said so ([`Error::of`]).
    pub argument: Option<Arg>,
    /// More precise words than the status's own, empty for none; for `DLRS_FIELD_OPTION`, the
    /// member's name.
    pub detail: &'static str,
}

/// What a fallible function of the core returns.
pub type Result<T> = core::result::Result<T, Error>;

/// Naming the argument of a result's error.
pub trait Of: Sized {
    /// Names the argument at fault, unless an inner function already did.
    fn of(self, argument: Arg) -> Self;
}

impl<T> Of for Result<T> {
    #[inline]
    fn of(self, argument: Arg) -> Self {
        self.map_err(|error| error.of(argument))
    }
}

impl Error {
    /// An error of which only the status is known.
    #[cold]
    pub const fn new(status: Status) -> Self {
        Error {
            status,
            field: Field::DLRS_FIELD_NONE,
            dimension: -1,
            driver_code: 0,
            value: 0,
            limit: 0,
            argument: None,
            detail: "",
            value_shown: Shown::No,
            limit_shown: Shown::No,
        }
    }
    /// Names the member at fault.
    pub const fn field(mut self, field: Field) -> Self {
        self.field = field;
        self
    }
    /// Names the dimension at fault.
    pub const fn dim(mut self, dimension: usize) -> Self {
        self.dimension = dimension as i8;
        self
    }
    /// Shows the value found.
    pub const fn value(mut self, value: i64) -> Self {
        self.value = value;
        self.value_shown = Shown::Signed;
        self
    }
    /// As [`Error::value`], of a number without a sign.
    pub const fn value_u64(mut self, value: u64) -> Self {
        self.value = value as i64;
        self.value_shown = Shown::Unsigned;
        self
    }
    /// Shows the limit that was broken.
    pub const fn limit(mut self, limit: i64) -> Self {
        self.limit = limit;
        self.limit_shown = Shown::Signed;
        self
    }
    /// As [`Error::limit`], of a number without a sign.
    pub const fn limit_u64(mut self, limit: u64) -> Self {
        self.limit = limit as i64;
        self.limit_shown = Shown::Unsigned;
        self
    }
    /// Says it in more precise words than the status's own.
    pub const fn detail(mut self, detail: &'static str) -> Self {
        self.detail = detail;
        self
    }
    /// Adds the driver's own code.
    pub const fn driver(mut self, code: i32) -> Self {
        self.driver_code = code;
        self
    }
    /// Names the member of an options struct or table that is at fault.
    pub const fn option(mut self, name: &'static str) -> Self {
        self.field = Field::DLRS_FIELD_OPTION;
        self.detail = name;
        self
    }
    /// Names the argument at fault, unless an inner function already did.
    #[cold]
    pub const fn of(mut self, argument: Arg) -> Self {
        if self.argument.is_none() {
            self.argument = Some(argument);
        }
        self
    }

    /// The place of the argument at fault, 0 for none.
    pub fn place(&self) -> i32 {
        self.argument.map_or(0, |argument| argument.0)
    }

    /// Writes `function: argument->field[dim]: what "quoted" (value, limit) [status]. Remedy.`
    /// Never an address. `quoted` is the text that was not understood; the part around `value` is
    /// shown.
    pub fn write(
        &self,
        function: &str,
        quoted: Option<&[u8]>,
        out: &mut impl Write,
    ) -> fmt::Result {
        self.write_parts(function, quoted, out, |_, _| ())
    }

    /// As [`Error::write`]; after each part but the last, `mark` is told.
    pub fn write_parts<W: Write>(
        &self,
        function: &str,
        quoted: Option<&[u8]>,
        out: &mut W,
        mut mark: impl FnMut(Part, &W),
    ) -> fmt::Result {
        let (name, meaning, remedy) = self.status.explain();
        write!(out, "{function}: ")?;
        self.write_place(out)?;
        mark(Part::Place, out);
        let named = self.field == Field::DLRS_FIELD_OPTION;
        out.write_str(if self.detail.is_empty() || named { meaning } else { self.detail })?;
        if let Some(quoted) = quoted {
            self.write_quoted(quoted, out)?;
        }
        self.write_numbers(out)?;
        mark(Part::Text, out);
        write!(out, " [{}]. ", name.to_str().unwrap_or(""))?;
        mark(Part::Status, out);
        out.write_str(match self.argument {
            Some(Parameter(0, "")) => "Mend the allocator or backend that gave it.",
            _ => remedy,
        })
    }

    fn write_place(&self, out: &mut impl Write) -> fmt::Result {
        let argument = self.argument.map_or("", |argument| argument.1);
        let member = match self.field {
            Field::DLRS_FIELD_OPTION => self.detail,
            field => field.text(),
        };
        // A parameter that is itself what the field says, as `shape` or `dtype`, is named once.
        let rest = member.strip_prefix(argument);
        let once = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        if !argument.is_empty() && !once {
            out.write_str(argument)?;
            out.write_str(if member.is_empty() { "" } else { "->" })?;
        }
        out.write_str(member)?;
        if self.dimension >= 0 {
            write!(out, "[{}]", self.dimension)?;
        }
        out.write_str(if argument.is_empty() && member.is_empty() { "" } else { ": " })
    }

    /// At most 32 bytes around the position in `value`, as printable ASCII.
    fn write_quoted(&self, text: &[u8], out: &mut impl Write) -> fmt::Result {
        const SHOWN: usize = 32;
        let position = if self.status == Status::DLRS_PARSE { self.value } else { 0 };
        let from = usize::try_from(position).unwrap_or(0).saturating_sub(SHOWN / 2);
        let rest = text.get(from..).unwrap_or(&[]);
        out.write_str(if from > 0 { ": \"..." } else { ": \"" })?;
        for &byte in rest.iter().take(SHOWN) {
            match byte {
                b' '..=b'~' if byte != b'"' && byte != b'\\' => out.write_char(byte.into())?,
                _ => write!(out, "\\x{byte:02x}")?,
            }
        }
        out.write_str(if rest.len() > SHOWN { "...\"" } else { "\"" })
    }
    fn write_numbers(&self, out: &mut impl Write) -> fmt::Result {
        let mut before = " (";
        for (label, shown, number) in
            [("value", self.value_shown, self.value), ("limit", self.limit_shown, self.limit)]
        {
            match shown {
                Shown::No => continue,
                Shown::Signed => write!(out, "{before}{label} {number}")?,
                Shown::Unsigned => write!(out, "{before}{label} {}", number as u64)?,
            }
            before = ", ";
        }
        if self.driver_code != 0 {
            write!(out, "{before}driver code {}", self.driver_code)?;
            before = ", ";
        }
        out.write_str(if before == ", " { ")" } else { "" })
    }
}

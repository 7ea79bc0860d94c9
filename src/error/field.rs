//! `Field`: the member of an argument that is at fault.
#![allow(non_camel_case_types)]
#![forbid(unsafe_code)]

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
    /// Every field, in the order of the numbers.
    pub const ALL: [Field; 16] = {
        use Field::*;
        [
            DLRS_FIELD_NONE,
            DLRS_FIELD_VERSION,
            DLRS_FIELD_FLAGS,
            DLRS_FIELD_NDIM,
            DLRS_FIELD_SHAPE,
            DLRS_FIELD_DTYPE_CODE,
            DLRS_FIELD_DTYPE_BITS,
            DLRS_FIELD_DTYPE_LANES,
            DLRS_FIELD_DEVICE_TYPE,
            DLRS_FIELD_DEVICE_ID,
            DLRS_FIELD_STRIDES,
            DLRS_FIELD_DATA,
            DLRS_FIELD_BYTE_OFFSET,
            DLRS_FIELD_STRUCT_SIZE,
            DLRS_FIELD_DELETER,
            DLRS_FIELD_OPTION,
        ]
    };

    /// The member as C writes it behind the argument's name.
    pub(super) const fn text(self) -> &'static str {
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

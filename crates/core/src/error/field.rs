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

macro_rules! fields {
    ($($field:ident: $text:literal;)*) => {
        impl Field {
            /// Every field, in the order of the numbers.
            pub const ALL: &[Field] = &[$(Field::$field),*];

            /// The member as C writes it behind the argument's name.
            pub(super) const fn text(self) -> &'static str {
                match self {
                    $(Field::$field => $text,)*
                }
            }
        }

    };
}

fields! {
    DLRS_FIELD_NONE: "";
    DLRS_FIELD_VERSION: "version";
    DLRS_FIELD_FLAGS: "flags";
    DLRS_FIELD_NDIM: "ndim";
    DLRS_FIELD_SHAPE: "shape";
    DLRS_FIELD_DTYPE_CODE: "dtype.code";
    DLRS_FIELD_DTYPE_BITS: "dtype.bits";
    DLRS_FIELD_DTYPE_LANES: "dtype.lanes";
    DLRS_FIELD_DEVICE_TYPE: "device.device_type";
    DLRS_FIELD_DEVICE_ID: "device.device_id";
    DLRS_FIELD_STRIDES: "strides";
    DLRS_FIELD_DATA: "data";
    DLRS_FIELD_BYTE_OFFSET: "byte_offset";
    DLRS_FIELD_STRUCT_SIZE: "struct_size";
    DLRS_FIELD_DELETER: "deleter";
    DLRS_FIELD_OPTION: "";
}

const _: () = {
    let mut i = 0;
    while i < Field::ALL.len() {
        assert!(Field::ALL[i] as usize == i && i < 16, "an error has four bits for its field");
        i += 1;
    }
};

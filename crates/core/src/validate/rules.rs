//! What is required of a tensor.
#![forbid(unsafe_code)]

use crate::abi::*;
use crate::error::{Error, Field::*, Result, Status::*};

/// How much is checked. Higher levels include the lower ones.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
#[allow(non_camel_case_types)]
pub enum Level {
    /// The struct is readable: version, ndim, pointers, extents not negative, dtype sized.
    DLRS_LEVEL_STRUCT = 1,
    /// Also every element has an address: sizes, strides, data and byte_offset.
    DLRS_LEVEL_LAYOUT = 2,
    /// Also everything is known and valid: dtype, device, flags, strides given, whole bytes.
    DLRS_LEVEL_STRICT = 3,
    /// Also the device's driver, if it can tell, reports the kind of memory that the tensor has.
    DLRS_LEVEL_DEVICE = 4,
}

/// Single requirements, for combinations other than the levels.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Every element has an address.
    pub layout: bool,
    /// Flags and device are known.
    pub known: bool,
    /// The dtype is known, with bits that its code may have.
    pub legal: bool,
    /// The ordinal is 0 for all memory that the host can access.
    pub host_ids: bool,
    /// Strides are given where the tensor's version requires it.
    pub strides_given: bool,
    /// Rows of packed sub-byte elements start on whole bytes.
    pub whole_bytes: bool,
    /// The driver of the device confirms the memory; not checked by a snapshot alone.
    pub driver: bool,
}

impl Rules {
    /// The requirements of a level.
    pub const fn of(level: Level) -> Rules {
        let n = level as u32;
        let strict = n >= 3;
        Rules {
            layout: n >= 2,
            known: strict,
            legal: strict,
            host_ids: strict,
            strides_given: strict,
            whole_bytes: strict,
            driver: n >= 4,
        }
    }
    /// Requirements of an import: NULL strides are filled, and an ordinal of pinned or managed
    /// memory is kept.
    pub const fn of_import(level: Level) -> Rules {
        Rules { strides_given: false, host_ids: false, ..Rules::of(level) }
    }
    /// Requirements of a copy: sub-byte elements may start at any bit.
    pub const COPY: Rules = Rules { legal: true, ..Rules::RAW };
    /// Requirements of a copy of elements as raw bytes: of their dtype, the size only.
    pub const RAW: Rules = Rules { known: true, ..Rules::of(Level::DLRS_LEVEL_LAYOUT) };
}

pub(super) const FLAGS_KNOWN: u64 = DLPACK_FLAG_BITMASK_READ_ONLY
    | DLPACK_FLAG_BITMASK_IS_COPIED
    | DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;

/// Rejects flag bits that DLPack 1.3 does not define.
pub fn check_flags(flags: u64) -> Result<()> {
    match flags & !FLAGS_KNOWN {
        0 => Ok(()),
        unknown => Err(Error::new(DLRS_FLAGS).field(DLRS_FIELD_FLAGS).value_u64(unknown)),
    }
}

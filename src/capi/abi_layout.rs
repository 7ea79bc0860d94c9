//! The layout of DLPack's structs as this library was compiled, for callers that do not compile
//! this header: ctypes, cffi, another compiler, CI.

use core::mem::{MaybeUninit, offset_of, transmute};

use super::arg::{self, live};
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::array::Texts;
use crate::error::{Arg, Error, Of, Result, Status::*};

macro_rules! layout_table {
    ($($member:ident = $value:expr;)*) => {
        const TABLE: dlrs_abi_table = dlrs_abi_table {
            struct_size: size_of::<dlrs_abi_table>() as u32,
            $($member: $value as u32,)*
        };
        /// The names of its members, for comparing.
        const NAMES: Texts = Texts(concat!("struct_size\0", $(stringify!($member), "\0"),*));
    };
}

/// Sizes and offsets, in bytes, of every struct of dlpack.h: version_size is that of DLPackVersion,
/// tensor_align the alignment of DLTensor, tensor_data the offset of data in it. legacy is
/// DLManagedTensor, versioned DLManagedTensorVersioned, exchange DLPackExchangeAPI.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types, missing_docs)]
pub struct dlrs_abi_table {
    /// `sizeof(dlrs_abi_table)`.
    pub struct_size: u32,
    /// `sizeof(void *)`.
    pub pointer_size: u32,
    /// 1 on a machine that stores the most significant byte first, else 0.
    pub big_endian: u32,
    /// `DLPACK_MAJOR_VERSION`.
    pub dlpack_major: u32,
    /// `DLPACK_MINOR_VERSION`.
    pub dlpack_minor: u32,
    pub version_size: u32,
    pub device_size: u32,
    pub dtype_size: u32,
    pub tensor_size: u32,
    pub tensor_align: u32,
    pub tensor_data: u32,
    pub tensor_device: u32,
    pub tensor_ndim: u32,
    pub tensor_dtype: u32,
    pub tensor_shape: u32,
    pub tensor_strides: u32,
    pub tensor_byte_offset: u32,
    pub legacy_size: u32,
    pub legacy_dl_tensor: u32,
    pub legacy_manager_ctx: u32,
    pub legacy_deleter: u32,
    pub versioned_size: u32,
    pub versioned_version: u32,
    pub versioned_manager_ctx: u32,
    pub versioned_deleter: u32,
    pub versioned_flags: u32,
    pub versioned_dl_tensor: u32,
    pub exchange_header_size: u32,
    pub exchange_api_size: u32,
}

layout_table! {
    pointer_size = size_of::<*const u8>();
    big_endian = cfg!(target_endian = "big") as u8;
    dlpack_major = DLPACK_MAJOR_VERSION;
    dlpack_minor = DLPACK_MINOR_VERSION;
    version_size = size_of::<DLPackVersion>();
    device_size = size_of::<DLDevice>();
    dtype_size = size_of::<DLDataType>();
    tensor_size = size_of::<DLTensor>();
    tensor_align = align_of::<DLTensor>();
    tensor_data = offset_of!(DLTensor, data);
    tensor_device = offset_of!(DLTensor, device);
    tensor_ndim = offset_of!(DLTensor, ndim);
    tensor_dtype = offset_of!(DLTensor, dtype);
    tensor_shape = offset_of!(DLTensor, shape);
    tensor_strides = offset_of!(DLTensor, strides);
    tensor_byte_offset = offset_of!(DLTensor, byte_offset);
    legacy_size = size_of::<DLManagedTensor>();
    legacy_dl_tensor = offset_of!(DLManagedTensor, dl_tensor);
    legacy_manager_ctx = offset_of!(DLManagedTensor, manager_ctx);
    legacy_deleter = offset_of!(DLManagedTensor, deleter);
    versioned_size = size_of::<DLManagedTensorVersioned>();
    versioned_version = offset_of!(DLManagedTensorVersioned, version);
    versioned_manager_ctx = offset_of!(DLManagedTensorVersioned, manager_ctx);
    versioned_deleter = offset_of!(DLManagedTensorVersioned, deleter);
    versioned_flags = offset_of!(DLManagedTensorVersioned, flags);
    versioned_dl_tensor = offset_of!(DLManagedTensorVersioned, dl_tensor);
    exchange_header_size = size_of::<DLPackExchangeAPIHeader>();
    exchange_api_size = size_of::<DLPackExchangeAPI>();
}

/// Return the layout of DLPack's structs as this library was compiled.
///
/// Bytes:     sizes and offsets.
/// Ownership: the table is static; never write or free it.
/// Errors:    none.
/// Threads:   any.
/// Source:    dlpack.h 1.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_abi_layout() -> *const dlrs_abi_table {
    static TABLE_IN_MEMORY: dlrs_abi_table = TABLE;
    &raw const TABLE_IN_MEMORY
}

/// Check that a caller has the same struct layout and a compatible version.
///
/// Ownership: nothing is kept.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: expected.
///            DLRS_VERSION: header_version, the caller's DLRS_HEADER_VERSION, has another major
///            version than the library, or is newer than it.
///            DLRS_STRUCT_SIZE: expected->struct_size is smaller than the table.
///            DLRS_BAD_ARG: a number differs; the message names it.
/// Threads:   any.
/// Source:    dlpack.h 1.3.
///
/// # Safety
/// `expected` is as large as its `struct_size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_abi_check(
    header_version: u32,
    expected: *const dlrs_abi_table,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: expected is NULL or a live table of the size that it says, error NULL or live.
    unsafe {
        run("dlrs_abi_check", error, (live(expected, Arg::expected),), |(expected,)| {
            check_version(header_version)?;
            let mut room = MaybeUninit::uninit();
            let expected = arg::options(Some(expected), Arg::expected, &mut room)?;
            expected.map_or(Ok(()), compare).of(Arg::expected)
        })
    }
}

// SAFETY: u32 throughout, and the first one is struct_size.
unsafe impl arg::Sized32 for dlrs_abi_table {}

fn check_version(header: u32) -> Result<()> {
    // SAFETY: has no precondition.
    let library = unsafe { super::version::dlrs_version() };
    if header / 1_000_000 == library / 1_000_000 && header <= library {
        return Ok(());
    }
    let error = Error::new(DLRS_VERSION)
        .detail("header and library are incompatible\0Compile with the header of this library.");
    Err(error.of(Arg::header_version).value(header.into()).limit(library.into()))
}

fn compare(expected: &dlrs_abi_table) -> Result<()> {
    type Numbers = [u32; size_of::<dlrs_abi_table>() / size_of::<u32>()];
    // SAFETY: the table is numbers of this type throughout.
    let [own, given] = unsafe { [TABLE, *expected].map(|t| transmute::<_, Numbers>(t)) };
    let differ = |(own, given): (&u32, &u32)| own != given;
    let Some(place) = own.iter().zip(&given).skip(1).position(differ) else { return Ok(()) };
    let number = |of: &Numbers| of.get(place + 1).map_or(0, |&number| number.into());
    let error = Error::new(DLRS_BAD_ARG).option(NAMES.get(place + 1));
    Err(error.value(number(&given)).limit(number(&own)))
}

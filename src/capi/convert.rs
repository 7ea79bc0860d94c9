//! Legacy and versioned tensors; import of foreign tensors.

use core::mem::{MaybeUninit, offset_of};

use super::arg::{self, Items, Live, Taken};
use super::copy_options::{Room, copy_options, dlrs_copy_options};
use super::error::{dlrs_error, dlrs_status, run, run_rest};
use super::validate::level_of;
use crate::abi::*;
use crate::copy::{self, CopyPolicy};
use crate::error::{Arg, Error, Of, Result, Status::*};
use crate::import::{self, Import};
use crate::layout::Order;
use crate::platform;
use crate::tensor::alloc::check_align;
use crate::tensor::block::{Block, Left};
use crate::tensor::convert::{self, LegacyPolicy::*};
use crate::tensor::{Legacy, Versioned, share};
use crate::validate::limits::Limits;
use crate::validate::{Level, Rules, Snapshot};

const ARGS: [Arg; 2] = [Arg::tensor, Arg::out];

/// Convert a legacy tensor into a versioned one.
///
/// Shape:     copied; NULL strides become compact row-major.
/// Bytes:     data and byte_offset stay as they are.
/// Device:    any; the data is not accessed.
/// Ownership: on success *tensor is taken and set to NULL; releasing *out calls its deleter once.
/// Flags:     exactly flags: a legacy tensor does not record writability. NumPy treats legacy
///            tensors as read-only: pass DLPACK_FLAG_BITMASK_READ_ONLY to do the same.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor, *tensor, out.
///            DLRS_FLAGS: unknown bits. DLRS_NOMEM: no memory.
///            what dlrs_validate reports at DLRS_LEVEL_STRUCT.
/// Threads:   any.
/// Source:    dlpack.h 1.0: DLManagedTensor is legacy.
///
/// # Safety
/// A versioned struct passed as a legacy one cannot be detected.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_from_legacy_take(
    tensor: *mut *mut DLManagedTensor,
    flags: u64,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    let mut left = Left::Unusual;
    // SAFETY: tensor and out are NULL or writable variables; a tensor in the first is live, and its
    // reference is ours once this succeeds; error is NULL or live.
    unsafe {
        if let Some((taken, out)) = Taken::usual(tensor, out) {
            match convert::from_usual_legacy(taken.tensor, flags) {
                Ok(versioned) => {
                    taken.empty();
                    out.give(versioned);
                    return DLRS_OK as dlrs_status;
                }
                Err(why) => left = why,
            }
        }
        run_rest("dlrs_from_legacy_take", error, move || {
            let (taken, out) = Taken::new(tensor, out, ARGS)?;
            let block = convert::checked_legacy(taken.tensor, flags, left).of(ARGS[0])?;
            taken.empty();
            out.give(Block::versioned(block));
            Ok(())
        })
    }
}

/// Convert a versioned tensor into a legacy one.
///
/// Shape:     unchanged; strides are filled.
/// Bytes:     data and byte_offset stay as they are, unless the policy copies.
/// Device:    any; the data is accessed only by a copy, which stays on the device.
/// Ownership: on success *tensor is taken and set to NULL; releasing *out calls its deleter once.
///            A tensor of this library changes without any allocation.
/// Flags:     the legacy struct has none. READ_ONLY: by policy, a dlrs_legacy_policy. IS_COPIED is
///            lost, which is harmless. IS_SUBBYTE_TYPE_PADDED on a sub-byte type and unknown flags
///            are always rejected.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor, *tensor, out.
///            DLRS_BAD_ARG: policy. DLRS_VERSION: major version is not 1.
///            DLRS_READ_ONLY, DLRS_FLAGS: see Flags. DLRS_NOMEM: no memory.
///            what dlrs_validate reports at DLRS_LEVEL_STRUCT; with a copy, what dlrs_clone does.
/// Threads:   any.
/// Source:    python_spec: read-only data must not be exported in the legacy struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_to_legacy_take(
    tensor: *mut *mut DLManagedTensorVersioned,
    policy: i32,
    out: *mut *mut DLManagedTensor,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: tensor and out are NULL or writable variables; a tensor in the first is live, and its
    // reference is ours once this succeeds; error is NULL or live.
    unsafe {
        run("dlrs_to_legacy_take", error, (), |()| {
            let (taken, out) = Taken::new(tensor, out, ARGS)?;
            let legacy = to_legacy(taken.tensor, policy).of(ARGS[0])?;
            taken.empty();
            out.give(legacy);
            Ok(())
        })
    }
}

/// # Safety
/// `tensor` is live; on success the result owns its reference.
unsafe fn to_legacy(tensor: Versioned, policy: i32) -> Result<Legacy> {
    let policy = match [DLRS_LEGACY_REFUSE, DLRS_LEGACY_DROP, DLRS_LEGACY_COPY]
        .into_iter()
        .find(|known| *known as i32 == policy)
    {
        Some(policy) => policy,
        None => {
            const POLICY: &str = "is no such policy\0Give a value of dlrs_legacy_policy.";
            let error =
                Error::new(DLRS_BAD_ARG).detail(POLICY).of(Arg::policy).value(policy.into());
            return Err(error.limit(DLRS_LEGACY_COPY as i64));
        }
    };
    let mut read = Snapshot::new();
    // SAFETY: tensor is live; its reference passes to the result, if there is one.
    if let Some(legacy) = unsafe { convert::to_legacy_read(tensor, policy, &mut read)? } {
        return Ok(legacy);
    }
    let options = &copy::Options::DEFAULT;
    read.check(options.rules())?;
    let copy = copy::clone(&read, Order::C, read.device, options)?;
    // SAFETY: tensor is live, and its reference, which nothing has taken, is ours to release.
    unsafe { share::release(tensor) };
    Ok(Block::legacy(copy.cast()))
}

/// Requirements on an imported tensor. All members but `struct_size` may be 0.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct dlrs_import_options {
    /// `sizeof(dlrs_import_options)`.
    pub struct_size: u32,
    /// The level of validation, a `dlrs_level`; 0 for DLRS_LEVEL_STRICT.
    pub level: i32,
    /// Whether to copy: -1 never, 0 if the tensor does not meet the requirements, 1 always.
    pub copy: i32,
    /// Dense in this order: 'C', 'F', 'A' (C or F), 'K' (any dense); 0 for any layout.
    pub order: i32,
    /// Alignment of the first element in bytes, a power of two; 0 for any.
    pub align_bytes: u32,
    /// Not 0: the data must be writable.
    pub writable: i32,
    /// How a copy is made; NULL for the defaults.
    pub copy_options: *const dlrs_copy_options,
    /// The accepted device types: bit n is type n; 0 is any. If dlrs_py_import copies to a device,
    /// the type of that device counts.
    pub device_types: u64,
    /// The accepted numbers of dimensions: bit n is n of them; 0 is any. Exactly 2 is
    /// `1 << 2`, at most 9 is `(1 << 10) - 1`.
    pub ranks: u64,
    /// The accepted dtypes; NULL is any.
    pub dtypes: *const DLDataType,
    /// The number of dtypes.
    pub dtypes_count: u64,
}

// SAFETY: plain data, u32 first.
unsafe impl arg::Sized32 for dlrs_import_options {
    const EARLIER: &'static [usize] = &[offset_of!(dlrs_import_options, device_types)];
}

fn bad_option(name: &'static str, value: i32) -> Error {
    Error::new(DLRS_BAD_ARG).option(name).value(value.into())
}

const ORDER: &str = "is no such order\0Give 'C', 'F', 'A' or 'K'.";

/// The order of a C character.
pub(super) fn order_of(order: i32) -> Result<Order> {
    Order::from_char(order)
        .ok_or_else(|| Error::new(DLRS_BAD_ARG).detail(ORDER).value(order.into()))
}

/// The policy of -1, 0, 1.
pub(super) fn policy_of(copy: i32) -> Result<CopyPolicy> {
    match copy {
        -1 => Ok(CopyPolicy::Never),
        0 => Ok(CopyPolicy::IfNeeded),
        1 => Ok(CopyPolicy::Always),
        other => Err(bad_option("copy\0is no such policy\0Give -1, 0 or 1.", other)),
    }
}

/// The checked options of an import.
///
/// # Safety
/// The pointers in `options` are NULL or live.
#[inline(never)]
pub(super) unsafe fn import_of(
    options: Option<Live<dlrs_import_options>>,
    room: &mut MaybeUninit<Import>,
) -> Result<&Import> {
    let mut given = MaybeUninit::uninit();
    match arg::options(options, Arg::options, &mut given)? {
        // SAFETY: the pointers in live options are NULL or live.
        Some(options) => Ok(room.write(unsafe { asked(options) }.of(Arg::options)?)),
        None => {
            platform::cancellation_point();
            Ok(&Import::DEFAULT)
        }
    }
}

/// # Safety
/// The pointers in `options` are NULL or live; dtypes holds dtypes_count values, readable as long
/// as the answer is used.
unsafe fn asked(options: &dlrs_import_options) -> Result<Import> {
    let level = match options.level {
        0 => Level::DLRS_LEVEL_STRICT,
        level => level_of(level).map_err(|e| {
            e.option("level\0is not a dlrs_level\0Give DLRS_LEVEL_STRUCT to DLRS_LEVEL_DEVICE.")
        })?,
    };
    let align_bytes = match options.align_bytes {
        0 => 0,
        align_bytes => check_align(align_bytes.into())?,
    };
    let mut room = Room::uninit();
    // SAFETY: the copy options are NULL or live.
    let copies = unsafe { Live::optional(options.copy_options, Arg::options) };
    let dtypes = options.dtypes;
    let count = match dtypes.is_null() {
        true => 0,
        // SAFETY: dtypes is not NULL and holds dtypes_count values, readable during the whole call.
        false => unsafe { Items::member(dtypes, options.dtypes_count, Arg::options) }?.len(),
    };
    Ok(Import {
        rules: Rules::of_import(level),
        align_bytes,
        order: match options.order {
            0 => None,
            order => {
                Some(order_of(order).map_err(|e| {
                    e.option("order\0is no such order\0Give 0, 'C', 'F', 'A' or 'K'.")
                })?)
            }
        },
        device: None,
        writable: options.writable != 0,
        policy: policy_of(options.copy)?,
        options: *copy_options(copies?, Arg::options, 0, &mut room)?,
        limits: Limits {
            device_types: options.device_types,
            ranks: options.ranks,
            dtypes,
            dtypes_count: count,
        },
    })
}

/// Import a tensor: check it, and return a tensor of this library that meets options.
///
/// Shape:     unchanged; NULL strides are filled.
/// Bytes:     data and byte_offset stay as they are, unless a copy is made: dense, aligned to
///            options->align_bytes and at least 256 bytes, byte_offset 0.
/// Device:    any; a copy is on the CPU if the CPU can access the data, else on the same device.
/// Ownership: on success *tensor is taken and set to NULL. A tensor of this library that meets
///            options is returned itself; a foreign one is boxed (put behind a struct of this
///            library) once, so that it can be shared, chained and viewed; after a copy the
///            original is released at once.
/// Flags:     kept; a copy has IS_COPIED and no READ_ONLY.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor, *tensor, out.
///            DLRS_STRUCT_SIZE, DLRS_BAD_ARG: options.
///            what dlrs_validate_managed reports at options->level, except DLRS_STRIDES_NULL;
///            an ordinal of pinned or managed memory is kept as it is.
///            DLRS_UNSUPPORTED: options do not accept the device type, ndim or dtype; the tensor is
///            then neither boxed nor copied. DLRS_READ_ONLY, DLRS_COPY_NEEDED, DLRS_MISALIGNED: the
///            tensor does not meet options and copying was forbidden; DLRS_UNSUPPORTED: the same,
///            for the alignment of an opaque handle. DLRS_NOMEM: no memory. With a copy, what
///            dlrs_clone reports; DLRS_MISALIGNED with argument 0: an allocator or backend returned
///            memory less aligned than requested.
/// Threads:   any.
/// Source:    "Consumer" rules of dlpack.h and python_spec; on another major version call
///            dlrs_release.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_import_take(
    tensor: *mut *mut DLManagedTensorVersioned,
    options: *const dlrs_import_options,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: tensor and out are NULL or writable variables; a tensor in the first is live, and its
    // reference is ours once this succeeds; options and error are NULL or live, and so is what
    // options have.
    unsafe {
        run("dlrs_import_take", error, (), |()| {
            let mut room = MaybeUninit::uninit();
            let (taken, out) = Taken::new(tensor, out, ARGS)?;
            let options = Live::optional(options, Arg::options)?;
            let import = import_of(options, &mut room)?;
            let imported = import::import_here(taken.tensor, import).of(ARGS[0])?;
            taken.empty();
            out.give(imported);
            Ok(())
        })
    }
}

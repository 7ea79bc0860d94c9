//! Copies.

use core::ffi::c_char;

use super::arg::{self, Live, live, optional, result, variable, write_text};
use super::convert::{order_of, policy_of};
use super::copy_options::{Room, copy_options, dlrs_copy_options};
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::copy::{self, Described, Explained, Given, Job, Made, Options, Pair, Wanted};
use crate::error::{Arg, Of, Result};
use crate::layout::Order;
use crate::tensor::Versioned;
use crate::validate::Snapshot;

/// Copy the elements of one tensor into another of the same shape and dtype.
///
/// Shape:     equal in rank and extents; nothing is broadcast. Any strides on both sides,
///            including 0 (source only) and negative; elements may be unaligned.
/// Bytes:     only those of the destination's elements are written; packed sub-byte elements are
///            written bit by bit; other elements in the same byte are not modified.
/// Device:    any pair, in the order of dlrs_copy_options. Between CPU, pinned and managed memory
///            the CPU copies, unless a driver can access both sides and the copy is only enqueued.
///            Else the backend of the destination's stream copies, or that of the source's; if
///            neither can, the copy goes through a staging buffer in host memory.
/// Ownership: unchanged.
/// Flags:     dst must not be READ_ONLY; both must agree on IS_SUBBYTE_TYPE_PADDED for sub-byte
///            types. No flag is changed.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: src or dst. DLRS_STRUCT_SIZE, DLRS_BAD_ARG:
///            options. what dlrs_validate_managed reports at DLRS_LEVEL_STRICT, except
///            DLRS_STRIDES_NULL, DLRS_SUBBYTE and an ordinal of pinned or managed memory; first for
///            src, then for dst.
///            DLRS_READ_ONLY: dst. DLRS_SHAPE_MISMATCH, DLRS_DTYPE_MISMATCH: dst differs.
///            DLRS_UNSUPPORTED: opaque handles. DLRS_DEVICE_TYPE: the device has no backend; both
///            first for src, then for dst.
///            DLRS_OVERLAP_DST: elements of dst share memory, or that cannot be decided.
///            DLRS_OVERLAP_SRC_DST: src and dst do, without DLRS_COPY_ALLOW_OVERLAP; copying a
///            view onto itself is allowed and does nothing. DLRS_NOMEM: no temporary memory.
///            DLRS_CALLBACK: options->parallel_for did not run all parts; dst is undefined then.
///            Classes 5 and 6, DLRS_DEV_OOM: what the device's driver reports. On any error of
///            classes 1 to 4 nothing has been written; after a device error dst is undefined.
/// Threads:   any; large copies create threads, or use options->parallel_for. Each may allocate up
///            to 300 KiB by malloc until it returns, for copies that are not contiguous; if that
///            fails the copy is slower.
///
/// # Safety
/// No other thread writes the elements of src or accesses those of dst meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_copy(
    src: *const DLManagedTensorVersioned,
    dst: *mut DLManagedTensorVersioned,
    options: *const dlrs_copy_options,
    error: *mut dlrs_error,
) -> dlrs_status {
    let args: [Arg; 2] = [Arg::src, Arg::dst];
    let options = optional(live(options, Arg::options));
    let pointers = (live(src, args[0]), live(dst, args[1]), options);
    // SAFETY: src, dst, options and error are NULL or live, by the preface.
    unsafe {
        run("dlrs_copy", error, pointers, |(src, dst, options)| {
            let (mut pair, mut room) = (Pair::new(args), Room::uninit());
            let options = copy_options(options, Arg::options, 0, &mut room)?;
            pair.read(Given { src: src.get(), dst: dst.get() }, options.rules())?;
            copy::copy(&pair, options)
        })
    }
}

/// Copy the elements of one bare tensor into another of the same shape and dtype.
///
/// Flags:     those of their managed tensors, or 0: READ_ONLY in dst_flags is an error. All else as
///            dlrs_copy.
///
/// # Safety
/// As dlrs_copy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_copy_desc(
    src: *const DLTensor,
    src_flags: u64,
    dst: *const DLTensor,
    dst_flags: u64,
    options: *const dlrs_copy_options,
    error: *mut dlrs_error,
) -> dlrs_status {
    let options = optional(live(options, Arg::options));
    let pointers = (live(src, DESCRIBED[0]), live(dst, DESCRIBED[1]), options);
    // SAFETY: src, dst, options and error are NULL or live, by the preface.
    unsafe {
        run("dlrs_copy_desc", error, pointers, |(src, dst, options)| {
            let (mut pair, mut room) = (Pair::new(DESCRIBED), Room::uninit());
            let options = copy_options(options, Arg::options, 0, &mut room)?;
            let described = described((src, src_flags), (dst, dst_flags));
            pair.read_described(described, options.rules())?;
            copy::copy(&pair, options)
        })
    }
}

/// Source and destination of the functions that take bare tensors and their flags.
const DESCRIBED: [Arg; 2] = [Arg::src, Arg::dst];

/// A pair of bare tensors with their flags.
#[inline(always)]
fn described(src: (Live<DLTensor>, u64), dst: (Live<DLTensor>, u64)) -> [Described; 2] {
    [src, dst].map(|(tensor, flags)| Described { tensor: tensor.get(), flags })
}

/// Describe how a copy would be done: by the CPU or which backend, its loops after simplification,
/// and the staging memory that an overlap or a device requires. Nothing is copied.
///
/// Where the CPU copies, the text names the operation; whether the output goes through a staging
/// buffer, which fits into a cache, and whether by non-temporal stores; the number of threads; and
/// the instructions. The operations are internals of the library and not documented here.
///
/// Shape:     as dlrs_copy.
/// Bytes:     as dlrs_dtype_format.
/// Device:    as dlrs_copy; a device's driver may be loaded.
/// Ownership: unchanged.
/// Flags:     as dlrs_copy_desc.
/// Errors:    as dlrs_dtype_format, and what dlrs_copy_desc reports before it calls a driver.
/// Threads:   any. The text is not a stable format: it may change with every version.
///
/// # Safety
/// Elements are not accessed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_copy_explain(
    src: *const DLTensor,
    src_flags: u64,
    dst: *const DLTensor,
    dst_flags: u64,
    options: *const dlrs_copy_options,
    buffer: *mut c_char,
    capacity: usize,
    nbytes: *mut usize,
    error: *mut dlrs_error,
) -> dlrs_status {
    let pointers = (
        live(src, DESCRIBED[0]),
        live(dst, DESCRIBED[1]),
        optional(live(options, Arg::options)),
        arg::buffer(buffer, capacity, Arg::buffer),
        optional(variable(nbytes, Arg::nbytes)),
    );
    // SAFETY: src, dst, options and error are NULL or live; buffer is NULL or has capacity writable
    // bytes, nbytes is NULL or writable, by the preface.
    unsafe {
        run("dlrs_copy_explain", error, pointers, |(src, dst, options, buffer, nbytes)| {
            let (mut pair, mut way) = (Pair::new(DESCRIBED), Explained::none());
            let mut room = Room::uninit();
            let options = copy_options(options, Arg::options, 0, &mut room)?;
            let described = described((src, src_flags), (dst, dst_flags));
            pair.read_described(described, options.rules())?;
            copy::explain(&pair, options, &mut way).of(DESCRIBED[1])?;
            write_text(buffer, nbytes, &mut |text| way.write(text))
        })
    }
}

/// Copy a tensor to a device into a new, compact, row-major tensor.
///
/// Shape:     the source's, compact row-major; any strides are read.
/// Bytes:     256-byte aligned, byte_offset 0; exact to the bit. Unused bits of the last byte are
///            0.
/// Device:    from any to any, as dlrs_copy.
/// Ownership: the caller owns *out; nothing of src is kept.
/// Flags:     IS_COPIED is set and READ_ONLY clear; IS_SUBBYTE_TYPE_PADDED is kept.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: src or out. DLRS_STRUCT_SIZE, DLRS_BAD_ARG:
///            options. what dlrs_copy reports of src alone.
///            DLRS_DEVICE_TYPE, DLRS_DEVICE_ID: src or device. DLRS_NOMEM, DLRS_DEV_OOM: no
///            memory; DLRS_MISALIGNED with argument 0: an allocator's was not aligned. Classes 5
///            and 6: what the device's driver reports.
/// Threads:   as dlrs_copy.
/// Source:    python_spec: IS_COPIED on every copy.
///
/// # Safety
/// No other thread writes the elements of src meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_clone(
    src: *const DLManagedTensorVersioned,
    device: DLDevice,
    options: *const dlrs_copy_options,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    let begin = &|from: &Snapshot, _: Versioned, options: &Options, job: &mut Job| {
        copy::begin_clone(from, &Wanted::new(Order::C, device), options, job)
    };
    // SAFETY: src, options and error are NULL or live, out is NULL or a writable variable.
    unsafe { made_of("dlrs_clone", src, options, out, error, begin) }
}

/// What begins a copy of a tensor that was read, or finds that none is needed.
type Begin<'a> = dyn Fn(&Snapshot, Versioned, &Options, &mut Job) -> Result<Made> + 'a;

/// Makes a tensor of another one as `begin` says.
///
/// # Safety
/// `src`, `options` and `error` are NULL or live, `out` is NULL or a writable variable.
#[inline(never)]
unsafe fn made_of(
    function: &'static str,
    src: *const DLManagedTensorVersioned,
    options: *const dlrs_copy_options,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
    begin: &Begin,
) -> dlrs_status {
    let options = optional(live(options, Arg::options));
    let pointers = (live(src, Arg::src), options, result(out, Arg::out));
    // SAFETY: src, options and error are NULL or live, out is NULL or a writable variable.
    unsafe {
        run(function, error, pointers, |(src, options, out)| {
            let mut room = Room::uninit();
            let options = copy_options(options, Arg::options, 0, &mut room)?;
            let made = copy::made_here(options, |job| {
                let mut from = Snapshot::new();
                src.read(options.rules(), &mut from)?;
                begin(&from, src.get(), options, job)
            });
            out.give(made.of(Arg::src)?);
            Ok(())
        })
    }
}

/// Return a tensor that is dense in a memory order: the tensor itself, or a dense copy.
///
/// Shape:     unchanged. order is 'C', 'F', 'A' (C or F; copies to C) or 'K' (any dense order;
///            copies keep the order of the strides).
/// Bytes:     a copy as dlrs_clone.
/// Device:    any; a copy stays on it.
/// Ownership: the caller owns *out: one more reference to src, or an independent copy.
/// Flags:     a copy as dlrs_clone; without one as dlrs_retain.
/// Errors:    as dlrs_clone, and DLRS_BAD_ARG: order. DLRS_FOREIGN: no copy is needed, and src was
///            not made here: call dlrs_import_take first.
/// Threads:   as dlrs_copy.
///
/// # Safety
/// As dlrs_clone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_contiguous(
    src: *mut DLManagedTensorVersioned,
    order: i32,
    options: *const dlrs_copy_options,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    let begin = &|from: &Snapshot, src: Versioned, options: &Options, job: &mut Job| {
        let order = order_of(order).of(Arg::order)?;
        // SAFETY: from is what was read of src, which is live.
        unsafe { copy::contiguous(from, src, order, options, job) }
    };
    // SAFETY: src, options and error are NULL or live, out is NULL or a writable variable.
    unsafe { made_of("dlrs_contiguous", src, options, out, error, begin) }
}

/// Return a tensor that is on a device: the tensor itself, its memory as the CPU's, or a copy.
///
/// Shape:     unchanged; a copy is compact row-major.
/// Bytes:     a copy as dlrs_clone.
/// Device:    from any to any, as dlrs_copy. Pinned and managed memory of a tensor of this library
///            becomes the CPU's without a copy, after its stream, as in dlrs_copy_options, has
///            written it.
/// Ownership: the caller owns *out: one more reference to src, a tensor that has one, or an
///            independent copy.
/// Flags:     a copy as dlrs_clone; without one src's, without IS_COPIED, which src loses too.
/// Errors:    as dlrs_clone, and DLRS_BAD_ARG: copy is not -1 (never), 0 (if needed), 1 (always).
///            DLRS_COPY_NEEDED: src is elsewhere and copy is -1.
///            DLRS_FOREIGN: no copy is needed, and src was not made here.
/// Threads:   as dlrs_copy.
/// Source:    dl_device and copy of the array API's __dlpack__.
///
/// # Safety
/// As dlrs_clone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_to_device(
    src: *mut DLManagedTensorVersioned,
    device: DLDevice,
    copy: i32,
    options: *const dlrs_copy_options,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    let begin = &|from: &Snapshot, src: Versioned, options: &Options, job: &mut Job| {
        let policy = policy_of(copy).of(Arg::copy)?;
        // SAFETY: from is what was read of src, which is live.
        unsafe { copy::to_device(from, src, device, policy, options, job) }
    };
    // SAFETY: src, options and error are NULL or live, out is NULL or a writable variable.
    unsafe { made_of("dlrs_to_device", src, options, out, error, begin) }
}

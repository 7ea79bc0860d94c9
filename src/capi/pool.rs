//! Pools: allocators that keep freed blocks for the next request. For loops that make and release
//! tensors of similar sizes, and for devices whose own allocation is slow.

use core::ptr::{NonNull, null};

use super::alloc::given;
use super::arg::{self, Out};
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::device_type::CPU;
use crate::error::{Arg, Of, Result};
use crate::tensor::alloc::dlrs_allocator;
use crate::tensor::pool::{self, dlrs_pool};

/// What a pool is to be. All members but `struct_size` may be 0.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct dlrs_pool_options {
    /// `sizeof(dlrs_pool_options)`.
    pub struct_size: u32,
    /// The one device that the pool serves; {0, 0} for the CPU.
    pub device: DLDevice,
    /// No more than this is taken from `base`, in use and kept together; 0 for no limit. Sizes of
    /// blocks count; the library's own memory takes the alignment of each on top.
    pub limit_nbytes: u64,
    /// Where blocks come from; NULL for the library's own memory, on the CPU only. Read during the
    /// call; `alloc`, `free` and `context` are kept until the pool and its last block are gone.
    pub base: *const dlrs_allocator,
}

/// What a pool holds and did. Sizes are of whole blocks, which are larger than what was asked for:
/// by less than a quarter, above 256 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct dlrs_pool_statistics {
    /// `sizeof(dlrs_pool_statistics)`.
    pub struct_size: u32,
    /// Bytes in use.
    pub live_nbytes: u64,
    /// Blocks in use.
    pub live_blocks: u64,
    /// Bytes kept for reuse.
    pub cached_nbytes: u64,
    /// Blocks kept for reuse.
    pub cached_blocks: u64,
    /// Requests answered with a block that was kept.
    pub hits: u64,
    /// Requests answered by asking `base`, refused ones included.
    pub misses: u64,
    /// The limit, 0 for none.
    pub limit_nbytes: u64,
}

// SAFETY: plain data, u32 first.
unsafe impl arg::Sized32 for dlrs_pool_options {}
// SAFETY: plain data, u32 first.
unsafe impl arg::Sized32 for dlrs_pool_statistics {}

const NO_OPTIONS: dlrs_pool_options =
    dlrs_pool_options { struct_size: 0, device: CPU, limit_nbytes: 0, base: null() };

const POOL: Arg = Arg::pool;

/// # Safety
/// `pool` is NULL or live.
unsafe fn live<'a>(pool: *const dlrs_pool) -> Result<&'a dlrs_pool> {
    // SAFETY: the caller's word.
    arg::required(pool, POOL).map(|pool| unsafe { pool.as_ref() })
}

/// Make a pool: an allocator that keeps freed blocks for the next request.
///
/// Bytes:     requests are rounded up to four sizes per power of two, at least 256 bytes, and to
///            256-byte alignment; the same size and alignment reuse each other's blocks. A request
///            that would exceed options->limit_nbytes, or that base refuses, first frees what is
///            kept, then fails. The pool itself takes about 28 KiB, and 16 bytes per block.
/// Device:    options->device; requests for another one fail. Device memory is never touched.
/// Ownership: the caller owns *out, to be given to dlrs_pool_release. What
///            dlrs_pool_allocator(*out) allocated goes back to the pool.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out or options; a function of base is NULL.
///            DLRS_STRUCT_SIZE: options or options->base.
///            DLRS_DEVICE_TYPE, DLRS_DEVICE_ID: the device, or another one than CPU without base.
///            DLRS_NOMEM: no memory. On any error *out is NULL.
/// Threads:   any. A pool has no lock and may be used on all threads at once; base's functions may
///            then run at once too. A forked child may use it, as far as it may use base; blocks
///            that other threads were about to take or give back are lost to it.
/// Source:    this library; the lists are Treiber's stacks (IBM RJ 5118, 1986).
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_pool_create(
    options: *const dlrs_pool_options,
    out: *mut *mut dlrs_pool,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_pool_create", error, || {
        // SAFETY: NULL or a variable of the caller.
        unsafe { arg::pointers([arg::may(options, Arg::options), arg::result(out, Arg::out)]) }?;
        let argument = Arg::options;
        // SAFETY: a variable of the caller; NULL or live options with a NULL or live base.
        let (out, options, base) = unsafe {
            let out = Out::clear(out);
            let options = arg::options(options, argument)?.unwrap_or(NO_OPTIONS);
            (out, options, given(options.base, "base's alloc or free", argument)?)
        };
        let zero = DLDevice { device_type: 0, device_id: 0 };
        let device = if options.device == zero { CPU } else { options.device };
        out.set(pool::create(device, options.limit_nbytes, base.as_ref()).of(argument)?);
        Ok(())
    })
}

/// Release a pool.
///
/// Ownership: the pointer is dead afterwards, and so is its allocator for new tensors: set another
///            one first where dlrs_allocator_set set it. What is kept is freed now. Blocks in use
///            stay valid; they go to base when they are freed, the pool with the last of them.
///            NULL does nothing.
/// Errors:    none.
/// Threads:   any, once no other thread uses the pool; blocks may be freed meanwhile.
/// Source:    this library.
///
/// # Safety
/// See the preface; a second release cannot be detected.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_pool_release(pool: *mut dlrs_pool) {
    if let Some(pool) = NonNull::new(pool) {
        // SAFETY: a live pool whose caller gives it up, by the preface.
        unsafe { pool::release(pool) }
    }
}

/// Tell the allocator that a pool is, for dlrs_alloc_options or dlrs_allocator_set.
///
/// Ownership: the pool's; valid until the pool is released.
/// Errors:    none: NULL for NULL, which stands for the default where an allocator is asked for.
/// Threads:   any.
/// Source:    this library.
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_pool_allocator(pool: *const dlrs_pool) -> *const dlrs_allocator {
    // SAFETY: NULL or a live pool, by the preface.
    unsafe { pool.as_ref() }.map_or(null(), |pool| pool.allocator())
}

/// Free blocks that a pool keeps, until they are few enough.
///
/// Bytes:     at most keep_nbytes stay, 0 for none; those of large blocks go first.
/// Ownership: blocks in use are not affected.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: pool.
/// Threads:   any; what other threads give back meanwhile may stay too.
/// Source:    cudaMemPoolTrimTo has the same meaning.
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_pool_trim(
    pool: *mut dlrs_pool,
    keep_nbytes: u64,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_pool_trim", error, || {
        // SAFETY: NULL or a live pool, by the preface.
        unsafe { live(pool) }?.trim(keep_nbytes);
        Ok(())
    })
}

/// Limit what a pool takes from its base.
///
/// Bytes:     blocks in use and kept count together; 0 for no limit. Kept blocks beyond a lower
///            limit are freed now. Blocks in use may exceed it; requests then fail with DLRS_NOMEM
///            unless a kept block fits, until enough was given back.
/// Ownership: blocks in use are not affected.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: pool.
/// Threads:   any; a request under way may still go by the limit before.
/// Source:    this library.
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_pool_set_limit(
    pool: *mut dlrs_pool,
    limit_nbytes: u64,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_pool_set_limit", error, || {
        // SAFETY: NULL or a live pool, by the preface.
        unsafe { live(pool) }?.set_limit(limit_nbytes);
        Ok(())
    })
}

/// Tell what a pool holds and did.
///
/// Ownership: out->struct_size is set by the caller; the other members are written, those that only
///            a newer version has as 0.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: pool or out. DLRS_STRUCT_SIZE: out.
///            Nothing is written then.
/// Threads:   any; while others use the pool, the numbers are of slightly different moments.
/// Source:    this library.
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_pool_stats(
    pool: *const dlrs_pool,
    out: *mut dlrs_pool_statistics,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_pool_stats", error, || {
        arg::pointers([arg::need(pool, Arg::pool), arg::need(out, Arg::out)])?;
        let argument = Arg::out;
        // SAFETY: NULL or a live pool, NULL or a live struct, by the preface.
        let (pool, given) = unsafe { (live(pool)?, arg::given_result(out, argument)?) };
        // SAFETY: not NULL, aligned, and as large as it says.
        unsafe { arg::fill(out, filled(given, pool.stats()), given.struct_size) };
        Ok(())
    })
}

fn filled(out: dlrs_pool_statistics, stats: pool::Stats) -> dlrs_pool_statistics {
    dlrs_pool_statistics {
        live_nbytes: stats.held_nbytes.saturating_sub(stats.cached_nbytes),
        live_blocks: stats.live_blocks,
        cached_nbytes: stats.cached_nbytes,
        cached_blocks: stats.cached_blocks,
        hits: stats.hits,
        misses: stats.misses,
        limit_nbytes: stats.limit_nbytes,
        ..out
    }
}

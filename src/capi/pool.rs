//! Pools: allocators that cache freed blocks for the next request. For loops that allocate and
//! release tensors of similar sizes, and for devices whose own allocation is slow.

use core::ptr::{NonNull, null};

use super::alloc::given;
use super::arg::{self, Out};
use super::error::{dlrs_error, dlrs_status, run, run_given};
use crate::abi::*;
use crate::device_type::CPU;
use crate::error::{Arg, Of, Result};
use crate::tensor::alloc::dlrs_allocator;
use crate::tensor::pool::{self, dlrs_pool};
use core::mem::MaybeUninit;

/// Options of a pool. All members but `struct_size` may be 0.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct dlrs_pool_options {
    /// `sizeof(dlrs_pool_options)`.
    pub struct_size: u32,
    /// The device of the pool; {0, 0} for the CPU.
    pub device: DLDevice,
    /// Most bytes to allocate from `base`, in use and cached together; 0 for no limit. Block sizes
    /// count; the library's own memory adds each block's alignment.
    pub limit_nbytes: u64,
    /// Allocator of the blocks; NULL for the library's own memory, on the CPU only. Read during the
    /// call; `alloc`, `free` and `context` are kept until the pool and its last block are freed.
    pub base: *const dlrs_allocator,
}

/// State and counters of a pool. Sizes are of whole blocks, which exceed the request by less than a
/// quarter, above 256 bytes.
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
    /// Bytes cached for reuse.
    pub cached_nbytes: u64,
    /// Blocks cached for reuse.
    pub cached_blocks: u64,
    /// Requests served from the cache.
    pub hits: u64,
    /// Requests passed to `base`, failed ones included.
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

/// # Safety
/// `pool` is NULL or live.
unsafe fn live<'a>(pool: *const dlrs_pool) -> Result<&'a dlrs_pool> {
    // SAFETY: the caller's word.
    arg::required(pool, Arg::pool).map(|pool| unsafe { pool.as_ref() })
}

/// Create a pool: an allocator that caches freed blocks for the next request.
///
/// Bytes:     requests are rounded up to four sizes per power of two, at least 256 bytes, and to
///            256-byte alignment; the same size and alignment reuse each other's blocks. A request
///            that would exceed options->limit_nbytes, or that base fails, first frees cached
///            blocks, then fails; one that is above the limit alone frees none. The pool itself
///            takes about 28 KiB, and 16 bytes per block.
/// Device:    options->device; requests for another one fail. Device memory is never accessed.
/// Ownership: the caller owns *out and frees it by dlrs_pool_release. Blocks of
///            dlrs_pool_allocator(*out) return to the pool.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out or options; a function of base is NULL.
///            DLRS_STRUCT_SIZE: options or options->base.
///            DLRS_DEVICE_TYPE, DLRS_DEVICE_ID: the device, or another one than CPU without base.
///            DLRS_NOMEM: no memory. On any error *out is NULL.
/// Threads:   any. A pool has no lock and may be used on all threads at once; base's functions may
///            then run at once too. A forked child may use it if it may use base; blocks that other
///            threads were allocating or freeing are leaked there.
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
    // SAFETY: NULL or a variable of the caller.
    let pointers = unsafe { [arg::may(options, Arg::options), arg::result(out, Arg::out)] };
    run_given("dlrs_pool_create", error, pointers, || {
        let (mut of_options, mut of_base) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: a variable of the caller; NULL or live options with a NULL or live base.
        let (out, options, base) = unsafe {
            let out = Out::clear(out);
            let options =
                arg::options(options, Arg::options, &mut of_options)?.unwrap_or(&NO_OPTIONS);
            (out, options, given(options.base, "base's alloc or free", Arg::options, &mut of_base)?)
        };
        let zero = DLDevice { device_type: 0, device_id: 0 };
        let device = if options.device == zero { CPU } else { options.device };
        out.set(pool::create(device, options.limit_nbytes, base).of(Arg::options)?);
        Ok(())
    })
}

/// Release a pool.
///
/// Ownership: the pointer is invalid afterwards, and so is its allocator for new tensors: if
///            dlrs_allocator_set has it, set another one first. Cached blocks are freed now. Blocks
///            in use stay valid; they return to base when they are freed, the pool with the last of
///            them.
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

/// Return a pool's allocator, for dlrs_alloc_options or dlrs_allocator_set.
///
/// Ownership: the pool's; valid until the pool is released.
/// Errors:    none: NULL for NULL, which is the default wherever an allocator is passed.
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

/// Free cached blocks of a pool until at most keep_nbytes remain.
///
/// Bytes:     0 frees all; the largest blocks are freed first.
/// Ownership: blocks in use are not affected.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: pool.
/// Threads:   any; blocks that other threads free meanwhile may stay too.
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

/// Limit what a pool allocates from its base.
///
/// Bytes:     blocks in use and cached count together; 0 for no limit. Cached blocks beyond a lower
///            limit are freed now. Blocks in use may exceed it: they return to base when they are
///            freed, and requests fail with DLRS_NOMEM, until enough are.
/// Ownership: blocks in use are not affected.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: pool.
/// Threads:   any; a concurrent request may still use the previous limit.
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

/// Return the state and counters of a pool.
///
/// Ownership: out->struct_size is set by the caller; the other members are written, those that only
///            a newer version has, with 0.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: pool or out. DLRS_STRUCT_SIZE: out.
///            Nothing is written then.
/// Threads:   any; under concurrent use the numbers are no atomic snapshot.
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
    let pointers = [arg::need(pool, Arg::pool), arg::need(out, Arg::out)];
    run_given("dlrs_pool_stats", error, pointers, || {
        // SAFETY: NULL or a live pool, NULL or a live struct, by the preface.
        let (pool, given) = unsafe { (live(pool)?, arg::given_result(out, Arg::out)?) };
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

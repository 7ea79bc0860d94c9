//! A pool: an allocator that caches freed blocks for the next request.

pub mod class;
pub mod shelf;

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

use self::class::{CLASSES, Class};
use self::shelf::{Nodes, Shelf};
use super::alloc::dlrs_allocator;
use crate::abi::{DLDevice, DLDeviceType::kDLCPU};
use crate::device_type;
use crate::error::{Error, Field::*, Result, Status::*};
use crate::platform;

/// An allocator of one device that caches freed blocks. Created by dlrs_pool_create.
#[allow(non_camel_case_types)]
pub struct dlrs_pool {
    /// This pool, as an allocator.
    allocator: dlrs_allocator,
    /// Allocator of the blocks. Both functions are set.
    base: dlrs_allocator,
    device: DLDevice,
    /// Most bytes to allocate from `base`; `u64::MAX` for no limit.
    limit: AtomicU64,
    /// Bytes and blocks allocated from `base`, or about to be.
    held: AtomicU64,
    blocks: AtomicU64,
    /// Bytes on the shelves, or about to be: never less than there are.
    cached: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    /// One for the creator of the pool until it is released, and one per block in use.
    references: AtomicU64,
    released: AtomicBool,
    nodes: Nodes,
    shelves: [Shelf; CLASSES],
}

/// State and counters of a pool.
pub struct Stats {
    /// Bytes allocated from `base`: in use and cached.
    pub held_nbytes: u64,
    /// Bytes cached for reuse.
    pub cached_nbytes: u64,
    /// Blocks in use.
    pub live_blocks: u64,
    /// Blocks cached for reuse.
    pub cached_blocks: u64,
    /// Requests served from the cache.
    pub hits: u64,
    /// Requests passed to `base`.
    pub misses: u64,
    /// The limit, 0 for none.
    pub limit_nbytes: u64,
}

/// Creates a pool on `base`, or on the library's own memory.
pub fn create(
    device: DLDevice,
    limit_nbytes: u64,
    base: Option<&dlrs_allocator>,
) -> Result<NonNull<dlrs_pool>> {
    device_type::check(device)?;
    let base = match base {
        Some(base) => *base,
        None if device.device_type == kDLCPU as i32 => HOST,
        None => {
            let error = Error::new(DLRS_DEVICE_TYPE).field(DLRS_FIELD_DEVICE_TYPE);
            let error = error.detail("only the CPU needs no base allocator\0Give one.");
            return Err(error.value(device.device_type.into()));
        }
    };
    let nbytes = size_of::<dlrs_pool>();
    let Some(memory) = platform::memory(nbytes) else {
        return Err(Error::new(DLRS_NOMEM).value(nbytes as i64).detail("out of memory, bytes"));
    };
    let pool: NonNull<dlrs_pool> = memory.cast();
    let context = memory.as_ptr().cast();
    let allocator = dlrs_allocator { context, alloc: Some(alloc), free: Some(free), ..HOST };
    let at = pool.as_ptr();
    // SAFETY: fresh memory for a pool. Atomics, shelves and nodes start as zeros; the rest is
    // written before anyone sees it. Member by member: a pool is too large for the stack.
    unsafe {
        memory.write_bytes(0, nbytes);
        (&raw mut (*at).allocator).write(allocator);
        (&raw mut (*at).base).write(base);
        (&raw mut (*at).device).write(device);
        (&raw mut (*at).references).write(AtomicU64::new(1));
        pool.as_ref().set_limit(limit_nbytes);
    }
    Ok(pool)
}

/// Releases the creator's reference. Cached blocks are freed now; the pool with the last block in
/// use.
///
/// # Safety
/// The caller created the pool and does not use it again.
pub unsafe fn release(pool: NonNull<dlrs_pool>) {
    // SAFETY: the caller's hold keeps the pool alive until `leave`.
    unsafe {
        pool.as_ref().released.store(true, Release);
        pool.as_ref().trim(0);
        leave(pool);
    }
}

/// # Safety
/// The caller has one reference to the pool and does not use it again.
unsafe fn leave(pool: NonNull<dlrs_pool>) {
    // SAFETY: the hold keeps the pool alive until here; the last one has it to itself.
    unsafe {
        if pool.as_ref().references.fetch_sub(1, AcqRel) == 1 {
            pool.as_ref().trim(0);
            pool.as_ref().nodes.give_back();
            platform::give_back(pool.cast());
        }
    }
}

/// The pool as `dlrs_allocator::alloc`.
unsafe extern "C" fn alloc(
    context: *mut c_void,
    nbytes: u64,
    align_bytes: u64,
    device: DLDevice,
) -> *mut c_void {
    // SAFETY: `create` made the context; whoever allocates holds the pool.
    let Some(pool) = (unsafe { context.cast::<dlrs_pool>().as_ref() }) else { return null_mut() };
    match Class::of(nbytes, align_bytes) {
        Some(class) if device == pool.device => {
            pool.take(class).map_or(null_mut(), |data| data.as_ptr())
        }
        _ => null_mut(),
    }
}

/// The pool as `dlrs_allocator::free`.
unsafe extern "C" fn free(
    context: *mut c_void,
    data: *mut c_void,
    nbytes: u64,
    align_bytes: u64,
    _: DLDevice,
) {
    let pool = NonNull::new(context.cast::<dlrs_pool>());
    if let (Some(pool), Some(data), Some(class)) =
        (pool, NonNull::new(data), Class::of(nbytes, align_bytes))
    {
        // SAFETY: a block in use, by the allocator's contract, which has a hold of the pool.
        unsafe {
            pool.as_ref().put(class, data);
            leave(pool);
        }
    }
}

impl dlrs_pool {
    /// The pool as an allocator, valid for as long as the pool.
    pub fn allocator(&self) -> &dlrs_allocator {
        &self.allocator
    }

    /// Allocates from the shelf of the class, else from the base.
    fn take(&self, class: Class) -> Option<NonNull<c_void>> {
        let shelf = self.shelves.get(class.index)?;
        let data = match self.nodes.take(shelf) {
            Some(data) => {
                self.cached.fetch_sub(class.nbytes, Relaxed);
                self.hits.fetch_add(1, Relaxed);
                data
            }
            None => self.fetch(class)?,
        };
        // Relaxed, as in every reference count: the caller's own reference keeps the pool alive.
        self.references.fetch_add(1, Relaxed);
        Some(data)
    }

    #[cold]
    fn fetch(&self, class: Class) -> Option<NonNull<c_void>> {
        self.misses.fetch_add(1, Relaxed);
        if !self.reserve(class.nbytes) {
            return None;
        }
        // A node for every block, so that freeing it cannot fail.
        let blocks = self.blocks.fetch_add(1, Relaxed) + 1;
        let data = self.nodes.reserve(blocks).then(|| self.ask(class)).flatten();
        if data.is_none() {
            self.forget(class);
        }
        data
    }

    /// Allocates from the base, a second time after freeing cached blocks.
    fn ask(&self, class: Class) -> Option<NonNull<c_void>> {
        let alloc = self.base.alloc?;
        // SAFETY: the allocator's contract.
        let ask =
            || unsafe { alloc(self.base.context, class.nbytes, class.align_bytes, self.device) };
        NonNull::new(ask()).or_else(|| self.trim(0).then(ask).and_then(NonNull::new))
    }

    /// Puts a block on its shelf, or frees it if the pool was released or is beyond its limit.
    fn put(&self, class: Class, data: NonNull<c_void>) {
        // The caller of `alloc` checks the base's alignment; misaligned blocks are not cached.
        let aligned = data.addr().get() as u64 & (class.align_bytes - 1) == 0;
        if aligned
            && !self.released.load(Acquire)
            && self.held.load(Relaxed) <= self.limit()
            && let Some(shelf) = self.shelves.get(class.index)
        {
            self.cached.fetch_add(class.nbytes, Relaxed);
            if self.nodes.put(shelf, data.as_ptr()) {
                return;
            }
            self.cached.fetch_sub(class.nbytes, Relaxed);
        }
        self.give_back(class, data);
    }

    fn give_back(&self, class: Class, data: NonNull<c_void>) {
        let Some(free) = self.base.free else { return };
        let Class { nbytes, align_bytes, .. } = class;
        // SAFETY: the base gave it for these values, and nobody uses it any more.
        unsafe { free(self.base.context, data.as_ptr(), nbytes, align_bytes, self.device) };
        self.forget(class);
    }

    fn forget(&self, class: Class) {
        self.blocks.fetch_sub(1, Relaxed);
        self.held.fetch_sub(class.nbytes, Relaxed);
    }

    /// Counts bytes as allocated, after trimming if needed; `false` beyond the limit.
    fn reserve(&self, nbytes: u64) -> bool {
        let add = |held: u64| held.checked_add(nbytes).filter(|&held| held <= self.limit());
        let fits = || self.held.fetch_update(Relaxed, Relaxed, add).is_ok();
        if fits() {
            return true;
        }
        // A request that can never fit does not empty the cache.
        if add(0).is_some() {
            self.shrink(&|| add(self.held.load(Relaxed)).is_some());
        }
        fits()
    }

    /// Frees blocks, those of large classes first, until it is enough or none is left; returns
    /// whether it freed any.
    #[cold]
    #[inline(never)]
    fn shrink(&self, enough: &dyn Fn() -> bool) -> bool {
        let mut freed = false;
        for (index, shelf) in self.shelves.iter().enumerate().rev() {
            if self.cached.load(Relaxed) == 0 {
                break;
            }
            while !enough() {
                let Some(data) = self.nodes.take(shelf) else { break };
                let class = Class::at(index);
                self.cached.fetch_sub(class.nbytes, Relaxed);
                self.give_back(class, data);
                freed = true;
            }
        }
        freed
    }

    /// Frees cached blocks until at most `keep_nbytes` remain; returns whether any was freed.
    pub fn trim(&self, keep_nbytes: u64) -> bool {
        self.shrink(&|| self.cached.load(Relaxed) <= keep_nbytes)
    }

    fn limit(&self) -> u64 {
        self.limit.load(Relaxed)
    }

    /// Sets the limit, 0 for none, and frees cached blocks beyond it.
    pub fn set_limit(&self, limit_nbytes: u64) {
        let limit = if limit_nbytes == 0 { u64::MAX } else { limit_nbytes };
        self.limit.store(limit, Relaxed);
        self.shrink(&|| self.held.load(Relaxed) <= limit);
    }

    /// State and counters; under concurrent use no atomic snapshot.
    pub fn stats(&self) -> Stats {
        let limit = self.limit();
        let live_blocks = self.references.load(Relaxed).saturating_sub(1);
        Stats {
            held_nbytes: self.held.load(Relaxed),
            cached_nbytes: self.cached.load(Relaxed),
            live_blocks,
            cached_blocks: self.blocks.load(Relaxed).saturating_sub(live_blocks),
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            limit_nbytes: if limit == u64::MAX { 0 } else { limit },
        }
    }
}

/// The library's own memory.
const HOST: dlrs_allocator = dlrs_allocator {
    struct_size: size_of::<dlrs_allocator>() as u32,
    context: null_mut(),
    alloc: Some(host_alloc),
    free: Some(host_free),
};

/// Memory with the address that `malloc` returned right before it.
unsafe extern "C" fn host_alloc(
    _: *mut c_void,
    nbytes: u64,
    align_bytes: u64,
    _: DLDevice,
) -> *mut c_void {
    // Of a class: neither sum nor mask can wrap.
    let room = align_bytes.max(size_of::<*mut c_void>() as u64);
    let memory = usize::try_from(nbytes + room).ok().and_then(platform::memory);
    memory.map_or(null_mut(), |memory| {
        let past = room as usize - (memory.addr().get() & (room as usize - 1));
        // SAFETY: malloc aligns to 16 at least, so there is room for a pointer before `data`, which
        // is at most `room` bytes from the start.
        unsafe {
            let data = memory.add(past);
            data.cast::<NonNull<u8>>().sub(1).write(memory);
            data.as_ptr().cast()
        }
    })
}

unsafe extern "C" fn host_free(_: *mut c_void, data: *mut c_void, _: u64, _: u64, _: DLDevice) {
    // SAFETY: `host_alloc` wrote what `platform::memory` gave right before `data`.
    unsafe { platform::give_back(data.cast::<NonNull<u8>>().sub(1).read()) }
}

//! Shelves: stacks of blocks that are not in use, without locks.
//!
//! A shelf has nodes, and a node has the address of a block: the block itself is never accessed, as
//! it may be on a device. Nodes have numbers, in chunks that are allocated until the pool is freed,
//! so a thread that reads a node which another one removes reads valid memory; a counter beside the
//! number prevents the ABA problem (Treiber's stack). Without
//! a lock, a process forked in the middle of an operation has nothing to wait for.

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};

use crate::platform;

/// Nodes of the first chunk; each further one holds twice as many as the one before.
const FIRST: u64 = 64;
/// As many chunks as numbers can count: 67 million nodes.
const CHUNKS: usize = 20;
/// Bits of a number in the head of a shelf. The others count changes: the ABA problem needs
/// hundreds of thousands of millions of them while a thread is suspended.
const NUMBER_BITS: u32 = 26;

struct Node {
    /// The number of the next node, or 0.
    next: AtomicU32,
    data: AtomicPtr<c_void>,
}

/// A stack: in the low bits the number of its first node or 0; in the high bits the count of
/// changes. All zeros is an empty one.
pub struct Shelf(AtomicU64);

/// All nodes of a pool, and those without a block. All zeros is none.
pub struct Nodes {
    chunks: [AtomicPtr<Node>; CHUNKS],
    made: AtomicU64,
    spare: Shelf,
}

fn number(head: u64) -> u32 {
    (head & ((1 << NUMBER_BITS) - 1)) as u32
}

/// The head that follows `head` with this first node.
fn head(before: u64, number: u32) -> u64 {
    ((before >> NUMBER_BITS).wrapping_add(1) << NUMBER_BITS) | u64::from(number)
}

impl Nodes {
    /// Takes a block off a shelf.
    pub fn take(&self, shelf: &Shelf) -> Option<NonNull<c_void>> {
        let (number, node) = self.pop(shelf)?;
        let data = node.data.load(Relaxed);
        self.push(&self.spare, number, node);
        NonNull::new(data)
    }

    /// Puts a block on a shelf; `false` when no node is left for it, which [`Nodes::reserve`]
    /// prevents.
    pub fn put(&self, shelf: &Shelf, data: *mut c_void) -> bool {
        let Some((number, node)) = self.pop(&self.spare) else { return false };
        node.data.store(data, Relaxed);
        self.push(shelf, number, node);
        true
    }

    /// Allocates nodes until there are as many as blocks; `false` when there is no memory for them.
    pub fn reserve(&self, blocks: u64) -> bool {
        self.made.load(Acquire) >= blocks || self.grow(blocks)
    }

    #[cold]
    fn grow(&self, blocks: u64) -> bool {
        for (chunk, start) in self.chunks.iter().enumerate() {
            if start.load(Relaxed).is_null() && !self.add_chunk(chunk, start) {
                return false;
            }
            if self.made.load(Acquire) >= blocks {
                return true;
            }
        }
        false
    }

    /// Allocates a chunk, unless another thread is faster; `false` for no memory.
    fn add_chunk(&self, chunk: usize, start: &AtomicPtr<Node>) -> bool {
        let count = FIRST << chunk;
        let first = (count - FIRST + 1) as u32;
        let last = first + (count - 1) as u32;
        let nbytes = (count as usize).checked_mul(size_of::<Node>());
        let Some(memory) = nbytes.and_then(platform::memory) else { return false };
        let nodes: NonNull<Node> = memory.cast();
        for (place, number) in (first..=last).enumerate() {
            let next = AtomicU32::new(if number == last { 0 } else { number + 1 });
            // SAFETY: fresh memory for `count` nodes.
            unsafe { nodes.add(place).write(Node { next, data: AtomicPtr::new(null_mut()) }) };
        }
        // Release: a thread that sees the chunk sees its nodes.
        if start.compare_exchange(null_mut(), nodes.as_ptr(), Release, Relaxed).is_err() {
            // SAFETY: nobody has seen this memory.
            unsafe { platform::give_back(memory) };
            return true;
        }
        if let Some(node) = self.node(last) {
            self.push(&self.spare, first, node);
        }
        self.made.fetch_add(count, Release);
        true
    }

    /// The node with this number; `None` for 0.
    fn node(&self, number: u32) -> Option<&Node> {
        let place = u64::from(number.checked_sub(1)?) + FIRST;
        let chunk = place.ilog2() - FIRST.ilog2();
        let start = self.chunks.get(chunk as usize)?.load(Acquire);
        // SAFETY: numbers come from `add_chunk`, when their chunk is there, and chunks stay; the
        // chunk's nodes count from `FIRST << chunk`.
        unsafe { start.add((place - (FIRST << chunk)) as usize).as_ref() }
    }

    fn pop(&self, shelf: &Shelf) -> Option<(u32, &Node)> {
        let mut now = shelf.0.load(Acquire);
        loop {
            let node = self.node(number(now))?;
            // Another thread may have the node by now: `next` is then wrong, and so is `now`.
            let next = head(now, node.next.load(Relaxed));
            match shelf.0.compare_exchange_weak(now, next, Acquire, Acquire) {
                Ok(_) => return Some((number(now), node)),
                Err(changed) => now = changed,
            }
        }
    }

    /// Puts the nodes from `first` to `last`, which are linked, on a shelf.
    fn push(&self, shelf: &Shelf, first: u32, last: &Node) {
        let mut now = shelf.0.load(Relaxed);
        loop {
            last.next.store(number(now), Relaxed);
            // Release: a thread that takes the node sees its data, and what was done with the
            // block.
            match shelf.0.compare_exchange_weak(now, head(now, first), Release, Relaxed) {
                Ok(_) => return,
                Err(changed) => now = changed,
            }
        }
    }

    /// Frees the nodes' memory.
    ///
    /// # Safety
    /// The nodes and shelves are not used any more.
    pub unsafe fn give_back(&self) {
        for chunk in &self.chunks {
            if let Some(memory) = NonNull::new(chunk.load(Acquire)) {
                // SAFETY: `add_chunk` took it from `platform::memory`.
                unsafe { platform::give_back(memory.cast()) };
            }
        }
    }
}

const _: () = assert!((FIRST << CHUNKS) - FIRST < 1 << NUMBER_BITS);

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::MaybeUninit;

    /// An empty shelf with no nodes yet.
    fn empty() -> (Nodes, Shelf) {
        // SAFETY: zeros are an empty shelf and no nodes, as both say.
        unsafe { MaybeUninit::zeroed().assume_init() }
    }

    fn block(address: usize) -> *mut c_void {
        core::ptr::without_provenance_mut(address)
    }

    #[test]
    fn the_last_in_is_the_first_out_over_several_chunks() {
        let (nodes, shelf) = empty();
        assert!(!nodes.put(&shelf, block(1)), "no node was made");
        assert!(nodes.reserve(1000));
        assert!((1..=1000).all(|address| nodes.put(&shelf, block(address))));
        assert!((1..=1000).rev().all(|address| nodes.take(&shelf) == NonNull::new(block(address))));
        assert_eq!(nodes.take(&shelf), None);
        // SAFETY: the test's own.
        unsafe { nodes.give_back() };
    }

    /// A suspended thread that read the head must not see the same node as unchanged.
    #[test]
    fn shelf_heads_are_never_reused() {
        let (nodes, shelf) = empty();
        assert!(nodes.reserve(1) && nodes.put(&shelf, block(1)));
        let before = shelf.0.load(Relaxed);
        let data = nodes.take(&shelf).unwrap();
        assert!(nodes.put(&shelf, data.as_ptr()));
        let after = shelf.0.load(Relaxed);
        assert_eq!(number(before), number(after));
        assert_ne!(before, after);
        // SAFETY: the test's own.
        unsafe { nodes.give_back() };
    }
}

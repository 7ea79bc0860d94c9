//! References to a block: in every order of two threads, and with at most three preemptions of three,
//! the data is freed once, by the last owner, after what the others did with it.
#![cfg(test)]

mod model;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

const REFERENCES_MAX: usize = 1 << 30;
const DLPACK_FLAG_BITMASK_IS_COPIED: u64 = 1 << 1;

/// What of the library's block its reference count has to do with.
struct Block {
    references: AtomicUsize,
    flags: AtomicU64,
    data: [UnsafeCell<u32>; 3],
    freed: AtomicUsize,
}

// The library's own functions: `leave`, `Block::hold_usual`.
include!(concat!(env!("OUT_DIR"), "/counts.rs"));

impl Block {
    fn new(references: usize) -> Arc<Block> {
        Arc::new(Block {
            references: AtomicUsize::new(references),
            flags: AtomicU64::new(DLPACK_FLAG_BITMASK_IS_COPIED),
            data: std::array::from_fn(|_| UnsafeCell::new(0)),
            freed: AtomicUsize::new(0),
        })
    }

    fn flags(&self) -> &AtomicU64 {
        &self.flags
    }

    /// An owner writes its own element. Loom reports accesses that nothing orders.
    fn write(&self, owner: usize) {
        self.data[owner].with_mut(|value| unsafe { *value += 1 });
    }

    /// The last owner reads and writes all of them, as whoever gets the memory next.
    fn release(&self) {
        if leave(&self.references) {
            for value in &self.data {
                value.with_mut(|value| unsafe { *value = u32::MAX });
            }
            assert_eq!(self.freed.fetch_add(1, Relaxed), 0);
        }
    }
}

// SAFETY: loom checks the accesses to `data`.
unsafe impl Sync for Block {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Block {}

/// Runs `work` on as many threads as there are references, in every order within the bound.
fn model(threads: usize, bound: Option<usize>, work: fn(&Block, usize)) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = bound;
    model.check(move || {
        let block = Block::new(threads);
        let others: Vec<_> = (1..threads)
            .map(|owner| (block.clone(), owner))
            .map(|(block, owner)| loom::thread::spawn(move || work(&block, owner)))
            .collect();
        work(&block, 0);
        others.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((block.freed.load(Relaxed), block.references.load(Relaxed)), (1, 0));
        assert!(!block.hold_usual(), "a block that is freed has no reference to share");
    });
}

fn writes_and_releases(block: &Block, owner: usize) {
    block.write(owner);
    block.release();
}

fn shares_and_releases_twice(block: &Block, owner: usize) {
    assert!(block.hold_usual());
    assert_eq!(block.flags().load(Relaxed) & DLPACK_FLAG_BITMASK_IS_COPIED, 0);
    block.write(owner);
    block.release();
    block.write(owner);
    block.release();
}

#[test]
fn two_owners_release() {
    model(2, None, writes_and_releases);
}

#[test]
fn three_owners_release() {
    model(3, Some(3), writes_and_releases);
}

#[test]
fn two_owners_share_while_the_other_one_releases() {
    model(2, Some(3), shares_and_releases_twice);
}

//! Tickets: whether the tensor of a capsule still exists, checked without a reference.
//!
//! A consumer may call the deleter and leave the capsule's name (TensorFlow, of a device that it
//! does not have), or clear the capsule's destructor (JAX, nanobind): so the destructor may look at
//! nothing that goes with the tensor, and nothing may wait for it. A ticket is a number in a table
//! of fixed size, without locks. Where all places are taken, the name alone is believed.

use core::ffi::c_void;
use core::ptr::without_provenance_mut;
use core::sync::atomic::{AtomicUsize, Ordering::*};

use crate::tensor::block::Block;

/// Places of the table, a power of two.
const PLACES: usize = 1024;
/// As many places are tried.
const TRIES: usize = 16;

/// The tickets out; 0 is a free place. A ticket's place is its rest by `PLACES`.
static OUT: [AtomicUsize; PLACES] = [const { AtomicUsize::new(0) }; PLACES];
static SERIAL: AtomicUsize = AtomicUsize::new(1);

fn place(ticket: usize) -> Option<&'static AtomicUsize> {
    OUT.get(ticket % PLACES).filter(|_| ticket != 0)
}

/// A ticket that is valid until the block is freed; `None` if there are too many, or no memory.
pub fn issue(block: &Block) -> Option<usize> {
    let serial = SERIAL.fetch_add(1, Relaxed);
    let ticket = (0..TRIES).find_map(|further| {
        let at = serial.wrapping_add(further) % PLACES;
        let ticket = serial.wrapping_mul(PLACES) + at;
        let free = place(ticket)?.compare_exchange(0, ticket, AcqRel, Relaxed).is_ok();
        free.then_some(ticket)
    })?;
    if block.attach(false, expire, without_provenance_mut(ticket)).is_err() {
        void(ticket);
        return None;
    }
    Some(ticket)
}

/// Whether the block of a ticket still exists; unknown for a void ticket.
pub fn valid(ticket: usize) -> bool {
    place(ticket).is_some_and(|place| place.load(Acquire) == ticket)
}

/// Frees the entry of a ticket.
pub fn void(ticket: usize) {
    if let Some(place) = place(ticket) {
        let _ = place.compare_exchange(ticket, 0, AcqRel, Relaxed);
    }
}

/// The block is freed.
unsafe extern "C" fn expire(ticket: *mut c_void) {
    void(ticket.addr());
}

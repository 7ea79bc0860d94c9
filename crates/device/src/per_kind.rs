//! Tables that callers set per device type: backends, allocators.
//!
//! A caller's table is copied when it is set, and the copy is never freed. So it is read once, with
//! the size of the caller's struct; a thread may use it while another one is set; and memory can be
//! freed by the table that allocated it.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

use crate::abi::DeviceCode;
use crate::device_type;
use crate::error::{Error, Field::*, Result, Status::*};
use crate::platform;

/// Codes of device types are below this.
const KINDS: usize = 32;
/// Number of copies without allocation.
const PLACES: usize = 16;

/// A table for each kind of device, or none.
pub struct PerKind<T: 'static> {
    now: [AtomicPtr<Kept<T>>; KINDS],
    /// All copies, the last one first: equal tables have one copy.
    kept: AtomicPtr<Kept<T>>,
    places: [UnsafeCell<MaybeUninit<Kept<T>>>; PLACES],
    used: AtomicUsize,
}

// SAFETY: a place is written once, by the thread that counted it, before others find it; the bound
// on `T` makes sharing the tables safe.
unsafe impl<T: Sync> Sync for PerKind<T> {}

/// A copy of a caller's table.
struct Kept<T> {
    table: T,
    given: *mut T,
    next: *mut Kept<T>,
}

impl<T: Copy + PartialEq> PerKind<T> {
    /// None for any kind.
    pub const fn new() -> Self {
        PerKind {
            now: [const { AtomicPtr::new(null_mut()) }; KINDS],
            kept: AtomicPtr::new(null_mut()),
            places: [const { UnsafeCell::new(MaybeUninit::uninit()) }; PLACES],
            used: AtomicUsize::new(0),
        }
    }

    fn slot(&self, device_type: DeviceCode) -> Option<&AtomicPtr<Kept<T>>> {
        usize::try_from(device_type).ok().and_then(|code| self.now.get(code))
    }

    /// The table of a kind. Two calls may return different ones: call it once per decision.
    pub fn get(&self, device_type: DeviceCode) -> Option<&'static T> {
        let kept = self.slot(device_type)?.load(Acquire);
        // SAFETY: NULL or a copy, which stays and is never written again.
        unsafe { kept.as_ref() }.map(|kept| &kept.table)
    }

    /// Sets the table of a kind, read from `given`, or none; returns the address of the previous
    /// struct.
    pub fn set(&self, device_type: DeviceCode, new: Option<(*mut T, &T)>) -> Result<*mut T> {
        let slot = self.slot(device_type).filter(|_| device_type::known(device_type));
        let Some(slot) = slot else { return Err(unknown(device_type)) };
        let new = match new {
            Some((given, table)) => self.keep(given, table)?.as_ptr(),
            None => null_mut(),
        };
        // SAFETY: NULL or a copy, which stays and is never written again.
        let before = unsafe { slot.swap(new, AcqRel).as_ref() };
        Ok(before.map_or(null_mut(), |before| before.given))
    }

    /// The copy of a table, made if there is none yet.
    fn keep(&self, given: *mut T, table: &T) -> Result<NonNull<Kept<T>>> {
        let mut next = self.kept.load(Acquire);
        let mut at = next;
        // SAFETY: NULL or a copy, which stays and is never written again.
        while let Some(kept) = unsafe { at.as_ref() } {
            if kept.given == given && kept.table == *table {
                return Ok(NonNull::from(kept));
            }
            at = kept.next;
        }
        let kept = self.place()?;
        loop {
            // SAFETY: fresh memory of the right size, not yet shared.
            unsafe { kept.write(Kept { table: *table, given, next }) };
            match self.kept.compare_exchange_weak(next, kept.as_ptr(), AcqRel, Acquire) {
                Ok(_) => return Ok(kept),
                Err(now) => next = now,
            }
        }
    }

    /// Room for a copy.
    fn place(&self) -> Result<NonNull<Kept<T>>> {
        let one_more = |used: usize| (used < PLACES).then_some(used + 1);
        let used = self.used.fetch_update(Relaxed, Relaxed, one_more);
        if let Some(place) = used.ok().and_then(|used| self.places.get(used)) {
            return Ok(NonNull::from(place).cast());
        }
        let nbytes = size_of::<Kept<T>>();
        let error = Error::new(DLRS_NOMEM).value(nbytes as i64).detail("out of memory, bytes");
        platform::memory(nbytes).map(NonNull::cast).ok_or(error)
    }
}

/// A device type for which nothing can be set.
#[cold]
pub fn unknown(device_type: DeviceCode) -> Error {
    let error = Error::new(DLRS_DEVICE_TYPE).field(DLRS_FIELD_DEVICE_TYPE);
    error.value(device_type.into())
}

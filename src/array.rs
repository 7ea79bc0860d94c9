//! An array with room for so many values, of which only those that are there have been written:
//! to make one costs nothing.

use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut};

/// Up to `N` values.
#[derive(Clone, Copy)]
pub struct Array<T: Copy, const N: usize> {
    len: usize,
    values: [MaybeUninit<T>; N],
}

impl<T: Copy, const N: usize> Array<T, N> {
    /// None.
    #[inline(always)]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Array<T, N> {
        Array { len: 0, values: [const { MaybeUninit::uninit() }; N] }
    }

    /// Adds one at the end; false, and nothing is added, if there is no room.
    #[inline]
    pub fn push(&mut self, value: T) -> bool {
        let Some(slot) = self.values.get_mut(self.len) else { return false };
        slot.write(value);
        self.len += 1;
        true
    }

    /// Adds `n`, or as many as there is room for.
    #[inline]
    pub fn extend(&mut self, n: usize, mut next: impl FnMut() -> T) {
        let (len, end) = (self.len, self.len.saturating_add(n).min(N));
        for slot in self.values.get_mut(len..end).unwrap_or(&mut []) {
            slot.write(next());
        }
        self.len = end;
    }

    /// Leaves the first `len`.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl<T: Copy, const N: usize> Deref for Array<T, N> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` values, at most N, are written before they are counted.
        unsafe { core::slice::from_raw_parts(self.values.as_ptr().cast(), self.len) }
    }
}

impl<T: Copy, const N: usize> DerefMut for Array<T, N> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts_mut(self.values.as_mut_ptr().cast(), self.len) }
    }
}

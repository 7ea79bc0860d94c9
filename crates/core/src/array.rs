//! A fixed-capacity array, uninitialised beyond its length.

use core::ffi::CStr;
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
    pub fn push(&mut self, value: T) -> bool {
        let Some(slot) = self.values.get_mut(self.len) else { return false };
        slot.write(value);
        self.len += 1;
        true
    }

    /// Adds `n`, or as many as there is room for.
    pub fn extend(&mut self, n: usize, mut next: impl FnMut() -> T) {
        let (len, end) = (self.len, self.len.saturating_add(n).min(N));
        for slot in self.values.get_mut(len..end).unwrap_or(&mut []) {
            slot.write(next());
        }
        self.len = end;
    }

    /// Leaves the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl<T: Copy, const N: usize> Deref for Array<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` values, at most N, are written before they are counted.
        unsafe { core::slice::from_raw_parts(self.values.as_ptr().cast(), self.len) }
    }
}

impl<T: Copy, const N: usize> DerefMut for Array<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the first `len` values, at most N, are written; `self` is borrowed for the
        // change.
        unsafe { core::slice::from_raw_parts_mut(self.values.as_mut_ptr().cast(), self.len) }
    }
}

/// Two arrays with room for `N` values each, of which as many are there.
#[derive(Clone, Copy)]
pub struct Pairs<T: Copy, const N: usize> {
    len: usize,
    values: [[MaybeUninit<T>; N]; 2],
}

impl<T: Copy, const N: usize> Pairs<T, N> {
    /// None.
    #[inline(always)]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Pairs<T, N> {
        Pairs { len: 0, values: [const { [const { MaybeUninit::uninit() }; N] }; 2] }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The first of each.
    pub fn first(&self) -> &[T] {
        // SAFETY: the first `len` values of both, at most N, are written before they are counted.
        unsafe { core::slice::from_raw_parts((&raw const self.values[0]).cast(), self.len) }
    }

    /// The second of each.
    pub fn second(&self) -> &[T] {
        // SAFETY: the first `len` values of both, at most N, are written before they are counted.
        unsafe { core::slice::from_raw_parts((&raw const self.values[1]).cast(), self.len) }
    }

    /// The second of each, to be changed, beside the first.
    pub fn beside(&mut self) -> (&[T], &mut [T]) {
        let [first, second] = &mut self.values;
        // SAFETY: the first `len` values of both are written; the two arrays are distinct.
        unsafe {
            let first = core::slice::from_raw_parts(first.as_ptr().cast(), self.len);
            (first, core::slice::from_raw_parts_mut(second.as_mut_ptr().cast(), self.len))
        }
    }

    /// Pair `i`.
    pub fn get(&self, i: usize) -> Option<(T, T)> {
        let [first, second] = &self.values;
        // SAFETY: pair `i` is below `len`, at most N, so both values are written.
        (i < self.len).then(|| unsafe {
            (first.get_unchecked(i).assume_init(), second.get_unchecked(i).assume_init())
        })
    }

    /// Replaces pair `i`, if it is there.
    pub fn set(&mut self, i: usize, (a, b): (T, T)) {
        if i < self.len {
            let [first, second] = &mut self.values;
            // SAFETY: `i` is below `len`, at most N, the size of both arrays.
            unsafe {
                first.get_unchecked_mut(i).write(a);
                second.get_unchecked_mut(i).write(b);
            }
        }
    }

    /// Adds a pair at the end; none if there is no room.
    pub fn push(&mut self, pair: (T, T)) {
        if self.len < N {
            self.len += 1;
            self.set(self.len - 1, pair);
        }
    }

    /// Leaves the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Where both are: room for `N` values each.
    pub fn room(&mut self) -> [*mut T; 2] {
        self.values.each_mut().map(|values| values.as_mut_ptr().cast())
    }

    /// Counts what was written into the [`Pairs::room`].
    ///
    /// # Safety
    /// The first `len` values of both have been written, and `len` is at most `N`.
    pub unsafe fn set_len(&mut self, len: usize) {
        self.len = len;
    }
}

/// Where in `text` the parts start that are closed by `each` separators; one more for the end.
pub const fn starts<const N: usize>(text: &str, separator: u8, each: usize) -> [u16; N] {
    let (bytes, mut starts, mut found, mut i) = (text.as_bytes(), [0; N], 0, 0);
    assert!(bytes.len() <= u16::MAX as usize);
    while i < bytes.len() {
        i += 1;
        if bytes[i - 1] == separator {
            found += 1;
            if found % each == 0 {
                starts[found / each] = i as u16;
            }
        }
    }
    assert!(found == (N - 1) * each);
    starts
}

/// Constant texts in one, each closed by NUL. A table of texts has a pointer for each, which takes
/// 48 bytes with its length and relocation.
#[derive(Clone, Copy)]
pub struct Texts(pub &'static str);

impl Texts {
    /// Those from `place` on.
    pub fn skip(self, place: usize) -> Texts {
        let (bytes, mut start) = (self.0.as_bytes(), 0);
        for _ in 0..place {
            let rest = bytes.get(start..).unwrap_or(&[]);
            start += rest.iter().position(|&byte| byte == 0).map_or(rest.len(), |end| end + 1);
        }
        Texts(self.0.get(start..).unwrap_or(""))
    }

    /// Text `place`; empty when there are not so many.
    pub fn c_str(self, place: usize) -> &'static CStr {
        CStr::from_bytes_until_nul(self.skip(place).0.as_bytes()).unwrap_or(c"")
    }

    /// As [`Texts::c_str`].
    pub fn get(self, place: usize) -> &'static str {
        self.c_str(place).to_str().unwrap_or("")
    }
}

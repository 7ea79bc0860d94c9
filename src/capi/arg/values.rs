//! Arrays and texts of the caller's.

use core::ffi::c_char;
use core::mem::MaybeUninit;
use core::ptr::null_mut;

use super::pointer::{Live, Parameter, Pointer};
use crate::array::Array;
use crate::error::{Arg, Error, Field::*, Result, Status::*};
use crate::layout::MAX_NDIM;
use crate::validate::check_ndim;

/// Description and remedy of sizes that several functions have.
pub const TOO_LARGE: &str = "no memory is this large, bytes\0Give the size of the allocation.";

/// `nbytes` readable bytes; `arg` is their number's.
///
/// # Safety
/// `nbytes` bytes are there, unchanged as long as the answer is used.
pub unsafe fn bytes<'a>(first: Live<c_char>, nbytes: usize, arg: Arg) -> Result<&'a [u8]> {
    if isize::try_from(nbytes).is_err() {
        let error = Error::new(DLRS_BAD_ARG).detail(TOO_LARGE).of(arg);
        return Err(error.value_u64(nbytes as u64).limit(isize::MAX as i64));
    }
    // SAFETY: nbytes bytes, no more than isize::MAX, are readable and stay unchanged.
    Ok(unsafe { core::slice::from_raw_parts(first.as_ptr().cast(), nbytes) })
}

/// A text that ends with NUL.
///
/// # Safety
/// `text` is NULL or such a text, for as long as the answer is used.
#[cfg(feature = "python")]
pub unsafe fn text<'a>(text: *const c_char, arg: Arg) -> Result<&'a core::ffi::CStr> {
    // SAFETY: text is NULL, or ends with NUL and stays unchanged while the answer is used.
    unsafe { Ok(core::ffi::CStr::from_ptr(Live::new(text, arg)?.as_ptr())) }
}

/// As many values as a tensor has dimensions, each read once into `room`: what another thread
/// writes meanwhile cannot make them differ from one use to the next. `args` are the array's and
/// the number's.
///
/// # Safety
/// `values` is NULL, misaligned or points to `ndim` readable values.
#[inline]
pub unsafe fn values(
    values: *const i64,
    ndim: i32,
    args: [Arg; 2],
    room: &mut Array<i64, MAX_NDIM>,
) -> Result<&[i64]> {
    let n = check_ndim(ndim).map_err(|e| e.field(DLRS_FIELD_NONE).of(args[1]))?;
    // SAFETY: values is NULL, misaligned or points to ndim values, which are n.
    unsafe { n_values(values, n, args[0], room) }
}

/// As [`values`], of a known number, at most `MAX_NDIM`. Of none the pointer may be NULL.
///
/// # Safety
/// `values` is NULL, misaligned or points to `n` readable values.
#[inline]
pub unsafe fn n_values(
    values: *const i64,
    n: usize,
    arg: Arg,
    room: &mut Array<i64, MAX_NDIM>,
) -> Result<&[i64]> {
    room.truncate(0);
    if n == 0 {
        return Ok(room);
    }
    if values.is_null() {
        return Err(Error::new(DLRS_SHAPE_NULL).field(DLRS_FIELD_NONE).of(arg));
    }
    // SAFETY: values is misaligned or points to n values, of which each is read once.
    unsafe {
        let mut next = Live::new(values, arg)?.as_ptr();
        room.extend(n, || {
            let value = next.read_volatile();
            next = next.add(1);
            value
        });
    }
    Ok(room)
}

/// See [`buffer`].
pub struct ToBuffer<T>(*mut T, usize, Arg);

/// A pointer to room for `n` values; it may be NULL for none.
#[inline(always)]
pub fn buffer<T>(pointer: *mut T, n: usize, arg: Arg) -> ToBuffer<T> {
    ToBuffer(pointer, n, arg)
}

impl<T> Parameter for ToBuffer<T> {
    type Judged = Buffer<T>;

    #[inline(always)]
    fn pointer(&self) -> Pointer {
        Pointer::new(self.0, self.1 > 0, self.2)
    }

    #[inline(always)]
    unsafe fn judged(&self) -> Buffer<T> {
        Buffer { first: self.0, n: self.1 }
    }
}

/// A caller's room for `n` values, writable during the call.
pub struct Buffer<T> {
    pub(super) first: *mut T,
    pub(super) n: usize,
}

impl Buffer<i64> {
    /// Fills it in one pass, from the last value on, from the values of two arrays; says no, and
    /// writes nothing, where `each` does, or where there are many.
    ///
    /// # Safety
    /// `a` and `b` are the first of as many values as there is room for here.
    #[inline(always)]
    pub unsafe fn fill(
        &self,
        a: Live<i64>,
        b: Live<i64>,
        mut each: impl FnMut(i64, i64) -> Option<i64>,
    ) -> bool {
        const MOST: usize = 8;
        if self.n > MOST {
            return false;
        }
        let mut room = [const { MaybeUninit::<i64>::uninit() }; MOST];
        let room: *mut i64 = room.as_mut_ptr().cast();
        let mut at = self.n;
        // SAFETY: each array is aligned and holds n values, of which each is read once; room has as
        // many, and what is read of it has been written.
        unsafe {
            while at > 0 {
                at -= 1;
                let (a, b) = (a.as_ptr().add(at), b.as_ptr().add(at));
                match each(a.read_volatile(), b.read_volatile()) {
                    Some(value) => room.add(at).write(value),
                    None => return false,
                }
            }
            while at < self.n {
                // Volatile: of so few values a call of memcpy costs more than all the rest.
                self.first.add(at).write_volatile(room.add(at).read());
                at += 1;
            }
        }
        true
    }

    /// Writes values, as many as there is room for.
    pub fn write(&self, values: &[i64]) {
        let n = values.len().min(self.n);
        // SAFETY: first has room for n values, and none of ours is there.
        unsafe { self.first.copy_from_nonoverlapping(values.as_ptr(), n) }
    }
}

/// A caller's array, of which every item is read where it is needed.
pub struct Items<T> {
    first: *mut T,
    n: usize,
}

impl<T: Copy> Items<T> {
    /// `n` items; the pointer is of no interest for none.
    ///
    /// # Safety
    /// `first` is the first of `n` items, readable as long as the answer is used.
    pub unsafe fn new(first: Option<Live<T>>, n: u64, arg: Arg) -> Result<Items<T>> {
        let first = first.map_or(null_mut(), Live::as_ptr);
        match usize::try_from(n) {
            Ok(n) if n <= isize::MAX as usize / size_of::<T>().max(1) => Ok(Items { first, n }),
            _ => Err(Error::new(DLRS_BAD_ARG)
                .detail("no array is this large\0Give the number of its items.")
                .of(arg)
                .value_u64(n)),
        }
    }

    /// As [`Items::new`], for an array that is no parameter.
    ///
    /// # Safety
    /// `first` is NULL, misaligned or points to `n` items, readable as long as the answer is used.
    pub unsafe fn member(first: *const T, n: u64, arg: Arg) -> Result<Items<T>> {
        // SAFETY: first is NULL, misaligned or the first of n items.
        unsafe {
            let first = if n == 0 { None } else { Some(Live::new(first, arg)?) };
            Items::new(first, n, arg)
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Reads item `i`.
    pub fn get(&self, i: usize) -> Option<T> {
        // SAFETY: first holds n readable items, and i is less than n.
        (i < self.n).then(|| unsafe { self.first.add(i).read_volatile() })
    }
}

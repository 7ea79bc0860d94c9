//! Structs whose first member is their size: options, and results of several members.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::pointer::{Live, Out};
use crate::error::{Arg, Error, Field::*, Result, Status::*};

/// An options struct: plain data whose first member is `uint32_t struct_size`. Members are only
/// ever added at the end.
///
/// # Safety
/// Every bit pattern is a value, and the first member is a `u32`.
pub unsafe trait Sized32: Copy {
    /// How large the struct was in earlier versions, ascending: what callers may still pass.
    const EARLIER: &'static [usize] = &[];
}

/// The sizes of a struct, in every version.
#[derive(Clone, Copy)]
struct Sizes {
    nbytes: usize,
    earlier: &'static [usize],
}

impl Sizes {
    fn of<T: Sized32>() -> Sizes {
        Sizes { nbytes: size_of::<T>(), earlier: T::EARLIER }
    }

    /// The size that a struct says it has.
    ///
    /// # Safety
    /// `given` is aligned and points to a readable struct of the size that it says, a u32 in front.
    unsafe fn judge(self, given: *const u8, arg: Arg) -> Result<usize> {
        // SAFETY: an aligned, readable struct, whose first member is a u32.
        let size = unsafe { given.cast::<u32>().read_volatile() } as usize;
        // The smallest that there ever was.
        let least = self.earlier.first().map_or(self.nbytes, |&size| size);
        if size >= least && size <= SIZE_MOST {
            return Ok(size);
        }
        let error = Error::new(DLRS_STRUCT_SIZE).field(DLRS_FIELD_STRUCT_SIZE).of(arg);
        const LARGE: &str = "no struct is this large\0\
                             Set struct_size to sizeof the struct; or is it another struct?";
        Err(match size < least {
            true => error.value(size as i64).limit(least as i64),
            // Without the value: of another struct it may be half of an address.
            false => error.detail(LARGE),
        })
    }

    /// Reads what is known of a struct of any version; the rest is 0. The `options` of a newer
    /// version must be 0 beyond it.
    ///
    /// # Safety
    /// As [`Sizes::judge`], and `to` has room for `nbytes` bytes, aligned, apart from `given`.
    unsafe fn read(self, given: *const u8, arg: Arg, options: bool, to: *mut u8) -> Result<()> {
        // SAFETY: size bytes are readable at given and self.nbytes writable at to, and known is at
        // most either; size was read once, whatever another thread may write there.
        unsafe {
            let size = self.judge(given, arg)?;
            let mut known = self.nbytes;
            if size != known {
                known = self.known(given, size, arg, options)?;
                to.write_bytes(0, self.nbytes);
            }
            to.copy_from_nonoverlapping(given, known);
            to.cast::<u32>().write(size as u32);
        }
        Ok(())
    }

    /// How many bytes of a struct of another version are read.
    ///
    /// # Safety
    /// `given` has `size` bytes.
    #[cold]
    #[inline(never)]
    unsafe fn known(self, given: *const u8, size: usize, arg: Arg, options: bool) -> Result<usize> {
        // SAFETY: at is less than size, and given has size readable bytes.
        let zero = |at: usize| unsafe { given.add(at).read_volatile() } == 0;
        if options && !(self.nbytes..size).all(zero) {
            const NEWER: &str = "sets a member that only a newer version of the library knows\0\
                                 Leave it 0, or use that version.";
            let error = Error::new(DLRS_STRUCT_SIZE).field(DLRS_FIELD_STRUCT_SIZE).of(arg);
            return Err(error.value(size as i64).limit(self.nbytes as i64).detail(NEWER));
        }
        let fits = |one: &&usize| **one <= size;
        Ok(match size >= self.nbytes {
            true => self.nbytes,
            false => self.earlier.iter().rev().find(fits).map_or(0, |&one| one),
        })
    }
}

/// No struct will ever have more bytes.
const SIZE_MOST: usize = 4096;

impl<T: Sized32> Live<T> {
    /// The size that it says, when that is a T's.
    #[inline(always)]
    fn usual_size(self) -> Option<u32> {
        // SAFETY: a live struct, whose first member is a u32, by the trait.
        let size = unsafe { self.as_ptr().cast::<u32>().read_volatile() };
        (size as usize == size_of::<T>()).then_some(size)
    }

    #[inline(never)]
    fn read_sized(self, arg: Arg, options: bool, room: &mut MaybeUninit<T>) -> Result<()> {
        // SAFETY: a live struct of the size that it says; room has the bytes of a T.
        unsafe {
            Sizes::of::<T>().read(self.as_ptr().cast(), arg, options, room.as_mut_ptr().cast())
        }
    }
}

/// The caller's options, or `None` for the defaults. A larger struct of a newer header is taken
/// if all that is not known of it is 0; what a smaller one of an older header lacks is 0. A size
/// between two versions is the earlier one's: no member is read in part.
#[inline(always)]
pub fn options<T: Sized32>(
    given: Option<Live<T>>,
    arg: Arg,
    room: &mut MaybeUninit<T>,
) -> Result<Option<&T>> {
    let Some(given) = given else { return Ok(None) };
    match given.usual_size() {
        // SAFETY: a live struct of this size, and room for one, whose first member is the size.
        Some(size) => unsafe {
            room.write(given.as_ptr().read_volatile());
            room.as_mut_ptr().cast::<u32>().write(size);
        },
        None => given.read_sized(arg, true, room)?,
    }
    // SAFETY: all of room is written, of which any bits are a value.
    Ok(Some(unsafe { room.assume_init_ref() }))
}

impl<T: Sized32> Out<T> {
    /// The size that a struct for a result says: one of a newer header may have members that are
    /// not known here.
    #[cfg(feature = "python")]
    #[inline(always)]
    pub fn size(&self, arg: Arg) -> Result<u32> {
        match Live(self.0).usual_size() {
            Some(size) => Ok(size),
            // SAFETY: an aligned, readable struct of the size that it says, a u32 in front.
            None => unsafe { Sizes::of::<T>().judge(self.0.as_ptr().cast(), arg) }
                .map(|size| size as u32),
        }
    }

    /// A struct for a result, with what it says.
    pub fn given(&self, arg: Arg) -> Result<T> {
        let mut room = MaybeUninit::uninit();
        Live(self.0).read_sized(arg, false, &mut room)?;
        // SAFETY: all of room is written, of which any bits are a value.
        Ok(unsafe { room.assume_init() })
    }

    /// Fills a struct that says `size`. What a larger one of a newer header has more becomes 0.
    pub fn fill(&self, value: T, size: u32) {
        let more = (size as usize).saturating_sub(size_of::<T>());
        self.set(value);
        if more > 0 {
            // SAFETY: as many bytes as the struct says are writable, `more` of them behind a T.
            unsafe { self.0.add(1).cast::<u8>().write_bytes(0, more) }
        }
    }

    /// A caller's struct, if there is one and it is aligned.
    ///
    /// # Safety
    /// `pointer` is NULL, misaligned, or points to a struct of the size that it says, writable as
    /// long as the answer is used.
    pub unsafe fn found(pointer: *mut T) -> Option<Out<T>> {
        NonNull::new(pointer).filter(|pointer| pointer.is_aligned()).map(Out)
    }

    /// The size that a struct says.
    pub fn said(&self) -> usize {
        Live(self.0).said()
    }

    /// Writes as much of a value as the caller's struct has, but for the size in front.
    pub fn fill_part(&self, value: &T, size: usize) {
        let skip = size_of::<u32>();
        let n = size.min(size_of::<T>()).saturating_sub(skip);
        // SAFETY: skip + n bytes are readable in value and writable in the struct, which says so.
        unsafe {
            let from = (&raw const *value).cast::<u8>().add(skip);
            self.0.as_ptr().cast::<u8>().add(skip).copy_from_nonoverlapping(from, n);
        }
    }
}

impl<T: Sized32> Live<T> {
    /// The size that a struct says.
    pub fn said(self) -> usize {
        // SAFETY: a live struct, whose first member is a u32, by the trait.
        unsafe { self.as_ptr().cast::<u32>().read_volatile() as usize }
    }

    /// Reads as much of a struct as there is of it.
    pub fn read_part(self, size: usize, into: &mut T) {
        let n = size.min(size_of::<T>());
        // SAFETY: n bytes are readable in the struct, which says so, and writable in a T, of which
        // any bits are a value.
        unsafe {
            let from = self.as_ptr().cast::<u8>();
            (&raw mut *into).cast::<u8>().copy_from_nonoverlapping(from, n);
        }
    }
}

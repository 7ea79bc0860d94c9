//! Arguments: from what C passes to what the core takes.
//!
//! One of the two files in which a foreign pointer is followed (the other is `validate.rs`).

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::{NonNull, null_mut};

use crate::array::Array;
use crate::error::{Arg, Error, Field::*, Result, Status::*};
use crate::layout::MAX_NDIM;
use crate::tensor::block;
use crate::tensor::share::Managed;

/// A pointer that must not be NULL and must be aligned for its type.
pub fn required<T>(pointer: *const T, arg: Arg) -> Result<NonNull<T>> {
    match NonNull::new(pointer.cast_mut()) {
        Some(pointer) if pointer.is_aligned() => Ok(pointer),
        found => Err(refuse(found.is_none(), align_of::<T>(), arg)),
    }
}

/// A pointer as [`required`] and the variable for the result, when nothing is wrong with either.
/// The variable is not yet NULL.
#[inline(always)]
pub fn usual<T, U>(pointer: *const T, out: *mut *mut U) -> Option<(NonNull<T>, Out<U>)> {
    // One question for both where, as everywhere, structs are aligned as pointers are.
    let bits = (align_of::<T>() | align_of::<*mut U>()) - 1;
    let found = NonNull::new(pointer.cast_mut())?;
    (!out.is_null() && (pointer.addr() | out.addr()) & bits == 0).then_some((found, Out(out)))
}

/// A pointer as [`required`] and the variable for the result, which is NULL from here on.
///
/// # Safety
/// `out` is NULL or points to a writable variable.
#[inline(always)]
pub unsafe fn with_out<T, U>(
    pointer: *const T,
    arg: Arg,
    out: *mut *mut U,
    out_arg: Arg,
) -> Result<(NonNull<T>, Out<U>)> {
    // SAFETY: out is NULL or a writable variable.
    unsafe { pointers([need(pointer, arg), result(out, out_arg)]) }?;
    Ok((required(pointer, arg)?, Out(out)))
}

/// A pointer argument, to be judged beside the others of its call.
#[derive(Clone, Copy)]
pub struct Pointer {
    address: usize,
    align_bytes: u8,
    needed: bool,
    arg: Arg,
}

/// A pointer that must not be NULL.
#[inline(always)]
pub fn need<T>(pointer: *const T, arg: Arg) -> Pointer {
    need_if(true, pointer, arg)
}

/// A pointer that may be NULL.
#[inline(always)]
pub fn may<T>(pointer: *const T, arg: Arg) -> Pointer {
    need_if(false, pointer, arg)
}

/// A pointer that may be NULL unless something is `wanted` there.
#[inline(always)]
pub fn need_if<T>(wanted: bool, pointer: *const T, arg: Arg) -> Pointer {
    const { assert!(align_of::<T>() <= u8::MAX as usize) };
    Pointer { address: pointer.addr(), align_bytes: align_of::<T>() as u8, needed: wanted, arg }
}

/// The variable for a result, set to NULL where there is one.
///
/// # Safety
/// `out` is NULL or points to a writable variable.
#[inline(always)]
pub unsafe fn result<T>(out: *mut *mut T, arg: Arg) -> Pointer {
    // SAFETY: out is NULL or a writable variable.
    unsafe { Out::clear(out) };
    need(out, arg)
}

/// As [`result`], for a result that the caller need not want.
///
/// # Safety
/// `out` is NULL or points to a writable variable.
#[inline(always)]
pub unsafe fn wanted_result<T>(out: *mut *mut T, arg: Arg) -> Pointer {
    // SAFETY: out is NULL or a writable variable.
    unsafe { Out::clear(out) };
    may(out, arg)
}

/// Whether a pointer argument of a call is NULL and must not be, or is not aligned. Asked before
/// anything else of it is looked at.
#[inline(always)]
pub fn wrong<const N: usize>(all: &[Pointer; N]) -> bool {
    const { assert!(N <= 6) };
    // Written out: a loop would go over an array in memory.
    let wrong = |i: usize| all.get(i).is_some_and(|one| one.null() | one.misaligned());
    wrong(0) | wrong(1) | wrong(2) | wrong(3) | wrong(4) | wrong(5)
}

/// Refuses the first of all pointer arguments that is NULL and must not be, else the first that is
/// not aligned. For what several functions share: one of its own names its pointers to `run_given`.
#[inline(always)]
pub fn pointers<const N: usize>(all: [Pointer; N]) -> Result<()> {
    if wrong(&all) {
        let again = all;
        return Err(refused(&again).error());
    }
    Ok(())
}

impl Pointer {
    #[inline(always)]
    fn null(&self) -> bool {
        self.needed & (self.address == 0)
    }

    #[inline(always)]
    fn misaligned(&self) -> bool {
        self.address & (usize::from(self.align_bytes) - 1) != 0
    }
}

/// What is wrong with a pointer: in one register, and the compiler sees that it is an error.
pub struct Refusal {
    /// 0: it is NULL.
    align_bytes: u8,
    arg: Arg,
}

impl Refusal {
    /// The error.
    #[cold]
    pub fn error(self) -> Error {
        refuse(self.align_bytes == 0, self.align_bytes.into(), self.arg)
    }
}

#[cold]
#[inline(never)]
pub fn refused(all: &[Pointer]) -> Refusal {
    let null = all.iter().find(|pointer| pointer.null());
    let found = null.or_else(|| all.iter().find(|pointer| pointer.misaligned()));
    found.map_or(Refusal { align_bytes: 0, arg: Arg::nobody }, |pointer| Refusal {
        align_bytes: if pointer.null() { 0 } else { pointer.align_bytes },
        arg: pointer.arg,
    })
}

#[cold]
fn refuse(null: bool, align_bytes: usize, arg: Arg) -> Error {
    match null {
        true => {
            const GONE: &str = "\0Pass a tensor: this one was never made, or is moved or taken.";
            let is_tensor =
                matches!(arg, Arg::tensor | Arg::base | Arg::src | Arg::dst | Arg::a | Arg::b);
            Error::new(DLRS_NULL_ARG).detail(if is_tensor { GONE } else { "" }).of(arg)
        }
        false => Error::new(DLRS_MISALIGNED_STRUCT).limit(align_bytes as i64).of(arg),
    }
}

/// A caller's variable for a result, set to NULL until there is one.
pub struct Out<T>(*mut *mut T);

impl<T> Out<T> {
    /// Sets the variable to NULL, when there is one.
    ///
    /// # Safety
    /// `out` is NULL or points to a writable variable.
    pub unsafe fn clear(out: *mut *mut T) -> Self {
        if !out.is_null() && out.is_aligned() {
            // SAFETY: out is writable, and found to be neither NULL nor misaligned.
            unsafe { out.write(null_mut()) }
        }
        Out(out)
    }

    /// A variable that [`result`] has set to NULL, and [`pointers`] has judged.
    #[cfg(feature = "python")]
    #[inline(always)]
    pub fn judged(out: *mut *mut T) -> Self {
        Out(out)
    }

    /// Refuses a missing variable.
    pub fn check(&self, arg: Arg) -> Result<()> {
        required(self.0, arg).map(|_| ())
    }

    /// Hands the result over.
    pub fn set(&self, value: NonNull<T>) {
        // SAFETY: the variable is writable; `check`, `usual` or `pointers` found it to be
        // neither NULL nor misaligned.
        unsafe { self.0.write(value.as_ptr()) }
    }
}

/// A caller's variable whose tensor is to be taken. The tensor has a reference to take: it is not
/// one that is being freed, which a callback may still see.
pub struct Taken<T> {
    slot: *mut *mut T,
    /// The tensor.
    pub tensor: NonNull<T>,
}

impl<T: Managed> Taken<T> {
    /// The tensor in the variable, when nothing is wrong. `out` is not yet NULL.
    ///
    /// # Safety
    /// As [`Taken::new`].
    #[inline(always)]
    pub unsafe fn usual<U>(slot: *mut *mut T, out: *mut *mut U) -> Option<Self> {
        let bits = align_of::<*mut T>() - 1;
        let both = !slot.is_null() && !out.is_null() && (slot.addr() | out.addr()) & bits == 0;
        if !both || slot.addr() == out.addr() {
            return None;
        }
        // SAFETY: slot is readable, and found to be neither NULL nor misaligned.
        let tensor = NonNull::new(unsafe { slot.read() })?;
        // SAFETY: what slot holds, if not NULL, is a live tensor; its alignment is judged first.
        let held = tensor.is_aligned() && !unsafe { T::dying(tensor) };
        held.then_some(Taken { slot, tensor })
    }

    /// The tensor in the variable, for a function without a result.
    ///
    /// # Safety
    /// `slot` is NULL or points to a variable that holds NULL or a live tensor.
    pub unsafe fn only(slot: *mut *mut T, arg: Arg) -> Result<Self> {
        // SAFETY: slot is readable, judged by `pointers` before it is read, and its tensor live.
        unsafe {
            pointers([need(slot, arg), held(slot, arg)])?;
            let tensor = required(slot.read(), arg)?;
            match T::dying(tensor) {
                true => Err(block::dying().of(arg)),
                false => Ok(Taken { slot, tensor }),
            }
        }
    }

    /// Empties the variable: the tensor is taken.
    ///
    /// # Safety
    /// The variable is still writable.
    pub unsafe fn empty(&self) {
        // SAFETY: slot is writable; it was neither NULL nor misaligned when the tensor was read
        // from it.
        unsafe { self.slot.write(null_mut()) }
    }

    /// The tensor in the variable; refused when it is the variable that receives the result, which
    /// is set to NULL.
    ///
    /// # Safety
    /// `slot` is NULL or points to a writable variable that holds NULL or a live tensor; `out` is
    /// NULL or points to a writable variable.
    #[inline(always)]
    pub unsafe fn new<U>(slot: *mut *mut T, out: *mut *mut U, args: [Arg; 2]) -> Result<Self> {
        // SAFETY: slot and out are NULL or writable variables, and a tensor in slot is live;
        // `usual` found out to be neither NULL nor misaligned.
        unsafe {
            match Taken::usual(slot, out) {
                Some(taken) => {
                    out.write(null_mut());
                    Ok(taken)
                }
                None => Taken::refuse(slot, out, args),
            }
        }
    }

    /// # Safety
    /// As [`Taken::new`].
    #[cold]
    #[inline(never)]
    unsafe fn refuse<U>(slot: *mut *mut T, out: *mut *mut U, args: [Arg; 2]) -> Result<Self> {
        if !slot.is_null() && slot.addr() == out.addr() {
            let error = Error::new(DLRS_BAD_ARG)
                .detail("is the same variable as the input\0Give another one.");
            return Err(error.of(args[1]));
        }
        // SAFETY: slot and out are NULL or writable variables, and a tensor in slot is live.
        unsafe {
            let held = held(slot, args[0]);
            pointers([need(slot, args[0]), held, result(out, args[1])])?;
            Taken::only(slot, args[0])
        }
    }

    /// Gives the result to the caller and empties the variable.
    ///
    /// # Safety
    /// The variable of the tensor and `out`, which was given to [`Taken::new`], are still writable.
    pub unsafe fn give<U>(&self, result: NonNull<U>, out: *mut *mut U) {
        // SAFETY: both variables are writable; `new` found them neither NULL nor misaligned.
        unsafe {
            self.empty();
            out.write(result.as_ptr());
        }
    }
}

/// The tensor in a variable that can be read.
///
/// # Safety
/// `slot` is NULL or points to a readable variable.
pub unsafe fn held<T>(slot: *mut *mut T, arg: Arg) -> Pointer {
    match !slot.is_null() && slot.is_aligned() {
        // SAFETY: slot is readable, and found to be neither NULL nor misaligned.
        true => need(unsafe { slot.read() }, arg),
        false => may(core::ptr::null::<T>(), arg),
    }
}

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
    align_bytes: usize,
    earlier: &'static [usize],
}

impl Sizes {
    fn of<T: Sized32>() -> Sizes {
        Sizes { nbytes: size_of::<T>(), align_bytes: align_of::<T>(), earlier: T::EARLIER }
    }

    /// As [`size`].
    ///
    /// # Safety
    /// `given` is NULL or points to a readable struct of the size that it says, a u32 in front.
    unsafe fn judge(self, given: *const u8, arg: Arg) -> Result<usize> {
        if given.is_null() || given.addr() & (self.align_bytes - 1) != 0 {
            return Err(refuse(given.is_null(), self.align_bytes, arg));
        }
        // SAFETY: given is aligned and not NULL, and the first member is a u32, by the trait.
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

/// The size that a caller's struct says it has: one for a result, of which a newer header's may
/// have members that are not known here.
///
/// # Safety
/// `given` is NULL or points to a readable struct of the size that it says.
#[cfg(feature = "python")]
#[inline(always)]
pub unsafe fn size<T: Sized32>(given: *const T, arg: Arg) -> Result<u32> {
    let nbytes = size_of::<T>();
    // SAFETY: given is NULL or a readable struct, whose first member is a u32, by the trait.
    unsafe {
        let usual = !given.is_null() && given.is_aligned();
        if usual && given.cast::<u32>().read_volatile() as usize == nbytes {
            return Ok(nbytes as u32);
        }
        Sizes::of::<T>().judge(given.cast(), arg).map(|size| size as u32)
    }
}

/// No struct will ever have more bytes.
const SIZE_MOST: usize = 4096;

/// The caller's options, or `None` for the defaults. A larger struct of a newer header is taken
/// if all that is not known of it is 0; what a smaller one of an older header lacks is 0. A size
/// between two versions is the earlier one's: no member is read in part.
///
/// # Safety
/// `options` is NULL or points to a readable struct of the size that it says.
pub unsafe fn options<T: Sized32>(
    options: *const T,
    arg: Arg,
    room: &mut MaybeUninit<T>,
) -> Result<Option<&T>> {
    if options.is_null() {
        return Ok(None);
    }
    // SAFETY: options has as many readable bytes as it says, room has the bytes of a T; `read`
    // fills them all, and any bits are a value.
    unsafe {
        Sizes::of::<T>().read(options.cast(), arg, true, room.as_mut_ptr().cast())?;
        Ok(Some(room.assume_init_ref()))
    }
}

/// As [`options`], inlined where they are of this version: for the most frequent callers.
///
/// # Safety
/// `given` is NULL or points to a readable struct of the size that it says.
#[inline(always)]
pub unsafe fn usual_options<T: Sized32>(
    given: *const T,
    arg: Arg,
    room: &mut MaybeUninit<T>,
) -> Result<Option<&T>> {
    if given.is_null() || !given.is_aligned() {
        // SAFETY: given is NULL or a readable struct of the size that it says.
        return unsafe { options(given, arg, room) };
    }
    // SAFETY: given is neither NULL nor misaligned, and as large as it says, which is found to be
    // the size of a T; any bits are a value.
    unsafe {
        let size = given.cast::<u32>().read_volatile();
        if size as usize != size_of::<T>() {
            return options(given, arg, room);
        }
        room.write(given.read_volatile());
        room.as_mut_ptr().cast::<u32>().write(size);
        Ok(Some(room.assume_init_ref()))
    }
}

/// A caller's struct for a result, with what it says.
///
/// # Safety
/// `out` is NULL or points to a readable struct of the size that it says.
pub unsafe fn given_result<T: Sized32>(out: *const T, arg: Arg) -> Result<T> {
    let mut read = MaybeUninit::<T>::uninit();
    // SAFETY: out is NULL or a readable struct of the size that it says; `read` fills all of a T,
    // of which any bits are a value.
    unsafe {
        Sizes::of::<T>().read(out.cast(), arg, false, read.as_mut_ptr().cast())?;
        Ok(read.assume_init())
    }
}

/// Fills a caller's struct, whose size and version [`options`] has read. What a larger one of a
/// newer header has more becomes 0.
///
/// # Safety
/// `out` is aligned and points to a writable struct of `given` bytes, at least as many as a T has.
pub unsafe fn fill<T: Sized32>(out: *mut T, value: T, given: u32) {
    let more = (given as usize).saturating_sub(size_of::<T>());
    // SAFETY: given bytes are writable at out: those of a T, and `more` behind them.
    unsafe {
        out.write(value);
        if more > 0 {
            out.add(1).cast::<u8>().write_bytes(0, more);
        }
    }
}

/// Descriptions and remedies of members and arguments that several functions have.
pub const RESERVED: &str = "reserved\0is not 0\0Set it to 0.";
/// As [`RESERVED`].
pub const FLAGS: &str = "flags\0has bits that this function does not know\0Clear them.";
/// As [`RESERVED`].
pub const TOO_LARGE: &str = "no memory is this large, bytes\0Give the size of the allocation.";

/// Where `nbytes` bytes are; NULL is accepted for none. `args` are the place's and the number's.
pub fn place(bytes: *const c_void, nbytes: u64, args: [Arg; 2]) -> Result<NonNull<u8>> {
    if bytes.is_null() && nbytes == 0 {
        return Ok(NonNull::dangling());
    }
    let bytes = required(bytes.cast::<u8>(), args[0])?;
    if isize::try_from(nbytes).is_ok() {
        return Ok(bytes);
    }
    let error = Error::new(DLRS_BAD_ARG).detail(TOO_LARGE).of(args[1]);
    Err(error.value_u64(nbytes).limit(isize::MAX as i64))
}

/// `nbytes` readable bytes.
///
/// # Safety
/// `bytes` is NULL or points to `nbytes` bytes that stay unchanged during the call.
pub unsafe fn bytes<'a>(bytes: *const c_void, nbytes: u64, args: [Arg; 2]) -> Result<&'a [u8]> {
    let bytes = place(bytes, nbytes, args)?;
    // SAFETY: not NULL, no more than isize::MAX, and nbytes bytes are readable and stay unchanged.
    Ok(unsafe { core::slice::from_raw_parts(bytes.as_ptr(), nbytes as usize) })
}

/// A text that ends with NUL.
///
/// # Safety
/// `text` is NULL or such a text, for as long as the answer is used.
#[cfg(feature = "python")]
pub unsafe fn text<'a>(text: *const core::ffi::c_char, arg: Arg) -> Result<&'a core::ffi::CStr> {
    let text = required(text, arg)?;
    // SAFETY: text is not NULL, ends with NUL, and stays unchanged while the answer is used.
    Ok(unsafe { core::ffi::CStr::from_ptr(text.as_ptr()) })
}

/// `ndim` values, at most `MAX_NDIM`, each read once into `room`: what another thread writes
/// meanwhile cannot make them differ from one use to the next. A 0-d tensor may have a NULL
/// pointer.
///
/// # Safety
/// `values` is NULL or points to `ndim` readable values.
#[inline]
pub unsafe fn values(
    values: *const i64,
    ndim: usize,
    arg: Arg,
    room: &mut Array<i64, MAX_NDIM>,
) -> Result<&[i64]> {
    room.truncate(0);
    if ndim == 0 {
        return Ok(room);
    }
    if values.is_null() {
        return Err(Error::new(DLRS_SHAPE_NULL).field(DLRS_FIELD_NONE).of(arg));
    }
    let mut next = required(values, arg)?.as_ptr().cast_const();
    room.extend(ndim, || {
        // SAFETY: values is neither NULL nor misaligned, and holds ndim readable values.
        unsafe {
            let value = next.read_volatile();
            next = next.add(1);
            value
        }
    });
    Ok(room)
}

/// Writes values into an array of the caller's.
///
/// # Safety
/// `to` is NULL or has room for the values.
pub unsafe fn write_values(values: Option<&[i64]>, to: *mut i64, arg: Arg) -> Result<()> {
    let values = values.unwrap_or(&[]);
    if values.is_empty() {
        return Ok(());
    }
    let to = required(to, arg)?;
    // SAFETY: to is neither NULL nor misaligned, with room for all values; `values` are our own.
    unsafe { to.as_ptr().copy_from(values.as_ptr(), values.len()) };
    Ok(())
}

/// A caller's array, of which every value is read where it is needed.
pub struct Values<T> {
    first: *const T,
    n: usize,
}

impl<T: Copy> Values<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Reads value `i`.
    pub fn get(&self, i: usize) -> Option<T> {
        // SAFETY: first holds n readable values, and i is less than n.
        (i < self.n).then(|| unsafe { self.first.add(i).read_volatile() })
    }
}

/// `n` tensors or other pointers; NULL is accepted for none.
///
/// # Safety
/// `array` is NULL or points to `n` values, readable as long as the answer is used.
pub unsafe fn array<T>(array: *const T, n: u64, arg: Arg) -> Result<Values<T>> {
    if n == 0 {
        return Ok(Values { first: array, n: 0 });
    }
    let first = required(array, arg)?.as_ptr().cast_const();
    match usize::try_from(n) {
        Ok(n) if n <= isize::MAX as usize / size_of::<T>().max(1) => Ok(Values { first, n }),
        _ => {
            let error = Error::new(DLRS_BAD_ARG)
                .detail("no array is this large\0Give the number of its items.")
                .of(arg);
            Err(error.value_u64(n))
        }
    }
}

/// Writes a caller's variable, if there is one.
///
/// # Safety
/// `out` is NULL or points to a writable variable, and [`pointers`] has judged it.
pub unsafe fn report<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: out is not NULL, and a writable variable; `pointers` found it aligned.
        unsafe { out.write(value) }
    }
}

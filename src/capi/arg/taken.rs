//! Tensors whose ownership passes to the callee, in variables of the caller's.

use core::ptr::{NonNull, null_mut};

use super::pointer::{Live, Out, Parameter, Parameters, Pointer, first_wrong, live, result};
use crate::error::{Arg, Error, Result, Status::*};
use crate::tensor::block;
use crate::tensor::share::Managed;

/// A caller's variable whose tensor is to be taken. The tensor has a reference to take: it is not
/// one that is being freed, which a callback may still see.
pub struct Taken<T> {
    slot: Out<*mut T>,
    /// The tensor.
    pub tensor: NonNull<T>,
}

impl<T: Managed> Taken<T> {
    /// The tensor in the variable and the variable for the result, when nothing is wrong. The
    /// latter is not yet NULL.
    ///
    /// # Safety
    /// As [`Taken::new`].
    #[inline(always)]
    pub unsafe fn usual<U>(slot: *mut *mut T, out: *mut *mut U) -> Option<(Self, Out<*mut U>)> {
        let bits = align_of::<*mut T>() - 1;
        let out = NonNull::new(out)?;
        let slot = NonNull::new(slot)?;
        if (slot.addr().get() | out.addr().get()) & bits != 0 || slot.addr() == out.addr() {
            return None;
        }
        // SAFETY: slot is readable, and found to be neither NULL nor misaligned.
        let tensor = NonNull::new(unsafe { slot.read() })?;
        // SAFETY: what slot holds, if not NULL, is a live tensor; its alignment is judged first.
        let held = tensor.is_aligned() && !unsafe { T::dying(tensor) };
        held.then_some((Taken { slot: Out(slot), tensor }, Out(out)))
    }

    /// The tensor in the variable, for a function without a result.
    ///
    /// # Safety
    /// `slot` is NULL or points to a writable variable that holds NULL or a live tensor.
    pub unsafe fn only(slot: *mut *mut T, arg: Arg) -> Result<Self> {
        // SAFETY: slot is NULL, misaligned or a writable variable, which is judged before it is
        // read; its tensor is NULL, misaligned or live.
        unsafe {
            let slot = Live::new(slot, arg)?.get();
            let tensor = Live::new(slot.read(), arg)?.get();
            match T::dying(tensor) {
                true => Err(block::dying().of(arg)),
                false => Ok(Taken { slot: Out(slot), tensor }),
            }
        }
    }

    /// The tensor in the variable, and the variable for the result, which is set to NULL; refused
    /// when they are the same variable.
    ///
    /// # Safety
    /// `slot` is NULL or points to a writable variable that holds NULL or a live tensor; `out` is
    /// NULL or points to a writable variable; during the call.
    #[inline(always)]
    pub unsafe fn new<U>(
        slot: *mut *mut T,
        out: *mut *mut U,
        args: [Arg; 2],
    ) -> Result<(Self, Out<*mut U>)> {
        // SAFETY: slot and out are NULL or writable variables, and a tensor in slot is live.
        unsafe {
            match Taken::usual(slot, out) {
                Some((taken, out)) => {
                    out.set(null_mut());
                    Ok((taken, out))
                }
                None => Err(refusal(slot, out, args)),
            }
        }
    }

    /// Empties the variable: the tensor is taken.
    #[inline(always)]
    pub fn empty(&self) {
        self.slot.set(null_mut());
    }
}

/// Why [`Taken::new`] refuses its variables.
///
/// # Safety
/// As [`Taken::new`].
#[cold]
#[inline(never)]
unsafe fn refusal<T, U>(slot: *mut *mut T, out: *mut *mut U, args: [Arg; 2]) -> Error {
    if !slot.is_null() && slot.addr() == out.addr() {
        let error =
            Error::new(DLRS_BAD_ARG).detail("is the same variable as the input\0Give another one.");
        return error.of(args[1]);
    }
    // SAFETY: slot and out are NULL, misaligned or writable variables.
    unsafe {
        let pointers = (live(slot, args[0]), Held(slot, args[0]), result(out, args[1]));
        match pointers.wrong() {
            true => pointers.refused(first_wrong),
            false => block::dying().of(args[0]),
        }
    }
}

/// The tensor in a variable that may be wrong.
pub struct Held<T>(pub *mut *mut T, pub Arg);

impl<T> Parameter for Held<T> {
    type Judged = ();

    fn pointer(&self) -> Pointer {
        let Held(slot, arg) = *self;
        let readable = !slot.is_null() && slot.is_aligned();
        // SAFETY: a readable variable, neither NULL nor misaligned.
        let tensor = if readable { unsafe { slot.read() } } else { null_mut() };
        Pointer::new(tensor, readable, arg)
    }

    unsafe fn judged(&self) {}
}

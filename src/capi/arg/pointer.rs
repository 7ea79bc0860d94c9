//! One pointer of the caller's: before it is judged, and what it becomes.

use core::ptr::{NonNull, null, null_mut};

use crate::abi::{DLManagedTensor, DLManagedTensorVersioned, DLTensor};
use crate::error::{Arg, Error, Result, Status::*};
use crate::validate::{Plain, Rules, Snapshot, members};

/// What a caller's pointer refers to: neither NULL nor misaligned, and live during the call.
#[repr(transparent)]
pub struct Live<T>(pub(super) NonNull<T>);

impl<T> Clone for Live<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Live<T> {}

impl<T> Live<T> {
    /// Judges a pointer that is no parameter: a member of a struct, an item of an array.
    ///
    /// # Safety
    /// `pointer` is NULL, misaligned, or points to a live T.
    #[inline(always)]
    pub unsafe fn new(pointer: *const T, arg: Arg) -> Result<Live<T>> {
        match NonNull::new(pointer.cast_mut()) {
            Some(pointer) if pointer.is_aligned() => Ok(Live(pointer)),
            found => Err(refuse(found.is_none(), align_of::<T>(), arg)),
        }
    }

    /// As [`Live::new`]; `None` for NULL.
    ///
    /// # Safety
    /// As [`Live::new`].
    #[inline(always)]
    pub unsafe fn optional(pointer: *const T, arg: Arg) -> Result<Option<Live<T>>> {
        match pointer.is_null() {
            true => Ok(None),
            // SAFETY: pointer is misaligned or points to a live T.
            false => unsafe { Live::new(pointer, arg) }.map(Some),
        }
    }

    /// Where it is.
    #[inline(always)]
    pub fn get(self) -> NonNull<T> {
        self.0
    }

    /// Where it is.
    #[inline(always)]
    pub fn as_ptr(self) -> *mut T {
        self.0.as_ptr()
    }
}

/// Where an optional array begins; NULL for none.
#[inline(always)]
pub fn start<T>(array: Option<Live<T>>) -> *const T {
    array.map_or(null(), |first| first.as_ptr())
}

impl Live<DLTensor> {
    /// Reads and checks it.
    #[inline(always)]
    pub fn read(self, flags: u64, rules: Rules, into: &mut Snapshot) -> Result<()> {
        // SAFETY: a live tensor, whose arrays hold ndim values.
        unsafe { into.read(self.as_ptr(), flags, rules) }
    }

    /// Its members, each read once.
    pub fn members(self) -> DLTensor {
        // SAFETY: a live tensor.
        unsafe { members(self.as_ptr()) }
    }

    /// Whether it is a common one.
    #[inline(always)]
    pub fn is_plain(self, flags: u64) -> bool {
        // SAFETY: a live tensor, whose arrays hold ndim values.
        unsafe { Plain::of(self.as_ptr(), flags) }.is_some()
    }
}

impl Live<DLManagedTensor> {
    /// The tensor inside, its first member.
    pub fn bare(self) -> Live<DLTensor> {
        Live(self.0.cast())
    }
}

impl Live<DLManagedTensorVersioned> {
    /// Reads and checks it.
    #[inline(always)]
    pub fn read(self, rules: Rules, into: &mut Snapshot) -> Result<()> {
        // SAFETY: a live tensor, whose arrays hold ndim values.
        unsafe { into.read_managed(self.as_ptr(), rules) }
    }
}

/// A caller's variable, neither NULL nor misaligned, and writable during the call.
pub struct Out<T>(pub(super) NonNull<T>);

impl<T> Out<T> {
    /// Hands a result over.
    #[inline(always)]
    pub fn set(&self, value: T) {
        // SAFETY: an aligned, writable variable.
        unsafe { self.0.write(value) }
    }
}

impl<T> Out<*mut T> {
    /// Hands over a pointer that is not NULL.
    #[inline(always)]
    pub fn give(&self, result: NonNull<T>) {
        self.set(result.as_ptr());
    }
}

/// What there is to say about a pointer before it is followed.
#[derive(Clone, Copy)]
pub struct Pointer {
    address: usize,
    align_bytes: u8,
    needed: bool,
    arg: Arg,
}

impl Pointer {
    #[inline(always)]
    pub(super) fn new<T>(pointer: *const T, needed: bool, arg: Arg) -> Pointer {
        const { assert!(align_of::<T>() <= u8::MAX as usize) };
        Pointer { address: pointer.addr(), align_bytes: align_of::<T>() as u8, needed, arg }
    }

    #[inline(always)]
    fn null(&self) -> bool {
        self.needed & (self.address == 0)
    }

    #[inline(always)]
    fn odd_bits(&self) -> usize {
        self.address & (usize::from(self.align_bytes) - 1)
    }
}

/// A pointer parameter, which has not been judged.
pub trait Parameter {
    /// What it becomes.
    type Judged;
    /// What there is to say about it.
    fn pointer(&self) -> Pointer;
    /// Gives the variable for a result what it is when the call fails, where it is `judged` or
    /// proves to be one.
    ///
    /// # Safety
    /// The pointer is NULL, misaligned, or as the constructor says, and the last when it is
    /// `judged`.
    #[inline(always)]
    unsafe fn clear(&self, judged: bool) {
        let _ = judged;
    }
    /// Itself, judged.
    ///
    /// # Safety
    /// The pointer is aligned, not NULL where it must not be, and as the constructor says during
    /// the call.
    unsafe fn judged(&self) -> Self::Judged;
}

/// See [`live`].
pub struct ToLive<T>(*const T, Arg);

/// A pointer to a live T.
#[inline(always)]
pub fn live<T>(pointer: *const T, arg: Arg) -> ToLive<T> {
    ToLive(pointer, arg)
}

impl<T> Parameter for ToLive<T> {
    type Judged = Live<T>;

    #[inline(always)]
    fn pointer(&self) -> Pointer {
        Pointer::new(self.0, true, self.1)
    }

    #[inline(always)]
    unsafe fn judged(&self) -> Live<T> {
        // SAFETY: the pointer is not NULL.
        Live(unsafe { NonNull::new_unchecked(self.0.cast_mut()) })
    }
}

/// See [`variable`] and [`result`].
pub struct ToVariable<T> {
    pointer: *mut T,
    arg: Arg,
    /// What it is when the call fails; `None`: as it was.
    failed: Option<T>,
}

/// A pointer to a writable variable, which stays as it is when the call fails.
#[inline(always)]
pub fn variable<T: Copy>(pointer: *mut T, arg: Arg) -> ToVariable<T> {
    ToVariable { pointer, arg, failed: None }
}

/// A pointer to a writable variable, which is NULL when the call fails.
#[inline(always)]
pub fn result<T>(pointer: *mut *mut T, arg: Arg) -> ToVariable<*mut T> {
    ToVariable { pointer, arg, failed: Some(null_mut()) }
}

impl<T: Copy> Parameter for ToVariable<T> {
    type Judged = Out<T>;

    #[inline(always)]
    fn pointer(&self) -> Pointer {
        Pointer::new(self.pointer, true, self.arg)
    }

    #[inline(always)]
    unsafe fn clear(&self, judged: bool) {
        if let Some(failed) = self.failed
            && (judged || !self.pointer.is_null() && self.pointer.is_aligned())
        {
            // SAFETY: a writable variable, neither NULL nor misaligned.
            unsafe { self.pointer.write(failed) }
        }
    }

    #[inline(always)]
    unsafe fn judged(&self) -> Out<T> {
        // SAFETY: the pointer is not NULL.
        Out(unsafe { NonNull::new_unchecked(self.pointer) })
    }
}

/// See [`needed_if`].
pub struct NeededIf<P>(bool, P);

/// A parameter that may be NULL.
#[inline(always)]
pub fn optional<P: Parameter>(parameter: P) -> NeededIf<P> {
    needed_if(false, parameter)
}

/// A parameter that may be NULL unless something is `wanted` there.
#[inline(always)]
pub fn needed_if<P: Parameter>(wanted: bool, parameter: P) -> NeededIf<P> {
    NeededIf(wanted, parameter)
}

impl<P: Parameter> Parameter for NeededIf<P> {
    type Judged = Option<P::Judged>;

    #[inline(always)]
    fn pointer(&self) -> Pointer {
        Pointer { needed: self.0, ..self.1.pointer() }
    }

    #[inline(always)]
    unsafe fn clear(&self, judged: bool) {
        // SAFETY: the pointer is NULL, misaligned, or as the constructor says.
        unsafe { self.1.clear(judged && self.1.pointer().address != 0) }
    }

    #[inline(always)]
    unsafe fn judged(&self) -> Option<P::Judged> {
        let given = self.1.pointer().address != 0;
        // SAFETY: the pointer is not NULL, aligned, and as the constructor says.
        given.then(|| unsafe { self.1.judged() })
    }
}

/// All pointer parameters of a function but its error.
pub trait Parameters {
    /// What they become.
    type Judged;
    /// Whether one is NULL and must not be, or is misaligned.
    fn wrong(&self) -> bool;
    /// Sets the variables for results to NULL, and hands over what there is to say about all.
    ///
    /// # Safety
    /// Each pointer is NULL, misaligned, or as its constructor says.
    unsafe fn refused<R>(&self, then: impl FnOnce(&[Pointer]) -> R) -> R;
    /// Sets the variables for results to NULL.
    ///
    /// # Safety
    /// None is wrong, and each is as its constructor says.
    unsafe fn clear(&self);
    /// All judged.
    ///
    /// # Safety
    /// None is wrong, and each is as its constructor says during the call.
    unsafe fn judged(&self) -> Self::Judged;
}

macro_rules! parameters {
    ($($P:ident $at:tt),*) => {
        impl<$($P: Parameter),*> Parameters for ($($P,)*) {
            type Judged = ($($P::Judged,)*);

            #[inline(always)]
            fn wrong(&self) -> bool {
                // The bits of all at once: where structs are aligned as pointers are, one mask.
                let bits = 0 $(| self.$at.pointer().odd_bits())*;
                (bits != 0) $(| self.$at.pointer().null())*
            }

            #[inline(always)]
            unsafe fn refused<R>(&self, then: impl FnOnce(&[Pointer]) -> R) -> R {
                // SAFETY: each pointer is NULL, misaligned, or as its constructor says.
                $(unsafe { self.$at.clear(false) };)*
                then(&[$(self.$at.pointer()),*])
            }

            #[inline(always)]
            unsafe fn clear(&self) {
                // SAFETY: none is wrong, and each is as its constructor says.
                $(unsafe { self.$at.clear(true) };)*
            }

            #[inline(always)]
            #[allow(clippy::unused_unit)] // of no parameters
            unsafe fn judged(&self) -> Self::Judged {
                // SAFETY: none is wrong, and each is as its constructor says.
                ($(unsafe { self.$at.judged() },)*)
            }
        }
    };
}
parameters!();
parameters!(A 0);
parameters!(A 0, B 1);
parameters!(A 0, B 1, C 2);
parameters!(A 0, B 1, C 2, D 3);
parameters!(A 0, B 1, C 2, D 3, E 4);

/// What is wrong: the first that is NULL and must not be, else the first that is misaligned.
#[cold]
#[inline(never)]
pub fn first_wrong(all: &[Pointer]) -> Error {
    let null = all.iter().find(|pointer| pointer.null());
    let found = null.or_else(|| all.iter().find(|pointer| pointer.odd_bits() != 0));
    found.map_or(Error::new(DLRS_INTERNAL), |pointer| {
        refuse(pointer.null(), pointer.align_bytes.into(), pointer.arg)
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

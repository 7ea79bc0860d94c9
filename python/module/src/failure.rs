//! Results of functions called by Python: an object, or an error that becomes an exception.

use core::ffi::c_int;
use core::fmt::{self, Write};
use core::ptr::null_mut;

use crate::abi::DLDataType;
use crate::dtype;
use crate::error::{Error, Reader, Result, Status::*};
pub use dlpack_python::raise::{Message, refused};
use dlpack_python::{Object, Owned, PyObject, Python, class_of, raised, text_of};

/// None, to be returned.
pub fn none(python: Python) -> Owned {
    python._Py_NoneStruct().share(python)
}

pub fn dtype_name(python: Python, dtype: DLDataType) -> Result<Owned> {
    let mut name = Message::EMPTY;
    let _ = dtype::format(dtype, &mut name);
    text_of(python, name.text())
}

/// What a function that Python calls returns to it.
pub trait Answer {
    /// As Python has it.
    type Given;
    /// There is an exception.
    const RAISED: Self::Given;

    /// The result for Python.
    fn give(self) -> Self::Given;
}

/// What Python has of each answer, the sign that it raised, and the answer itself.
macro_rules! answers {
    ($($type:ty, $given:ty, $raised:expr, |$answer:ident| $value:expr;)*) => { $(
        impl Answer for $type {
            type Given = $given;
            const RAISED: $given = $raised;

            #[inline]
            fn give(self) -> $given {
                let $answer = self;
                $value
            }
        }
    )* };
}

answers! {
    Owned, *mut PyObject, null_mut(), |object| object.into_ptr();
    (), c_int, -1, |_done| 0;
    bool, c_int, -1, |truth| truth.into();
    isize, isize, -1, |length| length;
}

/// Runs the body of a function that Python calls. `name` is its name in Python.
///
/// # Safety
/// Python is calling.
#[inline]
pub unsafe fn answer<T: Answer>(
    name: &'static str,
    body: impl FnOnce(Python) -> Result<T>,
) -> T::Given {
    // SAFETY: Python is calling, so this thread is attached.
    let python = unsafe { Python::calling() };
    match body(python) {
        Ok(answer) => answer.give(),
        Err(error) => {
            raise(python, name, &error);
            T::RAISED
        }
    }
}

/// A function in a slot of a type: its name, the one in messages, the object, the other parameters,
/// and the [`Answer`] that it gives.
macro_rules! slot {
    (
        $(#[$doc:meta])* $name:ident, $shown:expr,
        |$this:ident $(, $argument:ident: $type:ty)*| -> $answer:ty $body:block
    ) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// Python calls it for an object of the type.
        pub unsafe extern "C" fn $name(
            object: dlpack_python::Object $(, $argument: $type)*
        ) -> <$answer as $crate::failure::Answer>::Given {
            fn body(
                $this: $crate::tensor::This $(, $argument: $type)*
            ) -> $crate::error::Result<$answer> {
                $body
            }
            // SAFETY: Python calls it attached, and keeps the object, which is of the type.
            unsafe {
                $crate::failure::answer($shown, |python| {
                    body($crate::tensor::This::new(python, object) $(, $argument)*)
                })
            }
        }
    };
}
pub(super) use slot;

/// Sets the exception of an error, unless Python code has raised one.
#[cold]
pub fn raise(python: Python, name: &'static str, error: &Error) -> Error {
    if error.status() == DLRS_CALLBACK && python.has_raised() {
        return raised();
    }
    set(python, class_of(python, error.status() as i32), name, error, None, format_args!(""))
}

/// Sets an exception of a kind with an error's text, of which a foreign text may be the value, and
/// more behind the remedy.
#[cold]
pub fn set(
    python: Python,
    kind: Object,
    name: &'static str,
    error: &Error,
    value: Option<&[u8]>,
    more: fmt::Arguments,
) -> Error {
    const READER: Reader = Reader { python: true, dtype: dtype::format_word };
    let mut text = Message::EMPTY;
    let _ = error.write(READER, name, value, &mut text).map(|_| text.write_fmt(more));
    // SAFETY: attached, by `Python`; the text ends with NUL.
    unsafe { python.PyErr_SetString(kind, text.as_ptr()) };
    raised()
}

/// IndexError, by which iteration ends too: there is no such element.
#[cold]
pub fn no_element(python: Python, name: &'static str, error: &Error) -> Error {
    set(python, python.PyExc_IndexError(), name, error, None, format_args!(""))
}

/// TypeError: a call with arguments that the function does not have.
#[cold]
pub fn wrong(python: Python, name: &'static str, what: impl fmt::Display) -> Error {
    refused(python, python.PyExc_TypeError(), format_args!("{name}() {what}"))
}

slot!(
    /// `tp_new`: there is no tensor without memory.
    refuse_new, "Tensor",
    |this, _arguments: Option<Object>, _keywords: Option<Object>| -> Owned {
        const USE: &str =
            "cannot be called: use from_dlpack(), asarray(), zeros(), full() or empty()";
        Err(wrong(this.python, "Tensor", USE))
    }
);

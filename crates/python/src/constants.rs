//! Objects that every import needs: made once per interpreter, and kept in its record.

use core::ffi::CStr;

use super::home::{self, Home, Slot};
use crate::abi::{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
use crate::error::Result;
use crate::{Object, Python, numbers, raised, text, tuple_of};

/// The texts that are kept, and in [`words`] the contents of each.
macro_rules! texts {
    ($($name:ident $words:literal;)*) => {
        /// What is kept: texts, and two tuples.
        #[derive(Clone, Copy)]
        #[allow(missing_docs)]
        pub enum Constant {
            $($name,)*
            /// `("max_version",)`
            MaxVersionOnly,
            /// `(1, 3)`
            Version,
        }

        /// The contents of a text.
        pub fn words(constant: Constant) -> &'static CStr {
            const TEXTS: [&CStr; Constant::MaxVersionOnly as usize] = [$($words),*];
            TEXTS.get(constant as usize).copied().unwrap_or_default()
        }
    };
}

texts! {
    Dlpack c"__dlpack__";
    ExchangeApi c"__dlpack_c_exchange_api__";
    Stream c"stream";
    MaxVersion c"max_version";
    DlDevice c"dl_device";
    Copy c"copy";
    RequiresGrad c"requires_grad";
    StopGradient c"stop_gradient";
    IsNeg c"is_neg";
    Mro c"__mro__";
    Dict c"__dict__";
    Filled c"filled";
    Mask c"mask";
    DlpackDevice c"__dlpack_device__";
    CudaArrayInterface c"__cuda_array_interface__";
    ArrayInterface c"__array_interface__";
    Obj c"obj";
    Complex c"__complex__";
    Name c"__name__";
    Base c"base";
}

/// How many there are.
pub const COUNT: usize = Constant::Version as usize + 1;

/// The constant, made where it is not there yet; borrowed from the record of the interpreter.
pub fn get(python: Python, constant: Constant) -> Result<Object<'static>> {
    of(python, home::here(python)?, constant)
}

/// As [`get`], of the record of the interpreter.
#[inline]
pub fn of(python: Python, home: &Home, constant: Constant) -> Result<Object<'_>> {
    match home.constants.get(constant as usize).and_then(Slot::kept) {
        Some(kept) => Ok(kept),
        None => fill(python, home, constant),
    }
}

#[cold]
#[inline(never)]
fn fill(python: Python, home: &Home, constant: Constant) -> Result<Object<'_>> {
    let slot = home.constants.get(constant as usize).ok_or_else(raised)?;
    slot.get(|| match constant {
        Constant::MaxVersionOnly => tuple_of(python, &[get(python, Constant::MaxVersion)?]),
        Constant::Version => {
            numbers(python, &[DLPACK_MAJOR_VERSION.into(), DLPACK_MINOR_VERSION.into()])
        }
        other => text(python, words(other)),
    })
}

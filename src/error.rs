//! `Status`, `Field`, `Error`: what went wrong, as plain data, and how it is put into words.
//!
//! The core reports an [`Error`]; `capi` adds the function and writes it into the caller's
//! `dlrs_error`. Nothing here allocates, nothing is thread-local. The wording of every status
//! (what it means, what to do) stands once, in [`Status::explain`].

use core::ffi::CStr;

mod argument;
mod exception;
pub mod field;
pub mod status;
mod text;
mod words;

pub use argument::Arg;
pub use exception::exception_of;
pub use field::Field;
pub use status::Status;

/// No argument is at fault, but the allocator or backend that gave what it should not.
pub const NOBODY: Arg = Arg::nobody;

/// What a number of an error is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Number {
    /// Not there.
    None = 0,
    /// A number with a sign.
    Signed = 1,
    /// A number without one.
    Unsigned = 2,
    /// Of the second: the driver's code.
    Code = 3,
}

impl Number {
    /// What the last two bits say.
    const fn of(bits: u8) -> Number {
        match bits & 3 {
            0 => Number::None,
            1 => Number::Signed,
            2 => Number::Unsigned,
            _ => Number::Code,
        }
    }
}

/// What went wrong. Built by the core, put into words by [`Error::write`]. Kept small, for it
/// travels by value through every `?`: a limit and a driver's code, which no error has both, share
/// a place.
#[derive(Clone, Copy, Debug)]
pub struct Error {
    /// The answer of the function.
    pub status: Status,
    first: i64,
    second: i64,
    detail: text::Start,
    detail_nbytes: u8,
    argument: Option<Arg>,
    dimension: i8,
    /// Four bits of the field, two of each number.
    bits: u8,
}

const _: () = assert!(size_of::<Result<()>>() <= 32);

/// What a fallible function of the core returns.
pub type Result<T> = core::result::Result<T, Error>;

/// Naming the argument of a result's error.
pub trait Of: Sized {
    /// Names the argument at fault, unless an inner function already did.
    fn of(self, argument: Arg) -> Self;
}

impl<T> Of for Result<T> {
    fn of(self, argument: Arg) -> Self {
        self.map_err(|error| error.of(argument))
    }
}

impl Error {
    /// An error of which only the status is known.
    #[cold]
    pub const fn new(status: Status) -> Self {
        Error {
            status,
            first: 0,
            second: 0,
            detail: text::NONE.0,
            detail_nbytes: text::NONE.1,
            argument: None,
            dimension: -1,
            bits: 0,
        }
    }

    /// Names the member at fault.
    pub const fn field(mut self, field: Field) -> Self {
        self.bits = self.bits & !15 | field as u8;
        self
    }

    /// Names the dimension at fault.
    pub const fn dim(mut self, dimension: usize) -> Self {
        self.dimension = dimension as i8;
        self
    }

    const fn first(mut self, number: i64, is: Number) -> Self {
        self.first = number;
        self.bits = self.bits & !(3 << 4) | (is as u8) << 4;
        self
    }

    const fn second(mut self, number: i64, is: Number) -> Self {
        self.second = number;
        self.bits = self.bits & !(3 << 6) | (is as u8) << 6;
        self
    }

    /// Shows the value found.
    pub const fn value(self, value: i64) -> Self {
        self.first(value, Number::Signed)
    }

    /// As [`Error::value`], of a number without a sign.
    pub const fn value_u64(self, value: u64) -> Self {
        self.first(value as i64, Number::Unsigned)
    }

    /// Shows the limit that was broken.
    pub const fn limit(self, limit: i64) -> Self {
        self.second(limit, Number::Signed)
    }

    /// As [`Error::limit`], of a number without a sign.
    pub const fn limit_u64(self, limit: u64) -> Self {
        self.second(limit as i64, Number::Unsigned)
    }

    /// Adds the driver's own code, in place of a limit; 0 is none.
    pub const fn driver(self, code: i32) -> Self {
        if code == 0 { self } else { self.second(code as i64, Number::Code) }
    }

    /// Says it in more precise words than the status's own, fewer than 256 bytes of them.
    pub const fn detail(mut self, detail: &'static str) -> Self {
        (self.detail, self.detail_nbytes) = text::of(detail);
        self
    }

    /// As [`Error::detail`], in the words of a backend.
    pub const fn detail_of_backend(mut self, detail: &'static CStr) -> Self {
        (self.detail, self.detail_nbytes) = text::of_c(detail);
        self
    }

    /// Names the member of an options struct or table that is at fault.
    pub const fn option(self, name: &'static str) -> Self {
        self.field(Field::DLRS_FIELD_OPTION).detail(name)
    }

    /// Names the argument at fault, unless an inner function already did.
    #[cold]
    pub const fn of(self, argument: Arg) -> Self {
        if self.argument.is_none() { self.renamed(argument) } else { self }
    }

    /// Names another argument.
    pub const fn renamed(mut self, argument: Arg) -> Self {
        self.argument = Some(argument);
        self
    }

    /// The argument at fault, once someone who knows it has said so ([`Error::of`]).
    pub const fn argument(&self) -> Option<Arg> {
        self.argument
    }

    /// The precise words, empty for none; of an option, its name.
    fn words(&self) -> &'static str {
        // SAFETY: both are of one text.
        unsafe { text::again((self.detail, self.detail_nbytes)) }
    }

    /// What the value and the limit are.
    const fn numbers(&self) -> [Number; 2] {
        [Number::of(self.bits >> 4), Number::of(self.bits >> 6)]
    }
}

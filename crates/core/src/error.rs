//! `Status`, `Field`, `Error`: an error as plain data, and its message.
//!
//! The core reports an [`Error`]; `capi` adds the function and writes it into the caller's
//! `dlrs_error`. Nothing here allocates, nothing is thread-local. The wording of every status
//! (meaning and remedy) is in [`Status::explain`] only.

use core::ffi::CStr;
use core::num::NonZeroU64;

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
pub use words::Reader;

/// No argument is at fault, but the allocator or backend.
pub const NOBODY: Arg = Arg::nobody;

/// The kind of a number of an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Number {
    /// Absent.
    None = 0,
    /// A signed number.
    Signed = 1,
    /// An unsigned number.
    Unsigned = 2,
    /// Of the first, a dtype, and another one in the second; of the second, the driver's code.
    Code = 3,
}

impl Number {
    /// The kind in the last two bits.
    const fn of(bits: u16) -> Number {
        match bits & 3 {
            0 => Number::None,
            1 => Number::Signed,
            2 => Number::Unsigned,
            _ => Number::Code,
        }
    }
}

/// An error. Built by the core, formatted by [`Error::write`]. Small, because every `?` returns it
/// by value: a limit and a driver's code share a member, since no error has both.
#[derive(Clone, Copy, Debug)]
pub struct Error {
    first: i64,
    second: i64,
    detail: text::Start,
    /// From the lowest byte on: the argument's number and 1, or 0; the dimension; four bits of the
    /// field, two of each number; a byte unused; the status, which is not 0; bytes of `detail`. One
    /// word, which is passed on as one.
    rest: NonZeroU64,
}

/// Where in `rest` the second to the last byte start.
const DIMENSION: u32 = 8;
const BITS: u32 = 16;
const STATUS: u32 = 32;
const NBYTES: u32 = 48;

const _: () = assert!(size_of::<Result<()>>() <= 32);

/// Result of a fallible function of the core.
pub type Result<T> = core::result::Result<T, Error>;

/// Sets the argument of a result's error.
pub trait Of: Sized {
    /// Sets the argument at fault, unless an inner function already did.
    fn of(self, argument: Arg) -> Self;
}

impl<T> Of for Result<T> {
    fn of(self, argument: Arg) -> Self {
        self.map_err(|error| error.of(argument))
    }
}

impl Error {
    /// An error with a status only, one that is not DLRS_OK.
    #[cold]
    pub const fn new(status: Status) -> Self {
        // SAFETY: not 0.
        let rest =
            unsafe { NonZeroU64::new_unchecked((status as u64) << STATUS | 0xFF << DIMENSION) };
        Error { first: 0, second: 0, detail: text::NONE.0, rest }
    }

    /// The status that the function returns.
    pub const fn status(&self) -> Status {
        // SAFETY: it was one.
        unsafe { core::mem::transmute::<u32, Status>(self.bits(STATUS) as u32) }
    }

    const fn put(mut self, at: u32, mask: u16, bits: u16) -> Self {
        let rest = self.rest.get() & !((mask as u64) << at) | (bits as u64) << at;
        // SAFETY: the status stays.
        self.rest = unsafe { NonZeroU64::new_unchecked(rest) };
        self
    }

    const fn bits(&self, at: u32) -> u16 {
        (self.rest.get() >> at) as u16
    }

    /// Sets the member at fault.
    pub const fn field(self, field: Field) -> Self {
        self.put(BITS, 15, field as u16)
    }

    /// Sets the dimension at fault.
    pub const fn dim(self, dimension: usize) -> Self {
        self.put(DIMENSION, 0xFF, dimension as u8 as u16)
    }

    const fn first(mut self, number: i64, is: Number) -> Self {
        self.first = number;
        self.put(BITS, 3 << 4, (is as u16) << 4)
    }

    const fn second(mut self, number: i64, is: Number) -> Self {
        self.second = number;
        self.put(BITS, 3 << 6, (is as u16) << 6)
    }

    /// Sets the value found.
    pub const fn value(self, value: i64) -> Self {
        self.first(value, Number::Signed)
    }

    /// As [`Error::value`], for an unsigned number.
    pub const fn value_u64(self, value: u64) -> Self {
        self.first(value as i64, Number::Unsigned)
    }

    /// Sets the limit that was exceeded.
    pub const fn limit(self, limit: i64) -> Self {
        self.second(limit, Number::Signed)
    }

    /// As [`Error::limit`], for an unsigned number.
    pub const fn limit_u64(self, limit: u64) -> Self {
        self.second(limit as i64, Number::Unsigned)
    }

    /// Sets the driver's own code, in place of a limit; 0 is none.
    pub const fn driver(self, code: i32) -> Self {
        if code == 0 { self } else { self.second(code as i64, Number::Code) }
    }

    /// Sets the dtype found, and the one wanted, as code, bits and lanes from the lowest byte on:
    /// value and limit are the members that [`Error::field`] names, and the message has the names.
    pub fn dtypes(self, found: u32, wanted: Option<u32>) -> Self {
        let error = self.first(found.into(), Number::Code);
        wanted.map_or(error, |wanted| error.second(wanted.into(), Number::Signed))
    }

    /// Replaces the status's description by a more precise one, and after a NUL its remedy, and
    /// after another one that of Python, where it differs. One that is empty stays the status's.
    pub const fn detail(self, detail: &'static str) -> Self {
        debug_assert!(
            self.bits(BITS) & 15 != Field::DLRS_FIELD_OPTION as u16,
            "an option's name and its description are one text"
        );
        self.described(text::of(detail))
    }

    const fn described(mut self, (start, nbytes): (text::Start, u16)) -> Self {
        self.detail = start;
        self.put(NBYTES, u16::MAX, nbytes)
    }

    /// As [`Error::detail`], with a backend's text.
    pub const fn detail_of_backend(self, detail: &'static CStr) -> Self {
        self.described(text::of_c(detail))
    }

    /// Sets the member at fault of an options struct or table: its name, and after a NUL a text as
    /// of [`Error::detail`], which this replaces.
    pub const fn option(self, name: &'static str) -> Self {
        self.field(Field::DLRS_FIELD_OPTION).described(text::of(name))
    }

    /// Sets the argument at fault, unless an inner function already did.
    #[cold]
    pub const fn of(self, argument: Arg) -> Self {
        let bits = if self.bits(0) as u8 == 0 { argument as u16 + 1 } else { 0 };
        self.put(0, 0, bits)
    }

    /// Replaces the argument.
    pub const fn renamed(self, argument: Arg) -> Self {
        self.put(0, 0xFF, argument as u16 + 1)
    }

    /// The argument at fault, if set ([`Error::of`]).
    pub fn argument(&self) -> Option<Arg> {
        Arg::ALL.get(usize::from(self.bits(0) as u8).wrapping_sub(1)).copied()
    }

    /// The precise description, empty for none; for an option, its name before it.
    fn words(&self) -> &'static str {
        // SAFETY: both are of one text.
        unsafe { text::again((self.detail, self.bits(NBYTES))) }
    }

    /// The kinds of the value and the limit.
    const fn numbers(&self) -> [Number; 2] {
        let bits = self.bits(BITS);
        [Number::of(bits >> 4), Number::of(bits >> 6)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any setters in any order, against a copy of what was set last.
    #[test]
    fn what_is_set_last_is_kept() {
        let mut state = 88172645463325252u64;
        let mut draw = |n: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % n
        };
        for _ in 0..20_000 {
            let status = [Status::DLRS_NULL_ARG, Status::DLRS_DEV_OOM, Status::DLRS_INTERNAL]
                [draw(3) as usize];
            let mut error = Error::new(status);
            let (mut argument, mut field, mut dimension) = (None, Field::DLRS_FIELD_NONE, -1);
            let mut numbers = [(0, Number::None); 2];
            let mut words = "";
            for _ in 0..draw(12) {
                let number = (draw(1 << 53) as i64) << draw(16);
                let (arg, member) = (Arg::ALL[draw(64) as usize], Field::ALL[draw(16) as usize]);
                let text = ["", "x", "is wrong\0Give another one."][draw(3) as usize];
                let [first, second] = &mut numbers;
                match draw(11) {
                    0 => (error, field) = (error.field(member), member),
                    1 => {
                        dimension = draw(64) as i32;
                        error = error.dim(dimension as usize);
                    }
                    2 => (error, *first) = (error.value(number), (number, Number::Signed)),
                    3 => {
                        error = error.value_u64(number as u64);
                        *first = (number, Number::Unsigned);
                    }
                    4 => (error, *second) = (error.limit(number), (number, Number::Signed)),
                    5 => {
                        error = error.limit_u64(number as u64);
                        *second = (number, Number::Unsigned);
                    }
                    6 => {
                        let code = number as i32 * draw(2) as i32;
                        error = error.driver(code);
                        if code != 0 {
                            *second = (code.into(), Number::Code);
                        }
                    }
                    7 if field == Field::DLRS_FIELD_OPTION => {} // its name is there
                    7 => (error, words) = (error.detail(text), text),
                    8 => {
                        error = error.option(text);
                        (field, words) = (Field::DLRS_FIELD_OPTION, text);
                    }
                    9 => {
                        error = error.of(arg);
                        argument = argument.or(Some(arg));
                    }
                    _ => (error, argument) = (error.renamed(arg), Some(arg)),
                }
            }
            let [(first, one), (second, two)] = numbers;
            let code = two == Number::Code;
            assert_eq!((error.status(), error.argument()), (status, argument));
            assert_eq!((error.member(), error.dimension()), (field, dimension));
            assert_eq!((error.numbers(), error.found()), ([one, two], first));
            assert_eq!(error.bound(), if code { 0 } else { second });
            assert_eq!(error.driver_code(), if code { second as i32 } else { 0 });
            assert_eq!(error.words(), words);
        }
    }
}

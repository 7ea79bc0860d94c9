//! Arguments of calls: positions and keywords, numbers, shapes, names.

use core::cmp::Ordering;
use core::fmt;
use core::ptr::null_mut;
use core::slice::from_raw_parts;

use super::failure::{Message, raise, refused, set, wrong};
use super::tensor::This;
use crate::abi::{DLDataType, DLDataTypeCode, DLDevice};
use crate::error::{Arg, Error, Result, Status::*};
use crate::integer_text::unsigned;
use crate::layout::{MAX_NDIM, Order};
use crate::{device_type, dtype, dtype_notation};
use dlpack_python::constants::{self, Constant};
use dlpack_python::kinds::{LIST, LONG, TEXT, TUPLE};
use dlpack_python::words::{given, read_device};
use dlpack_python::{KindOf, Object, Owned, PyObject, Python, Quoted, class_of, is, is_a, utf8};

/// Most named arguments of a method.
const MOST: usize = 5;

/// The arguments of one call by position; `None` for omitted ones.
pub type Values<'a> = [Option<Object<'a>>; MOST];

/// What a method does with an object and the arguments.
pub type Body = fn(This, &Call, &Values) -> Result<Owned>;

/// A method or function, from which comes a function that gives its row of a table: its signature
/// and docstring, the name, with the one in messages where that is another, and the parameters as
/// Python's signatures have them. In front of `/` are those that are needed, by position; behind
/// `*` those by keyword only; `(..)` are any number by position. A function of the module, or of a
/// type, has `_` for the object.
macro_rules! method {
    (
        #[doc = $signature:literal] $(#[doc = $doc:literal])*
        $name:ident $(as $shown:literal)?, |$this:tt, $call:tt|
        ($($only:ident)* / $($any:ident)* * $($named:ident)*) $body:block
    ) => {
        $crate::arguments::method!(
            @ [$signature $($doc)*] $name [
                least: <[&str]>::len(&[$(stringify!($only)),*]) as u8,
                most: <[&str]>::len(&[$(stringify!($only),)* $(stringify!($any)),*]) as u8,
                names: concat!(
                    $crate::arguments::method!(@shown $($shown)? $name)
                    $(, "\0", stringify!($any))* $(, "\0", stringify!($named))*
                ),
            ]
            |$this, $call, [$($only,)*] [$($any,)* $($named,)*]| $body
        );
    };
    (
        #[doc = $signature:literal] $(#[doc = $doc:literal])*
        $name:ident, |$this:tt, $call:tt| (..) $body:block
    ) => {
        $crate::arguments::method!(
            @ [$signature $($doc)*] $name [least: 0, most: u8::MAX, names: stringify!($name),]
            |$this, $call, [] []| $body
        );
    };
    (@shown $shown:literal $name:ident) => { $shown };
    (@shown $name:ident) => { stringify!($name) };
    (
        @ [$signature:literal $($doc:literal)*] $name:ident [$($known:tt)*]
        |$this:tt, $call:tt, [$($only:ident,)*] [$($value:ident,)*]| $body:block
    ) => {
        pub(crate) const fn $name() -> $crate::spec::MethodDef {
            use $crate::arguments::{Call, Parameters, Values, called};
            use $crate::spec::{Docstring, MethodDef};
            use $crate::tensor::This;
            use dlpack_python::{Object, Owned, PyObject};
            static PARAMETERS: Parameters = Parameters { $($known)* };
            const LINES: Docstring = Docstring(concat!($signature, "\n--\n", $("\n", $doc),*));
            static DOC: [u8; LINES.nbytes()] = LINES.bytes();
            fn body(
                $this: This,
                $call: &Call,
                &[$($only,)* $($value,)* ..]: &Values,
            ) -> $crate::error::Result<Owned> {
                // SAFETY: `called` has seen that those that are needed are given.
                $( let $only = unsafe { $only.unwrap_unchecked() }; )*
                $body
            }
            unsafe extern "C" fn method(
                object: Object,
                args: *const Object,
                nargs: isize,
                keywords: Option<Object>,
            ) -> *mut PyObject {
                // SAFETY: Python calls it, with `nargs` live values and those of the keywords;
                // `body` is this method's.
                unsafe { called(object, args, nargs, keywords, &PARAMETERS, body) }
            }
            MethodDef::new(concat!(stringify!($name), "\0"), method, &DOC)
        }
    };
}
pub(super) use method;

/// What is known of a method's arguments.
pub struct Parameters {
    /// How many are needed, all by position.
    pub least: u8,
    /// How many may be given by position.
    pub most: u8,
    /// The name of the method, and those of the parameters behind the needed ones, with NUL between
    /// them.
    pub names: &'static str,
}

/// Runs a method on what Python passes to a [`super::spec::Method`].
///
/// # Safety
/// Python is calling, and the body is that of the method.
pub unsafe fn called(
    object: Object,
    args: *const Object,
    nargs: isize,
    keywords: Option<Object>,
    parameters: &'static Parameters,
    body: Body,
) -> *mut PyObject {
    // SAFETY: the tuple of names is live; the calling convention says how many values follow.
    unsafe {
        let python = Python::calling();
        let count = keywords.map_or(Ok(0), |names| python.PyTuple_Size(names)).unwrap_or(0);
        let nargs = nargs.max(0) as usize;
        let args = if args.is_null() { (&raw const object).cast() } else { args };
        let (positional, named) =
            (from_raw_parts(args, nargs), from_raw_parts(args.add(nargs), count));
        let call = Call { python, parameters, positional, named, keywords };
        let mut values = [None; MOST];
        let answer = match call.bind(&mut values) {
            Ok(()) => body(This::new(python, object), &call, &values),
            Err(error) => Err(error),
        };
        match answer {
            Ok(object) => object.into_ptr(),
            Err(error) => {
                raise(python, call.name(), &error);
                null_mut()
            }
        }
    }
}

pub struct Call<'a> {
    pub python: Python,
    parameters: &'static Parameters,
    pub positional: &'a [Object<'a>],
    /// Values of the keywords.
    named: &'a [Object<'a>],
    /// Their names.
    keywords: Option<Object<'a>>,
}

impl<'a> Call<'a> {
    /// The function, as Python knows it.
    #[cold]
    pub fn name(&self) -> &'static str {
        let name = self.names().next().unwrap_or_default();
        core::str::from_utf8(name).unwrap_or_default()
    }

    /// The names of [`Parameters`].
    fn names(&self) -> impl Iterator<Item = &'static [u8]> {
        self.parameters.names.as_bytes().split(|&byte| byte == 0)
    }

    /// Stores each argument at the index of its name; omitted ones are not modified.
    fn bind(&self, values: &mut Values<'a>) -> Result<()> {
        let &Parameters { least, most, .. } = self.parameters;
        let (least, most) = (usize::from(least), usize::from(most));
        let given = self.positional.len();
        if given > most || given < least {
            const WORDS: [&str; MOST + 1] = ["", "one", "two", "three", "four", "five"];
            let ending = if most == 1 { "" } else { "s" };
            return Err(match WORDS.get(least) {
                Some(word) if least == most && least > 0 => self.wrong(format_args!(
                    "takes exactly {word} positional argument{ending} ({} given)",
                    unsigned(given as u64)
                )),
                _ => self.wrong(format_args!(
                    "takes at most {} positional argument{ending} ({} given)",
                    unsigned(most as u64),
                    unsigned(given as u64)
                )),
            });
        }
        values.iter_mut().zip(self.positional).for_each(|(to, from)| *to = Some(*from));
        for (place, &value) in self.named.iter().enumerate() {
            let Some(keywords) = self.keywords else { break };
            // SAFETY: a tuple of as many names as there are values.
            let keyword = unsafe { keywords.item(self.python, place) };
            let keyword = utf8(self.python, keyword)?;
            let place = self.names().skip(1).position(|name| name == keyword);
            match place.and_then(|place| values.get_mut(least + place)) {
                Some(slot) if slot.is_none() => *slot = Some(value),
                // The words of Python's own functions: consumers of `__dlpack__` look for them.
                slot => {
                    let what = match slot {
                        Some(_) => "got multiple values for argument",
                        None => "got an unexpected keyword argument",
                    };
                    return Err(self.wrong(format_args!("{what} '{}'", Quoted(keyword))));
                }
            }
        }
        Ok(())
    }

    /// TypeError: `name() what`.
    #[cold]
    pub fn wrong(&self, what: impl fmt::Display) -> Error {
        wrong(self.python, self.name(), what)
    }

    /// An argument that must not be missing; TypeError.
    pub fn needs<'o>(&self, object: Option<Object<'o>>, what: &str) -> Result<Object<'o>> {
        object.ok_or_else(|| self.wrong(format_args!("needs {what}")))
    }

    /// What `read` makes of an argument; `None` for the default.
    pub fn given<T>(
        &self,
        object: Option<Object>,
        read: fn(&Self, Object) -> Result<T>,
    ) -> Result<Option<T>> {
        given(self.python, object).map(|object| read(self, object)).transpose()
    }

    /// The exception for a text that cannot be parsed, or that names an unknown thing.
    #[cold]
    fn misread(&self, error: Error, parameter: Arg, text: &[u8]) -> Error {
        let kind = match error.status() {
            // A wrong argument, not a tensor that cannot be exchanged.
            DLRS_DTYPE_CODE | DLRS_DTYPE_BITS | DLRS_DTYPE_LANES => self.python.PyExc_ValueError(),
            status => class_of(self.python, status as i32),
        };
        // What the other argument would be, or what has nearly this name.
        let other = match parameter {
            Arg::dtype if device_type::parse(text).is_ok() => {
                "names a device\0to() and device= take it; a dtype has a name such as 'float32'."
            }
            Arg::device if dtype::parse(text).is_ok() => {
                "names a dtype\0astype() and dtype= take it; a device has a name such as 'cuda:0'."
            }
            _ => "",
        };
        let (python, name, error) = (self.python, self.name(), error.of(parameter));
        if !other.is_empty() {
            let error = Error::new(DLRS_PARSE).detail(other).of(parameter);
            return set(python, kind, name, &error, Some(text), format_args!(""));
        }
        let unknown = parameter == Arg::dtype && error.status() == DLRS_PARSE;
        match nearest(text).filter(|_| unknown) {
            Some(near) => {
                let more = format_args!(" Did you mean '{}'?", dtype::Name(near));
                set(python, kind, name, &error, Some(text), more)
            }
            None => set(python, kind, name, &error, Some(text), format_args!("")),
        }
    }

    /// A dtype by its name, by the type of NumPy, PyTorch or another that has that name, or by
    /// Python's type of such numbers.
    pub fn dtype(&self, object: Object) -> Result<DLDataType> {
        let python = self.python;
        if let Some(number) = Number::of_type(python, object) {
            return Ok(number.dtype());
        }
        if is_a(python, object, LONG | LIST | TUPLE) {
            let given = Given(python, object);
            let instead = match self.name() {
                "view" => "; reshape() takes a shape",
                "zeros" | "ones" | "empty" | "full" => "; the shape is one argument, a tuple",
                _ => "",
            };
            let name = self.name();
            let text = format_args!(
                "{name}: dtype must be a name such as 'float32' or a type, not {given}{instead}"
            );
            return Err(refused(python, python.PyExc_ValueError(), text));
        }
        let found;
        let name = match is_a(python, object, TEXT) {
            true => utf8(python, object)?,
            false => {
                found = name_of(python, object)?;
                let text = utf8(python, found.object())?;
                // "torch.float32"
                text.rsplit(|&byte| byte == b'.').next().unwrap_or(text)
            }
        };
        dtype::parse(name).map_err(|error| self.misread(error, Arg::dtype, name))
    }

    /// A device: its name, or the pair of `__dlpack_device__`.
    pub fn device(&self, object: Object) -> Result<DLDevice> {
        let python = self.python;
        if is_a(python, object, TEXT) {
            let name = utf8(python, object)?;
            return device_type::parse(name)
                .map_err(|error| self.misread(error, Arg::device, name));
        }
        let device = read_device(python, object)?;
        device_type::check(device).map_err(|error| error.of(Arg::device))?;
        Ok(device)
    }

    /// A memory order: 'C', 'F', 'A' or 'K'; C when it is not given.
    pub fn order(&self, object: Option<Object>) -> Result<Order> {
        let Some(object) = object else { return Ok(Order::C) };
        let is_text = is_a(self.python, object, TEXT);
        let order = match *if is_text { utf8(self.python, object)? } else { &[] } {
            [letter] => Order::from_char(letter.into()),
            _ => None,
        };
        order.ok_or_else(|| {
            let given = Given(self.python, object);
            let text =
                format_args!("{}: order must be 'C', 'F', 'A' or 'K', not {given}", self.name());
            refused(self.python, self.python.PyExc_ValueError(), text)
        })
    }

    /// Numbers given one by one or as one sequence.
    pub fn numbers<'r>(&self, room: &'r mut [i64; MAX_NDIM]) -> Result<&'r [i64]> {
        match *self.positional {
            [one] => shape(self.python, one, room),
            ref several => {
                let count = several.len();
                fill(room, count, &mut |place| match several.get(place) {
                    Some(&item) => number(self.python, item),
                    None => Ok(0),
                })
            }
        }
    }
}

/// Python's kinds of numbers.
#[derive(Clone, Copy, PartialEq)]
pub enum Number {
    Bool,
    Int,
    Float,
    Complex,
}

impl Number {
    /// The kind that a type is.
    fn of_type(python: Python, kind: Object) -> Option<Number> {
        match kind {
            kind if kind == python.PyLong_Type() => Some(Number::Int),
            kind if kind == python.PyFloat_Type() => Some(Number::Float),
            kind if kind == python.PyComplex_Type() => Some(Number::Complex),
            kind if kind == python.PyBool_Type() => Some(Number::Bool),
            _ => None,
        }
    }

    /// The kind that an object is; arrays and their elements are none.
    pub fn of(python: Python, object: Object) -> Option<Number> {
        let kind = Number::of_type(python, object.type_of());
        kind.or(is_a(python, object, LONG).then_some(Number::Int))
    }

    /// The dtype that NumPy gives it.
    pub const fn dtype(self) -> DLDataType {
        let (code, bits) = match self {
            Number::Bool => (DLDataTypeCode::kDLBool, 8),
            Number::Int => (DLDataTypeCode::kDLInt, 64),
            Number::Float => (DLDataTypeCode::kDLFloat, 64),
            Number::Complex => (DLDataTypeCode::kDLComplex, 128),
        };
        DLDataType { code: code as u8, bits, lanes: 1 }
    }
}

#[inline]
pub fn number(python: Python, object: Object) -> Result<i64> {
    python.PyNumber_AsSsize_t(object, python.PyExc_ValueError()).map(|number| number as i64)
}

pub fn axis(python: Python, object: Object) -> Result<i32> {
    // What does not fit is no axis either.
    Ok(i32::try_from(number(python, object)?).unwrap_or(i32::MAX))
}

/// The numbers of a sequence, or one number: what has no length. Every array could be an index, so
/// it is no use to ask that.
pub fn shape<'r>(
    python: Python,
    object: Object,
    room: &'r mut [i64; MAX_NDIM],
) -> Result<&'r [i64]> {
    match length(python, object)? {
        Some(count) => fill(room, count, &mut |place| {
            let item = python.PySequence_GetItem(object, place as isize)?;
            number(python, item.object())
        }),
        None => fill(room, 1, &mut |_| number(python, object)),
    }
}

/// The length of a sequence; `None` of what has none.
pub fn length(python: Python, object: Object) -> Result<Option<usize>> {
    if is_a(python, object, LONG) {
        return Ok(None);
    }
    match python.PySequence_Size(object) {
        Err(_) if is(python, Python::PyExc_TypeError) => {
            python.clear();
            Ok(None)
        }
        other => other.map(Some),
    }
}

fn fill<'r>(
    room: &'r mut [i64; MAX_NDIM],
    count: usize,
    value: &mut dyn FnMut(usize) -> Result<i64>,
) -> Result<&'r [i64]> {
    let Some(slots) = room.get_mut(..count) else {
        return Err(Error::new(DLRS_NDIM).value(count as i64).limit(MAX_NDIM as i64));
    };
    for (place, slot) in slots.iter_mut().enumerate() {
        *slot = value(place)?;
    }
    Ok(slots)
}

/// The dtype whose name is nearly a text, or that NumPy knows by it.
#[cold]
fn nearest(text: &[u8]) -> Option<DLDataType> {
    const NAMES: [(&[u8], &[u8]); 6] = [
        (b"half", b"float16"),
        (b"single", b"float32"),
        (b"double", b"float64"),
        (b"short", b"int16"),
        (b"long", b"int64"),
        (b"byte", b"int8"),
    ];
    let known = NAMES.iter().find(|(name, _)| *name == text);
    if let Some((_, name)) = known {
        return dtype::parse(name).ok();
    }
    if let [kind, nbytes @ b'1'..=b'8'] = *text {
        return dtype_notation::from_kind(kind.into(), u32::from(nbytes - b'0')).ok();
    }
    // At most two letters, and less than half of them; one name only.
    let mut best = (3.min(text.len().div_ceil(2)), None);
    for (code, kind) in dtype::KINDS.iter().enumerate() {
        for &bits in kind.bits {
            let dtype = DLDataType { code: code as u8, bits, lanes: 1 };
            let mut name = Message::EMPTY;
            let _ = dtype::format(dtype, &mut name);
            let apart = distance(text, name.text());
            match apart.cmp(&best.0) {
                Ordering::Less => best = (apart, Some(dtype)),
                Ordering::Equal => best.1 = None,
                Ordering::Greater => {}
            }
        }
    }
    best.1
}

/// The letters to insert, delete or replace to make one text of the other.
fn distance(from: &[u8], to: &[u8]) -> usize {
    let mut row = [0; 24];
    let Some(row) = row.get_mut(..=to.len()) else { return usize::MAX };
    row.iter_mut().enumerate().for_each(|(place, slot)| *slot = place);
    for (place, letter) in from.iter().enumerate() {
        let mut before = place + 1; // of the row, in the column before
        let mut diagonal = core::mem::replace(row.first_mut().unwrap_or(&mut 0), before);
        for (slot, other) in row.iter_mut().skip(1).zip(to) {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = *slot;
            *slot = replaced.min(before + 1).min(*slot + 1);
            before = *slot;
        }
    }
    row.last().copied().unwrap_or(usize::MAX)
}

/// The name of a dtype that is no text: that of a type, else its str().
fn name_of(python: Python, object: Object) -> Result<Owned> {
    match python.attribute(object, constants::get(python, Constant::Name)?)? {
        Some(name) if is_a(python, name.object(), TEXT) => Ok(name),
        _ => python.PyObject_Str(object),
    }
}

/// A wrong argument in a message: itself if it is a text, else the name of its type.
struct Given<'a>(Python, Object<'a>);

impl fmt::Display for Given<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Given(python, object) = self;
        match is_a(python, object, TEXT).then(|| utf8(python, object)) {
            Some(Ok(text)) => write!(out, "'{}'", Quoted(text)),
            _ => KindOf(python, object).fmt(out),
        }
    }
}

/// Whether an object is true; one that is not given is not.
pub fn truth(python: Python, object: Option<Object>) -> Result<bool> {
    object.map_or(Ok(false), |object| python.PyObject_IsTrue(object))
}

//! `Arg`: the argument at fault, by its name in the header. `capi/parameters.txt` has the
//! parameters of every function, and so their numbers.
#![forbid(unsafe_code)]

use crate::array::starts;

macro_rules! arguments {
    ($($name:ident,)*) => {
        /// An argument.
        #[allow(non_camel_case_types, missing_docs)]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Arg {
            /// No argument is at fault, but the allocator or backend.
            nobody,
            $($name,)*
        }

        impl Arg {
            /// Every one, in the order of the numbers.
            pub(super) const ALL: &[Arg] = &[Arg::nobody, $(Arg::$name),*];
        }

        /// Each closed by a space, that of `nobody` too, which is empty.
        const NAMES: &str = concat!(" ", $(stringify!($name), " "),*);
    };
}

arguments! {
    a,
    align_bytes,
    allocator,
    args,
    axes,
    axis,
    axis_a,
    axis_b,
    b,
    backend,
    base,
    buffer,
    byte_strides,
    callback,
    capacity,
    capsule,
    copy,
    count,
    data,
    device,
    device_type,
    dst,
    dtype,
    event,
    expected,
    failed,
    failure,
    flags,
    header_version,
    index,
    itemsize,
    kind,
    lanes,
    legacy_flags,
    level,
    name,
    nbytes,
    ndim,
    notation,
    number,
    object,
    offset,
    old,
    options,
    order,
    other,
    out,
    out_waiting,
    owner,
    policy,
    prototype,
    request,
    shape,
    src,
    start,
    step,
    steps,
    stop,
    stream,
    strides,
    sync,
    tensor,
    text,
    value,
    value_dtype,
    what,
    window,
}

impl Arg {
    /// The name; empty for [`Arg::nobody`].
    pub fn as_str(self) -> &'static str {
        let place = self as usize;
        let start = STARTS.get(place).map_or(0, |&start| start.into());
        let end = STARTS.get(place + 1).map_or(0, |&end| usize::from(end) - 1);
        NAMES.get(start..end).unwrap_or("")
    }

    /// The argument with a name.
    pub const fn named(name: &[u8]) -> Arg {
        let (text, mut i) = (NAMES.as_bytes(), 1);
        while i < Arg::ALL.len() {
            let (at, end) = (OFFSETS[i] as usize, OFFSETS[i + 1] as usize - 1);
            let mut n = 0;
            while n < name.len() && at + n < end && text[at + n] == name[n] {
                n += 1;
            }
            if n == name.len() && at + n == end {
                return Arg::ALL[i];
            }
            i += 1;
        }
        Arg::nobody
    }
}

const OFFSETS: [u16; Arg::ALL.len() + 1] = starts(NAMES, b' ', 1);
static STARTS: [u16; Arg::ALL.len() + 1] = OFFSETS;

#[cfg(test)]
mod tests {
    use super::Arg;

    #[test]
    fn names_are_those_of_the_header() {
        assert_eq!(Arg::nobody.as_str(), "");
        assert_eq!(Arg::a.as_str(), "a");
        assert_eq!(Arg::window.as_str(), "window");
        for &argument in Arg::ALL {
            assert_eq!(Arg::named(argument.as_str().as_bytes()), argument);
        }
        assert_eq!(Arg::named(b"wind"), Arg::nobody);
    }
}

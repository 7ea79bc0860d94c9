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
    a_ndim,
    align_bytes,
    allocator,
    args,
    axes,
    axis,
    axis_a,
    axis_b,
    b,
    b_ndim,
    backend,
    base,
    buffer,
    byte_strides,
    bytes,
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
    enabled,
    event,
    expected,
    failed,
    failure,
    flags,
    header,
    header_version,
    high,
    index,
    itemsize,
    kind,
    lanes,
    legacy_flags,
    level,
    low,
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
    out_flags,
    out_free,
    out_total,
    out_waiting,
    owner,
    peer,
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
    r#type,
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
        let name = NAMES.get(start..end).unwrap_or("");
        name.strip_prefix("r#").unwrap_or(name)
    }

    /// The argument with a name.
    pub const fn named(name: &[u8]) -> Arg {
        let (text, mut i) = (NAMES.as_bytes(), 1);
        while i < Arg::ALL.len() {
            let (mut at, end) = (OFFSETS[i] as usize, OFFSETS[i + 1] as usize - 1);
            if text[at] == b'r' && text[at + 1] == b'#' {
                at += 2;
            }
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
        assert_eq!(Arg::r#type.as_str(), "type");
        assert_eq!(Arg::window.as_str(), "window");
        for &argument in Arg::ALL {
            assert_eq!(Arg::named(argument.as_str().as_bytes()), argument);
        }
        assert_eq!(Arg::named(b"wind"), Arg::nobody);
    }
}

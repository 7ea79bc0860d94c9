//! `Arg`: the argument at fault, by its name in the header. `capi/parameters.txt` has the
//! parameters of every function, and so their numbers.
#![forbid(unsafe_code)]

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

        /// Separated by spaces.
        const NAMES: &str = concat!($(" ", stringify!($name)),*);
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
    pool,
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
        let mut names = NAMES.as_bytes().split(|&byte| byte == b' ');
        let name = names.nth(self as usize).unwrap_or(b"");
        let name = core::str::from_utf8(name).unwrap_or("");
        name.strip_prefix("r#").unwrap_or(name)
    }
}

#[cfg(test)]
mod tests {
    use super::Arg;

    #[test]
    fn names_are_those_of_the_header() {
        assert_eq!(Arg::nobody.as_str(), "");
        assert_eq!(Arg::a.as_str(), "a");
        assert_eq!(Arg::r#type.as_str(), "type");
        assert_eq!(Arg::window.as_str(), "window");
    }
}

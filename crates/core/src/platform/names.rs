//! File names of a library per system.

use core::ffi::CStr;

/// Names of a library, best first.
pub struct Names {
    /// Those looked for among what the process has loaded.
    pub loaded: &'static [&'static CStr],
    /// Those to be loaded then.
    pub opened: &'static [&'static CStr],
    /// The text if there is none.
    pub missing: &'static str,
}

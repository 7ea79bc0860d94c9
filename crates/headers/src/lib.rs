//! Writes `include/dlpack.h` and `include/dlpack_rs.h` from the Rust sources.
//!
//! A template (`crates/headers/*.h.in`) holds the preprocessor scaffold and the order of the items;
//! each
//! item is one cbindgen run over its source ([`item`]), then a few rules for tokens, white space
//! and comments ([`rules`]). [`scan`] lists a source's public C items.
#![forbid(unsafe_code)]

pub mod item;
pub mod rules;
pub mod scan;
pub mod template;

use std::path::{Path, PathBuf};

pub use scan::{Result, read};

/// The generated files, each from `crates/headers/<name>.in`.
pub const HEADERS: [&str; 2] = ["dlpack.h", "dlpack_rs.h"];

/// The top folder of the repository.
pub fn root() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.ancestors().nth(2).unwrap_or(crate_folder).to_path_buf()
}

/// The path of the committed header `name`.
pub fn committed(name: &str) -> PathBuf {
    root().join("include").join(name)
}

/// Generates the text of the header `name`.
pub fn generate(name: &str) -> Result<String> {
    let template = read(&root().join("crates/headers").join(format!("{name}.in")))?;
    template::expand(&root(), &template).map_err(|e| format!("{name}: {e}"))
}

/// Describes the first line in which two texts differ; `None` if they are equal.
pub fn first_difference(committed: &str, generated: &str) -> Option<String> {
    if committed == generated {
        return None;
    }
    let (mut old, mut new) = (committed.split('\n'), generated.split('\n'));
    for number in 1.. {
        let (was, is) = (old.next(), new.next());
        if was != is {
            let show =
                |line: Option<&str>| line.map_or("(end of file)".into(), |l| format!("{l:?}"));
            return Some(format!("line {number}\n  - {}\n  + {}", show(was), show(is)));
        }
    }
    None
}

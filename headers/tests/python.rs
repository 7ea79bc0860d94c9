//! Check (e): the headers parse with cffi; see `c_tests/headers/parse_cffi.py`.

mod support;

use std::process::Command;

use headers::root;
use support::{fetch, run, tool};

#[test]
fn cffi_parses_both_headers() {
    tool("cc", "gcc");
    let script = root().join("c_tests/headers/parse_cffi.py");
    print!("{}", run(Command::new(fetch("cffi")).arg(script).arg(root().join("include"))));
}

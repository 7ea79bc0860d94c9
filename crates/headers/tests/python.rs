//! Check (e): the headers parse with cffi; see `c_tests/headers/parse_cffi.py`. And what is made of
//! them by cffi, `python/dlpack_rs/abi/_cffi.py`, matches them; `BLESS=1` rewrites it.

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

#[test]
fn declarations_for_cffi_are_those_of_the_headers() {
    let mut command = Command::new(fetch("cffi"));
    command.arg(root().join("python/generate_abi.py")).arg("--cffi");
    if std::env::var_os("BLESS").is_none() {
        command.arg("--check");
    }
    print!("{}", run(&mut command));
}

//! `cargo run -p headers` writes `include/*.h`; with `--check` it only compares.

use std::process::ExitCode;

use headers::{HEADERS, committed, first_difference, generate, read};

fn main() -> ExitCode {
    let check = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--check") => true,
        Some(other) => {
            eprintln!(
                "headers: unknown argument {other}; usage: cargo run -p headers [-- --check]"
            );
            return ExitCode::FAILURE;
        }
    };
    let mut code = ExitCode::SUCCESS;
    for name in HEADERS {
        if let Err(message) = run(name, check) {
            eprintln!("headers: {message}");
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn run(name: &str, check: bool) -> headers::Result<()> {
    let (path, text) = (committed(name), generate(name)?);
    if !check {
        return std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()));
    }
    match first_difference(&read(&path)?, &text) {
        None => Ok(()),
        Some(place) => Err(format!("include/{name} is stale, {place}\nrun: cargo run -p headers")),
    }
}

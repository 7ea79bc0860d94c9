//! Helpers of the checks: paths, commands, upstream's header.
#![allow(dead_code)] // each test file uses a part

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A folder for fetched and written files; not part of the repository.
pub fn scratch() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("headers");
    std::fs::create_dir_all(&folder).expect("the build folder can be written");
    folder
}

/// Runs a command; returns its output, or its error messages.
pub fn try_run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("cannot run {command:?}: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?} failed:\n{}{said}", String::from_utf8_lossy(&output.stdout)))
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) -> String {
    try_run(command).unwrap_or_else(|message| panic!("{message}"))
}

/// Runs a program, which is in Debian's `package`.
pub fn tool(program: &str, package: &str) -> Command {
    if Command::new(program).arg("--version").output().is_err() {
        panic!("{program} is missing: install it (Debian: apt-get install {package})");
    }
    Command::new(program)
}

/// Fetches upstream's header, libclang or cffi: see `crates/headers/fetch.py`.
pub fn fetch(what: &str) -> PathBuf {
    let script = headers::root().join("crates/headers/fetch.py");
    let mut command = tool("python3", "python3 python3-venv");
    run(command.arg(script).arg(what).arg(scratch())).trim().into()
}

/// Upstream's header, verified by its hash.
pub fn upstream() -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| fetch("dlpack")).clone()
}

/// Uses PyPI's libclang if the system has none. For programs with one test.
pub fn prepare_libclang() {
    let arch = std::env::consts::ARCH;
    let places = [format!("/usr/lib/{arch}-linux-gnu"), "/usr/lib64".into(), "/usr/lib".into()];
    let names = places.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let mut names = names.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let found = names.any(|name| {
        name == "libclang.so" || (name.starts_with("libclang-") && name.contains(".so"))
    });
    if !found && std::env::var_os("LIBCLANG_PATH").is_none() {
        // SAFETY: a program that calls this has one test, so no other thread accesses the
        // environment.
        unsafe { std::env::set_var("LIBCLANG_PATH", fetch("libclang")) };
    }
}

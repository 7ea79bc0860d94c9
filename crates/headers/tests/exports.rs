//! `include/exports.txt` is the one list of exports, written by hand. The exports in the sources,
//! the declarations in the header and the symbols of the library must all equal it. Each line names
//! a user of the function as well, a file outside the tests, or says in words why it stays.

mod support;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use cbindgen::ItemType;
use headers::scan;
use headers::{committed, read, root};
use support::{run, tool};

type Names = BTreeSet<String>;

fn listed() -> Names {
    let text = read(&committed("exports.txt")).unwrap_or_else(|message| panic!("{message}"));
    let lines: Vec<_> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
    let names: Names = lines.iter().map(|&name| name.to_string()).collect();
    let sorted: Vec<_> = names.iter().collect();
    assert_eq!(lines, sorted, "include/exports.txt: sorted, no name twice, one name per line");
    names
}

#[test]
fn each_export_has_a_user_or_a_reason() {
    let text = read(&committed("exports.txt")).unwrap_or_else(|message| panic!("{message}"));
    let mut wrong = Vec::new();
    for line in text.lines() {
        let (name, why) = line.split_once(' ').unwrap_or((line, ""));
        if why.split_whitespace().count() >= 3 {
            continue; // a reason
        }
        // Another crate's tests, a page, or the C++ form of a function are no users.
        let outside = ["tests/", "c_tests/", "fuzz/", "crates/", "docs/", "src/", "include/"];
        let mentions = |text: String| {
            text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name)
        };
        let user = !outside.iter().any(|folder| why.starts_with(folder))
            && std::fs::read_to_string(root().join(why)).is_ok_and(mentions);
        if !user {
            wrong.push(format!("{name}: \"{why}\" is no file outside the tests that has it"));
        }
    }
    assert!(wrong.is_empty(), "include/exports.txt:\n{}", wrong.join("\n"));
}

fn same(place: &str, found: &Names) {
    let listed = listed();
    let missing: Vec<_> = listed.difference(found).collect();
    let extra: Vec<_> = found.difference(&listed).collect();
    assert!(
        missing.is_empty() && extra.is_empty(),
        "include/exports.txt and {place} differ.\n  \
         only listed: {missing:?}\n  not listed: {extra:?}"
    );
}

#[test]
fn the_sources_export_what_is_listed() {
    let folder = root().join("src/capi");
    let mut found = Names::new();
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        if entry.path().extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let source = scan::source(&entry.path()).unwrap_or_else(|message| panic!("{message}"));
        let functions = source.items.into_iter().filter(|item| item.kind == ItemType::Functions);
        found.extend(functions.map(|item| item.name));
    }
    same("src/capi", &found);
}

#[test]
fn the_header_declares_what_is_listed() {
    // Preprocessed; a function is a name of ours before a parenthesis.
    let text = run(tool("gcc", "gcc")
        .args(["-E", "-P", "-DDLRS_API=DLRS_API", "-x", "c"])
        .arg(committed("dlpack_rs.h")));
    let declared = text.split("DLRS_API").skip(1).filter_map(|rest| {
        let name = rest.split('(').next()?;
        name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next_back()
    });
    same("include/dlpack_rs.h", &declared.map(str::to_string).collect());
}

#[cfg(target_os = "linux")]
#[test]
fn the_shared_library_exports_what_is_listed() {
    let symbols = run(tool("nm", "binutils").args(["-D", "--defined-only"]).arg(library()));
    let names = symbols.lines().filter_map(|line| line.split_whitespace().nth(2));
    same("libdlpack_rs.so", &names.map(str::to_string).collect());
}

/// The release library, as `make build` builds it; cargo reports its path.
fn library() -> PathBuf {
    let version = run(Command::new(env!("CARGO")).arg("-vV"));
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let said = run(Command::new(env!("CARGO")).current_dir(root()).args([
        "build",
        "--quiet",
        "--release",
        "--package=dlpack_rs_cdylib",
        "--target",
        host.expect("cargo names its host"),
        "--message-format=json",
    ]));
    let mut found = said.split('"').filter(|text| text.ends_with("libdlpack_rs.so"));
    found.next_back().expect("cargo builds the shared library").into()
}

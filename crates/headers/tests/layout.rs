//! Check (c): our structs have the layout of the headers. bindgen parses a header with libclang and
//! writes sizes, alignments and offsets as constant assertions; these are compiled with the
//! library's Rust structs.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use headers::{committed, root};
use support::{prepare_libclang, run, scratch, tool, upstream};

#[test]
fn structs_lie_as_upstreams_and_our_own_headers_say() {
    prepare_libclang();
    let library = library();
    for (name, header) in [
        ("upstream", upstream()),
        ("dlpack", committed("dlpack.h")),
        ("dlpack_rs", committed("dlpack_rs.h")),
    ] {
        let blocks = assertions(&header);
        // All eight of upstream's structs, or an empty check would pass.
        assert!(name == "dlpack_rs" || blocks.len() >= 8, "{name}: {} structs", blocks.len());
        compile(name, &blocks.join("\n"), &library);
    }
}

/// bindgen's `const _` blocks, one per struct that `header` defines.
fn assertions(header: &Path) -> Vec<String> {
    let name = header.display().to_string();
    // PyPI's libclang lacks the compiler's stddef.h.
    let stddef = run(tool("gcc", "gcc").arg("-print-file-name=include"));
    let text = bindgen::Builder::default()
        .header(&name)
        .clang_args(["-idirafter", stddef.trim()])
        .allowlist_file(&name)
        .generate_comments(false)
        .formatter(bindgen::Formatter::None)
        .generate()
        .unwrap_or_else(|e| panic!("bindgen: {name}: {e}"))
        .to_string();
    let start = "const _ : () = {"; // unformatted: one space between tokens
    let blocks = text.split(start).skip(1);
    let block = |rest: &str| rest.split_once('}').map(|(body, _)| format!("{start}{body}}};"));
    blocks.filter_map(block).collect()
}

/// Compiles the assertions with the library's types.
fn compile(name: &str, blocks: &str, library: &Path) {
    let source = format!("#![allow(unused_imports)]\n{}\n{blocks}\n", imports());
    let file = scratch().join(format!("layout_{name}.rs"));
    std::fs::write(&file, source).expect("the build folder can be written");
    let dependencies = library.parent().expect("an rlib lies in a folder");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    run(Command::new(rustc)
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "-Cpanic=abort"])
        .arg(format!("--extern=dlpack_rs={}", library.display()))
        .arg(format!("-Ldependency={}", dependencies.display()))
        .arg(format!("-Ldependency={}/deps", dependencies.display()))
        .arg("--out-dir")
        .arg(scratch())
        .arg(file));
}

/// `use` lines for every source of a header.
fn imports() -> String {
    let mut lines = "use dlpack_rs::abi::*;\n".to_string();
    let template = root().join("crates/headers/dlpack_rs.h.in");
    let template = headers::read(&template).unwrap_or_else(|message| panic!("{message}"));
    let files = template
        .lines()
        .filter_map(|line| line.strip_prefix("@file "))
        .flat_map(str::split_whitespace);
    for path in files {
        // The core library re-exports the modules of its crates.
        let path = path.rsplit_once("src/").map_or(path, |(_, module)| module);
        let module = path.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
        lines += &format!("use dlpack_rs::{module}::*;\n");
    }
    lines
}

/// The core library as an rlib; cargo reports its path.
fn library() -> PathBuf {
    let said = run(Command::new(env!("CARGO")).current_dir(root()).args([
        "build",
        "--quiet",
        "--package=dlpack_rs",
        "--message-format=json",
    ]));
    let strings = said.split('"').filter(|text| text.ends_with(".rlib"));
    let mut found = strings.filter(|text| text.contains("libdlpack_rs"));
    found.next_back().expect("cargo builds the library's rlib").into()
}

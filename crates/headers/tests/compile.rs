//! Check (d): both headers compile without a warning in every C and C++, alone, twice and with
//! upstream's, and every struct has the layout of `c_tests/headers/layout.c`.

mod support;

use std::path::Path;
use std::process::Command;

use headers::{committed, root};
use support::{scratch, tool, try_run, upstream};

/// C compiler, C++ compiler, Debian's package.
const COMPILERS: [(&str, &str, &str); 2] = [("gcc", "g++", "g++"), ("clang", "clang++", "clang")];
const C: [&str; 4] = ["c99", "c11", "c17", "c2x"];
const CXX: [&str; 5] = ["c++11", "c++14", "c++17", "c++20", "c++2b"];

/// The targets that clang can compile for without a C library.
const TARGETS: [&str; 6] = [
    "i686-linux-gnu",
    "armv7-linux-gnueabihf",
    "aarch64-linux-gnu",
    "riscv64-linux-gnu",
    "x86_64-windows-msvc",
    "arm64-apple-darwin",
];

/// A command per compiler and language version, without the file.
fn dialects() -> Vec<Command> {
    let mut all = Vec::new();
    for (c, cxx, package) in COMPILERS {
        let c = C.map(|standard| (c, "c", standard));
        for (program, language, standard) in c.into_iter().chain(CXX.map(|s| (cxx, "c++", s))) {
            let mut command = tool(program, package);
            command.args(["-x", language, &format!("-std={standard}")]);
            all.push(command);
        }
    }
    all
}

fn strict(command: &mut Command, macros: &[(&str, &Path)]) -> Result<String, String> {
    command
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .arg("-I")
        .arg(root().join("include"));
    for (name, header) in macros {
        command.arg(format!("-D{name}=\"{}\"", header.display()));
    }
    try_run(command)
}

/// Runs a check for each command and reports all failures together.
fn all(results: impl Iterator<Item = Result<String, String>>) {
    let (good, bad): (Vec<_>, Vec<_>) = results.partition(Result::is_ok);
    println!("{} compilations passed, {} failed", good.len(), bad.len());
    let bad: Vec<String> = bad.into_iter().filter_map(Result::err).collect();
    assert!(bad.is_empty() && !good.is_empty(), "{} failures:\n{}", bad.len(), bad.join("\n"));
}

fn c_file(name: &str) -> std::path::PathBuf {
    root().join("c_tests/headers").join(name)
}

#[test]
fn layout_is_as_written_in_every_dialect() {
    let headers = [committed("dlpack.h"), committed("dlpack_rs.h"), upstream()];
    all(headers.iter().flat_map(|header| {
        dialects().into_iter().map(move |mut compiler| {
            compiler.arg("-fsyntax-only").arg(c_file("layout.c"));
            strict(&mut compiler, &[("HEADER", header)])
        })
    }));
}

#[test]
fn layout_is_as_written_on_other_machines() {
    let header = committed("dlpack_rs.h");
    all(TARGETS.iter().flat_map(|target| {
        [("clang", "c", "c99"), ("clang++", "c++", "c++17")].map(|(program, language, standard)| {
            let mut compiler = tool(program, "clang");
            compiler.args(["-x", language, &format!("-std={standard}"), "-ffreestanding"]);
            compiler.arg(format!("--target={target}")).arg("-fsyntax-only");
            if language == "c++" {
                compiler.arg("-nostdinc++");
            }
            strict(compiler.arg(c_file("layout.c")), &[("HEADER", &header)])
        })
    }));
}

/// Includes each header twice, and before and after each other one. A DLPack 1.0 may only come
/// first: the newer header is then the one whose declarations are skipped.
#[test]
fn headers_go_together_in_every_order() {
    let (dlpack, ours, theirs) = (committed("dlpack.h"), committed("dlpack_rs.h"), upstream());
    let old = c_file("dlpack_1_0.h");
    let pairs = [
        (&dlpack, &dlpack),
        (&ours, &ours),
        (&dlpack, &ours),
        (&ours, &dlpack),
        (&dlpack, &theirs),
        (&theirs, &dlpack),
        (&ours, &theirs),
        (&theirs, &ours),
        (&old, &ours),
    ];
    all(pairs.iter().flat_map(|(first, second)| {
        dialects().into_iter().map(move |mut compiler| {
            compiler.arg("-fsyntax-only").arg(c_file("order.c"));
            strict(&mut compiler, &[("FIRST", first), ("SECOND", second)])
        })
    }));
}

#[test]
fn headers_define_nothing_twice() {
    let program = scratch().join("two_units");
    all(dialects().into_iter().map(|mut compiler| {
        compiler.args([c_file("unit_a.c"), c_file("unit_b.c")]).arg("-o").arg(&program);
        strict(&mut compiler, &[])?;
        try_run(&mut Command::new(&program))
    }));
}

/// Each struct of `dlpack_rs.h` that starts with struct_size, and its other members.
fn growing() -> Vec<(String, Vec<String>)> {
    let text = headers::read(&committed("dlpack_rs.h")).expect("it is committed");
    let mut all = Vec::new();
    for part in text.split("\nstruct ").skip(1) {
        let Some((name, body)) = part.split_once(" {\n") else { continue };
        let body = body.split("\n};").next().expect("there is always a first");
        let code = body.lines().filter(|line| !line.trim_start().starts_with(['/', '*']));
        let code = code.collect::<Vec<_>>().join(" ");
        let mut members = code.split_terminator(';').map(|declared| {
            // An identifier, an array, or a pointer to a function.
            let pointer = declared.split_once("(*").and_then(|(_, rest)| rest.split_once(')'));
            let plain = declared.split('[').next().expect("there is always a first");
            let plain = plain.rsplit([' ', '*']).next().expect("likewise");
            pointer.map_or(plain, |(name, _)| name).to_string()
        });
        if members.next().is_some_and(|first| first == "struct_size") {
            all.push((name.to_string(), members.collect()));
        }
    }
    all
}

/// `DLRS_INIT` at file scope, in a function, and of a static constant in one.
#[test]
fn structs_that_grow_are_initialised_in_every_dialect() {
    let (mut constants, mut checks) = (String::new(), String::new());
    let growing = growing();
    assert!(growing.len() >= 10, "{growing:?}");
    for (name, members) in &growing {
        constants += &format!("static const {name} outside_{name} = DLRS_INIT({name});\n");
        checks += &format!("  {{ static const {name} kept = DLRS_INIT({name});\n");
        checks += &format!("    const {name} *all[3], local = DLRS_INIT({name}); int i;\n");
        checks += &format!("    all[0] = &outside_{name}; all[1] = &kept; all[2] = &local;\n");
        checks += "    for (i = 0; i < 3; ++i) {\n";
        checks += &format!("      if (all[i]->struct_size != sizeof({name})) return 1;\n");
        for member in members {
            checks += &format!(
                "      if (memcmp(&all[i]->{member}, zeros, sizeof all[i]->{member})) return 1;\n"
            );
        }
        checks += "    } }\n";
    }
    let source = scratch().join("init.c");
    let program = scratch().join("init");
    let text = format!(
        "#include <string.h>\n#include \"dlpack_rs.h\"\n{constants}\
         static char zeros[4096];\nint main(void) {{\n{checks}  return 0;\n}}\n"
    );
    std::fs::write(&source, text).expect("the scratch folder is ours");
    all(dialects().into_iter().map(|mut compiler| {
        compiler.arg(&source).arg("-o").arg(&program);
        strict(&mut compiler, &[])?;
        try_run(&mut Command::new(&program))
    }));
}

/// Upstream's other macros are used by programs that build their own libraries, and must not
/// change.
#[test]
fn dlpack_rs_h_leaves_upstreams_macros_alone() {
    let text = headers::read(&committed("dlpack_rs.h")).expect("it is committed");
    for line in text.lines().filter(|line| line.starts_with("#define")) {
        assert!(
            line.starts_with("#define DLRS_") || line.starts_with("#define DLPACK_RS_H_"),
            "{line}"
        );
    }
}

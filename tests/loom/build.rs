//! Takes functions out of the library's sources as they stand there: the models call them with loom's
//! atomics. PLANT="OLD=>NEW" changes a text of theirs, which a model has to find.

use std::path::Path;
use std::{env, fs};

fn sources(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, all),
            false => *all += &fs::read_to_string(path).unwrap(),
        }
    }
}

/// The function that begins with this text, which is there once.
fn function<'a>(all: &'a str, head: &str) -> &'a str {
    assert_eq!(all.matches(head).count(), 1, "{head}");
    let text = &all[all.find(head).unwrap()..];
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return &text[..=at],
            b'}' => depth -= 1,
            _ => {}
        }
    }
    panic!("{head}: no end");
}

fn main() {
    println!("cargo::rerun-if-env-changed=PLANT");
    println!("cargo::rerun-if-changed=../../crates/tensor/src");
    println!("cargo::rerun-if-changed=../../crates/core/src/platform/jobs.rs");
    let mut all = String::new();
    sources(Path::new("../../crates/tensor/src"), &mut all);
    let leave = function(&all, "fn leave(references: &AtomicUsize) -> bool");
    let hold = function(&all, "pub fn hold_usual(&self) -> bool");
    let counts = format!("{leave}\nimpl Block {{ {hold} }}\n");
    let jobs = fs::read_to_string("../../crates/core/src/platform/jobs.rs").unwrap();
    let jobs: String =
        jobs.lines().filter(|line| !line.starts_with("//!")).map(|l| format!("{l}\n")).collect();
    let (mut made, out) = ([counts, jobs], env::var("OUT_DIR").unwrap());
    if let Ok(plant) = env::var("PLANT") {
        let (old, new) = plant.split_once("=>").unwrap();
        assert_eq!(made.iter().map(|text| text.matches(old).count()).sum::<usize>(), 1, "{old}");
        made = made.map(|text| text.replace(old, new));
    }
    for (text, name) in made.iter().zip(["counts.rs", "jobs.rs"]) {
        fs::write(Path::new(&out).join(name), text).unwrap();
    }
}

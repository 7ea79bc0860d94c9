//! The house rules that Cargo does not keep, checked in the sources: documentation of exports, what
//! C calls, names, length of lines, code that depends on the target.

use dlpack_rs::error::Status;
use std::fs;
use std::path::{Path, PathBuf};

mod circles;
mod pointers;

/// Headings of a doc comment, in their required order.
const HEADINGS: &[&str] =
    &["Shape:", "Bytes:", "Device:", "Ownership:", "Flags:", "Errors:", "Threads:", "Source:"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(sources(&path)),
            false if path.extension().is_some_and(|e| e == "rs") => files.push(path),
            false => {}
        }
    }
    files.sort();
    files
}

/// The folders of sources of all crates.
fn crates() -> Vec<PathBuf> {
    let below = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let all = below.chain([root(), root().join("python/module")]).map(|path| path.join("src"));
    all.filter(|folder| folder.is_dir()).collect()
}

/// The sources of what is shipped: the C interface, the crates below it, and the Python module.
fn product() -> Vec<PathBuf> {
    let shipped = |folder: &&PathBuf| !folder.ends_with("crates/headers/src");
    crates().iter().filter(shipped).flat_map(|folder| sources(folder)).collect()
}

/// Name, doc comment and parameters of every exported function.
fn exports() -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for file in sources(&root().join("src/capi")) {
        let text = fs::read_to_string(&file).unwrap();
        for (at, _) in text.match_indices("#[unsafe(no_mangle)]") {
            let docs: Vec<&str> = text[..at]
                .lines()
                .rev()
                .take_while(|line| line.starts_with("///"))
                .map(|line| line.trim_start_matches("///"))
                .collect();
            let docs = docs.into_iter().rev().collect::<Vec<_>>().join("\n");
            let rest = &text[at..];
            let name = rest.split("fn ").nth(1).unwrap().split('(').next().unwrap();
            let signature = rest.split('{').next().unwrap().to_owned();
            found.push((name.to_owned(), docs, signature));
        }
    }
    found
}

#[test]
fn every_export_is_documented_in_the_fixed_order() {
    let mut wrong = Vec::new();
    for (name, docs, _) in exports() {
        let mut last = 0;
        for line in docs.lines() {
            let heading = HEADINGS.iter().position(|h| line.trim_start().starts_with(h));
            if let Some(place) = heading {
                if place < last {
                    wrong.push(format!("{name}: {} is out of order", HEADINGS[place]));
                }
                last = place + 1;
            }
        }
        for needed in ["Ownership:", "Errors:", "Threads:"] {
            if !docs.contains(needed) && !docs.to_lowercase().contains("all else as") {
                wrong.push(format!("{name}: {needed} is missing"));
            }
        }
        let first = docs.trim_start().lines().next().unwrap_or("");
        if !first.starts_with(|c: char| c.is_ascii_uppercase()) || first.len() < 12 {
            wrong.push(format!("{name}: does not start with a sentence"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `BLESS=1` rewrites the list.
#[test]
fn parameters_are_those_of_the_signatures() {
    let mut list = String::new();
    for (name, _, signature) in exports().iter().filter(|(_, _, s)| s.contains("-> dlrs_status")) {
        let inside = signature.split_once('(').unwrap().1.split("->").next().unwrap();
        let names =
            inside.split(": ").map(|part| part.rsplit([',', '(', '\n', ' ']).next().unwrap());
        let names: Vec<&str> = names.collect();
        let names = names.split_last().unwrap().1; // behind the last colon is a type
        let names = names.split_last().unwrap().1; // the error
        list += &format!("{name} {}\n", names.join(" "));
    }
    let file = root().join("src/capi/parameters.txt");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&file, &list).unwrap();
    }
    assert_eq!(fs::read_to_string(file).unwrap(), list, "BLESS=1 cargo test --test house");
    // And each name that an error can have is one of them, or `other`, of Python's methods.
    let source = fs::read_to_string(root().join("crates/core/src/error/argument.rs")).unwrap();
    let names = source.split_once("arguments! {\n").unwrap().1.split_once("\n}").unwrap().0;
    for name in names.lines().map(|line| line.trim().trim_end_matches(',')) {
        let used = name == "other" || list.split_whitespace().any(|word| word == name);
        assert!(used, "crates/core/src/error/argument.rs: {name} is a parameter of no function");
    }
}

#[test]
fn every_fallible_export_ends_with_the_error_parameter() {
    for (name, _, signature) in exports() {
        if signature.contains("-> dlrs_status") {
            let last = signature.rsplit(',').map(str::trim).find(|part| part.contains(": "));
            let last = last.unwrap_or("");
            assert!(last.starts_with("error: *mut dlrs_error"), "{name}: last is {last}");
        }
    }
}

#[test]
fn every_export_is_called_and_null_tested_from_c() {
    let tests: String = fs::read_dir(root().join("c_tests"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "c" || e == "h"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let mut wrong = Vec::new();
    for (name, _, signature) in exports() {
        let calls: Vec<&str> = tests.split(&format!("{name}(")).skip(1).collect();
        if calls.is_empty() {
            wrong.push(format!("{name}: not called"));
        }
        // A call whose arguments hold NULL, beyond the error parameter at the end.
        let parameters = signature.split("->").next().unwrap();
        let takes_pointer = parameters.matches("*const").count()
            + parameters.matches("*mut").count()
            > usize::from(parameters.contains("error: *mut"));
        // Or it is in a row of NULLS, a macro that makes such calls.
        let in_row = tests
            .lines()
            .any(|line| line.trim().starts_with("NULLS(") && line.contains(&format!(", {name}, ")));
        let with_null = in_row
            || calls.iter().any(|call| {
                let arguments = call.split(';').next().unwrap_or("");
                arguments.contains("NULL") || arguments.contains("nullptr")
            });
        if takes_pointer && signature.contains("-> dlrs_status") && !with_null {
            wrong.push(format!("{name}: never called with NULL"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each export is in a row of the table of structs that change while they are read, or among those
/// that read none; nothing else is.
#[test]
fn every_export_is_tried_with_a_struct_that_changes() {
    let table = fs::read_to_string(root().join("c_tests/test_racing.c")).unwrap();
    let names: Vec<&str> = table.split('"').filter(|text| text.starts_with("dlrs_")).collect();
    let exports = exports();
    for (name, _, _) in &exports {
        assert!(names.contains(&name.as_str()), "{name} is not in c_tests/test_racing.c");
    }
    for name in names {
        assert!(exports.iter().any(|export| export.0 == name), "{name} is no export");
    }
}

#[test]
fn lines_stay_short() {
    let mut wrong = Vec::new();
    for file in product() {
        let text = fs::read_to_string(&file).unwrap();
        let shown = file.strip_prefix(root()).unwrap().display().to_string();
        for (number, line) in text.lines().enumerate() {
            if line.chars().count() > 100 {
                wrong.push(format!("{shown}:{}: longer than 100", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What only C knows.
fn is_of_c(text: &str) -> bool {
    ["dlrs_", "DLRS_", "NULL", "->"].iter().any(|word| text.contains(word))
}

/// A text with a remedy, below the layer of C, reaches Python too: one that names what only C knows
/// has another one behind it. `is` is refused; the others' descriptions are the reader's concern.
#[test]
fn remedies_that_are_of_c_have_another_for_python() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for file in product() {
        if file.starts_with(root().join("src")) {
            continue; // the layer of C
        }
        let text = fs::read_to_string(&file).unwrap();
        for literal in text.split('"').skip(1).step_by(2) {
            let parts: Vec<&str> = literal.split("\\0").collect();
            if let [_, remedy, rest @ ..] = parts.as_slice()
                && remedy.ends_with('.')
                && is_of_c(remedy)
            {
                seen += 1;
                if !matches!(rest, [python] if !is_of_c(python) && !python.is_empty()) {
                    wrong.push(format!("{}: {literal}", file.display()));
                }
            }
        }
    }
    for status in Status::ALL {
        let (name, _, [remedy, python]) = status.explain();
        seen += u32::from(is_of_c(remedy));
        if is_of_c(python) || (is_of_c(remedy) && python.is_empty()) {
            wrong.push(format!("{name:?}: {remedy}"));
        }
    }
    assert!(seen > 10, "found {seen} only");
    assert!(wrong.is_empty(), "not for Python:\n{}", wrong.join("\n"));
}

/// The comment of an unsafe block says what is true, not who says so.
#[test]
fn safety_comments_name_a_fact() {
    let mut wrong = Vec::new();
    for file in product() {
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| line.contains("SAFETY:"))
        {
            let none = ["caller's word", "guaranteed by the caller", "as above", "Python's word"];
            if none.iter().any(|words| line.contains(words)) {
                wrong.push(format!("{}:{}: {}", file.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_module_is_called_by_a_name_that_says_nothing() {
    for file in product() {
        let name = file.file_stem().unwrap().to_str().unwrap();
        assert!(!["utils", "util", "common", "helpers", "misc"].contains(&name), "{name}");
    }
}

/// Code that depends on the target is confined to certain modules; `cfg(test)`, `cfg(feature)` and
/// `cfg!(target_endian)`, which is an expression that every target compiles, are exempt.
#[test]
fn targets_differ_only_in_platform_and_kernel_files() {
    let mut wrong = Vec::new();
    for file in product() {
        let shown = file.strip_prefix(root()).unwrap().display().to_string();
        let within = |folder, list: &[&str]| {
            shown.strip_prefix(folder).is_some_and(|file| list.contains(&file))
        };
        let kernel = within("crates/engine/src/cpu/", &["policy.rs"])
            || within("crates/cast/src/convert/", &["simd.rs", "avx2.rs"]);
        let folders = ["crates/core/src/platform/", "crates/kernels/"];
        if kernel || folders.iter().any(|folder| shown.starts_with(folder)) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap();
            let code = code.replace("target_endian", "");
            let asked = ["cfg(", "cfg!(", "cfg_attr("].iter().any(|word| code.contains(word));
            let target = ["target_", "unix", "windows", "miri"];
            if asked && target.iter().any(|word| code.contains(word)) {
                wrong.push(format!("{shown}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "target-dependent code:\n{}", wrong.join("\n"));
}

/// The catalogue's rows that other programs test: the program is there, and so is a test in Python.
#[test]
fn rows_of_the_catalogue_name_tests_that_are_there() {
    let table = fs::read_to_string(root().join("c_tests/catalogue_absent.c")).unwrap();
    let texts: Vec<&str> = table.split('"').skip(1).step_by(2).collect();
    let mut found = 0;
    for row in texts.windows(3).filter(|row| row[0].len() == 3 && row[1].contains('.')) {
        let (id, place, test) = (row[0], row[1], row[2]);
        let file = [root().join("c_tests").join(place), root().join(place)];
        let file = file.iter().find(|file| file.is_file());
        let text = fs::read_to_string(file.unwrap_or_else(|| panic!("{id}: {place}"))).unwrap();
        assert!(!place.ends_with(".py") || text.contains(&format!("def {test}(")), "{id}: {test}");
        found += 1;
    }
    assert!(found > 20, "{found} rows");
}

/// Numbers of the product's sources that may only become better. `BLESS=1` writes a better one.
#[test]
fn ratchets_do_not_go_back() {
    let texts: Vec<String> = product().iter().map(|f| fs::read_to_string(f).unwrap()).collect();
    let blocks: usize = texts.iter().map(|text| text.matches("unsafe {").count()).sum();
    let forbid = texts.iter().filter(|text| text.contains("\n#![forbid(unsafe_code)]")).count();
    let file = root().join("tests/ratchets.txt");
    let before = fs::read_to_string(&file).unwrap();
    let number = |name: &str| -> usize {
        let line = before.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse().unwrap()
    };
    assert!(blocks <= number("unsafe blocks"), "{blocks} unsafe blocks, before {before}");
    assert!(forbid >= number("files that forbid unsafe code"), "{forbid} forbid it: {before}");
    let now = format!("unsafe blocks {blocks}\nfiles that forbid unsafe code {forbid}\n");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&file, &now).unwrap();
    }
    let now_there = fs::read_to_string(file).unwrap();
    assert_eq!(now_there, now, "better than before: BLESS=1 cargo test --test house");
}

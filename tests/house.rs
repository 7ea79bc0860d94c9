//! The house rules, checked in the sources: layers, documentation of exports, length of lines.

use std::fs;
use std::path::{Path, PathBuf};

/// The layers, bottom first; a module may import modules of lower layers and of the same one.
const LAYERS: &[&[&str]] = &[
    &["abi", "array", "integer_text"],
    &["error"],
    &["platform"],
    &[
        "layout",
        "overlap",
        "scan",
        "dtype",
        "dtype_notation",
        "device_type",
        "float_formats",
        "view",
    ],
    &["validate"],
    &["device"],
    &["tensor"],
    &["copy", "import", "numbers", "cast", "compare", "batch", "print", "reader"],
    &["python"],
    &["capi"],
];

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

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The module of `src/<module>.rs` or `src/<module>/…`.
fn module_of(file: &Path) -> String {
    let inside = file.strip_prefix(root().join("src")).unwrap();
    let first = inside.components().next().unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// Modules named in `crate::<module>` and `use crate::{<module>…, …}`, comments left out.
fn imports(text: &str) -> Vec<String> {
    let code: String =
        text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut word = String::new();
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => found.push(std::mem::take(&mut word)),
                    c if depth == 0 && !c.is_whitespace() => word.push(c),
                    _ => {}
                }
            }
            found.push(word);
        } else {
            found.push(rest.to_owned());
        }
    }
    let first = |path: &String| {
        path.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap().to_owned()
    };
    found.iter().map(first).filter(|name| !name.is_empty()).collect()
}

#[test]
fn each_layer_imports_only_lower_layers() {
    let mut wrong = Vec::new();
    for file in sources(&root().join("src")) {
        let module = module_of(&file);
        if module == "lib" {
            continue;
        }
        let own = layer(&module).unwrap_or_else(|| panic!("{module} is in no layer"));
        for import in imports(&fs::read_to_string(&file).unwrap()) {
            match layer(&import) {
                Some(other) if other <= own => {}
                _ => wrong.push(format!("{}: crate::{import}", file.display())),
            }
        }
    }
    assert!(wrong.is_empty(), "imports of a higher layer:\n{}", wrong.join("\n"));
}

#[test]
fn the_import_reader_sees_both_forms() {
    let text = "use crate::{a::{x, y}, b};\nlet z = crate::c::d(); // crate::e";
    assert_eq!(imports(text), ["a", "b", "c"]);
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
        for needed in ["Ownership:", "Errors:", "Threads:", "Source:", "# Safety"] {
            if !docs.contains(needed) {
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
    let source = fs::read_to_string(root().join("src/error/argument.rs")).unwrap();
    let names = source.split_once("arguments! {\n").unwrap().1.split_once("\n}").unwrap().0;
    for name in names.lines().map(|line| line.trim().trim_end_matches(',')) {
        let used = name == "other" || list.split_whitespace().any(|word| word == name);
        assert!(used, "src/error/argument.rs: {name} is a parameter of no function");
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
        let with_null = calls.iter().any(|call| {
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
    for file in sources(&root().join("src")) {
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

#[test]
fn no_module_is_called_by_a_name_that_says_nothing() {
    for file in sources(&root().join("src")) {
        let name = file.file_stem().unwrap().to_str().unwrap();
        assert!(!["utils", "util", "common", "helpers", "misc"].contains(&name), "{name}");
    }
}

/// Code that depends on the target is confined to certain modules; `cfg(test)`, `cfg(feature)` and
/// `cfg!(target_endian)`, which is an expression that every target compiles, are exempt.
#[test]
fn targets_differ_only_in_platform_and_kernel_files() {
    let mut wrong = Vec::new();
    for file in sources(&root().join("src")) {
        let shown = file.strip_prefix(root()).unwrap().display().to_string();
        let within = |folder, list: &[&str]| {
            shown.strip_prefix(folder).is_some_and(|file| list.contains(&file))
        };
        let kernel = within("src/device/cpu/", &["policy.rs"])
            || within("src/device/cast/", &["simd.rs", "avx2.rs"]);
        if kernel || shown.starts_with("src/platform/") {
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

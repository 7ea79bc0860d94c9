//! Law 5: what C passes is judged once and followed in one place.
use std::fs;

use crate::{product, root, sources};

/// Law 5. What C passes is followed in `capi/arg` alone: no other file of the C interface reads or
/// writes through a raw pointer, and no function hands a parameter to two constructors there.
#[test]
fn pointers_of_c_are_judged_once_and_followed_in_one_place() {
    const FOLLOWS: &[&str] = &[
        ".read()",
        ".read_volatile(",
        ".read_unaligned(",
        ".write_volatile(",
        ".write_unaligned(",
        ".write_bytes(",
        ".copy_from",
        ".copy_to",
        "from_raw_parts",
        "from_ptr(",
        "new_unchecked(",
        "ptr::read",
        "ptr::write",
        "ptr::copy",
    ];
    let member = |rest: &str| {
        let end = rest.split_once(')').map(|(_, tail)| tail.trim_start_matches(')'));
        end.is_some_and(|tail| tail.starts_with('.'))
    };
    const JUDGES: &[&str] = &["live", "variable", "result", "buffer", "values", "Live::new"];
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for file in sources(&root().join("src/capi")) {
        let shown = file.strip_prefix(root()).unwrap().display().to_string();
        if shown.starts_with("src/capi/arg") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap();
            let called = !code.starts_with("use ") && FOLLOWS.iter().any(|w| code.contains(w));
            if called || code.split("(*").skip(1).any(member) {
                wrong.push(format!("{shown}:{}: follows a pointer: {}", number + 1, line.trim()));
            }
        }
        for function in text.split("\npub unsafe extern \"C\" fn ").skip(1) {
            let (name, rest) = function.split_once('(').unwrap();
            let (parameters, rest) = rest.split_once(')').unwrap();
            let body = rest.split("\n}\n").next().unwrap();
            for parameter in parameters.split(',').filter(|parameter| parameter.contains(": *")) {
                let parameter = parameter.split(':').next().unwrap().trim();
                let judged = |judge: &&str| {
                    let ends = [",", ".", ")"].map(|end| format!("{judge}({parameter}{end}"));
                    ends.iter().map(|call| body.matches(call).count()).sum::<usize>()
                };
                let count = JUDGES.iter().map(judged).sum::<usize>();
                seen += count;
                // A local of the same name is the judged one; `*name` would follow the pointer.
                if count > 1 || body.contains(&format!(" *{parameter} = ")) {
                    wrong.push(format!("{shown}: {name}: {parameter} is judged {count} times"));
                }
            }
        }
    }
    assert!(seen > 100, "found {seen} only");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Law 5, below the C interface: `validate` reads the members of a tensor that may be foreign.
/// These files look at one that is this library's, or that was checked before.
#[test]
fn members_of_tensors_are_read_where_they_are_checked() {
    const KNOWN: &[&str] = &[
        "crates/python/src/capsule.rs",
        "crates/python/src/wrap.rs",
        "crates/tensor/src/copy/clone.rs",
        "crates/tensor/src/tensor/ready.rs",
    ];
    let mut found = Vec::new();
    for file in product() {
        let shown = file.strip_prefix(root()).unwrap().display().to_string();
        let text = fs::read_to_string(&file).unwrap();
        let mut code = text.lines().map(|line| line.split("//").next().unwrap());
        let reads = |line: &str| {
            let whole = line.contains(").dl_tensor).read");
            let member = line.contains(").dl_tensor.") && !line.contains("&raw mut");
            whole || member || line.contains("(*tensor).")
        };
        if !shown.starts_with("crates/core/src/validate") && code.any(reads) {
            found.push(shown);
        }
    }
    found.sort();
    assert_eq!(found, KNOWN, "reads members of a tensor");
}

//! Check (b): our `dlpack.h` equals upstream's, except for comments.

mod support;

use std::path::Path;

use headers::{committed, first_difference};
use support::{run, scratch, tool, try_run, upstream};

/// Upstream's v1.3 with comments removed, as gcc writes it.
const DECLARATIONS_SHA256: &str =
    "ed4d840fd069db6de6d6603cc60d2db7e0150ed584610855648b4d9859f68be7";

/// The file without comments; macros and #include are unchanged.
fn without_comments(header: &Path) -> String {
    let mut gcc = tool("gcc", "gcc");
    run(gcc.args(["-w", "-fpreprocessed", "-dD", "-E", "-P", "-x", "c"]).arg(header))
}

#[test]
fn dlpack_h_is_upstreams_without_the_comments() {
    let ours = without_comments(&committed("dlpack.h"));
    let theirs = without_comments(&upstream());
    if let Some(place) = first_difference(&theirs, &ours) {
        panic!("include/dlpack.h is not upstream's (-) but ours (+), {place}");
    }
    let file = scratch().join("declarations.h");
    std::fs::write(&file, ours).expect("the build folder can be written");
    let sum = run(tool("sha256sum", "coreutils").arg(file));
    assert!(sum.starts_with(DECLARATIONS_SHA256), "sha256 of the declarations: {sum}");
}

/// What `newest.py` says of a header; an error if it has codes that are not known.
fn newest(header: &Path) -> Result<String, String> {
    let script = headers::root().join("crates/headers/newest.py");
    try_run(tool("python3", "python3").arg("-B").arg(script).arg(header))
}

#[test]
fn a_code_that_a_newer_header_adds_is_reported() {
    assert_eq!(newest(&upstream()), Ok("dlpack.h: every code is known\n".into()));
    let ours = std::fs::read_to_string(committed("dlpack.h")).expect("it is committed");
    for (after, added, said) in [
        (
            "kDLTrn = 18,",
            "kDLTPU = 19, kDLTPUHost, kDLFar = 98U, kDLNew,",
            "kDLFar = 98, kDLNew = 99",
        ),
        ("kDLBool = 6U,", "kDLBcomplex = 18, kDLNew = 0xffU,", "kDLNew = 255"),
    ] {
        let newer = ours.replacen(after, &format!("{after} {added}"), 1);
        assert_ne!(newer, ours, "{after} is not in the header");
        let file = scratch().join("newer.h");
        std::fs::write(&file, newer).expect("the build folder can be written");
        let message = newest(&file).expect_err("the code is not known");
        assert!(message.contains(&format!("NOT KNOWN: {said};")), "{message}");
    }
}

/// No sentence of upstream's comments was copied.
#[test]
fn comments_are_our_own() {
    let theirs = comment_lines(&upstream());
    assert!(theirs.len() > 100, "upstream's comments were not found");
    for line in comment_lines(&committed("dlpack.h")) {
        assert!(!theirs.contains(&line), "this line is upstream's: {line}");
    }
}

/// The lines of five words and more inside comment blocks.
fn comment_lines(header: &Path) -> Vec<String> {
    let text = headers::read(header).unwrap_or_else(|message| panic!("{message}"));
    let blocks = text.split("/*").skip(1).filter_map(|rest| rest.split_once("*/"));
    let lines = blocks.flat_map(|(block, _)| block.lines());
    let lines = lines.map(|line| line.trim_matches([' ', '*', '!']).replace("\\brief ", ""));
    lines.filter(|line| line.split_whitespace().count() >= 5).collect()
}

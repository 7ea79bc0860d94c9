//! What the generator makes of each kind of item, on a small library of its own; and what it
//! refuses.

use std::path::{Path, PathBuf};

use headers::template::expand;

const TOPIC: &str = r#"//! A topic.

/// An answer.
pub type dlrs_status = i32;

/// A flag; see [`dlrs_status`].
pub const DLRS_FLAG: u32 = 1 << 31;

/// A call back.
pub type dlrs_free_fn = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// Levels.
#[repr(C)]
pub enum dlrs_level {
    DLRS_LEVEL_LOW = 0,
    /// High.
    DLRS_LEVEL_HIGH = 1,
}

/// A table.
#[repr(C)]
pub struct dlrs_table {
    /// `sizeof(dlrs_table)`.
    pub struct_size: u32,
    pub next: *mut dlrs_table,
    pub free: dlrs_free_fn,
}

/// What only the library can see into.
pub struct dlrs_room(u8);

pub struct Private(u8);

/// Look at a tensor.
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_look(tensor: *const DLTensor, shape: *const i64, n: usize)
-> dlrs_status { 0 }

pub fn helper() {}
"#;

const EXPECTED: &str = r#"typedef struct dlrs_table dlrs_table;
typedef struct dlrs_room dlrs_room;
/* ---------------------------------------------------------------------------------------------
 * A topic.
 */

/** An answer. */
typedef int32_t dlrs_status;

/** A flag; see `dlrs_status`. */
#define DLRS_FLAG (1U << 31U)

/** A call back. */
typedef void (*dlrs_free_fn)(void *context);

/** Levels. */
enum dlrs_level {
  DLRS_LEVEL_LOW = 0,
  /** High. */
  DLRS_LEVEL_HIGH = 1,
};

/** A table. */
struct dlrs_table {
  /** `sizeof(dlrs_table)`. */
  uint32_t struct_size;
  struct dlrs_table *next;
  dlrs_free_fn free;
};

/** What only the library can see into. */
struct dlrs_room;

/**
 * Look at a tensor.
 *
 * Safety:
 * See the preface.
 */
DLRS_API dlrs_status dlrs_look(const DLTensor *tensor, const int64_t *shape, size_t n);
"#;

/// A library with these files under src/capi, and the real settings.
fn library(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("convention").join(name);
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(root.join("src/capi")).expect("the build folder can be written");
    for shared in ["Cargo.toml", "cbindgen.toml"] {
        std::fs::copy(headers::root().join(shared), root.join(shared)).expect("it is there");
    }
    // Of the features this list says what the header declares under a macro.
    let list = "pub mod topic;\n#[cfg(feature = \"print\")]\npub mod printed;\n";
    for (file, text) in files.iter().chain(&[("mod.rs", list)]) {
        std::fs::write(root.join("src/capi").join(file), text).expect("it can be written");
    }
    root
}

const TEMPLATE: &str = "@structs\n@file src/capi/topic.rs\n";

#[test]
fn every_kind_of_item_has_its_form() {
    let root = library("kinds", &[("topic.rs", TOPIC)]);
    assert_eq!(expand(&root, TEMPLATE).expect("the topic is right"), EXPECTED);
}

#[test]
fn what_a_feature_has_is_declared_unless_it_is_left_out() {
    let printed = "//! Text.\n\n/// Text.\npub type dlrs_text = i32;";
    let root = library("features", &[("topic.rs", ""), ("printed.rs", printed)]);
    let header = expand(&root, "@file src/capi/printed.rs\n").expect("the topic is right");
    let (before, after) = header.split_once("typedef int32_t dlrs_text;").expect("it is declared");
    assert!(before.contains("#ifndef DLRS_NO_PRINT\n"), "{header}");
    assert!(after.contains("#endif  /* DLRS_NO_PRINT */"), "{header}");
}

fn refusal(name: &str, files: &[(&str, &str)]) -> String {
    expand(&library(name, files), TEMPLATE).expect_err("this is to be refused")
}

#[test]
fn a_file_that_no_line_names_is_refused() {
    let other = "pub type dlrs_other = i32;";
    let said = refusal("unlisted", &[("topic.rs", TOPIC), ("other.rs", other)]);
    assert!(said.contains("dlrs_other of src/capi/other.rs is in no header"), "{said}");
}

#[test]
fn one_name_with_two_meanings_is_refused() {
    let twice = "#[repr(C)] pub struct dlrs_a { pub x: u32 }\n\
                 #[unsafe(no_mangle)] pub extern \"C\" fn dlrs_a() {}";
    assert!(refusal("twice", &[("topic.rs", twice)]).contains("dlrs_a has two"));
}

#[test]
fn letters_outside_ascii_are_refused() {
    let said = refusal("letters", &[("topic.rs", "/// From 0 … 1.\npub type dlrs_a = i32;")]);
    assert!(said.contains("only ASCII goes into a header"), "{said}");
}

#[test]
fn codes_without_a_name_for_their_list_are_refused() {
    let codes = "#[repr(C)] pub enum Nameless { DLRS_A = 1 }";
    let said = refusal("nameless", &[("topic.rs", codes)]);
    assert!(said.contains("add it to [export.rename]"), "{said}");
}

//! Expands a template. A line that starts with `@` is a directive; every other line is copied to
//! the header, with `@VERSION_MAJOR@`, `@VERSION_MINOR@`, `@VERSION_PATCH@` replaced.
//!
//! | line | becomes |
//! |---|---|
//! | `@from FILE` | nothing: FILE is the source of the following items |
//! | `@item NAME [OPTION...]` | the declaration of NAME |
//! | `@docs FILE` | the `//!` lines of FILE |
//! | `@structs` | `typedef struct X X;` for every struct of the `@file`s: any line may name it |
//! | `@file FILE...` | all public C items, in this order, below the `//!` lines of the one in `src/capi` |
//!
//! Items under a Cargo feature in `src/capi/mod.rs` are declared unless `DLRS_NO_<FEATURE>` is
//! defined.
//!
//! Options of an item: `tagged`, `cxx=TYPE`, `pointer=left|middle|right`, `suffix=S`,
//! `lines=N,N,...`: see [`Form`].

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cbindgen::ItemType;

use crate::item::{base, c_name, declare, version};
use crate::rules::{Form, Naming, Pointer, section};
use crate::scan::{self, Result, Source, read};

/// Placeholder of the typedefs until all structs are known.
const STRUCTS: &str = "@structs";
/// The folder whose files are topics: their `//!` lines begin sections of the header.
const C_API: &str = "src/capi";

struct Filler<'a> {
    root: &'a Path,
    config: cbindgen::Config,
    from: Option<(PathBuf, Source)>,
    seen: BTreeSet<String>,
    names: BTreeSet<String>,
    structs: Vec<String>,
}

/// The header that `template` describes, for the sources under `root`.
pub fn expand(root: &Path, template: &str) -> Result<String> {
    let version = version(root)?;
    let mut filler = Filler {
        root,
        config: base(root)?,
        from: None,
        seen: BTreeSet::new(),
        names: BTreeSet::new(),
        structs: Vec::new(),
    };
    let mut out = String::new();
    for (number, line) in template.lines().enumerate() {
        let text = match line.strip_prefix('@') {
            Some(order) => filler
                .order(order)
                .map_err(|e| format!("line {} of the template: {e}", number + 1))?,
            None => Some(
                line.replace("@VERSION_MAJOR@", &version[0])
                    .replace("@VERSION_MINOR@", &version[1])
                    .replace("@VERSION_PATCH@", &version[2]),
            ),
        };
        if let Some(text) = text {
            out += &text;
            out.push('\n');
        }
    }
    filler.nothing_left_out()?;
    let out = out.replace(STRUCTS, &filler.structs.join("\n"));
    match out.lines().enumerate().find(|(_, line)| !line.is_ascii()) {
        // Compilers on Windows read the file in the user's code page.
        Some((n, line)) => Err(format!("line {}: only ASCII goes into a header: {line}", n + 1)),
        None => Ok(out),
    }
}

impl Filler<'_> {
    fn order(&mut self, order: &str) -> Result<Option<String>> {
        let mut words = order.split_whitespace();
        let (verb, what) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        match verb {
            "from" => {
                let path = self.root.join(what);
                self.from = Some((path.clone(), scan::source(&path)?));
                Ok(None)
            }
            "item" => self.item(what, words).map(Some),
            "structs" => Ok(Some(STRUCTS.to_string())),
            "docs" => {
                self.seen.insert(what.to_string());
                Ok(Some(section(&scan::source(&self.root.join(what))?.docs)))
            }
            "file" => self.files(order.split_whitespace().skip(1).collect()).map(Some),
            other => Err(format!("@{other} is not an order")),
        }
    }

    fn item<'a>(&self, name: &str, words: impl Iterator<Item = &'a str>) -> Result<String> {
        let (path, source) = self.from.as_ref().ok_or("@item before @from")?;
        let found = source.items.iter().find(|item| item.name == name);
        let found = found.ok_or_else(|| format!("no item {name} in {}", path.display()))?;
        let (pointer, naming) = (Pointer::Left, Naming::Typedef);
        let mut form = Form { pointer, naming, ..Form::default() };
        // The template, not the line length, determines the line breaks of a callback.
        form.line_length = Some(usize::MAX);
        for word in words {
            option(&mut form, word)?;
        }
        declare(&self.config, path, &source.items, found, &form)
    }

    /// A section of the header.
    fn files(&mut self, names: Vec<&str>) -> Result<String> {
        let topic = names.iter().find(|name| name.starts_with(C_API));
        let mut parts = Vec::new();
        if let Some(topic) = topic {
            parts.push(section(&scan::source(&self.root.join(topic))?.docs));
        }
        for name in &names {
            parts.extend(self.items(name)?);
        }
        let text = parts.join("\n\n");
        Ok(match topic.map(|topic| feature(self.root, topic)).transpose()?.flatten() {
            None => text,
            Some(feature) => {
                let without = format!("DLRS_NO_{}", feature.to_uppercase());
                format!("#ifndef {without}\n{text}\n#endif  /* {without} */")
            }
        })
    }

    /// The declarations of a file.
    fn items(&mut self, name: &str) -> Result<Vec<String>> {
        self.seen.insert(name.to_string());
        let path = self.root.join(name);
        let source = scan::source(&path)?;
        let mut parts = Vec::new();
        for item in &source.items {
            let Some(name) = c_name(&self.config, item)? else { continue };
            if !self.names.insert(name.to_string()) {
                return Err(format!("C has one meaning for a name, {name} has two"));
            }
            if matches!(item.kind, ItemType::Structs | ItemType::OpaqueItems) {
                self.structs.push(format!("typedef struct {name} {name};"));
            }
            let form = Form { suffix: item.suffix, ..Form::default() };
            parts.push(declare(&self.config, &path, &source.items, item, &form)?);
        }
        Ok(parts)
    }

    /// An error for a public C item that no line of the template names.
    fn nothing_left_out(&self) -> Result<()> {
        if self.seen.is_empty() {
            return Ok(()); // upstream's template has single items
        }
        let mut sources = Vec::new();
        for folder in ["src", "crates"].map(|name| self.root.join(name)) {
            if folder.is_dir() {
                walk(&folder, &mut sources)?;
            }
        }
        sources.retain(|path| path.iter().any(|part| part == "src"));
        for path in sources {
            let name = path.strip_prefix(self.root).unwrap_or(&path).display().to_string();
            let name = name.replace('\\', "/");
            if self.seen.contains(&name) {
                continue;
            }
            for item in &scan::source(&path)?.items {
                if let Some(item) =
                    c_name(&self.config, item).map_err(|e| format!("{name}: {e}"))?
                {
                    let advice =
                        format!("add a line \"@file {name}\" to crates/headers/dlpack_rs.h.in");
                    return Err(format!("{item} of {name} is in no header: {advice}"));
                }
            }
        }
        Ok(())
    }
}

/// The Cargo feature that a file requires in `src/capi/mod.rs`.
fn feature(root: &Path, name: &str) -> Result<Option<String>> {
    let Some(topic) = name.strip_prefix(C_API) else { return Ok(None) };
    let line = format!("pub mod {};", topic.trim_matches('/').trim_end_matches(".rs"));
    let list = read(&root.join(C_API).join("mod.rs"))?;
    let before = list.lines().zip(list.lines().skip(1)).find(|(_, is)| *is == line);
    let named = before.and_then(|(before, _)| before.strip_prefix("#[cfg(feature = \""));
    Ok(named.and_then(|rest| rest.strip_suffix("\")]")).map(str::to_string))
}

/// Every Rust file in and below `folder`, sorted.
fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            walk(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

fn option(form: &mut Form, word: &str) -> Result<()> {
    match word.split_once('=').unwrap_or((word, "")) {
        ("tagged", "") => form.naming = Naming::Both,
        ("cxx", "int32_t") => form.cxx_type = Some("int32_t"),
        ("pointer", "left") => form.pointer = Pointer::Left,
        ("pointer", "middle") => form.pointer = Pointer::Middle,
        ("pointer", "right") => form.pointer = Pointer::Right,
        ("suffix", "U") => form.suffix = "U",
        ("suffix", "UL") => form.suffix = "UL",
        ("lines", counts) => {
            let counts: std::result::Result<_, _> = counts.split(',').map(str::parse).collect();
            form.lines = counts.map_err(|e| format!("{word}: {e}"))?;
        }
        _ => return Err(format!("{word} is not an option")),
    }
    Ok(())
}

//! One item of a source as a C declaration: one cbindgen run with every other item excluded, so
//! that the template determines the order and a name never includes others.

use std::path::Path;

use cbindgen::{Builder, Config, ItemType, Style};

use crate::rules::{self, Form, Naming};
use crate::scan::{Item, Result, read};

/// The settings of all items: `cbindgen.toml`.
pub fn base(root: &Path) -> Result<Config> {
    Config::from_file(root.join("cbindgen.toml")).map_err(|e| format!("cbindgen.toml: {e}"))
}

/// The item's name in C; `None` if it is not in the C interface.
pub fn c_name<'a>(base: &'a Config, item: &'a Item) -> Result<Option<&'a str>> {
    let ours = |name: &str| name.starts_with("dlrs_") || name.starts_with("DLRS_");
    match base.export.rename.get(&item.name) {
        // Another module's enum may have the same name in Rust and none in C.
        Some(_) if item.kind == ItemType::Enums && !item.lists_codes => Ok(None),
        Some(name) => Ok(Some(name)),
        None if ours(&item.name) => Ok(Some(&item.name)),
        None if item.lists_codes => {
            let advice = "add it to [export.rename] in cbindgen.toml";
            Err(format!("enum {} has codes for C but no name: {advice}", item.name))
        }
        None => Ok(None),
    }
}

/// Declares `item`, one of `all` in the file `path`.
pub fn declare(
    base: &Config,
    path: &Path,
    all: &[Item],
    item: &Item,
    form: &Form,
) -> Result<String> {
    let mut config = base.clone();
    config.style = match form.naming {
        Naming::Typedef => Style::Type,
        Naming::Both => Style::Both,
        Naming::Tag => Style::Tag,
    };
    config.line_length = form.line_length.unwrap_or(base.line_length);
    config.export.include = vec![item.name.clone()];
    config.export.exclude =
        all.iter().map(|other| other.name.clone()).filter(|name| *name != item.name).collect();
    config.export.item_types = vec![item.kind.clone()];
    let mut bytes = Vec::new();
    Builder::new()
        .with_config(config)
        .with_src(path)
        .generate()
        .map_err(|e| format!("{}: {}: {e}", path.display(), item.name))?
        .write(&mut bytes);
    let text = String::from_utf8(bytes).map_err(|e| e.to_string())?;
    if text.trim().is_empty() {
        return Err(format!("{}: cbindgen wrote nothing for {}", path.display(), item.name));
    }
    Ok(rules::apply(text.trim(), form))
}

/// The version, from the top `Cargo.toml`.
pub fn version(root: &Path) -> Result<[String; 3]> {
    let manifest = read(&root.join("Cargo.toml"))?;
    let line = manifest.lines().skip_while(|line| *line != "[workspace.package]");
    let found = line.into_iter().find_map(|line| line.strip_prefix("version = \""));
    let parts: Vec<String> =
        found.unwrap_or_default().trim_end_matches('"').split('.').map(str::to_string).collect();
    parts.try_into().map_err(|_| "Cargo.toml: no version = \"x.y.z\" in the workspace".to_string())
}

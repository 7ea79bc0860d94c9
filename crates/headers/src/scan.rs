//! Reads a Rust source and lists its public C items, in source order.

use std::path::Path;

use cbindgen::ItemType;

/// Every failure ends the run, so a message is enough.
pub type Result<T> = std::result::Result<T, String>;

/// A text file's content, with `\n` line ends.
pub fn read(path: &Path) -> Result<String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.replace("\r\n", "\n")),
        Err(e) => Err(format!("cannot read {}: {e}", path.display())),
    }
}

/// An item that may be in the C interface.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its name in Rust.
    pub name: String,
    /// What it is in C; an opaque struct has no `#[repr(C)]`.
    pub kind: ItemType,
    /// Whether it is an enum whose codes are named `DLRS_...`.
    pub lists_codes: bool,
    /// The suffix of numbers in a constant of this type.
    pub suffix: &'static str,
}

/// A source: its `//!` lines, and every public item.
pub struct Source {
    /// The module's documentation, one leading space removed.
    pub docs: Vec<String>,
    /// The items, as written from top to bottom.
    pub items: Vec<Item>,
}

/// Reads `path`.
pub fn source(path: &Path) -> Result<Source> {
    let file = syn::parse_file(&read(path)?).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(Source { docs: docs(&file.attrs), items: file.items.iter().filter_map(item).collect() })
}

fn docs(attributes: &[syn::Attribute]) -> Vec<String> {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|a| a.path().is_ident("doc")) {
        if let syn::Meta::NameValue(syn::MetaNameValue {
            value: syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }),
            ..
        }) = &attribute.meta
        {
            let text = text.value();
            lines.push(text.strip_prefix(' ').unwrap_or(&text).to_string());
        }
    }
    lines
}

fn item(item: &syn::Item) -> Option<Item> {
    use syn::Item::*;
    let (visibility, name, kind, suffix) = match item {
        Const(c) => (&c.vis, &c.ident, ItemType::Constants, suffix(&c.ty)),
        Enum(e) => (&e.vis, &e.ident, ItemType::Enums, ""),
        Struct(s) if has(&s.attrs, "repr") => (&s.vis, &s.ident, ItemType::Structs, ""),
        Struct(s) => (&s.vis, &s.ident, ItemType::OpaqueItems, ""),
        Type(t) => (&t.vis, &t.ident, ItemType::Typedefs, ""),
        Fn(f) if has(&f.attrs, "unsafe") || has(&f.attrs, "no_mangle") => {
            (&f.vis, &f.sig.ident, ItemType::Functions, "")
        }
        _ => return None,
    };
    let lists_codes = match item {
        Enum(e) => e.variants.iter().any(|code| code.ident.to_string().starts_with("DLRS_")),
        _ => false,
    };
    let public = matches!(visibility, syn::Visibility::Public(_));
    public.then(|| Item { name: name.to_string(), kind, lists_codes, suffix })
}

fn has(attributes: &[syn::Attribute], name: &str) -> bool {
    attributes.iter().any(|a| a.path().is_ident(name))
}

/// Without the suffix, `1 << 31` would overflow an int, and a 64-bit flag would lose its upper
/// half.
fn suffix(rust_type: &syn::Type) -> &'static str {
    match rust_type {
        syn::Type::Path(p) if p.path.is_ident("u32") => "U",
        syn::Type::Path(p) if p.path.is_ident("u64") => "ULL",
        syn::Type::Path(p) if p.path.is_ident("i64") => "LL",
        _ => "",
    }
}

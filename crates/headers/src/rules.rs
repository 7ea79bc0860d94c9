//! The rules that convert cbindgen's C to the header's: tokens and white space outside comments,
//! and Rust's documentation marks inside them. They change the spelling of a declaration, never its
//! meaning.

use std::borrow::Cow;

/// The position of the space in a pointer. Upstream's file has all three.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Pointer {
    /// `void* data`
    Left,
    /// `void * data`
    Middle,
    /// `void *data`, as cbindgen writes it.
    #[default]
    Right,
}

/// How a struct or enum is named.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Naming {
    /// `typedef struct {...} X;`
    Typedef,
    /// `typedef struct X {...} X;`
    Both,
    /// `struct X {...};`: a list of codes, or a struct with an earlier typedef.
    #[default]
    Tag,
}

/// The spelling of one item.
#[derive(Clone, Default, Debug)]
pub struct Form {
    /// How a struct or enum is named.
    pub naming: Naming,
    /// The enum's underlying type in C++; C has no syntax for it before C23.
    pub cxx_type: Option<&'static str>,
    /// The position of the space in a pointer.
    pub pointer: Pointer,
    /// The suffix of every decimal number.
    pub suffix: &'static str,
    /// Number of parameters of a callback per line; empty: as cbindgen writes them.
    pub lines: Vec<usize>,
    /// A line length other than that of `cbindgen.toml`.
    pub line_length: Option<usize>,
}

/// Applies all rules to one declaration.
pub fn apply(text: &str, form: &Form) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("/*") {
        let end = rest[start..].find("*/").map_or(rest.len(), |length| start + length + 2);
        out += &code(&rest[..start], form);
        out += &comment(&rest[start..end]);
        rest = &rest[end..];
    }
    out += &code(rest, form);
    if form.lines.is_empty() { out } else { break_parameters(&out, &form.lines) }
}

fn code(text: &str, form: &Form) -> String {
    let mut text = words(text, |word| match word {
        "self_" => "self".into(),              // a keyword in Rust
        "DeviceCode" => "DLDeviceType".into(), // an integer in Rust: it may hold any code
        number if number.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{number}{}", form.suffix).into()
        }
        other => other.into(),
    });
    if let Some(cxx_type) = form.cxx_type {
        let opener = format!(
            "#ifdef __cplusplus\ntypedef enum : {cxx_type} {{\n#else\ntypedef enum {{\n#endif"
        );
        text = text.replace("typedef enum {", &opener);
    }
    pointers(&text, form.pointer)
}

/// Replaces whole words.
fn words<'a>(text: &'a str, rule: impl Fn(&'a str) -> Cow<'a, str>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let other = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        let end = rest.find(other).unwrap_or(rest.len());
        out += &rule(&rest[..end]);
        rest = &rest[end..];
        let end = rest.find(|c| !other(c)).unwrap_or(rest.len());
        out += &rest[..end];
        rest = &rest[end..];
    }
    out
}

/// Moves the space of `void *name` according to `style`; `(*name)` has none.
fn pointers(text: &str, style: Pointer) -> String {
    if style == Pointer::Right {
        return text.to_string();
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(" *") {
        let stars = rest[start + 1..].len() - rest[start + 1..].trim_start_matches('*').len();
        let end = start + 1 + stars;
        out += &rest[..start];
        out += if style == Pointer::Middle { " " } else { "" };
        out += &rest[start + 1..end];
        out.push(' ');
        rest = &rest[end..];
    }
    out + rest
}

/// Puts the last parameter list of a callback on lines of `counts` parameters each.
fn break_parameters(text: &str, counts: &[usize]) -> String {
    let Some(start) = text.find(")(").map(|found| found + 2) else { return text.to_string() };
    let Some(end) = text.rfind(')') else { return text.to_string() };
    let mut counts = counts.iter();
    let mut left = counts.next().copied().unwrap_or(1);
    let (mut depth, mut out) = (0, text[..start].to_string() + "\n  ");
    for c in text[start..end].chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        out.push(c);
        if c == ',' && depth == 0 {
            left -= 1;
            if left == 0 {
                left = counts.next().copied().unwrap_or(1);
                out += "\n  ";
            }
        }
    }
    let lines: Vec<String> = out.split('\n').map(tidy).collect();
    lines.join("\n") + "\n" + &text[end..]
}

/// Trims a broken line to two spaces of indent and no trailing ones.
fn tidy(line: &str) -> String {
    match line.strip_prefix("  ") {
        Some(parameters) => format!("  {}", parameters.trim()),
        None => line.to_string(),
    }
}

/// Formats a comment block: removes Rust's marks, and uses one line if possible.
fn comment(text: &str) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let [first, body @ .., last] = &lines[..] else { return text.to_string() };
    if let [only] = body {
        let only = only.trim_start().trim_start_matches('*').trim();
        return format!("/** {} */", prose(only));
    }
    let body = body.iter().map(|line| prose(line).trim_end().to_string() + "\n");
    format!("{first}\n{}{last}", body.collect::<String>())
}

/// Converts one line of documentation for C: no intra-doc links, no Markdown headings.
fn prose(line: &str) -> String {
    let line = line.replace("[`", "`").replace("`]", "`").replace("*/", "* /");
    match line.split_once("# ") {
        Some((before, heading)) if before.trim_matches([' ', '*', '#']).is_empty() => {
            format!("{}{heading}:", before.trim_end_matches('#'))
        }
        _ => line,
    }
}

/// Formats a section: text about several declarations.
pub fn section(lines: &[String]) -> String {
    let mut out = format!("/* {}\n", "-".repeat(93));
    for line in lines {
        out += format!(" * {}", prose(line)).trim_end();
        out.push('\n');
    }
    out + " */"
}

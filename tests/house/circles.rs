//! Which files use which, by the paths in them.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::{crates, sources};

/// The paths in a source, each with the number of modules inside it in which it stands.
fn paths(source: &str) -> Vec<(usize, Vec<String>)> {
    let code = source.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>();
    let code = code.join(" ");
    let code = code.split("#[cfg(test)] mod tests {").next().unwrap();
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let apart = |c: char| if word(c) { c.to_string() } else { format!(" {c} ") };
    let (mut found, mut path, mut colons, mut before) = (Vec::new(), Vec::new(), 0, ["", ""]);
    let mut open = vec![(false, Vec::<String>::new())]; // braces: of a module; the path before them
    for token in code.chars().map(apart).collect::<String>().split_whitespace() {
        let (base, joined) = (open.last().unwrap().1.clone(), colons == 2);
        colons = if token == ":" { colons + 1 } else { 0 };
        if token != ":" && !joined || token == "}" {
            let within = open.iter().filter(|brace| brace.0).count();
            found.push((within, std::mem::take(&mut path)));
        }
        match token {
            ":" => {}
            "{" => open.push((before.contains(&"mod"), std::mem::take(&mut path))),
            "}" => open.truncate(open.len().saturating_sub(1).max(1)),
            "self" if !joined && !base.is_empty() => path = base,
            _ if joined => path.push(token.to_owned()),
            _ if token.starts_with(word) => path = [base, vec![token.to_owned()]].concat(),
            _ => {}
        }
        before = [before[1], token];
    }
    found
}

/// A reader can take the files of a crate one after the other: of three or more, not each can be
/// reached from each by the paths in them. What another crate gives is not counted.
#[test]
fn no_circle_of_more_than_two_files() {
    let (mut wrong, mut seen) = (BTreeSet::new(), 0);
    for folder in crates() {
        let files: BTreeMap<String, Vec<(usize, Vec<String>)>> = sources(&folder)
            .iter()
            .map(|file| {
                let module = file.strip_prefix(&folder).unwrap().with_extension("");
                let names = module.iter().map(|name| name.to_str().unwrap());
                let names = names.filter(|name| !["lib", "main", "mod"].contains(name));
                let names = ["crate"].into_iter().chain(names).collect::<Vec<_>>();
                (names.join("::"), paths(&fs::read_to_string(file).unwrap()))
            })
            .collect();
        let lib = fs::read_to_string(folder.join("lib.rs")).unwrap();
        let given = |name: &str| {
            let child = |path: &[String]| files.contains_key(&format!("crate::{}", path[0]));
            name.starts_with(char::is_uppercase)
                || ["fn", "macro_rules!"].iter().any(|kind| lib.contains(&format!("{kind} {name}")))
                || files["crate"]
                    .iter()
                    .any(|(_, path)| path.last().is_some_and(|last| last == name) && child(path))
        };
        let named = |from: &str, within: usize, path: &[String]| {
            let up = path.iter().take_while(|name| *name == "super").count();
            let own = usize::from(path[0] == "crate" || path[0] == "self").max(up);
            let mut at = if path[0] == "crate" { "crate" } else { from }.to_owned();
            for _ in within..up {
                at.truncate(at.rfind("::").unwrap_or(at.len()));
            }
            for name in &path[own..] {
                match format!("{at}::{name}") {
                    next if files.contains_key(&next) => at = next,
                    _ if at == "crate" && !given(name) => return None,
                    _ => break,
                }
            }
            Some(at)
        };
        let mut reached: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (file, paths) in &files {
            let paths = paths.iter().filter(|(_, path)| path.len() > 1);
            let uses = paths.filter_map(|(within, path)| named(file, *within, path));
            reached.insert(file, uses.filter(|used| used != file).collect());
        }
        for between in files.keys() {
            let further = reached[between.as_str()].clone();
            let through = reached.values_mut().filter(|files| files.contains(between));
            through.for_each(|files| files.extend(further.iter().cloned()));
        }
        for file in files.keys() {
            let back = |other: &&String| reached[other.as_str()].contains(file);
            let circle: Vec<_> = reached[file.as_str()].iter().filter(back).collect();
            if circle.len() > 2 {
                wrong.insert(format!("{}: {circle:?}", folder.display()));
            }
            seen += usize::from(circle.len() == 2);
        }
    }
    assert!(seen > 10, "{seen} files in a circle of two: are paths read?");
    assert!(wrong.is_empty(), "{}", wrong.into_iter().collect::<Vec<_>>().join("\n"));
}

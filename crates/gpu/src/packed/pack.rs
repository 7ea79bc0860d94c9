//! The build script: compresses the texts of the GPU kernels, by an optimal parse. Constant
//! evaluation by the compiler would take minutes.

mod format;

use std::collections::HashMap;
use std::path::PathBuf;

use format::{EARLIER, LEAST};

/// Maximum length of literals and of matches.
const RUN_MOST: usize = EARLIER as usize;
const MOST: usize = LEAST + (u8::MAX - EARLIER) as usize;
/// Number of last occurrences of the same bytes that are compared.
const PLACES: usize = 256;

fn main() {
    let out = PathBuf::from(std::env::var("OUT_DIR").unwrap());
    for name in ["kernels.ptx", "kernels.cu"] {
        let path = format!("src/{name}");
        let text = without_comments(&std::fs::read_to_string(&path).unwrap()) + "\0";
        std::fs::write(out.join(name), &text).unwrap();
        std::fs::write(out.join(format!("{name}.packed")), pack(text.as_bytes())).unwrap();
        println!("cargo:rerun-if-changed={path}");
    }
    println!("cargo:rerun-if-changed=src/packed");
}

/// A text without comments, indentation and empty lines. No string has two slashes.
fn without_comments(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or("").trim());
    lines.filter(|line| !line.is_empty()).flat_map(|line| [line, "\n"]).collect()
}

/// The choice at a position, and the compressed length of the rest of the text: after a piece, and
/// within a run of literals.
#[derive(Clone, Copy, Default)]
struct Rest {
    nbytes: usize,
    in_run: usize,
    /// Length of the match; 0 for none.
    len: usize,
}

/// Compresses a text.
pub fn pack(text: &[u8]) -> Vec<u8> {
    let longest = longest(text);
    let mut rest = vec![Rest::default(); text.len() + 1];
    for at in (0..text.len()).rev() {
        let next = rest[at + 1];
        let lens = LEAST..=longest[at].0;
        let len = lens.min_by_key(|len| rest[at + len].nbytes).unwrap_or(0);
        let earlier = if len == 0 { usize::MAX } else { 3 + rest[at + len].nbytes };
        rest[at] = Rest {
            nbytes: earlier.min(2 + next.in_run),
            in_run: earlier.min(1 + next.in_run),
            len,
        };
    }
    let (mut out, mut at, mut run) = (Vec::new(), 0, 0);
    while at < text.len() {
        let Rest { nbytes, in_run, len } = rest[at];
        let best = if run == 0 { nbytes } else { in_run };
        if len > 0 && best == 3 + rest[at + len].nbytes {
            out.push(EARLIER + (len - LEAST) as u8);
            out.extend((longest[at].1 as u16).to_le_bytes());
            at += len;
            run = 0;
            continue;
        }
        if run == 0 {
            out.push(0);
        }
        out.push(text[at]);
        let head = out.len() - 2 - run;
        out[head] = run as u8;
        run = (run + 1) % RUN_MOST;
        at += 1;
    }
    out
}

/// For each position the longest match, up to [`MOST`], and its distance.
fn longest(text: &[u8]) -> Vec<(usize, usize)> {
    let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
    let mut found = vec![(0, 0); text.len()];
    for at in 0..text.len().saturating_sub(LEAST - 1) {
        let before = places.entry(&text[at..at + LEAST]).or_default();
        for &place in before.iter().rev().take(PLACES) {
            if found[at].0 == MOST || at - place > usize::from(u16::MAX) {
                break;
            }
            let pairs = text[at..].iter().zip(&text[place..]).take(MOST);
            let same = pairs.take_while(|(a, b)| a == b).count();
            if same > found[at].0 {
                found[at] = (same, at - place);
            }
        }
        before.push(at);
    }
    found
}

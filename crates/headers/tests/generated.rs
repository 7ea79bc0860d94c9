//! Check (a): the committed headers equal the generated ones. `BLESS=1` rewrites them.

use headers::{HEADERS, committed, first_difference, generate, read};

#[test]
fn committed_headers_are_the_generated_ones() {
    for name in HEADERS {
        let text = generate(name).unwrap_or_else(|message| panic!("{message}"));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(committed(name), &text).expect("include/ can be written");
        }
        let old = read(&committed(name)).unwrap_or_else(|message| panic!("{message}"));
        if let Some(place) = first_difference(&old, &text) {
            panic!("include/{name} is stale, {place}\nrun: BLESS=1 cargo test -p headers");
        }
    }
}

#[test]
fn lines_are_short() {
    for name in HEADERS {
        let text = read(&committed(name)).unwrap_or_else(|message| panic!("{message}"));
        for (number, line) in text.lines().enumerate() {
            assert!(line.len() <= 100, "include/{name}:{}: {} bytes", number + 1, line.len());
            assert_eq!(line, line.trim_end(), "include/{name}:{}: space at the end", number + 1);
        }
    }
}

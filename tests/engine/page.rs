//! The table of worked copies in docs/engine.md names the ops that the library chooses.
use dlpack_rs::device::cpu::{level, parts};
use dlpack_rs::device::plan::{Dim, Item};

use crate::model::Case;
use crate::{NEVER, SERIAL, ways};

const PAGE: &str = include_str!("../../docs/engine.md");
/// The table's head up to the reasons.
const HEAD: &str = "| source | element | shape | strides | op |";

/// The numbers of `(224, 224, 3)`.
fn numbers(cell: &str) -> Vec<i64> {
    let inner = cell.trim_matches(['(', ')']);
    inner.split(", ").map(|number| number.parse().unwrap()).collect()
}

/// A copy of a row's source to a compact, row-major destination.
fn case_of(element: &str, shape: &[i64], strides: &[i64]) -> Case {
    let (size, unit) = element.split_once(' ').unwrap();
    let size: usize = size.parse().unwrap();
    let item = match unit {
        "byte" | "bytes" => Item::Bytes(size),
        "bits" => Item::Bits { width: size, dst_slot: size },
        _ => panic!("{unit}"),
    };
    let mut dims = Vec::new();
    let mut dst = size as i64;
    for (&n, &stride) in shape.iter().zip(strides).rev() {
        dims.insert(0, Dim { n, src: stride * size as i64, dst });
        dst *= n;
    }
    Case { item, dims }
}

#[test]
fn worked_copies() {
    let (_, table) = PAGE.split_once(HEAD).unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let named = |op: &str| rows.iter().any(|row| row[4].trim_matches('`') == op);
    for op in ["bits", "fill", "run", "scalar", "shuffle", "transpose"] {
        assert!(named(op), "no row for {op}");
    }
    ways(&[0, NEVER], |what| {
        for row in &rows {
            let (shape, strides) = (numbers(row[2]), numbers(row[3]));
            assert_eq!(shape.len(), strides.len(), "{row:?}");
            let case = case_of(row[1], &shape, &strides);
            // Addresses that nothing reads.
            let mut plan = case.plan((1 << 20) as *const u8, (64 << 20) as *mut u8);
            plan.simplify();
            let op = row[4].trim_matches('`');
            if op == "shuffle" && level().kernels().shuffles.is_none() {
                continue;
            }
            assert_eq!(parts(&plan, &SERIAL), (1, [op; 2]), "{what}: {row:?}");
        }
    });
}

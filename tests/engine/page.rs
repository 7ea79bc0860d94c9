//! Compares the worked copies and rules of docs/engine.md with the op that the library chooses for
//! a copy.
use dlpack_rs::cpu::{level, outlet, parts};
use dlpack_rs::plan::{Dim, Item, Plan};

use crate::model::{Case, Random};
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
fn copies_of_the_engine_page() {
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
            // Addresses that are not read.
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

/// The ops that the page's rules allow for a simplified copy of at most two loops to a compact
/// destination: one, or `shuffle` and its fallback where it cannot do the copy.
fn allowed(plan: &Plan) -> Vec<&'static str> {
    let Item::Bytes(item) = plan.item else { return vec!["bits"] };
    let Some(last) = plan.ndim().checked_sub(1) else { return vec!["run"] };
    let (size, inner, items) = (item as i64, plan.dim(last), plan.nbytes() / item as u64);
    let repeats = inner.dst == size && inner.src == 0 && item <= 64;
    if repeats && (items >= 1024 || inner.n * size >= 64) {
        return vec!["fill"];
    }
    if items < 1024 {
        return vec![if item >= 64 { "run" } else { "scalar" }];
    }
    let outer = (last == 1).then(|| plan.dim(0)).filter(|outer| outer.src.abs() == size);
    let outer = outer.filter(|outer| inner.dst == size && inner.n.min(outer.n) * size >= 16);
    let outer = outer.filter(|_| item < 64 && item != 32);
    if outer.is_some_and(|outer| inner.n.min(outer.n) > 4) {
        return vec!["transpose"];
    }
    let rest = if outer.is_some() {
        "transpose"
    } else if item >= 16 {
        "run"
    } else {
        "scalar"
    };
    let none = item > 64 || level().kernels().shuffles.is_none();
    // Every n-th element of one axis: a load for each of n.
    let steps = (last == 0).then_some(inner.src.abs() / size);
    match steps.filter(|_| !none && item.is_power_of_two() && inner.src % size == 0) {
        Some(n) => vec![if n <= 6 { "shuffle" } else { rest }],
        None if none => vec![rest],
        None => vec!["shuffle", rest],
    }
}

#[test]
fn rules() {
    let mut seen = std::collections::BTreeSet::new();
    ways(&[NEVER], |what| {
        let mut random = Random(0x0b5e_55ed);
        for _ in 0..20_000 {
            let size = random.one_of(&[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 63, 64, 65, 100]);
            let [rows, columns] = [(); 2].map(|()| random.one_of(&[1, 2, 3, 4, 5, 9, 16, 70, 300]));
            let step: i64 = random.one_of(&[-2, -1, 1, 1, 2, 3, 5, 6, 7, 8, 20]);
            // Rows with a step and a gap, their transpose, and broadcasts.
            let (short, long) = (step, columns * step.abs() + random.one_of(&[0, 0, 1, 50]));
            let strides = match random.one_of(&[0, 1, 2, 3]) {
                0 | 1 => [long, short],
                2 => [short, rows * step.abs()],
                _ => [short, 0],
            };
            let case = case_of(&format!("{size} bytes"), &[rows, columns], &strides);
            let mut plan = case.plan((64 << 20) as *const u8, (256 << 20) as *mut u8);
            plan.simplify();
            let (_, [op, _]) = parts(&plan, &SERIAL);
            let allowed = allowed(&plan);
            assert!(allowed.contains(&op), "{what}: {op}, not of {allowed:?}: {case:?}");
            seen.insert(op);
        }
    });
    assert_eq!(seen.len(), 5, "{seen:?}");
}

#[test]
fn only_rows_that_fill_a_cache_line_are_streamed() {
    ways(&[0], |what| {
        for (bytes, how) in
            [(17, ""), (63, ""), (64, " by non-temporal stores"), (65, " by non-temporal stores")]
        {
            let dims = vec![Dim { n: 2000, src: bytes + 5000, dst: bytes }];
            let case = Case { item: Item::Bytes(bytes as usize), dims };
            let plan = case.plan((64 << 20) as *const u8, (256 << 20) as *mut u8);
            assert_eq!(parts(&plan, &SERIAL), (1, ["run"; 2]), "{what}: {bytes} bytes");
            assert_eq!(outlet(&plan), how, "{what}: {bytes} bytes");
        }
    });
}

/// Beyond L2 a transpose goes through the staging buffer where its source rows evict one another:
/// here their lines are put into the sets of an L1 one by one.
#[test]
fn transposes_whose_rows_share_sets_are_staged() {
    ways(&[NEVER], |what| {
        let mut random = Random(0x57a6_ed00);
        let mut seen = [0; 2];
        for _ in 0..2_000 {
            let stride = 64 * random.one_of(&[1, 2, 3, 4, 7, 8, 12, 16, 17, 24, 40, 64, 100]);
            let n = random.one_of(&[17, 40, 63, 64, 65, 127, 128, 129, 1000]);
            let mut sets = [0; 64];
            (0..n.min(128)).for_each(|i| sets[(i * stride / 64 % 64) as usize] += 1);
            let crowded = sets.iter().any(|&lines| lines > 8);
            let dims = vec![
                Dim { n: 1 << 20, src: n * stride + 64, dst: 64 * n },
                Dim { n: 16, src: 4, dst: 4 * n },
                Dim { n, src: stride, dst: 4 },
            ];
            let case = Case { item: Item::Bytes(4), dims };
            let plan = case.plan((64 << 20) as *const u8, (256 << 20) as *mut u8);
            assert_eq!(parts(&plan, &SERIAL).1, ["transpose"; 2], "{what}: {case:?}");
            let staged = outlet(&plan) == " through a staging buffer";
            assert_eq!(staged, crowded, "{what}: {case:?}");
            seen[usize::from(crowded)] += 1;
        }
        assert!(seen.iter().all(|&times| times > 200), "{seen:?}");
    });
}

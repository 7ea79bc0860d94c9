//! Shared memory: every verdict in small spaces against a list of the units.
//!
//! `DLRS_LONG=1` runs the large version, as `make test-long` does (use `--release`).

use dlpack_rs::overlap::{Strided, Verdict, pair_overlap, self_overlap};
use std::collections::HashSet;

#[path = "lib/random.rs"]
mod random;
use random::Random;

/// A base far enough from 0 that a small world's mask has no negative bit.
const HOME: i128 = 40;

fn long() -> bool {
    std::env::var("DLRS_LONG").is_ok_and(|value| value == "1")
}

fn layout<'a>(base: i128, shape: &'a [i64], strides: &'a [i64], item: i128) -> Strided<'a> {
    Strided { base, shape, strides, scale: 1, item }
}

fn verdict(shared: bool) -> Verdict {
    if shared { Verdict::Overlap } else { Verdict::Disjoint }
}

/// Call `visit` with every sequence of `rank` numbers from `from`.
fn product(from: &[i64], rank: usize, visit: &mut dyn FnMut(&[i64])) {
    let mut index = vec![0; rank];
    loop {
        visit(&index.iter().map(|i| from[*i]).collect::<Vec<_>>());
        let Some(k) = (0..rank).rev().find(|k| index[*k] + 1 < from.len()) else { return };
        index[k] += 1;
        index[k + 1..].fill(0);
    }
}

/// First unit of every element.
fn elements(at: &Strided) -> Vec<i128> {
    let mut starts = vec![at.base];
    for (extent, stride) in at.shape.iter().zip(at.strides) {
        let mut further = Vec::new();
        for i in 0..i128::from(*extent) {
            further.extend(starts.iter().map(|start| start + i * i128::from(*stride)));
        }
        starts = further;
    }
    starts
}

/// The units as a bit mask (for bases around `HOME`), and whether one was touched twice.
fn mask(at: &Strided) -> (u128, bool) {
    let (mut units, mut twice) = (0u128, false);
    for start in elements(at) {
        let bits = ((1 << at.item) - 1) << start;
        twice |= units & bits != 0;
        units |= bits;
    }
    (units, twice)
}

fn units(at: &Strided) -> impl Iterator<Item = i128> {
    let item = at.item;
    elements(at).into_iter().flat_map(move |start| start..start + item)
}

fn any_twice(at: &Strided) -> bool {
    let mut seen = HashSet::new();
    units(at).any(|unit| !seen.insert(unit))
}

fn any_common(a: &Strided, b: &Strided) -> bool {
    let seen: HashSet<i128> = units(a).collect();
    units(b).any(|unit| seen.contains(&unit))
}

#[test]
fn self_overlap_matches_brute_force() {
    let reach = if long() { 6 } else { 4 };
    let strides: Vec<i64> = (-reach..=reach).collect();
    let mut cases = 0u64;
    for rank in 0..=3 {
        product(&[0, 1, 2, 3], rank, &mut |shape| {
            product(&strides, rank, &mut |strides| {
                for item in [1, 2, 3, 4, 8] {
                    let at = layout(HOME, shape, strides, item);
                    assert_eq!(self_overlap(&at), verdict(mask(&at).1), "{at:?}");
                    cases += 1;
                }
            });
        });
    }
    println!("self_overlap: {cases} cases, no difference, none undecided");
    assert!(cases >= 236_000);
}

#[test]
fn pair_overlap_matches_brute_force() {
    let (extents, strides): (&[i64], &[i64]) = match long() {
        true => (&[0, 1, 2, 3], &[-4, -3, -2, -1, 0, 1, 2, 3, 4, 5]),
        false => (&[1, 2, 3], &[-3, 0, 2, 3, 5]),
    };
    let mut worlds = Vec::new();
    for rank in 0..=2 {
        product(extents, rank, &mut |shape| {
            product(strides, rank, &mut |strides| worlds.push((shape.to_vec(), strides.to_vec())));
        });
    }
    let mut cases = 0u64;
    for (shape, strides) in &worlds {
        for item in [1, 3] {
            let a = layout(HOME, shape, strides, item);
            let units = mask(&a).0;
            for (other_shape, other_strides) in &worlds {
                let other_units = mask(&layout(HOME, other_shape, other_strides, 2)).0;
                for shift in [0, 1, 2, 3, 5, 7, 8, 13] {
                    let b = layout(HOME + shift, other_shape, other_strides, 2);
                    let truth = verdict(units & (other_units << shift) != 0);
                    assert_eq!(pair_overlap(&a, &b), truth, "{a:?} {b:?}");
                    assert_eq!(pair_overlap(&b, &a), truth, "{b:?} {a:?}");
                    cases += 2;
                }
            }
        }
    }
    println!("pair_overlap: {cases} cases, no difference, none undecided");
    assert!(cases >= 1_000_000);
}

#[test]
fn random_layouts_agree_with_the_units_themselves() {
    let mut random = Random(20_260_101);
    let rounds = if long() { 1_000_000 } else { 15_000 };
    let (mut self_shared, mut pair_shared) = (0, 0);
    for round in 0..rounds {
        let ranks = (random.within(1, 4) as usize, random.within(1, 4) as usize);
        let reach = random.one_of(&[8, 40, 40, 200]);
        let shapes = (random.many(ranks.0, 1, 5), random.many(ranks.1, 1, 5));
        let items = (random.one_of(&[1, 2, 4, 8]), random.one_of(&[1, 2, 3, 4, 16]));
        // Every second round all strides share a factor, as those of real tensors do.
        let factor = if round % 2 == 0 { 1 } else { random.within(2, 8) };
        let mut strides = |rank| -> Vec<i64> {
            random.many(rank, -reach, reach).iter().map(|stride| stride * factor).collect()
        };
        let strides = (strides(ranks.0), strides(ranks.1));
        let a = layout(0, &shapes.0, &strides.0, items.0);
        let b = layout(random.within(-200, 200).into(), &shapes.1, &strides.1, items.1);
        let truth = any_twice(&a);
        assert_eq!(self_overlap(&a), verdict(truth), "{a:?}");
        self_shared += u64::from(truth);
        let truth = any_common(&a, &b);
        assert_eq!(pair_overlap(&a, &b), verdict(truth), "{a:?} {b:?}");
        pair_shared += u64::from(truth);
    }
    println!("random: {rounds} of each; {self_shared} self, {pair_shared} pair overlaps");
    // Both results must occur often.
    assert!(self_shared * 10 > rounds && (rounds - self_shared) * 20 > rounds);
    assert!(pair_shared * 10 > rounds && (rounds - pair_shared) * 20 > rounds);
}

/// Many indices of strides without a common factor, where one side's steps must be found modulo the
/// other's: few are equal, and none by accident.
#[test]
fn long_progressions_agree_with_the_units_themselves() {
    let mut random = Random(1729);
    let rounds = if long() { 300_000 } else { 6_000 };
    let mut shared = 0;
    for _ in 0..rounds {
        let mut side = |most: i64| {
            let rank = random.within(1, 2) as usize;
            let shape = random.many(rank, 1, if rank == 1 { most } else { 24 });
            let reach = random.one_of(&[30, 300, 3000]);
            (shape, random.many(rank, -reach, reach), random.one_of(&[1, 1, 2, 5]))
        };
        let (a, b) = (side(400), side(60));
        let a = layout(0, &a.0, &a.1, a.2);
        let b = layout(random.within(-20_000, 20_000).into(), &b.0, &b.1, b.2);
        let truth = any_common(&a, &b);
        assert_eq!(pair_overlap(&a, &b), verdict(truth), "{a:?} {b:?}");
        assert_eq!(pair_overlap(&b, &a), verdict(truth), "{b:?} {a:?}");
        shared += u64::from(truth);
    }
    println!("long: {shared} of {rounds} overlap");
    assert!(shared * 20 > rounds && (rounds - shared) * 20 > rounds);
}

/// Large extents, where listing units is impossible but the result is known.
#[test]
fn large_layouts_with_known_answers() {
    use Verdict::{Disjoint, Overlap};
    // K09: distinct elements, which share bytes only if they are wider than one.
    for (item, expected) in [(1, Disjoint), (2, Overlap)] {
        assert_eq!(self_overlap(&layout(0, &[4, 2], &[2, 3], item)), expected);
    }
    // K12: even and odd columns; their boxes overlap, no byte does.
    let (shape, strides) = ([1000, 500], [4000, 8]);
    let even = layout(1 << 40, &shape, &strides, 4);
    for (shift, expected) in [(4, Disjoint), (3, Overlap), (-4, Disjoint), (5, Overlap)] {
        let odd = layout(even.base + shift, &shape, &strides, 4);
        assert_eq!(pair_overlap(&even, &odd), expected, "shift {shift}");
    }
    // Left and right half of a matrix, then by one column too wide.
    for (columns, expected) in [(512, Disjoint), (513, Overlap)] {
        let (left, right) = ([1 << 20, columns], [1 << 20, 512]);
        let a = layout(0, &left, &[8192, 8], 8);
        assert_eq!(pair_overlap(&a, &layout(512 * 8, &right, &[8192, 8], 8)), expected);
    }
    // A matrix and its transpose, reversed, shifted by one element.
    let forward = layout(0, &[3000, 2000], &[16_000, 8], 8);
    let transposed = layout(0, &[2000, 3000], &[8, 16_000], 8);
    let reversed = layout(8 * 5_999_999, &[3000, 2000], &[-16_000, -8], 8);
    let shifted = layout(8, &[3000, 2000], &[16_000, 8], 8);
    for other in [forward, transposed, reversed, shifted] {
        assert_eq!(self_overlap(&other), Disjoint);
        assert_eq!(pair_overlap(&forward, &other), Overlap, "{other:?}");
    }
    // One begins where the other ends.
    let end = 8 * 6_000_000;
    assert_eq!(pair_overlap(&forward, &layout(end, &[7], &[8], 8)), Disjoint);
    assert_eq!(pair_overlap(&forward, &layout(end, &[7], &[-8], 8)), Overlap);
    // V33: sliding windows; V32: broadcast.
    assert_eq!(self_overlap(&layout(0, &[3, 3], &[4, 4], 4)), Overlap);
    assert_eq!(self_overlap(&layout(0, &[9, 1 << 30], &[0, 4], 4)), Overlap);
    assert_eq!(self_overlap(&layout(0, &[1, 1 << 30], &[0, 4], 4)), Disjoint);
    // Coprime strides: 997 i + 1009 j repeats from extent 1010 on, and not before.
    for (extent, expected) in [(1009, Disjoint), (1010, Overlap)] {
        assert_eq!(self_overlap(&layout(0, &[extent, 998], &[997, 1009], 1)), expected);
    }
}

/// 64 dimensions on either side.
#[test]
fn as_many_dimensions_as_there_may_be() {
    use Verdict::{Disjoint, Overlap};
    let shape = [2i64; 64];
    let mut strides: Vec<i64> = (0..62).map(|k| 1 << k).collect();
    strides.extend([i64::MIN, -(1 << 62)]);
    let a = layout(0, &shape, &strides, 1);
    assert_eq!(self_overlap(&a), Disjoint);
    assert_eq!(self_overlap(&layout(0, &shape, &strides, 2)), Overlap);
    assert_eq!(pair_overlap(&a, &layout(1 << 65, &shape, &strides, 1)), Disjoint);
    assert_eq!(pair_overlap(&a, &layout(0, &shape, &strides, 1)), Overlap);
    // Even units against odd ones, then against both.
    let doubled: Vec<i64> = (1..62).map(|k| 1 << k).collect();
    let even = layout(0, &shape[..61], &doubled, 1);
    assert_eq!(pair_overlap(&even, &layout(1, &shape[..61], &doubled, 1)), Disjoint);
    assert_eq!(pair_overlap(&even, &layout(1, &shape[..61], &doubled, 2)), Overlap);
    // More dimensions than permitted: no panic, no wrong result.
    let ones = [1i64; 1000];
    assert_eq!(self_overlap(&layout(0, &ones, &ones, 1)), Disjoint);
    assert_ne!(self_overlap(&layout(0, &[2; 1000], &ones, 1)), Disjoint);
}

/// Few indices, so that the elements can be listed, at any distance.
#[test]
fn huge_strides_never_give_a_wrong_answer() {
    let mut random = Random(7);
    let far = 1i64 << 62;
    let wild = [
        i64::MIN,
        i64::MIN + 1,
        -far,
        1 - far,
        -3,
        -1,
        0,
        1,
        2,
        5,
        1 << 31,
        far,
        far + 1,
        i64::MAX,
    ];
    let mut counts = [0u64; 3];
    let rounds = if long() { 3_000_000 } else { 60_000 };
    for _ in 0..rounds {
        let rank = random.within(0, 4) as usize;
        let shape = random.many(rank, 1, 3);
        let strides: Vec<i64> = (0..rank).map(|_| random.one_of(&wild)).collect();
        let other: Vec<i64> = (0..rank).map(|_| random.one_of(&wild)).collect();
        let a = layout(0, &shape, &strides, random.one_of(&[1, 2, 4]));
        let base = i128::from(random.one_of(&wild)) + i128::from(random.one_of(&wild));
        let b = layout(base, &shape, &other, random.one_of(&[1, 3, 8]));
        for (answer, truth) in
            [(self_overlap(&a), any_twice(&a)), (pair_overlap(&a, &b), any_common(&a, &b))]
        {
            assert!(answer == Verdict::Undecided || answer == verdict(truth), "{a:?} {b:?}");
            counts[answer as usize] += 1;
        }
    }
    println!("huge: disjoint, overlap, undecided = {counts:?}");
    assert!(counts[0] > rounds / 4 && counts[1] > rounds / 4);
}

/// Invalid arguments must not panic either.
#[test]
fn random_input_does_not_panic() {
    let mut random = Random(99);
    let wild = [i64::MIN, -1, 0, 1, 2, 3, 1 << 33, i64::MAX - 1, i64::MAX];
    let bases = [i128::MIN, -1, 0, 1, i64::MAX as i128, i128::MAX];
    for _ in 0..60_000 {
        let mut side = || {
            let rank = random.within(0, 5) as usize;
            let shape: Vec<i64> = (0..rank).map(|_| random.one_of(&wild)).collect();
            // Now and then one stride too many.
            let count = rank + usize::from(random.within(0, 7) == 0);
            let strides: Vec<i64> = (0..count).map(|_| random.one_of(&wild)).collect();
            (shape, strides, random.one_of(&bases), random.one_of(&bases))
        };
        let (a, b) = (side(), side());
        let (a, b) = (layout(a.2, &a.0, &a.1, a.3), layout(b.2, &b.0, &b.1, b.3));
        for at in [a, b] {
            let empty = at.item <= 0 || at.shape.iter().any(|extent| *extent <= 0);
            let paired = at.shape.len() == at.strides.len();
            let answer = self_overlap(&at);
            assert!(!empty || answer == Verdict::Disjoint, "{at:?}");
            assert!(empty || paired || answer == Verdict::Undecided, "{at:?}");
            assert_eq!(pair_overlap(&at, &at) == Verdict::Disjoint, empty, "{at:?}");
        }
        let answers = (pair_overlap(&a, &b), pair_overlap(&b, &a));
        let either = |verdict| answers.0 == verdict || answers.1 == verdict;
        assert!(!(either(Verdict::Disjoint) && either(Verdict::Overlap)), "{a:?} {b:?}");
    }
}

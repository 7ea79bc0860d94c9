//! The pieces of a plan cover it exactly once, each small enough; and their number is as reported.

use std::collections::BTreeMap;
use std::ptr::{without_provenance, without_provenance_mut};

use dlpack_rs::pieces::Pieces;
use dlpack_rs::plan::{Dim, Item, Plan};

#[path = "lib/random.rs"]
mod random;
use random::Random;

/// Adds the bytes of a plan: the destination offset and source offset of each.
fn bytes_of(plan: &Plan, into: &mut BTreeMap<usize, Vec<usize>>) {
    let Item::Bytes(nbytes) = plan.item else { unreachable!() };
    let mut places = vec![(plan.src.addr() as i64, plan.dst.addr() as i64)];
    for dim in
        (0..plan.ndim()).map(|i| plan.dim(i)).chain([Dim { n: nbytes as i64, src: 1, dst: 1 }])
    {
        let step = |i: i64| move |&(src, dst): &(i64, i64)| (src + i * dim.src, dst + i * dim.dst);
        places = (0..dim.n).flat_map(|i| places.iter().map(step(i)).collect::<Vec<_>>()).collect();
    }
    for (src, dst) in places {
        into.entry(dst as usize).or_default().push(src as usize);
    }
}

#[test]
fn pieces_cover_the_plan_once() {
    let mut random = Random(1);
    let mut chance = |below| random.below(below);
    let mut several = 0;
    for _ in 0..3000 {
        let src = without_provenance(1 << 40);
        let item = Item::Bytes(1 + chance(9) as usize);
        let mut plan = Plan::new(src, without_provenance_mut(1 << 41), item);
        let mut step = 16;
        let mut dims = Vec::new();
        for _ in 0..chance(4) {
            let n = 1 + chance(7) as i64;
            let src = chance(400) as i64 - 200;
            dims.push(Dim { n, src, dst: step });
            step *= n + chance(2) as i64;
        }
        dims.iter().rev().for_each(|&dim| plan.push(dim));
        plan.simplify();
        let most = 1 + chance(60) as usize;
        let pieces = Pieces::new(&plan, most);
        let (mut whole, mut found) = (BTreeMap::new(), BTreeMap::new());
        bytes_of(&plan, &mut whole);
        for at in 0..pieces.count() {
            let piece = pieces.get(at).expect("as many as it says");
            assert!(piece.nbytes() <= most as u64);
            bytes_of(&piece, &mut found);
        }
        assert!(pieces.get(pieces.count()).is_none());
        assert!(found == whole, "{item:?} {dims:?} by {most}");
        several += u32::from(pieces.count() > 1);
    }
    assert!(several > 1000);
}

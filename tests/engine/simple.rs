//! The normal form of plans.
use dlpack_rs::plan::{Dim, Item, Plan};

use crate::model::{Case, Random};

/// Dense runs become the item, reversed and unit dimensions vanish.
#[test]
fn simplified() {
    let simple = |item, dims: &[(i64, i64, i64)]| {
        let dims = dims.iter().map(|&(n, src, dst)| Dim { n, src, dst }).collect();
        let mut plan = Case { item, dims }.plan(std::ptr::null(), std::ptr::null_mut());
        plan.simplify();
        (plan.item, plan.ndim())
    };
    let f32 = Item::Bytes(4);
    assert_eq!(simple(f32, &[(3, -20, -20), (1, 9, 9), (5, 4, 4)]), (Item::Bytes(60), 0));
    assert_eq!(simple(f32, &[(8, 512, 256), (64, 4, 4)]), (Item::Bytes(256), 1));
    assert_eq!(simple(f32, &[(64, 4, 256), (64, 256, 4)]), (f32, 2));
    let complex = simple(f32, &[(19, 16, 1000), (19, 1000, 16), (2, 4, 4), (2, 8, 8)]);
    assert_eq!(complex, (Item::Bytes(16), 2));
    let packed = Item::Bits { width: 4, dst_slot: 4 };
    assert_eq!(simple(packed, &[(300, 48, 40), (10, 4, 4)]), (Item::Bytes(5), 1));
}

/// A nest in normal form is unchanged, with strides in bits of any sign, too.
#[test]
fn simplified_again() {
    let form = |plan: &Plan| {
        let dims: Vec<_> = (0..plan.ndim()).map(|i| plan.dim(i)).collect();
        (plan.src, plan.dst, plan.item, dims)
    };
    let mut random = Random(31);
    for _ in 0..20_000 {
        let width = random.one_of(&[1, 2, 4, 6, 12]);
        let items = [Item::Bytes(width), Item::Bits { width, dst_slot: width }];
        let (mut src, mut dst) = (width as i64, width as i64);
        let mut dims: Vec<_> = (0..1 + random.below(4))
            .map(|_| {
                let n = 1 + random.below(4) as i64;
                let sign = random.one_of(&[1, -1, -1]);
                let dim =
                    Dim { n, src: src * random.one_of(&[sign, sign, 1, -1]), dst: dst * sign };
                src *= n * random.one_of(&[1, 1, 2]);
                dst *= n * random.one_of(&[1, 1, 1, 2]);
                dim
            })
            .collect();
        dims.reverse();
        for item in items {
            let case = Case { item, dims: dims.clone() };
            let mut plan = case.plan(std::ptr::null(), std::ptr::null_mut());
            plan.simplify();
            let first = form(&plan);
            plan.simplify();
            assert_eq!(form(&plan), first, "{case:?}");
        }
    }
}

//! Copies of memory that ends where elements do, or extends far beyond 32 bits; on small stacks.
use std::ffi::c_void;
use std::ptr::null_mut;

use dlpack_rs::cpu::{Parallel, copy};
use dlpack_rs::plan::{Dim, Item, Plan};

use crate::model::{Case, Guarded, Random, Run, case, memory};
use crate::{SERIAL, counted, everywhere};

/// Elements of whole bytes that are far apart, of positive strides: only these are compared.
#[cfg(target_pointer_width = "64")]
fn check_elements(case: &Case, [src, dst]: [&Guarded; 2], what: &str) {
    let (_, width, _) = case.bits();
    let from = src.place(case.extent(|d| d.src, width).1 as usize, 0);
    let to = dst.place(case.extent(|d| d.dst, width).1 as usize, 0);
    let bytes = |at: i64| (at / 8) as usize..((at + width) / 8) as usize;
    let mut random = Random(0x0fa2_0fa2_0000_0001);
    case.elements(|s, d| {
        random.fill(&mut from[bytes(s)]);
        to[bytes(d)].fill(!from[bytes(s)][0]);
    });
    // SAFETY: both extents are mapped; elements are distinct.
    unsafe { SERIAL.run(&case.plan(from.as_ptr(), to.as_mut_ptr())) };
    case.elements(|s, d| assert!(to[bytes(d)] == from[bytes(s)], "{what}: {case:?}"));
}

/// Rows further apart than 32 bits can express, on either side.
#[cfg(target_pointer_width = "64")]
#[test]
fn far() {
    const FAR: i64 = 320 << 20;
    let memory = [1 << 20, 9 << 28].map(Guarded::new);
    everywhere(|what| {
        for size in [1, 2, 3, 4, 8, 12, 16] {
            // Extents, and strides in elements near and far: sides of two dimensions.
            let dims = [(8, 1, FAR / size), (5, 8, 264), (8, 40, 33), (33, 320, 1)];
            for back in [false, true] {
                let dims = dims.map(|(n, near, far)| {
                    let (near, far) = (near * size, far * size);
                    if back {
                        Dim { n, src: near, dst: far }
                    } else {
                        Dim { n, src: far, dst: near }
                    }
                });
                let case = Case { item: Item::Bytes(size as usize), dims: dims.to_vec() };
                let [near, far] = &memory;
                check_elements(&case, if back { [near, far] } else { [far, near] }, what);
            }
        }
    });
}

/// Moves what is stored in sequence, from a random dimension on, to separate pages.
fn spread(random: &mut Random, dims: &mut [Dim], side: fn(&mut Dim) -> &mut i64) {
    let mut order: Vec<_> = (0..dims.len()).collect();
    order.sort_by_key(|&i| side(&mut dims[i]).abs());
    let from = random.below(dims.len() as u64 + 1) as usize;
    let mut next = 1;
    for (k, i) in order.into_iter().enumerate() {
        let (n, stride) = (dims[i].n, side(&mut dims[i]));
        if k >= from && *stride != 0 {
            let page = random.one_of(&[1, 2, 2, 3]) * 4096;
            let least = next.max(stride.abs());
            *stride = stride.signum() * (least + page - 1) / page * page;
        }
        next = next.max(stride.abs().saturating_mul(n));
    }
}

/// Pages without elements are inaccessible on both sides, for any number of threads.
#[test]
fn pages_without_elements() {
    let memory = memory();
    let sizes = [1, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 9, 12, 15, 16, 20, 24, 64, 100];
    everywhere(|what| {
        let mut random = Random(0x0f1e_2d3c_4b5a_6978);
        for _ in 0..120 {
            let size = random.one_of(&sizes);
            let most = random.one_of(&[60_000, 3_000, 3_000, 1_000]) / (1 + size as i64 / 4);
            let mut case = case(&mut random, Item::Bytes(size), most);
            spread(&mut random, &mut case.dims, |dim| &mut dim.src);
            if random.below(2) == 0 {
                spread(&mut random, &mut case.dims, |dim| &mut dim.dst);
            }
            if case.bytes() > 20 << 20 {
                continue;
            }
            let mut count = 0;
            let threads = random.one_of(&[1, 1, 2, 3, 16]);
            let parallel = Parallel { threads, hook: Some(counted(&mut count)) };
            case.check(&memory, &mut random, &parallel, what);
        }
    });
}

/// Rows that end at page ends, with no memory behind them: only elements are read.
#[test]
fn rows_in_pages_of_their_own() {
    const ROWS: i64 = 300;
    let memory = memory();
    let dims = vec![
        Dim { n: 17, src: 12, dst: 12 * ROWS },
        Dim { n: ROWS, src: 2 * 4096, dst: 12 },
        Dim { n: 6, src: 1, dst: 2 },
        Dim { n: 2, src: 6, dst: 1 },
    ];
    let case = Case { item: Item::Bytes(1), dims };
    everywhere(|what| case.check_at([2, 0], &memory, &mut Random(1), &SERIAL, what));
}

/// The same for parts of one extent each: the bytes between their rows are not theirs.
#[test]
fn parts_in_pages_of_their_own() {
    const PARTS: i64 = 16;
    let memory = memory();
    let mut dst = 2 * 4 * PARTS * 36 * 100 * 23;
    let dims = [(PARTS, 4), (36, 0), (100, 2 * 4096), (23, 100 * 2 * 4096)].map(|(n, src)| {
        dst /= n;
        Dim { n, src, dst }
    });
    let case = Case { item: Item::Bytes(4), dims: dims.into() };
    everywhere(|what| {
        let mut count = 0;
        let parallel = Parallel { threads: PARTS as usize, hook: Some(counted(&mut count)) };
        case.check_at([2, 0], &memory, &mut Random(1), &parallel, what);
        assert_eq!(count, PARTS, "{what}");
    });
}

/// Copies as a caller with a small stack: 64 KiB in release builds, whose frame sizes matter.
struct SmallStack(Parallel);

impl Run for SmallStack {
    unsafe fn run(&self, plan: &Plan) {
        extern "C" fn work(what: *mut c_void) -> *mut c_void {
            // SAFETY: `run` passes both, and joins before they are dropped.
            let (plan, parallel) = unsafe { &mut *what.cast::<(Plan, Parallel)>() };
            // SAFETY: the plan's extents are mapped.
            unsafe { copy(plan, parallel) }.unwrap();
            null_mut()
        }
        let stack = if cfg!(debug_assertions) { 256 << 10 } else { 64 << 10 };
        let mut job = (*plan, self.0);
        // SAFETY: the thread is joined before what it uses is dropped.
        unsafe {
            let (mut attributes, mut thread) = (std::mem::zeroed(), std::mem::zeroed());
            libc::pthread_attr_init(&mut attributes);
            assert_eq!(libc::pthread_attr_setstacksize(&mut attributes, stack), 0);
            let job = (&raw mut job).cast();
            assert_eq!(libc::pthread_create(&mut thread, &attributes, work, job), 0);
            libc::pthread_join(thread, null_mut());
            libc::pthread_attr_destroy(&mut attributes);
        }
    }
}

#[test]
fn small_stacks() {
    let memory = memory();
    let mut cases = Vec::new();
    for width in [4, 6] {
        let dims = vec![
            Dim { n: 272, src: 144 * width, dst: width },
            Dim { n: 144, src: width, dst: 272 * width },
        ];
        let item = Item::Bits { width: width as usize, dst_slot: width as usize };
        cases.push(Case { item, dims });
    }
    for size in [1, 4, 12] {
        // A volume, few columns, whole cache lines, planes, matrices that are repeated.
        for dims in [
            &[(45, 1, 40 * 70), (40, 45, 70), (70, 40 * 45, 1)][..],
            &[(9, 300, 1), (300, 1, 20)],
            &[(320 / size, 1, 320 / size), (320 / size, 384 / size, 1)],
            &[(3, 1, 1152), (1100, 3, 1)],
            &[(3, 600, 3000), (5, 0, 600), (30, 1, 20), (20, 30, 1)],
        ] {
            let dims =
                dims.iter().map(|&(n, src, dst)| Dim { n, src: src * size, dst: dst * size });
            cases.push(Case { item: Item::Bytes(size as usize), dims: dims.collect() });
        }
    }
    everywhere(|what| {
        let mut random = Random(0x1616_1616_1616_1616);
        let more = [Item::Bytes(1), Item::Bytes(4), Item::Bits { width: 6, dst_slot: 6 }];
        let more = [more; 4].as_flattened().to_owned();
        let more: Vec<_> = more.into_iter().map(|item| case(&mut random, item, 30_000)).collect();
        for (i, case) in cases.iter().chain(&more).enumerate() {
            let small = SmallStack(Parallel { threads: 1 + i % 3, hook: None });
            case.check_at([0, 2], &memory, &mut random, &small, what);
        }
    });
}

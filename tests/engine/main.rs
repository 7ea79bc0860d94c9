//! The CPU copy engine against an oracle that copies one bit at a time, between guard pages.
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlpack_rs::cpu::{
    Level, Parallel, ParallelFor, copy, detected, level, set_level, set_thresholds,
};
use dlpack_rs::plan::{Dim, Item, Plan};
use model::{Case, Random, Run, case, case_of_bits, case_of_bytes, memory};

mod elements;
mod kind;
mod kinds;
mod matrix;
mod model;
mod page;
mod places;
mod simple;

const SERIAL: Parallel = Parallel { threads: 1, hook: None };

/// The level and the thresholds are global: one test at a time.
fn lock() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All levels that the processor supports, and those in plain Rust; LEVELS="avx512 vbmi" requires
/// exactly these (an emulator is slow).
fn levels() -> Vec<Level> {
    let mut levels: Vec<_> = Level::ALL.into_iter().filter(|&level| set_level(level)).collect();
    assert!(levels.contains(&detected()));
    if let Ok(only) = std::env::var("LEVELS") {
        let only: Vec<_> = only.split(' ').collect();
        levels.retain(|level| only.contains(&level.name()));
        assert_eq!(levels.len(), only.len(), "{levels:?} alone of {only:?} on this processor");
    }
    levels
}

impl Run for Parallel {
    unsafe fn run(&self, plan: &Plan) {
        // SAFETY: the caller's promise.
        unsafe { copy(&mut { *plan }, self) }.unwrap()
    }
}

const NEVER: usize = usize::MAX;

/// Runs `one` at every level, with and without streaming.
fn everywhere(one: impl FnMut(&str)) {
    ways(&[0, NEVER], one);
}

/// Runs `one` at every level, streaming from this many bytes on.
fn ways(streams: &[usize], mut one: impl FnMut(&str)) {
    each_level(|this| {
        for &stream in streams {
            set_thresholds(stream, 1);
            one(&format!("{this:?}, streaming from {stream}"));
        }
    });
}

/// Runs `one` at every level, and restores all settings.
fn each_level(mut one: impl FnMut(Level)) {
    let _one = lock();
    for this in levels() {
        assert!(set_level(this) && level() == this);
        one(this);
    }
    set_level(detected());
    set_thresholds(3 << 20, 1 << 20);
}

/// The best level is detected: else these tests would miss it, and copies be slow.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[test]
fn detects() {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2");
    let avx512 = cfg!(target_arch = "x86_64")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl");
    let best = match (avx2, avx512, is_x86_feature_detected!("avx512vbmi")) {
        (false, ..) => Level::Portable,
        (_, false, _) => Level::Avx2,
        (.., false) => Level::Avx512,
        _ => Level::Vbmi,
    };
    assert_eq!(detected(), best);
    let _one = lock();
    assert!(!set_level(Level::Neon), "of other processors");
}

#[test]
fn random_bytes() {
    let memory = memory();
    everywhere(|what| {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for _ in 0..500 {
            case_of_bytes(&mut random).check(&memory, &mut random, &SERIAL, what);
        }
    });
}

#[test]
fn random_bits() {
    let memory = memory();
    everywhere(|what| {
        let mut random = Random(0x1234_5678_9abc_def1);
        for _ in 0..300 {
            case_of_bits(&mut random).check(&memory, &mut random, &SERIAL, what);
        }
    });
}

#[test]
fn large_elements() {
    let memory = memory();
    everywhere(|what| {
        let mut random = Random(77);
        let big = 2 << 20;
        let dims = vec![Dim { n: 3, src: -big, dst: big + 5 }];
        let case = Case { item: Item::Bytes(big as usize), dims };
        case.check(&memory, &mut random, &SERIAL, what);
        let (width, dst_slot) = (393_210, 393_216);
        let dims = vec![Dim { n: 3, src: width as i64, dst: dst_slot as i64 }];
        let case = Case { item: Item::Bits { width, dst_slot }, dims };
        case.check(&memory, &mut random, &SERIAL, what);
        for item in [Item::Bytes(1), Item::Bytes(16), Item::Bits { width: 3, dst_slot: 8 }] {
            let dims = vec![Dim { n: 1, src: -7, dst: 0 }; 64];
            Case { item, dims }.check(&memory, &mut random, &SERIAL, what);
        }
        let dims = (0..13).map(|i| Dim { n: 2, src: 1 << i, dst: 1 << (12 - i) });
        let mut dims: Vec<_> = dims.collect();
        dims.extend([Dim { n: 1, src: 5, dst: 5 }; 51]);
        Case { item: Item::Bytes(1), dims }.check(&memory, &mut random, &SERIAL, what);
    });
}

/// Runs the bodies one after the other, last first; counts them.
unsafe extern "C" fn pool(
    ctx: *mut c_void,
    n: usize,
    body: unsafe extern "C" fn(*mut c_void, usize),
    body_ctx: *mut c_void,
) -> i32 {
    // SAFETY: the tests below pass a counter; -1 requests a failure.
    unsafe {
        let count = &mut *ctx.cast::<i64>();
        if *count < 0 {
            return 1;
        }
        for i in (0..n).rev() {
            body(body_ctx, i);
            *count += 1;
        }
    }
    0
}

/// A pool that counts its bodies.
fn counted(count: &mut i64) -> ParallelFor {
    ParallelFor { run: pool, ctx: (&raw mut *count).cast(), warm: 0 }
}

#[test]
fn parallel() {
    let memory = memory();
    everywhere(|what| {
        let mut random = Random(0x5555_aaaa_0123_4567);
        for i in 0..120 {
            let mut count = if i % 4 == 3 { -1 } else { 0 };
            let threads = random.one_of(&[0, 2, 3, 4, 7, 64, 1000]);
            let hook = (i % 4 > 1).then(|| counted(&mut count));
            let parallel = Parallel { threads, hook };
            let width = random.one_of(&[1, 4, 6, 12]);
            let dst_slot = random.one_of(&[width, 8.max(width)]);
            let item = random.one_of(&[
                Item::Bytes(1),
                Item::Bytes(4),
                Item::Bytes(12),
                Item::Bytes(300_000),
                Item::Bits { width, dst_slot },
            ]);
            let most = if item == Item::Bytes(300_000) { 3 } else { 5_000 };
            case(&mut random, item, most).check(&memory, &mut random, &parallel, what);
        }
        let mut count = 0;
        let hook = Some(counted(&mut count));
        let dims = vec![Dim { n: 64, src: 1, dst: 64 }, Dim { n: 64, src: 64, dst: 1 }];
        let case = Case { item: Item::Bytes(1), dims };
        case.check(&memory, &mut random, &Parallel { threads: 4, hook }, what);
        assert_eq!(count, 4, "{what}: the hook ran every part");
        // Packed bits are divided only where no two parts share a byte.
        let inner = Dim { n: 16, src: 3, dst: 3 };
        let woven = [Dim { n: 64, src: 6, dst: 4 }, Dim { n: 2, src: 3, dst: 262 }];
        for (width, dims, parts) in [
            (3, vec![Dim { n: 64, src: 60, dst: 48 }, inner], 4),
            (3, vec![Dim { n: 64, src: 60, dst: 49 }, inner], 4),
            (2, woven.to_vec(), 0),
            // Negative strides, which begin in the middle of a byte if the extent is even.
            (4, vec![Dim { n: 65, src: 4, dst: -4 }], 4),
            (4, vec![Dim { n: 64, src: 4, dst: -4 }], 0),
            (4, vec![Dim { n: 32, src: 48, dst: 48 }, Dim { n: 12, src: 4, dst: -4 }], 0),
            (4, vec![Dim { n: 32, src: 48, dst: 48 }, Dim { n: 10, src: 4, dst: -4 }], 4),
        ] {
            count = 0;
            let hook = Some(counted(&mut count));
            let case = Case { item: Item::Bits { width, dst_slot: width }, dims };
            case.check(&memory, &mut random, &Parallel { threads: 4, hook }, what);
            assert_eq!(count, parts, "{what}: {case:?}");
        }
    });
}

//! The launches for GPUs: kernels.ptx, executed by the stand-in's interpreter
//! (c_tests/standin/ptx.cpp), and what of kernels.cu is for AMD's compiler alone, compiled for the
//! host (c_tests/standin/launch.cpp), against the oracle of the CPU engine's tests.
use dlpack_rs::gpu::kernels::{KernelArgs, PTX};
use dlpack_rs::plan::{Dim, Item, Plan};
use layouts::{COPIES, NARROW, UNWEAVE, WEAVE, of_kinds};
use standin::{Device, Modules, launches};

mod far;
#[path = "../engine/kind.rs"]
mod kind;
mod layouts;
#[path = "../engine/model.rs"]
mod model;
mod standin;

#[test]
fn ptx_that_ships_copies_and_nearly_all_of_it_is_executed() {
    std::thread::scope(|scope| {
        for (name, copies) in COPIES {
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread.spawn_scoped(scope, move || copies(Device::new(Modules::shipped()))).unwrap();
        }
    });
    let all: Vec<_> = Modules::shipped().instructions().collect();
    let missed: Vec<_> = all.iter().filter(|(_, executed)| !executed).collect();
    println!("{} of {} instructions of kernels.ptx executed", all.len() - missed.len(), all.len());
    missed.iter().for_each(|(text, _)| println!("never: {text}"));
    assert!(missed.len() * 100 <= all.len() * 3, "more than 3 % of the instructions");
}

#[test]
fn lines_for_amd_copy_and_nothing_in_them_is_undefined() {
    of_kinds(Device::amd(), &[NARROW, WEAVE, UNWEAVE]);
}

/// An instruction with a fault, `None` where there is none to plant.
fn planted(instruction: &str) -> Option<String> {
    const OTHER: [(&str, &str); 22] = [
        ("setp.lt.", "setp.le."),
        ("setp.le.", "setp.lt."),
        ("setp.gt.", "setp.ge."),
        ("setp.ge.", "setp.gt."),
        ("setp.eq.", "setp.ne."),
        ("setp.ne.", "setp.eq."),
        ("add.", "sub."),
        ("sub.", "add."),
        ("mul.lo.", "add."),
        ("mul.hi.u32", "mul.lo.u32"),
        ("mad.lo.", "sub."),
        ("shl.b32", "shr.u32"),
        ("shl.b64", "shr.u64"),
        ("shr.u32", "shl.b32"),
        ("and.", "or."),
        ("or.", "and."),
        ("min.", "max."),
        ("max.", "min."),
        ("@%", "@!%"),
        ("@!%", "@%"),
        ("bar.sync 0;", ""),
        ("mov.u32 %r", "add.s32 %r"),
    ];
    if instruction.starts_with("st.") {
        return Some(String::new());
    }
    if instruction.starts_with("ld.") {
        let (before, offset) = instruction.strip_suffix("];")?.split_once('[')?;
        return Some(format!(
            "{before}[{}];",
            match offset.split_once('+') {
                Some((base, by)) => format!("{base}+{}", by.parse::<i64>().ok()? + 8),
                None => format!("{offset}+4"),
            }
        ));
    }
    let (from, to) = OTHER.iter().find(|(from, _)| instruction.starts_with(from))?;
    let rest = instruction.strip_prefix(from)?;
    let mut made = format!("{to}{rest}");
    match *from {
        "mad.lo." => made = format!("{};", &made[..made.rfind(',')?]),
        "mov.u32 %r" => made = format!("{},1;", made.strip_suffix(';')?),
        _ => {}
    }
    Some(made)
}

/// Faults that change nothing, and why.
const UNSEEN: [(&str, &str); 3] = [
    ("dlrs_run: setp.gt.u32 %p1,%r14,%r4;", "a last digit below its extent is its own remainder"),
    ("dlrs_tile: ld.param.u32 %r12,[%rd1+44];", "more digits than there are: those are all 0"),
    ("dlrs_bits: @!%p1 bra $8_30;", "only executed without digits, and there is always one"),
];

/// Whether the copies of a kernel differ, or are stopped, with these modules; of the cases, one of
/// `every`.
fn seen(kernel: &str, modules: &Modules, every: usize) -> bool {
    let names: &[&str] = match kernel.get(5..8) {
        Some("run") => &["rows", "random bytes", "digits", "large plans"],
        Some("tra") => &["transposes", "digits", "random bytes"],
        Some("til") => &["digits", "transposes of narrow elements", "transposes"],
        Some("bit") => &["shared bytes", "random bits", "digits", "large plans"],
        _ => &["pixels", "digits", "images"],
    };
    names.iter().any(|name| {
        let (_, copies) = COPIES.iter().find(|(of, _)| of == name).unwrap();
        let mut device = Device::new(modules);
        device.every = every;
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| copies(device))).is_err()
    })
}

#[test]
fn faults_planted_in_the_ptx_are_seen() {
    const NAME: &str = "planted";
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().name() != Some(NAME) {
            hook(info);
        }
    }));
    let work = || {
        let text = PTX.to_str().unwrap();
        let (mut kernel, mut at, mut unseen, mut all) = ("", 0, vec![], 0);
        for (number, line) in text.lines().enumerate() {
            if let Some(entry) = line.strip_prefix(".visible .entry ") {
                kernel = entry.trim_end_matches('(');
            }
            let fault = planted(line).filter(|_| number % 101 == 0);
            if let Some(fault) = fault {
                let text = format!("{}{fault}{}", &text[..at], &text[at + line.len()..]);
                all += 1;
                let modules = Modules::new(&text);
                let name = format!("{kernel}: {fault}");
                let harmless = UNSEEN.iter().any(|(of, _)| *of == name);
                if !seen(kernel, &modules, 8) && (harmless || !seen(kernel, &modules, 1)) {
                    unseen.push(format!("{kernel}: {fault}"));
                }
            }
            at += line.len() + 1;
        }
        (all, unseen)
    };
    let thread = std::thread::Builder::new().name(NAME.to_owned());
    let (all, unseen) = thread.spawn(work).unwrap().join().unwrap();
    println!("{} of {all} planted faults were seen", all - unseen.len());
    assert_eq!(unseen, UNSEEN.map(|(name, _)| name));
}

/// Too large for any machine here: only the arithmetic is checked.
#[test]
fn launches_cover_huge_plans() {
    let dims = [(3i64, 1 << 40, 1 << 41), (1 << 33, 0, 5)];
    let mut plan = Plan::new(4096 as *const u8, 4096 as *mut u8, Item::Bytes(1));
    dims.iter().for_each(|&(n, src, dst)| plan.push(Dim { n, src, dst }));
    let total: u64 = launches(&plan, i64::MAX).map(|l| u64::from(count(&l.args))).sum();
    assert_eq!(total, 3 << 33);
    // Every driver takes so many blocks in this direction.
    assert!(launches(&plan, i64::MAX).all(|l| l.grid[0] <= 1 << 16 && l.grid[1..] == [1, 1]));
    let mut plan =
        Plan::new(4096 as *const u8, 4096 as *mut u8, Item::Bits { width: 9, dst_slot: 64 });
    plan.push(Dim { n: 1 << 30, src: 9, dst: 64 });
    let most = launches(&plan, i64::MAX).map(|l| count(&l.args)).max().unwrap();
    assert!(u64::from(most) * 8 <= 1 << 30, "{most} bytes of a row do not count as bits");
    let empty = Plan::new(std::ptr::null(), std::ptr::null_mut(), Item::Bytes(0));
    assert_eq!(launches(&empty, i64::MAX).count(), 0);
}

/// Tensors of 24 dimensions, none of which is merged with another.
#[test]
fn ranks_of_one_launch() {
    let items = [1usize, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32].map(Item::Bytes);
    let bits =
        [(1, 1), (4, 4), (3, 8), (12, 12)].map(|(width, dst_slot)| Item::Bits { width, dst_slot });
    for item in items.into_iter().chain(bits) {
        let unit = match item {
            Item::Bytes(n) => n as i64,
            Item::Bits { dst_slot, .. } => 8 * dst_slot as i64,
        };
        for dense in [false, true] {
            let mut plan = Plan::new(4096 as *const u8, 4096 as *mut u8, item);
            for i in 0..24 {
                let dst = if dense { unit << i } else { 2 * unit * 3i64.pow(i) };
                plan.push(Dim { n: 2, src: 2 * unit * 3i64.pow(23 - i), dst });
            }
            assert_eq!(launches(&plan, i64::MAX).count(), 1, "{item:?} {dense}");
        }
    }
}

fn count(args: &KernelArgs) -> u32 {
    // SAFETY: `Args::count` in kernels.cu is there.
    unsafe { (&raw const *args).cast::<u32>().add(8).read() }
}

#[test]
fn kernels() {
    let kernel = |size, dims: &[(i64, i64, i64)]| {
        let mut plan = Plan::new(64 as *const u8, 64 as *mut u8, Item::Bytes(size));
        dims.iter().for_each(|&(n, src, dst)| plan.push(Dim { n, src, dst }));
        let all: Vec<_> = launches(&plan, i64::MAX).map(|launch| launch.kernel).collect();
        assert_eq!(all.len(), 1);
        all[0]
    };
    assert_eq!(kernel(4, &[(31, 4, 128), (32, 128, 4)]), c"dlrs_transpose");
    assert_eq!(kernel(4, &[(64, 4, 256), (64, 256, 4)]), c"dlrs_tile");
    assert_eq!(kernel(2, &[(128, 2, 256), (128, 256, 2)]), c"dlrs_transpose");
    assert_eq!(kernel(2, &[(128, 2, 256), (128, 258, 2)]), c"dlrs_tile_narrow");
    assert_eq!(kernel(4, &[(2048, 4, 8192), (2048, 8192, 4)]), c"dlrs_transpose");
    assert_eq!(kernel(8, &[(64, 8, 520), (64, 512, 8)]), c"dlrs_tile");
    assert_eq!(kernel(1, &[(300, 1, 300), (300, 300, 1)]), c"dlrs_tile_narrow");
    assert_eq!(kernel(1, &[(3, 1, 300), (300, 3, 1)]), c"dlrs_planes");
    assert_eq!(kernel(2, &[(4, 2, 400), (200, 8, 2)]), c"dlrs_planes");
    assert_eq!(kernel(4, &[(4, 4, 800), (200, 16, 4)]), c"dlrs_transpose");
    assert_eq!(kernel(8, &[(200, 8, 24), (3, 1600, 8)]), c"dlrs_pixels");
    assert_eq!(kernel(8, &[(100, 8, 24), (3, 800, 8)]), c"dlrs_run");
    assert_eq!(kernel(16, &[(200, 16, 48), (3, 3200, 16)]), c"dlrs_run_wide");
    assert_eq!(kernel(4, &[(64, 8, 4)]), c"dlrs_run");
    assert_eq!(kernel(4, &[(64, 512, 256), (64, 4, 4)]), c"dlrs_run_wide");
    assert_eq!(kernel(12, &[(64, 24, 12)]), c"dlrs_run");
    assert_eq!(kernel(1, &[(64, 2, 1)]), c"dlrs_run_narrow");
    assert_eq!(kernel(24, &[(64, 48, 24)]), c"dlrs_run");
}

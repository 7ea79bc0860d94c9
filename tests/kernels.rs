//! The launches for GPUs, run by the host emulation of kernels.cu (c_tests/standin/launch.cpp),
//! against the oracle of the CPU engine's tests, between guard pages.
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use dlpack_rs::gpu::kernels::{KernelArgs, Launch};
use dlpack_rs::gpu::launches::Launches;
use dlpack_rs::plan::{Dim, Item, Plan};
use model::{Case, Random, Run, case, memory};

#[path = "engine/model.rs"]
mod model;

type StandinLaunch = unsafe extern "C" fn(
    *const c_char,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    *mut *mut c_void,
) -> c_int;

/// The emulation, and the maximum number of elements per launch.
struct Device {
    launch: StandinLaunch,
    limit: i64,
    /// Maximum blocks of a launch: each repeats until no work is left.
    blocks: u32,
}

impl Device {
    fn few_blocks(blocks: u32) -> Device {
        Device { blocks, ..Device::new(i64::MAX) }
    }

    fn new(limit: i64) -> Device {
        static LAUNCH: OnceLock<StandinLaunch> = OnceLock::new();
        Device { launch: *LAUNCH.get_or_init(|| build("nvidia", &[])), limit, blocks: u32::MAX }
    }

    /// With the lines of kernels.cu that are for AMD's compiler.
    fn amd() -> Device {
        static LAUNCH: OnceLock<StandinLaunch> = OnceLock::new();
        let launch = *LAUNCH.get_or_init(|| build("amd", &["-D__AMDGCN__"]));
        Device { launch, ..Device::new(i64::MAX) }
    }
}

/// Builds the emulation, so that an error on a GPU (a misaligned access) or undefined behaviour (a
/// shift that is too large) ends the test.
fn build(vendor: &str, options: &[&str]) -> StandinLaunch {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lib{vendor}.so"));
    let built = Command::new("g++")
        .args(["-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"])
        .args(["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"])
        .args(["-shared", "-fPIC"])
        .args(options)
        .arg(root.join("c_tests/standin/launch.cpp"))
        .arg("-o")
        .arg(&library)
        .status();
    assert!(built.expect("g++ is needed: apt-get install g++").success());
    let path = CString::new(library.to_str().unwrap()).unwrap();
    // SAFETY: a library with trivial constructors; the symbol has this type.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null(), "{:?}", CStr::from_ptr(libc::dlerror()));
        let symbol = libc::dlsym(library, c"standin_launch".as_ptr());
        assert!(!symbol.is_null());
        std::mem::transmute::<*mut c_void, StandinLaunch>(symbol)
    }
}

fn launches(plan: &Plan, limit: i64) -> impl Iterator<Item = Launch> {
    let mut plan = *plan;
    plan.simplify();
    Launches::limited(&plan, limit)
}

impl Run for Device {
    unsafe fn run(&self, plan: &Plan) {
        for Launch { kernel, grid: [gx, gy, gz], block: [bx, by, bz], mut args } in
            launches(plan, self.limit)
        {
            let gx = gx.min(self.blocks);
            let mut all = [(&raw mut args).cast::<c_void>()];
            // SAFETY: the caller's promise; the emulation accepts what a driver would.
            let status =
                unsafe { (self.launch)(kernel.as_ptr(), gx, gy, gz, bx, by, bz, all.as_mut_ptr()) };
            assert_eq!(status, 0, "{kernel:?} {gx} {gy} {gz} {bx} {by} {bz}");
        }
    }
}

const SIZES: [usize; 20] = [1, 1, 2, 2, 3, 4, 4, 4, 6, 8, 8, 12, 16, 16, 20, 24, 32, 48, 100, 1000];

/// Plans at random, most in one launch, some cut into many.
#[test]
fn random_bytes() {
    let memory = memory();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for (name, device, count) in [
        ("bytes", Device::new(i64::MAX), 2000),
        ("bytes, cut", Device::new(100), 400),
        ("bytes, in turns", Device::few_blocks(3), 400),
    ] {
        for _ in 0..count {
            let size = random.one_of(&SIZES);
            let most = if random.below(8) == 0 { 30_000 } else { 2_000 } / (1 + size as i64 / 8);
            case(&mut random, Item::Bytes(size), most).check(&memory, &mut random, &device, name);
        }
    }
}

#[test]
fn random_bits() {
    let memory = memory();
    let widths = [1usize, 2, 3, 4, 4, 4, 5, 6, 6, 6, 7, 8, 9, 12, 24, 63, 100, 393];
    let mut random = Random(0x1234_5678_9abc_def1);
    for (name, device, count) in [
        ("bits", Device::new(i64::MAX), 2000),
        ("bits, cut", Device::new(100), 400),
        ("bits, in turns", Device::few_blocks(2), 400),
    ] {
        for _ in 0..count {
            let width = random.one_of(&widths);
            let padded = width.max(8).next_multiple_of(8);
            let dst_slot = random.one_of(&[width, width, width, padded, padded, width + 1]);
            let item = Item::Bits { width, dst_slot };
            case(&mut random, item, 2_000).check(&memory, &mut random, &device, name);
        }
    }
}

/// Two dimensions and a third around them: tiles of every shape, at every alignment.
#[test]
fn transposes() {
    let memory = memory();
    let mut random = Random(0xfeed_beef_1234_0001);
    let devices = [Device::new(i64::MAX), Device::new(5000), Device::few_blocks(2)];
    for (device, name) in devices.iter().zip(["tiles", "tiles, cut", "tiles, in turns"]) {
        for i in 0..200 {
            let size = [1, 2, 4, 8, 16, 3, 12][i % 7];
            let extents = [3, 4, 5, 8, 16, 17, 40, 64, 70, 128, 200, 256, 300];
            let (a, b) = (random.one_of(&extents), random.one_of(&extents));
            let gap = |random: &mut Random| random.one_of(&[0, 0, 16, 64, 1, size, 7]);
            let (by_src, by_dst) = (b * size + gap(&mut random), a * size + gap(&mut random));
            let sign = |random: &mut Random| 1 - 2 * i64::from(random.below(3) == 0);
            let (s, t, u) = (sign(&mut random), sign(&mut random), sign(&mut random));
            let n = random.one_of(&[1, 1, 2, 5]);
            let dims = vec![
                Dim { n, src: a * by_src, dst: b * by_dst + gap(&mut random) },
                Dim { n: a, src: s * by_src, dst: size },
                Dim { n: b, src: t * size, dst: u * by_dst },
            ];
            let case = Case { item: Item::Bytes(size as usize), dims };
            case.check(&memory, &mut random, device, name);
        }
    }
}

/// Large matrices of one and two bytes: every alignment of both sides and of their rows, rows in
/// either order, extents around those of a tile.
#[test]
fn transposes_of_narrow_elements() {
    let memory = memory();
    let mut random = Random(0x5eed_0000_0000_0003);
    let devices = [Device::new(i64::MAX), Device::few_blocks(2), Device::amd()];
    for i in 0..256u64 {
        let size = 1 + i as i64 % 2;
        let digit = |place: u32| (i / 2 / 4u64.pow(place) % 4) as i64;
        let down = random.one_of(&[128, 129, 130, 131, 191, 254, 255, 256, 257, 259, 300]);
        let across = random.one_of(&[64, 65, 66, 123, 124, 125, 126, 127, 128, 129, 186, 187, 250]);
        let pad = |n: i64, odd: i64| ((n * size + 3) & !3) + 4 + odd / size * size;
        let (by_src, by_dst) = (pad(across, digit(0)), pad(down, digit(1)));
        let sign = |random: &mut Random| 1 - 2 * i64::from(random.below(3) == 0);
        let (s, u) = (sign(&mut random), sign(&mut random));
        let n = random.one_of(&[1, 1, 3]);
        let dims = vec![
            Dim { n, src: down * by_src, dst: across * by_dst + 4 + digit(2) / size * size },
            Dim { n: down, src: s * by_src, dst: size },
            Dim { n: across, src: size, dst: u * by_dst },
        ];
        let at = |i: i64| 1 + 4 * (i / size * size) as u64;
        let places = [at(digit(2)), at(random.below(4) as i64)];
        let case = Case { item: Item::Bytes(size as usize), dims };
        let device = &devices[random.below(3) as usize];
        case.check_at(places, &memory, &mut random, device, "narrow faces");
    }
}

/// Pixels of a few channels to planes and back: every alignment of both sides.
#[test]
fn pixels() {
    let memory = memory();
    let mut random = Random(0x5eed_0000_0000_0007);
    let devices = [Device::new(i64::MAX), Device::amd()];
    for (size, channels, lead) in (0..4 * 6 * 16).map(|i| (1i64 << (i % 4), 2 + i / 4 % 6, i / 24))
    {
        let n = random.one_of(&[128, 129, 130, 131, 255, 1000, 5000]);
        let plane: i64 = ((n * size + 3) & !3) + random.one_of(&[0, 0, 4, size, 3 * size]);
        let gap = random.one_of(&[0, 0, 16, 4, size]);
        let images = random.one_of(&[1, 2]);
        let weave = vec![
            Dim { n: images, src: channels * plane, dst: n * channels * size + gap },
            Dim { n, src: size, dst: channels * size },
            Dim { n: channels, src: plane, dst: size },
        ];
        let unweave = weave.iter().map(|d| Dim { n: d.n, src: d.dst, dst: d.src }).collect();
        let place = |at: i64| 1 + 4 * at as u64;
        let planes = random.one_of(&[0, 0, size, 3 * size]);
        let together = lead / size * size;
        for (dims, places) in
            [(weave, [place(planes), place(together)]), (unweave, [place(together), place(planes)])]
        {
            let case = Case { item: Item::Bytes(size as usize), dims };
            let device = &devices[random.below(2) as usize];
            case.check_at(places, &memory, &mut random, device, "pixels");
        }
    }
}

/// Rows of the destination that begin at any byte of a word; steps, fills and planes.
#[test]
fn rows() {
    let memory = memory();
    let mut random = Random(0xabcd_ef01_2345_6789);
    let device = Device::new(i64::MAX);
    for size in [1, 2, 3, 4, 6, 8, 12, 16, 32, 100] {
        for step in -9..=9 {
            for rows in [1, 2, 5] {
                let n = random.one_of(&[1, 2, 3, 4, 5, 7, 33, 200, 1025]);
                let dims = vec![
                    Dim { n: rows, src: 9 * n * size, dst: n * size + random.one_of(&[0, 1, 5]) },
                    Dim { n, src: step * size, dst: size },
                ];
                let case = Case { item: Item::Bytes(size as usize), dims };
                case.check(&memory, &mut random, &device, "rows");
            }
        }
        for planes in 2..=9 {
            let n = random.one_of(&[4, 31, 100, 2000]);
            let odd = random.one_of(&[0, 0, 3, 64]);
            let (plane, run) = (n * size + odd, planes * size);
            let weave =
                vec![Dim { n, src: size, dst: run }, Dim { n: planes, src: plane, dst: size }];
            let unweave = weave.iter().map(|d| Dim { n: d.n, src: d.dst, dst: d.src }).collect();
            for dims in [weave, unweave] {
                let case = Case { item: Item::Bytes(size as usize), dims };
                case.check(&memory, &mut random, &device, "planes");
            }
        }
    }
}

/// Rows of bits that share bytes with their neighbours, also interleaved.
#[test]
fn shared_bytes() {
    let memory = memory();
    let mut random = Random(0x0f0f_1111_2222_3333);
    let device = Device::new(i64::MAX);
    for width in 1..=12i64 {
        for (src, dst) in [(width, width), (width, 16), (16, width)] {
            let item = Item::Bits { width: width as usize, dst_slot: dst as usize };
            for by in [dst, dst + 1, 2 * dst, 3 * dst + 1, 40] {
                let (a, b) = (random.one_of(&[1, 2, 17, 64]), random.one_of(&[2, 5, 33, 100]));
                let transpose =
                    vec![Dim { n: a, src: b * src + 3, dst }, Dim { n: b, src, dst: a * dst + by }];
                let rows =
                    vec![Dim { n: a, src: b * src, dst: b * by + 1 }, Dim { n: b, src, dst: by }];
                let woven = vec![Dim { n: a, src: 7, dst: 2 * by }, Dim { n: 2, src, dst: by }];
                let back =
                    vec![Dim { n: b, src: -src, dst: by }, Dim { n: 2, src: 3, dst: -b * by }];
                for dims in [transpose, rows, woven, back] {
                    Case { item, dims }.check(&memory, &mut random, &device, "shared");
                }
            }
        }
    }
}

/// More than eight dimensions, elements far wider than any access, extents beyond 32 bits.
#[test]
fn large_plans() {
    let memory = memory();
    let mut random = Random(77);
    let device = Device::new(i64::MAX);
    let many = |n: i64| (0..n).map(move |i| Dim { n: 2, src: 1 << i, dst: 1 << (n - 1 - i) });
    for (item, n) in [(1, 13), (2, 12), (4, 11), (16, 10)] {
        let scaled = many(n).map(|d| Dim { n: d.n, src: item * d.src, dst: item * d.dst });
        let case = Case { item: Item::Bytes(item as usize), dims: scaled.collect() };
        case.check(&memory, &mut random, &device, "many dimensions");
    }
    let case = Case { item: Item::Bits { width: 3, dst_slot: 3 }, dims: many(12).collect() };
    let tripled = case.dims.iter().map(|d| Dim { n: d.n, src: 3 * d.src, dst: 3 * d.dst });
    let case = Case { item: case.item, dims: tripled.collect() };
    case.check(&memory, &mut random, &device, "many dimensions of bits");
    let big = 1 << 20;
    let dims = vec![Dim { n: 3, src: -big, dst: big + 5 }];
    Case { item: Item::Bytes(big as usize), dims }.check(&memory, &mut random, &device, "big");
    let (width, dst_slot) = (393_210, 393_216);
    let dims = vec![Dim { n: 3, src: width as i64, dst: dst_slot as i64 }];
    let case = Case { item: Item::Bits { width, dst_slot }, dims };
    case.check(&memory, &mut random, &device, "big");
}

/// Too large for any machine here: only the arithmetic is checked.
#[test]
fn launches_cover_huge_plans() {
    let dims = [(3i64, 1 << 40, 1 << 41), (1 << 33, 0, 5)];
    let mut plan = Plan::new(4096 as *const u8, 4096 as *mut u8, Item::Bytes(1));
    dims.iter().for_each(|&(n, src, dst)| plan.push(Dim { n, src, dst }));
    let total: u64 = launches(&plan, i64::MAX).map(|l| u64::from(count(&l.args))).sum();
    assert_eq!(total, 3 << 33);
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

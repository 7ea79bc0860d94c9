//! The launches for GPUs: kernels.ptx, executed by the stand-in's interpreter
//! (c_tests/standin/ptx.cpp), and what of kernels.cu is for AMD's compiler alone, compiled for the
//! host (c_tests/standin/launch.cpp), against the oracle of the CPU engine's tests.
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use dlpack_rs::gpu::kernels::{FAMILIES, Family, KernelArgs, Launch, PTX};
use dlpack_rs::gpu::launches::Launches;
use dlpack_rs::plan::{Dim, Item, Plan};
use model::{Case, Closed, Guarded, Random, Run, case, memory, without};

#[path = "engine/model.rs"]
mod model;

/// `program_range` and the functions of c_tests/standin/program.h.
#[repr(C)]
struct Range {
    low: u64,
    high: u64,
    bytes: *mut u8,
}
type Memory = extern "C" fn(*mut c_void, u64, *mut Range) -> c_int;
type New = unsafe extern "C" fn(*const u8, *mut c_char) -> *mut c_void;
type End = unsafe extern "C" fn(*mut c_void);
type Find = unsafe extern "C" fn(*const c_void, *const c_char) -> c_int;
type Execute = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    c_uint,
    c_uint,
    *const c_void,
    Memory,
    *mut c_void,
) -> *const c_char;
type Instruction = unsafe extern "C" fn(*const c_void, c_uint, *mut c_int) -> *const c_char;
type LaunchAmd = unsafe extern "C" fn(*const c_char, c_uint, *const c_void) -> c_int;

struct Interpreter {
    new: New,
    end: End,
    find: Find,
    execute: Execute,
    instruction: Instruction,
}

static INTERPRETER: OnceLock<Interpreter> = OnceLock::new();

fn interpreter() -> &'static Interpreter {
    INTERPRETER.get_or_init(|| {
        let library = build("ptx", &["-O2", "-ftree-vectorize"]);
        // SAFETY: the functions have these types.
        unsafe {
            use std::mem::transmute as typed;
            Interpreter {
                new: typed::<*mut c_void, New>(symbol(library, c"program_new")),
                end: typed::<*mut c_void, End>(symbol(library, c"program_end")),
                find: typed::<*mut c_void, Find>(symbol(library, c"program_kernel")),
                execute: typed::<*mut c_void, Execute>(symbol(library, c"program_run")),
                instruction: typed::<*mut c_void, Instruction>(symbol(
                    library,
                    c"program_instruction",
                )),
            }
        }
    })
}

/// Compiles a part of the stand-in.
fn build(name: &str, options: &[&str]) -> *mut c_void {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lib{name}.so"));
    let built = Command::new("g++")
        .args(["-std=c++17", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"])
        .args(["-shared", "-fPIC"])
        .args(options)
        .arg(root.join(format!("c_tests/standin/{name}.cpp")))
        .arg("-o")
        .arg(&library)
        .status();
    assert!(built.expect("g++ is needed: apt-get install g++").success());
    let path = CString::new(library.to_str().unwrap()).unwrap();
    // SAFETY: a library with trivial constructors.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null(), "{:?}", CStr::from_ptr(libc::dlerror()));
        library
    }
}

fn symbol(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a library that was opened.
    let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!symbol.is_null(), "{name:?}");
    symbol
}

/// The modules that a driver is given: one per family of kernels.
struct Modules([*mut c_void; FAMILIES]);

// SAFETY: what threads share of a program is atomic.
unsafe impl Sync for Modules {}
// SAFETY: as above.
unsafe impl Send for Modules {}

impl Modules {
    fn new(text: &str) -> Modules {
        const FIRST: [&str; FAMILIES] =
            ["dlrs_run", "dlrs_transpose", "dlrs_tile", "dlrs_planes", "dlrs_bits"];
        Modules(FIRST.map(|name| {
            let family = Family::of(name.as_bytes()).unwrap();
            let mut text = [text.as_bytes(), b"\0"].concat();
            family.leave(&mut text);
            let mut wrong = [0; 200];
            // SAFETY: a string, and room for the reason.
            let program = unsafe { (interpreter().new)(text.as_ptr(), wrong.as_mut_ptr()) };
            // SAFETY: a string, which may be empty.
            let wrong = unsafe { CStr::from_ptr(wrong.as_ptr()) };
            assert!(!program.is_null(), "{wrong:?}");
            program
        }))
    }

    fn shipped() -> &'static Modules {
        static SHIPPED: OnceLock<Modules> = OnceLock::new();
        SHIPPED.get_or_init(|| Modules::new(PTX.to_str().unwrap()))
    }

    /// Runs the first blocks of a grid of so many.
    ///
    /// # Safety
    /// The callback describes memory that may be used.
    unsafe fn run(
        &self,
        kernel: &CStr,
        (blocks, grid): (u32, u32),
        args: &KernelArgs,
        reach: Memory,
        of: *mut c_void,
    ) {
        let program = self.0[Family::of(kernel.to_bytes()).unwrap().number()];
        // SAFETY: a program and its kernel; a string if it is not NULL.
        unsafe {
            let number = (interpreter().find)(program, kernel.as_ptr());
            assert!(number >= 0, "{kernel:?}");
            let argument = (&raw const *args).cast();
            let wrong = (interpreter().execute)(program, number, blocks, grid, argument, reach, of);
            let wrong = (!wrong.is_null()).then(|| CStr::from_ptr(wrong));
            assert_eq!(wrong, None, "{kernel:?}");
        }
    }

    /// The instructions, and whether each was executed.
    fn instructions(&self) -> impl Iterator<Item = (String, bool)> {
        self.0.iter().flat_map(|&program| {
            (0..).map_while(move |number| {
                let mut executed = 0;
                // SAFETY: a program; the text is valid until the next call.
                unsafe {
                    let text = (interpreter().instruction)(program, number, &mut executed);
                    let text = (!text.is_null()).then(|| CStr::from_ptr(text))?;
                    Some((text.to_str().unwrap().to_owned(), executed != 0))
                }
            })
        })
    }
}

impl Drop for Modules {
    fn drop(&mut self) {
        // SAFETY: programs, which nobody uses any more.
        self.0.iter().for_each(|&program| unsafe { (interpreter().end)(program) });
    }
}

#[derive(Clone, Copy)]
enum By<'a> {
    Ptx(&'a Modules),
    Amd(LaunchAmd),
}

#[derive(Clone, Copy)]
struct Device<'a> {
    by: By<'a>,
    /// The maximum number of elements per launch.
    limit: i64,
    /// Maximum blocks of a launch: each repeats until no work is left.
    blocks: u32,
    /// Of the cases that take longest, each one of so many.
    every: usize,
}

impl Device<'_> {
    fn new(modules: &Modules) -> Device<'_> {
        Device { by: By::Ptx(modules), limit: i64::MAX, blocks: u32::MAX, every: 1 }
    }

    fn cut(self, limit: i64) -> Self {
        Device { limit, ..self }
    }

    fn few_blocks(self, blocks: u32) -> Self {
        Device { blocks, ..self }
    }

    /// With the lines of kernels.cu that are for AMD's compiler; an error on a GPU (a misaligned
    /// access) or undefined behaviour (a shift that is too large) ends the test.
    fn amd() -> Device<'static> {
        static LAUNCH: OnceLock<LaunchAmd> = OnceLock::new();
        let launch = *LAUNCH.get_or_init(|| {
            let ubsan = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"];
            let library = build("launch", &["-O1", "-D__AMDGCN__", ubsan[0], ubsan[1]]);
            // SAFETY: the function has this type.
            unsafe { std::mem::transmute::<*mut c_void, LaunchAmd>(symbol(library, c"amd_launch")) }
        });
        Device { by: By::Amd(launch), limit: i64::MAX, blocks: u32::MAX, every: 5 }
    }

    /// # Safety
    /// As for [`Run::run`].
    unsafe fn launch(&self, plan: &Plan, sides: [&Closed; 2]) {
        extern "C" fn reach(sides: *mut c_void, at: u64, found: *mut Range) -> c_int {
            // SAFETY: `sides` is below's, and `found` is an output.
            unsafe {
                let sides = &*sides.cast::<[&Closed; 2]>();
                let Some(open) = sides.iter().find_map(|side| side.open_at(at as usize)) else {
                    return 0;
                };
                let (low, high) = (open.start as u64, open.end as u64);
                found.write(Range { low, high, bytes: open.start as *mut u8 });
                1
            }
        }
        for Launch { kernel, grid: [gx, gy, gz], block, args } in launches(plan, self.limit) {
            assert_eq!(([gy, gz], block), ([1, 1], [256, 1, 1]));
            let gx = gx.min(self.blocks);
            match self.by {
                // SAFETY: the caller's promise; the callback describes memory that is open.
                By::Ptx(modules) => unsafe {
                    let sides = (&raw const sides).cast_mut().cast();
                    modules.run(kernel, (gx, gx), &args, reach, sides);
                },
                // SAFETY: the caller's promise.
                By::Amd(launch) => unsafe {
                    let argument = (&raw const args).cast();
                    assert_eq!(launch(kernel.as_ptr(), gx, argument), 0, "{kernel:?}");
                },
            }
        }
    }
}

fn launches(plan: &Plan, limit: i64) -> impl Iterator<Item = Launch> {
    let mut plan = *plan;
    plan.simplify();
    Launches::limited(&plan, limit)
}

impl Run for Device<'_> {
    unsafe fn run(&self, _: &Plan) {
        unreachable!("this device knows what is closed");
    }

    unsafe fn run_within(&self, plan: &Plan, sides: [&Closed; 2]) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.by {
                By::Ptx(_) => self.launch(plan, sides),
                By::Amd(_) => without(sides, || self.launch(plan, sides)),
            }
        }
    }
}

const SIZES: [usize; 20] = [1, 1, 2, 2, 3, 4, 4, 4, 6, 8, 8, 12, 16, 16, 20, 24, 32, 48, 100, 1000];

/// Plans at random, most in one launch, some cut into many.
fn random_bytes(device: Device) {
    let memory = memory();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for (name, device, count) in [
        ("bytes", device, 2000),
        ("bytes, cut", device.cut(100), 400),
        ("bytes, in turns", device.few_blocks(3), 400),
    ] {
        for _ in 0..count / device.every {
            let size = random.one_of(&SIZES);
            let most = if random.below(8) == 0 { 30_000 } else { 2_000 } / (1 + size as i64 / 8);
            case(&mut random, Item::Bytes(size), most).check(&memory, &mut random, &device, name);
        }
    }
}

fn random_bits(device: Device) {
    let memory = memory();
    let widths = [1usize, 2, 3, 4, 4, 4, 5, 6, 6, 6, 7, 8, 9, 12, 24, 63, 100, 393];
    let mut random = Random(0x1234_5678_9abc_def1);
    for (name, device, count) in [
        ("bits", device, 1000),
        ("bits, cut", device.cut(100), 400),
        ("bits, in turns", device.few_blocks(2), 400),
    ] {
        for _ in 0..count / device.every {
            let width = random.one_of(&widths);
            let padded = width.max(8).next_multiple_of(8);
            let dst_slot = random.one_of(&[width, width, width, padded, padded, width + 1]);
            let item = Item::Bits { width, dst_slot };
            case(&mut random, item, 2_000).check(&memory, &mut random, &device, name);
        }
    }
}

/// Two dimensions and a third around them: tiles of every shape, at every alignment.
fn transposes(device: Device) {
    let memory = memory();
    let mut random = Random(0xfeed_beef_1234_0001);
    let devices = [device, device.cut(5000), device.few_blocks(2)];
    for (device, name) in devices.iter().zip(["tiles", "tiles, cut", "tiles, in turns"]) {
        for i in (0..120).step_by(device.every) {
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
fn transposes_of_narrow_elements(device: Device) {
    let memory = memory();
    let mut random = Random(0x5eed_0000_0000_0003);
    let devices = [device, device.few_blocks(2)];
    for i in (0..256u64).step_by(device.every) {
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
        let device = &devices[random.below(2) as usize];
        case.check_at(places, &memory, &mut random, device, "narrow faces");
    }
}

/// Pixels of a few channels to planes and back: every alignment of both sides.
fn pixels(device: Device) {
    let memory = memory();
    let mut random = Random(0x5eed_0000_0000_0007);
    for i in (0..4 * 6 * 16).step_by(device.every) {
        let (size, channels, lead) = (1i64 << (i % 4), 2 + i as i64 / 4 % 6, i as i64 / 24);
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
            case.check_at(places, &memory, &mut random, &device, "pixels");
        }
    }
}

/// Rows of the destination that begin at any byte of a word; steps, fills and planes.
fn rows(device: Device) {
    let memory = memory();
    let mut random = Random(0xabcd_ef01_2345_6789);
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
fn shared_bytes(device: Device) {
    let memory = memory();
    let mut random = Random(0x0f0f_1111_2222_3333);
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
fn large_plans(device: Device) {
    let memory = memory();
    let mut random = Random(77);
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

/// As many images as fill a device: every block size of `planes` and `pixels`, blocks that end in
/// each of a thread's turns, planes at any alignment.
fn images(device: Device) {
    let memory = [Guarded::new(13 << 20), Guarded::new(13 << 20)];
    let mut random = Random(0x1a6e_0000_0000_0001);
    for (i, (log, channels, size, n)) in [
        (12, 3, 1, 4100),
        (12, 3, 1, 1029),
        (12, 2, 1, 2057),
        (12, 2, 1, 3083),
        (11, 6, 1, 1027),
        (11, 4, 1, 2051),
        (11, 3, 2, 517),
        (11, 2, 2, 1031),
        (11, 3, 2, 1543),
        (10, 3, 4, 1020),
        (10, 5, 2, 519),
        (9, 4, 4, 300),
        (9, 2, 8, 260),
        (8, 4, 8, 140),
        (7, 7, 8, 135),
    ]
    .into_iter()
    .enumerate()
    .step_by(device.every)
    {
        let images = 1024 / ((n + (1 << log) - 1) >> log);
        let plane = (n * size + 3) / 4 * 4 + if i % 3 == 1 { size } else { 0 };
        let weave = vec![
            Dim { n: images, src: channels * plane, dst: n * channels * size },
            Dim { n, src: size, dst: channels * size },
            Dim { n: channels, src: plane, dst: size },
        ];
        let unweave = weave.iter().map(|d| Dim { n: d.n, src: d.dst, dst: d.src }).collect();
        for dims in [weave, unweave] {
            let case = Case { item: Item::Bytes(size as usize), dims };
            let device = if i % 2 == 0 { device } else { device.few_blocks(100) };
            case.check_at([1, 1], &memory, &mut random, &device, "images");
        }
    }
}

/// One to six digits of an index for each kernel: outer dimensions, none of which merges with
/// another, in another order on each side.
fn digits(device: Device) {
    let memory = memory();
    let mut random = Random(0x0d16_1750_0000_0001);
    let up = |n: i64, to: i64| (n + to - 1) / to * to;
    let turned = |size: i64, down: i64, across: i64, odd: i64| {
        let row = up(across * size, 4) + odd;
        let column = up(down * size, 4) + odd;
        let dims =
            vec![Dim { n: down, src: row, dst: size }, Dim { n: across, src: size, dst: column }];
        (Item::Bytes(size as usize), dims)
    };
    let mut inner = vec![];
    for (down, across, odd) in [(64, 64, 0), (65, 40, 4), (130, 63, 1), (5, 17, 0), (40, 33, 16)] {
        inner.extend([1, 2, 4, 8, 16].map(|size| turned(size, down, across, odd / size * size)));
    }
    for size in [1, 2, 4, 8] {
        for channels in 2..=7 {
            let (n, plane) = (150, 160 * size);
            let dims = vec![
                Dim { n, src: size, dst: channels * size },
                Dim { n: channels, src: plane, dst: size },
            ];
            let back = dims.iter().map(|d| Dim { n: d.n, src: d.dst, dst: d.src }).collect();
            inner.extend([dims, back].map(|dims| (Item::Bytes(size as usize), dims)));
        }
    }
    for size in [1, 2, 4, 12, 16, 24] {
        inner.push((Item::Bytes(size as usize), vec![Dim { n: 40, src: 3 * size, dst: size }]));
        inner.push((Item::Bytes(size as usize), vec![Dim { n: 9, src: 3 * size, dst: 2 * size }]));
    }
    for (width, dst_slot) in [(1, 1), (4, 4), (3, 8), (12, 16), (7, 7), (40, 40)] {
        let step = dst_slot as i64;
        let item = Item::Bits { width, dst_slot };
        inner.push((item, vec![Dim { n: 65, src: 5 * width as i64, dst: step }]));
        inner.push((item, vec![Dim { n: 21, src: width as i64, dst: 2 * step }]));
    }
    for (i, (item, dims)) in inner.into_iter().enumerate().step_by(device.every) {
        for outer in 0..=5 {
            let mut case = Case { item, dims: dims.clone() };
            let (unit, width, slot) = case.bits();
            let grain = if unit == 1 { 8 } else { 16 };
            let size = |bits: i64| up(bits / unit + 1, grain);
            let mut src = size(8 * case.extent(|d| d.src, width).1 + 8);
            let mut dst = vec![size(8 * case.extent(|d| d.dst, slot).1 + 8)];
            let n = |k: usize| if k == 0 { 3 } else { 2 };
            for k in (1..outer).rev() {
                dst.push(dst[dst.len() - 1] * n(k) + grain * (1 + k as i64 % 2));
            }
            for k in 0..outer {
                let gap = grain * (k as i64 % 3);
                case.dims.insert(0, Dim { n: n(k), src, dst: dst[outer - 1 - k] });
                src = src * n(k) + gap;
            }
            let device = if i % 5 == 4 { device.few_blocks(3) } else { device };
            case.check(&memory, &mut random, &device, "digits");
        }
    }
}

/// What the copies above execute of the kernels.
type Copies = (&'static str, fn(Device));
const COPIES: [Copies; 10] = [
    ("random bytes", random_bytes),
    ("random bits", random_bits),
    ("transposes", transposes),
    ("transposes of narrow elements", transposes_of_narrow_elements),
    ("pixels", pixels),
    ("rows", rows),
    ("shared bytes", shared_bytes),
    ("large plans", large_plans),
    ("digits", digits),
    ("images", images),
];

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
    transposes_of_narrow_elements(Device::amd());
    pixels(Device::amd());
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
        let device = Device { every, ..Device::new(modules) };
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

/// Memory of a device without the addresses of the host's: pieces far apart.
struct Far(Vec<(u64, Vec<u8>)>);

impl Far {
    extern "C" fn reach(far: *mut c_void, at: u64, found: *mut Range) -> c_int {
        // SAFETY: `far` is one, and `found` is an output.
        unsafe {
            let Far(pieces) = &mut *far.cast::<Far>();
            let Some((low, bytes)) =
                pieces.iter_mut().find(|(low, all)| at.wrapping_sub(*low) < all.len() as u64)
            else {
                return 0;
            };
            let high = *low + bytes.len() as u64;
            found.write(Range { low: *low, high, bytes: bytes.as_mut_ptr() });
            1
        }
    }

    fn at(&self, address: u64) -> u8 {
        let (low, bytes) = self.0.iter().rev().find(|(low, _)| address >= *low).unwrap();
        bytes[(address - low) as usize]
    }

    /// Runs the last launches of a plan, from number `first` on, at most so many blocks of each, and
    /// returns how many it has.
    fn run(&mut self, dims: &[(i64, i64, i64)], size: i64, first: usize, blocks: u32) -> usize {
        let mut plan = Plan::new(SRC as *const u8, DST as *mut u8, Item::Bytes(size as usize));
        dims.iter().for_each(|&(n, src, dst)| plan.push(Dim { n, src, dst }));
        let all: Vec<_> = launches(&plan, i64::MAX).collect();
        for launch in &all[first.min(all.len())..] {
            let of = (&raw mut *self).cast();
            // SAFETY: the callback describes the pieces.
            unsafe {
                let grid = launch.grid[0];
                let blocks = (blocks.min(grid), grid);
                Modules::shipped().run(launch.kernel, blocks, &launch.args, Far::reach, of);
            }
        }
        all.len()
    }
}

const SRC: u64 = 1 << 44;
const DST: u64 = 1 << 45;

#[test]
fn strides_beyond_32_bits_and_more_elements_than_a_launch_has() {
    let mut random = Random(0xfa12_0000_0000_0001);
    let mut filled = |n: i64| {
        let mut bytes = vec![0; n as usize];
        random.fill(&mut bytes);
        bytes
    };
    let (rows, n, by_src, by_dst) = (70i64, 66i64, 5i64 << 32, 7i64 << 32);
    for size in [1, 2, 4, 8, 16] {
        // Rows to rows, with a gap in the source; rows to columns; columns to rows.
        for (src, dst) in [
            ([by_src, 2 * size], [by_dst, size]),
            ([by_src, size], [size, 80 * size]),
            ([size, 80 * size], [by_dst, size]),
        ] {
            let piece = 80 * 80 * size;
            let far = |base: u64, by: i64| {
                (0..rows).map(move |row| base + (row * by) as u64).take(if by > piece {
                    70
                } else {
                    1
                })
            };
            let pieces = far(SRC, src[0]).chain(far(DST, dst[0]));
            let mut memory = Far(pieces.map(|low| (low, filled(piece))).collect());
            memory.run(&[(rows, src[0], dst[0]), (n, src[1], dst[1])], size, 0, u32::MAX);
            for (row, i, byte) in
                (0..rows * n * size).map(|k| (k / n / size, k / size % n, k % size))
            {
                let from = SRC + (row * src[0] + i * src[1] + byte) as u64;
                let to = DST + (row * dst[0] + i * dst[1] + byte) as u64;
                assert_eq!(memory.at(from), memory.at(to), "{size} {row} {i}");
            }
        }
        // The last of two launches.
        let (most, more) = (1i64 << 27, 1000);
        let pieces = [(SRC, 2 * size), (DST, size)]
            .map(|(base, step)| (base + (most * step) as u64, filled(more * step)));
        let mut memory = Far(pieces.into());
        let last = [(most + more, 2 * size, size)];
        assert_eq!(memory.run(&last, size, 1, u32::MAX), 2);
        for k in most * size..(most + more) * size {
            let from = SRC + (k / size * 2 * size + k % size) as u64;
            assert_eq!(memory.at(from), memory.at(DST + k as u64), "{size} {k}");
        }
    }
}

/// The first blocks of the largest grid work on the first units and, in later turns, on those after
/// the last block's. An image is a unit here, or four; no others are in memory.
#[test]
fn more_work_than_a_grid_has_blocks() {
    const BLOCKS: i64 = 4;
    let mut random = Random(0xb10c_0000_0000_0001);
    for (size, turns, units, inner) in [
        (4, 4, 1, vec![(256, 8, 4)]),
        (16, 4, 1, vec![(256, 32, 16)]),
        (2, 2, 1, vec![(512, 4, 2)]),
        (8, 1, 4, vec![(33, 8, 528), (65, 272, 8)]),
        (1, 1, 1, vec![(3, 1, 160), (150, 3, 1)]),
        (2, 1, 1, vec![(150, 2, 6), (3, 320, 2)]),
    ] {
        let extent = |step: fn(&(i64, i64, i64)) -> i64| {
            (inner.iter().map(|d| (d.0 - 1) * step(d)).sum::<i64>() + size + 95) / 32 * 32
        };
        let (src, dst) = (extent(|d| d.1), extent(|d| d.2));
        let first = |turn: i64| (turn << 16) / units;
        let images: Vec<_> =
            (0..=turns).flat_map(|turn| first(turn)..first(turn) + BLOCKS / units).collect();
        let mut filled = |n: i64| {
            let mut bytes = vec![0; n as usize];
            random.fill(&mut bytes);
            bytes
        };
        let mut pieces = vec![];
        for (base, step) in [(SRC, src), (DST, dst)] {
            pieces.extend(images.iter().map(|&i| (base + (i * step) as u64, filled(step))));
        }
        let mut memory = Far(pieces);
        let mut dims = vec![(first(turns) + BLOCKS / units, src, dst)];
        dims.extend(&inner);
        assert_eq!(memory.run(&dims, size, 0, BLOCKS as u32), 1, "{dims:?}");
        let none = (1, 0, 0);
        let (outer, last) = (if inner.len() > 1 { inner[0] } else { none }, inner[inner.len() - 1]);
        for (i, a, b) in images
            .iter()
            .flat_map(|&i| (0..outer.0).flat_map(move |a| (0..last.0).map(move |b| (i, a, b))))
        {
            for byte in 0..size {
                let from = SRC + (i * src + a * outer.1 + b * last.1 + byte) as u64;
                let to = DST + (i * dst + a * outer.2 + b * last.2 + byte) as u64;
                assert_eq!(memory.at(from), memory.at(to), "{size}: image {i}, {a}, {b}");
            }
        }
    }
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

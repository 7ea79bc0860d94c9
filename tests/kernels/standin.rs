//! The stand-in's interpreter of PTX, and kernels.cu with AMD's lines compiled for the host, as
//! devices that carry out plans.
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use dlpack_rs::gpu::kernels::{FAMILIES, Family, KernelArgs, Launch, PTX};
use dlpack_rs::gpu::launches::Launches;
use dlpack_rs::plan::Plan;

use crate::model::{Closed, Run, without};

/// `program_range` and the functions of c_tests/standin/program.h.
#[repr(C)]
pub struct Range {
    pub low: u64,
    pub high: u64,
    pub bytes: *mut u8,
}
pub type Memory = extern "C" fn(*mut c_void, u64, *mut Range) -> c_int;
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
pub struct Modules([*mut c_void; FAMILIES]);

// SAFETY: what threads share of a program is atomic.
unsafe impl Sync for Modules {}
// SAFETY: as above.
unsafe impl Send for Modules {}

impl Modules {
    pub fn new(text: &str) -> Modules {
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

    pub fn shipped() -> &'static Modules {
        static SHIPPED: OnceLock<Modules> = OnceLock::new();
        SHIPPED.get_or_init(|| Modules::new(PTX.to_str().unwrap()))
    }

    /// Runs the first blocks of a grid of so many.
    ///
    /// # Safety
    /// The callback describes memory that may be used.
    pub unsafe fn run(
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
    pub fn instructions(&self) -> impl Iterator<Item = (String, bool)> {
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
pub struct Device<'a> {
    by: By<'a>,
    /// The maximum number of elements per launch.
    limit: i64,
    /// Maximum blocks of a launch: each repeats until no work is left.
    blocks: u32,
    /// Of the cases that take longest, each one of so many.
    pub every: usize,
}

impl Device<'_> {
    pub fn new(modules: &Modules) -> Device<'_> {
        Device { by: By::Ptx(modules), limit: i64::MAX, blocks: u32::MAX, every: 1 }
    }

    pub fn cut(self, limit: i64) -> Self {
        Device { limit, ..self }
    }

    pub fn few_blocks(self, blocks: u32) -> Self {
        Device { blocks, ..self }
    }

    /// With the lines of kernels.cu that are for AMD's compiler; an error on a GPU (a misaligned
    /// access) or undefined behaviour (a shift that is too large) ends the test.
    pub fn amd() -> Device<'static> {
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

pub fn launches(plan: &Plan, limit: i64) -> impl Iterator<Item = Launch> {
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

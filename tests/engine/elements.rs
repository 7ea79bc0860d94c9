//! Functions that write elements (copies, copies within one memory, fills, conversions, copies from
//! bytes) write only these: random layouts of any kind at every level, each byte against an oracle
//! of bits, and concurrently with a thread that writes the bytes between the elements.
//!
//! `DLRS_SEED` is the first case's seed (a failure prints its seed), and `DLRS_SECONDS` limits the
//! time for cases at each level:
//! `DLRS_SEED=1 DLRS_SECONDS=60 cargo test --release --test engine differential -- --nocapture`.
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use dlpack_rs::abi::*;
use dlpack_rs::capi::cast::{dlrs_cast, dlrs_fill};
use dlpack_rs::capi::copy::dlrs_copy;
use dlpack_rs::capi::copy_options::{DLRS_COPY_ALLOW_OVERLAP, dlrs_copy_options};
use dlpack_rs::cpu::{Parallel, set_thresholds};
use dlpack_rs::plan::{Dim, Item, Plan};

use crate::model::{Case, EXTENTS, Guarded, Random, Run, memory, strides, woven};
use crate::{NEVER, SERIAL, each_level};

/// The function that writes the elements of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Writer {
    /// The engine, on one or three threads.
    Engine,
    Threads,
    /// Functions of the ABI: from elements anywhere, also in the same memory, from one element,
    /// and from numbers of fewer bits.
    Copy,
    Shared,
    Fill,
    Cast,
}

impl Run for Writer {
    unsafe fn run(&self, plan: &Plan) {
        match self {
            // SAFETY: the caller's promise.
            Writer::Engine => unsafe { SERIAL.run(plan) },
            // SAFETY: the caller's promise.
            Writer::Threads => unsafe { Parallel { threads: 3, hook: None }.run(plan) },
            _ => self.call(plan),
        }
    }
}

impl Writer {
    /// Calls the function for tensors of a plan's elements.
    fn call(&self, plan: &Plan) {
        let dims: Vec<_> = (0..plan.ndim()).map(|i| plan.dim(i)).collect();
        let (unit, width, slot) = bits(plan.item);
        let shape: Vec<_> = dims.iter().map(|dim| dim.n).collect();
        let from: Vec<_> = dims.iter().map(|dim| dim.src * unit / width).collect();
        let to: Vec<_> = dims.iter().map(|dim| dim.dst * unit / slot).collect();
        let side = |at: *mut u8, bits: i64, strides: &[i64]| DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 3 },
            manager_ctx: null_mut(),
            deleter: None,
            flags: 0,
            dl_tensor: DLTensor {
                data: at.cast(),
                device: DLDevice { device_type: 1, device_id: 0 },
                ndim: shape.len() as i32,
                dtype: dtype(bits),
                shape: shape.as_ptr().cast_mut(),
                strides: strides.as_ptr().cast_mut(),
                byte_offset: 0,
            },
        };
        let (src, mut dst) = (side(plan.src.cast_mut(), width, &from), side(plan.dst, slot, &to));
        let (src, dst, to) = (&raw const src, &raw mut dst, dtype(width));
        let options = &options(if *self == Writer::Shared { DLRS_COPY_ALLOW_OVERLAP } else { 0 });
        let (bytes, none) = (plan.src.cast(), null_mut());
        // SAFETY: tensors with separate arrays, whose elements the caller guarantees.
        let status = unsafe {
            match self {
                Writer::Fill => dlrs_fill(dst, bytes, to, options, none),
                Writer::Cast => dlrs_cast(src, dst, options, none),
                _ => dlrs_copy(src, dst, options, none),
            }
        };
        assert_eq!(status, 0, "{self:?}: {dims:?} {:?}", plan.item);
    }
}

fn options(flags: u32) -> dlrs_copy_options {
    dlrs_copy_options {
        struct_size: size_of::<dlrs_copy_options>() as u32,
        flags,
        threads: 3,
        reserved: 0,
        parallel_for: None,
        parallel_context: null_mut(),
        src_stream: null_mut(),
        dst_stream: null_mut(),
    }
}

/// Bits of a unit of strides, of an element in the source, and in the destination.
fn bits(item: Item) -> (i64, i64, i64) {
    Case { item, dims: Vec::new() }.bits()
}

/// Unsigned numbers of this many bits, of which each element has as many as it needs.
fn dtype(bits: i64) -> DLDataType {
    let one = match bits {
        1 | 2 | 4 | 8 | 16 | 32 | 64 => bits,
        _ if bits % 8 == 0 => 8,
        _ => bits & -bits,
    };
    DLDataType { code: 1, bits: one as u8, lanes: (bits / one) as u16 }
}

/// Bytes of elements.
const SIZES: [usize; 24] =
    [1, 1, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 32, 32];

/// Extents of few dimensions: of few elements, or of more than 2,048, which justify lookup tables.
fn extents(random: &mut Random) -> Vec<i64> {
    let (mut shape, mut total) = (Vec::new(), 1);
    let (least, most) = random.one_of(&[(0, 300), (2048, 6000), (2048, 6000)]);
    for _ in 0..1 + random.below(4) {
        let room = (most / total).max(1) as u64;
        let n = match random.below(4) {
            0 => 1 + random.below(room.min(70)) as i64,
            1 => random.one_of(&EXTENTS).min(room as i64),
            _ => 1 + random.below(room.min(9)) as i64,
        };
        shape.push(n);
        total *= n;
    }
    if total < least {
        let n = least.max(total) / total + 1 + random.below(40) as i64;
        shape.insert(random.below(shape.len() as u64 + 1) as usize, n);
    }
    shape
}

/// The kind of a random case's write.
fn drawn(random: &mut Random) -> (Case, Writer) {
    use Writer::*;
    let all = [Engine, Engine, Threads, Copy, Copy, Shared, Fill, Cast, Cast];
    let writer = random.one_of(&all);
    let engine = matches!(writer, Engine | Threads);
    let packed = random.below(4) == 0;
    let item = match writer {
        // A number of fewer bits is zero-extended.
        Cast => {
            let width = random.one_of(&[1, 2, 4, 8, 8, 16, 32]);
            let more: Vec<_> = [2, 4, 8, 16, 32, 64].into_iter().filter(|&n| n > width).collect();
            Item::Bits { width, dst_slot: random.one_of(&more) }
        }
        _ if packed => {
            let width = random.one_of(&[1, 2, 3, 4, 4, 4, 5, 6, 7, 9, 12, 20]);
            let more = if engine { random.one_of(&[0, 0, 1, 8]) } else { 0 };
            Item::Bits { width, dst_slot: width + more }
        }
        _ => Item::Bytes(random.one_of(&SIZES)),
    };
    let shape = extents(random);
    let (unit, width, slot) = bits(item);
    // In units of strides: the engine's, which are arbitrary, or whole elements.
    let (width, slot) = (width / unit, slot / unit);
    let (a, b) = if engine { (width, slot) } else { (1, 1) };
    let dst = woven(random, &shape, b);
    let gaps = random.below(4);
    let src: Vec<i64> = match writer {
        Fill => vec![0; shape.len()],
        _ => match random.below(4) {
            0 => woven(random, &shape, a),
            1 => compact(&shape).iter().map(|by| by * a).collect(),
            2 => vec![0; shape.len()],
            _ => strides(random, &shape, a, gaps, 1),
        },
    };
    let (by_src, by_dst) = if engine { (1, 1) } else { (width, slot) };
    let dims = shape.iter().zip(src).zip(dst);
    let dims = dims.map(|((&n, src), dst)| Dim { n, src: src * by_src, dst: dst * by_dst });
    (Case { item, dims: dims.collect() }, writer)
}

/// Strides without gaps, the last dimension innermost.
fn compact(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i];
    }
    strides
}

/// Bytes of a side that are few enough to compare every bit.
const SMALL: i64 = 1 << 20;

/// Any thresholds.
fn tune(random: &mut Random) -> String {
    let stream = random.one_of(&[0, NEVER, NEVER]);
    set_thresholds(stream, 1);
    format!("streaming from {stream}")
}

/// A copy within one memory, in which elements of both sides may overlap: as if all were read
/// before any is written.
fn check_shared(case: &Case, memory: &Guarded, random: &mut Random, what: &str) {
    let (_, width, slot) = case.bits();
    let (src, dst) = (case.extent(|d| d.src, width), case.extent(|d| d.dst, slot));
    let first = src.0.max(dst.0);
    let to = first + random.below(80) as i64;
    let bytes = memory.place((first + src.1).max(to + dst.1) as usize, random.next());
    random.fill(bytes);
    let mut expected = bytes.to_vec();
    case.oracle(bytes, first, &mut expected, to);
    let at = bytes.as_mut_ptr();
    let plan = case.plan(at.wrapping_add(first as usize), at.wrapping_add(to as usize));
    Writer::Shared.call(&plan);
    let wrong = (0..bytes.len()).find(|&i| bytes[i] != expected[i]);
    assert!(wrong.is_none(), "{what}: byte {wrong:?} of one memory differs\n{case:?}");
}

/// The seed of the current case.
static NOW: AtomicU64 = AtomicU64::new(0);

/// An access to a closed page is reported, and the instruction faults again.
extern "C" fn told(signal: i32) {
    let mut text = *b"\nDLRS_SEED=00000000000000000000 ends with a signal\n";
    let mut seed = NOW.load(Relaxed);
    for digit in text[11..31].iter_mut().rev() {
        (*digit, seed) = (b'0' + (seed % 10) as u8, seed / 10);
    }
    // SAFETY: initialized bytes, and async-signal-safe calls.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::signal(signal, libc::SIG_DFL);
    }
}

/// Random layouts, writers and thresholds.
#[test]
fn differential() {
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL] {
        // SAFETY: the handler does what handlers may.
        unsafe { libc::signal(signal, told as *const () as usize) };
    }
    let seed = std::env::var("DLRS_SEED").map_or(1, |seed| seed.parse().expect("DLRS_SEED"));
    let seconds = std::env::var("DLRS_SECONDS").ok();
    let time = seconds.map(|time| Duration::from_secs(time.parse().expect("DLRS_SECONDS")));
    let memory = memory();
    println!("DLRS_SEED={seed}");
    each_level(|level| {
        let (start, mut next, mut made) = (Instant::now(), seed, 0);
        while time.map_or(made < 1500, |time| start.elapsed() < time) {
            NOW.store(next, Relaxed);
            let mut random = Random(next | 1);
            let (tuned, (case, writer)) = (tune(&mut random), drawn(&mut random));
            let what = format!("DLRS_SEED={next} at {level:?}, {writer:?}, {tuned}");
            let small = case.bytes() < SMALL;
            if small && writer == Writer::Shared {
                check_shared(&case, &memory[0], &mut random, &what);
            } else if small {
                case.check(&memory, &mut random, &writer, &what);
            }
            (next, made) = (random.next(), made + 1);
        }
        println!("{level:?}: {made} cases");
    });
}

/// Another thread writes the bytes between the elements all the time: not even their own values may
/// be written back.
#[test]
fn bytes_of_another_thread() {
    let memory = memory();
    each_level(|level| {
        let mut random = Random(0x0e16_4b00_0000_0001);
        for _ in 0..40 {
            let (tuned, (case, writer)) = (tune(&mut random), drawn(&mut random));
            if case.bytes() < SMALL && writer != Writer::Shared {
                between(&case, &memory, &mut random, writer, &format!("{level:?}, {tuned}"));
            }
        }
    });
}

fn between(case: &Case, memory: &[Guarded; 2], random: &mut Random, writer: Writer, what: &str) {
    let (_, width, slot) = case.bits();
    let (src, dst) = (case.extent(|d| d.src, width), case.extent(|d| d.dst, slot));
    let from = memory[0].place((src.0 + src.1) as usize, random.next());
    let to = memory[1].place((dst.0 + dst.1) as usize, random.next());
    let mut theirs = vec![true; to.len()];
    case.elements(|_, d| {
        let first = d + 8 * dst.0;
        theirs[(first >> 3) as usize..=((first + slot - 1) >> 3) as usize].fill(false);
    });
    let (from, to) = (from.as_mut_ptr(), to.as_mut_ptr());
    let plan = case.plan(from.wrapping_add(src.0 as usize), to.wrapping_add(dst.0 as usize));
    let at = |&i: &usize| {
        // SAFETY: a byte between the elements, which belongs to the other thread.
        unsafe { AtomicU8::from_ptr(to.add(i)) }
    };
    let theirs: Vec<_> = (0..theirs.len()).filter(|&i| theirs[i]).map(|i| at(&i)).collect();
    let (begun, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let lost = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let (mut last, mut lost) = (0u8, 0);
            theirs.iter().for_each(|byte| byte.store(last, Relaxed));
            begun.store(true, Relaxed);
            while !done.load(Relaxed) {
                for byte in &theirs {
                    lost += usize::from(byte.load(Relaxed) != last);
                    byte.store(last.wrapping_add(1), Relaxed);
                }
                last = last.wrapping_add(1);
            }
            lost
        });
        while !begun.load(Relaxed) {
            std::thread::yield_now();
        }
        for _ in 0..30 {
            // SAFETY: all elements lie in both memories.
            unsafe { writer.run(&plan) };
        }
        done.store(true, Relaxed);
        other.join().unwrap()
    });
    assert_eq!(lost, 0, "{what}, {writer:?}: bytes between the elements were written\n{case:?}");
}

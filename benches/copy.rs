//! CPU copies next to libc's memcpy: `cargo bench --bench copy [-- filter]`.
//!
//! Each figure is the median, over pairs measured one after the other, of memcpy's time for the
//! same bytes divided by ours: 1.0 is memcpy's speed, 2.0 twice as fast. Hence a timer of its own:
//! divan, which `make bench-micro` uses, makes no pairs. `LEVEL=avx512|avx2|portable`,
//! `PAGES=small` (no huge pages), `SKIP=bytes` (to misalign both sides), `STREAM=bytes`,
//! `TUNE=amd|zen5|usual`, `COLD=MiB` (so many are read and written before each copy, that it begins
//! with other bytes in the caches) and `BUSY=1` (this thread's time instead of the clock's, and one
//! thread only: for a machine with other work) change the run. `PROFILE=1` makes one copy of the
//! first row and nothing else, in [`profiled`], for `profile.sh`, by so many threads as it says.

use dlpack_rs::device::cpu::{Level, Make, Parallel, copy, set_level, set_make, set_thresholds};
use dlpack_rs::device::plan::{Dim, Item, Plan};

/// Whether callgrind counts: what is copied is no matter then, and takes long to write.
fn profiling() -> bool {
    std::env::var_os("PROFILE").is_some()
}

/// Mapped, touched memory, in huge pages where there are any: what NumPy allocates.
struct Memory(*mut u8);

impl Memory {
    fn new(n: usize, seed: u64) -> Memory {
        let (mode, how) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh mapping with room for 2 MiB alignment, filled once.
        unsafe {
            let all = n + (4 << 20);
            let base: *mut u8 = libc::mmap(std::ptr::null_mut(), all, mode, how, -1, 0).cast();
            assert_ne!(base.cast(), libc::MAP_FAILED);
            let base = base.add(base.align_offset(2 << 20));
            if std::env::var("PAGES").as_deref() != Ok("small") {
                libc::madvise(base.cast(), n, libc::MADV_HUGEPAGE);
            }
            let mut x = seed | 1;
            for i in 0..if profiling() { 0 } else { n / 8 } {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                base.cast::<u64>().add(i).write(x);
            }
            Memory(base)
        }
    }
}

/// One row of the table: destination shape, and both strides, in elements of `item`.
struct Row {
    name: &'static str,
    target: f64,
    item: Item,
    /// Extent, source stride, destination stride; in elements (bits for packed items).
    dims: Vec<(i64, i64, i64)>,
}

impl Row {
    fn plan(&self, src: *const u8, dst: *mut u8) -> Plan {
        let unit = if let Item::Bytes(n) = self.item { n as i64 } else { 1 };
        let mut plan = Plan::new(src, dst, self.item);
        for &(n, src, dst) in &self.dims {
            plan.push(Dim { n, src: src * unit, dst: dst * unit });
        }
        plan
    }
}

/// The transpose of a compact source: `shape` and `axes` as NumPy's `transpose` takes them.
fn permuted(shape: &[i64], axes: &[usize]) -> Vec<(i64, i64, i64)> {
    let compact = |shape: &[i64]| -> Vec<i64> {
        (0..shape.len()).map(|i| shape[i + 1..].iter().product()).collect()
    };
    let src = compact(shape);
    let out: Vec<_> = axes.iter().map(|&a| shape[a]).collect();
    let dst = compact(&out);
    axes.iter().enumerate().map(|(i, &a)| (out[i], src[a], dst[i])).collect()
}

fn table() -> Vec<Row> {
    let row = |name, target, size, dims| Row { name, target, item: Item::Bytes(size), dims };
    let turned = |name, target, size, shape: &[i64], axes: &[usize]| {
        row(name, target, size, permuted(shape, axes))
    };
    let bits = |name, target, width, dst_slot, dims| Row {
        name,
        target,
        item: Item::Bits { width, dst_slot },
        dims,
    };
    vec![
        row("contiguous f32 64 MiB", 1.15, 4, vec![(1 << 24, 1, 1)]),
        turned("transpose f32 4096²", 0.95, 4, &[4096, 4096], &[1, 0]),
        turned("transpose f32 1024²", 0.90, 4, &[1024, 1024], &[1, 0]),
        turned("transpose f32 4095×4097", 0.90, 4, &[4095, 4097], &[1, 0]),
        turned("transpose f64 4096²", 0.95, 8, &[4096, 4096], &[1, 0]),
        turned("transpose u8 8192²", 0.85, 1, &[8192, 8192], &[1, 0]),
        turned("transpose f16 8192×4096", 0.90, 2, &[8192, 4096], &[1, 0]),
        turned("transpose c128 2048²", 0.95, 16, &[2048, 2048], &[1, 0]),
        turned("NCHW→NHWC f32 32×3×224×224", 0.90, 4, &[32, 3, 224, 224], &[0, 2, 3, 1]),
        turned("NHWC→NCHW f32 32×224×224×3", 0.90, 4, &[32, 224, 224, 3], &[0, 3, 1, 2]),
        turned("NCHW→NHWC f32 16×64×56×56", 0.95, 4, &[16, 64, 56, 56], &[0, 2, 3, 1]),
        turned(
            "reversal of axes f32 32·24·16·24·32",
            0.80,
            4,
            &[32, 24, 16, 24, 32],
            &[4, 3, 2, 1, 0],
        ),
        turned("(0,2,1,3) f32 8×16×512×64", 1.05, 4, &[8, 16, 512, 64], &[0, 2, 1, 3]),
        row("inner step 2 f32 4096×8192", 0.50, 4, vec![(4096, 8192, 4096), (4096, 2, 1)]),
        row("row step 2 f32 8192×4096", 1.0, 4, vec![(4096, 8192, 4096), (4096, 1, 1)]),
        row("broadcast column to f32 4096²", 1.6, 4, vec![(4096, 1, 4096), (4096, 0, 1)]),
        row("reversed inner axis f32 4096²", 0.95, 4, vec![(4096, 4096, 4096), (4096, -1, 1)]),
        bits("fp4 packed transpose 8192²", 0.30, 4, 4, vec![(8192, 4, 32768), (8192, 32768, 4)]),
        bits("fp6 packed transpose 8192²", 0.30, 6, 6, vec![(8192, 6, 49152), (8192, 49152, 6)]),
        bits("fp4 packed transpose 8190²", 0.30, 4, 4, vec![(8190, 4, 32760), (8190, 32760, 4)]),
        bits("fp4 packed transpose 8191²", 0.30, 4, 4, vec![(8191, 4, 32764), (8191, 32764, 4)]),
        bits("fp6 packed transpose 8190²", 0.30, 6, 6, vec![(8190, 6, 49140), (8190, 49140, 6)]),
        bits("fp6 packed transpose 8191²", 0.30, 6, 6, vec![(8191, 6, 49146), (8191, 49146, 6)]),
        bits("fp4 packed → padded 64 Mi", 0.30, 4, 8, vec![(1 << 26, 4, 8)]),
        bits("fp4 padded → packed 64 Mi", 0.30, 4, 4, vec![(1 << 26, 8, 4)]),
        bits("fp6 packed → padded 64 Mi", 0.30, 6, 8, vec![(1 << 26, 6, 8)]),
        bits("fp6 padded → packed 64 Mi", 0.30, 6, 6, vec![(1 << 26, 8, 6)]),
        bits("fp4 rows, odd phase 8191×8191", 0.30, 4, 4, vec![(8191, 32772, 32764), (8191, 4, 4)]),
        // Beyond the table: none under 0.25.
        row("broadcast row to f32 4096²", 0.25, 4, vec![(4096, 0, 4096), (4096, 1, 1)]),
        turned("transpose 3 B 4096²", 0.25, 3, &[4096, 4096], &[1, 0]),
        turned("transpose 6 B 2048²", 0.25, 6, &[2048, 2048], &[1, 0]),
        turned("transpose 12 B 2048²", 0.25, 12, &[2048, 2048], &[1, 0]),
        turned("transpose 32 B 1024²", 0.25, 32, &[1024, 1024], &[1, 0]),
        turned("transpose 100 B 777×600", 0.25, 100, &[777, 600], &[1, 0]),
        turned("transpose u8 8191×8193", 0.25, 1, &[8191, 8193], &[1, 0]),
        turned("HWC→CHW u8 32×512×512×3", 0.25, 1, &[32, 512, 512, 3], &[0, 3, 1, 2]),
        turned("CHW→HWC u8 32×3×512×512", 0.25, 1, &[32, 3, 512, 512], &[0, 2, 3, 1]),
        turned("NHWC→NCHW f32 32×224×224×4", 0.25, 4, &[32, 224, 224, 4], &[0, 3, 1, 2]),
        turned("NHWC→NCHW f32 16×56×56×64", 0.25, 4, &[16, 56, 56, 64], &[0, 3, 1, 2]),
        turned("u8 5×1000000 → 1000000×5", 0.25, 1, &[5, 1_000_000], &[1, 0]),
        turned("u8 11×1000000 → 1000000×11", 0.25, 1, &[11, 1_000_000], &[1, 0]),
        turned("u8 1000000×11 → 11×1000000", 0.25, 1, &[1_000_000, 11], &[1, 0]),
        turned(
            "f32 7·5·3·9·11·6·7·5·3 reversed",
            0.25,
            4,
            &[7, 5, 3, 9, 11, 6, 7, 5, 3],
            &[8, 7, 6, 5, 4, 3, 2, 1, 0],
        ),
        turned(
            "f32 2^22 reversed bits",
            0.25,
            4,
            &[2; 22],
            &[21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
        ),
        turned("8 B 21·18·25·5·5", 0.25, 8, &[21, 18, 25, 5, 5], &[2, 1, 0, 4, 3]),
        turned("8 B 3·15·23·22·23", 0.25, 8, &[3, 15, 23, 22, 23], &[3, 0, 4, 2, 1]),
        turned("4 B 12·10·12·5·22·6", 0.25, 4, &[12, 10, 12, 5, 22, 6], &[4, 2, 5, 3, 0, 1]),
        turned("4 B 400·300·6", 0.25, 4, &[400, 300, 6], &[0, 2, 1]),
        turned("8 B 17·9·11·9·12·4", 0.25, 8, &[17, 9, 11, 9, 12, 4], &[1, 0, 4, 2, 5, 3]),
        turned("8 B 149·13·428", 0.25, 8, &[149, 13, 428], &[0, 2, 1]),
        turned("4 B 1040²", 0.25, 4, &[1040, 1040], &[1, 0]),
        turned("4 B 40·50·60·20", 0.25, 4, &[40, 50, 60, 20], &[3, 2, 1, 0]),
        turned("8 B 2047·4099", 0.25, 8, &[2047, 4099], &[1, 0]),
        turned("2 B 4097·8191", 0.25, 2, &[4097, 8191], &[1, 0]),
        turned("4 B 100·300·1000", 0.25, 4, &[100, 300, 1000], &[0, 2, 1]),
        turned("NCHW→NHWC f32 32×64×56×56", 0.25, 4, &[32, 64, 56, 56], &[0, 2, 3, 1]),
        turned("NCHW→NHWC f16 16×128×56×56", 0.25, 2, &[16, 128, 56, 56], &[0, 2, 3, 1]),
        turned("4 B 262·2037", 0.25, 4, &[262, 2037], &[1, 0]),
        turned("16 B 61·2018", 0.25, 16, &[61, 2018], &[1, 0]),
        turned("16 B 4·6·17·5·7·7", 0.25, 16, &[4, 6, 17, 5, 7, 7], &[0, 2, 5, 1, 3, 4]),
        turned("16 B 19·33·127", 0.25, 16, &[19, 33, 127], &[1, 2, 0]),
        turned("1 B 14·11·16·30·6·13", 0.25, 1, &[14, 11, 16, 30, 6, 13], &[1, 3, 4, 2, 5, 0]),
        turned("2 B 15·24·18·3·11·6", 0.25, 2, &[15, 24, 18, 3, 11, 6], &[1, 2, 5, 4, 3, 0]),
        turned("1 B 838·68·22", 0.25, 1, &[838, 68, 22], &[0, 2, 1]),
        turned("8 B 12·12·11·3·4·8", 0.25, 8, &[12, 12, 11, 3, 4, 8], &[2, 0, 5, 4, 3, 1]),
        turned("4 B 10·92·12·28", 0.25, 4, &[10, 92, 12, 28], &[1, 3, 0, 2]),
        turned("1 B 6000·63·7", 0.25, 1, &[6000, 63, 7], &[0, 2, 1]),
        turned("3 B 35·1369·91", 0.25, 3, &[35, 1369, 91], &[2, 1, 0]),
        turned("3 B 300·700", 0.25, 3, &[300, 700], &[1, 0]),
        turned("3 B 22·12·15·5·3·6", 0.25, 3, &[22, 12, 15, 5, 3, 6], &[0, 1, 3, 5, 2, 4]),
        turned("3 B 12·18·3·9·23·3", 0.25, 3, &[12, 18, 3, 9, 23, 3], &[0, 4, 2, 3, 5, 1]),
        turned("5 B 8·56·9·69", 0.25, 5, &[8, 56, 9, 69], &[0, 1, 3, 2]),
        turned("6 B 16·112·6·7·22", 0.25, 6, &[16, 112, 6, 7, 22], &[3, 1, 0, 4, 2]),
        turned("7 B 5·9·23·10·27", 0.25, 7, &[5, 9, 23, 10, 27], &[1, 2, 0, 4, 3]),
        turned("7 B 7·10·10·20·21·7", 0.25, 7, &[7, 10, 10, 20, 21, 7], &[5, 0, 3, 1, 2, 4]),
        turned("1 B 19·13·10·6·75", 0.25, 1, &[19, 13, 10, 6, 75], &[3, 0, 2, 4, 1]),
        turned("1 B 7·36·85·185", 0.25, 1, &[7, 36, 85, 185], &[2, 1, 3, 0]),
        turned("2 B 26·16·12·5·48", 0.25, 2, &[26, 16, 12, 5, 48], &[3, 1, 0, 4, 2]),
        turned("4 B 5·9·6·13·8·20", 0.25, 4, &[5, 9, 6, 13, 8, 20], &[4, 2, 3, 1, 5, 0]),
        turned("16 B 95·53·57", 0.25, 16, &[95, 53, 57], &[2, 1, 0]),
        turned("16 B 718·1375", 0.25, 16, &[718, 1375], &[1, 0]),
        turned("16 B 5·21·8·13·11", 0.25, 16, &[5, 21, 8, 13, 11], &[2, 4, 0, 3, 1]),
        turned("8 B 79·1950", 0.25, 8, &[79, 1950], &[1, 0]),
        turned("8 B 353·1800", 0.25, 8, &[353, 1800], &[1, 0]),
        turned("4 B 19·50·18·9·5·5", 0.25, 4, &[19, 50, 18, 9, 5, 5], &[1, 3, 5, 0, 4, 2]),
        turned("1 B 11·9·17·70·46·15", 0.25, 1, &[11, 9, 17, 70, 46, 15], &[4, 3, 0, 5, 1, 2]),
        turned("21 B 5·17·17·7·13", 0.25, 21, &[5, 17, 17, 7, 13], &[2, 1, 4, 3, 0]),
        turned("30 B 36·144·71", 0.25, 30, &[36, 144, 71], &[2, 0, 1]),
        turned("80 B 7·16·3·3·14", 0.25, 80, &[7, 16, 3, 3, 14], &[3, 4, 1, 0, 2]),
        turned("16 B 42·8·251", 0.25, 16, &[42, 8, 251], &[0, 2, 1]),
        turned("9 B 4·19·26·11·4·10", 0.25, 9, &[4, 19, 26, 11, 4, 10], &[4, 5, 3, 1, 2, 0]),
        turned("10 B 563·1753", 0.25, 10, &[563, 1753], &[1, 0]),
        turned("6 B 100·1000·3", 0.25, 6, &[100, 1000, 3], &[0, 2, 1]),
        turned("6 B 100·3·1000", 0.25, 6, &[100, 3, 1000], &[0, 2, 1]),
        turned("3 B 64·5·1000", 0.25, 3, &[64, 5, 1000], &[0, 2, 1]),
        turned("3 B 64·1000·5", 0.25, 3, &[64, 1000, 5], &[0, 2, 1]),
        row("f32 [:, ::-1] of 1000000×5", 0.25, 4, vec![(1_000_000, 5, 5), (5, -1, 1)]),
        row("f32 [:, :5] of 1000000×7", 0.25, 4, vec![(1_000_000, 7, 5), (5, 1, 1)]),
        row("f32 [:, ::-1] of 20000×5", 0.25, 4, vec![(20_000, 5, 5), (5, -1, 1)]),
        row("f32 [:, :5] of 20000×7", 0.25, 4, vec![(20_000, 7, 5), (5, 1, 1)]),
        row("f32 [:, :9] of 500000×13", 0.25, 4, vec![(500_000, 13, 9), (9, 1, 1)]),
        row("f32 [:, :20] of 30000×27", 0.25, 4, vec![(30_000, 27, 20), (20, 1, 1)]),
        row("f32 [:, 1:] of 10000×20", 0.25, 4, vec![(10_000, 20, 19), (19, 1, 1)]),
        row("f32 [:, 1:] of 10000×25", 0.25, 4, vec![(10_000, 25, 24), (24, 1, 1)]),
        row("f32 into every 2nd column", 0.25, 4, vec![(4096, 4096, 8192), (4096, 1, 2)]),
        row("u8 into every 2nd column", 0.25, 1, vec![(4096, 4096, 8192), (4096, 1, 2)]),
        row("fill u8 8192²", 0.25, 1, vec![(8192, 1, 8192), (8192, 0, 1)]),
        row("fill f16 4096²", 0.25, 2, vec![(4096, 1, 4096), (4096, 0, 1)]),
        row("fill f64 4096²", 0.25, 8, vec![(4096, 1, 4096), (4096, 0, 1)]),
        row("fill c128 2048²", 0.25, 16, vec![(2048, 1, 2048), (2048, 0, 1)]),
        row("fill 12 B 2048²", 0.25, 12, vec![(2048, 1, 2048), (2048, 0, 1)]),
        row("fill f32 65536×250", 0.25, 4, vec![(65536, 1, 250), (250, 0, 1)]),
        row("fill f32 1000000×20", 0.25, 4, vec![(1000000, 1, 20), (20, 0, 1)]),
        row("fill f32 4096×1024", 0.25, 4, vec![(4096, 1, 1024), (1024, 0, 1)]),
        row("fill f32 64×1024", 0.25, 4, vec![(64, 1, 1024), (1024, 0, 1)]),
        row("fill f32 64 Mi", 0.25, 4, vec![(1 << 26, 0, 1)]),
        row("fill f32 1 Mi", 0.25, 4, vec![(1 << 20, 0, 1)]),
        row("back u8 8192²", 0.25, 1, vec![(8192, 8192, 8192), (8192, -1, 1)]),
        row("back f16 4096²", 0.25, 2, vec![(4096, 4096, 4096), (4096, -1, 1)]),
        row("back f64 2048×4096", 0.25, 8, vec![(2048, 4096, 4096), (4096, -1, 1)]),
        row("back c128 2048²", 0.25, 16, vec![(2048, 2048, 2048), (2048, -1, 1)]),
        row("back 32 B 1024×2048", 0.25, 32, vec![(1024, 2048, 2048), (2048, -1, 1)]),
        row("back f32 16384×1000", 0.25, 4, vec![(16384, 1000, 1000), (1000, -1, 1)]),
        row("back f32 65536×250", 0.25, 4, vec![(65536, 250, 250), (250, -1, 1)]),
        row("back f32 1024²", 0.25, 4, vec![(1024, 1024, 1024), (1024, -1, 1)]),
        row("back f32 128×256", 0.25, 4, vec![(128, 256, 256), (256, -1, 1)]),
        row("back step 3 f32 4096²", 0.25, 4, vec![(4096, 12288, 4096), (4096, -3, 1)]),
        row("back step 3 c128 1024²", 0.25, 16, vec![(1024, 3072, 1024), (1024, -3, 1)]),
        row("back one run f32 16 Mi", 0.25, 4, vec![(1 << 24, -1, 1)]),
        row("back one run c128 4 Mi", 0.25, 16, vec![(1 << 22, -1, 1)]),
        row("f32 diagonal blocks step 17", 0.25, 4, vec![(1 << 20, 17, 1)]),
        row("RGB→BGR u8 1080×1920", 0.25, 1, vec![(2_073_600, 3, 3), (3, -1, 1)]),
        row("RGB→BGR u8 64×64", 0.25, 1, vec![(4096, 3, 3), (3, -1, 1)]),
        row("RGB→BGR u8 28×28", 0.25, 1, vec![(784, 3, 3), (3, -1, 1)]),
        row("f32 1000×3×3", 0.25, 4, vec![(1000, 9, 9), (3, 1, 3), (3, 3, 1)]),
        row("f32 xyz of xyzw 1000×4", 0.25, 4, vec![(1000, 4, 3), (3, 1, 1)]),
        row("f32 into every 2nd of 2000", 0.25, 4, vec![(2000, 1, 2)]),
        row("RGBA→RGB u8 1080×1920", 0.25, 1, vec![(2_073_600, 4, 3), (3, 1, 1)]),
        row("gray→RGB u8 1080×1920", 0.25, 1, vec![(2_073_600, 1, 3), (3, 0, 1)]),
        row("left to right u8 1080×1920×3", 0.25, 3, vec![(1080, 1920, 1920), (1920, -1, 1)]),
        row(
            "every 2nd pixel u8 540×960×3",
            0.25,
            1,
            vec![(540, 11520, 2880), (960, 6, 3), (3, 1, 1)],
        ),
        row("xyz of xyzw f32 1000000×4", 0.25, 4, vec![(1_000_000, 4, 3), (3, 1, 1)]),
        turned("f32 50000×3×3", 0.25, 4, &[50_000, 3, 3], &[0, 2, 1]),
        turned("f32 50000×4×4", 0.25, 4, &[50_000, 4, 4], &[0, 2, 1]),
        turned("f64 50000×3×3", 0.25, 8, &[50_000, 3, 3], &[0, 2, 1]),
        turned("f64 50000×4×4", 0.25, 8, &[50_000, 4, 4], &[0, 2, 1]),
        turned("HWC→CHW u8 224×224×3", 0.25, 1, &[224, 224, 3], &[2, 0, 1]),
        row("RGB into RGBA u8 1080×1920", 0.25, 1, vec![(2_073_600, 3, 4), (3, 1, 1)]),
        row("BGR into RGBA u8 1080×1920", 0.25, 1, vec![(2_073_600, 3, 4), (3, -1, 1)]),
        row("CHW into RGBA u8 1080×1920", 0.25, 1, vec![(2_073_600, 1, 4), (3, 2_073_600, 1)]),
        row("gray into R of RGB u8 1080×1920", 0.25, 1, vec![(2_073_600, 1, 3)]),
        row("alpha of RGBA u8 1080×1920", 0.25, 1, vec![(2_073_600, 0, 4)]),
        row("f64 into every 2nd column", 0.25, 8, vec![(1000, 1000, 2000), (1000, 1, 2)]),
        row("xyz into xyzw f32 1000000×4", 0.25, 4, vec![(1_000_000, 3, 4), (3, 1, 1)]),
        row("f32 into 5 of 7 of 20000", 0.25, 4, vec![(20_000, 5, 7), (5, 1, 1)]),
        row("c128 into every 2nd", 0.25, 16, vec![(100_000, 1, 2)]),
        row("f32 into every 5th", 0.25, 4, vec![(100_000, 1, 5)]),
        row("u8 into every 10th", 0.25, 1, vec![(100_000, 1, 10)]),
        row("f32 every 10th of 1000000", 0.25, 4, vec![(100_000, 10, 1)]),
        row("u8 every 10th of 10000000", 0.25, 1, vec![(1_000_000, 10, 1)]),
        row("fill f32 [:, 100:200] of 10000×300", 0.25, 4, vec![(10_000, 0, 300), (100, 0, 1)]),
        row(
            "f16 512·32·64·2 (0, 1, 3, 2)",
            0.25,
            2,
            vec![(16_384, 128, 128), (2, 1, 64), (64, 2, 1)],
        ),
        row("both reversed f32 4096²", 0.25, 4, vec![(4096, 4096, -4096), (4096, 1, -1)]),
    ]
}

/// Seconds that `work` takes: on the clock, or, for a machine with other work, of this thread.
fn time(mut work: impl FnMut(), busy: bool) -> f64 {
    let now = || {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let clock = if busy { libc::CLOCK_THREAD_CPUTIME_ID } else { libc::CLOCK_MONOTONIC };
        // SAFETY: `now` is writable.
        unsafe { libc::clock_gettime(clock, &raw mut now) };
        now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
    };
    let start = now();
    work();
    now() - start
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What callgrind counts.
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn profiled(plan: &mut Plan) {
    let threads = std::env::var("PROFILE").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    // SAFETY: a row of the table, which fits into both mappings.
    unsafe { copy(plan, &Parallel { threads, hook: None }) }.unwrap();
}

fn main() {
    let filter: Vec<_> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    match std::env::var("LEVEL").as_deref() {
        Ok("portable") => assert!(set_level(Level::Portable)),
        Ok("avx2") => assert!(set_level(Level::Avx2)),
        Ok("avx512") => assert!(set_level(Level::Avx512)),
        _ => {}
    }
    if let Some(from) = std::env::var("STREAM").ok().and_then(|n| n.parse().ok()) {
        set_thresholds(from, 1 << 20);
    }
    if let Ok(make) = std::env::var("TUNE") {
        set_make(match make.as_str() {
            "amd" => Make::Amd,
            "zen5" => Make::Zen5,
            _ => Make::Usual,
        });
    }
    let busy = std::env::var_os("BUSY").is_some();
    let (src, dst) = (Memory::new(288 << 20, 1), Memory::new(288 << 20, 2));
    let skip = std::env::var("SKIP").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let (src, dst) = (Memory(src.0.wrapping_add(skip)), Memory(dst.0.wrapping_add(skip)));
    let cold = std::env::var("COLD").ok().and_then(|n| n.parse().ok()).unwrap_or(0usize) << 20;
    let others = Memory::new(cold, 3);
    let chill = || {
        for at in (0..cold).step_by(64).map(|i| others.0.wrapping_add(i)) {
            // SAFETY: a byte of that mapping.
            unsafe { at.write_volatile(at.read_volatile().wrapping_add(1)) };
        }
    };
    println!(
        "{:38} {:>8} {:>8} {:>7} {:>7} {:>6}",
        "case", "GB/s", "memcpy", "ratio", "2 thr", "target"
    );
    for row in table() {
        if !filter.is_empty() && !filter.iter().any(|f| row.name.contains(f.as_str())) {
            continue;
        }
        let plan = row.plan(src.0, dst.0);
        let n = plan.nbytes() as usize;
        // What runs backwards begins at the other end.
        let unit = if let Item::Bytes(n) = row.item { n as i64 } else { 1 };
        let ends = |of: fn(&(i64, i64, i64)) -> i64| {
            (-unit * row.dims.iter().map(|d| (of(d) * (d.0 - 1)).min(0)).sum::<i64>()) as isize
        };
        let (from, to) =
            (src.0.wrapping_offset(ends(|d| d.1)), dst.0.wrapping_offset(ends(|d| d.2)));
        let mut plan = Plan { src: from, dst: to, ..plan };
        if profiling() {
            profiled(&mut plan);
            println!("{} {n}", row.name);
            return;
        }
        let ours = |threads| {
            chill();
            // SAFETY: every row of the table fits into both mappings.
            let copy = || unsafe { copy(&mut { plan }, &Parallel { threads, hook: None }) };
            time(|| copy().unwrap(), busy)
        };
        let theirs = || {
            chill();
            // SAFETY: as above.
            time(|| unsafe { _ = libc::memcpy(dst.0.cast(), src.0.cast(), n) }, busy)
        };
        let ours_two = || if busy { 0.0 } else { ours(2) };
        _ = (ours(1), theirs(), ours_two());
        let repeats = ((400 << 20) / n).clamp(9, 41);
        let runs: Vec<_> = (0..repeats).map(|_| (ours(1), theirs(), ours_two())).collect();
        let one = median(runs.iter().map(|r| r.1 / r.0).collect());
        let two = median(runs.iter().map(|r| r.0 / r.2).collect());
        let speed = |t: f64| n as f64 / t / 1e9;
        let (a, b) = (
            median(runs.iter().map(|r| r.0).collect()),
            median(runs.iter().map(|r| r.1).collect()),
        );
        let mark = if one < row.target { "  <" } else { "" };
        println!(
            "{:38} {:8.2} {:8.2} {one:7.2} {two:7.2} {:6.2}{mark}",
            row.name,
            speed(a),
            speed(b),
            row.target,
        );
    }
}

//! The kernels of kernels.cu and their argument. Arithmetic only; no driver calls.
use core::ffi::CStr;

use super::packed::Packed;
use crate::plan::Dim;

/// A file that the build script wrote.
macro_rules! built {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name))
    };
}

const fn text(bytes: &'static [u8]) -> &'static CStr {
    match CStr::from_bytes_with_nul(bytes) {
        Ok(text) => text,
        Err(_) => panic!(),
    }
}

/// The kernels for CUDA: PTX for compute capability 5.0, generated from kernels.cu by generate.py.
pub const PTX: &CStr = text(built!("kernels.ptx"));

/// The kernels for ROCm, which compiles a family of them on first use: kernels.cu.
pub const SOURCE: &CStr = text(built!("kernels.cu"));

static PTX_KEPT: [u8; built!("kernels.ptx.packed").len()] = *built!("kernels.ptx.packed");
static SOURCE_KEPT: [u8; built!("kernels.cu.packed").len()] = *built!("kernels.cu.packed");

/// [`PTX`], as stored in the library.
pub static CUDA: Packed = Packed { bytes: &PTX_KEPT, nbytes: PTX.count_bytes() + 1 };
/// [`SOURCE`], as stored in the library.
pub static ROCM: Packed = Packed { bytes: &SOURCE_KEPT, nbytes: SOURCE.count_bytes() + 1 };

/// Kernels that are loaded together, on first use of one of them: a driver takes several times as
/// long to compile all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Family(usize);

/// Number of families.
pub const FAMILIES: usize = 5;
/// Prefixes of their kernels' names.
const NAMES: [&[&[u8]]; FAMILIES] = [
    &[b"dlrs_run"],
    &[b"dlrs_transpose"],
    &[b"dlrs_tile"],
    &[b"dlrs_planes", b"dlrs_pixels"],
    &[b"dlrs_bits"],
];
/// Compiler options for [`SOURCE`], per family.
const OPTIONS: [&CStr; FAMILIES] = [
    c"-DDLRS_KERNELS=1",
    c"-DDLRS_KERNELS=2",
    c"-DDLRS_KERNELS=4",
    c"-DDLRS_KERNELS=8",
    c"-DDLRS_KERNELS=16",
];
/// The text before a kernel's name in [`PTX`].
const ENTRY: &[u8] = b".visible .entry ";

impl Family {
    /// The family of the kernel whose name is a prefix of this text.
    pub fn of(text: &[u8]) -> Option<Family> {
        let begins = |names: &&[&[u8]]| names.iter().any(|name| text.starts_with(name));
        NAMES.iter().position(begins).map(Family)
    }

    /// Its number, less than [`FAMILIES`].
    pub fn number(self) -> usize {
        self.0
    }

    /// The compiler option for [`SOURCE`].
    pub fn option(self) -> &'static CStr {
        OPTIONS.get(self.0).copied().unwrap_or(c"")
    }

    /// Replaces all other families in [`PTX`] with blanks.
    pub fn leave(self, ptx: &mut [u8]) {
        let mut mine = true;
        for line in ptx.split_mut(|&byte| byte == b'\n') {
            if let Some(name) = line.strip_prefix(ENTRY) {
                mine = Family::of(name) == Some(self);
            }
            if !mine && !line.ends_with(b"\0") {
                line.fill(b' ');
            }
        }
    }
}

/// Threads per block.
const THREADS: u32 = 256;
/// Maximum blocks of a launch; a kernel loops until no work is left.
const MAX_BLOCKS: u64 = 1 << 16;
/// Maximum dimensions of a launch: up to 24 of a tensor, and one for the parts of its elements.
pub(super) const MAX_DIGITS: usize = 25;
/// Logarithms: bytes of shared memory for tiles, and maximum tiles per block.
const ROOM_LOG: u32 = 14;
const TILES_LOG: u32 = 6;
/// Maximum bytes of pixels per block; minimum and maximum pixels per block.
const PIXELS_NBYTES: i64 = 12 << 10;
const PIXELS_LEAST_LOG: u32 = 7;
const PIXELS_LOG: u32 = 12;
/// Number of blocks that saturates a large device.
const BUSY_BLOCKS: i64 = 1 << 10;
/// One launch. The launches of a plan run in order on a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Launch {
    /// The kernel's name in [`PTX`] and [`SOURCE`].
    pub kernel: &'static CStr,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// The kernel's only argument.
    pub args: KernelArgs,
}

/// One digit of an index: `Digit` in kernels.cu.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Digit {
    src: i64,
    dst: i64,
    n: u32,
    magic: u32,
    shift: u32,
    unused: u32,
}

impl Digit {
    const NONE: Digit = Digit { src: 0, dst: 0, n: 0, magic: 0, shift: 0, unused: 0 };

    fn new(Dim { n, src, dst }: Dim) -> Digit {
        let n = (n as u32).max(1);
        let shift = n.next_power_of_two().trailing_zeros();
        let over = ((1u64 << shift) - u64::from(n)) << 32;
        let magic = over.checked_div(u64::from(n)).unwrap_or(0) as u32 + 1;
        Digit { src, dst, n, magic, shift, unused: 0 }
    }
}

/// The argument of every kernel: `Args` in kernels.cu, where each kernel documents its fields.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelArgs {
    src: u64, // device addresses, 64 bits also where the host's have 32
    dst: u64,
    src_step: i64,
    dst_step: i64,
    count: u32,
    ndim: u32,
    n: [u32; 2],
    lead: [u32; 2],
    log: [u32; 3],
    width: [u32; 2],
    unused: u32,
    pick: [[u32; 3]; 4],
    row: Digit,
    digit: [Digit; MAX_DIGITS],
}

const _: () = assert!(size_of::<KernelArgs>() == 960, "Args in kernels.cu has another size");

impl KernelArgs {
    /// An argument for one element without dimensions.
    pub(super) fn at(src: *const u8, dst: *mut u8) -> KernelArgs {
        KernelArgs {
            src: src.expose_provenance() as u64,
            dst: dst.expose_provenance() as u64,
            src_step: 0,
            dst_step: 0,
            count: 1,
            ndim: 0,
            n: [0; 2],
            lead: [0; 2],
            log: [0; 3],
            width: [0; 2],
            unused: 0,
            pick: [[0; 3]; 4],
            row: Digit::NONE,
            digit: [Digit::NONE; MAX_DIGITS],
        }
    }

    /// Adds the next slower digit.
    fn push(&mut self, dim: Dim) {
        if let Some(place) = self.digit.get_mut(self.ndim as usize) {
            *place = Digit::new(dim);
            self.count = self.count.wrapping_mul(dim.n as u32);
            self.ndim += 1;
        }
    }

    /// A launch in which each block handles `work` of the counted units.
    fn launch(self, kernel: &'static CStr, work: u32) -> Launch {
        let blocks = u64::from(self.count).div_ceil(u64::from(work.max(1)));
        let grid = [blocks.clamp(1, MAX_BLOCKS) as u32, 1, 1];
        Launch { kernel, grid, block: [THREADS, 1, 1], args: self }
    }

    /// One element per thread and iteration.
    pub(super) fn elements(mut self, dims: &[Dim], size: u32) -> Launch {
        dims.iter().for_each(|&dim| self.push(dim));
        self.log = [0, 0, size.trailing_zeros()];
        self.launch(if size < 16 { c"dlrs_run" } else { c"dlrs_run_wide" }, 4 * THREADS)
    }

    /// Four bytes of a row per thread and iteration.
    pub(super) fn words(mut self, dims: &[Dim], size: u32) -> Launch {
        let (row, outer) = split(dims);
        let (next, beyond) = split(outer);
        let per_word = i64::from(4 / size.max(1));
        let dense = row.dst == i64::from(size);
        // Rows that are contiguous in the destination are one row, such as pixels' channels.
        let run = row.n.wrapping_mul(row.dst);
        let (turns, outer) =
            if dense && next.dst == run { (next, beyond) } else { (Dim::NONE, outer) };
        let n = row.n.wrapping_mul(turns.n);
        self.n = [n as u32, 0];
        (self.src_step, self.dst_step) = (row.src, turns.src);
        let back = row.n.wrapping_mul(row.src);
        self.row = Digit::new(Dim { src: turns.src.wrapping_sub(back), ..row });
        self.lead = [if dense { 3 } else { 0 }, 0];
        let aligned = outer.iter().fold(self.dst as i64, |all, dim| all | dim.dst) & 3 == 0;
        // A row may begin anywhere in its first word.
        let most = if dense && !aligned { n + per_word - 1 } else { n };
        let words = (most + per_word - 1) >> per_word.trailing_zeros();
        self.push(Dim { n: words, src: 0, dst: 4 });
        outer.iter().for_each(|&dim| self.push(dim));
        self.log = [0, 0, size.trailing_zeros()];
        self.launch(c"dlrs_run_narrow", 2 * THREADS)
    }

    /// Pixels through shared memory; `dims` are channels, then pixels.
    pub(super) fn pixels(mut self, dims: &[Dim], size: u32, apart: bool) -> Launch {
        let (channels, rest) = split(dims);
        let (pixels, outer) = split(rest);
        let images = outer.iter().fold(1i64, |all, dim| all.saturating_mul(dim.n));
        let fits = |log: u32| (channels.n * i64::from(size)) << log <= PIXELS_NBYTES;
        let blocks = |log: u32| ((pixels.n + (1 << log) - 1) >> log).saturating_mul(images);
        let mut log = PIXELS_LOG;
        while log > PIXELS_LEAST_LOG && (!fits(log) || blocks(log) < BUSY_BLOCKS) {
            log -= 1;
        }
        self.n = [pixels.n as u32, channels.n as u32];
        self.log = [log, 0, size.trailing_zeros()];
        self.src_step = if apart { channels.dst } else { channels.src };
        self.pick = picks(channels.n, size, apart);
        let n = (pixels.n + (1 << log) - 1) >> log;
        self.push(Dim { n, src: pixels.src << log, dst: pixels.dst << log });
        outer.iter().for_each(|&dim| self.push(dim));
        self.launch(if apart { c"dlrs_planes" } else { c"dlrs_pixels" }, 1)
    }

    /// Transposes; `dims` are columns, then rows.
    pub(super) fn tiles(self, dims: &[Dim], size: u32) -> Launch {
        let (column, rest) = split(dims);
        let (row, outer) = split(rest);
        let (down, across) = (column.n * i64::from(size), row.n * i64::from(size));
        let src = outer.iter().fold(self.src as i64 | column.src, |all, dim| all | dim.src);
        let dst = outer.iter().fold(self.dst as i64 | row.dst, |all, dim| all | dim.dst);
        let (load, store) = (access_log(src | across), access_log(dst | down));
        let nbytes =
            outer.iter().fold(down.saturating_mul(row.n), |all, d| all.saturating_mul(d.n));
        // If both sides are aligned, accesses of 16 bytes are fastest, given enough blocks.
        let aligned = (load, store) == (4, 4) && (size != 4 || nbytes >> ROOM_LOG >= BUSY_BLOCKS);
        match large(size, column.n, row.n).filter(|_| !aligned) {
            Some(tile) => self.large_tiles(tile, dims, size),
            None => self.shared_tiles(dims, size, [load, store]),
        }
    }

    /// One large tile per block, at any alignment.
    fn large_tiles(mut self, tile: Large, dims: &[Dim], size: u32) -> Launch {
        let Large { kernel, down, across, before } = tile;
        let (column, rest) = split(dims);
        let (row, outer) = split(rest);
        self.n = [column.n as u32, row.n as u32];
        self.log = [0, 0, size.trailing_zeros()];
        (self.src_step, self.dst_step) = (column.src, row.dst);
        let size = i64::from(size);
        let tiles = |n: i64, of: i64| (n + of - 1).checked_div(of).unwrap_or(0);
        let (n, src) = (tiles(column.n + before, down), column.src.wrapping_mul(down));
        self.push(Dim { n, src, dst: down * size });
        let (n, dst) = (tiles(row.n, across), row.dst.wrapping_mul(across));
        self.push(Dim { n, src: across * size, dst });
        outer.iter().for_each(|&dim| self.push(dim));
        self.launch(kernel, 1)
    }

    /// As many tiles per block as fit, with accesses of these widths.
    fn shared_tiles(mut self, dims: &[Dim], size: u32, [load, store]: [u32; 2]) -> Launch {
        let (column, rest) = split(dims);
        let (row, outer) = split(rest);
        let log = size.trailing_zeros();
        let (down, across) = (column.n << log, row.n << log);
        let down_log = run_log(down);
        // A tile so small that a block's shared memory is not filled is made wider.
        let across_log = run_log(across).max((ROOM_LOG - TILES_LOG + log).saturating_sub(down_log));
        self.n = [down as u32, across as u32];
        self.log = [down_log, across_log, log];
        (self.src_step, self.dst_step) = (column.src, row.dst);
        // Two elements of one byte are not combined.
        self.width = [load, if store < 2 { log.min(store) } else { store }];
        let tiles = |nbytes: i64, log: u32| (nbytes + (1 << log) - 1) >> log;
        let step = |stride: i64, elements_log: u32| stride.wrapping_mul(1 << elements_log);
        let (n, src) = (tiles(down, down_log), step(column.src, down_log - log));
        self.push(Dim { n, src, dst: 1 << down_log });
        let (n, dst) = (tiles(across, across_log), step(row.dst, across_log - log));
        self.push(Dim { n, src: 1 << across_log, dst });
        outer.iter().for_each(|&dim| self.push(dim));
        self.launch(c"dlrs_transpose", 1 << (ROOM_LOG + log - down_log - across_log))
    }

    /// Packed elements, a row of them innermost.
    pub(super) fn bits(mut self, dims: &[Dim], lead: [u32; 2], width: [u32; 2]) -> Launch {
        let (row, outer) = split(dims);
        self.lead = lead;
        self.n = [row.n as u32, row.dst as u32];
        self.src_step = row.src;
        self.width = width;
        let [_, phase] = lead;
        let [_, slot] = width;
        let bits = i64::from(phase) + (row.n - 1) * row.dst + i64::from(slot);
        self.push(Dim { n: (bits + 7) >> 3, src: 0, dst: 1 });
        outer.iter().for_each(|&Dim { n, src, dst }| self.push(Dim { n, src, dst: dst >> 3 }));
        self.launch(c"dlrs_bits", THREADS)
    }
}

/// A kernel for large tiles, their height and width in elements, and by how many elements a run of
/// the destination may begin before the first tile.
struct Large {
    kernel: &'static CStr,
    down: i64,
    across: i64,
    before: i64,
}

/// The kernel for elements of `size` bytes, if `down` by `across` elements fill its tiles, or half
/// of one's width.
fn large(size: u32, down: i64, across: i64) -> Option<Large> {
    const NARROW: Large = Large { kernel: c"dlrs_tile_narrow", down: 128, across: 124, before: 3 };
    const WIDE: Large = Large { kernel: c"dlrs_tile", down: 32, across: 32, before: 0 };
    let (tile, least) = match size {
        1 => (NARROW, 64),
        2 => (Large { across: 62, before: 1, ..NARROW }, 62),
        4 => (WIDE, 32),
        8 => (Large { down: 64, ..WIDE }, 32),
        _ => return None,
    };
    (down >= tile.down && across >= least).then_some(tile)
}

/// `pick` in kernels.cu for pixels that are split into planes or merged from them; zeros where
/// words of one side do not consist of few words of the other.
fn picks(channels: i64, size: u32, apart: bool) -> [[u32; 3]; 4] {
    let mut pick = [[0; 3]; 4];
    if size > 4 || channels > 4 {
        return pick;
    }
    let (channels, per_word) = (channels as u32, 4 / size.max(1));
    for (word, [low, high, both]) in (0..channels).zip(&mut pick) {
        for byte in 0..4u32 {
            let (element, rest) = (byte / size.max(1), byte % size.max(1));
            // The number of the other side's byte that is copied here.
            let from = if apart {
                (element * channels + word) * size + rest
            } else {
                let element = word * per_word + element;
                let (pixel, channel) = (element / channels.max(1), element % channels.max(1));
                4 * channel + pixel * size + rest
            };
            let place = 4 * byte;
            *if from < 8 { &mut *low } else { &mut *high } |= (from & 7) << place;
            *both |= (byte + if from < 8 { 0 } else { 4 }) << place;
        }
    }
    pick
}

/// The innermost dimension, and the others.
fn split(dims: &[Dim]) -> (Dim, &[Dim]) {
    dims.split_first().map_or((Dim::NONE, &[][..]), |(&first, rest)| (first, rest))
}

/// Logarithm of the smallest power of two that holds `nbytes`, at most 128 bytes.
fn run_log(nbytes: i64) -> u32 {
    (nbytes as u64).next_power_of_two().trailing_zeros().min(7)
}

/// Logarithm of the widest access, 16, 4, 2 or 1 bytes, that divides all of these.
fn access_log(all: i64) -> u32 {
    match all.trailing_zeros() {
        3 => 2,
        log => log.min(4),
    }
}

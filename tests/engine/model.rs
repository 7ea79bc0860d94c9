//! Random copies, an oracle that copies one bit at a time, and memory between guard pages.
use std::alloc::{Layout, alloc_zeroed};

use dlpack_rs::plan::{Dim, Item, Plan};

#[path = "../lib/random.rs"]
mod random;
pub use random::Random;

const PAGE: usize = 4096;

/// Carries out a plan.
pub trait Run {
    /// # Safety
    /// As for `dlpack_rs::cpu::copy`.
    unsafe fn run(&self, plan: &Plan);

    /// As `run`, without access to the pages of both sides that are closed.
    ///
    /// # Safety
    /// As for `run`; the content of closed pages is not needed.
    unsafe fn run_within(&self, plan: &Plan, sides: [&Closed; 2]) {
        // SAFETY: guaranteed by the caller.
        unsafe { without(sides, || self.run(plan)) }
    }
}

/// Works without access to what is closed.
///
/// # Safety
/// Its content is not needed.
pub unsafe fn without(sides: [&Closed; 2], work: impl FnOnce()) {
    // SAFETY: guaranteed by the caller; what is closed is opened again.
    unsafe {
        sides.iter().for_each(|side| side.protect(libc::PROT_NONE));
        work();
        sides.iter().for_each(|side| side.protect(libc::PROT_READ | libc::PROT_WRITE));
    }
}

/// Memory between two pages that fault. Miri has no pages, but checks the bounds of each
/// allocation.
pub struct Guarded {
    base: *mut u8,
    room: usize,
}

impl Guarded {
    pub fn new(room: usize) -> Guarded {
        let room = room.next_multiple_of(PAGE);
        if cfg!(miri) {
            return Guarded { base: std::ptr::null_mut(), room };
        }
        let read_write = libc::PROT_READ | libc::PROT_WRITE;
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh mapping, whose first and last page are then closed.
        unsafe {
            let all = room + 2 * PAGE;
            let base: *mut u8 =
                libc::mmap(std::ptr::null_mut(), all, read_write, private, -1, 0).cast();
            assert_ne!(base.cast(), libc::MAP_FAILED);
            assert_eq!(libc::mprotect(base.cast(), PAGE, libc::PROT_NONE), 0);
            assert_eq!(libc::mprotect(base.add(PAGE + room).cast(), PAGE, libc::PROT_NONE), 0);
            Guarded { base: base.add(PAGE), room }
        }
    }

    /// `n` bytes next to the lower or the upper guard page, or neither.
    #[allow(clippy::mut_from_ref)] // one block is in use at a time
    pub fn place(&self, n: usize, how: u64) -> &mut [u8] {
        assert!(n + 256 <= self.room, "{n} bytes do not fit");
        let at = match how % 4 {
            0 => 0,
            1 => 64 + how as usize / 4 % 128,
            _ => self.room - n,
        };
        if cfg!(miri) {
            // At the same offset in a cache line, and no byte behind it; never freed.
            let before = at % 64;
            let layout = Layout::from_size_align(before + n, 64).unwrap();
            // SAFETY: fresh memory of at least one byte.
            unsafe {
                return std::slice::from_raw_parts_mut(alloc_zeroed(layout).add(before), n);
            }
        }
        // SAFETY: within the mapping; one block is in use at a time.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(at), n) }
    }
}

/// The pages of a tensor's memory without its elements: these are made inaccessible, too.
pub struct Closed {
    start: usize,
    /// For each page from that on in which the memory starts.
    used: Vec<bool>,
}

impl Closed {
    fn of(memory: &[u8]) -> Closed {
        let start = memory.as_ptr() as usize;
        let pages = (start % PAGE + memory.len()).div_ceil(PAGE);
        let mut used = vec![false; pages];
        // Other data may be in the first and the last one.
        used.first_mut().into_iter().for_each(|first| *first = true);
        used.last_mut().into_iter().for_each(|last| *last = true);
        Closed { start, used }
    }

    fn keep(&mut self, bit: i64, bits: i64) {
        let at = |bit: i64| (self.start % PAGE + (bit >> 3) as usize) / PAGE;
        let (first, last) = (at(bit), at(bit + bits - 1));
        self.used[first..=last].fill(true);
    }

    /// The range of the other pages that contains an address.
    #[allow(dead_code)] // some tests close pages only
    pub fn open_at(&self, at: usize) -> Option<std::ops::Range<usize>> {
        let first = self.start & !(PAGE - 1);
        let is_open = |page: usize| self.used.get(page).is_some_and(|used| *used);
        let here = at.checked_sub(first)? / PAGE;
        let end = (here..).find(|&page| !is_open(page))?;
        let start = (0..here).rev().find(|&page| !is_open(page)).map_or(0, |page| page + 1);
        (here < end).then(|| first + start * PAGE..first + end * PAGE)
    }

    /// # Safety
    /// Their content is not needed.
    unsafe fn protect(&self, how: i32) {
        if cfg!(miri) {
            return;
        }
        let (mut page, first) = (0, self.start & !(PAGE - 1));
        while page < self.used.len() {
            let n = self.used[page..].iter().take_while(|used| !**used).count();
            if n > 0 {
                // SAFETY: the caller's promise.
                let done = unsafe { libc::mprotect((first + page * PAGE) as _, n * PAGE, how) };
                assert_eq!(done, 0);
            }
            page += n + 1;
        }
    }
}

#[derive(Clone, Debug)]
pub struct Case {
    pub item: Item,
    pub dims: Vec<Dim>,
}

impl Case {
    /// Bits per unit of stride, bits read and bits written per element.
    pub fn bits(&self) -> (i64, i64, i64) {
        match self.item {
            Item::Bytes(n) => (8, 8 * n as i64, 8 * n as i64),
            Item::Bits { width, dst_slot } => (1, width as i64, dst_slot as i64),
        }
    }

    /// Bits before and after the first element's start that a side covers.
    pub fn extent(&self, stride: impl Fn(&Dim) -> i64, element: i64) -> (i64, i64) {
        let unit = self.bits().0;
        let reach = |d: &Dim| (d.n - 1) * stride(d) * unit;
        let low: i64 = self.dims.iter().map(|d| reach(d).min(0)).sum();
        let high: i64 = self.dims.iter().map(|d| reach(d).max(0)).sum();
        ((-low + 7) / 8, (high + element + 7) / 8)
    }

    /// Bytes of the larger side.
    #[allow(dead_code)] // not all tests limit them
    pub fn bytes(&self) -> i64 {
        let (_, width, slot) = self.bits();
        let bytes = |(low, high): (i64, i64)| low + high;
        bytes(self.extent(|d| d.src, width)).max(bytes(self.extent(|d| d.dst, slot)))
    }

    /// Bit offsets of every element on both sides.
    pub fn elements(&self, mut visit: impl FnMut(i64, i64)) {
        let unit = self.bits().0;
        let mut index = vec![0; self.dims.len()];
        let (mut s, mut d) = (0, 0);
        loop {
            visit(s * unit, d * unit);
            let mut i = self.dims.len();
            loop {
                if i == 0 {
                    return;
                }
                i -= 1;
                let dim = self.dims[i];
                index[i] += 1;
                s += dim.src;
                d += dim.dst;
                if index[i] < dim.n {
                    break;
                }
                s -= dim.src * dim.n;
                d -= dim.dst * dim.n;
                index[i] = 0;
            }
        }
    }

    /// The destination's expected content, one element after the other.
    pub fn oracle(&self, src: &[u8], src_at: i64, dst: &mut [u8], dst_at: i64) {
        let (_, width, slot) = self.bits();
        let get = |bit: i64| src[(bit >> 3) as usize] >> (bit & 7) & 1;
        self.elements(|s, d| {
            let (s, d) = (s + 8 * src_at, d + 8 * dst_at);
            if matches!(self.item, Item::Bytes(_)) {
                let (s, d, n) = ((s / 8) as usize, (d / 8) as usize, (width / 8) as usize);
                dst[d..d + n].copy_from_slice(&src[s..s + n]);
                return;
            }
            for i in 0..slot {
                let value = if i < width { get(s + i) } else { 0 };
                let (byte, bit) = (((d + i) >> 3) as usize, (d + i) & 7);
                dst[byte] = dst[byte] & !(1 << bit) | value << bit;
            }
        });
    }

    pub fn plan(&self, src: *const u8, dst: *mut u8) -> Plan {
        let mut plan = Plan::new(src, dst, self.item);
        self.dims.iter().for_each(|&dim| plan.push(dim));
        plan
    }

    pub fn check(&self, memory: &[Guarded; 2], random: &mut Random, by: &dyn Run, what: &str) {
        let places = [random.next(), random.next()];
        self.check_at(places, memory, random, by, what);
    }

    pub fn check_at(
        &self,
        places: [u64; 2],
        memory: &[Guarded; 2],
        random: &mut Random,
        by: &dyn Run,
        what: &str,
    ) {
        let (_, width, slot) = self.bits();
        let (src_low, src_high) = self.extent(|d| d.src, width);
        let (dst_low, dst_high) = self.extent(|d| d.dst, slot);
        let src = memory[0].place((src_low + src_high) as usize, places[0]);
        let dst = memory[1].place((dst_low + dst_high) as usize, places[1]);
        random.fill(src);
        random.fill(dst);
        let mut expected = dst.to_vec();
        self.oracle(src, src_low, &mut expected, dst_low);
        let (mut reads, mut writes) = (Closed::of(src), Closed::of(dst));
        self.elements(|s, d| {
            reads.keep(s + 8 * src_low, width);
            writes.keep(d + 8 * dst_low, slot);
        });
        // SAFETY: both extents are mapped; the strides were made distinct; what is closed has no
        // element.
        let plan = unsafe {
            let plan = self
                .plan(src.as_ptr().add(src_low as usize), dst.as_mut_ptr().add(dst_low as usize));
            by.run_within(&plan, [&reads, &writes]);
            plan
        };
        if let Some(at) = (0..dst.len()).find(|&i| dst[i] != expected[i]) {
            let mut simple = plan;
            simple.simplify();
            let dims: Vec<_> = (0..simple.ndim()).map(|i| simple.dim(i)).collect();
            panic!("{what}: byte {at} differs\n{self:?}\n{:?} {dims:?}", simple.item);
        }
    }
}

/// Strides in which elements are distinct: a random order, random gaps, random signs.
pub fn strides(
    random: &mut Random,
    shape: &[i64],
    element: i64,
    gaps: u64,
    bit_grain: i64,
) -> Vec<i64> {
    let mut order: Vec<_> = (0..shape.len()).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    if random.below(4) == 0 {
        order.sort_by_key(|&i| std::cmp::Reverse(i));
    }
    let (mut strides, mut next) = (vec![0; shape.len()], element);
    for i in order {
        if random.below(4) < gaps {
            next += random.one_of(&[1, 2, element, element, 64, 3 * element]) * bit_grain;
        }
        strides[i] = if random.below(4) == 0 { -next } else { next };
        next *= shape[i];
    }
    strides
}

/// Strides with distinct elements of this many units, and no other property: each dimension is
/// placed wherever all of it fits, among the elements of those before it (interleaved rows,
/// elements in the gaps of others), as close together as possible, or beyond them.
pub fn woven(random: &mut Random, shape: &[i64], element: i64) -> Vec<i64> {
    let mut order: Vec<_> = (0..shape.len()).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    let (mut strides, mut starts, mut span) = (vec![0; shape.len()], vec![0], element);
    for i in order {
        let n = shape[i];
        let reach = span + random.one_of(&[0, 1, element, 7 * element, 64]);
        // Whole elements apart, or any number of units.
        let unit = random.one_of(&[1, element, element]);
        let among = (0..8).find_map(|_| {
            let by = (1 + random.below(reach as u64) as i64 + unit - 1) / unit * unit;
            distinct(&starts, span, element, n, by).then_some(by)
        });
        let by = among.filter(|_| random.below(8) > 0).unwrap_or(reach);
        strides[i] = if random.below(4) == 0 { -by } else { by };
        starts = (0..n).flat_map(|k| starts.iter().map(move |start| start + k * by)).collect();
        span += (n - 1) * by;
    }
    strides
}

/// Whether elements that start there, and their `n - 1` repetitions at this distance, share no
/// unit.
fn distinct(starts: &[i64], span: i64, element: i64, n: i64, by: i64) -> bool {
    let mut taken = vec![false; (span + (n - 1) * by) as usize];
    (0..n).all(|k| {
        starts.iter().all(|start| {
            let first = (start + k * by) as usize;
            let units = &mut taken[first..first + element as usize];
            !units.iter_mut().any(|unit| std::mem::replace(unit, true))
        })
    })
}

pub const EXTENTS: [i64; 24] =
    [1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 33, 48, 64, 65, 100, 129, 300];

pub fn shape(random: &mut Random, most: i64) -> Vec<i64> {
    let mut shape = Vec::new();
    let mut total = 1;
    for _ in 0..random.below(9) {
        let n = random.one_of(&EXTENTS);
        if total * n <= most {
            shape.push(n);
            total *= n;
        }
    }
    shape
}

pub fn case(random: &mut Random, item: Item, most: i64) -> Case {
    let shape = shape(random, most);
    // Strides in bits start at any bit, at whole bytes, or only at whole bytes.
    let (width, slot) = match item {
        Item::Bytes(n) => (n as i64, n as i64),
        Item::Bits { width, dst_slot } => (width as i64, dst_slot as i64),
    };
    let gaps = random.below(4);
    let mut src = strides(random, &shape, width, gaps, 1);
    for stride in &mut src {
        if random.below(8) == 0 {
            *stride = 0;
        }
    }
    let gaps = if random.below(2) == 0 { 0 } else { random.below(4) };
    let dst = match random.below(3) {
        0 => woven(random, &shape, slot),
        _ => strides(random, &shape, slot, gaps, 1),
    };
    let dims = shape.iter().zip(src).zip(dst);
    Case { item, dims: dims.map(|((&n, src), dst)| Dim { n, src, dst }).collect() }
}

/// Elements of whole bytes: few, or sometimes more.
pub fn case_of_bytes(random: &mut Random) -> Case {
    let size =
        random.one_of(&[1, 1, 2, 2, 3, 4, 4, 4, 6, 8, 8, 12, 16, 16, 20, 24, 32, 48, 100, 1000]);
    let most = if random.below(8) == 0 { 30_000 } else { 2_000 } / (1 + size as i64 / 8);
    case(random, Item::Bytes(size), most)
}

/// Packed elements, to as many bits or to more.
pub fn case_of_bits(random: &mut Random) -> Case {
    let width = random.one_of(&[1, 2, 3, 4, 4, 4, 5, 6, 6, 6, 7, 8, 9, 12, 24, 63, 100, 393]);
    let padded = width.max(8usize).next_multiple_of(8);
    let dst_slot = random.one_of(&[width, width, width, padded, padded, width + 1]);
    case(random, Item::Bits { width, dst_slot }, 2_000)
}

pub fn memory() -> [Guarded; 2] {
    [Guarded::new(24 << 20), Guarded::new(24 << 20)]
}

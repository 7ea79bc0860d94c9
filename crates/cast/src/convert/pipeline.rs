//! Selects the steps from one type to another.
#![forbid(unsafe_code)]

use super::round::Target;
use super::simd::Fastest;
use super::steps::{self, Params, Step, Table, looked_up};
use crate::abi::DLDataTypeCode::*;
use crate::float_formats::{self, BFLOAT16, FLOAT16, FLOAT64, FloatFormat};

/// A type of single numbers.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// One byte; not 0 is true.
    Bool,
    /// An integer in two's complement.
    Int {
        /// Bits: 1, 2, 4, 8, 16, 32, 64.
        bits: u8,
        /// Whether it is signed.
        signed: bool,
    },
    /// A binary floating-point format.
    Float(&'static FloatFormat),
}

impl Kind {
    /// The 64-bit signed integer.
    pub const INT64: Kind = Kind::Int { bits: 64, signed: true };
    /// IEEE 754 binary64.
    pub const FLOAT64: Kind = Kind::Float(&FLOAT64);

    /// The type of a legal dtype, or that of both parts of a complex one; `None` for handles.
    pub fn of(code: u8, bits: u8) -> Option<Kind> {
        const INT: u8 = kDLInt as u8;
        const UINT: u8 = kDLUInt as u8;
        const BOOL: u8 = kDLBool as u8;
        match code {
            INT | UINT => Some(Kind::Int { bits, signed: code == INT }),
            BOOL => Some(Kind::Bool),
            _ => float_formats::of(code, bits).map(Kind::Float),
        }
    }

    /// Bits of a number.
    pub fn bits(self) -> u32 {
        match self {
            Kind::Bool => 8,
            Kind::Int { bits, .. } => bits.into(),
            Kind::Float(format) => format.width(),
        }
    }

    /// Bytes of a number in whole bytes.
    pub fn nbytes(self) -> usize {
        self.bits().div_ceil(8) as usize
    }

    /// Whether it is a floating-point format.
    pub fn is_float(self) -> bool {
        matches!(self, Kind::Float(_))
    }
}

/// Maximum elements that are converted together.
pub const TILE: usize = 128;

/// Storage of a tile of the widest numbers.
#[repr(C, align(64))]
pub struct Tile(pub [u8; TILE * 8]);

impl Tile {
    /// A tile of zeros.
    pub const ZERO: Tile = Tile([0; TILE * 8]);

    /// Its first bytes.
    #[inline(always)]
    pub fn first(&mut self, nbytes: usize) -> &mut [u8] {
        let (first, _) = self.0.split_at_mut_checked(nbytes).unwrap_or_default();
        first
    }
}

const MOST_STEPS: usize = 4;

/// The steps from one type to another.
#[derive(Clone, Copy)]
pub struct Pipeline<'a> {
    steps: [Fastest; MOST_STEPS],
    count: usize,
    params: Params<'a>,
}

/// The representation of an element between steps.
#[derive(Clone, Copy, PartialEq)]
enum Wide {
    Int32,
    Int64,
    F32,
    F64,
}

impl<'a> Pipeline<'a> {
    /// The steps from `src` to `dst`; none when they are the same type. With `saturate`, values
    /// that are too large become the largest finite value, also of integers.
    pub fn new(src: Kind, dst: Kind, saturate: bool) -> Pipeline<'a> {
        let steps = [Fastest::portable(steps::F32_TO_F64); MOST_STEPS];
        let params = params(src, dst, saturate);
        let mut pipeline = Pipeline { steps, count: 0, params };
        if src == dst || (saturate && pipeline.saturated(src, dst)) {
            return pipeline;
        }
        // Two's complement: signed and unsigned integers of the same size convert alike.
        let same =
            matches!((src, dst), (Kind::Int { bits: a, .. }, Kind::Int { bits: b, .. }) if a == b);
        if same && src.bits() >= 8 {
            return pipeline;
        }
        if let Some(step) = only(src, dst) {
            pipeline.push(step);
            return pipeline;
        }
        let wide = pipeline.load(src);
        let integer = matches!(wide, Wide::Int32 | Wide::Int64);
        match dst {
            Kind::Bool | Kind::Int { .. } if integer => pipeline.store_int(wide, dst),
            Kind::Bool => {
                pipeline.reach_f32(wide, true);
                pipeline.push(steps::F32_TO_BOOL);
            }
            Kind::Int { bits, signed } => {
                let (step, made) = match (bits, signed, wide) {
                    (64, ..) => (steps::F64_TO_INT64, Wide::Int64),
                    (32, false, Wide::F32) => (steps::F32_TO_UINT32, Wide::Int32),
                    (32, false, _) => (steps::F64_TO_UINT32, Wide::Int32),
                    (_, _, Wide::F32) => (steps::F32_TO_INT32, Wide::Int32),
                    _ => (steps::F64_TO_INT32, Wide::Int32),
                };
                if bits == 64 {
                    pipeline.reach_f64(wide);
                }
                pipeline.push(step);
                pipeline.store_int(made, dst);
            }
            Kind::Float(format) => pipeline.store_float(wide, format, src.bits() <= 16),
        }
        pipeline
    }

    /// Adds saturating steps between integers, and to binary32; returns whether these are all
    /// steps.
    fn saturated(&mut self, src: Kind, dst: Kind) -> bool {
        let wide = |kind| matches!(kind, Kind::Float(format) if format.width() == 64);
        match (src, dst) {
            (Kind::Int { .. } | Kind::Bool, Kind::Int { bits: to, .. }) => {
                if self.load(src) == Wide::Int32 {
                    self.push(steps::INT32_TO_INT64);
                }
                if to == 64 {
                    self.push(steps::INT64_WITHIN);
                } else {
                    self.push(steps::INT64_WITHIN_32);
                    self.store_int(Wide::Int32, dst);
                }
                true
            }
            (_, Kind::Float(format)) if wide(src) && format.width() == 32 => {
                self.push(steps::F64_WITHIN);
                self.push(steps::F64_TO_F32);
                true
            }
            _ => false,
        }
    }

    fn push(&mut self, step: Step) {
        if let Some(slot) = self.steps.get_mut(self.count) {
            *slot = Fastest::of(step);
            self.count += 1;
        }
    }

    fn load(&mut self, src: Kind) -> Wide {
        let (step, wide) = match src {
            Kind::Bool => (steps::UINT8_TO_INT32, Wide::Int32),
            Kind::Int { bits: 64, .. } => return Wide::Int64,
            Kind::Int { bits: 32, .. } => return Wide::Int32,
            Kind::Int { bits, signed } => (load_int(bits, signed), Wide::Int32),
            Kind::Float(format) => match format.width() {
                64 => return Wide::F64,
                32 => return Wide::F32,
                16 if format.bias == FLOAT16.bias => (steps::F16_TO_F32, Wide::F32),
                16 => (steps::BF16_TO_F32, Wide::F32),
                _ => (steps::SMALL_TO_F32, Wide::F32),
            },
        };
        self.push(step);
        wide
    }

    fn reach_f64(&mut self, wide: Wide) {
        match wide {
            Wide::Int32 => self.push(steps::INT32_TO_F64),
            Wide::Int64 => self.push(steps::INT64_TO_F64),
            Wide::F32 => self.push(steps::F32_TO_F64),
            Wide::F64 => {}
        }
    }

    fn reach_f32(&mut self, wide: Wide, odd: bool) {
        match wide {
            Wide::F32 => {}
            Wide::Int32 if !odd => self.push(steps::INT32_TO_F32),
            _ => {
                self.reach_f64(wide);
                self.push(if odd { steps::F64_TO_F32_ODD } else { steps::F64_TO_F32 });
            }
        }
    }

    fn store_int(&mut self, wide: Wide, dst: Kind) {
        let nbytes = dst.nbytes();
        match wide {
            Wide::Int32 if nbytes == 8 => return self.push(steps::INT32_TO_INT64),
            Wide::Int32 => {}
            _ if nbytes == 8 => return,
            _ if dst == Kind::Bool => self.push(steps::INT64_TO_ANY32),
            _ => self.push(steps::INT64_TO_INT32),
        }
        match nbytes {
            1 => self.push(steps::INT32_TO_8),
            2 => self.push(steps::INT32_TO_16),
            _ => {}
        }
    }

    /// Adds the steps to a float. `small`: integers are exact as binary32.
    fn store_float(&mut self, wide: Wide, format: &FloatFormat, small: bool) {
        let width = format.width();
        if width == 64 {
            return self.reach_f64(wide);
        }
        self.reach_f32(wide, width < 32 && !(small && wide == Wide::Int32));
        match width {
            32 => {}
            16 => self.push(steps::F32_TO_SMALL16),
            _ if !format.signed => self.push(steps::F32_TO_OCTAVE),
            _ => self.push(steps::F32_TO_SMALL8),
        }
    }

    /// Converts `n` elements of `src` to those of `dst`, at most a tile.
    pub fn run(&self, src: &[u8], dst: &mut [u8], n: usize, spares: &mut [Tile; 2]) {
        let steps = self.steps.get(..self.count).unwrap_or_default();
        if steps.is_empty() && dst.len() == src.len() {
            dst.copy_from_slice(src);
        }
        let [mut from, mut to] = spares.each_mut();
        let mut made = 0;
        for (i, step) in (1..).zip(steps) {
            let input = if made == 0 { src } else { from.first(made) };
            made = n * step.step.nbytes;
            let output = if i == steps.len() { &mut *dst } else { to.first(made) };
            step.run(input, output, &self.params);
            (from, to) = (to, from);
        }
    }

    /// Converts any number of elements, of so many bytes in `src` and in `dst`.
    pub fn long(&self, src: &[u8], dst: &mut [u8], nbytes: [usize; 2], spares: &mut [Tile; 2]) {
        let [from, to] = nbytes.map(|nbytes| nbytes.max(1));
        let between = self.count.saturating_sub(1);
        let between = self.steps.get(..between).unwrap_or(&[]);
        let widest = between.iter().fold(0, |most: usize, step| most.max(step.step.nbytes));
        // The widest numbers determine the length of a tile; a single step needs no tiles.
        let n =
            if widest == 0 { usize::MAX } else { (TILE * 8).checked_div(widest).unwrap_or(TILE) };
        let (by_src, by_dst) = (n.saturating_mul(from).max(1), n.saturating_mul(to).max(1));
        for (src, dst) in src.chunks(by_src).zip(dst.chunks_mut(by_dst)) {
            self.run(src, dst, src.len().checked_div(from).unwrap_or(0), spares);
        }
    }

    /// The conversion by a table of the values of all one-byte sources, `nbytes` each.
    pub fn tabulated<'t>(&self, nbytes: usize, table: &'t mut Table) -> Pipeline<'t>
    where
        'a: 't,
    {
        let mut spares = [Tile::ZERO, Tile::ZERO];
        let codes: [u8; 256] = core::array::from_fn(|code| code as u8);
        let (values, _) = table.0.split_at_mut_checked(256 * nbytes).unwrap_or_default();
        self.long(&codes, values, [1, nbytes], &mut spares);
        let params = Params { table: Some(table), ..self.params };
        Pipeline { steps: [Fastest::portable(looked_up(nbytes)); MOST_STEPS], count: 1, params }
    }
}

/// The single step between some pairs of types.
fn only(src: Kind, dst: Kind) -> Option<Step> {
    use Kind::{Bool, Int};
    Some(match (src, dst) {
        (Int { bits: 8, signed: true }, Int { bits: 16, .. }) => steps::INT8_TO_INT16,
        (Bool | Int { bits: 8, .. }, Int { bits: 16, .. }) => steps::UINT8_TO_INT16,
        (Bool | Int { bits: 8, .. }, Bool | Int { bits: ..=8, .. }) => steps::INT8_TO_INT8,
        (Int { bits: 16, .. }, Bool | Int { bits: ..=8, .. }) => steps::INT16_TO_INT8,
        (Int { bits: 32, signed: false }, Kind::Float(f)) if f.width() == 32 => {
            steps::UINT32_TO_F32
        }
        _ => return None,
    })
}

fn load_int(bits: u8, signed: bool) -> Step {
    match (bits, signed) {
        (16, true) => steps::INT16_TO_INT32,
        (16, false) => steps::UINT16_TO_INT32,
        (_, true) => steps::INT8_TO_INT32,
        (_, false) => steps::UINT8_TO_INT32,
    }
}

fn params(src: Kind, dst: Kind, saturate: bool) -> Params<'static> {
    let (bits, signed) = match dst {
        Kind::Int { bits, signed } => (u32::from(bits), signed),
        _ => (8, false),
    };
    let from_signed = matches!(src, Kind::Int { signed: true, .. });
    let most = u64::MAX >> (64 - bits.clamp(1, 64));
    let range = if signed { (-((most >> 1) as i64) - 1, most >> 1) } else { (0, most) };
    let (low, high) = match dst {
        Kind::Float(_) => (f64::from(f32::MIN), f64::from(f32::MAX)),
        _ => (range.0 as f64, range.1 as f64),
    };
    let mut target = match dst {
        Kind::Float(format) if format.width() <= 16 && format.signed => Target::new(format),
        _ => Target::new(&BFLOAT16),
    };
    if saturate {
        target.beyond = target.max;
    }
    Params {
        unused: 8u32.saturating_sub(src.bits()),
        signed: from_signed,
        odd: !matches!(dst, Kind::Float(format) if format.width() == 64),
        extended: if from_signed { -1 } else { u32::MAX.into() },
        flipped: if from_signed { 0.0 } else { 2_147_483_648.0 },
        most: if src == Kind::Bool || dst == Kind::Bool { 1 } else { u32::MAX },
        mask: most as u8,
        low,
        high,
        source: if let Kind::Float(format) = src { Some(format) } else { None },
        target,
        saturate,
        range,
        table: None,
    }
}

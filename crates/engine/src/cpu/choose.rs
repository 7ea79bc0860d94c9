//! Chooses the op of a copy by two criteria: which loop is dense in the destination, and which in
//! the source.
use dlpack_kernels::LINE;

use super::level::kernels;
use super::op::{self, shuffle, transpose};
use super::policy::{self, Reach};
use crate::nest::Nest;
use crate::plan::{Item, Plan};

/// An op, and the loops it takes.
pub(super) enum Op {
    /// Runs that are dense on both sides.
    Run,
    /// One item repeated along the innermost loop.
    Fill,
    /// The destination is dense in the innermost loop, the source in another.
    Transpose(transpose::Sides),
    /// A short period in any order.
    Shuffle(shuffle::Shape),
    /// Item by item.
    Scalar,
    /// Items that are not whole bytes.
    Bits,
}

impl Op {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Op::Run => "run",
            Op::Fill => "fill",
            Op::Transpose(_) => "transpose",
            Op::Shuffle(_) => "shuffle",
            Op::Scalar => "scalar",
            Op::Bits => "bits",
        }
    }
}

/// Items that are copied one by one in the time that it takes to find the loops of a vector kernel
/// and to compile a program of shuffles.
const FEW: u64 = 1024;

/// The op of a nest.
pub(super) fn op(nest: &Nest) -> Op {
    chosen(nest)
}

#[inline(always)]
fn chosen(nest: &Nest) -> Op {
    let Item::Bytes(item) = nest.item else { return Op::Bits };
    let inner = nest.inner(0);
    if nest.is_empty() {
        return Op::Run;
    }
    let few = nest.whole_bytes < FEW.saturating_mul(item as u64);
    let repeats = inner.dst == item as isize && inner.src == 0 && item <= op::fill::FILL_MOST;
    if repeats && (!few || inner.n.saturating_mul(item) >= LINE) {
        return Op::Fill;
    }
    if few {
        return if item >= LINE { Op::Run } else { Op::Scalar };
    }
    let transposes = transpose::Sides::of(nest);
    if let Some(sides) = transposes
        && sides.long()
    {
        return Op::Transpose(sides);
    }
    if let Some(shape) = shuffle::Shape::of(nest) {
        return Op::Shuffle(shape);
    }
    match transposes {
        Some(sides) => Op::Transpose(sides),
        None if item >= 16 => Op::Run,
        None => Op::Scalar,
    }
}

/// How the output of a simplified plan is written, as text after the op's name.
pub fn outlet(plan: &Plan) -> &'static str {
    let nest = Nest::new(plan);
    let reach = policy::reach(nest.whole_bytes);
    let (stage, streams) = match op(&nest) {
        Op::Transpose(sides) => (transpose::stages(&sides, reach), reach.stream_scattered),
        Op::Shuffle(_) => (false, reach.stream_scattered),
        Op::Run => (false, op::run::streams(nest.bytes(), reach)),
        Op::Fill => (false, reach.stream),
        Op::Scalar | Op::Bits => (false, false),
    };
    match (stage, streams) {
        (false, false) => "",
        (true, false) => " through a staging buffer",
        (false, true) => " by non-temporal stores",
        (true, true) => " through a staging buffer by non-temporal stores",
    }
}

/// Executes a nest on the calling thread.
///
/// # Safety
/// As [`super::copy`].
#[inline(always)]
pub(super) unsafe fn serial(nest: &Nest) {
    let reach: Reach = policy::reach(nest.whole_bytes);
    // SAFETY: all elements are readable or writable, the two sides apart, and the destination's
    // distinct; the processor has the fence, which is of the level in use.
    unsafe {
        match nest.item {
            Item::Bits { .. } => return op::bits::copy(nest, reach, near),
            Item::Bytes(_) => carry_out(nest, reach),
        }
        // Orders non-temporal stores before what follows.
        if reach.stream | reach.stream_scattered {
            (kernels().fence)();
        }
    }
}

/// Executes a nest of bytes that are in L1, on both sides.
unsafe fn near(nest: &Nest) {
    // SAFETY: all elements are readable or writable, the two sides apart, and the destination's
    // distinct.
    unsafe { carry_out(nest, Reach::NEAR) }
}

/// Executes a nest of bytes by its op.
unsafe fn carry_out(nest: &Nest, reach: Reach) {
    // SAFETY: all elements are readable or writable, the two sides apart, and the destination's
    // distinct; the op is one that fits the nest.
    unsafe {
        match &chosen(nest) {
            Op::Run => op::run::copy(nest, reach),
            Op::Fill => op::fill::copy(nest, reach),
            Op::Transpose(sides) => op::transpose::copy(nest, sides, reach),
            Op::Shuffle(shape) => op::shuffle::copy(nest, shape, reach),
            Op::Scalar | Op::Bits => op::scalar::copy(nest),
        }
    }
}

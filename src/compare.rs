//! Comparison of the elements of two tensors.

use crate::batch::Pair;
use crate::copy::{self, Options};
use crate::device::cast::{self, Cast, Kind};
use crate::error::{Arg, Result};
use crate::numbers::{self, Part};
use crate::validate::{Rules, Snapshot};

/// When two elements are equal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Equality {
    /// The same bits.
    Bits,
    /// The same number: zeros of both signs are equal, NaN is not equal to anything.
    Values,
    /// As values, and NaN is equal to NaN.
    ValuesOrNan,
}

/// The numbers of two tensors of the same dtype, side by side.
struct Both {
    pair: Cast,
    kind: Kind,
    equality: Equality,
    empty: bool,
}

impl Both {
    /// To be read. A constant: it is copied to its place, and not made elsewhere first.
    const NONE: Both =
        Both { pair: Cast::NONE, kind: Kind::Bool, equality: Equality::Values, empty: true };

    /// Reads and checks both; false if `alike` says that they are not. Their extents and strides
    /// are gone when numbers are looked at: stacks may be small.
    ///
    /// # Safety
    /// Both are live.
    #[inline(never)]
    unsafe fn read(
        &mut self,
        (a, b): Pair,
        [first, second]: [Arg; 2],
        alike: fn(&Snapshot, &Snapshot) -> Result<bool>,
    ) -> Result<bool> {
        let [mut from, mut to] = [Snapshot::new(), Snapshot::new()];
        // SAFETY: the caller's word.
        unsafe {
            from.read_managed(a.as_ptr(), Rules::COPY).map_err(|e| e.of(first))?;
            to.read_managed(b.as_ptr(), Rules::COPY).map_err(|e| e.of(second))?;
        }
        self.check(&from, &to, alike).map_err(|e| e.of(second))
    }

    #[inline(never)] // a frame of its own, as above
    fn check(
        &mut self,
        a: &Snapshot,
        b: &Snapshot,
        alike: fn(&Snapshot, &Snapshot) -> Result<bool>,
    ) -> Result<bool> {
        copy::check_same_dtype(a, b)?;
        copy::check_host(a, &Options::DEFAULT)?;
        copy::check_host(b, &Options::DEFAULT)?;
        if !alike(a, b)? {
            return Ok(false);
        }
        let [mut from_a, mut from_b] = [Part::zero(), Part::zero()];
        from_a.read(a)?;
        from_b.read(b)?;
        self.kind = from_a.kind;
        self.empty = a.empty;
        let bits = Kind::Int { bits: self.kind.bits() as u8, signed: false };
        for part in [&mut from_a, &mut from_b] {
            if self.equality == Equality::Bits {
                part.kind = bits;
            }
            if numbers::is_complex(a) {
                part.turn_both();
            }
        }
        let numbers = numbers::per_element(a);
        numbers::pair(a.shape(), &from_a, &from_b, numbers, &mut self.pair);
        Ok(true)
    }

    /// Whether the numbers are looked at as floating-point ones.
    fn floats(&self) -> bool {
        self.kind.is_float() && self.equality != Equality::Bits
    }

    /// Shows the numbers made `wide`, 8 bytes each, until `visit` has seen enough.
    ///
    /// # Safety
    /// The tensors that were read are live.
    unsafe fn visit(&self, wide: Kind, visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) {
        let Cast { src, dst, dims, .. } = &self.pair;
        if !self.empty {
            // SAFETY: every element has an address in memory that the caller vouched for.
            unsafe { cast::side_by_side([src, dst], wide, dims, visit) };
        }
    }
}

/// The numbers of two tiles, in pairs.
fn pairs<'a>(a: &'a [u8], b: &'a [u8]) -> impl Iterator<Item = ([u8; 8], [u8; 8])> + 'a {
    a.as_chunks().0.iter().copied().zip(b.as_chunks().0.iter().copied())
}

/// Whether two tensors of the same dtype have the same shape and equal elements.
///
/// # Safety
/// Both are live and stay as they are during the call.
pub unsafe fn equal(tensors: Pair, args: [Arg; 2], equality: Equality) -> Result<bool> {
    let mut both = Both::NONE;
    let mut same = true;
    both.equality = equality;
    // SAFETY: the caller's word.
    unsafe {
        if !both.read(tensors, args, |a, b| Ok(a.shape() == b.shape()))? {
            return Ok(false);
        }
        if both.floats() {
            both.visit(Kind::FLOAT64, &mut |a, b| {
                for (a, b) in pairs(a, b) {
                    let (a, b) = (f64::from_ne_bytes(a), f64::from_ne_bytes(b));
                    let nans = a.is_nan() & b.is_nan() & (equality == Equality::ValuesOrNan);
                    same &= (a == b) | nans;
                }
                !same
            });
            return Ok(same);
        }
        both.visit(Kind::INT64, &mut |a, b| {
            same &= pairs(a, b).fold(true, |same, (a, b)| same & (a == b));
            !same
        });
    }
    Ok(same)
}

/// The largest absolute difference of two elements; NaN where just one of the two is.
///
/// # Safety
/// As [`equal`].
pub unsafe fn max_diff(tensors: Pair, args: [Arg; 2]) -> Result<f64> {
    let mut both = Both::NONE;
    // SAFETY: the caller's word.
    unsafe {
        both.read(tensors, args, |a, b| copy::check_same_shape(a, b).map(|()| true))?;
        if !both.floats() {
            return Ok(largest_of_integers(&both));
        }
        let mut largest = 0.0f64;
        both.visit(Kind::FLOAT64, &mut |a, b| {
            for (a, b) in pairs(a, b) {
                let (a, b) = (f64::from_ne_bytes(a), f64::from_ne_bytes(b));
                let same = (a == b) | (a.is_nan() & b.is_nan());
                let apart = if same { 0.0 } else { (a - b).abs() };
                largest = if apart > largest || apart.is_nan() { apart } else { largest };
            }
            largest.is_nan()
        });
        Ok(largest)
    }
}

/// # Safety
/// The tensors that were read are live.
unsafe fn largest_of_integers(both: &Both) -> f64 {
    // What has a sign is ordered as if it had none, once the sign is turned round.
    let turn = if matches!(both.kind, Kind::Int { signed: true, .. }) { 1 << 63 } else { 0u64 };
    let mut largest = 0;
    // SAFETY: the caller's word.
    unsafe {
        both.visit(Kind::INT64, &mut |a, b| {
            for (a, b) in pairs(a, b) {
                let (a, b) = (u64::from_ne_bytes(a) ^ turn, u64::from_ne_bytes(b) ^ turn);
                largest = largest.max(a.abs_diff(b));
            }
            false
        });
    }
    largest as f64
}

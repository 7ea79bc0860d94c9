//! Whole numbers of 1280 bits: what the digits of a binary64 need (1076 bits for the smallest,
//! times ten and a margin). Fixed size, on the stack; what would not fit is cut off.
//!
//! Not inlined: unrolled loops would cost kilobytes.
#![forbid(unsafe_code)]

const LIMBS: usize = 20;

/// A whole number, least significant limb first.
#[derive(Clone, Copy)]
pub struct Big([u64; LIMBS]);

impl Big {
    /// A small number.
    pub fn new(number: u64) -> Big {
        Big(core::array::from_fn(|place| if place == 0 { number } else { 0 }))
    }

    /// The number times 2^`bits`.
    #[inline(never)]
    pub fn shifted(&self, bits: u32) -> Big {
        let (limbs, bits) = ((bits / 64) as usize, bits % 64);
        let limb = |place: Option<usize>| place.and_then(|p| self.0.get(p)).copied().unwrap_or(0);
        Big(core::array::from_fn(|place| {
            let here = place.checked_sub(limbs);
            let both = u128::from(limb(here)) << 64
                | u128::from(limb(here.and_then(|here| here.checked_sub(1))));
            (both << bits >> 64) as u64
        }))
    }

    /// Multiplies in place.
    #[inline(never)]
    pub fn multiply(&mut self, factor: u64) {
        let mut carry = 0;
        for limb in &mut self.0 {
            let product = u128::from(*limb) * u128::from(factor) + carry;
            *limb = product as u64;
            carry = product >> 64;
        }
    }

    /// Adds in place.
    #[inline(never)]
    pub fn add(&mut self, other: &Big) {
        let mut carry = false;
        for (limb, &more) in self.0.iter_mut().zip(&other.0) {
            let (sum, over) = limb.overflowing_add(more);
            let (sum, again) = sum.overflowing_add(carry.into());
            *limb = sum;
            carry = over || again;
        }
    }

    /// Subtracts a number that is not larger, in place.
    #[inline(never)]
    pub fn subtract(&mut self, other: &Big) {
        let mut borrow = false;
        for (limb, &less) in self.0.iter_mut().zip(&other.0) {
            let (rest, under) = limb.overflowing_sub(less);
            let (rest, again) = rest.overflowing_sub(borrow.into());
            *limb = rest;
            borrow = under || again;
        }
    }

    /// Whether it is smaller than another.
    #[inline(never)]
    pub fn less(&self, other: &Big) -> bool {
        self.0.iter().rev().lt(other.0.iter().rev())
    }
}

//! Bounded sums: is there an `x` with `0 <= x_k <= bound_k` and
//! `target - window <= Σ coef_k x_k <= target`, all coefficients positive?
//!
//! Terms are sorted by coefficient, largest first, and chosen from the left. What the terms from
//! `k` on can still add up to (the *tail*) is known by
//! - its reach `R`, their sum at full bounds, and its `gcd`: sums are multiples of it in `0..=R`;
//! - its fringe `F`: every multiple of the gcd in `F..=R-F` is such a sum. `F = 0` is a tail like a
//!   dense tensor's, which leaves nothing to search; see [`Tail::grow`].
//!
//! Only choices whose rest is possible for the gcd are visited; [`first_multiple`] jumps from one
//! to the next. The search gives up after [`WORK`].
#![forbid(unsafe_code)]

use super::Verdict;
use crate::array::Array;

/// Limit of steps (of two or three divisions each) before a problem stays undecided: well below a
/// millisecond.
pub const WORK: u32 = 25_000;
/// One layout of 64 dimensions, and two.
pub const ONE: usize = 64;
pub const TWO: usize = 2 * ONE;

/// `coef * x` with `0 <= x <= bound`.
#[derive(Clone, Copy)]
pub struct Term {
    /// At least 1 in [`Terms`].
    pub coef: u64,
    /// At least 1 in [`Terms`].
    pub bound: u64,
}

impl Term {
    /// The largest value.
    pub fn reach(&self) -> Option<i128> {
        i128::from(self.coef).checked_mul(i128::from(self.bound))
    }
}

/// `start` and the reach of all terms. `None` if it does not fit.
pub fn span(terms: &[Term], start: i128) -> Option<i128> {
    terms.iter().try_fold(start, |sum, term| sum.checked_add(term.reach()?))
}

/// Up to `N` terms with different coefficients, largest first.
pub struct Terms<const N: usize>(Array<Term, N>);

impl<const N: usize> Terms<N> {
    /// No terms.
    pub fn new() -> Self {
        Terms(Array::new())
    }

    /// Largest coefficient first.
    pub fn as_slice(&self) -> &[Term] {
        &self.0
    }

    /// Add a term where it belongs. `None` if it does not fit.
    pub fn add(&mut self, coef: u64, bound: u64) -> Option<()> {
        if coef == 0 || bound == 0 {
            return Some(());
        }
        let mut moving = Term { coef, bound };
        for slot in self.0.iter_mut() {
            if slot.coef == moving.coef {
                slot.bound = slot.bound.checked_add(moving.bound)?;
                return Some(());
            }
            if slot.coef < moving.coef {
                core::mem::swap(slot, &mut moving);
            }
        }
        self.0.push(moving).then_some(())
    }

    /// Decides `target - window <= Σ coef x <= target`. `None`: the numbers overflow, or the work
    /// is spent.
    pub fn solve(&mut self, target: i128, window: i128, work: &mut u32) -> Option<Verdict> {
        solve(&mut self.0, target, window, work)
    }
}

/// As [`Terms::solve`].
fn solve(terms: &mut [Term], target: i128, window: i128, work: &mut u32) -> Option<Verdict> {
    let reach = span(terms, 0)?;
    if target < 0 || target.checked_sub(window)? > reach {
        return Some(Verdict::Disjoint);
    }
    // Divided by what all coefficients share, the window shrinks to what is left of it.
    let gcd = terms.iter().fold(0, |gcd, term| gcd_of(gcd, term.coef)).max(1);
    for slot in terms.iter_mut() {
        slot.coef = slot.coef.checked_div(gcd)?;
    }
    let low = target.checked_sub(window)?.max(0) as u128;
    let low = low.checked_add(u128::from(gcd) - 1)?.checked_div(gcd.into())?;
    let high = (target as u128).checked_div(gcd.into())?;
    if low > high {
        return Some(Verdict::Disjoint);
    }
    let high = u64::try_from(high).ok()?;
    search(terms, high, high.wrapping_sub(low as u64), work)
}

/// No fringe. (An `Option` would make the search's frame pass 4 KiB.)
const UNKNOWN: u64 = u64::MAX;

/// What is known about the sums of the last terms; see the head of this file.
#[derive(Clone, Copy)]
struct Tail {
    /// 0 when there are no terms.
    gcd: u64,
    /// [`UNKNOWN`] when there is no such fringe, or none is known.
    fringe: u64,
}

impl Tail {
    const EMPTY: Tail = Tail { gcd: 0, fringe: 0 };

    /// The tail of one term more, which may only be larger. `reach` is that of the old one.
    ///
    /// With `g` and `g'` the gcd before and after and `q = g / g'`: among `q` neighbouring `x`, one
    /// leaves a multiple of `g`. The sums whose `x` comes from `j..j + q` thus contain all
    /// multiples of `g'` in `F + (j + q - 1) coef ..= R - F + j coef`, and these ranges touch for
    /// neighbouring `j` if `q coef <= R - 2F + g'`. Where the window spans every gap between
    /// multiples of `g`, one `x` does for `q`.
    fn grow(self, reach: u128, term: Term, window: u64) -> Tail {
        let gcd = gcd_of(self.gcd, term.coef);
        if self.gcd == 0 {
            return Tail { gcd, fringe: 0 };
        }
        let window_room = u128::from(window) + 1;
        let new_fringe = || {
            let fringe = Some(self.fringe).filter(|fringe| *fringe != UNKNOWN)?;
            let core = reach.checked_sub(u128::from(fringe).checked_mul(2)?)?;
            if window_room >= self.gcd.into()
                && u128::from(term.coef) <= core.checked_add(window_room)?
            {
                return Some(fringe);
            }
            let q = self.gcd.checked_div(gcd)?;
            let fits = term.bound >= q.checked_sub(1)?
                && u128::from(q).checked_mul(term.coef.into())? <= core.checked_add(gcd.into())?;
            let wider = fringe.checked_add(q.checked_sub(1)?.checked_mul(term.coef)?)?;
            fits.then_some(wider)
        };
        Tail { gcd, fringe: new_fringe().unwrap_or(UNKNOWN) }
    }

    /// Is a multiple of the gcd in `rest - window ..= rest` and in `fringe ..= reach - fringe`?
    fn holds(self, fringe: u64, reach: u128, rest: u64, window: u64) -> bool {
        let Some(top) = reach.checked_sub(fringe.into()) else { return false };
        let top = u64::try_from(top).unwrap_or(u64::MAX).min(rest);
        let multiple = top.wrapping_sub(top.checked_rem(self.gcd).unwrap_or(top));
        multiple >= fringe.max(rest.saturating_sub(window))
    }

    /// Is there certainly a sum in `rest - window ..= rest`?
    fn is_sure(self, reach: u128, rest: u64, window: u64) -> bool {
        self.fringe != UNKNOWN && self.holds(self.fringe, reach, rest, window)
    }
}

/// A level of the search: what comes after it, and the `x` it has now.
#[derive(Clone, Copy)]
struct Level {
    after: Tail,
    x: u64,
}

/// Fill in what comes after each level; then the tail and the reach of all terms.
fn survey(terms: &[Term], levels: &mut [Level], window: u64) -> Option<(Tail, u128)> {
    let (mut tail, mut reach) = (Tail::EMPTY, 0u128);
    let levels = levels.get_mut(..terms.len())?;
    for (level, term) in levels.iter_mut().rev().zip(terms.iter().rev()) {
        level.after = tail;
        tail = tail.grow(reach, *term, window);
        reach = reach.checked_add(term.reach()?.unsigned_abs())?;
    }
    Some((tail, reach))
}

/// Depth first through the choices of `x`, without recursion.
#[inline(never)] // keeps each frame under 4 KiB
fn search(terms: &[Term], target: u64, window: u64, work: &mut u32) -> Option<Verdict> {
    let mut levels = [Level { after: Tail::EMPTY, x: 0 }; TWO];
    let (all, mut reach) = survey(terms, &mut levels, window)?;
    if !all.holds(0, reach, target, window) {
        return Some(Verdict::Disjoint);
    }
    if all.is_sure(reach, target, window) {
        return Some(Verdict::Overlap);
    }
    let (mut depth, mut rest, mut last) = (0usize, target, None);
    loop {
        let (term, level) = (terms.get(depth)?, levels.get_mut(depth)?);
        let reach_after = reach.checked_sub(term.reach()?.unsigned_abs())?;
        let tail = level.after;
        if let Some(x) = next_x(*term, tail.gcd, reach_after, rest, window, last, work) {
            (level.x, last) = (x, None);
            rest = rest.checked_sub(term.coef.checked_mul(x)?)?;
            reach = reach_after;
            depth = depth.wrapping_add(1);
            if tail.is_sure(reach, rest, window) {
                return Some(Verdict::Overlap);
            }
        } else {
            let Some(up) = depth.checked_sub(1) else { return Some(Verdict::Disjoint) };
            let (term, level) = (terms.get(up)?, levels.get(up)?);
            rest = rest.checked_add(term.coef.checked_mul(level.x)?)?;
            reach = reach.checked_add(term.reach()?.unsigned_abs())?;
            (depth, last) = (up, Some(level.x));
        }
        if *work == 0 {
            return None;
        }
    }
}

/// The next `x` after `last` that leaves the terms after this one something possible. The order is
/// from the middle upwards, then from the lowest up to the middle: with a middle `x`, the rest is
/// in the middle of what the tail reaches, where its sums are densest.
fn next_x(
    term: Term,
    gcd: u64,
    reach_after: u128,
    rest: u64,
    window: u64,
    last: Option<u64>,
    work: &mut u32,
) -> Option<u64> {
    let slack = reach_after.saturating_add(window.into());
    let beyond = |slack: u128| {
        let over = u128::from(rest).saturating_sub(slack) as u64; // at most `rest`
        let whole = over.checked_div(term.coef)?;
        Some(if whole.wrapping_mul(term.coef) == over { whole } else { whole.wrapping_add(1) })
    };
    let (low, high) = (beyond(slack)?, rest.checked_div(term.coef)?.min(term.bound));
    let middle = beyond(slack / 2)?.min(high);
    let mut first = |low: u64, high: u64| first_possible(term, gcd, rest, window, low, high, work);
    let upper = match last {
        Some(x) if x < middle => return first(x.checked_add(1)?, middle.checked_sub(1)?),
        Some(x) => first(x.checked_add(1)?, high),
        None => first(middle.max(low), high),
    };
    upper.or_else(|| first(low, middle.checked_sub(1)?))
}

/// The smallest `x` in `low..=high` whose rest is at most `window` above a multiple of `gcd`.
fn first_possible(
    term: Term,
    gcd: u64,
    rest: u64,
    window: u64,
    low: u64,
    high: u64,
    work: &mut u32,
) -> Option<u64> {
    if low > high {
        return None;
    }
    *work = work.saturating_sub(1);
    let left = rest.checked_sub(low.checked_mul(term.coef)?)?.checked_rem(gcd)?;
    if left <= window {
        return Some(low);
    }
    // `y` more steps take y * coef away, which must be left - window ..= left modulo the gcd.
    let turn = term.coef.checked_rem(gcd)?;
    let y = first_multiple(turn, gcd, left.wrapping_sub(window), left, work)?;
    low.checked_add(y).filter(|x| *x <= high)
}

/// The smallest `y` with `low <= a y mod m <= high`, where `a < m` and `0 < low <= high < m`.
///
/// As in Euclid's algorithm the modulus at least halves on every level, so there are at most 64.
fn first_multiple(a: u64, m: u64, low: u64, high: u64, work: &mut u32) -> Option<u64> {
    *work = work.saturating_sub(1);
    let back = m.checked_sub(a)?;
    let (a, low, high) = match a > back {
        true => (back, m.checked_sub(high)?, m.checked_sub(low)?), // walk the other way round
        false => (a, low, high),
    };
    let (whole, over) = (low.checked_div(a)?, low.checked_rem(a)?); // a == 0 never gets there
    if over == 0 {
        return Some(whole);
    }
    if a.wrapping_sub(over) <= high.wrapping_sub(low) {
        return whole.checked_add(1);
    }
    // No multiple of `a` in the range: after how many rounds `z` of `m` is there one?
    let turn = a.wrapping_sub(m.checked_rem(a)?).checked_rem(a)?;
    let z = first_multiple(turn, a, over, high.checked_rem(a)?, work)?;
    let way = u128::from(m).checked_mul(z.into())?.checked_add(low.into())?;
    let y = way.checked_add(u128::from(a) - 1)?.checked_div(a.into())?;
    u64::try_from(y).ok()
}

fn gcd_of(mut a: u64, mut b: u64) -> u64 {
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}

//! The addresses of a transpose's rows and columns: nested loops, and lists of offsets.
use crate::vector::LINE;

/// Maximum loops of a side.
pub const SIDE_LOOPS: usize = 3;

/// A loop of a side: its extent, and the bytes from one iteration to the next.
#[derive(Clone, Copy)]
pub struct Step {
    /// Extent.
    pub n: usize,
    /// Stride.
    pub by: isize,
}

impl Step {
    /// An absent loop.
    pub const NONE: Step = Step { n: 1, by: 0 };
}

/// The rows of a matrix: nested loops, innermost first.
#[derive(Clone, Copy)]
pub struct Side {
    /// The loops; those beyond the last are [`Step::NONE`].
    pub loops: [Step; SIDE_LOOPS],
}

/// Offsets of rows, in bytes from the first one.
pub(crate) type List = *mut isize;

impl Side {
    /// A side of one loop.
    #[inline(always)]
    pub const fn one(n: usize, by: isize) -> Side {
        Side { loops: [Step { n, by }, Step::NONE, Step::NONE] }
    }

    /// Total number of rows.
    #[inline(always)]
    pub const fn rows(&self) -> usize {
        let [a, b, c] = self.loops;
        a.n * b.n * c.n
    }

    /// Whether all rows start at the same offset in a cache line.
    #[inline(always)]
    pub(crate) fn in_phase(&self) -> bool {
        let [a, b, c] = self.loops;
        ((a.by | b.by | c.by) as usize).is_multiple_of(LINE)
    }

    /// Writes the offsets of `n` rows from row `first` on to `list`. Without vectors: compiled
    /// once.
    #[inline(never)]
    pub(crate) unsafe fn list(&self, first: usize, n: usize, list: List) {
        let (mut iteration, mut at) = ([0; SIDE_LOOPS], 0isize);
        let (mut l, mut rest) = (0, first);
        while l < SIDE_LOOPS && rest > 0 {
            let Step { n, by } = self.loops[l];
            let outer = if rest < n { 0 } else { rest.checked_div(n).unwrap_or(0) };
            iteration[l] = rest - outer * n;
            at += iteration[l] as isize * by;
            (l, rest) = (l + 1, outer);
        }
        let mut i = 0;
        while i < n {
            let Step { n: extent, by } = self.loops[0];
            let end = n.min(i + extent - iteration[0]);
            iteration[0] += end - i;
            while i < end {
                // SAFETY: `list` has room for `n` offsets.
                unsafe { list.add(i).write(at) };
                at += by;
                i += 1;
            }
            let mut l = 0;
            while l + 1 < SIDE_LOOPS && iteration[l] == self.loops[l].n {
                let (inner, outer) = (self.loops[l], self.loops[l + 1]);
                at += outer.by - inner.n as isize * inner.by;
                iteration[l] = 0;
                iteration[l + 1] += 1;
                l += 1;
            }
        }
    }
}

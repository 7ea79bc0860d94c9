//! Source rows brought near by reading them: some processors fetch the few rows that they follow
//! far faster than what they are asked for.
use super::tuning::tuning;
use crate::device::part::Part;

/// Rows that are read side by side: fewer than are followed.
const TOGETHER: usize = 8;

/// Bytes that are read of a row before another one is, where elements are copied one by one or few
/// at a time.
const SHORT: usize = 1024;

/// How many elements of source rows are read before they are used, of a plan whose elements, of
/// `size` bytes, are copied one by one or few at a time; 0: none.
pub(super) fn short(plan: &Part, size: usize) -> usize {
    let far = plan.whole_bytes() >= tuning().rows_from;
    let bytes = if far { tuning().touched.min(SHORT) } else { 0 };
    bytes.checked_div(size).unwrap_or(0)
}

/// Reads of `n` rows what is to be read before element `at` of them is used: every `run` elements,
/// as many, of `size` bytes each, or the `left` ones. `row` tells how far from `src`, where the
/// first row's element is, the others' are.
///
/// # Safety
/// They are readable.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn read(
    src: *const u8,
    (n, size): (usize, usize),
    (run, at, left): (usize, usize, usize),
    row: &dyn Fn(usize) -> isize,
) {
    let bytes = if at.is_multiple_of(run) { run.min(left) * size } else { 0 };
    let mut first = 0;
    while first < n && bytes > 0 {
        let count = TOGETHER.min(n - first);
        // Where there are fewer, the first one again, so that the loop is written out.
        let mut rows = [row(first); TOGETHER];
        for (i, at) in rows.iter_mut().take(count).enumerate() {
            *at = row(first + i);
        }
        let [a, b, c, d, e, f, g, h] = rows;
        for line in 0..bytes.div_ceil(64) {
            let src = src.wrapping_add(64 * line);
            // SAFETY: bytes of the caller's rows.
            let look = |at: isize| unsafe { src.wrapping_offset(at).read_volatile() };
            look(a);
            look(b);
            look(c);
            look(d);
            look(e);
            look(f);
            look(g);
            look(h);
        }
        first += count;
    }
}

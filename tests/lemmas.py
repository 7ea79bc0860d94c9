"""The arithmetic on which copies rest, stated over integers and 64-bit words, and proved by z3.

Each lemma names the text of the sources that it is about: where that has changed, the lemma has to
be read again. Each has a control, the same statement with one assumption left out or one number
moved, which z3 has to refute. The last line is `lemmas: N passed, N failed`.
"""

import sys
from pathlib import Path

from z3 import And, BitVec, BitVecVal, If, Implies, Ints, LShR, Not, Solver, sat, unsat

ROOT = Path(__file__).resolve().parent.parent
PLAN, THREADS = "crates/engine/src/plan.rs", "crates/engine/src/cpu/threads.rs"
LAYOUT, OVERLAP = "crates/core/src/layout.rs", "crates/core/src/overlap.rs"
LEMMAS = []


def lemma(file, text):
    """Marks a function that returns a statement; given `control`, one that is false."""
    def add(function):
        LEMMAS.append((function, file, text))
        return function
    return add


# ---- dimensions of a plan --------------------------------------------------------------------------
@lemma(PLAN, "(src == self.src && dst == self.dst).then_some(Dim { n, ..inner })")
def merged_dimensions_visit_the_same_offsets(control):
    outer, inner, step, stride, i, j = Ints("outer inner step stride i j")
    within = And(0 <= i, i < outer, 0 <= j, j < inner)
    k = i * inner + j
    contiguous = True if control else stride == inner * step
    return Implies(And(within, contiguous),
                   And(i * stride + j * step == k * step, 0 <= k, k < outer * inner))


@lemma(PLAN, "let n = self.n.checked_mul(inner.n)?;")
def each_index_of_a_merged_dimension_is_one_of_the_two(control):
    outer, inner, k = Ints("outer inner k")
    i, j = k / inner, k % inner
    end = outer * inner + (1 if control else 0)
    return Implies(And(inner >= 1, 0 <= k, k < end),
                   And(0 <= i, i < outer, 0 <= j, j < inner, i * inner + j == k))


@lemma(PLAN, "Dim { n, src: src.wrapping_neg(), dst: dst.wrapping_neg() }")
def a_reversed_dimension_visits_the_same_offsets(control):
    base, n, stride, i = Ints("base n stride i")
    last = n if control else n - 1
    back = last - i
    return Implies(And(0 <= i, i < n), And(0 <= back, back < n,
                   base + i * stride == (base + last * stride) + back * -stride))


@lemma(PLAN, "dim.dst >= inside")
def nested_dimensions_share_no_unit(control):
    step, slot, inside, i, j, x, y = Ints("step slot inside i j x y")
    nested = step >= inside - 1 if control else step >= inside
    inner = And(0 <= x, x <= inside - slot, 0 <= y, y <= inside - slot)
    far = (i - j) * step + x - y
    return Implies(And(slot > 0, inside >= slot, inner, i > j, nested), far >= slot)


@lemma(PLAN, "reach = (dim.n - 1).saturating_mul(dim.dst).saturating_add(inside);")
def the_reach_of_nested_dimensions_is_one_past_their_last_unit(control):
    n, step, slot, inside, i, x = Ints("n step slot inside i x")
    reach = (n - 1) * step + inside - (1 if control else 0)
    inner = And(0 <= x, x <= inside - slot)
    return Implies(And(0 <= i, i < n, step >= 0, inner), i * step + x + slot <= reach)


@lemma(PLAN, "src == dst && src == bytes as i64")
def an_item_grows_by_a_dense_dimension(control):
    nbytes, n, at = Ints("nbytes n at")
    i, rest = at / nbytes, at % nbytes
    end = n * nbytes + (1 if control else 0)
    return Implies(And(nbytes > 0, 0 <= at, at < end),
                   And(0 <= i, i < n, 0 <= rest, rest < nbytes, i * nbytes + rest == at))


# ---- parts for threads -----------------------------------------------------------------------------
@lemma(THREADS, "each.div_ceil(grain.max(1)).saturating_mul(grain.max(1))")
def a_split_has_as_many_parts_as_wanted_at_most(control):
    units, parts, grain, share, grains = Ints("units parts grain share grains")
    # Both roundings by what they mean: z3 knows no quotient of two unknowns.
    rounded = And(share * parts >= units - (1 if control else 0), grains * grain >= share)
    return Implies(And(units > 0, parts > 0, grain > 0, share >= 0, rounded),
                   parts * (grains * grain) >= units)


@lemma(THREADS, "let n = self.each.min(self.units - first);")
def parts_cover_all_units_once(control):
    units, each, at, j = Ints("units each at j")
    def holds(part):
        first = If(part * each < units, part * each, units)
        return And(first <= at, at < first + If(each < units - first, each, units - first))
    i = at / each
    least = 0 if control else 1
    return Implies(And(each >= least, 0 <= at, at < units, j >= 0),
                   And(holds(i), Implies(holds(j), i == j)))


@lemma(THREADS, "let grain = 8usize >> (src | dst).trailing_zeros().min(3);")
def parts_of_bits_begin_whole_bytes_apart(control):
    src, dst = BitVec("src", 64), BitVec("dst", 64)
    both = src | dst
    grain = If(both & 1 != 0, BitVecVal(8, 64), If(both & 2 != 0, BitVecVal(4, 64),
               If(both & 4 != 0, BitVecVal(1 if control else 2, 64), BitVecVal(1, 64))))
    return And((src * grain) & 7 == 0, (dst * grain) & 7 == 0)


# ---- sizes and extents -----------------------------------------------------------------------------
@lemma(LAYOUT, "if (self.all | self.high) as u64 >> 30 != 0 {")
def moderate_sums_do_not_wrap(control):
    numel, last, stride, high = Ints("numel last stride high")
    moderate = And(*(And(0 <= number, number < 2**30) for number in (numel, last, stride)))
    reaches = 8 if control else 7 # so far, of eight dimensions
    return Implies(And(moderate, 0 <= high, high <= reaches * 2**60),
                   And(numel * (last + 1) < 2**63, high + last * stride < 2**63))


@lemma(LAYOUT, "let odd = (sizes as u64 >> 31) | (steps as u64 >> 29) | (ends as u64 >> 41);")
def the_last_indices_add_up_to_less_than_the_size(control):
    numel, lasts, extent = Ints("numel lasts extent")
    least = 0 if control else 1
    return Implies(And(numel >= 1, extent >= least, lasts <= numel - 1),
                   lasts + (extent - 1) <= numel * extent - 1)


@lemma(LAYOUT, "steps |= stride.wrapping_add(STEP);")
def a_step_of_moderate_size_shows_in_its_high_bits(control):
    stride, other = BitVec("stride", 64), BitVec("other", 64)
    step = BitVecVal(1 << 28, 64)
    clear = LShR((stride + step) | (other + step), 30 if control else 29) == 0
    return Implies(clear, And(stride >= -step, stride < step, other >= -step, other < step))


@lemma(LAYOUT, "low = low.wrapping_add(reach & (reach >> 63));")
def the_sign_selects_what_is_below(control):
    reach = BitVec("reach", 64)
    return reach & (reach >> (62 if control else 63)) == If(reach < 0, reach, BitVecVal(0, 64))


@lemma(LAYOUT, "i64::try_from((i128::from(numel) * i128::from(item_bits) + 7) >> 3).ok()")
def packed_bytes_hold_all_bits_and_no_byte_more(control):
    numel, bits = Ints("numel bits")
    nbytes = (numel * bits + (8 if control else 7)) / 8
    return Implies(And(numel >= 0, bits > 0),
                   And(8 * nbytes >= numel * bits, 8 * (nbytes - 1) < numel * bits))


# ---- overlap ---------------------------------------------------------------------------------------
@lemma(OVERLAP, "target - window <= Σ coef_k x_k <= target")
def two_items_share_a_unit_where_their_distance_is_in_the_window(control):
    a, b, item_a, item_b, unit = Ints("a b item_a item_b unit")
    shared = And(a <= unit, unit < a + item_a, b <= unit, unit < b + item_b)
    inside = And(-(item_b - 1) <= b - a, b - a <= item_a - (0 if control else 1))
    witness = If(a < b, b, a)
    held = And(a <= witness, witness < a + item_a, b <= witness, witness < b + item_b)
    return Implies(And(item_a > 0, item_b > 0),
                   And(Implies(shared, inside), Implies(inside, held)))


@lemma(OVERLAP, "one side (`x` becomes `extent - 1 - x`)")
def a_reversed_side_makes_a_difference_a_sum(control):
    coef, bound, x, rest = Ints("coef bound x rest")
    other = bound - x + (1 if control else 0)
    return Implies(And(0 <= x, x <= bound),
                   And(0 <= other, other <= bound,
                       rest - coef * x == rest + coef * other - coef * bound))


@lemma(OVERLAP, "return Some(Verdict::Disjoint); // one step of `lead` clears all that lies inside it")
def one_step_beyond_all_inside_shares_nothing(control):
    lead, span, item, steps, inner = Ints("lead span item steps inner")
    clears = span + (item - 1) - lead < (2 if control else 0)
    return Implies(And(item > 0, lead > 0, steps >= 1, -span <= inner, inner <= span, clears),
                   steps * lead + inner >= item)


def proved(statement, wanted):
    solver = Solver()
    solver.set("timeout", 60_000)
    solver.add(Not(statement))
    return solver.check() == wanted


def main():
    passed = failed = 0
    for function, file, text in LEMMAS:
        wrong = []
        if (ROOT / file).read_text().count(text) != 1:
            wrong.append(f"{file} has not, or not once: {text}")
        if not proved(function(False), unsat):
            wrong.append("not proved")
        if not proved(function(True), sat):
            wrong.append("its control is not refuted")
        passed, failed = passed + (not wrong), failed + bool(wrong)
        name = function.__name__.replace("_", " ")
        print(f"FAIL  {name}: {'; '.join(wrong)}" if wrong else f"pass  {name}", flush=True)
    print(f"lemmas: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

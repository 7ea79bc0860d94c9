"""Everything with everything: dtypes, layouts, requests and producers, crossed at random.

Each pair of a dtype and a layout is tried with a few draws of the rest. What differs is found by
one identifier for each property, and the text names the case, which is made as simple as it can be
while it still fails. `--seed` draws others.
"""

import gc
import random

from ._abi import CPU, IS_COPIED, MAX_VERSION, PADDED, READ_ONLY
from ._exports import Export, knows, newest
from ._model import STAGE, Skipped, Unfreed, check, findings, own, said
from ._numbers import FORMATS, NAMES, OTHERS, compact, decode, pack, same, telling
from ._tensors import KEYWORDS, Handmade, Tensor

SEED = [0]
ROUNDS = 3
DTYPES = [*FORMATS, *OTHERS]
KNOWN = {"all keywords": KEYWORDS, "stream and max_version": {"stream", "max_version"},
         "stream": {"stream"}}
PROTOCOLS = {"1.3": MAX_VERSION, "1.0": (1, 0), "legacy": None}
# Shape, strides, and the first element, in memory of so many elements.
LAYOUTS = {
    "compact": ((2, 3), (3, 1), 0, 6),
    "a step": ((2, 2), (5, 2), 1, 9),
    "reversed": ((2, 3), (-3, -1), 5, 6),
    "broadcast": ((2, 3), (0, 1), 0, 3),
    "transposed": ((3, 2), (1, 3), 0, 6),
    "permuted": ((2, 3, 2), (2, 4, 1), 0, 12),
    "empty": ((0, 3), (3, 1), 0, 0),
    "no dimensions": ((), (), 0, 1),
    "extents of 1": ((1, 3, 1), (9, 1, -5), 0, 3),
    "strides NULL": ((2, 3), None, 0, 6),
}


def name_of(dtype):
    return NAMES.get(dtype) or OTHERS[dtype]


def places(shape, strides):
    """The position of each element, in row-major order."""
    found = [0]
    for extent, stride in zip(shape, strides):
        found = [at + i * stride for at in found for i in range(extent)]
    return found


def numbers(dtype, count):
    """What tells the dtype, then small numbers, so that no row is like another."""
    if dtype[0] == 6:
        return [bool(0xb45 >> i & 1) for i in range(count)]
    return [*telling(*dtype), *range(2, 2 + count)][:count]


def draws(axes, rest):
    """Cases: each of the product of two axes, with the rest drawn."""
    chance = random.Random(SEED[0])
    for _ in range(ROUNDS):
        for first in axes[0][1]:
            for second in axes[1][1]:
                yield {axes[0][0]: first, axes[1][0]: second,
                       **{name: chance.choice(list(those)) for name, those in rest.items()}}


def spelled(case):
    return ", ".join(str(name_of(value) if name == "dtype" else f"{name}={value}"
                         if name in ("copy", "max_version", "dl_device", "byte_offset") else value)
                     for name, value in case.items())


class Crossed:
    """Cases, a judge of one that yields `(property, what differs)`, and its plainest one."""

    def __init__(self, judge, axes, rest, plain):
        self.judge, self.axes, self.rest, self.plain = judge, axes, rest, plain

    def violations(self, library, case):
        STAGE[0](spelled(case))
        return dict(self.judge(library, case))

    def simpler(self, library, name, case):
        """Case by case, what is plain and still fails."""
        for axis, value in self.plain.items():
            try:
                if name in self.violations(library, {**case, axis: value}):
                    case = {**case, axis: value}
            except Skipped:
                pass
        return f"{spelled(case)}: {self.violations(library, case).get(name, '')}"

    def found(self, library):
        """Each property's first violation, or why no case applies; once in a process."""
        known, key = findings(library), f"{id(self)} {SEED[0]}"
        if key not in known:
            found, tried, why = {}, 0, "no case applies"
            for case in draws(self.axes, self.rest):
                try:
                    bad = self.violations(library, case)
                except Skipped as reason:
                    why = str(reason)
                    continue
                tried += 1
                for name in bad.keys() - found.keys():
                    found[name] = self.simpler(library, name, case)
            STAGE[0]("")
            known[key] = found if tried else why
        return known[key]

    def check(self, name, severity, text, rule, *properties):
        def judge(library):
            found = self.found(library)
            if isinstance(found, str):
                raise Skipped(found)
            if "freed" in properties and "freed" in found:
                raise Unfreed(found["freed"], False)
            return next((found[one] for one in properties if one in found), None)

        check(name, severity, text, f"crossed: {rule}" if self.plain else rule, judge)

    def of(self, **fixed):
        """The plainest case but for what is fixed: lists of values."""
        only = {**{name: [value] for name, value in self.plain.items()}, **fixed}
        return Crossed(self.judge, [(name, only[name]) for name, _ in self.axes],
                       {name: only[name] for name in self.rest}, {})


# ---- consumers


def handmade(case):
    dtype, protocol = case["dtype"], PROTOCOLS[case["protocol"]]
    shape, strides, origin, count = LAYOUTS[case["layout"]]
    if strides is None and protocol == MAX_VERSION:
        raise Skipped("strides are NULL before 1.2 only")
    size = dtype[1] // 8
    values = numbers(dtype, count)
    producer = Handmade(
        values, shape, strides, (*dtype, 1), legacy=protocol is None,
        version=protocol or MAX_VERSION, byte_offset=case["byte_offset"],
        data="own" if count else None, origin=origin * size, keywords=KNOWN[case["producer"]])
    producer.needs_versioned = False
    first = producer.start + producer.tensor.byte_offset + origin * size
    expected = [values[origin + at] for at in places(shape, compact(shape) if strides is None
                                                     else strides)]
    return producer, first, expected


def take_case(library, case):
    function = {None: library.take, True: library.take_copy,
                False: library.take_shared}[case["copy"]]
    if function is None:
        raise Skipped("not tried")
    producer, first, expected = handmade(case)
    result = failure = None
    try:
        result = function(producer)
    except Exception as error:
        failure = said(error)
        retry = isinstance(error, TypeError) and case["copy"] is None and \
            case["producer"] != "all keywords" and len(producer.asked) == 1
        error.__traceback__ = None
    producer.capsule = None
    if failure is not None and retry:
        yield "retry", failure
    if result is not None:
        yield from taken_right(library, case, result, first, expected)
    result = None
    if producer.wrongly_freed() is not None:
        gc.collect()
        library.settle()
        gc.collect()
    wrong = producer.wrongly_freed()
    if wrong is not None:
        yield "freed", f"the deleter ran {wrong} times"


def taken_right(library, case, result, first, expected):
    dtype, wanted = case["dtype"], pack(expected, case["dtype"])
    try:
        if dtype in FORMATS:
            found = list(library.values(result))
        else:
            again = newest(result)
            if again.dtype != (*dtype, 1):
                yield "values", f"the dtype became {again.dtype}"
                return
            found, expected = [again.bytes()], [wanted]
    except Exception:
        return  # what cannot be read is not judged
    if not same(found, expected):
        yield "values", f"{found[:4]}, not {expected[:4]}"
        return
    try:
        address = library.address(result)
    except Exception:
        return
    if expected and wanted and case["copy"] is True and address == first:
        yield "copy", "it shares the memory"
    if wanted and case["copy"] is False and address != first:
        yield "copy", "it was copied"


CONSUMERS = {"copy": (None, True, False), "protocol": list(PROTOCOLS), "producer": list(KNOWN),
             "byte_offset": (0, 64)}
PLAIN = {"copy": None, "protocol": "1.3", "producer": "all keywords", "byte_offset": 0,
         "layout": "compact", "dtype": (2, 32)}

CONSUMED = Crossed(take_case, (("dtype", DTYPES), ("layout", LAYOUTS)), CONSUMERS, PLAIN)
CONSUMED.of(dtype=list(FORMATS)).check(
    "C33", "MUST", "dtype", "the 14 dtypes of the array API standard: right, or refused", "values")
CONSUMED.of(copy=[False]).check(
    "C70", "MUST", "from-copy-false", "copy=False shares, or raises", "copy")
CONSUMED.check("C80", "MUST", "from",
               "every dtype in every layout has the right values, or is refused", "values")
CONSUMED.check("C81", "MUST", "owner-object", "the deleter runs once, taken or refused", "freed")
CONSUMED.check("C82", "MUST", "from-copy", "copy=True does not share, copy=False does", "copy")
CONSUMED.check("C83", "SHOULD", "retry", "producers without some keywords are asked again",
               "retry")


# ---- producers

# What a view of values in rows of 4 has.
VIEWS = {
    "the tensor": lambda rows: rows,
    "read-only": lambda rows: rows,
    "transposed": lambda rows: [list(column) for column in zip(*rows)],
    "columns": lambda rows: [row[::2] for row in rows],
    "reversed": lambda rows: rows[::-1],
    "inner": lambda rows: [row[1:] for row in rows[1:]],
    "rows": lambda rows: rows[1:],
    "broadcast": lambda rows: [rows, rows],
    "empty": lambda rows: [],
    "no dimensions": lambda rows: rows[0][0],
}
REQUESTS = {"max_version": (None, (0, 8), (1, 0), (1, 1), MAX_VERSION, (1, 99), (2, 0)),
            "copy": (None, True, False), "dl_device": (None, CPU)}


def flat(nested):
    return [one for part in nested for one in flat(part)] if isinstance(nested, list) else [nested]


def shape_of(nested):
    return (len(nested), *shape_of(nested[0])) if isinstance(nested, list) else ()


def viewed(library, case):
    """A tensor of the library, its shape and its elements."""
    dtype = (*case["dtype"], 1)
    values = numbers(case["dtype"], 12)
    with own(f"the library's own tensor or view ({case['view']})"):
        if case["view"] == "empty":
            return library.make(Tensor([], (0, 3), dtype=dtype)), (0, 3), []
        if case["view"] == "no dimensions":
            return library.make(Tensor(values[:1], (), dtype=dtype)), (), values[:1]
        if case["view"] == "read-only" and library.make_read_only is None:
            raise Skipped("no read-only tensors")
        make = library.make_read_only if case["view"] == "read-only" else library.make
        x = make(Tensor(values, dtype=dtype))
        if case["view"] not in ("the tensor", "read-only"):
            x = getattr(library, case["view"])(x)
    rows = VIEWS[case["view"]]([values[:4], values[4:8], values[8:]])
    return x, shape_of(rows), flat(rows)


def keywords_of(case):
    return {name: case[name] for name in REQUESTS if case[name] is not None}


def export_case(library, case):
    x, shape, expected = viewed(library, case)
    wanted = pack(expected, case["dtype"])
    keywords = keywords_of(case)
    try:
        kept = newest(x)
        plain = kept.dtype, kept.address, kept.flags
    except Exception:
        raise Skipped("P41 judges it") from None
    if plain[0] != (*case["dtype"], 1):
        yield "dtype", f"it is {plain[0]}"
        return
    try:
        found = Export(x.__dlpack__(**keywords))
    except BufferError:
        return
    except TypeError:
        if all(knows(x, keyword) for keyword in keywords):
            yield "refused", "TypeError"
        return
    except Exception as error:
        yield "refused", said(error)
        return
    version = case["max_version"]
    if found.versioned and (version is None or version[0] < 1):
        yield "protocol", "a versioned tensor"
    if found.versioned and found.struct.version.major != 1:
        yield "protocol", f"major version {found.struct.version.major}"
    if found.versioned and found.ndim and not found.tensor.strides and found.version >= (1, 2):
        yield "protocol", "strides are NULL"
    if found.shape != shape or found.dtype != plain[0] or not same(
            decode(found.bytes(), found.dtype), decode(wanted, found.dtype)):
        yield "values", f"{found.values()[:4]} of {found.dtype} in {found.shape}"
        return
    shared = found.address == plain[1]
    if wanted and case["copy"] is True and shared:
        yield "copy", "it shares the memory"
    if wanted and case["copy"] is False and not shared and (
            found.flags & IS_COPIED or not plain[2] & IS_COPIED):
        yield "copy", "it was copied"
    if found.versioned:
        if found.flags & ~(READ_ONLY | IS_COPIED | PADDED):
            yield "flags", f"flags is {found.flags:#x}"
        if wanted and case["copy"] is True and not found.flags & IS_COPIED:
            yield "unflagged", "a copy without IS_COPIED"
        if wanted and shared and found.flags & IS_COPIED:
            yield "flags", "IS_COPIED, and it shares the memory"
        if wanted and shared and (found.flags ^ plain[2]) & READ_ONLY:
            yield "flags", "READ_ONLY depends on the request"


PRODUCED = Crossed(export_case, (("dtype", DTYPES), ("view", VIEWS)), REQUESTS, {
    "dl_device": None, "copy": None, "max_version": MAX_VERSION, "view": "the tensor",
    "dtype": (2, 32)})
PRODUCED.of(dtype=[dtype for dtype in FORMATS if dtype[0] != 6]).check(
    "P51", "MUST", "dtype", "the 14 dtypes of the array API standard: code, bits and values",
    "dtype", "values")
PRODUCED.of(dtype=[(6, 8)]).check(
    "P52", "MUST", "bool", "bool has code 6 and 8 bits", "dtype", "values")
PRODUCED.of(dtype=[(0, 8), (2, 64), (5, 128)]).check(
    "P63", "MUST", "strides", "strides count elements, not bytes, for every element size", "values")
# Consumers decide by this flag whether they may write.
PRODUCED.of(copy=[True]).check("P15", "MUST", "copied-flag", "copy=True sets IS_COPIED",
                               "unflagged")
PRODUCED.of(copy=[True]).check("P16", "MUST", "copy-true", "copy=True gives memory of its own",
                               "copy")
PRODUCED.of(copy=[False]).check(
    "P18", "MUST", "copy-false", "copy=False shares memory, or raises BufferError", "copy")
for name, text, rule, view in (
        ("P45", "strides", "a transposed tensor: right, or refused", "transposed"),
        ("P46", "strides", "every other column: right, or refused", "columns"),
        ("P47", "strides", "negative strides: right, or refused", "reversed"),
        ("P48", "byte_offset", "a slice of the middle: data + byte_offset is its first element",
         "inner"),
        ("P49", "strides", "a broadcast tensor (stride 0): right, or refused", "broadcast")):
    PRODUCED.of(view=[view]).check(name, "MUST", text, rule, "values")
PRODUCED.check("P80", "MUST", "exports",
               "every view of every dtype has the right shape, dtype and values", "values")
PRODUCED.check("P81", "MUST", "version", "each request gets a struct that it can read", "protocol")
PRODUCED.check("P82", "MUST", "copied-flag", "the flags say what the memory is", "flags",
               "unflagged")
PRODUCED.check("P83", "MUST", "copy-true", "copy=True copies, copy=False never does", "copy")
PRODUCED.check("P84", "SHOULD", "cannot", "what is refused is refused by BufferError", "refused")


# ---- re-exports


def again_case(library, case):
    producer, first, expected = handmade(case)
    try:
        result = library.take(producer)
        found = Export(result.__dlpack__(**keywords_of(case)))
    except Exception:
        raise Skipped("refused") from None
    finally:
        producer.capsule = None
    if found.dtype != (*case["dtype"], 1):
        yield "dtype", f"it became {found.dtype}"
        return
    shape = LAYOUTS[case["layout"]][0]
    if found.shape != shape or not same(
            decode(found.bytes(), found.dtype),
            decode(pack(expected, case["dtype"]), found.dtype)):
        yield "values", f"{found.values()[:4]} in {found.shape}"
    if expected and case["copy"] is not True and found.address == first and found.versioned \
            and found.flags & IS_COPIED:
        yield "flags", "IS_COPIED, and it shares the memory"
    if expected and case["copy"] is True and found.address == first:
        yield "copy", "it shares the memory"


AGAIN = Crossed(again_case, (("dtype", DTYPES), ("layout", LAYOUTS)), {
    **{key: CONSUMERS[key] for key in ("protocol", "producer", "byte_offset")}, **REQUESTS},
    {**PLAIN, "max_version": MAX_VERSION, "dl_device": None})
AGAIN.of(layout=["transposed"]).check(
    "R04", "MUST", "exports", "a re-export says shape, strides and dtype as they were", "dtype",
    "values")
AGAIN.of(byte_offset=[64]).check(
    "R08", "MUST", "byte_offset",
    "a re-export with byte_offset: the first element is where it was", "values")
AGAIN.of(copy=[True]).check(
    "R11", "MUST", "copy-true", "copy=True of an imported tensor is other memory", "copy")
AGAIN.check("R80", "MUST", "exports", "a re-export has the right shape and values", "values")
# A library that has no such dtype refuses it, or exports it as it was.
AGAIN.check("R81", "MUST", "dtype", "a re-export has the dtype of what was taken", "dtype")
AGAIN.check("R82", "MUST", "is-copied", "a re-export that shares is not IS_COPIED", "flags")
AGAIN.check("R83", "MUST", "copy-true", "copy=True of a re-export is other memory", "copy")

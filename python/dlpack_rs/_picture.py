"""The layout of a tensor in memory, drawn as text and as SVG.

A place is room for one element; strides count places. Up to 100 places are drawn one by one, each
with the number of its element in row-major order; beyond that each axis is a bar.
"""

from __future__ import annotations

from html import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from . import Tensor
    from ._inspect import Inspection

AT_MOST = 100  # places and elements that are drawn one by one
ROW = 16  # places in a row
LINE = 512  # bits of a cache line
CELL, HEIGHT, LEFT = 36, 28, 64  # of a place in a picture, and where the first is
BARS, BAR_WIDTH = 12, 640  # blocks of a bar at most, and how wide it is
# Seen on light and on dark ground; text and frames have the colour of what is around.
COLOURS = ("#2f7de1", "#e07b00", "#1f9d55", "#a855f7", "#d6336c", "#0c93a5")
USED, SHARED, GAP = "#2f7de1", "#d6336c", "#808080"


class Axis:
    """One axis: extent and stride."""

    def __init__(self, number: int, extent: int, stride: int) -> None:
        self.number, self.extent, self.stride = number, extent, stride

    @property
    def colour(self) -> str:
        return COLOURS[self.number % len(COLOURS)]


class Picture:
    """The layout of a tensor of which only numbers are known. `start` is where its first element
    lies in its cache line, in bits, if that is known."""

    def __init__(self, title: str, shape: Sequence[int], strides: Sequence[int], bits: int,
                 start: int | None) -> None:
        self.title, self.shape, self.bits = title, tuple(shape), bits
        self.axes = [Axis(number, extent, stride)
                     for number, (extent, stride) in enumerate(zip(shape, strides))]
        self.size = 1
        for extent in shape:
            self.size *= extent
        reach = [(axis.extent - 1) * axis.stride for axis in self.axes] if self.size else []
        self.first = -sum(far for far in reach if far < 0)  # the place of element (0, ..., 0)
        self.places = sum(map(abs, reach)) + 1 if self.size else 0
        low = None if start is None else (start - self.first * bits) % LINE
        self.line = low  # of the first place, in its cache line
        self.column = low // bits % ROW if low is not None and not low % bits else 0
        self.detailed = max(self.places, self.size) <= AT_MOST

    def visits(self) -> list[list[int]]:
        """The elements of each place, by their numbers in row-major order."""
        found: list[list[int]] = [[] for _ in range(self.places)]
        places = [self.first] if self.size else []
        for axis in self.axes:
            places = [place + i * axis.stride for place in places for i in range(axis.extent)]
        for number, place in enumerate(places):
            found[place].append(number)
        return found

    def index(self, number: int) -> str:
        """An element's index."""
        found = []
        for extent in reversed(self.shape):
            number, i = divmod(number, extent)
            found.append(str(i))
        return f"[{', '.join(reversed(found))}]"

    def nbytes(self, places: int) -> str:
        """The bytes of some places, as text."""
        bits = places * self.bits
        return f"{bits / 8:g}" if bits % 8 else str(bits // 8)

    def breaks(self) -> list[float]:
        """Where cache lines begin, in places from the first; the first place's own is not one."""
        if self.line is None:
            return []
        end = self.line + self.places * self.bits
        return [(at - self.line) / self.bits for at in range(LINE, end, LINE)]

    def rows(self) -> Iterator[tuple[int, int]]:
        """(first place, end) of each row."""
        at = -self.column
        while at < self.places:
            yield max(at, 0), min(at + ROW, self.places)
            at += ROW

    def summary(self) -> str:
        if not self.size:
            return "no elements"
        elements = "1 element" if self.size == 1 else f"{self.size} elements"
        places = "1 place" if self.places == 1 else f"{self.places} places"
        each = self.nbytes(1)
        return f"{elements} in {places} of {each} byte{'s' * (each != '1')}"

    def meaning(self, axis: Axis) -> str:
        """What an axis does."""
        step = self.nbytes(abs(axis.stride))
        text = f"axis {axis.number}: {axis.extent}, stride {axis.stride} ({'-' * (axis.stride < 0)}"
        text += f"{step} byte{'s' * (step != '1')})"
        if axis.extent > 1 and axis.stride == 0:
            text += ", all in the same place"
        return text

    def blocks(self) -> list[tuple[Axis, int, float]]:
        """Of each axis, outermost in memory first: (axis, places of one block, the part of the
        step that it fills)."""
        found, inner = [], 1
        for axis in sorted(self.axes, key=lambda axis: abs(axis.stride)):
            if axis.extent > 1:
                step = abs(axis.stride)
                found.append((axis, inner, inner / step if step else 1.0))
                inner += (axis.extent - 1) * step
        return found[::-1]

    # --- As text ----------------------------------------------------------------------------------

    def text(self) -> str:
        lines = [self.title, self.summary(), ""]
        if self.size:
            lines += self._grid() if self.detailed else self._bars()
            lines += ["", *(self.meaning(axis) for axis in self.axes)]
        return "\n".join(lines).rstrip()

    def _grid(self) -> Iterator[str]:
        visits = self.visits()
        marks = [f"{v[0]}{'*' * (len(v) > 1)}" if v else "." for v in visits]
        width, breaks = max(map(len, marks)), {int(at) for at in self.breaks()}
        for first, end in self.rows():
            line = f"byte {self.nbytes(first):>5} "
            line += " " * ((first + self.column) % ROW * (width + 1))
            for place in range(first, end):
                line += ("|" if place in breaks else " ") + marks[place].rjust(width)
            yield line
        yield ""
        for sign, what, there in self._legend(visits):
            if there:
                yield f"{sign}  {what}"

    def _legend(self, visits: list[list[int]]) -> list[tuple[str, str, bool]]:
        return [("0", "an element, by its number in row-major order", True),
                ("*", "shared by several elements, of which this is the first",
                 any(len(v) > 1 for v in visits)),
                (".", "a gap", not all(visits)),
                ("|", "a cache line of 64 bytes begins", bool(self.breaks()))]

    def _bars(self) -> Iterator[str]:
        for axis, inner, part in self.blocks():
            filled = max(1, min(4, round(4 * part)))
            block = "#" * filled + "." * (4 - filled)
            shown = [block] * min(axis.extent if axis.stride else 1, BARS // 2)
            more = " ..." if axis.extent > BARS // 2 and axis.stride else ""
            yield f"axis {axis.number}: {' '.join(shown)}{more}   {self.of_block(axis, inner)}"

    def of_block(self, axis: Axis, inner: int) -> str:
        what = f"{axis.extent} blocks of {self.nbytes(inner)} bytes"
        if inner == 1:
            what = f"{axis.extent} elements of {self.nbytes(1)} bytes"
        if not axis.stride:
            return f"{what}, all in the same place"
        far = f"{what}, every {self.nbytes(abs(axis.stride))} bytes"
        if inner > abs(axis.stride):
            far += ", into each other"
        return far + (", backwards" if axis.stride < 0 else "")

    # --- As SVG -----------------------------------------------------------------------------------

    def svg(self) -> str:
        """Whole SVG; empty for no elements."""
        if not self.size:
            return ""
        drawn = _Cells(self) if self.detailed else _Bars(self)
        label = escape(f"{self.title}: {self.summary()}")
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{drawn.width}" '
                f'height="{drawn.height}" viewBox="0 0 {drawn.width} {drawn.height}" role="img" '
                f'aria-label="{label}" font-family="sans-serif" font-size="12" '
                f'fill="currentColor">{"".join(drawn.parts)}</svg>')

    def html(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg()}</div>' if self.size else ""


class _Drawing:
    """Parts of a picture."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.width, self.height = LEFT + ROW * CELL + 16, 0

    def box(self, x: float, y: float, width: float, height: float, colour: str, opacity: float,
            rest: str = "", title: str = "") -> None:
        inner = f"<title>{escape(title)}</title>" if title else ""
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
                          f'fill="{colour}" fill-opacity="{opacity:g}" stroke="currentColor" '
                          f'stroke-opacity=".45"{rest}>{inner}</rect>')

    def text(self, x: float, y: float, text: str, rest: str = "") -> None:
        self.parts.append(f'<text x="{x:g}" y="{y:g}"{rest}>{escape(text)}</text>')

    def line(self, d: str, colour: str = "currentColor", width: float = 1.0,
             rest: str = "") -> None:
        self.parts.append(f'<path d="{d}" fill="none" stroke="{colour}" '
                          f'stroke-width="{width:g}"{rest}/>')


class _Cells(_Drawing):
    """The places of the memory as a grid."""

    def __init__(self, picture: Picture) -> None:
        super().__init__()
        self.picture, self.top = picture, 44
        visits, rows = picture.visits(), list(picture.rows())
        self.places(visits, rows)
        self.lines()
        self.order(visits)
        self.strides()
        self.height = self.top + len(rows) * (HEIGHT + 10) + 12
        self.legend(visits)

    def corner(self, place: float) -> tuple[float, float]:
        row, column = divmod(place + self.picture.column, ROW)
        return LEFT + column * CELL, self.top + row * (HEIGHT + 10)

    def centre(self, place: int) -> tuple[float, float]:
        x, y = self.corner(place)
        return x + CELL / 2, y + HEIGHT / 2

    def places(self, visits: list[list[int]], rows: list[tuple[int, int]]) -> None:
        picture = self.picture
        for first, _ in rows:
            y = self.corner(first)[1] + HEIGHT / 2 + 4
            self.text(LEFT - 8, y, picture.nbytes(first), ' text-anchor="end" opacity=".7"')
        for place, numbers in enumerate(visits):
            colour = GAP if not numbers else SHARED if len(numbers) > 1 else USED
            names = [f"{n}: {picture.index(n)}" for n in numbers]
            known = f"byte {picture.nbytes(place)}: " + (", ".join(names) or "a gap")
            data = f' data-place="{place}" data-visits="{" ".join(map(str, numbers))}"'
            self.box(*self.corner(place), CELL, HEIGHT, colour, .3 if numbers else .22, data, known)

    def lines(self) -> None:
        """Where cache lines begin."""
        for at in self.picture.breaks():
            x, y = self.corner(at)
            inside = at != int(at)  # of an element, whose number stays readable
            way = f"v10M{x:g} {y + HEIGHT + 4:g}v-10" if inside else f"v{HEIGHT + 8}"
            self.line(f"M{x:g} {y - 4:g}{way}", width=2.5, rest=' data-line=""')

    def order(self, visits: list[list[int]]) -> None:
        """The path from element to element, with their numbers."""
        way = sorted((number, place) for place, numbers in enumerate(visits) for number in numbers)
        points = [self.centre(place) for _, place in way]
        d = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
        self.line(d, width=1.5, rest=' stroke-opacity=".28" stroke-dasharray="3 3" data-order=""')
        for place, numbers in enumerate(visits):
            if numbers:
                x, y = self.centre(place)
                many = f"×{len(numbers)}" if len(numbers) > 1 else ""
                self.text(x, y + 4, f"{numbers[0]}{many}", ' text-anchor="middle"')

    def strides(self) -> None:
        """From element (0, ..., 0) along each axis to the next."""
        first = self.picture.first
        for axis in self.picture.axes:
            if axis.extent > 1:
                self.arrow(axis, self.centre(first), self.centre(first + axis.stride))

    def arrow(self, axis: Axis, start: tuple[float, float], end: tuple[float, float]) -> None:
        (x0, y0), (x1, y1) = start, end
        y0 -= HEIGHT / 2
        if y0 == y1 - HEIGHT / 2:
            x0, x1 = x0 + 2 * axis.number - 4, x1 + 2 * axis.number - 4
            y1 = y0
            lift = 14 + 7 * axis.number + (12 if x0 == x1 else 0)
            ax, ay, bx, by = x0, y0 - lift, x1, y1 - lift
            if x0 == x1:  # to itself
                ax, bx = x0 - 16, x1 + 16
        else:  # to another row
            y1 = y1 - HEIGHT / 2 if y1 > y0 else y1 + HEIGHT / 2
            y0 = y0 + HEIGHT if y1 > y0 else y0
            x0, x1 = x0 + 5 * axis.number - 8, x1 + 5 * axis.number - 8
            ax, ay, bx, by = x0, (y0 + y1) / 2, x1, (y0 + y1) / 2
        data = f' data-axis="{axis.number}"'
        self.line(f"M{x0:g} {y0:g}C{ax:g} {ay:g} {bx:g} {by:g} {x1:g} {y1:g}", axis.colour, 2, data)
        down = 1 if y1 >= by else -1
        self.parts.append(f'<path d="M{x1:g} {y1:g}l-4 {-7 * down}h8z" fill="{axis.colour}"/>')

    def legend(self, visits: list[list[int]]) -> None:
        picture = self.picture
        signs = {"0": (USED, .3), "*": (SHARED, .3), ".": (GAP, .22)}
        notes = {"*": "shared by several elements: the first, and how many"}
        for sign, what, there in picture._legend(visits):
            if not there:
                continue
            if sign in signs:
                self.box(LEFT, self.height, 14, 12, *signs[sign])
            else:
                self.line(f"M{LEFT + 7} {self.height - 1:g}v14", width=2.5)
            self.text(LEFT + 22, self.height + 10, notes.get(sign, what))
            self.height += 18
        if picture.size > 1:
            self.line(f"M{LEFT} {self.height + 6:g}h14", width=1.5,
                      rest=' stroke-opacity=".5" stroke-dasharray="3 3"')
            self.text(LEFT + 22, self.height + 10, "the way from element to element")
            self.height += 18
        for axis in picture.axes:
            if axis.extent > 1:
                self.line(f"M{LEFT} {self.height + 6:g}h14", axis.colour, 2.5)
            self.text(LEFT + 22, self.height + 10, picture.meaning(axis))
            self.height += 18
        self.height = int(self.height + 6)


class _Bars(_Drawing):
    """Each axis as a bar, the outermost in memory first: one block is the whole next bar."""

    def __init__(self, picture: Picture) -> None:
        super().__init__()
        self.width, y = BAR_WIDTH + 48, 8
        blocks = picture.blocks()
        for level, (axis, inner, part) in enumerate(blocks):
            shown = min(axis.extent, BARS) if axis.stride else 1
            step = BAR_WIDTH / shown
            self.text(8, y + 12, f"axis {axis.number}: {picture.of_block(axis, inner)}")
            y += 18
            shared = not axis.stride or part > 1
            for i in range(shown):
                place = f' data-axis="{axis.number}" data-part="{min(part, 1):.4g}"'
                self.box(8 + i * step, y, step, HEIGHT, GAP, .22)
                self.box(8 + i * step, y, max(step * min(part, 1), 1), HEIGHT,
                         SHARED if shared else axis.colour, .35, place)
            if shown < axis.extent and axis.stride:
                self.text(14 + BAR_WIDTH, y + 18, "…")
            self.arrow(axis, y, shown, step)
            y += HEIGHT
            if level + 1 < len(blocks):  # the block, seen closer
                end = 8 + max(step * min(part, 1), 1)
                self.line(f"M8 {y}v34M{end:g} {y}L{8 + BAR_WIDTH} {y + 34}",
                          rest=' stroke-opacity=".35" stroke-dasharray="4 3"')
            y += 16
        self.footer(picture, y + 4)

    def arrow(self, axis: Axis, y: float, shown: int, step: float) -> None:
        """The order of visits."""
        if shown < 2:
            return
        start, end = 8 + step / 2, 8 + BAR_WIDTH - step / 2
        if axis.stride < 0:
            start, end = end, start
        back = -8 if end > start else 8
        self.line(f"M{start:g} {y + 14}H{end:g}", width=1.5, rest=' stroke-opacity=".6"')
        self.parts.append(f'<path d="M{end:g} {y + 14}l{back} -4v8z" fill-opacity=".6"/>')

    def footer(self, picture: Picture, y: float) -> None:
        part = ""
        if picture.size <= picture.places:
            part = f": {100 * picture.size / picture.places:.3g} % of the bytes"
        self.text(8, y + 12, picture.summary() + part)
        steps = [abs(a.stride) for a in picture.axes if a.extent > 1 and a.stride]
        each = max(1, LINE // (min(steps, default=1) * picture.bits))
        many = "1 element" if each == 1 else f"{each} neighbours"
        self.text(8, y + 30, f"a cache line of 64 bytes holds {many} of the innermost bar")
        self.height = int(y + 40)


class Layout(str):
    """A layout as text; in a notebook, the picture."""

    picture: Picture

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.picture.html()


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a compact tensor."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def itemsize_bits(dtype_name: str, flags: int) -> int:
    from ctypes import byref, c_uint64

    from . import abi

    bits, tensor, text = c_uint64(), abi.DLTensor(), dtype_name.encode()
    abi.call(abi.lib.dlrs_dtype_parse, text, len(text), byref(tensor.dtype))
    abi.call(abi.lib.dlrs_itemsize_bits, byref(tensor), flags, byref(bits))
    return bits.value


def of_tensor(tensor: Tensor) -> Picture:
    title = f"{tensor.dtype} {tensor.shape} on {tensor.device}, strides {tensor.strides}"
    bits = itemsize_bits(tensor.dtype, tensor.flags)
    start = (tensor.data_ptr + tensor.byte_offset) * 8 % LINE if tensor.data_ptr else None
    return Picture(title, tensor.shape, tensor.strides, bits, start)


def of_inspection(seen: Inspection) -> Picture | None:
    """None if the struct is not valid enough."""
    if seen.shape is None or seen.nbytes is None:
        return None
    strides = row_major(seen.shape) if seen.strides is None else seen.strides
    title = f"{seen.dtype_name} {seen.shape} on {seen.device_name}, strides {strides}"
    start = seen.address * 8 % LINE if seen.address else None
    return Picture(title, seen.shape, strides, itemsize_bits(seen.dtype_name, seen.flags), start)


def layout(tensor: Tensor) -> Layout:
    picture = of_tensor(tensor)
    found = Layout(picture.text())
    found.picture = picture
    return found


def tensor_html(tensor: Tensor) -> str:
    flags = "read-only" if tensor.readonly else "writable"
    rows: list[tuple[object, ...]]
    rows = [("dtype", tensor.dtype), ("shape", tensor.shape), ("strides", tensor.strides),
            ("device", tensor.device), ("memory", f"{tensor.nbytes} bytes, {flags}")]
    return table(rows) + of_tensor(tensor).html()


def table(rows: Sequence[tuple[object, ...]], head: Sequence[str] = ()) -> str:
    """HTML."""
    align = ' style="text-align:left"'
    top = "".join(f"<th{align}>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<t{'hd'[i > 0]}{align}>{escape(str(cell))}</t{'hd'[i > 0]}>"
                                    for i, cell in enumerate(row)) + "</tr>" for row in rows)
    return f"<table>{f'<tr>{top}</tr>' if head else ''}{body}</table>"


def inspection_html(seen: Inspection) -> str:
    picture = of_inspection(seen)
    consumers = [(f"{consumer.name} {consumer.version}", verdict, why)
                 for consumer, verdict, why in seen.consumers]
    return (f"<p><b>{escape(seen.type)}</b></p>" + table(list(seen.rows()))
            + (picture.html() if picture else "")
            + table(consumers, ("consumer", "verdict", "why")))

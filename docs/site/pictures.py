#!/usr/bin/env python3
"""Draws docs/pictures: plain SVG in the page's own colour. The layers are those of docs/house.py.
--check compares instead of writing."""

import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import house  # noqa: E402

FOLDER = ROOT / "docs/pictures"


class Picture:
    """Boxes, arrows and texts on a plane of pixels."""

    def __init__(self, width, height, title):
        self.parts = []
        self.head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                     f'style="max-width:{width}px;width:100%" role="img" font-size="13" '
                     f'font-family="ui-sans-serif,sans-serif" fill="none" stroke="currentColor">\n'
                     f"<title>{escape(title)}</title>\n"
                     '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
                     'markerHeight="8" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" '
                     'fill="currentColor" stroke="none"/></marker></defs>\n')

    def text(self, x, y, words, anchor="start", bold=False):
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}"{weight} stroke="none" '
                          f'fill="currentColor">{escape(words)}</text>')

    def box(self, x, y, width, height, words="", shade=0.0):
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="3" '
                          f'fill="currentColor" fill-opacity="{shade}"/>')
        if words:
            self.text(x + width / 2, y + height / 2 + 4.5, words, "middle")

    def arrow(self, *points, dashed=False):
        path = "L".join(f"{x} {y}" for x, y in points)
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self.parts.append(f'<path d="M{path}" marker-end="url(#tip)"{dash}/>')

    def table(self, x, y, width, title, rows):
        """A struct: its name and members. The middles of their right sides."""
        self.box(x, y, width, 24, shade=0.12)
        self.text(x + 8, y + 16.5, title, bold=True)
        for number, row in enumerate(rows):
            self.box(x, y + 24 + 22 * number, width, 22)
            self.text(x + 8, y + 39 + 22 * number, row)
        return [(x + width, y + 35 + 22 * number) for number in range(len(rows))]

    def svg(self):
        return self.head + "\n".join(self.parts) + "\n</svg>\n"


def structs():
    picture = Picture(740, 306, "The structs of DLPack and what they point to")
    ends = picture.table(10, 10, 230, "DLManagedTensorVersioned",
                         ["version  1.3", "manager_ctx", "deleter", "flags", "dl_tensor"])
    inner = picture.table(300, 60, 190, "DLTensor",
                          ["data", "device", "ndim", "dtype", "shape", "strides", "byte_offset"])
    picture.arrow(ends[4], (270, ends[4][1]), (270, 72), (298, 72))
    for number, words, y in ((0, "the first byte", 95), (4, "int64_t[ndim]", 183),
                             (5, "int64_t[ndim], in elements", 205)):
        picture.arrow(inner[number], (538, inner[number][1]))
        picture.text(544, y + 4, words)
    picture.text(10, 190, "deleter(self): called once,")
    picture.text(10, 208, "by whoever owns the struct")
    picture.text(10, 268, "element (i, j) is at  data + byte_offset + (i * strides[0] + "
                 "j * strides[1]) * size of an element")
    picture.text(10, 292, "DLManagedTensor (legacy): dl_tensor, manager_ctx, deleter; "
                 "no version, no flags")
    return picture


def ownership():
    picture = Picture(740, 330, "Who owns a tensor, from the producer to the last reference")
    for x, name in ((70, "producer"), (370, "libdlpack_rs"), (670, "consumer")):
        picture.text(x, 20, name, "middle", bold=True)
        picture.arrow((x, 30), (x, 320), dashed=True)
    steps = [(70, 370, "dlrs_tensor_wrap(memory, free_fn)"),
             (370, 70, "a versioned struct, one reference"),
             (70, 670, "the struct: the consumer owns it now"),
             (670, 370, "dlrs_retain: one reference more"),
             (670, 370, "dlrs_view_slice: a view keeps its base alive"),
             (670, 370, "deleter(view), deleter, dlrs_release"),
             (370, 70, "free_fn(context): once, after the last one")]
    for number, (start, end, words) in enumerate(steps):
        y = 62 + 38 * number
        picture.arrow((start, y), (end, y))
        picture.text((start + end) / 2, y - 6, words, "middle")
    return picture


def strides():
    picture = Picture(720, 210, "One buffer of twelve elements, read in three ways")
    for number in range(12):
        picture.box(10 + 40 * number, 10, 40, 30, str(number), 0.06)
    picture.text(500, 30, "memory, in elements")
    views = [("shape (3, 4), strides (4, 1)", 3, 4, lambda i, j: 4 * i + j),
             ("transposed: (4, 3), (1, 4)", 4, 3, lambda i, j: i + 4 * j),
             ("columns reversed: (3, 4), (4, -1)", 3, 4, lambda i, j: 4 * i + 3 - j)]
    for place, (words, rows, columns, index) in enumerate(views):
        left = 10 + 250 * place
        picture.text(left, 74, words)
        for i in range(rows):
            for j in range(columns):
                first = i == j == 0
                picture.box(left + 36 * j, 84 + 28 * i, 36, 28, str(index(i, j)),
                            0.2 if first else 0)
    return picture


def streams():
    picture = Picture(720, 190, "The order of an asynchronous copy on two streams")
    for y, name in ((40, "source's stream"), (120, "destination's stream")):
        picture.text(10, y + 20, name)
        picture.arrow((170, y + 38), (710, y + 38))
    picture.box(190, 40, 120, 30, "writes source", 0.08)
    picture.box(190, 120, 120, 30, "reads old", 0.08)
    picture.box(360, 120, 110, 30, "copy", 0.3)
    picture.box(540, 120, 130, 30, "reads result", 0.08)
    picture.arrow((310, 55), (415, 55), (415, 118))
    picture.arrow((310, 135), (358, 135))
    picture.arrow((470, 135), (538, 135))
    picture.text(425, 100, "the stream waits, not the caller")
    return picture


def layers():
    rows = house.layers(house.crates())
    title = "The crates, each above those that it may use"
    picture = Picture(720, 20 + 34 * len(rows), title)
    for number, row in enumerate(rows):
        shown = ", ".join("src" if name == "rs" else name for name in row)
        picture.box(10, 10 + 34 * number, 700, 28, shown, 0.04 + 0.02 * number)
    return picture


def main():
    wrong = 0
    for draw in (structs, ownership, strides, streams, layers):
        file, svg = FOLDER / f"{draw.__name__}.svg", draw().svg()
        if "--check" in sys.argv[1:]:
            same = file.is_file() and file.read_text() == svg
            print(f"{'pass' if same else 'FAIL'}  docs/pictures/{file.name}")
            wrong += not same
        else:
            file.write_text(svg)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

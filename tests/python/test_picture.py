"""Tensor.layout and the pictures of notebooks, against NumPy's positions of elements."""

import pydoc
import random
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import dlpack_rs
from dlpack_rs._picture import CELL, GAP, HEIGHT, LEFT, SHARED, USED, Picture, row_major

SVG = "{http://www.w3.org/2000/svg}"


def views(count, seed=46):
    """Random views of a buffer whose elements are their positions: the values are the oracle."""
    rng = random.Random(seed)
    for _ in range(count):
        dtype = rng.choice(["uint8", "int16", "float32", "float64", "complex128"])
        buffer = np.arange(120).astype(dtype)[rng.randrange(12):]
        shape = tuple(rng.choice([1, 1, 2, 3, 4]) for _ in range(rng.randint(0, 3)))
        strides = tuple(rng.choice([0, 1, 1, 2, 3, 4, 7, -1, -2, -5]) for _ in shape)
        reach = [(extent - 1) * stride for extent, stride in zip(shape, strides)]
        first = -sum(far for far in reach if far < 0)
        if sum(map(abs, reach)) < 100:
            yield as_strided(buffer[first:], shape, [s * buffer.itemsize for s in strides])


def places(view):
    """The position of each element, and the byte address of the first position."""
    found = view.ravel().real.astype(int)
    return (found - found.min()).tolist(), np.lib.array_utils.byte_bounds(view)[0]


def drawn(tensor):
    """The SVG in a tensor's HTML."""
    html = tensor._repr_html_()
    return ElementTree.fromstring(html[html.index("<svg"):html.index("</div>")])


def numbers(text):
    return [float(n) for n in re.findall(r"-?[\d.]+", text)]


def test_pictures_show_each_element_where_it_is():
    seen = {GAP: 0, USED: 0, SHARED: 0}
    for view in views(150):
        at, address = places(view)
        svg = drawn(dlpack_rs.from_dlpack(view))
        boxes = [box for box in svg.iter(f"{SVG}rect") if "data-place" in box.keys()]
        item = view.itemsize
        column = address % 64 // item % 16 if address % item == 0 else 0
        corners = {}
        for place, box in enumerate(boxes):
            visits = [int(n) for n in box.get("data-visits").split()]
            assert visits == [n for n, where in enumerate(at) if where == place]
            colour = GAP if not visits else SHARED if len(visits) > 1 else USED
            assert box.get("fill") == colour
            seen[colour] += 1
            row, x = divmod(place + column, 16)
            corners[place] = float(box.get("x")), float(box.get("y"))
            assert corners[place][0] == LEFT + x * CELL
            assert corners[place][1] == corners[0][1] + row * (HEIGHT + 10)
            index = [f"{n}: {[int(i) for i in np.unravel_index(n, view.shape)]}" for n in visits]
            assert all(text in box.find(f"{SVG}title").text for text in index)
        assert len(boxes) == max(at) + 1
        check_way(svg, at, corners)
        check_arrows(svg, view, corners)
        check_lines(svg, address, item, len(boxes), corners, column)
    assert min(seen.values()) > 100


def centre(corner):
    return corner[0] + CELL / 2, corner[1] + HEIGHT / 2


def check_way(svg, at, corners):
    """The line of the iteration order passes through the middles of the cells."""
    way, = (path for path in svg.iter(f"{SVG}path") if "data-order" in path.keys())
    found = numbers(way.get("d"))
    assert list(zip(found[::2], found[1::2])) == [centre(corners[place]) for place in at]


def check_arrows(svg, view, corners):
    """From the first element to the next of each axis."""
    arrows = {int(path.get("data-axis")): numbers(path.get("d")) for path in svg.iter(f"{SVG}path")
              if "data-axis" in path.keys()}
    assert sorted(arrows) == [axis for axis, extent in enumerate(view.shape) if extent > 1]
    low = int(view.real.min())
    for axis, found in arrows.items():
        next_ = tuple(int(i == axis) for i in range(view.ndim))
        for (x, y), element in ((found[:2], (0,) * view.ndim), (found[-2:], next_)):
            left, top = corners[int(view[element].real) - low]
            assert left <= x <= left + CELL and top <= y <= top + HEIGHT


def check_lines(svg, address, item, count, corners, column):
    """At each multiple of 64 within the memory."""
    lines = [numbers(path.get("d"))[:2] for path in svg.iter(f"{SVG}path")
             if "data-line" in path.keys()]
    expected = []
    for byte in range(address + 1, address + count * item):
        if byte % 64 == 0:
            place = (byte - address) / item
            expected.append([LEFT + (place + column) % 16 * CELL, corners[int(place)][1] - 4])
    assert np.allclose(lines, expected) and len(lines) == len(expected)


def test_texts_show_the_same():
    for view in views(150, seed=47):
        at, address = places(view)
        text = dlpack_rs.from_dlpack(view).layout()
        grid = re.findall(r"^byte +([\d.]+) (.*)$", text, re.M)
        marks, breaks, place = [], [], 0
        for byte, line in grid:
            assert float(byte) == place * view.itemsize
            for sign, mark in re.findall(r"([| ]) *([\d.]+\*?)", line):
                marks.append(mark)
                breaks += [place] * (sign == "|")
                place += 1
        expected = []
        for where in range(max(at) + 1):
            visits = [n for n, other in enumerate(at) if other == where]
            expected.append(f"{visits[0]}{'*' * (len(visits) > 1)}" if visits else ".")
        assert marks == expected
        assert breaks == sorted({(byte - address) // view.itemsize for byte in
                                 range(address + 1, address + len(marks) * view.itemsize)
                                 if byte % 64 == 0})
        assert str(view.shape) in text and f"strides {dlpack_rs.from_dlpack(view).strides}" in text
        assert repr(text) == str(text) and text._repr_html_().startswith("<div")


def test_large_tensors_are_bars():
    array = np.zeros((64, 5, 30, 40), np.float32)[:, ::-1, :, :20].transpose(0, 2, 3, 1)
    tensor = dlpack_rs.from_dlpack(array)
    bars = [box for box in drawn(tensor).iter(f"{SVG}rect") if "data-axis" in box.keys()]
    order = list(dict.fromkeys(int(box.get("data-axis")) for box in bars))
    assert order == sorted(range(4), key=lambda axis: -abs(array.strides[axis])) == [0, 3, 1, 2]
    for axis in order:
        # A block of an axis is the range of the smaller strides.
        smaller = [i for i in range(4) if abs(array.strides[i]) < abs(array.strides[axis])]
        block = array[tuple(slice(None) if i in smaller else 0 for i in range(4))]
        low, high = np.lib.array_utils.byte_bounds(block)
        part, = {float(box.get("data-part")) for box in bars if box.get("data-axis") == str(axis)}
        assert part == pytest.approx((high - low) / abs(array.strides[axis]), rel=1e-3)
        every = f"every {abs(array.strides[axis])} bytes"
        line, = re.findall(rf"^axis {axis}: #.*$", tensor.layout(), re.M)
        assert every in line and f" {array.shape[axis]} " in line
        assert ("backwards" in line) == (array.strides[axis] < 0)
        assert len(line) <= 100
    text = "".join(drawn(tensor).itertext())
    assert f"{array.size} elements" in text


def test_layouts_of_any_size_are_quick_to_draw():
    huge = dlpack_rs.from_dlpack(np.broadcast_to(np.float32(1), (1 << 30, 1 << 29)))
    assert "all in the same place" in huge.layout() and drawn(huge) is not None
    for shape, strides in (((101,), (1,)), ((100,), (1,)), ((2,), (99,)), ((2,), (100,))):
        picture = Picture("", shape, strides, 8, 0)
        assert picture.detailed == (max(shape[0], strides[0] + 1) <= 100), (shape, strides)
        ElementTree.fromstring(picture.svg())


def test_few_elements():
    empty = dlpack_rs.empty((2, 0, 3))
    assert "no elements" in empty.layout() and "<svg" not in empty._repr_html_()
    one = dlpack_rs.empty(())
    assert "1 element in 1 place of 4 bytes" in one.layout()
    assert len([b for b in drawn(one).iter(f"{SVG}rect") if "data-place" in b.keys()]) == 1
    assert row_major((2, 3, 4)) == (12, 4, 1) and row_major(()) == ()


def test_elements_smaller_than_bytes():
    picture = Picture("int4", (3, 6), (6, 1), 4, 504)
    text = picture.text()
    assert "18 elements in 18 places of 0.5 bytes" in text and "stride 6 (3 bytes)" in text
    assert picture.breaks() == [2]  # after the last byte of a cache line
    tensor = dlpack_rs.empty((4, 6), "float4_e2m1fn")
    assert "24 places of 0.5 bytes" in tensor.layout()
    assert "6 places of 16 bytes" in dlpack_rs.empty((6,), "float32x4").layout()


def test_inspections_are_tables_with_a_picture():
    view = np.arange(24.0).reshape(4, 6)[::-1, ::2]
    html = dlpack_rs.inspect(view)._repr_html_()
    at, _ = places(view)
    svg = ElementTree.fromstring(html[html.index("<svg"):html.index("</div>")])
    boxes = [box for box in svg.iter(f"{SVG}rect") if "data-place" in box.keys()]
    assert sorted((int(n), place) for place, box in enumerate(boxes)
                  for n in box.get("data-visits").split()) == list(enumerate(at))
    assert "numpy.ndarray" in html and "strictly" in html and "takes" in html
    ElementTree.fromstring(f"<body>{html}</body>")

    def dlpack(self, **keywords):
        return view.__dlpack__(**keywords)

    evil = type("<script>&", (), {"__dlpack__": dlpack})
    html = dlpack_rs.inspect(evil())._repr_html_()
    assert "<script" not in html and "&lt;script&gt;&amp;" in html


def test_picture_colours_are_readable_light_and_dark():
    """Only colours that are readable on light and dark, and no names that could collide."""
    for view in (np.zeros((4, 6))[:, ::2], np.zeros((400, 6))[:, ::2]):
        html = dlpack_rs.from_dlpack(view)._repr_html_()
        colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', html)) - {"none", "currentColor"}
        for colour in colours:
            red, green, blue = (int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5))
            assert 0.2 < 0.3 * red + 0.6 * green + 0.1 * blue < 0.75, colour
        assert " id=" not in html and "url(" not in html and 'fill="currentColor"' in html


def test_inspect_is_in_dir_and_help():
    assert {"inspect", "abi", "Tensor"} <= set(dir(dlpack_rs))
    text = pydoc.render_doc(dlpack_rs, renderer=pydoc.plaintext)
    assert "inspect(obj" in text and "Everything about the tensor" in text
    assert "layout" in pydoc.render_doc(dlpack_rs.Tensor, renderer=pydoc.plaintext)

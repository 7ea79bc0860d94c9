"""Small SVG charts: lines, scatter and rows of dots, with linear or logarithmic axes."""

import math
from html import escape

COLORS = {"ours": "#c2410c", "ours 1": "#c2410c", "ours 2": "#f59e0b", "memcpy": "#6b7280",
          "limit": "#111827", "NumPy": "#2563eb", "torch 1": "#7c3aed", "torch 2": "#c084fc",
          "jax": "#0d9488", "HPTT": "#15803d", "strided-perm": "#be185d"}
SPARE = ["#c2410c", "#2563eb", "#0d9488", "#7c3aed", "#6b7280"]
INK, GRID = "#1f2937", "#e5e7eb"


def color(name, place=0):
    return COLORS.get(name, SPARE[place % len(SPARE)])


class Axis:
    """Maps values to pixels; `ticks` are (value, label)."""

    def __init__(self, title, ticks, low, high, log=True):
        self.title, self.ticks, self.log = title, ticks, log
        self.low, self.high = (math.log(low), math.log(high)) if log else (low, high)

    def at(self, value, start, end):
        value = math.log(value) if self.log else value
        part = (value - self.low) / (self.high - self.low)
        return start + (end - start) * min(1.0, max(0.0, part))


class Chart:
    """A frame with a grid; the caller adds what is in it."""

    def __init__(self, title, x, y, width=760, height=460, left=70, right=150):
        self.x, self.y, self.width, self.height = x, y, width, height
        self.box = (left, 44, width - right, height - 50)
        self.parts, self.legend = [], 0
        self.text(left, 24, title, size=15, weight="600")
        self._grid()

    def _grid(self):
        left, top, right, bottom = self.box
        for value, label in self.x.ticks:
            at = self.px(value)
            self.line(at, top, at, bottom, GRID)
            self.text(at, bottom + 17, label, anchor="middle")
        for value, label in self.y.ticks if self.y else ():
            at = self.py(value)
            self.line(left, at, right, at, GRID)
            self.text(left - 8, at + 4, label, anchor="end")
        self.line(left, bottom, right, bottom, INK)
        self.line(left, top, left, bottom, INK)
        self.text((left + right) / 2, bottom + 38, self.x.title, anchor="middle")
        if self.y:
            turn = f' transform="rotate(-90 18 {(top + bottom) / 2:.1f})"'
            self.text(18, (top + bottom) / 2, self.y.title, anchor="middle", extra=turn)

    def px(self, value):
        return self.x.at(value, self.box[0], self.box[2])

    def py(self, value):
        return self.y.at(value, self.box[3], self.box[1])

    def line(self, x1, y1, x2, y2, stroke, width=1, dash=""):
        dash = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                          f'stroke="{stroke}" stroke-width="{width}"{dash}/>')

    def text(self, x, y, words, anchor="start", size=12, weight="400", extra=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
                          f'font-size="{size}" font-weight="{weight}"{extra}>'
                          f'{escape(words)}</text>')

    def dot(self, x, y, fill, radius=4.0, opacity=1.0):
        see = f' fill-opacity="{opacity}"' if opacity < 1 else ""
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}"{see}/>')

    def path(self, points, stroke):
        way = " ".join(f"{self.px(x):.1f},{self.py(y):.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{way}" fill="none" stroke="{stroke}" '
                          f'stroke-width="2"/>')

    def mark(self, x, y, stroke):
        """A short upright stroke: a target."""
        self.line(x, y - 7, x, y + 7, stroke, 2)

    def key(self, name, fill, upright=False):
        """One line of the legend, right of the frame."""
        x, y = self.box[2] + 16, self.box[1] + 8 + 20 * self.legend
        self.mark(x, y, fill) if upright else self.dot(x, y, fill)
        self.text(x + 12, y + 4, name)
        self.legend += 1

    def svg(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" '
                f'height="{self.height}" viewBox="0 0 {self.width} {self.height}" '
                f'font-family="Helvetica, Arial, sans-serif" fill="{INK}">\n'
                '<rect width="100%" height="100%" fill="#ffffff"/>\n'
                + "\n".join(self.parts) + "\n</svg>\n")


def decades(low, high, steps=(1, 2, 5)):
    """Ticks of a logarithmic axis."""
    ticks = []
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        ticks += [step * 10.0 ** power for step in steps]
    return [(tick, f"{tick:g}") for tick in ticks if low <= tick * 1.001 and tick <= high * 1.001]


def lines(title, x, y, series):
    """series: name -> [(x, y)]."""
    chart = Chart(title, x, y)
    for place, (name, points) in enumerate(series.items()):
        fill = color(name, place)
        chart.path(points, fill)
        for a, b in points:
            chart.dot(chart.px(a), chart.py(b), fill, 2.5)
        chart.key(name, fill)
    return chart


def rows(title, x, names, series, targets=()):
    """Dots on one line per name; series: name -> [value or None]; targets: strokes."""
    chart = Chart(title, x, None, width=900, height=110 + 24 * len(names), left=280, right=140)
    left, top, right, bottom = chart.box
    step = (bottom - top) / len(names)
    for place, name in enumerate(names):
        y = top + step * (place + 0.5)
        chart.line(left, y, right, y, GRID)
        chart.text(left - 8, y + 4, name, anchor="end")
        if targets and targets[place]:
            chart.mark(chart.px(targets[place]), y, INK)
        for other, (who, values) in enumerate(reversed(series.items())):
            if values[place]:
                chart.dot(chart.px(values[place]), y, color(who, other), 4.5)
    for other, who in enumerate(series):
        chart.key(who, color(who, len(series) - 1 - other))
    if targets:
        chart.key("target", INK, upright=True)
    return chart

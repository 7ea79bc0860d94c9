"""Turns results into Markdown and plots."""

import datetime
import os
import platform
from math import exp, log
from statistics import median

import engines
import peers
import plot

PEERS = ("NumPy", "torch 1", "torch 2", "jax", *peers.NAMES)


def number(value, digits=2):
    return "–" if value is None else f"{value:.{digits}f}"


def speed(result, who, digits=2):
    """GB/s, or a dash."""
    found = result.speed(who)
    return number(found and found / 1e9, digits)


def table(head, rows):
    """A Markdown table; all columns but the first to the right."""
    rule = ["---"] + ["--:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *rows]) + "\n"


def processor():
    """The model, as Linux tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
        return f"{names[0]}, {len(names)} processors"
    except (OSError, IndexError):
        return f"{platform.machine()}, {os.cpu_count()} processors"


def about(facts):
    """Where, when and with what it ran."""
    load = " ".join(f"{part:.1f}" for part in os.getloadavg())
    found = [f"NumPy {engines.np.__version__}"]
    for name, module in (("torch", engines.torch), ("jax", engines.jax)):
        found.append(f"{name} {module.__version__}" if module else f"{name} not installed")
    version = engines.dlpack.lib.dlrs_version_string().decode()
    return table(["what", "value"], [
        ["date", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")],
        ["processor", processor()],
        ["system", f"{platform.system()} {platform.release()}, {' '.join(platform.libc_ver())}"],
        ["libdlpack_rs", version],
        ["peers", ", ".join(found + peers.versions())],
        *([name, value] for name, value in facts.items()),
        ["load average of the last 1, 5, 15 minutes", load],
    ])


def missed(result):
    """Why a row falls short, or an empty text."""
    share, peer = result.ratio("ours 1"), result.ratio("NumPy")
    reasons = []
    if share < result.target:
        reasons.append(f"{share:.2f} of memcpy, target {result.target:.2f}")
    ahead = result.ratio("ours 1", "NumPy")
    if peer is not None and ahead < 1:
        reasons.append(f"{ahead:.2f} of NumPy's speed")
    both = result.ratio("ours 2", "torch 2")
    if both is not None and both < 1:
        reasons.append(f"with two threads {both:.2f} of torch's speed with two")
    return ", ".join(reasons)


def ahead(result):
    """Who of one thread is faster than ours, or an empty text; NumPy is in `missed`."""
    others = {name: result.ratio(name, "ours 1") for name in ("torch 1", *peers.NAMES)}
    return ", ".join(f"{name} {ratio:.2f}" for name, ratio in others.items() if ratio and ratio > 1)


def copies(results):
    """The rows of a table of copies."""
    head = ["case", "memcpy GB/s", "limit GB/s", "**ours**", "of the limit", *PEERS, "ours 2",
            "target", "reached", "rounds"]
    rows = []
    for result in results:
        share = result.ratio("ours 1")
        rows.append([result.name, speed(result, "memcpy", 1), speed(result, "limit", 1),
                     f"**{share:.2f}**", number(result.ratio("ours 1", "limit")),
                     *(number(result.ratio(peer)) for peer in PEERS),
                     number(result.ratio("ours 2")), number(result.target),
                     "no" if share < result.target else "yes", str(len(result.rounds))])
    return table(head, rows)


def copies_plot(results):
    names = [result.name for result in results]
    series = {who: [result.ratio(who) for result in results]
              for who in ("ours 1", "limit", "NumPy", "torch 1", "HPTT", "strided-perm", "jax")
              if any(result.ratio(who) for result in results)}
    axis = plot.Axis("share of memcpy's speed, the same bytes in the same round",
                     plot.decades(0.005, 3), 0.005, 3)
    title = "Copies, one thread" + (" (jax: all processors)" if "jax" in series else "")
    return plot.rows(title, axis, names, series,
                     [result.target for result in results])


def table_section(results, title, out, name):
    """A section with a table, the missed rows and a plot."""
    (out / f"bench_{name}.svg").write_text(copies_plot(results).svg())
    short = [(result.name, missed(result)) for result in results if missed(result)]
    text = f"## {title}\n\n{copies(results)}\n![](bench_{name}.svg)\n\n"
    if faster := [f"{result.name}: {ahead(result)}" for result in results if ahead(result)]:
        text += f"Faster than ours on one thread, times: {'; '.join(faster)}.\n\n"
    if not short:
        return text + ("Every row is reached, and none is under NumPy, nor with two threads under "
                       "torch with two.\n")
    return text + f"Missed: {len(short)} of {len(results)} rows.\n\n" + "".join(
        f"- {row}: {why}\n" for row, why in short)


def threads_section(results, out):
    """Two threads against one."""
    rows, series, short = [], {}, []
    for result in results:
        gain = result.ratio("ours 2", "ours 1")
        target = 1.8 if result.size >= 16 else 1.0
        if gain < target:
            short.append(f"- {result.name}, {result.size} MiB: {gain:.2f}, target {target:.1f}\n")
        series.setdefault(result.name, []).append((result.size, gain))
        rows.append([result.name, str(result.size), number(result.speed("ours 1") / 1e9, 1),
                     number(result.speed("ours 2") / 1e9, 1), number(gain), number(target, 1),
                     number(result.ratio("memcpy 2")), "yes" if gain >= target else "no"])
    sizes = sorted({result.size for result in results})
    top = max(2.2, *(gain for points in series.values() for _, gain in points))
    axis = plot.Axis("MiB", [(size, str(size)) for size in sizes], sizes[0], sizes[-1])
    ticks = [(tick / 4, f"{tick / 4:g}") for tick in range(0, int(top * 4) + 1)]
    chart = plot.lines("Two threads next to one", axis,
                       plot.Axis("speed with two / with one", ticks, 0, top, log=False), series)
    for gain in (1.0, 1.8):
        chart.line(chart.box[0], chart.py(gain), chart.box[2], chart.py(gain), plot.INK, 1, "4 4")
    (out / "bench_threads.svg").write_text(chart.svg())
    head = ["case", "MiB", "1 thread GB/s", "2 threads GB/s", "ratio", "target", "memcpy's",
            "reached"]
    text = f"## Two threads\n\n{table(head, rows)}\n![](bench_threads.svg)\n\n"
    text += ("“memcpy's” is the ratio of memcpy by two threads, one of them made and joined, to memcpy "
             "by one, measured in the same rounds.\n\n")
    return text + (f"Missed: {len(short)} of {len(rows)}.\n\n" + "".join(short) if short
                   else "Every size is reached.\n")


def size_name(nbytes):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{nbytes // unit} {name}"
    return f"{nbytes} B"


def curves_section(curves, out):
    """Speed by size, and how it compares."""
    text = ("## Speed by size\n\nGB/s, one thread. Below about 64 KiB the call from Python weighs "
            "more than the copy: about 0.2 to\n1 µs for everybody; memory is warm there.\n\n")
    for place, (name, points) in enumerate(curves.items()):
        who = [engine for engine in ("ours 1", "memcpy", "limit", "NumPy", "torch 1")
               if any(result.speed(engine) for _, result in points)]
        rows = [[size_name(size), *(speed(result, engine) for engine in who),
                 number(result.ratio("ours 1")), number(result.ratio("ours 1", "limit")),
                 number(result.ratio("ours 1", "NumPy"))]
                for size, result in points]
        series = {engine: [(size, result.speed(engine) / 1e9) for size, result in points
                           if result.speed(engine)] for engine in who}
        speeds = [speed for line in series.values() for _, speed in line]
        ticks = [(size, size_name(size)) for size, _ in points
                 if (size.bit_length() - 1) % 3 == 1 or len(points) < 9]
        low, high = 10 ** plot.math.floor(plot.math.log10(min(speeds))), max(speeds) * 1.2
        chart = plot.lines(f"{name}, one thread", plot.Axis("bytes", ticks, *ends(points)),
                           plot.Axis("GB/s", plot.decades(low, high), low, high), series)
        file = f"bench_{('dense', 'transpose')[place]}.svg"
        (out / file).write_text(chart.svg())
        head = [name, *who, "ours / memcpy", "ours / limit", "ours / NumPy"]
        text += f"{table(head, rows)}\n![]({file})\n\n"
    return text


def ends(points):
    return points[0][0], points[-1][0]


def scattered(results, title, out, name):
    """The Markdown for a scatter plot of ours and NumPy's shares of memcpy's speed."""
    low, high = 0.004, 4
    ticks = plot.decades(low, high)
    chart = plot.Chart(f"{len(results)} {title}, one thread",
                       plot.Axis("NumPy's share of memcpy's speed", ticks, low, high),
                       plot.Axis("our share of memcpy's speed", ticks, low, high),
                       width=640, height=560, right=40)
    left, top, right, bottom = chart.box
    chart.line(left, bottom, right, top, plot.INK)
    chart.line(left, chart.py(0.25), right, chart.py(0.25), plot.INK, 1, "4 4")
    for result in results:
        chart.dot(chart.px(result.ratio("NumPy")), chart.py(result.ratio("ours 1")),
                  plot.color("ours"), 2.5, 0.5)
    chart.text(right - 4, chart.py(0.25) - 6, "0.25 of memcpy", anchor="end", size=11)
    chart.text(chart.px(0.0055), chart.py(0.0045), "below this line NumPy is faster", size=11)
    (out / f"bench_{name}.svg").write_text(chart.svg())
    return f"\n![](bench_{name}.svg)\n"


def spread(results):
    """Rows of a table: our shares of memcpy's speed, and how many are slower than NumPy."""
    shares = sorted(result.ratio("ours 1") for result in results)
    next_to_numpy = [result.ratio("ours 1", "NumPy") for result in results]
    slower, much = (sum(ratio < least for ratio in next_to_numpy) for least in (1, 0.9))
    return [
        ["our share of memcpy, median", number(median(shares))],
        ["our share of memcpy, least and 5th percentile",
         f"{shares[0]:.3f}, {shares[len(shares) // 20]:.2f}"],
        ["NumPy's share of memcpy, median", number(median(r.ratio("NumPy") for r in results))],
        ["our speed next to NumPy's, median", number(median(next_to_numpy))],
        ["slower than NumPy (target 0)", str(slower)],
        ["– by more than a tenth", str(much)],
    ]


def slowest(results, base):
    """A list of at most ten, by our speed next to that of `base`."""
    worst = sorted(results, key=lambda result: result.ratio("ours 1", base))[:10]
    lines = "".join(f"- {result.name}: {result.ratio('ours 1'):.2f}, NumPy "
                    f"{result.ratio('NumPy'):.2f}\n" for result in worst)
    return f"\nThe slowest next to {base}, in shares of memcpy:\n\n{lines}" if lines else ""


def random_section(results, out):
    """Random permutations: a scatter plot, and counts."""
    under = [result for result in results if result.ratio("ours 1") < 0.25]
    rows = [*spread(results), ["under 0.25 of memcpy (target 0)", str(len(under))]]
    return (f"## {len(results)} random permutations\n\nRank 2 to 6, elements of 1 to 16 bytes, 1 to "
            "16 MiB, one thread; few repeats each.\n\n" + table(["what", "value"], rows)
            + scattered(results, "random permutations, 1 to 16 MiB", out, "permutations")
            + slowest(under, "memcpy"))


def views_section(results, out):
    """Random views: likewise."""
    rows = [*spread(results), ["– by more than a fifth",
                               str(sum(r.ratio("ours 1", "NumPy") < 0.8 for r in results))]]
    behind = [result for result in results if result.ratio("ours 1", "NumPy") < 0.9]
    return (f"## {len(results)} random views\n\nRank 1 to 5, elements of 1 to 16 bytes, outputs of 256 "
            "KiB to 16 MiB, one thread; few repeats each. Of arrays whose\naxes are cut, reversed, "
            "taken in steps of 2 to 4 or repeated; every other view is permuted, too. About a fifth "
            "is dense,\nwhere both are memcpy and a call from Python counts.\n\n"
            + table(["what", "value"], rows)
            + scattered(results, "random views, 256 KiB to 16 MiB", out, "views")
            + slowest(behind, "NumPy"))


def caches_section(rows):
    """A table of element sizes by sizes of outputs."""
    bounds = [(0, 4), (4, 16), (16, 64), (64, 1 << 20)]
    head = ["element", *(f"to {most} KB" for _, most in bounds[:-1]), "to 250 KB", "all", "slower",
            "share of memcpy"]
    shown = []
    for item in sorted({row[0] for row in rows}) + [0]:
        of = [row for row in rows if row[0] == item or not item]
        near = [[row for row in of if least * 1000 <= row[1] < most * 1000]
                for least, most in bounds]
        mean = [number(exp(sum(log(row[3] / row[2]) for row in some) / len(some))) if some else "–"
                for some in [*near, of]]
        slower = sum(row[3] < row[2] for row in of)
        shown.append([f"{item:.0f} bytes" if item else "all", *mean, f"{slower} of {len(of)}",
                      number(median(row[4] / row[2] for row in of))])
    return (f"## {len(rows)} random permutations that lie in the caches\n\nOutputs of about 1 to 250 KB, "
            "rank 2 to 5, through the C ABI: how many times as fast as nested loops in C are,\n"
            "geometric means (`benches/caches.c`, -O3 -march=native; calls over and over, so all "
            "is in the caches\nand foreseen); how many are slower than those; and the median of the "
            "shares of memcpy's speed.\n\n" + table(head, shown))


def small_section(rows, out):
    """The table of small.c."""
    shown = [[name, number(ns, 1), number(ratio), number(target, 1) if target else "–",
              "–" if not target else "yes" if ratio <= target else "no"]
             for name, ns, ratio, target in rows]
    short = [f"- {name}: {ratio:.2f} × malloc + free, target {target:.1f}\n"
             for name, _, ratio, target in rows if target and ratio > target]
    high = max(10, *(row[2] for row in rows)) * 1.2
    axis = plot.Axis("time / time of malloc(256) + free", plot.decades(0.2, high), 0.2, high)
    chart = plot.rows("Small tensors, one call through the C ABI", axis, [row[0] for row in rows],
                      {"ours": [max(row[2], 0.2) for row in rows]}, [row[3] for row in rows])
    (out / "bench_small.svg").write_text(chart.svg())
    head = ["operation", "ns", "× malloc + free", "target", "reached"]
    return (f"## Small tensors\n\n{table(head, shown)}\n![](bench_small.svg)\n\n"
            + (f"Missed: {len(short)}.\n\n" + "".join(short) if short else "Every target is "
               "reached.\n"))


PREFACE = """# Benchmarks

Written by `make bench`; do not edit. [What falls short, and why](shortfalls.md), stands
by itself. Figures are shares of memcpy's speed for as many bytes as the output has: 1.00 is
memcpy, 2.00 twice as fast. Every round times each competitor once, in random order, on the same
memory; a share is the median of the ratios of single rounds, of which there are `rounds` (at least
15, 5 where time was short; slow competitors sit out some). Between those of one thread (memcpy,
"ours", NumPy, "torch 1", the four below) the time that the thread worked counts, else the time that
passed. All copy into the same output, made and touched before, but jax, which makes its own and
uses all processors. Every result is compared with NumPy's, byte for byte, before it is timed. "1"
and "2" are threads. "–" means that it has no such operation or was not measured; packed elements
have no peer. Other work on the machine spoils all figures, most of all those of two threads: see
the load average, which is about 1 where the benchmark was alone.

memcpy is the yardstick, memory the limit: for outputs of more than 48 MiB, which few caches keep, the
same rounds measure how fast one thread reads and writes as many bytes in order, by streaming stores,
and turns nothing (`benches/limit.c`; twice the bytes are read where every second element is copied,
none for a broadcast). "limit GB/s" counts bytes of the output, as memcpy's, and "of the limit" is our
share of it.

ndarray (`assign`), strided-perm (`copy_into`: HPTT's ideas in Rust), HPTT (C++, by the crate hptt)
and transpose (compact matrices only) are built by benches/peers for the processor they run on:
`-Ctarget-cpu=native`, HPTT with `-O3 -march=native` and its AVX kernels. HPTT permutes floats only,
as 1 · input + 0 · output. Its crate plans (ESTIMATE) in each call, which is timed: a few µs. It
writes past the caches only to addresses that are multiples of 32; NumPy's are of 16 (`--align 64`
gives others).

"""


def write(out, found, facts):
    """Writes everything into the folder and gives the text."""
    sections = {
        "table": lambda data: table_section(data, "Copies", out, "copies"),
        "edges": lambda data: table_section(
            data, "Odd sizes, tiny dimensions, negative strides", out, "edges"),
        "threads": lambda data: threads_section(data, out),
        "curves": lambda data: curves_section(data, out),
        "random": lambda data: random_section(data, out),
        "views": lambda data: views_section(data, out),
        "caches": caches_section,
        "small": lambda data: small_section(data, out),
    }
    parts = [sections[name](data) for name, data in found.items()]
    text = PREFACE + about(facts) + "\n" + "\n".join(parts)
    (out / "benchmarks.md").write_text(text)
    return text

#!/usr/bin/env python3
"""What the bytes of the library are, by section, module and symbol, as docs/size.md shows them on the
site.

size.py [LIBRARY]: the release build, not stripped; target/lib/libdlpack_rs.so without it, or what
DLPACK_RS_LIBRARY names. What no symbol covers is counted under the section's name.
"""

import collections
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LARGEST = 40  # symbols that are listed

def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def stripped(library):
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(["strip", "-o", file.name, library], check=True)
        return Path(file.name).stat().st_size


def sections(library):
    """Name: bytes, for sections in the file that the process maps."""
    found = {}
    for line in lines("readelf", "-SW", library):
        row = re.match(r"\s*\[ *\d+\] (\S+) +(\S+) +\S+ +\S+ +(\S+) +\S+ +(\S*A\S*)", line)
        if row and row[2] != "NOBITS":
            found[row[1]] = int(row[3], 16)
    return found


def module_of(name):
    """`engine::cpu` of `<dlpack_engine::cpu::op::Op>::run`: crate and module."""
    if name.startswith(("dlrs_", "PyInit_")):
        return "exports"
    path = re.search(r"\b(dlpack_\w+|core)(?:\[\w+\])?::([\w:]+)", name)
    if not path:
        return "other"
    if path[1] == "core":
        return "core (Rust's library)"
    parts = path[2].split("::")
    crate = path[1].removeprefix("dlpack_")
    return crate if crate in ("kernels", "print") else f"{crate}::{parts[0]}"


def symbols(library):
    """(bytes, section, name), the largest first; two names of one address count once."""
    headers = {}
    for line in lines("readelf", "-SW", library):
        row = re.match(r"\s*\[ *(\d+)\] (\S+)", line)
        if row:
            headers[row[1]] = row[2]
    found = {}
    for line in lines("readelf", "-sWC", "--syms", library):
        row = re.match(r"\s*\d+: (\w+) +(\d+|0x\w+) (FUNC|OBJECT) +\w+ +\w+ +(\d+) (.*)", line)
        if row and int(row[2], 0):
            found[row[1], headers[row[4]]] = (int(row[2], 0), headers[row[4]], row[5])
    return sorted((row for row in found.values() if row[1] != ".bss"), reverse=True)


def table(head, rows):
    return [f"| {head} | bytes |", "|---|---:|", *(f"| {n} | {b:,} |" for n, b in rows), ""]


def large(modules):
    """Modules of a kilobyte and more, and the rest as one."""
    kept = [row for row in modules.most_common() if row[1] >= 1024]
    return [*kept, ("less than 1 KB each", sum(modules.values()) - sum(n for _, n in kept))]


def report(library):
    size, parts, all_symbols = stripped(library), sections(library), symbols(library)
    by_section = sorted(parts.items(), key=lambda part: -part[1])
    modules = collections.Counter()
    for nbytes, section, name in all_symbols:
        if section == ".text":
            modules[module_of(name)] += nbytes
    modules["no symbol"] = parts[".text"] - sum(modules.values())
    return "\n".join([
        f"The stripped library has {size:,} bytes.", "", "## Sections", "",
        *table("section", [part for part in by_section if part[1] >= 256]),
        "## Code by module", "", *table("module", large(modules)),
        f"## The {LARGEST} largest symbols", "",
        *table("symbol", [(f"`{name}` {part}", n) for n, part, name in all_symbols[:LARGEST]])])


if __name__ == "__main__":
    print(report((sys.argv[1:] or [os.environ.get("DLPACK_RS_LIBRARY")
                                   or Path(__file__).parent.parent / "target/lib/libdlpack_rs.so"])[0]))

#!/usr/bin/env python3
"""Inputs of the fuzz targets that `cargo test` replays: a line of hexadecimal digits each.

    seeds.py unpack TARGET FOLDER       each as a file, as the fuzzer wants them
    seeds.py add TARGET FILE|FOLDER...  those that are not there yet
"""

import pathlib
import sys

SEEDS = pathlib.Path(__file__).resolve().parent / "seeds"


def main(what, target, *paths):
    file = SEEDS / f"{target}.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    if what == "unpack":
        folder = pathlib.Path(paths[0])
        folder.mkdir(parents=True, exist_ok=True)
        for number, line in enumerate(lines, 1):
            (folder / f"seed{number}").write_bytes(bytes.fromhex(line))
        return
    given = [file for path in map(pathlib.Path, paths)
             for file in (path.iterdir() if path.is_dir() else [path])]
    # The shortest first, and the same order on every machine.
    new = sorted({file.read_bytes().hex() for file in given} - {*lines, ""},
                 key=lambda line: (len(line), line))
    file.write_text("".join(f"{line}\n" for line in lines + new))
    print(f"{file.name}: {len(new)} of {len(given)} are new, {len(lines + new)} in all")


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] not in ("unpack", "add"):
        sys.exit(__doc__)
    main(*sys.argv[1:])

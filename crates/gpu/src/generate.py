#!/usr/bin/env python3
"""Writes kernels.ptx from kernels.cu, by NVRTC of CUDA 11.8, for compute capability 5.0.

    generate.py LIBNVRTC [OUTPUT]

The PTX version is lowered from NVRTC's 7.8 to 6.4, which has every feature that the kernels use: a
driver rejects newer PTX versions than its own, and CUDA 11.0 to 11.7 are below 7.8. So it loads on
every driver since CUDA 11.0 and every GPU since Maxwell. Comments and indentation are removed.
NVRTC uses a new virtual register for every value, thousands of names; here values with disjoint
live ranges share one, so that the text is repetitive and compresses to half the size. The reaching
definitions of each operand are compared before and after.
"""

import ctypes
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OPTIONS = [b"--gpu-architecture=compute_50", b"--std=c++17"]


def compile_ptx(nvrtc, source):
    def call(name, *arguments):
        status = getattr(nvrtc, name)(*arguments)
        if status != 0:
            said = text("Log") if name == "nvrtcCompileProgram" else ""
            sys.exit(f"{name} returned {status}\n{said}")

    def text(what):
        size = ctypes.c_size_t()
        call(f"nvrtcGet{'ProgramLog' if what == 'Log' else what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        call(f"nvrtcGet{'ProgramLog' if what == 'Log' else what}", program, buffer)
        return buffer.value.decode("ascii")

    program = ctypes.c_void_p()
    call("nvrtcCreateProgram", ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    call("nvrtcCompileProgram", program, len(OPTIONS), (ctypes.c_char_p * len(OPTIONS))(*OPTIONS))
    return text("PTX")


VERSIONS = ".version 7.8", ".version 6.4"


def shorten(ptx):
    """The same program without comments and indentation, with short local names."""
    if ptx.count(VERSIONS[0]) != 1:
        sys.exit(f"NVRTC did not write {VERSIONS[0]}")
    ptx = ptx.replace(*VERSIONS)
    ptx = re.sub(r"//.*", "", ptx)
    ptx = re.sub(r"[ \t]+", " ", ptx)
    ptx = re.sub(r" ?, ?", ",", ptx)
    ptx = re.sub(r"\bdlrs_\w+_param_0\b", "p", ptx)
    ptx = re.sub(r"\$L__BB", "$", ptx)
    ptx = re.sub(r"\b_ZZ\d+dlrs_\w+?E\d+(\w+)", r"\1", ptx)
    lines = (line.strip() for line in ptx.splitlines())
    return "\n".join(line for line in lines if line) + "\n"


REGISTER = re.compile(r"%(rd|rs|r|p)\d+\b")
INSTRUCTION = re.compile(r"(?:@!?(%p\d+) )?([a-z][\w.:]*)(?: (.*))?;")
TARGETS = re.compile(r"\{[^}]*\}|[^,]+")


class Line:
    """A line of a function: its successors, and the registers that it uses and sets."""

    def __init__(self, text, at, labels):
        self.next, self.uses, self.sets = [at + 1], [], []
        match = INSTRUCTION.fullmatch(text)
        if not match:
            if not re.fullmatch(r"\$\w+:|\.(reg|shared|pragma) .*;", text):
                sys.exit(f"what is this? {text}")
            return
        guard, name, operands = match[1], match[2].split(".")[0], match[3] or ""
        targets = "" if name in ("st", "bar", "bra", "ret") else TARGETS.match(operands)[0]
        used = operands[len(targets):]
        self.sets = [found[0] for found in REGISTER.finditer(targets)]
        self.uses = [found[0] for found in REGISTER.finditer(used)]
        if name in ("bra", "ret"):
            self.next = ([labels[operands]] if name == "bra" else []) + (self.next if guard else [])
        if guard:
            # A predicated instruction may keep the previous value.
            self.uses += [guard, *self.sets]


def parse(body):
    labels = {text[:-1]: at for at, text in enumerate(body) if text.endswith(":")}
    return [Line(text, at, labels) for at, text in enumerate(body)]


def reaching(lines):
    """For each line, per register that it uses, the definitions that may reach it."""
    before, changed = [{} for _ in range(len(lines) + 1)], True
    while changed:
        changed = False
        for at, line in enumerate(lines):
            after = before[at] | {register: frozenset([at]) for register in line.sets}
            for to in line.next:
                known = before[to]
                for register, values in after.items():
                    had = known.get(register, frozenset())
                    if values is not had and not values <= had:
                        known[register], changed = had | values, True
    return [[before[at].get(register, frozenset()) for register in line.uses]
            for at, line in enumerate(lines)]


def share_registers(body):
    """The same function, where values with disjoint live ranges share registers."""
    lines = parse(body)
    live, changed = [set() for _ in range(len(lines) + 1)], True
    while changed:
        changed = False
        for at in reversed(range(len(lines))):
            after = set().union(*(live[to] for to in lines[at].next))
            now = after.difference(lines[at].sets).union(lines[at].uses)
            changed |= now != live[at]
            live[at] = now
    beside = {register: set() for line in lines for register in line.sets + line.uses}
    for line in lines:
        after = set(line.sets).union(*(live[to] for to in line.next))
        for register in line.sets:
            for other in after - {register}:
                beside[register].add(other)
                beside[other].add(register)
    numbers = {}
    for register in (found[0] for text in body for found in REGISTER.finditer(text)):
        if register in beside and register not in numbers:
            kind = REGISTER.match(register)[1]
            taken = {numbers[other] for other in beside[register]
                     if other in numbers and REGISTER.match(other)[1] == kind}
            numbers[register] = next(n for n in range(1, len(taken) + 2) if n not in taken)
    most = {}
    for register, number in numbers.items():
        kind = REGISTER.match(register)[1]
        most[kind] = max(most.get(kind, 0), number)

    def renamed(text):
        declared = re.fullmatch(r"\.reg (\.\w+) %(\w+)<\d+>;", text)
        if declared:
            return f".reg {declared[1]} %{declared[2]}<{most[declared[2]] + 1}>;"
        return REGISTER.sub(lambda found: f"%{found[1]}{numbers[found[0]]}", text)

    shared = [renamed(text) for text in body]
    if reaching(parse(shared)) != reaching(lines):
        sys.exit("an operand does not find the values that it did")
    return shared


def share(ptx):
    """The same program with few registers per function."""
    lines, done = ptx.splitlines(), []
    while lines:
        done.append(lines.pop(0))
        if done[-1] == "{":
            end = lines.index("}")
            done += share_registers(lines[:end])
            del lines[:end]
    return "\n".join(done) + "\n"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    output = Path(sys.argv[2]) if len(sys.argv) == 3 else HERE / "kernels.ptx"
    nvrtc = ctypes.CDLL(sys.argv[1])
    version = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(*(ctypes.byref(part) for part in version))
    if (version[0].value, version[1].value) != (11, 8):
        sys.exit(f"NVRTC 11.8 is needed, this is {version[0].value}.{version[1].value}")
    output.write_text(share(shorten(compile_ptx(nvrtc, (HERE / "kernels.cu").read_bytes()))))


if __name__ == "__main__":
    main()

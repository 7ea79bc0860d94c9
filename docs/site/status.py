#!/usr/bin/env python3
"""Runs the examples of docs/status.md, each with the status of its heading for result, compares their
messages with messages.txt beside this, and writes the page with them. A code of devices without an
example has the message of a copy to a device whose driver reports it. Arguments: INCLUDE LIBDIR OUT;
BLESS=1 rewrites messages.txt."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE, MESSAGES = ROOT / "docs/status.md", ROOT / "docs/site/messages.txt"
EXAMPLE = re.compile(r"```c\n(.*?)```\n", re.S)
REPORTED = "driver_says = %s;\ndlrs_to_device(tensor, device, 1, NULL, &out, &error);\n"
# A device whose driver reports what the example says.
PRELUDE = """
#include <dlpack/dlpack_rs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int32_t driver_says;
static int32_t count_fn(void *c, int32_t type, int32_t *out, dlrs_fault *f) {
  (void)c, (void)type, (void)f;
  return *out = 1, 0;
}
static int32_t alloc_fn(void *c, DLDevice d, uint64_t n, uint64_t a, void *s, void **out,
                        dlrs_fault *f) {
  (void)c, (void)d, (void)s, (void)f;
  return (*out = aligned_alloc(a, (n + a) / a * a)) ? 0 : DLRS_DEV_OOM;
}
static int32_t free_fn(void *c, DLDevice d, void *p, uint64_t n, uint64_t a, void *s,
                       dlrs_fault *f) {
  (void)c, (void)d, (void)n, (void)a, (void)s, (void)f;
  return free(p), 0;
}
static int32_t copy_fn(void *c, DLDevice d, const dlrs_byte_plan *p, void *s, dlrs_fault *f) {
  (void)c, (void)d, (void)p, (void)s, (void)f;
  return driver_says;
}
"""
FUNCTION = """
static void run_%(name)s(void) {
  dlrs_error error = {.struct_size = sizeof error};
  const DLDataType float32 = {kDLFloat, 32, 1}, int32 = {kDLInt, 32, 1};
  const DLDevice cpu = {kDLCPU, 0}, device = {kDLExtDev, 0};
  const float value = 1;
  int64_t two_three[] = {2, 3}, strides_out[2], count = 0;
  int32_t number = 0;
  DLDataType dtype;
  DLManagedTensorVersioned *tensor = NULL, *ints = NULL, *copy = NULL, *out = NULL;
  DLManagedTensor *legacy = NULL;
  _Alignas(64) float memory[8];
  DLTensor description = {memory, cpu, 2, float32, two_three, NULL, 0};
  dlrs_tensor_new(two_three, 2, float32, cpu, NULL, &tensor, NULL);
  dlrs_tensor_new(two_three, 2, float32, cpu, NULL, &copy, NULL);
  dlrs_tensor_new(two_three, 2, int32, cpu, NULL, &ints, NULL);
  {
%(code)s
  }
  printf("%(name)s\\t%%s\\t%%s\\n", dlrs_status_name(error.status), error.message);
  (void)device, (void)value, (void)strides_out, (void)count, (void)number, (void)dtype, (void)out;
  (void)legacy, (void)description;
}
"""


def example(name, number, body):
    """The code of a status, or None."""
    if found := EXAMPLE.search(body):
        return found[1]
    return REPORTED % name if 400 < int(number) < 700 else None


def run(code, include, lib):
    """The status and the message of each example."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "status.c"), Path(folder, "status")
        source.write_text(
            PRELUDE + "".join(FUNCTION % {"name": name, "code": code[name]} for name in code) +
            "int main(void) {\n  const dlrs_backend backend = {.struct_size = sizeof backend,\n"
            "    .device_count = count_fn, .alloc = alloc_fn, .free = free_fn, .copy = copy_fn};\n"
            "  dlrs_backend_set(kDLExtDev, &backend, NULL, NULL);\n" +
            "".join(f"  driver_says = 0;\n  run_{name}();\n" for name in code) +
            "  return 0;\n}\n")
        subprocess.run(["cc", "-std=c11", "-Wall", "-Wno-unused-variable", "-Werror", f"-I{include}",
                        source, f"-L{lib}", "-ldlpack_rs", f"-Wl,-rpath,{Path(lib).resolve()}",
                        "-o", program], check=True)
        said = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {name: rest for name, *rest in (line.split("\t") for line in said.splitlines())}


def main():
    include, lib, out = sys.argv[1:4]
    head, *parts = re.split(r"^## (DLRS_\w+) \((\d+)\)\n", PAGE.read_text(), flags=re.M)
    parts = list(zip(parts[::3], parts[1::3], parts[2::3]))
    code = {name: text for name, number, body in parts if (text := example(name, number, body))}
    text, passed, failed = head, 0, 0
    said = run(code, include, lib)
    if os.environ.get("BLESS"):
        MESSAGES.write_text("".join(f"{message}\n" for _, message in said.values()))
    wanted = dict(zip(said, MESSAGES.read_text().splitlines()))
    for name, number, body in parts:
        if name in said:
            status, message = said[name]
            good = (status, message) == (name, wanted.get(name))
            print(f"{'pass' if good else 'FAIL'}  docs/status.md: {name}" +
                  ("" if good else f": {status} {message!r}, wanted {wanted.get(name)!r}"))
            passed, failed = passed + good, failed + (not good)
            body = f"{body.rstrip()}\n\n```text\n{message}\n```\n\n"
        text += f"## {name} ({number})\n{body}"
    listed = re.findall(r"^  (DLRS_\w+) = (\d+),$",
                        re.search(r"enum dlrs_status_code \{(.*?)\};",
                                  (ROOT / "include/dlpack_rs.h").read_text(), re.S)[1], re.M)
    same = [(name, number) for name, number, _ in parts] == listed
    print(f"{'pass' if same else 'FAIL'}  docs/status.md: a part for each code, in order")
    Path(out).write_text(text)
    print(f"status codes: {passed + same} passed, {failed + (not same)} failed")
    return 1 if failed or not same else 0


if __name__ == "__main__":
    sys.exit(main())

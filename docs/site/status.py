#!/usr/bin/env python3
"""Runs the examples of docs/status.md, each with the status of its heading for result, and compares
the messages that stand below them; --fix writes these. Arguments: INCLUDE LIBDIR [--fix]."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/status.md"
EXAMPLE = re.compile(r"```c\n(.*?)```\n(?:\n```text\n(.*?)\n```\n)?", re.S)
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


def main():
    include, lib = sys.argv[1:3]
    text = PAGE.read_text()
    parts = re.split(r"^## (DLRS_\w+) .*\n", text, flags=re.M)
    code = {name: found[1] for name, body in zip(parts[1::2], parts[2::2])
            if (found := EXAMPLE.search(body))}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "status.c")
        source.write_text(
            PRELUDE + "".join(FUNCTION % {"name": name, "code": code[name]} for name in code) +
            "int main(void) {\n  const dlrs_backend backend = {.struct_size = sizeof backend,\n"
            "    .device_count = count_fn, .alloc = alloc_fn, .free = free_fn, .copy = copy_fn};\n"
            "  dlrs_backend_set(kDLExtDev, &backend, NULL, NULL);\n" +
            "".join(f"  driver_says = 0;\n  run_{name}();\n" for name in code) +
            "  return 0;\n}\n")
        program = Path(folder, "status")
        subprocess.run(["cc", "-std=c11", "-Wall", "-Wno-unused-variable", "-Werror", f"-I{include}",
                        source, f"-L{lib}", "-ldlpack_rs", f"-Wl,-rpath,{Path(lib).resolve()}",
                        "-o", program], check=True)
        said = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    said = {name: (status, message) for name, status, message in
            (line.split("\t") for line in said.splitlines())}
    passed = failed = 0
    for name in code:
        status, message = said[name]
        body = parts[parts.index(name) + 1]
        found = EXAMPLE.search(body)
        good = status == name and ("--fix" in sys.argv or found[2] == message)
        print(f"{'pass' if good else 'FAIL'}  docs/status.md: {name}" +
              ("" if good else f": {status} {message!r}, where the page has {found[2]!r}"))
        passed, failed = passed + good, failed + (not good)
        block = f"```c\n{found[1]}```\n\n```text\n{message}\n```\n"
        text = text.replace(found[0], block, 1) if found[2] != message else text
    listed = re.findall(r"^  (DLRS_\w+) = (\d+),$",
                        re.search(r"enum dlrs_status_code \{(.*?)\};",
                                  (ROOT / "include/dlpack_rs.h").read_text(), re.S)[1], re.M)
    same = re.findall(r"^## (DLRS_\w+) \((\d+)\)$", text, re.M) == listed
    print(f"{'pass' if same else 'FAIL'}  docs/status.md: a part for each code, in order")
    if "--fix" in sys.argv:
        PAGE.write_text(text)
    print(f"status codes: {passed + same} passed, {failed + (not same)} failed")
    return 1 if failed or not same else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env bash
# Builds the oneAPI example against the dpctl wheel's headers and runs it on a oneAPI device that
# Intel's wheels make of the CPU. Arguments as for examples/run.sh.
set -u
CDPATH='' cd "$(dirname "$0")/../.." || exit 1
include=$(realpath "${1:-target/include}") && lib=$(realpath "${2:-target/lib}") || exit 1
here=examples/oneapi venv=target/oneapi
if ! cmp -s "$here/requirements.txt" "$venv/installed"; then
  { [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"; } &&
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt" &&
    cp "$here/requirements.txt" "$venv/installed" ||
    { echo "skipped: pip could not install $here/requirements.txt (x86-64 Linux only)"; exit 0; }
fi
dpctl=$(realpath "$(echo "$venv"/lib/python3*/site-packages/dpctl)")
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
# Only Intel's OpenCL: a device of the system might come first.
# shellcheck disable=SC2155 # what fails here is seen below
export OCL_ICD_FILENAMES=$(realpath "$venv/lib")/libintelocl.so OCL_ICD_VENDORS=$out
if gcc -std=c11 -Wall -Wextra -Werror -I"$include" -isystem "$dpctl/include" \
     "$here/oneapi_backend.c" -L"$lib" -ldlpack_rs -L"$dpctl" -lDPCTLSyclInterface \
     -Wl,-rpath,"$lib:$dpctl:$(realpath "$venv/lib")" -Wl,--allow-shlib-undefined \
     -o "$out/example" && "$out/example" | tee "$out/said" &&
   diff -u examples/expected/c-opencl_backend.txt "$out/said"; then
  echo "oneapi: 1 passed, 0 failed"
else
  echo "oneapi: 0 passed, 1 failed"
  exit 1
fi

#!/usr/bin/env bash
# Builds the wheel into target/wheel, with a library that any Linux since glibc 2.17 (2014) loads:
# zig links it against stubs of that version, auditwheel checks it and names the wheel.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/.."
here=$PWD/target/wheel
machine=$(uname -m)
python=$(examples/python/venv.sh)
# pip comes last: without it the environment was left half made.
[ -x "$here/tools/bin/pip" ] || "${python}" -m venv --clear "$here/tools"
tools=$here/tools/bin
"$tools/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
  -r python/requirements-wheel.txt

# zig adds the index of unwind tables, which build.rs leaves out, unless an option says that there are none.
cat >"$here/linker" <<LINKER
#!/bin/sh
exec "$tools/python" -m ziglang cc -target $machine-linux-gnu.2.17 \
  -fno-unwind-tables -fno-asynchronous-unwind-tables "\$@"
LINKER
chmod +x "$here/linker"
linker=CARGO_TARGET_$(echo "$machine" | tr a-z A-Z)_UNKNOWN_LINUX_GNU_LINKER
rm -rf "$here/plain" "$here"/*.whl
env "$linker=$here/linker" CARGO_TARGET_DIR= PATH="$tools:$PATH" SKBUILD_CMAKE_BUILD_TYPE=Release \
  "$tools/python" -m build --wheel --no-isolation --outdir "$here/plain" . >"$here/log" 2>&1 ||
  { cat "$here/log"; exit 1; }
PATH="$tools:$PATH" "$tools/auditwheel" repair --strip --plat "manylinux_2_17_$machine" \
  --wheel-dir "$here" "$here"/plain/*.whl >>"$here/log" 2>&1 ||
  { cat "$here/log"; exit 1; }
ls "$here"/*.whl

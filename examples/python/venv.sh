#!/bin/sh
# Prints the python of a virtual environment that has what the requirement files ask for.
#
#   venv.sh REQUIREMENTS...
#
# It lies in target/venv and is made and filled where needed. To use one of your own, which is then
# left as it is, set VENV to its folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ -n "${VENV:-}" ]; then
    echo "$VENV/bin/python"
    exit 0
fi
venv=$here/../../target/venv
python=${PYTHON:-python3}
if ! "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    echo "$python: needs Python 3.9 or newer with venv (Debian, Ubuntu: apt install python3-venv)" >&2
    exit 1
fi
mkdir -p "$venv"
venv=$(cd "$venv" && pwd)
if [ ! -x "$venv/bin/pip" ]; then
    "$python" -m venv "$venv" >&2
fi
for file in "$@"; do
    stamp=$venv/$(cat "$file" | cksum | tr -d ' ').installed
    if [ ! -e "$stamp" ]; then
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$file" >&2
        : > "$stamp"
    fi
done
echo "$venv/bin/python"

#!/bin/sh
# Prints the python of a virtual environment that has what the requirement files ask for.
#
#   venv.sh REQUIREMENTS...
#
# It lies in target/venv and is made and filled where needed: whenever one of the files that it was
# ever asked for has changed, it gets what all of them ask for. To use one of your own, which is then
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
# One at a time, where several tests ask for it.
if command -v flock >/dev/null; then
    exec 9>"$venv.lock"
    flock 9
fi
# pip comes last: without it the environment was left half made. It does not run where its Python
# is no longer there.
if ! "$venv/bin/pip" --version >/dev/null 2>&1; then
    "$python" -m venv --clear "$venv" >&2
fi
asked=$venv/asked
mkdir -p "$asked"
changed=
for file in "$@"; do
    # By its place, so that a new version takes the place of the former.
    copy=$asked/$(cd "$(dirname "$file")" && pwd | cksum | tr -d ' ')-$(basename "$file")
    if ! cmp -s "$file" "$copy"; then
        cp "$file" "$copy.new"
        changed="$changed $copy"
    fi
done
if [ -n "$changed" ]; then
    # First the new ones, which then count as asked for when all is installed.
    set --
    for copy in "$asked"/*.txt "$asked"/*.txt.new; do
        [ -e "$copy" ] && [ ! -e "$copy.new" ] && set -- "$@" -r "$copy"
    done
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >&2
    for copy in $changed; do mv "$copy.new" "$copy"; done
fi
echo "$venv/bin/python"

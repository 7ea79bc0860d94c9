#!/bin/sh
# Prints the python of a virtual environment with the packages of the requirement files.
#
#   venv.sh REQUIREMENTS...
#
# It is in target/venv and created and filled as needed: whenever one of the files ever passed has
# changed, it gets the packages of all of them. VENV selects another folder, which is then left
# unchanged.
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
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
venv=$(CDPATH='' cd "$venv" && pwd)
# One at a time, where several tests use it.
if command -v flock >/dev/null; then
    exec 9>"$venv.lock"
    flock 9
fi
# pip is installed last: without it the environment is incomplete. It does not run if its Python was
# removed.
if ! "$venv/bin/pip" --version >/dev/null 2>&1; then
    "$python" -m venv --clear "$venv" >&2
fi
asked=$venv/asked
mkdir -p "$asked"
changed=
for file in "$@"; do
    # By its path, so that a new version replaces the former.
    copy=$asked/$(CDPATH='' cd "$(dirname "$file")" && pwd | cksum | tr -d ' ')-$(basename "$file")
    if ! cmp -s "$file" "$copy"; then
        cp "$file" "$copy.new"
        changed="$changed $copy"
    fi
done
if [ -n "$changed" ]; then
    # First the new ones, which are recorded when all is installed.
    set --
    for copy in "$asked"/*.txt "$asked"/*.txt.new; do
        [ -e "$copy" ] && [ ! -e "$copy.new" ] && set -- "$@" -r "$copy"
    done
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >&2
    for copy in $changed; do mv "$copy.new" "$copy"; done
fi
echo "$venv/bin/python"

#!/usr/bin/env bash
# Builds the site of docs/ into target/site, without a warning, and checks it: pictures, the messages
# of docs/status.md, links, search. Arguments: INCLUDE LIBDIR of a built library.
set -euo pipefail
export LC_ALL=C.UTF-8 # Sphinx does not start where the user's locale is not installed
CDPATH='' cd "$(dirname "$0")/../.."
include=${1:-target/include} lib=${2:-target/lib}
mkdir -p target
passed=0 failed=0
row() { # row NAME COMMAND...
  local name=$1; shift
  if "$@"; then
    passed=$((passed + 1)); echo "pass  $name"
  else
    failed=$((failed + 1)); echo "FAIL  $name"
  fi
}
row "pictures" python3 -B docs/site/pictures.py --check
row "status codes" python3 -B docs/site/status.py "$include" "$lib"
if [ ! -x target/site-venv/bin/sphinx-build ] ||
   ! cmp -s docs/site/requirements.txt target/site-venv/requirements.txt; then
  rm -rf target/site-venv
  python3 -m venv target/site-venv
  target/site-venv/bin/pip -q --disable-pip-version-check install -r docs/site/requirements.txt
  cp docs/site/requirements.txt target/site-venv
fi
rm -rf target/site
python3 -B docs/site/site.py target/site-source
row "sphinx, no warning" env DLPACK_RS_LIBRARY="$(realpath "$lib")/libdlpack_rs.so" target/site-venv/bin/sphinx-build -q -E -W --keep-going -n -c docs/site \
  -d target/site-doctrees -b html target/site-source target/site
row "links and search" python3 -B docs/site/check.py target/site-source target/site
echo "site: $passed passed, $failed failed; target/site/index.html"
[ "$failed" -eq 0 ]

#!/usr/bin/env bash
# Builds the site of docs/ into target/site, without a warning, and checks it: pictures, the examples
# of docs/status.md, links, search. Arguments: INCLUDE LIBDIR of a built library.
set -uo pipefail
export LC_ALL=C.UTF-8 # Sphinx does not start where the user's locale is not installed
CDPATH='' cd "$(dirname "$0")/../.." || exit 1
include=${1:-target/include} lib=${2:-target/lib}
DLPACK_RS_LIBRARY=$(realpath "$lib")/libdlpack_rs.so
export DLPACK_RS_LIBRARY
mkdir -p target
. tests/lib/rows.sh
row "pictures" python3 -B docs/site/pictures.py --check
row "status codes" python3 -B docs/site/status.py "$include" "$lib" target/status.md
if [ ! -x target/site-venv/bin/sphinx-build ] ||
   ! cmp -s docs/site/requirements.txt target/site-venv/requirements.txt; then
  rm -rf target/site-venv
  python3 -m venv target/site-venv &&
    target/site-venv/bin/pip -q --disable-pip-version-check install -r docs/site/requirements.txt &&
    cp docs/site/requirements.txt target/site-venv || exit 1
fi
rm -rf target/site
row "sources of the pages" python3 -B docs/site/site.py target/site-source
row "sphinx, no warning" target/site-venv/bin/sphinx-build -q -E -W --keep-going -n -c docs/site \
  -d target/site-doctrees -b html target/site-source target/site
row "links and search" python3 -B docs/site/check.py target/site-source target/site
echo "target/site/index.html"
totals site

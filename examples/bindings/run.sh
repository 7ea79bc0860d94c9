#!/usr/bin/env bash
# Builds the Python extensions of this folder, with warnings as errors, and tests them with NumPy,
# tvm-ffi and, where it is installed, PyTorch. Arguments: INCLUDE LIBDIR of a built library, then
# pytest's.
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
include=$(realpath "${1:-$here/../../target/include}")
lib=$(realpath "${2:-$here/../../target/lib}")
shift $(($# < 2 ? $# : 2))
for tool in gcc:gcc g++:g++; do
  command -v "${tool%:*}" >/dev/null ||
    { echo "bindings/run.sh needs ${tool%:*}: apt-get install ${tool#*:}"; exit 1; }
done
python=$("$here/../python/venv.sh" "$here/../python/requirements.txt" "$here/requirements.txt")
ask() { "$python" -c "import sysconfig; print(sysconfig.$1)"; }
headers=$(ask 'get_paths()["include"]') suffix=$(ask 'get_config_var("EXT_SUFFIX")')
if [ ! -e "$crates/headers/Python.h" ]; then
  echo "bindings: not run, because Python.h is missing (Debian: apt-get install python3-dev)"
  exit 0
fi
nanobind=$("$python" -c 'import nanobind; print(nanobind.__path__[0])')
pybind11=$("$python" -c 'import pybind11; print(pybind11.get_include())')

# nanobind is compiled once for each of its versions and Pythons.
work=$here/../../target/bindings
mkdir -p "$work"
work=$(CDPATH='' cd "$work" && pwd)
archive=$work/nanobind-$("$python" -c 'import nanobind; print(nanobind.__version__)')$suffix.o
if [ ! -e "$archive" ]; then
  g++ -std=c++17 -O1 -fPIC -fvisibility=hidden -fno-strict-aliasing -I"$headers" \
    -I"$nanobind/include" -I"$nanobind/ext/robin_map/include" -c "$nanobind/src/nb_combined.cpp" \
    -o "$archive.$$"
  mv "$archive.$$" "$archive"
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
warn="-Wall -Wextra -Wshadow -Werror"
build() { # build NAME COMPILER [OPTION...]: of ours, all warnings; of others' headers none
  # shellcheck disable=SC2086
  "${@:2}" $warn -g -O1 -fPIC -shared -fvisibility=hidden -I"$include" -isystem "$headers" \
    -L"$lib" -ldlpack_rs -Wl,-rpath,"$lib" -o "$out/$1$suffix"
}
build vector_plain gcc -std=c11 "$here/vector_plain.c"
build grid_plain g++ -std=c++17 "$here/grid_plain.cpp"
build grid_nanobind g++ -std=c++17 "$here/grid_nanobind.cpp" "$archive" \
  -isystem "$nanobind/include"
glue=$here/../../c_tests/python_hpp.cpp
build python_hpp g++ -std=c++17 -DPYTHON_HPP_MODULE=python_hpp "$glue"
build python_hpp_returning g++ -std=c++17 -fno-exceptions -fno-rtti \
  -DPYTHON_HPP_MODULE=python_hpp_returning "$glue"
build grid_pybind11 g++ -std=c++17 "$here/grid_pybind11.cpp" -isystem "$pybind11"

PYTHONPATH=$out${PYTHONPATH:+:$PYTHONPATH} "$python" -B -m pytest -q --tb=short \
  -p no:cacheprovider "$here" "$@"

#!/bin/sh
# More Pythons for the tests, unpacked into a folder: nothing is installed.
#
#   get_pythons.sh FOLDER [debug] [free-threaded]
#
# From the Debian mirror of this machine's apt: CPython 3.14 and 3.15 of the newest suite,
# with `debug` their debug builds; with `free-threaded` CPython 3.13 without the GIL too, built from
# Debian's source (ten minutes). FOLDER/bin/pythonX.Y runs one through a separate loader;
# FOLDER/bin/with-pythonX.Y runs a program that embeds it, or prints the path of its library.
# Existing files are not downloaded again. Exit 3: there is no Debian mirror.
set -eu
mkdir -p "$1/apt/lists/partial" "$1/apt/archives/partial" "$1/debs" "$1/root" "$1/src" "$1/bin"
folder=$(CDPATH='' cd "$1" && pwd)
shift
debug="" free=""
for word; do
    case $word in
    debug) debug=1 ;;
    free-threaded) free=1 ;;
    *) echo "get_pythons.sh: no such word: $word" >&2; exit 2 ;;
    esac
done
names="3.14 3.15"
[ -z "$debug" ] || names="$names 3.14d 3.15d"

packages="libc6 libffi8 zlib1g libexpat1 libssl3t64"
for version in 3.14 3.15; do
    packages="$packages python$version-minimal libpython$version-minimal libpython$version-stdlib
        libpython$version"
    [ -z "$debug" ] || packages="$packages python$version-dbg libpython$version-dbg"
done
wanted=""
for name in $names; do
    [ -x "$folder/bin/python$name" ] || wanted=1
done
[ -z "$free" ] || [ -x "$folder/bin/python3.13td" ] || wanted=1
[ -n "$wanted" ] || exit 0

# Missing packages for a build of CPython with ctypes are reported before any download.
if [ -n "$free" ] && [ ! -x "$folder/bin/python3.13td" ]; then
    missing=""
    command -v xz >/dev/null || missing=" xz-utils"
    echo '#include <ffi.h>' | gcc -E - >/dev/null 2>&1 || missing="$missing libffi-dev"
    [ -z "$missing" ] || { echo "get_pythons.sh: apt-get install$missing" >&2; exit 1; }
fi

mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
    grep -oE 'https?://[^ ]*/debian/?( |$)' | head -n 1 | tr -d ' ')
[ -n "$mirror" ] || { echo "get_pythons.sh: apt knows no Debian mirror" >&2; exit 3; }
signed='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
for suite in "deb $signed $mirror sid" "deb $signed $mirror trixie" "deb-src $signed $mirror trixie"
do
    echo "$suite main"
done >"$folder/apt/sources.list"
: >"$folder/apt/status"
cat >"$folder/apt/conf" <<END
Dir::Etc::sourcelist "$folder/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::State "$folder/apt";
Dir::State::lists "$folder/apt/lists";
Dir::State::status "$folder/apt/status";
Dir::Cache "$folder/apt";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false";
END
export APT_CONFIG="$folder/apt/conf"
apt-get -qq update

cd "$folder/debs"
# shellcheck disable=SC2086 # a list of words
apt-get -qq download $packages
for package in *.deb; do
    dpkg -x "$package" "$folder/root"
done
libraries=$folder/root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null ||
    gcc -dumpmachine)
loader=$(find "$libraries" -maxdepth 1 -name 'ld-linux*' | head -n 1)
for name in $names; do
    program=$folder/root/usr/bin/python$name
    library=$libraries/libpython$name.so.1.0
    run="PYTHONHOME='$folder/root/usr' exec '$loader' --library-path '$libraries'"
    printf '#!/bin/sh\n%s --argv0 python%s %s "$@"\n' "$run" "$name" "'$program'" \
        >"$folder/bin/python$name"
    printf '#!/bin/sh\n[ $# -gt 0 ] || { echo %s; exit 0; }\n%s "$@"\n' "'$library'" "$run" \
        >"$folder/bin/with-python$name"
    chmod +x "$folder/bin/python$name" "$folder/bin/with-python$name"
    "$folder/bin/python$name" -c 'import ctypes, sys; print(sys.version.split()[0])'
done

[ -n "$free" ] && [ ! -x "$folder/bin/python3.13td" ] || exit 0
cd "$folder/src"
apt-get -qq source --download-only python3.13/trixie
tar xf python3.13_*.orig.tar.?z
mkdir -p build
cd build
"$(find .. -maxdepth 1 -name 'Python-3.13*' | head -n 1)/configure" --disable-gil --with-pydebug \
    --without-ensurepip CFLAGS="-O1 -g0" OPT=-O1 >configure.log 2>&1
make python >make.log 2>&1
make sharedmods >>make.log 2>&1
printf '#!/bin/sh\nexec %s "$@"\n' "'$PWD/python'" >"$folder/bin/python3.13td"
chmod +x "$folder/bin/python3.13td"
"$folder/bin/python3.13td" -c 'import ctypes, sys; print(sys.version.split()[0])'

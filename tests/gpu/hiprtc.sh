#!/usr/bin/env bash
# kernels.cu with newer versions of AMD's compiler than the installed one, and the library with
# newer runtimes, which must report that there is no device: hiprtc.sh WORK [LIBDLPACK_RS]
# Debian's packages of other releases are unpacked into WORK, with their C library, and nothing is
# installed. Needs no GPU; apt, Debian's mirror, and some 400 MB per version. A version that is not
# available is reported as not run. The last line is "N passed, N failed".
set -u
[ $# -ge 1 ] || { echo "usage: hiprtc.sh WORK [LIBDLPACK_RS]"; exit 2; }
ours=$(realpath "${2:-target/lib/libdlpack_rs.so}")
mkdir -p "$1" && work=$(CDPATH='' cd "$1" && pwd) || exit 2
CDPATH='' cd "$(dirname "$0")/../.." || exit 1
passed=0 failed=0
# shellcheck disable=SC2016 # apt-get's own words
site=$(apt-get indextargets --format '$(SITE)' 'Origin: Debian' 'Label: Debian' | head -n 1)
keys=/usr/share/keyrings/debian-archive-keyring.gpg
python=$(readlink -f "$(python3 -c 'import sys; print(sys.executable)')")

apt() { # apt RELEASE COMMAND...: as if that release were all there is, and nothing were installed
  local at=$work/$1 command=$2
  shift 2
  "$command" -o Dir::Etc::sourcelist="$at/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::State::lists="$at/lists" -o Dir::State::status=/dev/null -o Dir::Cache="$at/cache" \
    -o APT::Sandbox::User=root "$@"
}

try() { # try RELEASE LIBRARY PACKAGE...
  local release=$1 library=$2 at=$work/$1 needed
  shift 2
  if ! [ -e "$at/complete" ]; then
    mkdir -p "$at/lists/partial" "$at/cache/archives/partial" "$at/packages" "$at/root"
    echo "deb [signed-by=$keys] $site $release main" >"$at/sources.list"
    apt "$release" apt-get update >/dev/null 2>&1
    needed=$(apt "$release" apt-get -s install --no-install-recommends "$@" 2>/dev/null |
      awk '/^Inst/ { print $2 }')
    # shellcheck disable=SC2086 # a package a word
    if [ -z "$needed" ] ||
      ! (cd "$at/packages" && apt "$release" apt-get download $needed) >/dev/null 2>&1; then
      echo "not run: $library of Debian $release: its packages cannot be had"
      return
    fi
    for package in "$at/packages"/*.deb; do dpkg-deb -x "$package" "$at/root" || return; done
    rm -rf "$at/packages"
    touch "$at/complete"
  fi
  local folder=$at/root/usr/lib/x86_64-linux-gnu
  local loader=$folder/ld-linux-x86-64.so.2
  [ -e "$loader" ] || loader=$at/root/lib64/ld-linux-x86-64.so.2
  for gpu in gfx900 gfx90a gfx942 gfx1030 gfx1100; do
    if "$loader" --library-path "$folder:/usr/lib/x86_64-linux-gnu" "$python" \
      tests/gpu/compile_hip.py "$folder/$library" crates/gpu/src/kernels.cu "$gpu"; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      echo "FAIL  $library of Debian $release, $gpu"
    fi
  done
  local runtime
  for runtime in "$folder"/libamdhip64.so.[0-9]; do
    if ! [ -e "$runtime" ] || ! [ -e "$ours" ]; then
      echo "not run: no runtime of Debian $release, or no library"
    elif "$loader" --library-path "$folder:/usr/lib/x86_64-linux-gnu" "$python" -B \
      tests/gpu/no_device.py "$ours" "$runtime"; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      echo "FAIL  $runtime of Debian $release"
    fi
  done
  echo "$library of Debian $release: $(basename "$(readlink -f "$folder/$library")")"
}

try trixie libamdhip64.so.5 libamdhip64-5
try sid libhiprtc.so.6 libhiprtc6 libamd-comgr3 libamdhip64-6
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

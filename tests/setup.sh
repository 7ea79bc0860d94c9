#!/usr/bin/env bash
# Checks, before anything is built, for all that `make GOAL...` needs and this machine lacks:
#
#   tests/setup.sh GOAL...
#
# As root, or where sudo needs no password, it is installed: by apt-get, Rust by rustup where
# that exists. Elsewhere CMake and ninja come from PyPI, below target/, and for the rest the command
# that installs it is printed. SETUP changes this:
#   SETUP=yes   sudo may ask for a password
#   SETUP=no    nothing is installed
#   SETUP=all   also optional programs of the tests (which print what was not run, and why)
set -u
CDPATH='' cd "$(dirname "$0")/.." || exit 1
tools=$PWD/target/tools
PATH=$PATH:$HOME/.cargo/bin:$tools/bin
cargo=${CARGO:-cargo} python=${PYTHON:-python3}
least=$(sed -n 's/^rust-version = "\([0-9.]*\)".*/\1/p' Cargo.toml)
sources=/usr/lib/rustlib/src/rust/library/core/Cargo.toml

# ---- what goals need -----------------------------------------------------------------------------
# PROBE:PACKAGE: a command, a file, or a name that `there` supports; packages are Debian's.
c='gcc:gcc libc-headers:libc6-dev objcopy:binutils'
cmake='cmake:cmake make:make'
venv="$python:python3 venv:python3-venv"
cross='qemu-s390x:qemu-user lld-link:lld'
for machine in aarch64-linux-gnu i686-linux-gnu arm-linux-gnueabihf s390x-linux-gnu \
    powerpc64-linux-gnu; do
  cross+=" $machine-g++:g++-$machine"
done
goal_needs() { # goal_needs GOAL: what it cannot do without, a "|", and what it can
  case $1 in
    build | soak | coverage | test-oneapi) echo "rust $c" ;;
    install-build) echo "rust $c $cmake" ;;
    demo) echo "rust $c | $cmake g++:g++ $venv" ;;
    check) echo "rust rustfmt $c g++:g++ readelf:binutils $python:python3" ;;
    lint) echo "rust rustfmt clippy git:git shellcheck:shellcheck" ;;
    test)
      echo "rust $c $cmake g++:g++ ninja:ninja-build pkg-config:pkg-config clang:clang" \
        "clang++:clang valgrind:valgrind readelf:binutils git:git flock:util-linux $venv |" \
        "rustfmt clippy shellcheck:shellcheck opencl:ocl-icd-opencl-dev" \
        "/usr/include/CL/cl.h:opencl-c-headers /etc/OpenCL/vendors/pocl.icd:pocl-opencl-icd" \
        "hip:libamdhip64-5 python-headers:python3-dev" ;;
    test-windows)
      echo "$c $cmake $sources:rust-web-src x86_64-w64-mingw32-gcc:gcc-mingw-w64-x86-64" \
        "x86_64-w64-mingw32-g++:g++-mingw-w64-x86-64 wine:wine wine64:wine64 lld-link:lld" ;;
    test-cross) echo "$c /usr/bin/rustc:rustc-web /usr/bin/cargo:cargo-web" \
      "$sources:rust-web-src $cross" ;;
    docs) echo "rust $c $venv clang:clang" ;; # which knows where its own headers are
    test-long | interop | conform | bench) echo "rust $c $venv" ;;
    adopt-numpy | adopt-nanobind) echo "rust $c g++:g++ $venv" ;;
    wheel | packages | release)
      echo "rust $c readelf:binutils git:git $cmake $venv | lintian:lintian" \
        "$sources:rust-web-src aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu" \
        "x86_64-w64-mingw32-gcc:gcc-mingw-w64-x86-64" ;;
    test-pythons) echo "rust $c dpkg:dpkg $venv" ;;
    mutants) echo "rust $c $python:python3 patch:patch" ;;
    faults | trust) goal_needs test ;;
    fuzz | fuzz-long) echo "rust $c g++:g++ $python:python3" ;;
  esac
}

# ---- installed programs --------------------------------------------------------------------------
rust_version() { "$cargo" --version 2>/dev/null | sed -n 's/^cargo \([0-9.]*\).*/\1/p'; }
at_least() { [ -n "$2" ] && printf '%s\n' "$1" "$2" | sort -C -V; } # at_least LEAST VERSION
there() { # there PROBE
  case $1 in
    rust) at_least "$least" "$(rust_version)" && command -v rustc >/dev/null ;;
    rustfmt) "$cargo" fmt --version >/dev/null 2>&1 ;;
    clippy) "$cargo" clippy --version >/dev/null 2>&1 ;;
    libc-headers) echo '#include <stdlib.h>' | gcc -E -xc - >/dev/null 2>&1 ;;
    venv) "$python" -c 'import venv, ensurepip' 2>/dev/null ;;
    python-headers)
      [ -e "$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ] ;;
    opencl) gcc -shared -nostdlib -lOpenCL -o /dev/null -xc /dev/null 2>/dev/null ;;
    hip) PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -q libamdhip64 ;;
    wine64) command -v wine64 >/dev/null || [ -x /usr/lib/wine/wine64 ] ;;
    # A path is looked up as a file, a name as a command: there is a folder named cmake.
    /*) [ -e "$1" ] ;;
    *) command -v "$1" >/dev/null ;;
  esac
}
candidate() { # candidate PACKAGE: the version that apt would install
  apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: \([0-9].*\)/\1/p'
}
rust_packages() { # rust_packages rust|rustfmt|clippy: none where apt has only an older Rust
  local web=
  # Debian has two: a stable one, and a current one for browsers. Ubuntu has one, and rustup.
  if [ -e /usr/share/doc/rustc-web ] || ! at_least "$least" "$(candidate cargo)"; then
    web=-web
    if ! at_least "$least" "$(candidate cargo-web)"; then
      [ "$1" != rust ] || [ -z "$(candidate rustup)" ] || echo rustup
      return
    fi
  fi
  case $1 in
    rust) echo "rustc$web cargo$web" ;;
    rustfmt) echo "rustfmt$web" ;;
    clippy) if [ -n "$web" ]; then echo rust-web-clippy; else echo rust-clippy; fi ;;
  esac
}

needs='' wants=''
for goal in "$@"; do
  found=$(goal_needs "$goal")
  needs+=" ${found%%|*}"
  case $found in *'|'*) wants+=" ${found#*|}" ;; esac
done
rustup=0
look() { # look PROBE:PACKAGE...: fills `lacking` with those that are not there
  local pair
  lacking=()
  for pair in "$@"; do
    there "${pair%%:*}" || [[ " ${lacking[*]-} " == *" $pair "* ]] || lacking+=("$pair")
  done
}
packages() { # packages PROBE:PACKAGE...: as apt-get takes them; Rust is rustup's, where that is
  local pair names=() rust
  for pair in "$@"; do
    case $pair in
      rust | rustfmt | clippy)
        rust=
        [ "$rustup" -eq 1 ] || rust=$(rust_packages "$pair")
        # Debian's cargo requires this package's certificates.
        [ "$pair" != rust ] || [ -z "$rust" ] || [ ! -e /etc/debian_version ] || rust+=" ca-certificates"
        mapfile -t -O "${#names[@]}" names < <(tr ' ' '\n' <<<"$rust") ;;
      *) names+=("${pair#*:}") ;;
    esac
  done
  printf '%s\n' ${names[@]+"${names[@]}"} | awk 'NF && !seen[$0]++' | tr '\n' ' '
}

# ---- installing ----------------------------------------------------------------------------------
as_root=none
if [ "${SETUP:-}" != no ]; then
  if [ "$(id -u)" -eq 0 ]; then as_root=
  elif command -v sudo >/dev/null && { [ "${SETUP:-}" = yes ] || sudo -n true 2>/dev/null; }; then
    as_root=sudo
  fi
fi
command -v apt-get >/dev/null || as_root=none
! command -v rustup >/dev/null || rustup=1

# shellcheck disable=SC2086 # lists
look $needs
needed=(${lacking[@]+"${lacking[@]}"})
# shellcheck disable=SC2086
look $wants
wanted=(${lacking[@]+"${lacking[@]}"})
[ $((${#needed[@]} + ${#wanted[@]})) -gt 0 ] || exit 0

# A demo installs its optional packages with the required ones.
install=(${needed[@]+"${needed[@]}"})
case " $* ${SETUP:-} " in
  *" all "* | *" demo "*) install+=(${wanted[@]+"${wanted[@]}"}) ;;
esac
if [ "${#install[@]}" -gt 0 ] && [ "${SETUP:-}" != no ]; then
  mkdir -p target
  log=target/setup.log
  : >"$log"
  if [ "$rustup" -eq 1 ] && ! there rust; then
    echo "setup: rustup update stable"
    rustup update stable >>"$log" 2>&1 || rustup=0
  fi
  if [ "$as_root" != none ]; then
    echo "setup: apt-get update"
    $as_root apt-get update >>"$log" 2>&1
    kept=()
    for pair in "${install[@]}"; do # what this Debian has not got is said below
      case $pair in
        *:*) [ -z "$(candidate "${pair#*:}")" ] || kept+=("$pair") ;;
        *) kept+=("$pair") ;;
      esac
    done
    list=$(packages ${kept[@]+"${kept[@]}"})
    if [ -n "$list" ]; then
      echo "setup: apt-get install $list"
      # shellcheck disable=SC2086
      $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-remove \
        --no-install-recommends $list >>"$log" 2>&1 || tail -n 20 "$log"
      [[ " $list " != *" rustup "* ]] || rustup default stable >>"$log" 2>&1 || tail -n 5 "$log"
    fi
  fi
  pypi=()
  for tool in cmake ninja; do
    [[ " ${install[*]} " != *" $tool:"* ]] || there "$tool" || pypi+=("$tool")
  done
  if [ "${#pypi[@]}" -gt 0 ] && there venv; then
    echo "setup: from PyPI, below target/tools: ${pypi[*]}"
    { "$python" -m venv "$tools/venv" && mkdir -p "$tools/bin" &&
      "$tools/venv/bin/pip" install --quiet --disable-pip-version-check "${pypi[@]}" &&
      ln -sf "${pypi[@]/#/../venv/bin/}" "$tools/bin/"; } >>"$log" 2>&1 || tail -n 5 "$log"
  fi
  hash -r
fi

# ---- missing programs ----------------------------------------------------------------------------
# shellcheck disable=SC2086
look $wants
if [ "${#lacking[@]}" -gt 0 ]; then
  echo "setup: left out, for want of these packages: $(packages "${lacking[@]}")(SETUP=all)"
fi
optional=(${lacking[@]+"${lacking[@]}"})
# shellcheck disable=SC2086
look $needs
[ "${#lacking[@]}" -gt 0 ] || exit 0
[ "${SETUP:-}" != all ] || lacking+=(${optional[@]+"${optional[@]}"})
echo "make $*: not everything is there that it needs."
if ! there rust && [[ " ${lacking[*]} " == *" rust "* ]]; then
  version=$(rust_version)
  echo "  Rust $least or newer${version:+; $(command -v "$cargo") is $version}."
  if [ "$rustup" -eq 1 ]; then
    echo "  rustup update stable"
  elif [ -z "$(rust_packages rust)" ]; then
    echo "  No package of this system has it. rustup installs it, without root: https://rustup.rs"
  fi
fi
list=$(packages "${lacking[@]}")
if [ -n "$list" ]; then
  if [ "$(id -u)" -eq 0 ]; then sudo=; else sudo='sudo '; fi
  echo "  ${sudo}apt-get update && ${sudo}apt-get install --no-install-recommends $list"
fi
exit 1

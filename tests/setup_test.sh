#!/usr/bin/env bash
# tests/setup.sh on simulated machines: PATH is one folder, with an apt-get, a sudo and an id that
# record their arguments. Then tests/steps.py. Ends with `setup: N passed, N failed`.
set -u
CDPATH='' cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
. tests/lib/rows.sh
stand_in() { # stand_in NAME: the script on standard input
  { echo "#!/bin/bash"; cat; } >"$bin/$1"
  chmod +x "$bin/$1"
}
machine() { # machine UID: with nothing but the shell's tools, apt and sudo
  rm -rf "${work:?}/bin" "${work:?}/tree"
  bin=$work/bin
  mkdir -p "$bin" "$work/home" "$work/tree/tests"
  : >"$work/called"
  cp tests/setup.sh "$work/tree/tests/"
  echo 'rust-version = "1.95"' >"$work/tree/Cargo.toml"
  local tool
  for tool in bash sh sed sort awk tr mkdir rm env cat tail grep dirname mv ln; do
    ln -s "$(command -v "$tool")" "$bin/$tool"
  done
  echo "echo $1" | stand_in id
  # As if the package had installed the command.
  stand_in apt-get <<SH
echo "apt-get \$*" >>"$work/called"
[ "\$1" = install ] || exit 0
for package; do
  case \$package in
    rustc*) ln -sf "$work/new-cargo" "$bin/cargo"; ln -sf "$bin/id" "$bin/rustc" ;;
    cmake | make | g++ | gcc) ln -sf "$bin/id" "$bin/\$package" ;;
    binutils) ln -sf "$bin/id" "$bin/objcopy" ;;
    python3) ln -sf "$bin/id" "$bin/python3" ;;
  esac
done
SH
  echo 'echo "  Candidate: 1.96.0"' | stand_in apt-cache
  echo "echo sudo >>'$work/called'; [ \"\$1\" != -n ] || exit \${ASKS:-0}; exec \"\$@\"" | stand_in sudo
  printf '#!/bin/bash\necho cargo 1.96.0\n' >"$work/new-cargo"
  chmod +x "$work/new-cargo"
}
old_rust() { echo 'echo cargo 1.65.0' | stand_in cargo; ln -sf "$bin/id" "$bin/rustc"; }
new_rust() { ln -sf "$work/new-cargo" "$bin/cargo"; ln -sf "$bin/id" "$bin/rustc"; }
compiler() { for tool in gcc objcopy; do ln -sf "$bin/id" "$bin/$tool"; done; }
setup() { # setup SETTING... -- GOAL...
  local settings=()
  while [ "$1" != -- ]; do settings+=("$1"); shift; done
  shift
  local status=0
  env -i HOME="$work/home" PATH="$bin" "${settings[@]}" "$work/tree/tests/setup.sh" "$@" \
    >"$work/said" 2>&1 || status=$?
  cat "$work/said"
  return $status
}
says() { grep -E -e "$1" "$work/said"; }
calls() { grep -E -e "$1" "$work/called"; }
no() { if "$@"; then echo "should not be: $*"; return 1; fi; }

nothing_missing() {
  machine 0; new_rust; compiler
  setup -- build
  [ ! -s "$work/said" ] && [ ! -s "$work/called" ]
}
all_at_once() { # and nothing done
  machine 1000
  no setup SETUP=no -- demo test
  says 'sudo apt-get install .*gcc .*valgrind.*' && says ' rustc' && says ' cmake ' && says ' ninja-build '
  [ "$(grep -c 'apt-get install' "$work/said")" -eq 1 ]
  [ ! -s "$work/called" ] && [ ! -e "$work/tree/target" ]
}
too_old() {
  machine 1000; old_rust; compiler
  no setup SETUP=no -- build
  says 'Rust 1\.95 or newer; .*/cargo is 1\.65\.0'
}
root() {
  machine 0
  setup -- demo || { no says 'not everything'; }
  calls '^apt-get update' && calls '^apt-get install -y --no-remove .*rustc.* g\+\+'
  no calls sudo
  no says PyPI
  [ "$(grep -c 'apt-get install' "$work/called")" -eq 1 ]
}
by_sudo() { # where it asks for no password
  machine 1000
  setup -- build
  calls '^sudo' && calls '^apt-get install'
}
asking() { # where it would, it is not called but to ask that; SETUP=yes does
  machine 1000
  no setup ASKS=1 -- build
  no calls apt-get
  says 'sudo apt-get install'
  setup ASKS=1 SETUP=yes -- build
  calls '^apt-get install'
}
wider() { # what tests can do without is named; SETUP=all installs it
  machine 0
  setup -- test || true
  no calls shellcheck
  says 'left out.*shellcheck'
  machine 0
  setup SETUP=all -- test || true
  calls 'apt-get install.*shellcheck'
}
demo_alone() { # a demo with a C compiler and Rust shows what it can
  machine 1000; new_rust; compiler
  setup SETUP=no -- demo
  says 'left out.*cmake'
}
no_new_rust() { # apt has only an old one, and neither Debian's second nor rustup
  machine 0; old_rust
  printf 'case $2 in *-web | rustup) ;; cargo) echo "  Candidate: 1.75.0" ;; %s\n' \
    '*) echo "  Candidate: 1.0" ;; esac' | stand_in apt-cache
  no setup -- demo
  calls '^apt-get install .*gcc .*cmake'
  no calls 'rust|cargo'
  no says 'apt-get install.*(rust|cargo|certificates)'
  says 'https://rustup.rs'
}
all_in_a_line() { # without root, with what is optional
  machine 1000; new_rust
  no setup ASKS=1 SETUP=all -- test
  says 'sudo apt-get install .*gcc .*shellcheck'
}
no_step_lost() { # the runner in a tree of its own: its logs are there
  mkdir -p "$work/tree/tests"
  cp tests/steps.py "$work/tree/tests/"
  local steps=() k
  for k in {1..40}; do steps+=("echo $k passed"); done
  STEP_JOBS=4 python3 "$work/tree/tests/steps.py" "${steps[@]}" >"$work/said" 2>&1
  says '^820 passed, 0 failed'
}
row "nothing is missing: nothing is said" nothing_missing
row "all that is missing, at once" all_at_once
row "a Rust that is too old is named" too_old
row "as root it is installed" root
row "by a sudo that asks for no password" by_sudo
row "SETUP=yes: by one that asks" asking
row "what tests can do without: named, or SETUP=all" wider
row "a demo shows what it can" demo_alone
row "no package has a new Rust: rustup is named, the rest installed" no_new_rust
row "SETUP=all without root: one line with the optional packages" all_in_a_line
row "of steps that end at the same time none is lost" no_step_lost
totals setup

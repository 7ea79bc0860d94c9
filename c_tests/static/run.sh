#!/usr/bin/env bash
# The static library in programs and plugins: run.sh INCLUDE LIBDIR
# It uses nothing of libm, exports nothing, and its tensors outlive the plugin that it was linked
# into. One line a row; ends with "static: N passed, N failed".
set -uo pipefail
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
[ $# -eq 2 ] || { echo "usage: run.sh INCLUDE LIBDIR"; exit 2; }
include=$(CDPATH='' cd "$1" && pwd) && library=$(CDPATH='' cd "$2" && pwd)/libdlpack_rs.a || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
row() { # row NAME COMMAND...
  local name=$1; shift
  if (set -e; "$@") >"$work/log" 2>&1; then # no condition within may fail: && between
    passed=$((passed + 1)); echo "pass  $name"
  else
    failed=$((failed + 1)); tail -n 25 "$work/log"; echo "FAIL  $name"
  fi
}
compile() { "${CC:-gcc}" -g -O1 -std=gnu11 -Wall -Wextra -Werror -I"$include" "$@"; }

# Every function that <math.h> declares, and the object that defines it in the program.
math_names() {
  echo '#include <math.h>' | "${CC:-gcc}" -std=c11 -E - | tr -d '\n' | tr ';' '\n' |
    sed -n 's/^.*extern [a-z ]* \([a-z][a-z0-9]*\) *(.*/\1/p' | grep -v '^is\|^fp' | sort -u
}
math_table() { # with names, and the addresses through which they are called
  echo '#include <math.h>'
  echo 'const struct math { const char *name; void (*address)(void); } math[] = {'
  math_names | sed 's/.*/  {"&", (void (*)(void))&},/'
  echo '  {0, 0}};'
}
math_table >"$work/math.c"
libm() {
  [ "$(math_names | wc -l)" -gt 150 ] && math_names | grep -x fmod &&
    compile -fno-builtin "$work/math.c" "$here/libm.c" "$library" -lm -o "$work/libm" &&
    timeout 60 "$work/libm"
}
libm_shared() {
  compile -fno-builtin -shared -fPIC "$work/math.c" "$here/libm.c" "$library" -lm -Wl,-z,defs \
    -o "$work/libm.so"
}
own_names() { nm -g --defined-only "$library" | awk 'NF == 3 { print $3 }' | sort; }
only_exports() { own_names | diff <(cut -d" " -f1 "$include/exports.txt") -; }

plugin() { compile -shared -fPIC "$here/plugin.c" "$library" "$@"; }
hidden() {
  plugin -o "$work/plugin.so" && nm -D --defined-only "$work/plugin.so" >"$work/names" &&
    grep -w make "$work/names" && ! grep dlrs_ "$work/names"
}
# Two plugins, each with a separate copy of the library, built, unloaded, and used.
unloaded() {
  cp "$work/plugin.so" "$work/other.so" && compile "$here/unload.c" -ldl -o "$work/unload" &&
    (cd "$work" && timeout 60 ./unload ./plugin.so ./other.so)
}
row "every function of <math.h> is libm's, in a program" libm
row "the same in a shared library, with -z defs" libm_shared
row "the archive defines the exports and nothing else" only_exports
row "a plugin shows none of them" hidden
row "tensors outlive the plugins that made them" unloaded

echo "static: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

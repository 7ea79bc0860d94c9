# Sourced by scripts of tests: one line for each of their rows, and the counts.
# shellcheck shell=bash disable=SC2034 # who sources this reads `worked`
passed=0 failed=0
# row NAME COMMAND...: in a subshell that stops at the first failure. A failed command's output comes
# before its line; the counts of a command that prints "N passed, M failed" are in it. Status 77 is
# "not run", with the last line as its reason. Sets $worked to `true` or `false`: where a row is a
# condition, in `row ... || return`, bash would continue after a failed line of the command.
row() {
  local name=$1 start=$SECONDS log count status; shift
  log=$(mktemp)
  (set -e; "$@") >"$log" 2>&1
  status=$?
  count=$(grep -aoE '[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
  worked=false
  case $status in
  0) passed=$((passed + 1)) worked=true
    echo "pass  $name${count:+: $count} ($((SECONDS - start)) s)" ;;
  77) echo "$name: not run: $(tail -n 1 "$log")" ;;
  *) failed=$((failed + 1))
    tail -n 40 "$log"
    echo "FAIL  $name${count:+: $count} (status $status)" ;;
  esac
  rm -f "$log"
}
not_run() { echo "$*"; exit 77; }
fails() { if "$@"; then echo "should have failed: $*"; return 1; fi; } # `set -e` ignores `!`
totals() { # totals NAME: whether something passed and nothing failed
  echo "$1: $passed passed, $failed failed"
  [ $failed -eq 0 ] && [ $passed -gt 0 ]
}

#!/usr/bin/env bash
# Runs the test steps given, each a command line, with a header; goes on after a failure. Prints how
# long each took and ends with the counts of all steps together: `N passed, N failed`. A step whose
# script does not exist counts as failed; one that says `...: not run, because ...` is shown as such.
# Lines of a failed step that look like the reason are repeated below the table.
#
#   steps.sh [--all [--but WORD]...] STEP...
#
# --all: what was not run has failed, but for steps that have one of the WORDs in them. STEP_SECONDS
# is how long a step may take before it is ended, 2,400: a deadlock does not hang everything.
set -u
all=0 but=()
while [ $# -gt 0 ]; do
  case $1 in
    --all) all=1; shift ;;
    --but) but+=("$2"); shift 2 ;;
    *) break ;;
  esac
done
may_be_absent() { # may_be_absent STEP
  local word
  [ "$all" -eq 1 ] || return 0
  for word in ${but[@]+"${but[@]}"}; do
    case $1 in *"$word"*) return 0 ;; esac
  done
  return 1
}
cd "$(dirname "$0")/.." || exit 1
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
passed=0 failed=0 summary='' reasons=''

# Adds up what a step said: cargo's `test result:` lines, or else the last line that has
# `N passed` in it, as our scripts and pytest write it.
count() {
  awk '{ p = f = -1
         for (i = 2; i <= NF; i++) {
           if ($i ~ /^passed[;,]?$/ && $(i - 1) ~ /^[0-9]+$/) p = $(i - 1)
           if ($i ~ /^failed[;,]?$/ && $(i - 1) ~ /^[0-9]+$/) f = $(i - 1) }
         if (p < 0 && f < 0) next
         if (p < 0) p = 0
         if (f < 0) f = 0
         if (/^test result:/) { cargo = 1; cp += p; cf += f } else { lp = p; lf = f } }
       END { if (cargo) print cp + 0, cf + 0; else print lp + 0, lf + 0 }' "$log"
}

for step in "$@"; do
  printf '\n==== %s\n' "$step"
  started=$SECONDS
  timeout -k 30 "${STEP_SECONDS:-2400}" bash -c "$step" 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  read -r good bad < <(count)
  [ "$status" -ne 124 ] && [ "$status" -ne 137 ] || echo "FAIL: ended after its time" | tee -a "$log"
  reason=$(grep -m 1 ': not run, because ' "$log") || reason=
  if [ -n "$reason" ] && ! may_be_absent "$step"; then
    bad=$((bad + 1))
    echo "FAIL: here it has to run" >>"$log"
  fi
  # A step that fails without counting, or that counts nothing and says nothing, has failed once.
  if [ "$bad" -eq 0 ] && { [ "$status" -ne 0 ] || { [ "$good" -eq 0 ] && [ -z "$reason" ]; }; }; then
    bad=1
  fi
  if [ "$bad" -gt 0 ]; then
    reasons+="$step:"$'\n'
    reasons+=$(grep -E 'FAIL|panicked at|\(expected |^error|:[0-9]+: ' "$log" | head -n 8 |
      cut -c1-200)$'\n'
  fi
  passed=$((passed + good)) failed=$((failed + bad))
  word=pass
  [ "$good" -gt 0 ] || word=none
  [ "$bad" -eq 0 ] || word=FAIL
  summary+=$(printf '%s  %5d passed %3d failed %4d s  %s' "$word" "$good" "$bad" \
    $((SECONDS - started)) "$step")$'\n'
  [ -z "$reason" ] || summary+="      $reason"$'\n'
done
printf '\n%s%s%d passed, %d failed\n' "$summary" "$reasons" "$passed" "$failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

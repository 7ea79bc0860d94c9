#!/usr/bin/env bash
# Runs the test steps given, each a command line, several at a time; continues after a failure. A
# step's output is printed whole when it ends, below its header. Then a table, in the order given,
# of each step's duration and processor time, and the total counts, as `N passed, N failed`. A step
# whose script does not exist counts as failed; for one that prints `...: not run, because ...` all
# such lines are shown. Lines of a failed step that look like the reason are repeated below the
# table.
#
#   steps.sh [--all [--but WORD]...] STEP...
#
# --all: what was not run has failed, but for steps that have one of the WORDs in them. STEP_JOBS is
# how many steps run at a time, as many as there are processors, at most 4; with 1, what a step says
# is printed as it says it. STEP_SECONDS is how long a step may take before it is ended, 2,400: a
# deadlock does not hang everything. Set, it is also how long a program of c_tests may take: a machine
# with much other work needs more. An interrupt ends all steps and all that they started.
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
CDPATH='' cd "$(dirname "$0")/.." || exit 1
# Messages of compilers and sorted lists are read here: in English and in one order.
unset LANGUAGE
export LC_ALL=C
jobs=${STEP_JOBS:-$(nproc)}
[ -n "${STEP_JOBS:-}" ] || [ "$jobs" -le 4 ] || jobs=4
steps=("$@") summary=() reasons=()
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# Each step's processes are identified by STEP_ID in their environment, also those in other groups
# and sessions and those whose parents have ended.
end_processes() { # end_processes STEP-ID: a pattern of grep
  local signal waits
  for signal in TERM KILL; do
    for ((waits = 0; waits < 50; waits++)); do
      mapfile -t files < <(grep -lszx "STEP_ID=$1" /proc/[0-9]*/environ)
      [ "${#files[@]}" -gt 0 ] || return
      files=("${files[@]#/proc/}")
      [ "$waits" -gt 0 ] || kill -s "$signal" "${files[@]%/environ}" 2>/dev/null
      sleep 0.1
    done
  done
}
interrupted() {
  trap '' INT TERM HUP
  echo "interrupted: all steps are ended"
  end_processes "$$\..*"
  wait
  exit 130
}
trap interrupted INT TERM HUP

# Adds up a step's counts: cargo's `test result:` lines, or else the last line with `N passed`, in
# the format of our scripts and pytest.
count() { # count LOG
  awk '{ p = f = -1
         for (i = 2; i <= NF; i++) {
           if ($i ~ /^passed[;,]?$/ && $(i - 1) ~ /^[0-9]+$/) p = $(i - 1)
           if ($i ~ /^failed[;,]?$/ && $(i - 1) ~ /^[0-9]+$/) f = $(i - 1) }
         if (p < 0 && f < 0) next
         if (p < 0) p = 0
         if (f < 0) f = 0
         if (/^test result:/) { cargo = 1; cp += p; cf += f } else { lp = p; lf = f } }
       END { if (cargo) print cp + 0, cf + 0; else print lp + 0, lf + 0 }' "$1"
}

run() { # run NUMBER: what the step says, and to a file: status, seconds, processor time
  local started=$SECONDS status TIMEFORMAT='%0U %0S'
  # shellcheck disable=SC2031 # it is for this step alone
  { time STEP_ID=$$.$1 timeout -k 30 "${STEP_SECONDS:-2400}" bash -c "${steps[$1]}" 2>&1; } \
    2>"$work/$1.time"
  status=$?
  if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
    end_processes "$$\.$1"
    echo "FAIL: ended after its time"
  fi
  echo "$status $((SECONDS - started)) $(<"$work/$1.time")" >"$work/$1.new"
  mv "$work/$1.new" "$work/$1.status"
}
start() { # start NUMBER
  if [ "$jobs" -eq 1 ]; then
    printf '\n==== %s\n' "${steps[$1]}"
    run "$1" | tee "$work/$1.log" &
  else
    echo ".... ${steps[$1]}"
    run "$1" >"$work/$1.log" &
  fi
}
report() { # report NUMBER
  local step=${steps[$1]} log=$work/$1.log status seconds user system good bad reason word
  sed -i $'s/\033\\[[0-9;]*m//g' "$log" # colours, if the environment enables them
  [ "$jobs" -eq 1 ] || { printf '\n==== %s\n' "$step"; cat "$log"; }
  read -r status seconds user system <"$work/$1.status"
  read -r good bad < <(count "$log")
  reason=$(grep ': not run, because ' "$log" | sed 's/^/      /') || reason=
  if [ -n "$reason" ] && ! may_be_absent "$step"; then
    bad=$((bad + 1))
    echo "FAIL: here it has to run" >>"$log"
  fi
  # A step that fails without counts, or that has neither counts nor output, has failed once.
  if [ "$bad" -eq 0 ] && { [ "$status" -ne 0 ] || { [ "$good" -eq 0 ] && [ -z "$reason" ]; }; }; then
    bad=1
  fi
  if [ "$bad" -gt 0 ]; then
    reasons[$1]=$step:$'\n'$(grep -E 'FAIL|panicked at|\(expected |^error|:[0-9]+: ' "$log" |
      head -n 8 | cut -c1-200)$'\n'
  fi
  passed=$((passed + good)) failed=$((failed + bad))
  word=pass
  [ "$good" -gt 0 ] || word=none
  [ "$bad" -eq 0 ] || word=FAIL
  summary[$1]=$(printf '%s  %7d passed %3d failed %4d s (processors %4d s)  %s' "$word" "$good" \
    "$bad" "$seconds" $((user + system)) "$step")$'\n'
  [ -z "$reason" ] || summary[$1]+=$reason$'\n'
  rm "$work/$1.status"
}

next=0 running=()
while [ "$next" -lt $# ] || [ "${#running[@]}" -gt 0 ]; do
  while [ "$next" -lt $# ] && [ "${#running[@]}" -lt "$jobs" ]; do
    start "$next"
    running[next]=$next next=$((next + 1))
  done
  ended=0
  for number in "${running[@]}"; do
    [ -f "$work/$number.status" ] || continue
    [ "$jobs" -gt 1 ] || wait # for tee
    unset "running[number]"
    ended=1
    report "$number"
  done
  [ "$ended" -eq 1 ] || wait -n
done
printf '\n'
printf '%s' ${summary[@]+"${summary[@]}"} ${reasons[@]+"${reasons[@]}"}
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

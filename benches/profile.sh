#!/bin/sh
# What copies cost in instructions and in cache misses: rows of benches/copy.rs, each once under
# valgrind's callgrind, as a Markdown table; for processors whose counters cannot be read.
# `profile.sh [NAME...]`: the first row whose name contains NAME, or those of the table of targets.
# environment: TUNE (amd, zen5, usual) for whose ways, as the processor that valgrind shows is none of
# AMD's; SKIP (bytes, 16: NumPy's arrays); CACHES, the simulated ones, by callgrind's options; THREADS
# (1), of which several share the simulated caches, and making and joining them is not counted. With
# STEPS=1 instructions alone, by steps.c instead of valgrind, which has no AVX-512: of the processor's
# own ways, if TUNE says nothing, and minutes a row.
cd "$(dirname "$0")/.." || exit 1
caches=${CACHES:---I1=32768,8,64 --D1=32768,8,64 --LL=33554432,16,64}
program=$(cargo bench --bench copy --no-run 2>&1 | sed -n 's/.*(\(.*copy-[0-9a-f]*\)).*/\1/p')
[ -x "$program" ] || { echo "profile.sh: benches/copy.rs does not build" >&2; exit 1; }
counts=$(mktemp) || exit 1
trap 'rm -f "$counts"' EXIT
[ $# -gt 0 ] || set -- "contiguous f32 64" "transpose f32 4096" "transpose f32 1024" \
  "transpose f32 4095" "transpose f64 4096" "transpose u8 8192" "transpose f16 8192" \
  "transpose c128 2048" "NCHW→NHWC f32 32×3" "NHWC→NCHW f32 32×224×224×3" \
  "NCHW→NHWC f32 16×64" "reversal of axes" "(0,2,1,3)" "inner step 2 f32" "row step 2 f32" \
  "broadcast column" "reversed inner axis" "fp4 packed transpose 8192" "fp6 packed transpose 8192"
# Of several threads what each of them does.
counted=profiled
[ "${THREADS:-1}" -gt 1 ] && counted='*::cpu::engine::serial*'
# For each 64 bytes of the output.
if [ -n "${STEPS:-}" ]; then
  mkdir -p target/bench && cc -O2 benches/steps.c -o target/bench/steps || exit 1
  place=$(nm "$program" | sed -n 's/ T profiled$//p')
  printf '| case | instructions |\n| --- | --: |\n'
  for name in "$@"; do
    PROFILE=1 SKIP=${SKIP:-16} target/bench/steps "$place" "$program" "$name" | awk '
      NR == 2 { n = $NF; sub(/ [0-9]+$/, ""); row = $0 }
      NR == 3 { printf "| %s | %.1f |\n", row, $1 / (n / 64) }
      END { exit NR < 3 }' || { echo "profile.sh: no row is named so, or no ptrace: $name" >&2; exit 1; }
  done
  exit
fi
echo "| case | instructions | read, nearest missed | read, last missed | stores |"
echo "| --- | --: | --: | --: | --: |"
for name in "$@"; do
  line=$(PROFILE=${THREADS:-1} TUNE=${TUNE:-amd} SKIP=${SKIP:-16} valgrind --tool=callgrind --cache-sim=yes \
    --toggle-collect="$counted" --callgrind-out-file="$counts" $caches "$program" "$name" 2>/dev/null |
    sed -n '2p')
  [ -n "$line" ] || { echo "profile.sh: no row is named so, or no valgrind: $name" >&2; exit 1; }
  # Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw
  awk -v line="$line" '/^(summary|totals):/ {
      n = split(line, word, " "); lines = word[n] / 64; sub(/ [0-9]+$/, "", line)
      printf "| %s | %.1f | %.2f | %.2f | %.2f |\n", line, $2 / lines, $6 / lines, $9 / lines,
        $7 / lines
      exit
    }' "$counts"
done

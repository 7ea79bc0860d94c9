#!/usr/bin/env bash
# kernels.cu with the compilers of both vendors: kernels.ptx is the output of NVRTC 11.8, ptxas
# compiles it for every GPU since Maxwell without spilling, hiprtc and the newest clang compile the
# source. BLESS=1 rewrites kernels.ptx. Needs no GPU; python3 with venv, network for pip; hiprtc is
# in Debian's libamdhip64-5.
set -u
CDPATH='' cd "$(dirname "$0")/../.." || exit 1
gpu=crates/gpu/src venv=target/gpu-venv passed=0 failed=0
result() { # result STATUS WHAT
  if [ "$1" -eq 0 ]; then passed=$((passed + 1)); echo "pass  $2"
  else failed=$((failed + 1)); echo "FAIL  $2"; fi
}
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT

if ! cmp -s tests/gpu/requirements.txt "$venv/installed"; then
  { [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"; } &&
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps \
      -r tests/gpu/requirements.txt && cp tests/gpu/requirements.txt "$venv/installed" ||
    { echo "tests/gpu/kernels.sh: pip could not install tests/gpu/requirements.txt"; exit 1; }
fi
nvidia=$(echo "$venv"/lib/python3*/site-packages/nvidia)

nvrtc=$(find "$nvidia/cuda_nvrtc" -name 'libnvrtc.so*' | head -n 1)
fresh=$out/kernels.ptx
"$venv/bin/python" "$gpu/generate.py" "$nvrtc" "$fresh" &&
  { [ -z "${BLESS:-}" ] || cp "$fresh" "$gpu/kernels.ptx"; } && cmp "$fresh" "$gpu/kernels.ptx"
result $? "$gpu/kernels.ptx is what NVRTC 11.8 makes of kernels.cu"

# The version that generate.py writes does not change the output.
ptxas=$nvidia/cuda_nvcc/bin/ptxas
sed 's/^\.version 6\.4$/.version 7.8/' "$gpu/kernels.ptx" >"$out/own.ptx" &&
  ! cmp -s "$out/own.ptx" "$gpu/kernels.ptx" &&
  "$ptxas" -arch=sm_50 "$out/own.ptx" -o "$out/own" &&
  "$ptxas" -arch=sm_50 "$gpu/kernels.ptx" -o "$out/cubin" && cmp "$out/own" "$out/cubin"
result $? "ptxas makes the same of PTX 6.4 as of NVRTC's own 7.8"

# A driver is given one family at a time (Family::leave): the file without the other kernels.
families=0
for family in 'run' 'transpose$' 'tile' '(planes|pixels)$' 'bits$'; do
  families=$((families + 1))
  awk -v mine="^dlrs_$family" '/^\.visible \.entry / { name = $3; sub(/\(.*/, "", name); skip = name !~ mine } !skip' \
    "$gpu/kernels.ptx" >"$out/family$families.ptx"
done
[ "$(cat "$out"/family*.ptx | grep -c '^\.visible')" -eq "$(grep -c '^\.visible' "$gpu/kernels.ptx")" ]
result $? "each kernel is in one of $families families"

for arch in 50 52 60 61 70 75 80 86 89 90 100 103 120; do
  status=0
  for family in "$out"/family*.ptx; do
    "$ptxas" -v -arch="sm_$arch" "$family" -o "$out/cubin" || status=$?
  done >"$out/log" 2>&1
  ! grep -E '[1-9][0-9]* bytes spill' "$out/log" || status=1
  [ "$status" -eq 0 ] || cat "$out/log"
  result "$status" "ptxas sm_$arch: registers$(sed -n "s/.*function 'dlrs_\(.*\)' for.*/, \1/p
    s/.*Used \([0-9]*\) reg.*/ \1/p" "$out/log" | tr -d '\n' | sed 's/^,//')"
done

hip=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | sed -n 's/.*libamdhip64\.so\.[0-9]* .* => //p' | head -n 1)
if [ -z "$hip" ]; then
  echo "kernels, hiprtc: not run, because package libamdhip64-5 is not installed"
else
  # A process per GPU: this hiprtc keeps state between compilations.
  for arch in gfx900 gfx906 gfx90a gfx1030; do
    "$venv/bin/python" tests/gpu/compile_hip.py "$hip" "$gpu/kernels.cu" "$arch"
    result $? "hiprtc $arch"
  done
  "$venv/bin/python" -B python/generate_abi.py
  "$venv/bin/python" -B tests/gpu/no_device.py target/lib/libdlpack_rs.so "$hip"
  result $? "AMD's runtime: the library finds that there is no device"
fi
# What no installed hiprtc supports: newer GPUs, and the number of registers.
clang=$(compgen -c clang- | grep -E '^clang-[0-9]+$' | sort -t - -k 2 -n | tail -n 1)
clang=${clang:-clang}
for arch in gfx90a gfx1030 gfx1100; do
  if ! "$clang" --target=amdgcn-amd-amdhsa -mcpu="$arch" -nogpulib -E -x c /dev/null >"$out/log" 2>&1; then
    echo "kernels, clang $arch: not run, because no clang here knows it"
    continue
  fi
  "$clang" -x hip --cuda-device-only --offload-arch="$arch" -nogpuinc -nogpulib -fms-extensions \
    -std=c++17 -O3 -include tests/gpu/amd.h -S "$gpu/kernels.cu" -o "$out/$arch.s" >"$out/log" 2>&1 &&
    [ "$(grep -c '\.vgpr_spill_count: *0$' "$out/$arch.s")" -eq "$(grep -c '^KERNEL' "$gpu/kernels.cu")" ]
  status=$?
  [ "$status" -eq 0 ] || cat "$out/log"
  result "$status" "$clang $arch: vector registers$(sed -n 's/^ *\.name: *dlrs_\(.*\)/, \1/p
    s/^ *\.vgpr_count: */ /p' "$out/$arch.s" | tr -d '\n' | sed 's/^,//')"
done
echo "kernels: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

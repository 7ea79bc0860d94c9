#!/bin/sh
# Runs each reproducer in the environment of its library: run.sh VENVS (target/interop)
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
venvs=$(CDPATH='' cd "${1:-$here/../../../target/interop}" && pwd) || exit 1
cd "$here" || exit 1
for program in *_*.py; do
    case $program in
        torch_*) venv=torch ;; jax_*) venv=jax ;; tensorflow_*) venv=tensorflow ;;
        pyarrow_*) venv=arrow ;; onnxruntime_*) venv=onnx ;; dpctl_*) venv=oneapi ;;
        mlx_*) venv=mlx ;; paddle_*) venv=paddle ;; mxnet_*) venv=mxnet ;; *) venv=core ;;
    esac
    printf '%s: ' "${program%.py}"
    TF_CPP_MIN_LOG_LEVEL=3 "$venvs/$venv/bin/python" -B "$program" 2>/dev/null | tail -n 1
done

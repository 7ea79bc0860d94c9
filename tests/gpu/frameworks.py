"""Tensors of torch, CuPy and JAX on a real GPU, through the Python module and back.

Run by c_tests/gpu/device.py (make test-cuda, make test-rocm), which passes the vendor: DLPack's
device has the same name, where torch and CuPy use "cuda" for both. They are optional: a missing one
is reported as not run. The last line is "N passed, N failed".
"""

import gc
import os
import sys

import dlpack_rs

VENDOR = sys.argv[1] if len(sys.argv) > 1 else "cuda"
FIRST, SECOND = f"{VENDOR}:0", f"{VENDOR}:1"
passed = failed = 0


def check(what, ok):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        print("failed:", what)


def run(what, test, *arguments):
    """A test; an exception is a failure, and the next one still runs."""
    global failed
    try:
        test(*arguments)
    except Exception as error:  # noqa: BLE001
        failed += 1
        print(f"failed: {what}: {type(error).__name__}: {error}")


# ---- torch ---------------------------------------------------------------------------------------


def torch_dtypes(torch):
    for name in "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 bool".split():
        dtype = getattr(torch, name)
        src = torch.arange(60, device="cuda").remainder(7).to(dtype).reshape(3, 4, 5)
        ours = dlpack_rs.from_dlpack(src)
        check(f"torch {name}: shape and device", ours.shape == (3, 4, 5) and str(ours.device) == FIRST)
        check(f"torch {name}: same memory", ours.data_ptr == src.data_ptr())
        back = torch.from_dlpack(ours)
        check(f"torch {name}: round trip", bool((back == src).all()) and back.data_ptr() == src.data_ptr())
        copied = torch.from_dlpack(ours.copy())
        check(f"torch {name}: copy", bool((copied == src).all()) and copied.data_ptr() != src.data_ptr())
        if name != "bfloat16":
            host = ours.to("cpu").numpy()
            check(f"torch {name}: to the host", (host == src.cpu().numpy()).all())


def torch_layouts(torch):
    base = torch.randint(0, 255, (6, 8, 10, 12), dtype=torch.uint8, device="cuda")
    views = {
        "permuted": base.permute(3, 1, 0, 2),
        "stepped": base[::2, 1:, ::3, ::5],
        "row": base[2],
        "broadcast": base[:, :1].expand(6, 8, 10, 12),
        "empty": base[:0],
        "scalar": base[0, 0, 0, 0],
    }
    for name, view in views.items():
        ours = dlpack_rs.from_dlpack(view)
        check(f"torch layout {name}: host", (ours.to("cpu").numpy() == view.cpu().numpy()).all())
        check(f"torch layout {name}: device", bool((torch.from_dlpack(ours.contiguous()) == view).all()))
        back = dlpack_rs.from_dlpack(view.cpu()).to(FIRST)
        check(f"torch layout {name}: from the host", bool((torch.from_dlpack(back) == view).all()))


def torch_streams(torch):
    """The producer is slow: a consumer that does not wait reads the old values."""
    big = torch.ones(2048, 2048, device="cuda")
    for _ in range(5):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            src = torch.zeros(1 << 20, device="cuda")
            value = big
            for _ in range(40):
                value = value @ big / 2048
            src += value[0, 0]
            ours = dlpack_rs.from_dlpack(src)
            host = ours.to("cpu").numpy()
            check("torch stream: to the host", bool((host == 1).all()))
            copied = torch.from_dlpack(ours.copy())
            check("torch stream: copy", bool((copied == 1).all().item()))
        torch.cuda.synchronize()


def torch_lifetime(torch):
    torch.cuda.synchronize()
    gc.collect()
    before = torch.cuda.memory_allocated()
    ours = dlpack_rs.from_dlpack(torch.full((1 << 20,), 3.0, device="cuda"))
    view = ours.reshape(1024, 1024)[10:20] if hasattr(ours, "__getitem__") else ours.reshape(1024, 1024)
    del ours
    gc.collect()
    check("torch lifetime: a view keeps memory", torch.cuda.memory_allocated() > before)
    check("torch lifetime: and its values", bool((torch.from_dlpack(view) == 3).all()))
    del view
    gc.collect()
    check("torch lifetime: then it goes", torch.cuda.memory_allocated() == before)
    for _ in range(1000):
        dlpack_rs.from_dlpack(torch.empty(1 << 20, device="cuda")).copy()
    gc.collect()
    torch.cuda.synchronize()
    check("torch lifetime: 1,000 copies leave nothing", torch.cuda.memory_allocated() == before)


def torch_pinned(torch):
    src = torch.arange(1 << 16, dtype=torch.int32).pin_memory()
    there = dlpack_rs.from_dlpack(src).to(FIRST)
    check("torch pinned", bool((torch.from_dlpack(there).cpu() == src).all()))


def torch_devices(torch):
    if torch.cuda.device_count() < 2:
        print("not run: copies between two GPUs (there is one)")
        return
    src = torch.arange(1000, device="cuda:0").reshape(10, 100).T
    there = dlpack_rs.from_dlpack(src).to(SECOND)
    check("torch two devices", str(there.device) == SECOND and (torch.from_dlpack(there).cpu() == src.cpu()).all())


# ---- CuPy ----------------------------------------------------------------------------------------


def cupy_exchange(cupy, name, view):
    ours = dlpack_rs.from_dlpack(view)
    check(f"cupy {name}: host", (ours.to("cpu").numpy() == view.get()).all())
    check(f"cupy {name}: back", bool((cupy.from_dlpack(ours.copy()) == view).all()))


def cupy_both_ways(cupy):
    for name in "uint8 int32 float16 float32 float64 complex128".split():
        src = cupy.arange(60, dtype=name).reshape(3, 4, 5)
        for view in (src, src.T, src[::2, 1:], cupy.asfortranarray(src)):
            cupy_exchange(cupy, name, view)
        # CuPy up to 14.2 divides strides by the element's size as unsigned numbers (its issue
        # 10172): -4 // 4 becomes 2**62 - 1, which exceeds any address space. Elements of one byte
        # work.
        try:
            cupy_exchange(cupy, f"{name} backwards", src[::2, :, ::-1])
        except ValueError as error:
            refused = "DLRS_EXTENT_OVERFLOW" in str(error) and src.itemsize > 1
            check(f"cupy {name} backwards: {error}", refused)
    host = dlpack_rs.from_dlpack(cupy.arange(100).get()).to(FIRST)
    check("cupy: from the host", bool((cupy.from_dlpack(host) == cupy.arange(100)).all()))


def cupy_streams(cupy):
    for _ in range(5):
        with cupy.cuda.Stream(non_blocking=True):
            value = cupy.ones((1024, 1024), dtype="float32")
            for _ in range(40):
                value = value @ value / 1024
            check("cupy stream", bool((dlpack_rs.from_dlpack(value).to("cpu").numpy() == 1).all()))


def cupy_managed(cupy):
    old = cupy.cuda.get_allocator() if hasattr(cupy.cuda, "get_allocator") else None
    cupy.cuda.set_allocator(cupy.cuda.malloc_managed)
    try:
        src = cupy.arange(1000, dtype="int32")
        ours = dlpack_rs.from_dlpack(src)
        check("cupy managed: device", str(ours.device).startswith(VENDOR))
        cupy.cuda.get_current_stream().synchronize()
        check("cupy managed: host", (ours.to("cpu").numpy() == src.get()).all())
    finally:
        cupy.cuda.set_allocator(old)


# ---- JAX -----------------------------------------------------------------------------------------


def jax_both_ways(jax):
    device = jax.devices("gpu")[0]
    for name in "uint8 int32 float16 bfloat16 float32 complex64".split():
        src = jax.device_put(jax.numpy.arange(60).astype(name).reshape(3, 4, 5), device)
        ours = dlpack_rs.from_dlpack(src)
        check(f"jax {name}: device", str(ours.device) == FIRST)
        check(f"jax {name}: same memory", ours.data_ptr == src.unsafe_buffer_pointer())
        back = jax.dlpack.from_dlpack(ours.copy())
        check(f"jax {name}: back", back.devices() == {device} and bool((back == src).all()))
        turned = jax.dlpack.from_dlpack(ours.permute(2, 0, 1).copy())
        check(f"jax {name}: permuted", bool((turned == src.transpose(2, 0, 1)).all()))


def jax_streams(jax):
    """JAX computes asynchronously: a consumer that does not wait reads too early."""
    device = jax.devices("gpu")[0]
    slow = jax.jit(lambda x: jax.lax.fori_loop(0, 40, lambda _, y: y @ y / 1024, x))
    ones = jax.device_put(jax.numpy.ones((1024, 1024), "float32"), device)
    for _ in range(5):
        check("jax stream", bool((dlpack_rs.from_dlpack(slow(ones)).to("cpu").numpy() == 1).all()))


# Each framework's tests, and a call that fails where it sees no device.
TESTS = {
    "torch": (lambda torch: torch.zeros(1, device="cuda"),
              torch_dtypes, torch_layouts, torch_streams, torch_lifetime, torch_pinned, torch_devices),
    "cupy": (lambda cupy: cupy.zeros(1), cupy_both_ways, cupy_streams, cupy_managed),
    "jax": (lambda jax: jax.devices("gpu"), jax_both_ways, jax_streams),
}


def main():
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # leaves memory to the others
    for name, (probe, *tests) in TESTS.items():
        try:
            module = __import__(name)
            probe(module)
        except Exception as error:  # noqa: BLE001
            print(f"not run: {name} cannot be used ({type(error).__name__}: {error})")
            continue
        for test in tests:
            run(test.__name__, test, module)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""dlpack_rs.abi: the headers for ctypes and cffi, and memory as a tensor."""

import ctypes
import enum
import inspect
import os
import pydoc
import random
import re
import shutil
import subprocess
import sys
import threading
from ctypes import byref, py_object

import ml_dtypes
import numpy as np
import pytest

import dlpack_rs
from dlpack_rs import abi
from dlpack_rs.abi import enums
from fakes import Answers

# For other processes.
PATHS = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
HEADERS = [(abi.include() / name).read_text() for name in ("dlpack.h", "dlpack_rs.h")]
# Macros that are not numbers.
NO_NUMBER = {"DLPACK_EXTERN_C", "DLPACK_DLL", "DLRS_API", "DLRS_INIT", "DLPACK_DLPACK_H_",
             "DLPACK_RS_H_"}


# --- Declarations -----------------------------------------------------------------------------


def macros():
    return {name for text in HEADERS for name in re.findall(r"#\s*define (\w+)", text)} - NO_NUMBER


def test_macro_values_match_the_compiler(tmp_path):
    names = sorted(macros())
    assert len(names) > 20 and all(hasattr(abi, name) for name in names)
    if not shutil.which("cc"):
        pytest.skip("not run: no C compiler")
    prints = "".join(f'printf("%lld\\n", (long long)({name}));\n' for name in names)
    (tmp_path / "say.c").write_text('#include "dlpack_rs.h"\n#include <stdio.h>\n'
                                    f"int main(void) {{\n{prints}return 0; }}\n")
    subprocess.run(["cc", "-I", abi.include(), "say.c", "-o", "say"], check=True, cwd=tmp_path)
    said = subprocess.run([tmp_path / "say"], capture_output=True, text=True, check=True).stdout
    assert [getattr(abi, name) for name in names] == [int(line) for line in said.split()]


def test_every_code_and_flag_is_in_an_enumeration():
    classes = [kind for kind in vars(enums).values() if isinstance(kind, type)
               and issubclass(kind, enum.Enum) and len(kind)]
    codes = {name for text in HEADERS for name in re.findall(r"^  (k?D\w+) = ", text, re.M)}
    others = {name for name in macros()
              if re.search("VERSION|MESSAGE_SIZE|ALL_AXES|STREAM_NONE", name)}
    wanted = sorted(getattr(abi, name) for name in codes | macros() - others)
    assert sorted(int(member) for kind in classes for member in kind) == wanted
    assert enums.DeviceType(abi.kDLCUDAManaged).name == "CUDAManaged"
    flags = enums.TensorFlags(abi.READ_ONLY | abi.IS_COPIED)
    assert flags == enums.TensorFlags.READ_ONLY | enums.TensorFlags.IS_COPIED


def test_every_function_pointer_has_a_type():
    cffi = pytest.importorskip("cffi")
    ffi = cffi.FFI()
    ffi.cdef(abi.cdef())
    pointers = [(name, ffi.typeof(name)) for name in ffi.list_types()[0]
                if ffi.typeof(name).kind == "function"]
    typed = {ctype for _, ctype in pointers}
    for name in {*ffi.list_types()[0], *ffi.list_types()[1]}:
        if isinstance(vars(abi).get(name), type) and issubclass(vars(abi)[name], ctypes.Structure):
            fields = ffi.typeof(name).fields
            assert [member for member, _ in fields] == [f[0] for f in vars(abi)[name]._fields_]
            pointers += [(f"{name}_{member}_fn", field.type) for member, field in fields
                         if field.type.kind == "function" and field.type not in typed]
    assert len(pointers) > 25
    for name, ctype in pointers:
        kind = getattr(abi, name)
        assert len(kind._argtypes_) == len(ctype.args), name
        for ours, its in zip(kind._argtypes_, ctype.args):
            assert ctypes.sizeof(ours) == ffi.sizeof(its), name
        assert (kind._restype_ is None) == (ctype.result.kind == "void"), name


def test_everything_has_the_headers_comment():
    for name in abi.FUNCTIONS:
        doc = getattr(abi.lib, name).__doc__
        prototype, _, text = doc.partition("\n\n")
        assert f"{name}(" in prototype and prototype.endswith(");"), name
        for line in filter(None, text.splitlines()):
            assert f" * {line}\n" in HEADERS[1], (name, line)
    structs = [kind for kind in vars(abi).values() if isinstance(kind, type)
               and issubclass(kind, ctypes.Structure) and kind is not ctypes.Structure]
    for struct in structs:
        if struct is abi.dlrs_abi_table:  # its comment says how its members are called
            continue
        members = [name for name, _ in struct._fields_]
        found = re.findall(r"^(\w+): ", inspect.cleandoc(struct.__doc__), re.M)
        assert [name for name in found if name in members] == members, struct
    text = pydoc.render_doc(abi.lib.dlrs_copy, renderer=pydoc.plaintext)
    assert "Copy the elements of one tensor into another" in text


def test_functions_that_call_python_take_objects():
    python = {name for name in abi.FUNCTIONS if "_py_" in name}
    python -= {"dlrs_stream_to_py", "dlrs_stream_from_py"}  # numbers
    assert set(abi._declarations.PYTHON_FUNCTIONS) == python
    out = abi.Versioned()
    with pytest.raises(AttributeError, match="'int' has no __dlpack__"):
        abi.call(abi.pylib.dlrs_py_import, 3, None, byref(out))


def test_init_rejects_unknown_members_and_numbers_that_do_not_fit():
    structs = [kind for kind in vars(abi).values() if isinstance(kind, type)
               and issubclass(kind, ctypes.Structure) and hasattr(kind, "struct_size")]
    tried = 0
    for struct in structs:
        with pytest.raises(TypeError, match="no_such_member"):
            abi.DLRS_INIT(struct, no_such_member=1)
        for name, kind, *_ in struct._fields_:
            letter = getattr(kind, "_type_", None)
            if name == "struct_size" or letter not in tuple("bBhHiIlLqQ"):
                continue
            bits = 8 * ctypes.sizeof(kind)
            low = -1 << bits - 1 if letter.islower() else 0
            for value in (low, low + (1 << bits) - 1):
                assert getattr(abi.DLRS_INIT(struct, **{name: value}), name) == value
            for value in (low - 1, low + (1 << bits)):
                with pytest.raises(OverflowError, match=f"{struct.__name__}.{name}.*{value}"):
                    abi.DLRS_INIT(struct, **{name: value})
            tried += 1
    assert len(structs) > 10 and tried > 50
    error = abi.DLRS_INIT(abi.dlrs_error, status=7)
    assert (error.struct_size, error.status, error.value) == (ctypes.sizeof(error), 7, 0)


# --- cffi -------------------------------------------------------------------------------------


def spelled(ctype):
    return ctype.cname.replace("struct ", "")


def test_the_cffi_module_matches_the_parser():
    cffi = pytest.importorskip("cffi")
    from dlpack_rs.abi.cffi import ffi, lib

    parsed = cffi.FFI()
    parsed.cdef(abi.cdef())
    known = parsed.dlopen(abi.library_path())
    assert dir(lib) == dir(known)
    functions = {name for name in dir(lib) if name.startswith("dlrs_")}
    assert functions == set(abi.FUNCTIONS)
    for name, (_, *arguments) in abi.FUNCTIONS.items():
        assert len(ffi.typeof(getattr(lib, name)).args) == len(arguments), name
    exports = abi.include() / "exports.txt"
    if exports.exists():  # in a checkout
        assert functions == {line.split()[0] for line in exports.read_text().splitlines()}
    for name in dir(known):
        value, ours = getattr(known, name), getattr(lib, name)
        if isinstance(value, int):
            assert ours == value == getattr(abi, name), name
        else:
            assert spelled(ffi.typeof(ours)) == spelled(parsed.typeof(value)), name
    for name in parsed.list_types()[0]:
        ours, its = ffi.typeof(name), parsed.typeof(name)
        assert spelled(ours) == spelled(its), name
        if its.kind == "struct" and its.fields is not None:
            assert [(member, spelled(field.type), field.offset) for member, field in ours.fields
                    ] == [(member, spelled(field.type), field.offset)
                          for member, field in its.fields]


def test_the_cffi_module_needs_no_parser():
    pytest.importorskip("_cffi_backend")
    code = ("import sys; from dlpack_rs.abi.cffi import ffi, lib; "
            "error = ffi.new('dlrs_error *', {'struct_size': ffi.sizeof('dlrs_error')}); "
            "assert lib.dlrs_validate(ffi.NULL, 0, lib.DLRS_LEVEL_STRICT, error) == 101; "
            "assert b'NULL' in ffi.string(error.message); "
            "assert not {'cffi', 'pycparser', 'distutils'} & set(sys.modules)")
    subprocess.run([sys.executable, "-c", code], check=True,
                   env=PATHS)


# --- wrap -------------------------------------------------------------------------------------


def taken(tensor):
    """NumPy's array of a tensor, which is freed with it."""
    out = py_object()
    abi.call(abi.pylib.dlrs_py_capsule_new_take, byref(tensor), byref(out))
    return np.from_dlpack(Answers(abi.new_object(out)))


def test_wrap_uses_the_address_of_the_array():
    """Random shapes and strides over a buffer: the elements, or ValueError if out of bounds."""
    rng, accepted = random.Random(46), 0
    for _ in range(400):
        dtype = rng.choice(["int8", "uint16", "float32", "complex128"])
        memory = bytearray(rng.randbytes(rng.choice([0, 7, 48, 96])))
        shape = tuple(rng.randint(0, 4) for _ in range(rng.randint(0, 3)))
        item = np.dtype(dtype).itemsize
        strides = None if rng.random() < 0.4 else tuple(rng.randint(-3, 4) for _ in shape)
        steps = np.empty(shape, "int8").strides if strides is None else strides
        first = [sum(i * s for i, s in zip(at, steps)) * item for at in np.ndindex(shape)]
        fits = not first or (min(first) >= 0 and max(first) + item <= len(memory))
        calls = []
        try:
            tensor = abi.wrap(memory, shape, dtype, lambda: calls.append(1), strides=strides)
        except ValueError as error:
            assert not fits and not calls
            assert re.search("wrap: the elements take bytes|data is NULL although", str(error))
            continue
        assert fits
        accepted += 1
        array = taken(tensor)
        assert array.shape == shape and array.dtype == dtype and not calls
        expected = [bytes(memory[at:at + item]) for at in first]
        assert [array[at].tobytes() for at in np.ndindex(shape)] == expected
        if array.size:
            with pytest.raises(BufferError):
                memory.append(0)
        del array
        assert calls == [1]
        memory.append(0)
    assert 100 < accepted < 390


def test_wrap_accepts_addresses_buffers_and_dlpack_objects():
    array = np.arange(6, dtype=np.float32)
    for memory, flags in ((array, 0), (bytes(24), abi.READ_ONLY), (memoryview(bytearray(24)), 0),
                          (array.reshape(2, 3).T, 0), ((ctypes.c_float * 6)(), 0),
                          (array.ctypes.data, 0), (array.view("V4"), 0)):
        tensor = abi.wrap(memory, (3, 2), abi.DLDataType(abi.kDLFloat, 32, 1))
        assert tensor.contents.flags == flags
        assert tensor.contents.dl_tensor.strides[:2] == [2, 1]
        abi.lib.dlrs_release(tensor)
    tensor = abi.wrap(1 << 40, (4,), "bfloat16", device="cuda:1", flags=abi.IS_COPIED)
    device = tensor.contents.dl_tensor.device
    assert (device.device_type, device.device_id) == (2, 1) and tensor.contents.flags == 2
    abi.lib.dlrs_release(tensor)


@pytest.mark.parametrize("kind, words, changes", [
    (BufferError, "not dense", {"memory": np.arange(6.0)[::2]}),
    (AttributeError, "no __dlpack__", {"memory": "text"}),
    (BufferError, "int31", {"dtype": "int31"}), (TypeError, "wrap: dtype", {"dtype": np.uint8}),
    (TypeError, "wrap: dtype", {"dtype": b"uint8"}), (TypeError, "wrap: dtype", {"dtype": None}),
    (ValueError, "extent is negative", {"shape": (-2,)}),
    (TypeError, "wrap: on_free", {"on_free": 3}),
    (ValueError, "strides has 1", {"shape": (2, 1), "strides": (1,)}),
    (ValueError, "on another", {"device": "cuda:0"}),
    (TypeError, "wrap: device", {"device": (1, 0)}),
    *((ValueError, "wrap: device", {"device": text}) for text in (
        "gpu", "cuda:", "cuda:-1", "cuda:0x1", "cuda:1:2", "CUDA", "", ":0", "cuda:\u0661",
        "cuda:\u00b2"))])
def test_wrap_refuses(kind, words, changes):
    calls = []
    with pytest.raises(kind, match=words):
        abi.wrap(**{"memory": bytearray(8), "shape": (2,), "dtype": "int32",
                    "on_free": lambda: calls.append(1), **changes})
    assert not calls


def test_wrap_knows_every_name_of_a_device():
    for code, name in dlpack_rs.DEVICES.items():
        others = [] if code == abi.kDLCPU else [(f"{name}:7", 7)]
        for text, ordinal in (name, 0), (f"{name}:0", 0), *others:
            tensor = abi.wrap(1 << 40, (4,), "int8", device=text)
            found = tensor.contents.dl_tensor.device
            assert (found.device_type, found.device_id) == (code, ordinal), text
            abi.lib.dlrs_release(tensor)


def test_wrap_rejects_what_ctypes_would_change():
    memory = bytearray(64)
    arguments = {"memory": memory, "shape": (2,), "dtype": "uint8"}
    for name, change in [("shape", lambda n: {"shape": (n,)}), ("shape", lambda n: {"shape": (1, n)}),
                         ("strides", lambda n: {"strides": (n,)}),
                         ("flags", lambda n: {"flags": n}), ("memory", lambda n: {"memory": n})]:
        for wraps in (-1, 1):  # as many of the 64 bits as ctypes keeps are valid
            for small in (0, 1, 2):
                number = (wraps << 64) + (ctypes.addressof(ctypes.c_char.from_buffer(memory))
                                          if name == "memory" else small)
                with pytest.raises(ValueError, match=f"wrap: {name}: {number}"):
                    abi.wrap(**{**arguments, **change(number)})


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn"])
def test_wrap_accepts_arrays_whose_dtype_buffers_cannot_name(name):
    array = np.arange(6).astype(getattr(ml_dtypes, name))
    tensor = abi.wrap(array, (2, 3), name)
    try:
        assert tensor.contents.dl_tensor.data == array.ctypes.data
    finally:
        abi.lib.dlrs_release(tensor)


def test_a_wrapped_tensor_is_released_on_any_thread():
    order = []

    class Memory(bytearray):
        def __del__(self):
            order.append("memory")

    tensor = abi.wrap(Memory(8), (2,), "int32", lambda: order.append("on_free"))
    view = abi.Versioned()
    abi.call(abi.lib.dlrs_retain, tensor, byref(view))
    abi.lib.dlrs_release(tensor)
    assert order == []
    release = threading.Thread(target=abi.lib.dlrs_release, args=(view,))
    release.start()
    release.join()
    assert order == ["memory", "on_free"]


def test_a_wrapped_tensor_may_outlive_python():
    """Released by the C library after Python has ended."""
    code = """
import ctypes
from dlpack_rs import abi
tensor = abi.wrap(bytearray(8), (2,), "int32", lambda: print("freed"))
release = ctypes.cast(abi.lib.dlrs_release, ctypes.c_void_p).value
libc = ctypes.CDLL(None)
libc.__cxa_atexit.argtypes = [ctypes.c_void_p] * 3
libc.__cxa_atexit(release, ctypes.cast(tensor, ctypes.c_void_p), None)
print("end")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=PATHS)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("end"), done

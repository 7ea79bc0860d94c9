"""The package dlpack_rs: its contents, its statements about exports, its command line."""

import gc
import json
import os
import pickle
import re
import shlex
import shutil
import subprocess
import sys
import weakref
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import dlpack_rs
from dlpack_rs import abi, consumers
from fakes import edited

PACKAGE = Path(dlpack_rs.__file__).parent


def run(*words, cwd=None):
    return subprocess.run([sys.executable, "-m", "dlpack_rs", *words], capture_output=True,
                          text=True, timeout=60, cwd=cwd,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


# --- Contents ---------------------------------------------------------------------------------


def test_the_version_is_the_librarys():
    assert dlpack_rs.__version__ == abi.lib.dlrs_version_string().decode()
    assert {"py.typed", "__init__.pyi"} <= {path.name for path in PACKAGE.iterdir()}
    assert dlpack_rs.dlpack_version == (abi.DLPACK_MAJOR_VERSION, abi.DLPACK_MINOR_VERSION)


def test_names_are_those_of_the_library():
    for name in dlpack_rs.DTYPES:
        assert dlpack_rs.empty((2,), name).dtype == name
    codes = {getattr(abi, name) for name in dir(abi) if name.startswith(("kDL", "DLRS_CODE_"))}
    assert set(dlpack_rs.DEVICES) <= codes
    for code, name in dlpack_rs.DEVICES.items():
        text = (abi._declarations.c_char * 64)()
        abi.call(abi.lib.dlrs_device_format, abi.DLDevice(code, 0), text, 64, None)
        assert text.value.decode() in (name, f"{name}:0")


def test_every_type_code_of_dlpack_has_a_name():
    header = (abi.include() / "dlpack.h").read_text()
    codes = dict(re.findall(r"(kDL\w+) = (\d+)U,", header))
    named = set()
    for name in dlpack_rs.DTYPES:
        dtype = abi.DLDataType()
        abi.call(abi.lib.dlrs_dtype_parse, name.encode(), len(name), dtype)
        named.add(dtype.code)
    assert {int(code) for code in codes.values()} - named == {int(codes["kDLOpaqueHandle"])}


def test_importing_loads_little():
    """The command line, the ABI and inspection are imported on demand only; no ctypes."""
    code = ("import sys; before = set(sys.modules); import dlpack_rs; "
            "print(*sorted(set(sys.modules) - before))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)})
    loaded = set(done.stdout.split())
    own = {name for name in loaded if name.startswith("dlpack_rs")}
    assert own == {"dlpack_rs", "dlpack_rs._library", "dlpack_rs._dlpack_rs"}
    assert not loaded & {"ctypes", "_ctypes", "numpy", "cffi", "pathlib", "re", "typing",
                         "dataclasses", "inspect", "importlib.machinery"}


def test_the_extension_module():
    module = sys.modules["dlpack_rs._dlpack_rs"]
    assert module.__file__ == module.__spec__.origin == abi.library_path()
    assert module.Tensor is dlpack_rs.Tensor and module.from_dlpack is dlpack_rs.from_dlpack
    for name in "Tensor", "from_dlpack", "empty":
        assert getattr(dlpack_rs, name).__module__ == "dlpack_rs"
        assert pickle.loads(pickle.dumps(getattr(dlpack_rs, name))) is getattr(dlpack_rs, name)


def test_loading_again_leaves_no_reference():
    counts = []
    for _ in range(3):
        same = [dlpack_rs._load().Tensor is dlpack_rs.Tensor for _ in range(5)]
        gc.collect()
        assert all(same)
        counts.append(sys.getrefcount(dlpack_rs.Tensor))
    sys.modules["dlpack_rs._dlpack_rs"] = dlpack_rs._module
    assert counts[0] == counts[1] == counts[2]


def test_a_library_without_the_module(tmp_path):
    """As the one for C: names that need the module raise a clear error, all else works."""
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    (tmp_path / "empty.c").write_text("int nothing;")
    library = tmp_path / "empty.so"
    subprocess.run(["gcc", "-shared", "-o", library, tmp_path / "empty.c"], check=True)
    code = ("import dlpack_rs\n"
            "try: from dlpack_rs import Tensor\n"
            "except ImportError as error: print(error)")
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                          env={**environment, "DLPACK_RS_LIBRARY": str(library)})
    assert done.stderr == "" and f"needs the Python module, and {library} is the" in done.stdout
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                          env={**environment, "DLPACK_RS_LIBRARY": str(tmp_path / "none.so")})
    assert "none.so: cannot open shared object file" in done.stderr


# --- Inspection -------------------------------------------------------------------------------


def verdicts(obj):
    return {consumer.name: verdict for consumer, verdict, _ in dlpack_rs.inspect(obj).consumers}


def test_inspection_of_an_array():
    array = np.arange(24, dtype=np.float32).reshape(4, 6)[:, ::-2]
    seen = dlpack_rs.inspect(array)
    assert seen.type == "numpy.ndarray" and seen.capsule == "dltensor_versioned"
    assert (seen.shape, seen.strides, seen.dtype_name) == ((4, 3), (6, -2), "float32")
    assert seen.device == seen.says_device == (1, 0) and seen.device_name == "cpu"
    assert seen.address == array.ctypes.data and seen.nbytes == 48
    assert seen.dense == "" and seen.overlapping is False and seen.valid == "strictly"
    assert set(seen.keywords.values()) == {"yes"} and seen.legacy_error is None
    assert "float32 (2, 32, 1)" in str(seen)
    found = verdicts(array)
    assert found["numpy"] == "takes" and found["torch"] == "refuses" and found["paddle"] == "breaks"


@pytest.mark.parametrize("take", [
    dlpack_rs.from_dlpack, dlpack_rs.from_numpy, dlpack_rs.asarray,
    lambda x: dlpack_rs.asarray(x, dtype="float32", copy=False)])
def test_a_byte_offset_is_folded_when_a_tensor_is_shared(take):
    array = np.arange(8, dtype=np.float32)

    def moved(struct):
        struct.dl_tensor.byte_offset, struct.dl_tensor.shape[0] = 8, 6

    tensor = take(edited(moved, array))
    assert tensor.byte_offset == 0 and tensor.data_ptr == array.ctypes.data + 8
    seen = dlpack_rs.inspect(tensor)
    assert (seen.byte_offset, seen.address) == (0, array.ctypes.data + 8)
    assert np.from_dlpack(tensor).tolist() == array[2:].tolist()
    assert dlpack_rs.inspect(edited(moved, array)).byte_offset == 8


def test_inspection_of_read_only_and_overlapping_memory():
    seen = dlpack_rs.inspect(np.broadcast_to(np.arange(3), (4, 3)))
    assert seen.read_only and seen.overlapping and "BufferError" in seen.legacy_error
    assert set(seen.keywords.values()) == {"yes"}  # a legacy capsule cannot express read-only
    assert dict((c.name, why) for c, _, why in seen.consumers)["torch"].startswith("but ignores")


def forged():
    """An export that every consumer should reject."""
    return edited(lambda struct: struct.dl_tensor.shape.__setitem__(0, -3), np.arange(3))


def enum_device():
    """As of producers that return an enumeration."""
    return abi.enums.DeviceType(1), 0


def test_inspection_of_other_objects():
    kind = type("Old", (), {"__dlpack__": lambda self: np.arange(3).__dlpack__()})
    seen = dlpack_rs.inspect(kind())
    assert seen.capsule == "dltensor" and seen.version is None and seen.says_device is None
    assert seen.keywords["max_version"] == "no" and "legacy, no version" in str(seen)
    seen = dlpack_rs.inspect(forged())
    assert seen.valid is None and "DLRS_SHAPE_NEG" in seen.invalid and "DLRS_SHAPE_NEG" in str(seen)
    assert {verdict for _, verdict, _ in seen.consumers} == {"breaks"}
    with pytest.raises(TypeError, match="has no __dlpack__"):
        dlpack_rs.inspect(3)
    own = dlpack_rs.inspect(dlpack_rs.empty((2, 3)))
    assert own.exchange_api == "DLPack 1.3" and own.address % 256 == 0


@pytest.mark.parametrize("said", [None, 3, (), (1,), (1, 0, 0), ("cpu", 0), (1.5, 0), (1, None),
                                  (1 << 70, 0), [1, 0], (object, 1), "ab", enum_device()],
                         ids=repr)
def test_inspection_of_any_device(said):
    """Whatever `__dlpack_device__` returns is shown, and is no reason to fail."""
    array = np.arange(3.0)
    kind = type("Says", (), {"__dlpack_device__": lambda self: said,
                             "__dlpack__": lambda self, **keywords: array.__dlpack__(**keywords)})
    seen = dlpack_rs.inspect(kind())
    assert seen.device == (1, 0) and seen.valid == "strictly" and seen.keywords["copy"] == "yes"
    shown = "none" if said is None else (1, 0) if said in (enum_device(), [1, 0]) else said
    assert f"__dlpack_device__ says {shown}\n" in str(seen) and "says" in seen._repr_html_()


def test_consumers_have_known_types():
    known = {*dlpack_rs.DTYPES, "float4_e2m1fnx2"}
    for consumer in consumers.CONSUMERS:
        assert set(consumer.dtypes.split()) <= known and set(consumer.converts) <= known
        assert set(consumer.devices) <= set(range(1, 19))


# --- Preparation ------------------------------------------------------------------------------


def arrays():
    """Arrays of every layout that some framework does not take."""
    dense = np.arange(24, dtype=np.float32).reshape(4, 6)
    moved = np.frombuffer(bytearray(4 + dense.nbytes), np.uint8)[4:].view(np.float32)
    moved[:] = dense.ravel()
    yield from (dense, dense[::-1], dense[:, ::2], dense.T, moved.reshape(4, 6), dense[:0],
                np.broadcast_to(dense[0], (4, 6)), np.array(2.5), dense.astype(np.complex64))


@pytest.mark.parametrize("consumer", consumers.CONSUMERS, ids=lambda consumer: consumer.name)
@pytest.mark.parametrize("read_only", [False, True], ids=["writable", "read-only"])
@pytest.mark.parametrize("drop", [False, True], ids=["keep", "drop"])
def test_a_prepared_tensor_is_what_the_consumer_takes(consumer, read_only, drop):
    for array in arrays():
        array = array.view()
        array.flags.writeable &= not read_only
        before = array.tobytes()
        if consumer.devices[0] != 1 or array.dtype.name not in consumer.dtypes.split():
            if array.dtype.name not in consumer.converts:
                with pytest.raises(BufferError, match=f"{consumer.name} .* takes no such tensor"):
                    dlpack_rs.prepare(array, consumer.name, drop_read_only=drop)
                continue
        tensor, how = dlpack_rs.prepare(array, consumer.name, drop_read_only=drop)
        seen = dlpack_rs.inspect(tensor)
        assert consumers.judge(consumer, seen)[0] in (consumers.TAKES, consumers.COPIES), how
        assert tensor.numpy().tobytes() == before == array.tobytes()
        shared = tensor.data_ptr == array.ctypes.data
        if array.size:
            assert shared == how.startswith(f"{consumer.name}: shared"), how
        # Who does not keep the flag gets memory that may be written, or that the caller allows.
        kept = consumer.capsule == "versioned" and consumer.read_only == "keeps"
        given = not array.flags.writeable
        assert tensor.readonly <= (given and kept)
        if shared and given and array.size:
            assert tensor.readonly or (drop and "READ_ONLY dropped" in how)


def elsewhere(code):
    """A tensor that says that it is on another device."""
    made = edited(lambda struct: setattr(struct.dl_tensor, "device", (code, 0)), dlpack_rs.zeros(2))
    made.device = code, 0
    return made


@pytest.mark.parametrize("consumer", consumers.CONSUMERS, ids=lambda consumer: consumer.name)
def test_no_copy_is_made_for_who_takes_no_tensor_of_the_device(consumer):
    for code in (1, 2, 3, 4, 7, 8, 10, 13, 14):
        x = dlpack_rs.from_dlpack(elsewhere(code))
        if code in consumer.devices:
            assert ": shared" in dlpack_rs.prepare(x, consumer.name)[1]
            continue
        remedy = r".*to\('cpu'\)" if 1 in consumer.devices else ".*copy it to"
        said = f"takes no tensors on {re.escape(x.device)}{remedy}"
        with pytest.raises(BufferError, match=said):
            dlpack_rs.prepare(x, consumer.name)


def test_a_tensor_without_the_flag_keeps_its_memory_alive():
    lent = np.arange(4.0)
    lent.flags.writeable = False
    alive = weakref.ref(lent)
    tensor, _ = dlpack_rs.prepare(lent, "torch", drop_read_only=True)
    del lent
    assert alive() is not None and tensor.tolist() == [0, 1, 2, 3]
    del tensor
    gc.collect()
    assert alive() is None


def test_preparation_for_an_unknown_framework_names_the_known_ones():
    with pytest.raises(ValueError, match="consumer is 'nmpy', and known are numpy, .*, dpnp"):
        dlpack_rs.prepare(np.arange(3), "nmpy")


# --- The command line -------------------------------------------------------------------------


def test_the_command_line():
    done = run("inspect", "numpy:arange(6.0)[::-1]")
    assert done.returncode == 0 and "float64 (2, 64, 1)" in done.stdout and done.stderr == ""
    include = run("include").stdout.strip()
    assert (Path(include) / "dlpack" / "dlpack_rs.h").is_file()
    assert shlex.split(run("cflags").stdout) == ["-I" + include]
    library = abi.library_path()
    assert shlex.split(run("libs").stdout) == [library, "-Wl,-rpath," + os.path.dirname(library)]
    assert run("library").stdout.strip() == abi.library_path()
    for wrong in (["inspect", "numpy"], ["inspect", "numpy:arange"], ["inspect", "nowhere:x"],
                  ["inspect", "numpy:nonsense("], ["check", "numpy:1 / 0"], ["check", "no.npy"]):
        done = run(*wrong)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, (wrong, done)
    for wrong in (["inspect"], [], ["else"], ["include", "more"]):
        done = run(*wrong)
        assert done.returncode == 2 and "Traceback" not in done.stderr and done.stderr, wrong
    done = run("--help")
    assert done.returncode == 0 and "inspect" in done.stdout and "conform" in done.stdout
    assert run("--version").stdout.strip() == dlpack_rs.__version__
    assert dlpack_rs.__version__ in run("version").stdout


@pytest.mark.skipif(os.name != "posix", reason="shells of other systems")
@pytest.mark.parametrize("arguments", [
    "dlpack_rs inspect numpy:arange(6.0)", "dlpack_rs check numpy:arange(6.0) --json",
    "dlpack_rs version", *("dlpack_rs conform " + arguments for arguments in (
        "--list", "--explain P01", "numpy --select P01 --json") if find_spec("dlpack_conformance"))])
def test_a_reader_that_has_enough(arguments):
    """As `| head`: whatever is written to it fails."""
    readable, writable = os.pipe()
    os.close(readable)
    done = subprocess.run([sys.executable, "-m", *arguments.split()], stdout=writable,
                          stderr=subprocess.PIPE, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    os.close(writable)
    assert (done.returncode, done.stderr) == (1, "")


FORGED = """
class Forged:
    def __dlpack__(self, **keywords):
        import numpy
        array = numpy.broadcast_to(numpy.arange(3.0), (4, 3))
        from dlpack_rs.abi import capsule
        made = array.__dlpack__(**keywords)
        capsule.managed(made).dl_tensor.dtype.bits = 17
        return made
"""


def test_the_command_line_for_programs(tmp_path):
    array = np.arange(12.0).reshape(3, 4)[:, ::2]
    np.save(tmp_path / "array.npy", array)
    seen = json.loads(run("inspect", str(tmp_path / "array.npy"), "--json").stdout)
    assert seen["type"] == "numpy.ndarray" and seen["dtype"] == "float64 (2, 64, 1)"
    assert {"numpy", "torch"} <= {consumer["name"] for consumer in seen["consumers"]}
    done = run("check", str(tmp_path / "array.npy"))
    assert done.returncode == 0 and done.stdout.strip() == "numpy.ndarray: valid"
    (tmp_path / "forged.py").write_text(FORGED)
    done = run("check", "forged:Forged()", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert done.returncode == 1 and not found["valid"] and "17" in found["message"], done
    for name in ("include", "cflags", "libs", "library", "version"):
        assert json.loads(run(name, "--json").stdout)

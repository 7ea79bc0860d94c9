"""DLPack tensors of any framework: import, inspection, copies and export.

    import dlpack_rs

    tensor = dlpack_rs.from_dlpack(x)   # x of NumPy, PyTorch, JAX, CuPy, ...: its own memory
    numpy.from_dlpack(tensor)           # any other framework imports it by its own from_dlpack
    print(dlpack_rs.inspect(x))         # the export of x, and which frameworks accept it
    tensor, how = dlpack_rs.prepare(x, "jax")   # x as JAX takes it, copied only if it must be

Errors are Python's own: TypeError and ValueError for arguments, BufferError for a tensor that
cannot be exchanged as requested, MemoryError, IndexError, RuntimeError; the message names the
value at fault.
The C ABI is in dlpack_rs.abi.
"""

import sys

from ._library import library_path

__all__ = ["DEVICES", "DTYPES", "Tensor", "Workers", "__version__", "abi", "asarray", "dlpack_version",
           "empty", "from_dlpack", "from_numpy", "full", "inspect", "prepare",
           "register_numpy_dtypes", "zeros"]

# Names of element types; types with several lanes end with their number: "float32x4".
DTYPES = ("bool", "int1", "int2", "int4", "int8", "int16", "int32", "int64", "uint1", "uint2",
          "uint4", "uint8", "uint16", "uint32", "uint64", "complex32",
          "float16", "float32", "float64", "bfloat16", "complex64", "complex128", "float8_e3m4",
          "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
          "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn",
          "bcomplex32")
# Names of devices, by their codes; an ordinal may follow: "cuda:0".
DEVICES = {1: "cpu", 2: "cuda", 3: "cuda_host", 4: "opencl", 7: "vulkan", 8: "metal", 9: "vpi",
           10: "rocm", 11: "rocm_host", 12: "ext_dev", 13: "cuda_managed", 14: "oneapi",
           15: "webgpu", 16: "hexagon", 17: "maia", 18: "trn", 19: "tpu", 20: "tpu_host",
           21: "ascend"}


def _load():
    """The extension module in the library, whose file has another name; None if the library has
    none."""
    # As importlib.machinery, which takes longer to load than this whole package.
    from _frozen_importlib import ModuleSpec
    from _frozen_importlib_external import ExtensionFileLoader

    path = library_path()
    loader = ExtensionFileLoader(f"{__name__}._dlpack_rs", path)
    spec = ModuleSpec(loader.name, loader, origin=path)
    try:
        module = loader.create_module(spec)
    except ImportError as error:
        if "PyInit_" in str(error):
            return None
        raise
    module.__spec__, module.__file__ = spec, path
    loader.exec_module(module)
    sys.modules[loader.name] = module
    return module


def _layout(self):
    """The layout in memory, drawn as text; in a notebook, as a picture."""
    from ._picture import layout

    return layout(self)


def _repr_html_(self):
    """For notebooks: a table and a picture of the layout."""
    from ._picture import tensor_html

    return tensor_html(self)


class Workers:
    """Threads that wait for copies, so that also those of a few hundred KiB can be shared.

    threads: with the caller's, at most 64; 0 for one on each processor, at most 16. They share one
    copy at a time, and end when they are closed, or nobody refers to them any more. A forked child
    has none: its copies are made by their caller alone.
    >>> with dlpack_rs.Workers(threads=2) as workers:
    ...     dlpack_rs.empty((2, 2)).copy_from(dlpack_rs.full(2, 3), workers=workers)
    """

    __slots__ = ("_capsule",)

    def __init__(self, threads=0):
        self._capsule = _module._workers(threads)

    def close(self):
        """End the threads, after the copies that use them."""
        self._capsule = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


_served = sys.implementation.name == "cpython" and sys.version_info >= (3, 9)
_module = _load() if _served else None
if _module:
    Tensor, from_dlpack, empty = _module.Tensor, _module.from_dlpack, _module.empty
    asarray, from_numpy = _module.asarray, _module.from_numpy
    full, zeros = _module.full, _module.zeros
    dlpack_version, __version__ = _module.dlpack_version, _module.__version__
    Tensor.layout, Tensor._repr_html_ = _layout, _repr_html_  # drawn in Python


def __getattr__(name):
    """`abi`, `inspect`, `prepare`, `register_numpy_dtypes` are loaded on first use."""
    if name == "abi":
        import importlib

        return importlib.import_module(".abi", __name__)
    if name == "inspect":
        from ._inspect import inspect

        return inspect
    if name == "prepare" and _module:
        from ._prepare import prepare

        return prepare
    if name == "register_numpy_dtypes" and _module:
        from ._numpy import register_numpy_dtypes

        return register_numpy_dtypes
    if name in __all__:
        raise ImportError(f"dlpack_rs.{name} needs " + (
            f"CPython 3.9 or newer, and this is {sys.implementation.name} "
            f"{sys.version_info.major}.{sys.version_info.minor}" if not _served else
            f"the Python module, and {library_path()} is the library for C, without it: the wheel "
            "has both in one, as `make build` makes it"
        ) + "; dlpack_rs.abi has the C ABI for ctypes and cffi")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})

"""NumPy's register of the dtypes of others, as those of ml_dtypes."""

from __future__ import annotations

from ctypes import byref

from . import DTYPES, abi


def register_numpy_dtypes() -> tuple[str, ...]:
    """Register ml_dtypes' types with NumPy 2.5 or newer, so that its arrays of them have a
    `__dlpack__`, and numpy.from_dlpack makes such arrays, without copies. Returns the names.

    These are bfloat16, float8 and pairs of 16 bits. One for which a program has registered another
    type of NumPy stays so, and is left out. Elements of less than a byte cannot be registered.

    >>> dlpack_rs.register_numpy_dtypes()
    ('complex32', 'bfloat16', ...
    """
    try:
        import ml_dtypes
        import numpy
    except ImportError as error:
        raise ImportError("register_numpy_dtypes: install NumPy 2.5 or newer and ml_dtypes: "
                          f"{error}") from error
    register = getattr(numpy.dtypes, "register_dlpack_dtype", None)
    if register is None:
        raise ImportError("register_numpy_dtypes: install NumPy 2.5 or newer, whose dtypes can be "
                          f"registered: this is {numpy.__version__}")
    done = []
    for name in DTYPES:
        kind, said = getattr(ml_dtypes, name, None), abi.DLDataType()
        abi.call(abi.lib.dlrs_dtype_parse, name.encode(), len(name), byref(said))
        if kind is None or said.bits % 8:
            continue
        try:
            register((said.code, said.bits), numpy.dtype(kind))
        except ValueError:
            continue
        done.append(name)
    return tuple(done)

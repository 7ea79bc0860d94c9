"""Adapters of libraries for the checks: a class of few methods, with those of common libraries."""

from __future__ import annotations

import importlib
import os
import sys

from ._exports import newest
from ._model import Skipped
from ._tensors import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _read(result, what):
    """What an export of the result says. It is freed as a consumer frees it, so that a capsule that
    would not free it is judged by the check of that alone."""
    if result is not None and not hasattr(result, "__dlpack__"):
        raise Skipped(f"{type(result).__name__} has no __dlpack__: a Library with values() "
                      "and address() can read it")
    found = newest(result)
    said = what(found)
    found.consume().free()
    return said


class Library:
    """One library under test. A method that is None is not checked.

    `make(tensor)` returns a tensor of the library with the values and the dtype of a
    Tensor in host memory. `take(producer)` is the library's
    from_dlpack: it is given an object with `__dlpack__`.
    """

    name = "library"
    fork = True  # checks may run in processes forked after the import
    if TYPE_CHECKING:
        def make(self, tensor: Tensor, /) -> Any: ...
        def make_read_only(self, tensor: Tensor, /) -> Any: ...
        def take(self, producer: Any, /) -> Any: ...
        def take_copy(self, producer: Any, /) -> Any: ...
        def take_shared(self, producer: Any, /) -> Any: ...
    else:
        make = make_read_only = take = None
        take_copy = None  # from_dlpack(producer, copy=True)
        take_shared = None  # from_dlpack(producer, copy=False)

    def version(self) -> str:
        return ""

    def values(self, result: Any, /) -> list[Any]:
        """The elements in row-major order."""
        values: list[Any] = _read(result, lambda found: found.values())
        return values

    def address(self, result: Any, /) -> int:
        """Where the first element is."""
        address: int = _read(result, lambda found: found.address)
        return address

    def use(self, result: Any, /) -> object:
        """Computes with a tensor, as programs do after an import."""
        return self.values(result)

    def settle(self) -> None:
        """Makes a library free tensors whose release it deferred."""

    def transposed(self, x: Any, /) -> Any:
        return x.T

    def columns(self, x: Any, /) -> Any:
        return x[:, ::2]

    def reversed(self, x: Any, /) -> Any:
        return x[::-1]

    def inner(self, x: Any, /) -> Any:
        return x[1:, 1:]

    def rows(self, x: Any, /) -> Any:
        return x[1:]

    def broadcast(self, x: Any, /) -> Any:
        """A view of shape (2, *x.shape), without a copy."""
        raise Skipped("no broadcast views")

    def reshape_in_place(self, x: Any, /) -> Any:
        """Makes a tensor of 3 x 4 one of 12."""
        raise Skipped("shapes do not change in place")

    def make_on(self, tensor: Tensor, number: int) -> Any:
        """`make`, on a CUDA device."""
        raise Skipped("no CUDA tensors")

    def foreign(self) -> list[Any]:
        """Tensors of dtypes that DLPack lacks."""
        return []

    def lazy(self) -> list[Any]:
        """`(what, tensor, values)` of tensors whose values are not computed yet."""
        return []


class Module(Library):
    """A library whose functions are those of one module."""

    def __init__(self, name=""):
        self.name = name or self.name
        self.xp = importlib.import_module(self.name)

    def version(self):
        return str(getattr(sys.modules[self.name.partition(".")[0]], "__version__", "")
                   ).partition("+")[0]

    def from_dlpack(self, producer, **keywords):
        return self.xp.from_dlpack(producer, **keywords)

    def take(self, producer):
        return self.from_dlpack(producer)

    def take_copy(self, producer):
        return self.from_dlpack(producer, copy=True)

    def take_shared(self, producer):
        return self.from_dlpack(producer, copy=False)

    def broadcast(self, x):
        return self.xp.broadcast_to(x, (2, *x.shape))


class Namespace(Module):
    """A module of the array API standard: `asarray` and `from_dlpack` are all that is needed."""

    def make(self, tensor):
        dtype = getattr(self.xp, tensor.dtype)
        return self.xp.reshape(self.xp.asarray(tensor.tolist(), dtype=dtype), tensor.shape)

    def transposed(self, x):
        return self.xp.permute_dims(x, tuple(range(x.ndim))[::-1])


class NumPy(Module):
    name = "numpy"

    def make(self, tensor):
        return self.xp.array(tensor.numpy())

    def make_read_only(self, tensor):
        array = self.make(tensor)
        array.flags.writeable = False
        return array

    def values(self, result):
        return result.ravel().tolist()

    def address(self, result):
        return result.ctypes.data

    def use(self, result):
        return (result + 0).ravel().tolist()

    def reshape_in_place(self, x):
        x.shape = (12,)

    def foreign(self):
        return [self.xp.array(["2020-01-01"], "M8[D]"), self.xp.array(["a"]),
                self.xp.array([None])]

    def lazy(self):
        yield "masked array", self.xp.ma.array([1.0, 2.0], mask=[0, 1]), [1.0, None]


class Torch(Module):
    name = "torch"

    def make(self, tensor):
        return self.xp.from_dlpack(tensor).clone()

    def values(self, result):
        return result.flatten().tolist()

    def address(self, result):
        return result.data_ptr()

    def use(self, result):
        return (result + 0).flatten().tolist()

    def make_on(self, tensor, number):
        if self.xp.cuda.device_count() <= number:
            raise Skipped("no such device")
        return self.make(tensor).to(f"cuda:{number}")

    def reversed(self, x):
        raise Skipped("no negative strides")

    def reshape_in_place(self, x):
        x.resize_(12)

    def lazy(self):
        numbers = self.xp.tensor([1 + 2j, 3 - 1j])
        yield "conjugate view", numbers.conj(), [1 - 2j, 3 + 1j]
        yield "negated view", self.xp._neg_view(self.xp.tensor([1.0, 2.0])), [-1.0, -2.0]


class Immutable(Module):
    """Tensors are immutable."""

    def make_read_only(self, tensor):
        return self.make(tensor)

    def use(self, result):
        return self.values(result + self.xp.zeros_like(result))


class Jax(Immutable):
    name = "jax"

    def __init__(self):
        import jax.dlpack
        import jax.numpy

        jax.config.update("jax_enable_x64", True)
        self.xp, self.from_dlpack = jax.numpy, jax.dlpack.from_dlpack

    def make(self, tensor):
        return self.xp.array(tensor.numpy())

    def values(self, result):
        import numpy

        return numpy.asarray(result).ravel().tolist()

    def address(self, result):
        return result.unsafe_buffer_pointer()

    def settle(self):
        self.xp.zeros(1)


class TensorFlow(Immutable):
    name = "tensorflow"
    take_copy = take_shared = None

    def __init__(self):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
        super().__init__()

    def make(self, tensor):
        return self.xp.constant(tensor.numpy())

    def from_dlpack(self, producer):
        return self.xp.experimental.dlpack.from_dlpack(producer.__dlpack__())

    def values(self, result):
        return result.numpy().ravel().tolist()

    def address(self, result):
        return newest(result).address

    def transposed(self, x):
        return self.xp.transpose(x)

    def foreign(self):
        return [self.xp.constant(["a"])]


class TvmFfi(Module):
    name = "tvm_ffi"
    take_copy = take_shared = None

    def make(self, tensor):
        return self.xp.from_dlpack(tensor.copy())


class PyArrow(Module):
    name = "pyarrow"
    take_copy = take_shared = None

    def make(self, tensor):
        if tensor.dtype == "bool":
            raise TypeError("pyarrow makes uint8 of bool")
        return self.xp.Tensor.from_numpy(tensor.copy().numpy())

    def make_read_only(self, tensor):
        return self.xp.Tensor.from_numpy(tensor.copy().read_only().numpy())

    def from_dlpack(self, producer):
        return self.xp.Tensor.from_dlpack(producer)

    def values(self, result):
        return result.to_numpy().ravel().tolist()

    def address(self, result):
        return result.to_numpy().ctypes.data


class Ours(Module):
    name = "dlpack_rs"

    def make(self, tensor):
        return self.xp.from_dlpack(tensor).copy()

    def make_read_only(self, tensor):
        return self.make(tensor).read_only()

    def address(self, result):
        return result.data_ptr

    def use(self, result):
        return newest(result.copy()).values()

    def make_on(self, tensor, number):
        try:
            return self.make(tensor).to(f"cuda:{number}")
        except (BufferError, RuntimeError) as error:
            raise Skipped(f"no such device: {str(error)[:60]}") from None

    def broadcast(self, x):
        return x.broadcast_to(2, *x.shape)


class Functions(Library):
    """A library given by two functions."""

    def __init__(self, name, make=None, take=None):
        self.name, self.make, self.take = name, make, take


LIBRARIES: dict[str, type[Library]] = {
    kind.name: kind for kind in (NumPy, Torch, Jax, TensorFlow, TvmFfi, PyArrow, Ours)}


def evaluate(text):
    """MODULE:EXPRESSION, with the names of the module."""
    name, colon, expression = text.partition(":")
    if not (name and colon and expression):
        raise ValueError(f"{text!r} is not MODULE:EXPRESSION, such as mylib:asarray")
    if "" not in sys.path:
        sys.path.insert(0, "")
    module = importlib.import_module(name)
    return eval(expression, {**vars(module), name.partition(".")[0]: module})


def find(producer, consumer=None, namespace=False):
    """The Library that two arguments of the command line name: a name of LIBRARIES, or an
    expression."""
    if namespace:
        return Namespace(producer)
    if consumer is None and producer in LIBRARIES:
        return LIBRARIES[producer]()
    made = LIBRARIES[producer]() if producer in LIBRARIES else evaluate(producer)
    if isinstance(made, type) and issubclass(made, Library):
        made = made()
    if not isinstance(made, Library):
        if not callable(made):
            raise TypeError(f"{producer} is a {type(made).__name__}; it should be a "
                            "Library, or a function that makes a tensor of the library of "
                            "one in host memory")
        made = Functions(producer, made)
    if consumer is None or producer == consumer:
        return made
    other = LIBRARIES[consumer]() if consumer in LIBRARIES else None
    taker = other.take if other else evaluate(consumer)
    if not callable(taker):
        raise TypeError(f"{consumer} is a {type(taker).__name__}, not a from_dlpack function")
    found = Functions(f"{producer} -> {consumer}", made.make, taker)
    for name in ("values", "address", "use", "settle", "take_copy", "take_shared"):
        setattr(found, name, getattr(other or found, name))
    return found

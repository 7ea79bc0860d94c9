"""Adapters of libraries for the checks: a class of few methods, with those of common libraries."""

from __future__ import annotations

import importlib
import sys

from ._memory import Tensor, newest
from ._model import Skipped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def sample(values=range(12), shape=(3, 4), **rest):
    """Host memory for a library to make a tensor of."""
    return Tensor(values, shape, **rest)


def _newest(result):
    if result is not None and not hasattr(result, "__dlpack__"):
        raise Skipped(f"{type(result).__name__} has no __dlpack__: a Library with values() "
                      "and address() can read it")
    return newest(result)


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
        return _newest(result).values()

    def address(self, result: Any, /) -> int:
        """Where the first element is."""
        return _newest(result).address

    def writable(self, result: Any, /) -> bool:
        raise Skipped("the library does not say whether a tensor is writable")

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


class NumPy(Library):
    name = "numpy"

    def __init__(self):
        import numpy

        self.np = numpy

    def version(self):
        return self.np.__version__

    def make(self, tensor):
        return self.np.array(tensor.numpy())

    def make_read_only(self, tensor):
        array = self.make(tensor)
        array.flags.writeable = False
        return array

    def take(self, producer):
        return self.np.from_dlpack(producer)

    def take_copy(self, producer):
        return self.np.from_dlpack(producer, copy=True)

    def take_shared(self, producer):
        return self.np.from_dlpack(producer, copy=False)

    def values(self, result):
        return result.ravel().tolist()

    def address(self, result):
        return result.ctypes.data

    def writable(self, result):
        return result.flags.writeable

    def use(self, result):
        return (result + 0).ravel().tolist()

    def broadcast(self, x):
        return self.np.broadcast_to(x, (2, *x.shape))

    def reshape_in_place(self, x):
        x.shape = (12,)

    def foreign(self):
        return [self.np.array(["2020-01-01"], "M8[D]"), self.np.array(["a"]),
                self.np.array([None])]

    def lazy(self):
        yield "masked array", self.np.ma.array([1.0, 2.0], mask=[0, 1]), [1.0, None]


class Torch(Library):
    name = "torch"

    def __init__(self):
        import torch

        self.torch = torch

    def version(self):
        return self.torch.__version__.partition("+")[0]

    def make(self, tensor):
        return self.torch.from_dlpack(tensor).clone()

    def take(self, producer):
        return self.torch.from_dlpack(producer)

    def take_copy(self, producer):
        return self.torch.from_dlpack(producer, copy=True)

    def take_shared(self, producer):
        return self.torch.from_dlpack(producer, copy=False)

    def values(self, result):
        return result.flatten().tolist()

    def address(self, result):
        return result.data_ptr()

    def writable(self, result):
        return True  # torch has no read-only tensors

    def use(self, result):
        return (result + 0).flatten().tolist()

    def make_on(self, tensor, number):
        if self.torch.cuda.device_count() <= number:
            raise Skipped("no such device")
        return self.make(tensor).to(f"cuda:{number}")

    def reversed(self, x):
        raise Skipped("no negative strides")

    def broadcast(self, x):
        return x.expand(2, *x.shape)

    def reshape_in_place(self, x):
        x.resize_(12)

    def lazy(self):
        numbers = self.torch.tensor([1 + 2j, 3 - 1j])
        yield "conjugate view", numbers.conj(), [1 - 2j, 3 + 1j]
        yield "negated view", self.torch._neg_view(self.torch.tensor([1.0, 2.0])), [-1.0, -2.0]


class Jax(Library):
    name = "jax"

    def __init__(self):
        import jax
        import jax.dlpack
        import jax.numpy

        jax.config.update("jax_enable_x64", True)
        self.jax = jax

    def version(self):
        return self.jax.__version__

    def make(self, tensor):
        return self.jax.numpy.array(tensor.numpy())

    make_read_only = make  # arrays are immutable

    def take(self, producer):
        return self.jax.dlpack.from_dlpack(producer)

    def take_copy(self, producer):
        return self.jax.dlpack.from_dlpack(producer, copy=True)

    def take_shared(self, producer):
        return self.jax.dlpack.from_dlpack(producer, copy=False)

    def values(self, result):
        import numpy

        return numpy.asarray(result).ravel().tolist()

    def address(self, result):
        return result.unsafe_buffer_pointer()

    def writable(self, result):
        return False

    def use(self, result):
        return self.values(result + self.jax.numpy.zeros_like(result))

    def settle(self):
        self.jax.numpy.zeros(1)

    def broadcast(self, x):
        return self.jax.numpy.broadcast_to(x, (2, *x.shape))


class TensorFlow(Library):
    name = "tensorflow"

    def __init__(self):
        import os

        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
        import tensorflow

        self.tf = tensorflow

    def version(self):
        return self.tf.__version__

    def make(self, tensor):
        return self.tf.constant(tensor.numpy())

    make_read_only = make  # tensors are immutable

    def take(self, producer):
        return self.tf.experimental.dlpack.from_dlpack(producer.__dlpack__())

    def values(self, result):
        return result.numpy().ravel().tolist()

    def address(self, result):
        return newest(result).address

    def writable(self, result):
        return False

    def use(self, result):
        return self.values(result + self.tf.zeros_like(result))

    def transposed(self, x):
        return self.tf.transpose(x)

    def broadcast(self, x):
        return self.tf.broadcast_to(x, (2, *x.shape))

    def foreign(self):
        return [self.tf.constant(["a"])]


class TvmFfi(Library):
    name = "tvm_ffi"

    def __init__(self):
        import tvm_ffi

        self.tvm_ffi = tvm_ffi

    def version(self):
        return self.tvm_ffi.__version__

    def make(self, tensor):
        return self.tvm_ffi.from_dlpack(tensor.copy())

    def take(self, producer):
        return self.tvm_ffi.from_dlpack(producer)

    def address(self, result):
        return newest(result).address


class PyArrow(Library):
    name = "pyarrow"

    def __init__(self):
        import pyarrow

        self.pyarrow = pyarrow

    def version(self):
        return self.pyarrow.__version__

    def make(self, tensor):
        if tensor.dtype == "bool":
            raise TypeError("pyarrow makes uint8 of bool")
        return self.pyarrow.Tensor.from_numpy(tensor.copy().numpy())

    def make_read_only(self, tensor):
        array = tensor.copy().numpy()
        array.flags.writeable = False
        return self.pyarrow.Tensor.from_numpy(array)

    def take(self, producer):
        return self.pyarrow.Tensor.from_dlpack(producer)

    def values(self, result):
        return result.to_numpy().ravel().tolist()

    def address(self, result):
        return result.to_numpy().ctypes.data

    def writable(self, result):
        return result.to_numpy().flags.writeable


class Ours(Library):
    name = "dlpack_rs"

    def __init__(self):
        import dlpack_rs

        self.dlpack_rs = dlpack_rs

    def version(self):
        return self.dlpack_rs.__version__

    def make(self, tensor):
        return self.dlpack_rs.from_dlpack(tensor).copy()

    def make_read_only(self, tensor):
        return self.make(tensor).read_only()

    def take(self, producer):
        return self.dlpack_rs.from_dlpack(producer)

    def take_copy(self, producer):
        return self.dlpack_rs.from_dlpack(producer, copy=True)

    def take_shared(self, producer):
        return self.dlpack_rs.from_dlpack(producer, copy=False)

    def address(self, result):
        return result.data_ptr

    def writable(self, result):
        return not result.readonly

    def use(self, result):
        return newest(result.copy()).values()

    def make_on(self, tensor, number):
        try:
            return self.make(tensor).to(f"cuda:{number}")
        except (BufferError, RuntimeError) as error:
            raise Skipped(f"no such device: {str(error)[:60]}") from None

    def broadcast(self, x):
        return x.broadcast_to(2, *x.shape)


class Namespace(Library):
    """A module of the array API standard: `asarray` and `from_dlpack` are all that is needed."""

    def __init__(self, name):
        self.name, self.xp = name, importlib.import_module(name)

    def version(self):
        return str(getattr(sys.modules[self.name.partition(".")[0]], "__version__", ""))

    def make(self, tensor):
        xp = self.xp
        values = tensor.tolist()
        return xp.reshape(xp.asarray(values, dtype=getattr(xp, tensor.dtype)), tensor.shape)

    def take(self, producer):
        return self.xp.from_dlpack(producer)

    def take_copy(self, producer):
        return self.xp.from_dlpack(producer, copy=True)

    def take_shared(self, producer):
        return self.xp.from_dlpack(producer, copy=False)

    def transposed(self, x):
        return self.xp.permute_dims(x, tuple(range(x.ndim))[::-1])

    def broadcast(self, x):
        return self.xp.broadcast_to(x, (2, *x.shape))


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
    if consumer is not None:
        taker = LIBRARIES[consumer]().take if consumer in LIBRARIES else evaluate(consumer)
        if not callable(taker):
            raise TypeError(f"{consumer} is a {type(taker).__name__}, not a from_dlpack function")
        if producer == consumer:
            return made
        found = Functions(f"{producer} -> {consumer}", made.make, taker)
        if consumer in LIBRARIES:
            other = LIBRARIES[consumer]()
            found.values, found.address, found.writable = (other.values, other.address,
                                                           other.writable)
            found.use, found.settle = other.use, other.settle
            found.take_copy, found.take_shared = other.take_copy, other.take_shared
        return found
    return made

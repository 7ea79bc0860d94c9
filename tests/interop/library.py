"""A system of systems/ for the conformance kit: library:System("paddle"); and this library with
tensors imported from one: library:Again("paddle")."""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import dlpack_rs  # noqa: E402
import hooks  # noqa: E402
from dlpack_conformance import LIBRARIES, Library  # noqa: E402
from dlpack_conformance._libraries import Ours  # noqa: E402
from dlpack_conformance._exports import newest  # noqa: E402


class System(Library):
    """The kit's methods, where the system has them."""

    def __init__(self, name):
        self.name, self.system = name, importlib.import_module(f"systems.{name}")
        if not hasattr(self.system, "make"):
            self.make = None
        if not hasattr(self.system, "take"):
            self.take = None

    def version(self):
        return hooks.version(self.system)

    def exported(self, x):
        return self.system.exporter(x) if hasattr(self.system, "exporter") else x

    def make(self, tensor):
        return self.exported(self.system.make(tensor.copy().numpy()))

    def take(self, producer):
        return self.system.take(producer)

    def values(self, result):
        if not hasattr(self.system, "values"):
            return super().values(result)
        return self.system.values(result).ravel().tolist()

    def address(self, result):
        if not hasattr(self.system, "address"):
            return super().address(result)
        return self.system.address(result)

    def transposed(self, x):
        return self.system.transposed(x) if hasattr(self.system, "transposed") else x.T


def library(name):
    """How the kit accesses a system: directly, or through systems/."""
    return LIBRARIES[name]() if name in LIBRARIES else System(name)


class Again(Ours):
    """A Tensor over memory of a system, for re-export."""

    def __init__(self, name):
        super().__init__()
        self.name, self.peer = f"dlpack_rs over {name}", library(name)
        self.fork, self.last = self.peer.fork, None

    def version(self):
        return self.peer.version()

    def make(self, tensor):
        self.last = self.peer.make(tensor)
        taken = dlpack_rs.from_dlpack(self.last)
        if newest(taken).dtype != newest(tensor).dtype:
            raise BufferError(f"{self.name} has no such dtype")
        return taken

    def make_read_only(self, tensor):
        return self.make(tensor).read_only()

    def reshape_in_place(self, x):
        self.peer.reshape_in_place(self.last)

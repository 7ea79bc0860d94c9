"""A system of systems/ as the conformance kit wants it: library:System("paddle")."""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from dlpack_rs.conform import Library  # noqa: E402


class System(Library):
    """The kit's own methods, where the system has them."""

    def __init__(self, name):
        self.name, self.system = name, importlib.import_module(f"systems.{name}")
        if not hasattr(self.system, "make"):
            self.make = None
        if not hasattr(self.system, "take"):
            self.take = None

    def version(self):
        return self.system.version()

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

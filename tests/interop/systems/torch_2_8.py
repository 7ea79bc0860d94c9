"""PyTorch from before DLPack 1.0: legacy capsules, and only the keyword stream of __dlpack__."""

from systems.torch import *  # noqa: F403

VENV, PIP = "torch28", ["numpy==2.4.6", "torch==2.8.0"]
FAULTS = {"import raw offset": "ignores byte_offset",
          "a negated view": "exports the memory, not the values",
          "import reversed": "aborts the process on negative strides"}

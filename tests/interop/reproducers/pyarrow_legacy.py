import numpy
import pyarrow
from capsule import say


class Old:
    """A producer from before DLPack 1.0."""

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, stream=None):
        return numpy.ones(3, "f4").__dlpack__()


try:
    pyarrow.Tensor.from_dlpack(Old())
    say(False, "")
except Exception as error:
    say(True, f"a legacy producer is refused: {type(error).__name__}: {error}")

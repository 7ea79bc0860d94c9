import mlx.core
import numpy
from capsule import Forged, say


def edit(managed):
    if not managed.versioned:
        raise BufferError("versioned only")
    managed.major.value = 2


try:
    found = mlx.core.from_dlpack(Forged(numpy.ones(3, "f4"), edit))
    say(True, f"major version 2 is taken: {found}")
except Exception as error:
    say(False, str(error))

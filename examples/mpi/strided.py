"""Two MPI ranks exchange strided tensors of any framework without packing them.

    mpiexec -n 2 python3 strided.py

The MPI datatype is made from the shape and strides that dlpack_rs reports. Needs mpi4py and NumPy.
"""

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

sys.path.append(str(Path(__file__).resolve().parents[2] / "python"))  # or: pip install dlpack_rs

import dlpack_rs


# [quote:type]
def message(x):
    """What mpi4py sends or receives for a tensor of any framework: its own memory, one datatype."""
    tensor = dlpack_rs.from_dlpack(x)
    itemsize = tensor.itemsize
    types = [MPI.BYTE.Create_contiguous(itemsize)]
    for extent, stride in zip(reversed(tensor.shape), reversed(tensor.strides)):
        types.append(types[-1].Create_hvector(extent, 1, stride * itemsize))
    for inner in types[:-1]:
        inner.Free()
    # From element (0, ..., 0); the datatype reaches to both sides of it.
    return [MPI.buffer.fromaddress(tensor.data_ptr, itemsize), 1, types[-1].Commit()]
# [/quote]


def main():
    world = MPI.COMM_WORLD
    if world.size != 2:
        raise SystemExit("mpiexec -n 2 python3 strided.py")
    # Axes 0 and 2 swapped, the first axis reversed, every second of the last.
    sent = np.arange(60, dtype=np.float32).reshape(4, 3, 5).T[::-1, :, :4:2]
    if world.rank == 0:
        world.Send(message(sent), dest=1)
        print("rank 0 sent byte strides", sent.strides, flush=True)
        world.Barrier()
        return 0
    # Received column-major, within a larger array whose other elements are unchanged.
    whole = np.full((2, 4, 5), -1, dtype=np.float32)
    received = whole[:, 1:].T
    world.Recv(message(received), source=0)
    world.Barrier()
    equal = np.array_equal(received, sent)
    print("rank 1 received byte strides", received.strides, "equal" if equal else "DIFFERENT",
          (whole == -1).sum(), "elements around are as they were")
    return not equal


sys.exit(main())

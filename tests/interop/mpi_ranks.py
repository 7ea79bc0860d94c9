"""Exchanges tensors of ours between two MPI ranks: mpi_ranks.py CHECK, below mpiexec -n 2.

Rank 0 sends, rank 1 receives and reports; mpi4py borrows a capsule for the length of the call, so
that the capsule's destructor must free its tensor.
"""

import gc
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402

import checks  # noqa: E402
from checks import DTYPES, MATRIX  # noqa: E402
from ours import Made, dtype_of, of_array  # noqa: E402

COMM = MPI.COMM_WORLD
DATA = MATRIX.tobytes()
SENT = ("transposed", "reversed", "gapped", "byte_offset", "unaligned")
LAYOUTS = {"import": {"shape": (4, 6)}, "import read-only": {"shape": (4, 6), "read_only": True},
           **{f"import {name}": checks.LAYOUTS[f"import {name}"][1] for name in SENT}}


def exchange(sent, received):
    """Rank 0 sends `sent`, rank 1 receives into `received`; both get an error.

    Nothing is sent before both have their tensors: MPICH may wait for a message without a
    receiver, or crash, when it ends.
    """
    foretold = checks.foretold("mpi4py", sent.tensor)
    try:
        if COMM.rank == 0:
            request, error = COMM.Send_init(sent.tensor, 1), None
        else:
            request, error = COMM.Recv_init(received.tensor, 0), None
    except Exception as refusal:
        request, error = None, f"{type(refusal).__name__}: {refusal}"
    errors = COMM.allgather(error)
    if (foretold[0] == "refuses") != bool(errors[0]):
        raise checks.Wrong(f"dlpack_rs.consumers foretells {foretold}: {errors[0]}")
    if not any(errors):
        request.Start()
        request.Wait()
    if request is not None:
        request.Free()
    return next(filter(None, errors), None)


def moved(dtype="float32", data=DATA, into=None, **options):
    """The receiver's values afterwards; a rejection as text."""
    sent = Made(data, dtype=dtype, **options)
    received = Made(bytes(len(data)), (len(data) * 8 // dtype_of(dtype)[1] // dtype_of(dtype)[2],),
                    dtype, **(into or {}))
    refusal = exchange(sent, received)
    return refusal, sent, received


def freed_once(*made):
    for one in made:
        one.tensor = None
        if one.times_freed() != 1:
            return f"freed {one.times_freed()} times"
    return None


def layout(options, into=None):
    refusal, sent, received = moved(into=into, **options)
    data = received.bytes()
    late = freed_once(sent, received)
    if late:
        return f"WRONG {late}"
    if refusal:
        return f"refused {refusal}"
    return "zero-copy" if COMM.rank == 0 or data == DATA else "WRONG values differ"


def dtypes():
    taken, refused = [], []
    for name in DTYPES:
        _, bits, lanes = dtype_of(name)
        data = bytes(n % 2 if name == "bool" else n * 37 % 120 for n in range(bits * lanes))
        refusal, sent, received = moved(name, data, shape=(8,))
        if refusal is None and COMM.rank == 1 and received.bytes() != data:
            return f"WRONG {name}: values differ"
        if freed_once(sent, received):
            return f"WRONG {name}: not freed once"
        (refused if refusal else taken).append(name)
    return f"{len(taken)} types" + (f"; refused: {', '.join(refused)}" if refused else "")


def small(array):
    sent, received = of_array(array), of_array(np.zeros_like(array))
    refusal = exchange(sent, received)
    if refusal:
        return f"refused {refusal}"
    return "works" if COMM.rank == 0 or received.bytes() == array.tobytes() else "WRONG values"


def many():
    made = of_array(MATRIX)
    for _ in range(100):
        COMM.Bcast(made.tensor)
    gc.collect()
    if made.times_freed() != 0:
        return "WRONG freed while we hold it"
    late = freed_once(made)
    return f"WRONG {late}" if late else "once"


def main():
    check = sys.argv[1]
    if check in LAYOUTS:
        said = layout(LAYOUTS[check])
    else:
        said = {"import 0-d": lambda: small(np.array(2.5, np.float32)),
                "import empty": lambda: small(np.zeros((0, 3), np.float32)),
                "import read-only receive": lambda: layout({"shape": (4, 6)}, {"read_only": True}),
                "import deleter": many, "dtypes": dtypes}[check]()
    said = next((word for word in COMM.allgather(said) if word.startswith("WRONG")), said)
    if COMM.rank == 0:
        print("SAID", said, flush=True)
    return said.startswith("WRONG")


if __name__ == "__main__":
    sys.exit(main())

"""mpi4py on MPICH: two ranks send and receive tensors of ours. It only imports."""

import subprocess
import sys
from pathlib import Path

import mpi4py

VENV, PIP = "mpich", ["numpy==2.4.6", "mpi4py==4.1.2", "mpich==5.0.2"]
LAUNCH = ["mpiexec"]
MESSAGES = Path(__file__).resolve().parent.parent / "mpi_ranks.py"


def version():
    from mpi4py import MPI

    library = MPI.Get_library_version().replace(" Version:", "").splitlines()[0]
    return f"{mpi4py.__version__}, {' '.join(library.split(',')[0].split())}"


def ranks(check):
    """Runs a check of mpi_ranks.py in two processes; rank 0 reports the outcome."""
    def run(system):
        from checks import Refused, Wrong

        mpiexec = [str(Path(sys.prefix) / "bin" / system.LAUNCH[0]), *system.LAUNCH[1:]]
        done = subprocess.run([*mpiexec, "-n", "2", sys.executable, "-B", str(MESSAGES), check],
                              capture_output=True, text=True, timeout=100)
        lines = [line for line in done.stdout.splitlines() if line.startswith("SAID ")]
        if done.returncode or not lines:
            raise Wrong(f"exit code {done.returncode}: {(done.stderr or done.stdout)[-300:]}")
        if lines[0].startswith("SAID refused "):
            raise Refused(lines[0].removeprefix("SAID refused "))
        return lines[0].removeprefix("SAID ")
    return run


CHECKS = {name: ranks(name) for name in
          ("import", "import 0-d", "import empty", "import transposed", "import reversed",
           "import gapped", "import byte_offset", "import unaligned", "import read-only",
           "import read-only receive", "import deleter", "dtypes")}

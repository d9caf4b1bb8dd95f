"""An MPI program without a compiler: every rank adds one to a sum that all of them get."""

import ctypes
import socket
import sys

mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)


def handle(name: str) -> ctypes.c_void_p:
    """One of Open MPI's constants."""
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))


mpi.MPI_Init(None, None)
one, total, rank = ctypes.c_int(1), ctypes.c_int(), ctypes.c_int()
world = handle("ompi_mpi_comm_world")
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Allreduce(
    ctypes.byref(one),
    ctypes.byref(total),
    1,
    handle("ompi_mpi_int"),
    handle("ompi_mpi_op_sum"),
    world,
)
sys.stdout.write(f"rank {rank.value} of {total.value} on {socket.gethostname()}\n")
mpi.MPI_Finalize()

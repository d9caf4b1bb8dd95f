"""Programs find the RDMA libraries, and may lock what they are allowed to."""

import pytest

from molecule.conftest import On

ASK_VERBS = """
import ctypes
number = ctypes.c_int(-1)
verbs = ctypes.CDLL("libibverbs.so.1", use_errno=True)
verbs.ibv_get_device_list.restype = ctypes.c_void_p
devices = verbs.ibv_get_device_list(ctypes.byref(number))
print(number.value if devices else ctypes.get_errno())
"""


def test_programs_can_ask_for_devices(on: On, machine: str) -> None:
    # No devices, or no kernel support (ENOSYS): the library is there and answers.
    assert on(machine, "python3", "-c", ASK_VERBS).stdout in {"0\n", "38\n"}


@pytest.mark.parametrize("command", ["ibstat", "ibv_devinfo", "ib_write_bw"])
def test_tools_are_there(on: On, machine: str, command: str) -> None:
    assert on(machine, "sh", "-c", f"command -v {command}").stdout.startswith("/")


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_a_session_may_lock_what_was_said(on: On, machine: str, user: str) -> None:
    limit = on(machine, "runuser", "-l", user, "-s", "/bin/bash", "-c", "ulimit -l").stdout
    assert limit == "40\n"


def test_slurmd_may_lock_what_was_said(on: On, machine: str) -> None:
    unit = "[Service]\nExecStart=sleep 60\n"
    on(machine, "sh", "-c", "cat > /run/systemd/system/slurmd.service", data=unit)
    on(machine, "systemctl", "daemon-reload")
    assert (
        on(machine, "systemctl", "show", "--property=LimitMEMLOCK", "slurmd").stdout == "LimitMEMLOCK=40960\n"
    )

"""What the figures were measured on."""

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

from deploy import __version__


def describe() -> dict[str, str]:
    """The machine and the software, a line each; the load tells whether the machine was quiet."""
    return {
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory_gib()} GiB",
        "system": f"{_system()}, Linux {os.uname().release}",
        "load": "{:.1f} {:.1f} {:.1f} at the start".format(*os.getloadavg()),
        "software": f"deploy {__version__}, ansible-core {version('ansible-core')},"
        f" mitogen {version('mitogen')}, Python {platform.python_version()}",
    }


def _processor() -> str:
    found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text("ascii"), re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def _memory_gib() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return "unknown"

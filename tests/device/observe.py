#!/usr/bin/python3
"""What a machine with real GPUs says, and what this project's code makes of it. Changes no setting of a GPU.

As root, from the top of a checkout: ``python3 tests/device/observe.py DIRECTORY``. Into the directory it
writes a file per command, and ``ours.json``: by name what our readers of devices, driver, health and MIG
return.
It needs the standard library alone. Exit code 1: one of ours broke.
"""

from __future__ import annotations

import importlib
import json
import runpy
import subprocess
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 40
_CSV = "--format=csv,noheader,nounits"
_FIELDS = (
    ("ecc.errors.uncorrected.volatile.total", "0"),
    ("retired_pages.pending", "No"),
    ("remapped_rows.pending", "No"),
    ("remapped_rows.failure", "No"),
    ("gpu_recovery_action", "None"),
)
"""As node_health asks for them, with what is healthy."""

COMMANDS = {
    "system": "uname -a; cat /etc/os-release; lscpu; head -n 3 /proc/meminfo; df -h; cat /proc/self/mounts",
    "control-groups": "cat /proc/self/cgroup /sys/fs/cgroup/cgroup.controllers",
    "devices": "ls -lR /dev | grep -i nvidia; grep -i nvidia /proc/devices",
    "pci": "cd /sys/bus/pci/devices; for d in *; do echo $d $(cat $d/vendor $d/device $d/class); done",
    "driver": 'cd /proc/driver/nvidia && find . -type f | while read f; do echo "== $f"; cat $f; done',
    "modules": "modinfo nvidia; modprobe --set-version $(uname -r) --show-depends nvidia",
    "libraries": "ldconfig -p | grep -i -e nvidia -e libcuda -e libnccl",
    "kernel-log": "dmesg | grep -i -e nvrm -e xid -e nvidia",
    "smi": "nvidia-smi; nvidia-smi -L; nvidia-smi topo -m; nvidia-smi nvlink --status",
    "smi-query": "nvidia-smi -q",
    "smi-fields": "nvidia-smi --help-query-gpu",
    "smi-unknown-field": f"nvidia-smi --query-gpu=index,no.such.field {_CSV}",
    "mig-profiles": "nvidia-smi mig -lgip",
    "mig-placements": "nvidia-smi mig -lgipp",
    "mig-instances": "nvidia-smi mig -lgi",
}


def said(command: str) -> str:
    """Output of a command, and its exit code where that is not 0, as text for a file."""
    try:
        done = subprocess.run(
            ("sh", "-c", command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_SECONDS} s\n"
    return done.stdout + ("" if done.returncode == 0 else f"exit code {done.returncode}\n")


def ours() -> Iterator[tuple[str, Callable[[], object]]]:
    """Our readers, by name."""
    # On hosts these modules lie in Ansible's package; here its name stands for the directory they are in.
    for name in ("ansible", "ansible.module_utils"):
        package = types.ModuleType(name)
        package.__path__ = [str(ROOT / "playbooks/module_utils")]
        sys.modules[name] = package
    sys.path[:0] = [
        str(ROOT / "roles/node_health/files/usr/local/lib/node_health"),
        str(ROOT / "playbooks/module_utils"),
    ]
    health = importlib.import_module("health_checks")
    hardware = importlib.import_module("node_hardware")
    pci = importlib.import_module("nvidia_devices")
    driver = importlib.import_module("host_checks.nvidia_driver")
    load = runpy.run_path(str(ROOT / "deploy/validate/programs/load.py"))
    mig = runpy.run_path(str(ROOT / "roles/mig/files/deploy_mig.py"))
    proc, dev, sysfs, root = (Path(place) for place in ("/proc", "/dev", "/sys", "/"))
    devices = pci.read_devices(sysfs)
    contract: dict[str, Any] = {
        "contract": {"gpus": [{"type": "gpu", "count": 1}]},
        "gpu_fields": [{"field": name, "healthy": [right], "optional": True} for name, right in _FIELDS],
    }

    yield "devices", lambda: [str(device) for device in devices]
    yield "architectures", lambda: [str(pci.architecture(one.number)) for one in devices if one.is_gpu]
    yield "types by number", lambda: list(pci.gpu_types(devices))
    yield "fabric", lambda: pci.fabric(devices)
    yield "hardware", lambda: hardware.discover_hardware(health.output)
    yield "gpus by driver", lambda: hardware.read_gpus(proc, dev, sysfs)
    yield "driver", lambda: [driver.running_version(root), driver.library_version(root)]
    yield "gpu answers", lambda: health.gpu_answers(contract["gpu_fields"])
    yield "gpu faults", lambda: [str(fault) for fault in health.Checks(contract)._gpu_faults()]
    yield "burn-in sample", load["gpu_sample"]
    yield "mig without a layout", lambda: mig["Gpus"]([]).differences()


def main() -> int:
    """Ask everything, write everything."""
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    for name, command in COMMANDS.items():
        (place / f"{name}.txt").write_text(f"$ {command}\n{said(command)}", encoding="utf-8")
    found: dict[str, object] = {}
    broken = 0
    for name, read in ours():
        try:
            found[name] = read()
        except Exception:  # noqa: BLE001 - what breaks on real hardware is what this looks for
            broken = 1
            found[name] = traceback.format_exc().splitlines()
    text = json.dumps(found, indent=1, default=str)
    (place / "ours.json").write_text(f"{text}\n", encoding="utf-8")
    sys.stdout.write(f"{text}\n")
    return broken


if __name__ == "__main__":
    sys.exit(main())

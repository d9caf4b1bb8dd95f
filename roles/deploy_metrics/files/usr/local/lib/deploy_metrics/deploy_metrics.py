#!/usr/bin/python3
"""Leaves numbers of this host for the node exporter, which it cannot know itself.

What deploy recorded here and when, which slurm.conf is in use, whether munge works, and whether the NVIDIA
driver in the kernel is the one of its library.

``deploy_metrics.py FILE``: FILE is replaced as a whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_SECONDS = 10
_RECORDS = Path("var/lib/deploy/converged")
_OF_DRAINS = Path("var/lib/deploy")
# What slurmd and sackd got from the controller, then what a controller reads.
_CONFIGURATIONS = (Path("run/slurm/conf/slurm.conf"), Path("etc/slurm/slurm.conf"))
_MODULE = re.compile(r"Kernel Module(?: for \S+)?\s+(\S+)")
_LIBRARY = re.compile(r"libnvidia-ml\.so\.(\d+\.\d[\d.]*)$")
# The places of host_checks/nvidia_driver.py, which a test compares with these.
_LIBRARIES = ("usr/lib/*", "usr/lib/*/nvidia/current", "usr/lib64", "usr/lib", "usr/local/nvidia/lib64")
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Sample = tuple[Mapping[str, str], float]


def text(root: Path, *, munge_works: bool | None) -> str:
    """Everything in Prometheus's text format; ``munge_works`` is None where there is no munge."""
    converged, versions = _records(root)
    blocks = [
        _block(
            "deploy_phase_converged_timestamp_seconds",
            "When a phase of deploy last did something here.",
            converged,
        ),
        _block("deploy_phase_info", "1, with the version of deploy that converged a phase.", versions),
        _block(
            "deploy_slurm_configuration_info",
            "1, with the checksum of the slurm.conf in use.",
            list(_configuration(root)),
        ),
        _block(
            "deploy_munge_success",
            "Whether munge can read its own message.",
            [] if munge_works is None else [({}, float(munge_works))],
        ),
        _block(
            "deploy_nvidia_driver_match",
            "Whether the driver in the kernel is the one of its library.",
            list(_driver(root)),
        ),
        _block(
            "deploy_drain_timestamp_seconds",
            "When a drain of deploy node drain was made, with the reason that Slurm shows for it.",
            list(_drains(root)),
        ),
    ]
    return "".join(blocks)


def _block(name: str, meaning: str, samples: list[Sample]) -> str:
    if not samples:
        return ""
    lines = [f"# HELP {name} {meaning}", f"# TYPE {name} gauge"]
    for labels, value in samples:
        inner = ",".join(f'{key}="{content.translate(_ESCAPES)}"' for key, content in labels.items())
        lines.append(f"{name}{{{inner}}} {value!r}" if inner else f"{name} {value!r}")
    return "\n".join(lines) + "\n"


def _records(root: Path) -> tuple[list[Sample], list[Sample]]:
    """When each phase was recorded, and by which version; a record that cannot be read is none."""
    converged: list[Sample] = []
    versions: list[Sample] = []
    for path in sorted((root / _RECORDS).glob("*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            at, version = float(record["at"]), str(record["version"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        converged.append(({"phase": path.stem}, at))
        versions.append(({"phase": path.stem, "version": version}, 1.0))
    return converged, versions


def _drains(root: Path) -> Iterator[Sample]:
    """The ledger of drains, which controllers have; the reasons of others are Slurm's to tell."""
    try:
        for entry in _ledger(root / _OF_DRAINS):
            if not entry.get("is_foreign"):
                reason = f"deploy: {entry['why']} ({entry['who']})"
                yield {"node": entry["node"], "reason": reason}, float(entry["since"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return


def _ledger(directory: Path) -> list[dict[str, Any]]:
    """Of several controllers it is in a directory that they share; one that is not root's alone is none."""
    handle = None
    try:
        if (directory / "ledger.json").exists():
            shared = json.loads((directory / "ledger.json").read_text(encoding="utf-8"))["directory"]
            handle = os.open(shared, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            about = os.fstat(handle)
            if about.st_uid != os.geteuid() or about.st_mode & 0o077:
                return []
            directory = Path(f"/proc/self/fd/{handle}")
        return list(json.loads((directory / "drains.json").read_text(encoding="utf-8")))
    finally:
        if handle is not None:
            os.close(handle)


def _configuration(root: Path) -> Iterator[Sample]:
    for path in _CONFIGURATIONS:
        try:
            content = (root / path).read_bytes()
        except OSError:
            continue
        # Debian 12's slurmd wants an empty one where it gets its own from the controller.
        if content.strip():
            yield {"sha256": hashlib.sha256(content).hexdigest()}, 1.0
            return


def _driver(root: Path) -> Iterator[Sample]:
    """Nothing where no driver is loaded."""
    try:
        loaded = _MODULE.search((root / "proc/driver/nvidia/version").read_text(encoding="utf-8"))
    except OSError:
        return
    names = (path.name for place in _LIBRARIES for path in root.glob(f"{place}/libnvidia-ml.so.*"))
    found = sorted({match[1] for name in names if (match := _LIBRARY.match(name))})
    module, library = loaded[1] if loaded else "unknown", found[-1] if found else "none"
    yield {"module": module, "library": library}, float(module == library)


def munge_works() -> bool | None:
    """Whether what munge wraps can be unwrapped; None where it is not installed."""
    try:
        wrapped = subprocess.run(["munge", "--no-input"], capture_output=True, timeout=_SECONDS, check=False)
        unwrapped = subprocess.run(
            ["unmunge"], input=wrapped.stdout, capture_output=True, timeout=_SECONDS, check=False
        )
    except FileNotFoundError:
        return None
    except (OSError, subprocess.TimeoutExpired):
        return False
    return wrapped.returncode == 0 and unwrapped.returncode == 0


def replace(file: Path, content: str) -> None:
    """Nobody reads half of it."""
    fresh = file.with_suffix(".new")
    fresh.write_text(content, encoding="utf-8")
    fresh.chmod(0o644)
    os.replace(fresh, file)  # noqa: PTH105 - one call of the system's, whole or not at all


def main(arguments: list[str]) -> int:
    """Exit code 1 when the file cannot be written, with a line that says why."""
    file = Path(arguments[0])
    try:
        replace(file, text(Path("/"), munge_works=munge_works()))
    except OSError as problem:
        sys.stderr.write(f"deploy_metrics: {file}: {problem.strerror}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

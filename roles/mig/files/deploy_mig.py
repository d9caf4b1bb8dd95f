#!/usr/bin/python3
"""Divides this machine's GPUs as /etc/deploy/mig.json says: ``deploy-mig check`` or ``deploy-mig apply``.

``check`` prints what differs, one line each. ``apply`` changes only the GPUs that differ; its exit code is
3 when a GPU changes its mode only by a reboot. Jobs must not use these GPUs meanwhile. It stands alone,
because it runs at boot.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

LAYOUT = Path("/etc/deploy/mig.json")
NEEDS_REBOOT = 3
HOLDERS = (
    *("gpu_exporter.service", "nvidia-dcgm-exporter.service"),
    *("nvidia-dcgm.service", "dcgm.service", "nvsm.service", "nvidia-persistenced.service"),
)
"""What keeps GPUs open beside jobs, in the order in which it is stopped; in deploy/run/remedies.py, too."""
Run = Callable[..., str]


class RefusedError(Exception):
    """A command failed; the text is what it said."""

    def __init__(self, command: Sequence[str], said: str) -> None:
        super().__init__(f"{' '.join(command)}: {said.strip()}" if command else said)


def run(*command: str, may_fail: bool = False) -> str:
    """The output of a command that has to succeed, or may find nothing."""
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as problem:
        raise RefusedError(command, problem.strerror or str(problem)) from problem
    if answer.returncode != 0 and not may_fail:
        raise RefusedError(command, answer.stdout + answer.stderr)
    return answer.stdout


def parse_modes(text: str) -> dict[int, tuple[str, str]]:
    """Current and pending mode by GPU, from nvidia-smi's query of index and both."""
    rows = (line.split(", ") for line in text.splitlines() if line.count(", ") == 2)  # noqa: PLR2004
    return {int(index): (current, pending) for index, current, pending in rows}


def parse_instances(text: str) -> dict[int, list[str]]:
    """The profiles of the GPU instances by GPU, sorted, from the table of `nvidia-smi mig -lgi`."""
    found: dict[int, list[str]] = {}
    for index, profile in re.findall(r"^\|\s+(\d+)\s+MIG (\S+)\s", text, re.MULTILINE):
        found.setdefault(int(index), []).append(profile)
    return {index: sorted(profiles) for index, profiles in found.items()}


class Profile(NamedTuple):
    """What a GPU can be divided into: so many at most, each ``size`` slices long from a start on."""

    count: int
    starts: tuple[int, ...]
    size: int


def parse_profiles(table: str, places: str) -> dict[int, dict[str, Profile]]:
    """By GPU and name, from `nvidia-smi mig -lgip` and `-lgipp`, which answer whether MIG is on or off."""
    found: dict[int, dict[str, Profile]] = {}
    where = {
        (int(index), int(number)): (tuple(map(int, starts.split(","))), int(size))
        for index, number, starts, size in re.findall(
            r"^GPU\s+(\d+)\s+Profile ID\s+(\d+)\s+Placements?\s*:\s*\{([\d,]+)\}:(\d+)", places, re.MULTILINE
        )
    }
    rows = re.findall(r"^\|\s+(\d+)\s+MIG (\S+)\s+(\d+)\s+\d+/(\d+)\s", table, re.MULTILINE)
    for index, name, number, count in rows:
        if (int(index), int(number)) in where:
            starts, size = where[int(index), int(number)]
            found.setdefault(int(index), {})[name] = Profile(int(count), starts, size)
    return found


def fit(profiles: Sequence[Profile], taken: frozenset[int] = frozenset()) -> bool:
    """Whether there are slices for all of them at once."""
    if not profiles:
        return True
    first, *others = profiles
    places = (frozenset(range(start, start + first.size)) for start in first.starts)
    return any(fit(others, taken | place) for place in places if not place & taken)


def unfit(shall: Mapping[int, Sequence[str]], profiles: Mapping[int, Mapping[str, Profile]]) -> Iterator[str]:
    """In words, what no GPU can be divided into; nothing is said of GPUs whose profiles are not known."""
    for index, names in shall.items():
        known = profiles.get(index)
        if not known:
            continue
        missing = sorted({name for name in names if name not in known})
        if missing:
            yield f"GPU {index}: it has no {' and no '.join(missing)}; it has {' '.join(known)}"
        elif any(names.count(name) > known[name].count for name in names) or not fit(
            [known[name] for name in names]
        ):
            yield f"GPU {index}: {' '.join(names)} do not fit on it together; see: nvidia-smi mig -lgipp"


def _largest_first(profile: str) -> tuple[int, int]:
    """Large ones fit at few places; of the same number of compute slices some have more memory."""
    compute, _, memory = profile.partition("g.")
    return -int(compute), -int(re.match(r"\d*", memory)[0] or 0)  # type: ignore[index] - it matches nothing, too


def wanted(layout: Iterable[Mapping[str, Any]], gpus: Iterable[int]) -> dict[int, list[str]]:
    """The profiles that each GPU shall have, large ones first, because they fit at few places."""
    there = list(gpus)
    found: dict[int, list[str]] = {}
    for entry in layout:
        for index in entry.get("gpus") or there:
            found[index] = sorted(entry["devices"], key=_largest_first)
    return found


def differences(
    shall: Mapping[int, Sequence[str]],
    modes: Mapping[int, tuple[str, str]],
    instances: Mapping[int, Sequence[str]],
) -> dict[int, str]:
    """In words, by GPU, what is not as it should be."""
    found = {}
    for index in sorted({*shall, *modes}):
        if index not in modes:
            found[index] = f"GPU {index}: it is in the layout, and not in this machine"
            continue
        current, pending = modes[index]
        want, have = list(shall.get(index, [])), list(instances.get(index, []))
        if want and current == "[N/A]":
            found[index] = f"GPU {index}: it cannot be divided"
        elif want and pending != "Enabled":
            found[index] = f"GPU {index}: MIG is off"
        elif want and current != "Enabled":
            found[index] = f"GPU {index}: MIG waits for a reboot"
        elif not want and pending == "Enabled":
            found[index] = f"GPU {index}: MIG is on, and the layout does not name it"
        elif not want and current == "Enabled":
            found[index] = f"GPU {index}: MIG waits for a reboot"
        elif sorted(want) != sorted(have):
            found[index] = f"GPU {index}: {' '.join(have) or 'nothing'} instead of {' '.join(want)}"
    return found


class Gpus:
    """The GPUs of this machine, through nvidia-smi."""

    def __init__(self, layout: Iterable[Mapping[str, Any]], command: Run = run) -> None:
        self._run = command
        self._layout = list(layout)

    def differences(self) -> dict[int, str]:
        """What is not as it should be."""
        query = "--query-gpu=index,mig.mode.current,mig.mode.pending"
        self.modes = parse_modes(self._run("nvidia-smi", query, "--format=csv,noheader"))
        instances = parse_instances(self._run("nvidia-smi", "mig", "-lgi", may_fail=True))
        self.shall = wanted(self._layout, self.modes)
        found = differences(self.shall, self.modes, instances)
        self._refuse_unfit({index: names for index, names in self.shall.items() if index in found})
        return found

    def _refuse_unfit(self, divided: Mapping[int, Sequence[str]]) -> None:
        """Raises RefusedError where a GPU that is to be divided cannot be divided so."""
        if not divided:
            return
        table, places = (self._run("nvidia-smi", "mig", what, may_fail=True) for what in ("-lgip", "-lgipp"))
        if problems := list(unfit(divided, parse_profiles(table, places))):
            raise RefusedError((), "; ".join(problems))

    def apply(self) -> int:
        """Changes what differs; returns the exit code."""
        different = self.differences()
        for index, what in different.items():
            if index not in self.modes or self.modes[index][0] == "[N/A]":
                raise RefusedError((), what)
        self._set_modes(different)
        different = self.differences()
        for index in [number for number, what in different.items() if "reboot" not in what]:
            number = str(index)
            self._run("nvidia-smi", "mig", "-i", number, "-dci", may_fail=True)
            self._run("nvidia-smi", "mig", "-i", number, "-dgi", may_fail=True)
            if self.shall.get(index):
                self._run("nvidia-smi", "mig", "-i", number, "-cgi", ",".join(self.shall[index]), "-C")
        left = self.differences()
        if any("reboot" not in what for what in left.values()):
            raise RefusedError((), "; ".join(left.values()))
        return NEEDS_REBOOT if left else 0

    def _set_modes(self, different: Mapping[int, str]) -> None:
        """Turns MIG on or off; daemons that hold GPUs would make that wait for a reboot."""
        turns = [
            (index, bool(self.shall.get(index)))
            for index in different
            if bool(self.shall.get(index)) != (self.modes[index][1] == "Enabled")
        ]
        if not turns:
            return
        states = self._run("systemctl", "is-active", *HOLDERS, may_fail=True).split()
        active = [name for name, state in zip(HOLDERS, states) if state == "active"]  # noqa: B905 - Python 3.9
        for name in active:
            self._run("systemctl", "stop", name)
        try:
            for index, on in turns:
                if not on:
                    self._run("nvidia-smi", "mig", "-i", str(index), "-dci", may_fail=True)
                    self._run("nvidia-smi", "mig", "-i", str(index), "-dgi", may_fail=True)
                self._run("nvidia-smi", "-i", str(index), "-mig", "1" if on else "0")
        finally:
            for name in reversed(active):
                self._run("systemctl", "start", name)


def main(arguments: Sequence[str]) -> int:
    """Check or apply."""
    gpus = Gpus(json.loads(LAYOUT.read_text(encoding="utf-8")))
    try:
        if arguments == ["check"]:
            sys.stdout.write("".join(f"{what}\n" for what in gpus.differences().values()))
            return 0
        if arguments == ["apply"]:
            return gpus.apply()
    except RefusedError as problem:
        sys.stderr.write(f"deploy-mig: {problem}\n")
        return 1
    sys.stderr.write("usage: deploy-mig check | apply\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Whether all machines are as they were when nothing had happened yet; they are asked at once."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from tests.cluster.lab_cluster import DAEMONS, Cluster
from tests.power.lab import CONTROLLER, HOSTS, NODES

_Answer = TypeVar("_Answer")
_POLL = 2
_UNTIL_BOOTED = 300
_WELL = ("idle", "mix", "alloc", "comp", "plnd")
_LOOKS = f"""
systemctl is-system-running
echo $(systemctl --failed --plain --no-legend | cut -d' ' -f1)
echo /home: $(findmnt --noheadings --output=FSTYPE /home)
echo $(systemctl is-active {" ".join(DAEMONS)})
"""
_LINES = 4


@dataclass
class Watch:
    """A lab; how its machines stood when this was made is how they have to be."""

    cluster: Cluster
    say: Callable[[str], None]
    stood: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        def has_booted() -> bool:
            self.stood = self._looks()
            return all(said[:1] in (["running"], ["degraded"]) for said in self.stood.values())

        if not self.wait("the lab has booted", has_booted, _UNTIL_BOOTED):
            message = f"the lab has not booted: {self.stood}"
            raise RuntimeError(message)

    def wrong(self) -> list[str]:
        """What is not as it was before."""
        found = []
        for host, said in self._looks().items():
            if len(said) < _LINES:
                found.append(f"{host} does not answer")
                continue
            found += [
                f"{host}: {now or 'no failed unit'}"
                for now, was in zip(said, self.stood[host], strict=True)
                if now != was
            ]
        # The controller is asked for nodes when it has booted: what it says is worth the time then.
        return found or [f"{node} is {state}" for node, state in self._states().items() if state not in _WELL]

    def answers(self, *hosts: str) -> bool:
        """Whether they do."""
        return all(at_once(*(lambda host=host: self.asked(host, "echo", "here") for host in hosts)))

    def asked(self, host: str, *words: str, seconds: int = 30) -> str:
        """What a host says; nothing where it does not answer."""
        try:
            return self.cluster.on(host, "timeout", str(seconds), *words, expect=None, seconds=seconds + 5)
        except subprocess.TimeoutExpired:
            return ""

    def wait(self, what: str, condition: Callable[[], bool], seconds: float) -> bool:
        """Whether it came true."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                self.say(f"  after {seconds:.0f} s still not: {what}")
                return False
            time.sleep(_POLL)
        return True

    def _looks(self) -> dict[str, list[str]]:
        """By host whether all of it has booted, what has failed, what /home is, which daemons run."""
        said = at_once(*(lambda host=host: self.asked(host, "sh", "-c", _LOOKS, seconds=5) for host in HOSTS))
        return {
            host: [line.strip() for line in text.splitlines()] for host, text in zip(HOSTS, said, strict=True)
        }

    def _states(self) -> dict[str, str]:
        words = ("sinfo", "--noheader", "--partition=main", "--Node", "--format=%N %t")
        lines = [line.split() for line in self.asked(CONTROLLER, *words).splitlines()]
        return dict.fromkeys(NODES, "unknown") | {
            line[0]: line[1].rstrip("*") for line in lines if len(line) == 2
        }


def at_once(*calls: Callable[[], _Answer]) -> list[_Answer]:
    """What each returns."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]

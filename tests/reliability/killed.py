"""`make kills`: deploy is killed (SIGKILL) at random moments, and what the next run makes of it.

A first deployment is killed again and again before one may end. A change of the site, and a failover, are
each followed by a run that has to end well. After each kill every file that deploy writes is read.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from deploy.lab.state import need_lab
from tests.bench import machine
from tests.cluster.lab_cluster import DEPLOY, Cluster, run
from tests.command_line import positive, say
from tests.reliability.halves import forgotten, halves
from tests.reliability.kills import KILL_HEAD, is_kill_fault, kill_table

HOSTS = ("ctl1", "ctl2", "login1")
KINDS = {
    "first": "`deploy cluster` on new machines, again and again before one ends",
    "change": "`deploy cluster` after a change of slurm.conf, slurmdbd.conf, MariaDB's settings and the"
    " message of the day",
    "failover": "`deploy failover`, or `deploy failback` where the second one leads",
}
_SHARES = {"first": 0.2, "change": 0.5, "failover": 0.3}
_INTERRUPTED = 130
_MARK = "DEPLOY_KILLED"
_FIRST_SECONDS, _RUN_SECONDS, _FAILOVER_SECONDS = 150.0, 25.0, 15.0
_SECONDS_TO_END = 120
_ROOTS = (
    "/var/lib/deploy",
    "/etc/slurm",
    "/etc/mysql",
    "/etc/systemd/system",
    "/etc/ssh",
    "/etc/apt",
    "/etc/default",
    "/etc/sysctl.d",
    "/etc/security",
    "/etc/profile.d",
    "/etc/motd",
    "/etc/hosts",
    "/etc/chrony",
    "/etc/pam.d",
    "/etc/sudoers.d",
    "/usr/local",
)
_READER = """
import json, os, sys
found = {}
for root in sys.argv[1:]:
    below = [os.path.join(place, name) for place, _, names in os.walk(root) for name in names]
    for path in [root] if os.path.isfile(root) else below:
        if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > 1 << 20:
            continue
        with open(path, "rb") as file:
            found[path] = file.read().decode("latin-1")
print(json.dumps(found))
"""


@dataclass
class Kills:
    """Rounds on a lab: each kills a run, reads what it left, and looks at the next run."""

    cluster: Cluster
    chance: random.Random
    changes: int = 0
    lasts: dict[str, float] = field(
        default_factory=lambda: {
            "first": _FIRST_SECONDS,
            "change": _RUN_SECONDS,
            "failover": _FAILOVER_SECONDS,
        }
    )
    """For how many seconds such a run lasts, by the last one that came to its end."""

    def first(self, times: int) -> list[dict[str, Any]]:
        """A first deployment, of which the last that is killed is followed by one that may end."""
        return [self._round("first", self._deploys(), follows=number + 1 == times) for number in range(times)]

    def change(self) -> dict[str, Any]:
        """A change of the site."""
        self.changes += 1
        self._edit(self.changes)
        return self._round("change", self._deploys(), follows=True)

    def failover(self) -> dict[str, Any]:
        """A move of the lead."""
        verb = "failover" if self._leaders() == ["ctl1"] else "failback"
        return self._round("failover", (*DEPLOY, verb, str(self.cluster.inventory), "--yes"), follows=True)

    def _deploys(self) -> tuple[str, ...]:
        return (
            *DEPLOY,
            "cluster",
            str(self.cluster.inventory),
            "--output",
            "plain",
            "--no-validate",
            "--yes",
        )

    def _edit(self, number: int) -> None:
        """Other values than before for what several phases write."""
        path = self.cluster.directory / "group_vars" / "all" / "killed.yml"
        common = self.cluster.directory / "group_vars" / "all.yml"
        if common.exists():
            path.parent.mkdir(exist_ok=True)
            common.rename(path.parent / "lab.yml")
        said = {
            "slurmctld_parameters": {"MessageTimeout": 20 + number % 30},
            "slurmdbd_parameters": {"MessageTimeout": 20 + number % 30},
            "mariadb_parameters": {"max_connections": 150 + number},
            "motd_text": [f"change {number}"],
        }
        path.write_text(yaml.safe_dump(said), encoding="utf-8")

    def _round(self, kind: str, command: tuple[str, ...], *, follows: bool) -> dict[str, Any]:
        before, mark = self._files(), f"{time.time_ns()}"
        moment = self.chance.uniform(0, self.lasts[kind])
        was_over, lasted = _killed(command, moment, mark)
        if was_over:
            self.lasts[kind] = lasted
        processes = _left_running(mark)
        locks, left = self._locks(), self._files()
        one: dict[str, Any] = {
            "after": round(lasted, 1),
            "was_over": was_over,
            "files": len(left),
            "processes": processes,
            "locks": locks,
            "next": None,
            "failed": False,
            "wrong": [],
            "forgotten": [],
        }
        after = left
        if follows:
            began = time.monotonic()
            done = run(*self._deploys(), expect=None, seconds=1200)
            one["next"], one["failed"] = round(time.monotonic() - began, 1), done.returncode != 0
            if done.returncode:
                say(done.stdout[-3000:] + done.stderr[-3000:])
            after = self._files()
            one["wrong"], one["forgotten"] = self._wrong(), forgotten(before, after)
        one["half"] = [f"{path}: {why}" for path, why in halves(before, left, after)]
        say(f"  {json.dumps(one)}")
        return one

    def _files(self) -> dict[str, str]:
        """What deploy writes, here and on the hosts, by where it is."""
        site = self.cluster.directory
        found = {
            f"site:{path.relative_to(site)}": path.read_bytes().decode("latin-1")
            for path in site.rglob("*")
            if path.is_file() and not path.is_symlink() and ".lab" not in path.parts
        }
        for host in HOSTS:
            said = json.loads(self.cluster.on(host, "python3", "-c", _READER, *_ROOTS))
            found |= {f"{host}:{path}": content for path, content in said.items()}
        return found

    def _locks(self) -> list[str]:
        """The locks that somebody still holds when nobody is there any more."""
        places: dict[str, Callable[[], bool]] = {"the site's": lambda: _is_free_here(self.cluster.directory)}
        for host in ("ctl1", "ctl2"):
            places[f"that of the cluster on {host}"] = lambda host=host: self._is_free(host)  # type: ignore[misc]
        return [name for name, is_free in places.items() if not _waited(is_free)]

    def _is_free(self, host: str) -> bool:
        script = "test ! -e /run/deploy.lock || flock --nonblock /run/deploy.lock true && echo free"
        return "free" in self.cluster.on(host, "sh", "-c", script, expect=None)

    def _leaders(self) -> list[str]:
        said = run(*DEPLOY, "status", str(self.cluster.inventory), "--json", expect=None).stdout
        return [name for name, how in json.loads(said)["controllers"]["stands"].items() if how == "leads"]

    def _wrong(self) -> list[str]:
        """What is not as it should be after a run that ended well."""
        again = run(*DEPLOY, "plan", str(self.cluster.inventory), expect=None, seconds=600)
        wrong = [] if again.returncode == 0 else [f"deploy plan exits {again.returncode}"]
        if again.returncode:
            say(again.stdout[-2000:] + again.stderr[-2000:])

        def one_leads() -> bool:
            return len(self._leaders()) == 1

        if not _waited(one_leads):
            wrong.append(f"{len(self._leaders())} controllers lead")
        return wrong


def _killed(command: tuple[str, ...], moment: float, mark: str) -> tuple[bool, float]:
    """Kills a run after so many seconds: whether it was over before, and how long it ran."""
    began = time.monotonic()
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, _MARK: mark},
    ) as process:
        try:
            process.wait(timeout=moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            return False, time.monotonic() - began
    return True, time.monotonic() - began


def _left_running(mark: str) -> list[str]:
    """What a run started and is still there when it had its time to notice."""
    _waited(lambda: not _marked(mark))
    return _marked(mark)


def _marked(mark: str) -> list[str]:
    wanted, found = f"{_MARK}={mark}".encode(), []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (place / "environ").read_bytes().split(b"\0"):
                found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:80])
        except OSError:
            continue
    return found


def _is_free_here(site: Path) -> bool:
    lock = site / ".deploy" / "lock"
    said = run("flock", "--nonblock", str(lock), "true", expect=None) if lock.exists() else None
    return said is None or said.returncode == 0


def _waited(is_so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + _SECONDS_TO_END
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True


def main() -> int:
    """Exit code 0 where nothing was half written, no lock stayed, and each next run ended well."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    counts = {kind: max(1, round(options.rounds * _SHARES[kind])) for kind in options.only or KINDS}
    say(f"seed {seed}; kills: {counts}")
    about = {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        **machine.describe(),
        "labs": f"two controllers, a node that has the database and logins, too; seed {seed}",
    }
    os.environ.setdefault("XDG_STATE_HOME", tempfile.mkdtemp(prefix="kills-state-"))
    chance = random.Random(seed)  # noqa: S311 - no secret
    try:
        if options.lab:
            cluster = Cluster(options.lab, need_lab(options.lab).directory, "trixie")
            parts = _all(Kills(cluster, chance), counts, about, options.json)
        else:
            parts = _in_a_lab(chance, counts, about, options.json)
    except KeyboardInterrupt:
        say("kills: interrupted; its machines are gone")
        return _INTERRUPTED
    for line in (KILL_HEAD, *kill_table(parts)):
        sys.stdout.write(" | ".join(line) + "\n")
    return int(any(is_kill_fault(one) for part in parts.values() for one in part["rounds"]))


def _in_a_lab(
    chance: random.Random, counts: Mapping[str, int], about: Mapping[str, str], file: Path | None
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="kills-") as place:
        cluster = Cluster(f"test-kills-{os.getpid()}", Path(place) / "site", "trixie")
        try:
            cluster.up("--controllers", "2", "--nodes", "0", "--gpus", "0")
            text = cluster.inventory.read_text(encoding="utf-8")
            cluster.inventory.write_text(
                re.sub(r"^\[slurm-node\]\n", "[slurm-node]\nlogin1\n", text, flags=re.MULTILINE),
                encoding="utf-8",
            )
            return _all(Kills(cluster, chance), counts, about, file)
        finally:
            cluster.down()


def _all(
    kills: Kills, counts: Mapping[str, int], about: Mapping[str, str], file: Path | None
) -> dict[str, Any]:
    """All rounds; what is known is kept after each, should a later one not end."""
    parts: dict[str, Any] = {}

    def keep(kind: str, rounds: list[dict[str, Any]]) -> None:
        parts.setdefault(kind, {"what": KINDS[kind], **about, "rounds": []})["rounds"] += rounds
        if file:
            kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
            file.write_text(json.dumps({**kept, **parts}, indent=1) + "\n", encoding="utf-8")

    for kind, times in counts.items():
        say(f"{kind}: {times} kills")
        if kind == "first":
            keep(kind, kills.first(times))
            continue
        one = kills.change if kind == "change" else kills.failover
        for _ in range(times):
            keep(kind, [one()])
    return parts


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.reliability.killed", description=__doc__)
    parser.add_argument("--rounds", type=positive, default=30, help="kills (30), most of them of changes")
    only = "runs of this kind only; can be given several times"
    parser.add_argument("--only", action="append", choices=[*KINDS], help=only)
    parser.add_argument("--seed", type=int, help="decides the moments (by chance)")
    lab = "a lab that stands, made as this program makes it; it is left there"
    parser.add_argument("--lab", metavar="NAME", help=lab)
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures here, too, by kind")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

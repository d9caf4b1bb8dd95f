"""A Debian or Ubuntu host's package manager: its locks and lists, what it left half-way, what it installs."""

import fcntl
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.quiet_install import candidates, no_daemon_starts

_ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
_KEEP_CONFIGURATION = ("--force-confdef", "--force-confold")
_UNFINISHED = frozenset("HUFWt")
"""Second letters of dpkg's abbreviated status: half-installed, unpacked, half-configured, and triggers."""
_POLL_SECONDS = 2.0
_MISSED_SECONDS = 3600
"""How long lists of which some were missed count: their source may be gone for good."""
_MISSED = re.compile(r"^W: (Failed to fetch .*)$", re.MULTILINE)


@dataclass(frozen=True)
class Places:
    """Where the package manager keeps its state."""

    root: Path = Path("/")
    locks: tuple[str, ...] = (
        "var/lib/dpkg/lock-frontend",
        "var/lib/dpkg/lock",
        "var/lib/apt/lists/lock",
        "var/cache/apt/archives/lock",
    )
    stamps: tuple[str, ...] = ("var/lib/apt/lists", "var/lib/apt/periodic/update-success-stamp")

    @property
    def lists(self) -> Path:
        """The downloaded package lists."""
        return self.root / "var/lib/apt/lists"

    @property
    def missed(self) -> Path:
        """There since not all lists could be fetched: their times do not say it, nor do those of others."""
        return self.root / "var/lib/deploy/package-lists-missed"

    @property
    def updates(self) -> Path:
        """The journal that dpkg leaves behind when it is cut off."""
        return self.root / "var/lib/dpkg/updates"

    @property
    def sources(self) -> list[Path]:
        """The files that say where packages come from."""
        etc = self.root / "etc/apt"
        # The last one changes when a bundle becomes the source, and when it is none any more.
        return [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*")), etc / "deploy.sources.d"]


def installed(statuses: str) -> list[str]:
    """Names of the packages that are wholly installed, without their architectures."""
    pairs = (line.split(maxsplit=1) for line in statuses.splitlines() if line.strip())
    return sorted({name.split(":", 1)[0] for status, name in pairs if status == "ii"})


def unfinished(statuses: str) -> list[str]:
    """Names of packages that dpkg left half-way, from lines of ``<abbreviated status> <package>``."""
    pairs = (line.rsplit(maxsplit=1) for line in statuses.splitlines() if line.strip())
    return [name for status, name in pairs if status[1] in _UNFINISHED]


def lists_are_old(places: Places, now: float, hours: int) -> bool:
    """Whether there are no package lists, or old ones, or ones from before the sources were changed."""
    if not any(places.lists.glob("*_Packages*")):
        return True
    if places.missed.exists() and places.missed.stat().st_mtime < now - _MISSED_SECONDS:
        return True
    stamps = (places.root / name for name in places.stamps)
    refreshed = max(path.stat().st_mtime for path in stamps if path.exists())
    changed = max((path.stat().st_mtime for path in places.sources if path.exists()), default=0.0)
    return refreshed < max(now - hours * 3600, changed)


def list_options(places: Places) -> tuple[str, ...]:
    """For `apt-get update`: long descriptions of packages stay away from a host that has none.

    They are half of what apt reads, and no installation needs them (Acquire::Languages, apt.conf(5)). Where
    there are some, this option would remove them.
    """
    has_descriptions = any(places.lists.glob("*_i18n_Translation-*"))
    return () if has_descriptions else ("-o", "Acquire::Languages=none")


def held(paths: Iterable[Path]) -> Path | None:
    """The first of the lock files that another process holds."""
    for path in paths:
        if not path.exists():
            continue
        with path.open("r+b") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return path
    return None


def wait(
    holder: Callable[[], Path | None],
    timeout: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Path | None:
    """Waits until nobody holds a lock; returns the one that is still held at the end."""
    deadline = clock() + timeout
    while (lock := holder()) is not None and clock() < deadline:
        sleep(_POLL_SECONDS)
    return lock


class AptHost:
    """One host's package manager, driven by the module."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module
        self.places = Places()
        self.actions: list[str] = []

    def run(self, *command: str, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Runs a command; returns its exit code and its output."""
        variables = {**_ENVIRONMENT, **(environment or {})}
        code, out, err = self._module.run_command(list(command), environ_update=variables)
        return code, str(out) + str(err)

    def must(self, *command: str, environment: Mapping[str, str] | None = None) -> str:
        """Runs a command that has to succeed."""
        code, output = self.run(*command, environment=environment)
        if code != 0:
            self._module.fail_json(msg=f"{' '.join(command)}: {output.strip()[-1500:]}", actions=self.actions)
        return output

    def wait_for_locks(self) -> None:
        """Waits for other package managers."""
        timeout = self._module.params["lock_timeout"]
        lock = wait(lambda: held(self.places.root / name for name in self.places.locks), timeout)
        if lock is not None:
            self._module.fail_json(
                msg=f"another package manager has held {lock} for more than {timeout} seconds; "
                f"see who: fuser -v {lock}"
            )

    def broken(self, statuses: str) -> list[str]:
        """What an interrupted dpkg left: its journal, or packages half-way."""
        journal = (
            [path.name for path in self.places.updates.iterdir()] if self.places.updates.exists() else []
        )
        return unfinished(statuses) or [f"dpkg journal {name}" for name in journal]

    def statuses(self) -> str:
        """A line per package that dpkg knows: its abbreviated status and name."""
        return self.must("dpkg-query", "--show", "--showformat", "${db:Status-Abbrev} ${binary:Package}\n")

    def repair(self) -> None:
        """Completes an interrupted dpkg run; missing dependencies are fetched."""
        code, _ = self.run("dpkg", *_KEEP_CONFIGURATION, "--configure", "-a")
        if code != 0 or self.broken(self.statuses()):
            self.must(*_apt_get(), "--fix-broken", "install")
        if left := self.broken(self.statuses()):
            self._module.fail_json(
                msg=f"dpkg cannot complete {' '.join(left)}; see why: dpkg --audit", actions=self.actions
            )

    def refresh(self) -> list[str]:
        """Fetches the package lists and notes when that was; returns what of them could not be fetched.

        A server that is away is no failure to apt, which goes on with the lists of before.
        """
        said = self.must(*_apt_get(), *list_options(self.places), "update")
        # The lists carry the times of the archive, and apt leaves the directory alone when nothing is new.
        os.utime(self.places.lists)
        missed = [str(line) for line in _MISSED.findall(said)]
        if missed:
            self.places.missed.parent.mkdir(mode=0o755, exist_ok=True)
            self.places.missed.touch()
        else:
            self.places.missed.unlink(missing_ok=True)
        self.actions.append("package lists not fetched whole" if missed else "package lists refreshed")
        return missed

    def install(self, packages: list[str]) -> list[str]:
        """Installs those of the packages that the archive has, without starting their daemons."""
        known = candidates(self.run("apt-cache", "policy", *packages)[1])
        found = [name for name in packages if name in known]
        if found:
            self._install_quietly(found)
            self.actions.append(f"installed {' '.join(found)}")
        return found

    def restore(self, versions: list[str]) -> list[str]:
        """Brings packages that are older than ``name=version`` to that version; returns their names."""
        older = []
        for wanted in versions:
            name, _, version = wanted.partition("=")
            present = self.run("dpkg-query", "--show", "--showformat", "${Version}", name)[1]
            if self.run("dpkg", "--compare-versions", present, "lt", version)[0] == 0:
                known = self.run("apt-cache", "show", "--quiet=2", wanted)[0] == 0
                older.append(wanted if known else name)
        if older:
            if not self._module.check_mode:
                self._install_quietly(older)
            self.actions.append(f"restored {' '.join(older)}")
        return older

    def _install_quietly(self, packages: list[str]) -> None:
        """Starts no daemon, and tells systemd of all new units at once instead of after each package."""
        with no_daemon_starts() as environment:
            try:
                self.must(*_apt_get(), "install", *packages, environment=environment)
            finally:
                if environment and (self.places.root / "run/systemd/system").is_dir():
                    self.run("systemctl", "daemon-reload")


def _apt_get() -> tuple[str, ...]:
    options = [word for force in _KEEP_CONFIGURATION for word in ("-o", f"Dpkg::Options::={force}")]
    return ("apt-get", "--yes", "--quiet", "--no-install-recommends", *options)

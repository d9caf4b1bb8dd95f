"""What `deploy cluster` put in place on a host, read from the host: packages, accounts, files, services."""

import io
import re
import shlex
import tarfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.content import roles
from tests.bench.lab import BenchLab

WITHOUT_TEMPLATE = ("etc/hosts", "etc/environment", "etc/munge/munge.key")
"""Files that roles write without a template; the others' templates lie under the path of their target."""

DIRECTORIES = ("var/log/slurm", "var/spool/slurmctld", "var/spool/slurmd")
_FIRST_PERSON, _LAST_PERSON = 1000, 59999
_SYSTEM_ACCOUNTS_OF_DEPLOY = frozenset({"slurm"})

_READ = """\
dpkg-query --show --showformat '${binary:Package} ${db:Status-Status}\\n'
echo ---
getent group
echo ---
getent passwd
echo ---
systemctl list-units --type=service --state=active --plain --no-legend
"""


@dataclass(frozen=True)
class HostState:
    """What a host has."""

    packages: frozenset[str]
    groups: Mapping[str, int]
    users: Mapping[str, str]
    """Name -> line of /etc/passwd."""
    services: frozenset[str]


@dataclass(frozen=True)
class Installed:
    """What was added to one host."""

    packages: tuple[str, ...]
    groups: tuple[str, ...]
    """Lines for groupadd, as `name gid`."""
    users: tuple[str, ...]
    """Lines of /etc/passwd."""
    services: tuple[str, ...]
    files: bytes
    """A tar archive."""


def read_state(lab: BenchLab) -> dict[str, HostState]:
    """The present state of every host."""
    return {host: parse_state(lab.on(host, _READ).text) for host in lab.addresses}


def parse_state(text: str) -> HostState:
    """What the reading script printed."""
    packages, groups, users, services = text.split("---\n")
    return HostState(
        frozenset(name for name, status in _words(packages) if status == "installed"),
        {line.split(":")[0]: int(line.split(":")[2]) for line in groups.splitlines()},
        {line.split(":")[0]: line for line in users.splitlines()},
        frozenset(words[0] for words in _words(services) if "@" not in words[0]),
    )


def _words(text: str) -> Iterable[list[str]]:
    return (line.split() for line in text.splitlines() if line.strip())


def read_installed(lab: BenchLab, before: Mapping[str, HostState]) -> dict[str, Installed]:
    """What every host has now beyond what it had before."""
    after = read_state(lab)
    paths = " ".join(shlex.quote(path) for path in (*DIRECTORIES, *managed_files(roles())))
    archive = (
        f"cd /; for path in {paths}; do [ ! -e $path ] || echo $path; done"
        " | tar --create --no-recursion --files-from -"
    )
    return {host: added(before[host], after[host], lab.on(host, archive).output) for host in lab.addresses}


def managed_files(directory: Path) -> list[str]:
    """Paths below / of the files that the roles write."""
    templates = (
        path.relative_to(role / "templates").with_suffix("")
        for role in directory.iterdir()
        for path in role.glob("templates/**/*.j2")
    )
    return sorted({*map(str, templates), *WITHOUT_TEMPLATE})


def added(before: HostState, after: HostState, files: bytes) -> Installed:
    """The difference; accounts that packages make for themselves do not count."""
    new_users = [line for name, line in after.users.items() if name not in before.users]
    return Installed(
        packages=tuple(sorted(after.packages - before.packages)),
        groups=tuple(
            f"{name} {gid}"
            for name, gid in after.groups.items()
            if name not in before.groups and _is_ours(name, gid)
        ),
        users=tuple(line for line in new_users if _is_ours(line.split(":")[0], int(line.split(":")[2]))),
        services=tuple(sorted(after.services - before.services)),
        files=files,
    )


def _is_ours(name: str, number: int) -> bool:
    return name in _SYSTEM_ACCOUNTS_OF_DEPLOY or _FIRST_PERSON <= number <= _LAST_PERSON


def rewritten(archive: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """The archive with every file's content changed, and all else as it was."""
    result = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as source,
        tarfile.open(fileobj=result, mode="w") as target,
    ):
        for member in source:
            content = source.extractfile(member) if member.isfile() else None
            data = change(content.read()) if content else b""
            member.size = len(data)
            target.addfile(member, io.BytesIO(data))
    return result.getvalue()


def readdressed(old: Mapping[str, str], new: Mapping[str, str]) -> Callable[[bytes], bytes]:
    """Replaces the network of one lab, a /24, by that of another."""
    before, after = (next(iter(addresses.values())).rpartition(".")[0] for addresses in (old, new))
    pattern = re.compile(rb"(?<![\d.])" + re.escape(before.encode()) + rb"(?=\.\d)")
    return lambda content: pattern.sub(after.encode(), content)

"""What `deploy cluster` put in place on a host, read from the host: packages, accounts, files, services."""

import io
import json
import re
import shlex
import tarfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from deploy.run.host_records import DIRECTORY
from tests.bench.lab import BenchLab

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
    return {host: added(before[host], after[host], _archive(lab, host)) for host in lab.addresses}


def _archive(lab: BenchLab, host: str) -> bytes:
    """The files and directories of a host that its records name, as they lie there."""
    names = managed_files(lab.on(host, f"cat {DIRECTORY}/*.json").text)
    listed = " ".join(shlex.quote(name.removeprefix("/")) for name in names)
    present = f"for name in {listed}; do [ ! -e $name ] || echo $name; done"
    return lab.on(host, f"cd /; {present} | tar --create --no-recursion --files-from -").output


def managed_files(records: str) -> list[str]:
    """Paths that records of converged phases name, from the text of all of them."""
    decoder, found, place = json.JSONDecoder(), set(), 0
    while place < len(records.rstrip()):
        record, place = decoder.raw_decode(records, place)
        found |= {*record["managed"].get("files", ())}
    return sorted(found)


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
    pattern = re.compile(rb"(?<![\d.])" + re.escape(before.encode()) + rb"(?=\.[\d\[])")
    return lambda content: pattern.sub(after.encode(), content)

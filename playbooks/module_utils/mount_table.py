"""File systems as values: what is mounted, what fstab says, and what of it differs from what is wanted."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

NETWORK_KINDS = frozenset(
    {"nfs", "nfs4", "lustre", "beegfs", "ceph", "fuse.ceph", "glusterfs", "fuse.glusterfs", "cifs", "gpfs"}
)
_LARGEST_NUMBER_OF_ITS_OWN = 1024
"""Larger numbers are sizes, which the server may round down."""
_MOUNTINFO = Path("/proc/self/mountinfo")
_OCTAL = re.compile(r"\\([0-7]{3})")
_ALIASES = {"nfsvers": "vers"}
_OPPOSITES = (("ro", "rw"), ("hard", "soft"), ("suid", "nosuid"), ("dev", "nodev"), ("exec", "noexec"))
_SHOWN_WHEN_SET = ("nosuid", "nodev", "noexec")
"""Restrictions that the kernel shows where they are in force; their opposites it never shows."""
_OF_A_PLACE = ("ro", "noatime", "nodiratime", "relatime")
_SAME_KIND = {"nfs4": "nfs", "fuse.glusterfs": "glusterfs"}


@dataclass(frozen=True)
class Mount:
    """A file system at a place, as in a line of fstab."""

    source: str
    path: str
    kind: str
    options: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The line of fstab; file systems of this kind are never checked or dumped."""
        options = ",".join(self.options) or "defaults"
        return f"{_escaped(self.source)} {_escaped(self.path)} {self.kind} {_escaped(options)} 0 0\n"


def mounted() -> list[Mount]:
    """What is mounted now, in the order in which it was."""
    return parse_mountinfo(_MOUNTINFO.read_text(encoding="utf-8", errors="surrogateescape"))


def parse_mountinfo(text: str) -> list[Mount]:
    """The lines of /proc/self/mountinfo."""
    found = []
    for line in text.splitlines():
        place, _, source = line.partition(" - ")
        words, more = place.split(), source.split()
        options = dict.fromkeys([*words[5].split(","), *more[2].split(",")])
        if "ro" in options:
            # Either the place or the file system is for reading alone, so nobody writes here.
            options.pop("rw", None)
        found.append(Mount(_plain(more[1]), _plain(words[4]), more[0], tuple(options)))
    return found


def parse_fstab(text: str) -> list[Mount]:
    """The lines of an fstab that say something."""
    lines = (line.split() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return [
        Mount(_plain(words[0]), _plain(words[1]), words[2], tuple(_plain(words[3]).split(",")))
        for words in lines
        if len(words) > 3  # noqa: PLR2004 - the first four fields say what, where and how
    ]


def at(path: str, mounts: Sequence[Mount]) -> Mount | None:
    """What is seen at a mount point: the last that was mounted there."""
    return next((mount for mount in reversed(mounts) if mount.path == path), None)


def containing(path: str, mounts: Sequence[Mount]) -> Mount | None:
    """The file system that holds a path, which need not be there yet."""
    holding = [mount for mount in mounts if PurePosixPath(path).is_relative_to(mount.path)]
    deepest = max((len(PurePosixPath(mount.path).parts) for mount in holding), default=0)
    return next((m for m in reversed(holding) if len(PurePosixPath(m.path).parts) == deepest), None)


def differences(wanted: Mount, there: Mount) -> list[str]:
    """In what a mounted file system differs from the wanted one: options as far as the kernel shows them."""
    found = []
    if _shown_source(wanted) != _shown_source(wanted, there.source):
        found.append(f"{there.source} instead of {wanted.source}")
    if _SAME_KIND.get(wanted.kind, wanted.kind) != _SAME_KIND.get(there.kind, there.kind):
        found.append(f"{there.kind} instead of {wanted.kind}")
    shown = dict(_pair(option) for option in there.options)
    # What does not say so is written to: one that was mounted again for reading alone is another.
    options = wanted.options if "ro" in wanted.options else dict.fromkeys(("rw", *wanted.options))
    for option in options:
        name, value = _pair(option)
        if value and shown.get(name) and not _same_value(value, shown[name]):
            found.append(f"{name}={shown[name]} instead of {option}")
        if not value and _opposite(option) in shown:
            found.append(f"{_opposite(option)} instead of {option}")
    return found + [_without(option) for option in lost(wanted, there)]


def _shown_source(wanted: Mount, source: str = "") -> str:
    """Of a source what can be compared: mount.ceph makes addresses of monitors' names."""
    source = source or wanted.source
    monitors, colon, _ = wanted.source.rpartition(":/")
    if wanted.kind == "ceph" and colon and not all(map(_is_address, monitors.split(","))):
        source = source.rpartition(":/")[2]
    return source.rstrip("/")


def _is_address(monitor: str) -> bool:
    """Whether that is what a monitor is named by, with or without its port."""
    bracketed = re.fullmatch(r"\[(.*)\](:\d+)?", monitor)
    try:
        ipaddress.ip_address(bracketed[1] if bracketed else monitor.partition(":")[0])
    except ValueError:
        return False
    return True


def lost(wanted: Mount, there: Mount) -> list[str]:
    """The restrictions that a mounted file system should have and does not."""
    return [option for option in _SHOWN_WHEN_SET if option in {*wanted.options} - {*there.options}]


def remounted(wanted: Mount, there: Mount) -> str:
    """The options that give it them back while it is in use; empty where something else differs, too."""
    missing = lost(wanted, there)
    if not missing or differences(wanted, there) != [_without(option) for option in missing]:
        return ""
    kept = [option for option in (*_SHOWN_WHEN_SET, *_OF_A_PLACE) if option in there.options]
    return ",".join(["remount", "bind", *kept, *missing])


def _without(option: str) -> str:
    return f"without {option}"


def _pair(option: str) -> tuple[str, str]:
    name, _, value = option.partition("=")
    return _ALIASES.get(name, name), value


def _same_value(one: str, other: str) -> bool:
    """The kernel shows vers=4.2 for vers=4, and sizes as the server takes them."""
    if one == other or other.startswith(f"{one}."):
        return True
    return one.isdigit() and other.isdigit() and int(one) > _LARGEST_NUMBER_OF_ITS_OWN


def _opposite(option: str) -> str:
    for one, other in _OPPOSITES:
        if option in {one, other}:
            return other if option == one else one
    return ""


def block(owner: str, mounts: Iterable[Mount]) -> str:
    """The marked block of fstab with the mounts of one role; empty without mounts."""
    lines = "".join(mount.line for mount in mounts)
    return f"{_begin(owner)}\n{lines}{_end(owner)}\n" if lines else ""


def with_block(text: str, owner: str, mounts: Iterable[Mount]) -> str:
    """An fstab with the block of a role brought up to date: replaced where it is, else added at the end."""
    if text and not text.endswith("\n"):
        text += "\n"
    new, pattern = block(owner, mounts), _pattern(owner)
    return pattern.sub(lambda _: new, text, count=1) if pattern.search(text) else text + new


def in_block(text: str, owner: str) -> list[Mount]:
    """The mounts that the block of a role holds."""
    found = _pattern(owner).search(text)
    return parse_fstab(found[0]) if found else []


def outside(text: str, owner: str) -> str:
    """The lines that the block of a role does not hold, each where it was; empty ones in its place."""
    return _pattern(owner).sub(lambda found: "\n" * found[0].count("\n"), text, count=1)


def _begin(owner: str) -> str:
    return f"# BEGIN {owner} (kept by deploy: changes inside this block are lost)"


def _end(owner: str) -> str:
    return f"# END {owner}"


def _pattern(owner: str) -> re.Pattern[str]:
    begin, end = re.escape(_begin(owner)), re.escape(_end(owner))
    return re.compile(rf"^{begin}\n.*?^{end}\n", re.MULTILINE | re.DOTALL)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011")


def _plain(text: str) -> str:
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text)

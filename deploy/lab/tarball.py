"""Small tar archives made in memory: what an image or a new machine gets on top of its packages."""

import io
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Entry:
    """One file (``text``), symbolic link (``link``) or directory (neither), with its owner and mode."""

    path: str
    text: str | None = None
    link: str | None = None
    mode: int = 0o644
    uid: int = 0
    gid: int = 0

    def below(self, directory: str) -> "Entry":
        """The same in a directory."""
        return replace(self, path=directory + self.path)


def pack(entries: Iterable[Entry]) -> bytes:
    """The entries as an uncompressed tar archive; equal entries give equal bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for entry in entries:
            member = tarfile.TarInfo(entry.path.lstrip("/"))
            member.mode, member.uid, member.gid = entry.mode, entry.uid, entry.gid
            content = (entry.text or "").encode()
            if entry.link is not None:
                member.type, member.linkname = tarfile.SYMTYPE, entry.link
            elif entry.text is None:
                member.type = tarfile.DIRTYPE
            else:
                member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()

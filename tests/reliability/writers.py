"""Who writes to the state: every write with the process that did it, as the kernel tells (fanotify)."""

import ctypes
import os
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

_CLOEXEC, _NONBLOCK, _LARGEFILE = 0x1, 0x2, 0o100000
_ADD, _FILE_SYSTEM = 0x1, 0x100
_MODIFY = 0x2
_EVENT = struct.Struct("=IBBHQii")
_HERE = -100
_DAEMON = "slurmctld"
_PAUSE = 0.2


@dataclass(frozen=True)
class Write:
    """A write at that time, in seconds since 1970, by a process of a host, to a file or its successor."""

    when: float
    host: str
    process: int
    file: str


def returned(writes: Iterable[Write]) -> list[str]:
    """The files to which a slurmctld wrote again after one of another host had written.

    It is the same process in the middle of whose writes another one wrote. So two wrote at once, but for one
    that stood by, led, stood by and led again: a round has no two faults that would do that. One that reads
    its configuration anew has a process of its own host follow it, and writes until that leads.
    """
    seen: set[tuple[str, int]] = set()
    ended: set[tuple[str, int]] = set()
    files = set()
    for write in writes:
        key = (write.host, write.process)
        ended |= {one for one in seen if one[0] != write.host}
        seen.add(key)
        if key in ended:
            files.add(write.file)
    return sorted(files)


def terms(writes: Iterable[Write]) -> list[tuple[str, float, float]]:
    """Host, first and last write of each that wrote until another one did."""
    parts = [list(part) for _, part in groupby(writes, key=lambda write: (write.host, write.process))]
    return [(part[0].host, part[0].when, part[-1].when) for part in parts]


@contextmanager
def watched(file_system: Path, host_of: Callable[[int], str], writes: list[Write]) -> Iterator[None]:
    """Collects what each slurmctld writes to a file system, through whichever mount of it."""
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = library.fanotify_init(_CLOEXEC | _NONBLOCK, os.O_RDONLY | _LARGEFILE)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "fanotify_init")
    try:
        mark = (ctypes.c_uint(_ADD | _FILE_SYSTEM), ctypes.c_uint64(_MODIFY), _HERE, os.fsencode(file_system))
        if library.fanotify_mark(descriptor, *mark) < 0:
            raise OSError(ctypes.get_errno(), "fanotify_mark", str(file_system))
        ended = threading.Event()
        reader = threading.Thread(target=_read, args=(descriptor, host_of, writes, ended))
        reader.start()
        try:
            yield
        finally:
            ended.set()
            reader.join()
    finally:
        os.close(descriptor)


def _read(
    descriptor: int, host_of: Callable[[int], str], writes: list[Write], ended: threading.Event
) -> None:
    while not ended.is_set():
        try:
            content = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            ended.wait(_PAUSE)
            continue
        now = time.time()
        for process, file in dict.fromkeys(_written(content)):
            if _name(process) == _DAEMON and (host := host_of(process)):
                writes.append(Write(now, host, process, file))


def _written(content: bytes) -> Iterator[tuple[int, str]]:
    """Processes, with the files that they wrote to."""
    place = 0
    while place < len(content):
        length, _, _, _, _, descriptor, process = _EVENT.unpack_from(content, place)
        if descriptor >= 0:
            path = Path(f"/proc/self/fd/{descriptor}").readlink()
            os.close(descriptor)
            yield process, path.name.removesuffix(" (deleted)").removesuffix(".new")
        place += length


def _name(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text(encoding="ascii").strip()
    except OSError:
        return ""

"""pyinfra, told what `deploy cluster` put in place: a rerun in which it finds nothing to do."""

import io
import json
import re
import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from deploy.lab.access import KeyDirectory
from deploy.lab.recipe import ADMIN
from tests.bench.commands import BenchError, run
from tests.bench.lab import BenchLab
from tests.bench.state import Installed

PROGRAM = Path(".venv/pyinfra/bin/pyinfra")
"""`make bench` puts it there: it has a place of its own because nothing else needs it."""

_OPERATIONS = Path(__file__).with_name("pyinfra_operations.py")
_TOTAL = re.compile(r"Grand total\s+(\d+)\s+(\S+)\s+(\S+)\s+(\d+)")


@dataclass(frozen=True)
class Pyinfra:
    """The same state as deploy's, as pyinfra's inventory and operations; ``place`` holds them."""

    lab: BenchLab
    place: Path

    def rerun(self) -> float:
        """Seconds of a run that changes nothing; raises when it changes something."""
        command = [str(PROGRAM.absolute()), "--yes", "inventory.py", "operations.py"]
        # It tells its results on standard error.
        finished = run(["sh", "-c", 'exec "$@" 2>&1', "sh", *command], directory=self.place)
        found = _TOTAL.search(finished.text)
        if not found or (found[2], found[3]) != ("-", "-"):
            raise BenchError("pyinfra", f"a rerun must change nothing, but:\n{finished.text[-3000:]}")
        return finished.seconds


def told(lab: BenchLab, hosts: Mapping[str, Installed], place: Path) -> Pyinfra:
    """Writes down for pyinfra what every host has."""
    place.mkdir()
    state = {}
    for host, installed in hosts.items():
        native = ":" + lab.on(host, "dpkg --print-architecture").text.strip()
        enabled = lab.on(host, "systemctl list-unit-files --type=service --state=enabled --plain --no-legend")
        listed = {line.split()[0] for line in enabled.text.splitlines() if line.strip()}
        state[host] = {
            **{name: value for name, value in asdict(installed).items() if name != "files"},
            # It compares with names as apt prints them, which say the architecture of foreign ones only.
            "packages": [name.removesuffix(native) for name in installed.packages],
            "enabled": sorted(listed & {*installed.services}),
            "files": _unpacked(installed.files, place / "files" / host),
        }
    (place / "state.json").write_text(json.dumps(state), encoding="utf-8")
    keys = KeyDirectory(lab.site / ".lab")
    common = {
        "ssh_user": ADMIN,
        "ssh_key": str(keys.identity),
        "ssh_known_hosts_file": str(keys.known_hosts),
        "ssh_strict_host_key_checking": "yes",
        "_sudo": True,
    }
    listed_hosts = [(host, {**common, "ssh_hostname": address}) for host, address in lab.addresses.items()]
    (place / "inventory.py").write_text(f"hosts = {listed_hosts!r}\n", encoding="utf-8")
    shutil.copyfile(_OPERATIONS, place / "operations.py")
    return Pyinfra(lab, place)


def _unpacked(archive: bytes, directory: Path) -> list[dict[str, str | bool]]:
    """The files of an archive, in a directory, each with how it lies on the host."""
    directory.mkdir(parents=True)
    found: list[dict[str, str | bool]] = []
    with tarfile.open(fileobj=io.BytesIO(archive)) as source:
        for member in source:
            entry = {"path": f"/{member.name}", "user": member.uname, "group": member.gname}
            mode = format(member.mode & 0o7777, "o")
            content = source.extractfile(member) if member.isfile() else None
            if content:
                (directory / str(len(found))).write_bytes(content.read())
                found.append({**entry, "mode": mode, "source": str(directory / str(len(found)))})
            elif member.isdir():
                found.append({**entry, "mode": mode, "source": ""})
    return found

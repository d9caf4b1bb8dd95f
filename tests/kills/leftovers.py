"""What a killed run left: processes, files that are neither old nor new, locks, temporary files."""

import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from deploy.lab.state import container_name
from tests.cluster.lab_cluster import Cluster
from tests.kills.lab import HOSTS

MARK = "DEPLOY_KILLS_ROUND"
"""In the environment of a run, by which all of its processes are known."""
_PROGRAM = Path(__file__).with_name("on_host.py")
_RECORDS = "/var/lib/deploy/converged"
_MANAGED = f"""
import json, pathlib
found = set()
for path in pathlib.Path("{_RECORDS}").glob("*.json"):
    found |= set(json.loads(path.read_text()).get("managed", {{}}).get("file", {{}}))
print(json.dumps(sorted(found)))
"""
_IS_SHARED_BY_RUNS = ("ControlMaster", "[mux]")
"""ssh keeps connections open for the next run."""
_EMPTY = hashlib.sha256(b"").hexdigest()

Looks = Mapping[str, Mapping[str, Any]]


def looks(cluster: Cluster, since: float) -> Looks:
    """What each host says now (on_host.py)."""
    text = _PROGRAM.read_text(encoding="utf-8")
    with ThreadPoolExecutor(len(HOSTS)) as pool:
        return dict(
            zip(HOSTS, pool.map(lambda host: _asked(cluster, host, text, str(since)), HOSTS), strict=True)
        )


def managed(cluster: Cluster) -> dict[str, list[str]]:
    """By host the files that its records know."""
    return {host: _asked(cluster, host, _MANAGED) for host in HOSTS}


def _asked(cluster: Cluster, host: str, program: str, *arguments: str) -> Any:  # noqa: ANN401 - JSON
    call = ("podman", "exec", "--interactive", container_name(cluster.name, host), "python3", "-", *arguments)
    done = subprocess.run(call, input=program, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        message = f"{host}: {done.stderr[-2000:]}"
        raise RuntimeError(message)
    return json.loads(done.stdout)


def half_written(
    files: Mapping[str, list[str]], before: Looks, seen: Looks, after: Looks, *, is_first: bool
) -> Iterator[tuple[str, str]]:
    """Host and path of what deploy manages and is neither as before nor as afterwards.

    In a first deployment several tasks work on what packages brought, one after the other: of that nothing
    can be said but that it is not empty, and that it parses.
    """
    for host, paths in files.items():
        for path in paths:
            old, now, new = (each[host]["files"].get(path) for each in (before, seen, after))
            if now not in {old, new} and (not is_first or now == _EMPTY):
                yield host, path


def unparsed(seen: Looks) -> Iterator[tuple[str, str]]:
    """Host, and what does not parse there."""
    for host, said in seen.items():
        yield from ((host, f"{what}: {why}") for what, why in said["wrong"].items())


def left(before: Looks, after: Looks) -> Iterator[tuple[str, str]]:
    """Host, and what is there still when the next run has ended: temporary files, locks, packages."""
    for host, said in after.items():
        known = {*before[host]["temporary"]}
        yield from ((host, path) for path in said["temporary"] if path not in known)
        yield from ((host, f"{path} is locked") for path in said["locked"])
        yield from ((host, f"{what}: {why}") for what, why in said["undone"].items())


def processes(mark: str) -> dict[int, str]:
    """The living processes of a run, by their environment."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if words and not any(word in words for word in _IS_SHARED_BY_RUNS):
                    found[int(entry.name)] = words.strip()
    return found


def kill(process: int, mark: str, *, all_of_them: bool) -> None:
    """SIGKILL to a run, or to all that it started, too, as where its machine loses its power."""
    for number in [process, *(processes(mark) if all_of_them else ())]:
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


def of_the_site(cluster: Cluster, places: list[Path]) -> Iterator[str]:
    """What does not parse in the site and in what deploy keeps of its runs, and temporary files there."""
    for root in (cluster.directory, *places):
        for path in sorted(root.rglob("*")):
            if not path.is_file():
                continue
            if path.name.startswith(".") and path.suffix[1:].isdigit():
                yield f"{path} is a temporary file"
            try:
                if path.suffix == ".json":
                    json.loads(path.read_text(encoding="utf-8"))
                elif path.suffix in {".yml", ".yaml"}:
                    yaml.compose(path.read_text(encoding="utf-8"))
            except (ValueError, yaml.YAMLError) as problem:
                yield f"{path}: {problem}"


def private_places(roots: list[Path]) -> list[str]:
    """The directories that runs make for themselves on the machine where deploy is typed."""
    return sorted(str(path) for root in roots for path in root.iterdir())

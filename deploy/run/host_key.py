"""The ssh host key of a machine: what it offers, what is known of it here, and the new one in its place."""

import base64
import hashlib
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.durable import replace_file
from deploy.place import private_place
from deploy.run.ssh import NotByPlainSshError, Unanswered

_SECONDS = 30
_ELLIPTIC = ("ssh-ed25519", "ecdsa-sha2-nistp256")
# One at a time: a machine shows the key that both sides like best, and the admin may have read another.
_ALGORITHMS = (*_ELLIPTIC, "rsa-sha2-512,rsa-sha2-256")
_SSH_PORT = "22"
_COMMAND = "-T"
"""The first option of ``ssh.command``, behind the executable. Of options the first one counts."""


@dataclass(frozen=True)
class HostKey:
    """A public key, in the two words of a known_hosts file."""

    kind: str
    blob: str

    @property
    def fingerprint(self) -> str:
        """As ``ssh-keygen -l`` shows it: ``SHA256:...``."""
        digest = hashlib.sha256(base64.b64decode(self.blob)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


@dataclass(frozen=True)
class Known:
    """Under which name and in which file the key of a machine is kept; the keys that are there.

    Without a file ssh here keeps none, as with /dev/null.
    """

    name: str
    file: Path | None
    keys: frozenset[HostKey]


def offered(command: Sequence[str]) -> tuple[HostKey, ...] | Unanswered:
    """The keys that a machine offers to ``ssh.command``; nobody logs in for that."""
    keys, why = [], "it offers no host key"
    with private_place() as place:
        for algorithms in _ALGORITHMS:
            file = place / algorithms
            options = {
                "UserKnownHostsFile": str(file),
                "GlobalKnownHostsFile": "/dev/null",
                "StrictHostKeyChecking": "accept-new",
                "HashKnownHosts": "no",
                "HostKeyAlgorithms": algorithms,
                "PreferredAuthentications": "none",
                "UpdateHostKeys": "no",
                "ControlPath": "none",
            }
            _, said = _run([*_with(command, *(f"-o{key}={value}" for key, value in options.items()))])
            if file.exists():
                keys += _keys(file.read_text(encoding="utf-8"))
            elif said.strip():
                why = said.strip().splitlines()[-1]
    return tuple(keys) or Unanswered(why)


def known(command: Sequence[str]) -> Known:
    """What ssh here knows of the machine that ``ssh.command`` reaches. Raises NotByPlainSshError."""
    said = settings(command)
    port = said.get("port", [_SSH_PORT])[0]
    host = said.get("hostkeyalias", said["hostname"])[0]
    name = host if port == _SSH_PORT or "hostkeyalias" in said else f"[{host}]:{port}"
    # ssh-keygen would put a file in the place of a link.
    file = _first_file(said["userknownhostsfile"][0]).resolve()
    if said["userknownhostsfile"][0] == "none" or (file.exists() and not file.is_file()):
        return Known(name, None, frozenset())
    found, _ = _run(["ssh-keygen", "-F", name, "-f", str(file)])
    return Known(name, file, frozenset(_keys(found)))


def settings(command: Sequence[str]) -> dict[str, list[str]]:
    """What ssh here would go by, as ``ssh -G`` prints it: setting in small letters -> its values.

    Raises NotByPlainSshError where ssh refuses its options.
    """
    said: dict[str, list[str]] = {}
    printed, why = _run(_with(command, "-G"))
    if not printed:
        raise NotByPlainSshError("ssh", f"refused: {' '.join(why.split())}")
    for line in printed.splitlines():
        key, _, value = line.partition(" ")
        said.setdefault(key, []).append(value)
    return said


def accept(entry: Known, key: HostKey) -> None:
    """Puts a key in the place of those that are known, where ssh here keeps any."""
    if entry.file is None:
        return
    if entry.keys:
        _run(["ssh-keygen", "-R", entry.name, "-f", str(entry.file)])
    old = entry.file.read_text(encoding="utf-8") if entry.file.exists() else ""
    end = "" if old.endswith("\n") or not old else "\n"
    mode = entry.file.stat().st_mode & 0o777 if entry.file.exists() else 0o600
    entry.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(entry.file, f"{old}{end}{entry.name} {key.kind} {key.blob}\n", mode)


def _first_file(paths: str) -> Path:
    """The first of the paths that ``ssh -G`` prints side by side, spaces in them unquoted."""
    words = paths.split(" ")
    starts = [number for number, word in enumerate(words) if word.startswith(("/", "~"))]
    return Path(" ".join(words[: starts[1] if len(starts) > 1 else None])).expanduser()


def _with(command: Sequence[str], *options: str) -> list[str]:
    """The command with options before all others, and nothing to run there."""
    start = command.index(_COMMAND)
    return [*command[:start], *options, *command[start:-1], "true"]


def _keys(text: str) -> list[HostKey]:
    """The keys of a known_hosts file; lines of ssh-keygen's own begin with a hash sign."""
    rows = (line.split() for line in text.splitlines() if line.strip() and not line.startswith(("#", "@")))
    return [HostKey(row[1], row[2]) for row in rows if len(row) > 2]  # noqa: PLR2004 - name, kind, key


def _run(command: Sequence[str]) -> tuple[str, str]:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return "", str(problem)
    return done.stdout, done.stderr

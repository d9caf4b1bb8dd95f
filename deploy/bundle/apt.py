"""Apt with a root of its own: packages of any release, for machines that have none yet."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from deploy.errors import DeployError, ExitCode, error

_DIRECTORIES = (
    *("etc/apt/apt.conf.d", "etc/apt/preferences.d", "etc/apt/sources.list.d", "etc/apt/trusted.gpg.d"),
    *("var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "nowhere/partial", "var/lib/dpkg"),
)
_TOOLS = ("gpg", "apt-get", "apt-cache")


def need_tools() -> None:
    """Raises DeployError where a bundle cannot be made."""
    if lacking := [name for name in _TOOLS if shutil.which(name) is None]:
        raise error(
            "bundle-tools-missing",
            f"a bundle is made on a machine of the Debian family, with {' and '.join(lacking)}",
            hint="apt-get install apt gpg, or run deploy bundle on another machine with the same site",
        )


class Apt:
    """Apt in a directory, where no package is installed, with the given sources (lines of sources.list)."""

    def __init__(self, root: Path, sources: Iterable[str], architecture: str) -> None:
        self.root = root
        for name in _DIRECTORIES:
            (root / name).mkdir(parents=True, exist_ok=True)
        (root / "etc/apt/sources.list").write_text("".join(f"{line}\n" for line in sources))
        (root / "var/lib/dpkg/status").touch()
        settings = {
            "Dir": root,
            "Dir::State::status": root / "var/lib/dpkg/status",
            "APT::Architecture": architecture,
            "APT::Architectures": architecture,
            "APT::Sandbox::User": "root",
            "APT::Install-Recommends": "false",
            "Acquire::Languages": "none",
            "Acquire::ForceHash": "sha256",
        }
        self._options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]

    @property
    def archives(self) -> Path:
        """Where downloaded packages lie."""
        return self.root / "var/cache/apt/archives"

    def refresh(self) -> None:
        """Fetches the package lists. Raises DeployError."""
        self._run("apt-get", "--quiet", "--error-on=any", "update")

    def known(self, names: Iterable[str]) -> list[str]:
        """Those of the packages that the sources have."""
        shown = self._run("apt-cache", "policy", *names)
        found = re.findall(r"^(\S+):\n\s+Installed: .*\n\s+Candidate: (.*)$", shown, re.MULTILINE)
        return sorted(name.partition(":")[0] for name, version in found if version != "(none)")

    def needed(self, names: Iterable[str]) -> dict[str, str]:
        """What packages need with all they depend on: names of files, and their SHA-256 checksums."""
        nowhere = ["-o", f"Dir::Cache::archives={self.root}/nowhere"]
        shown = self._run("apt-get", *nowhere, "--quiet=2", "--yes", "--print-uris", "install", *names)
        return dict(re.findall(r"^'[^']+' (\S+) \d+ SHA256:(\w{64})$", shown, re.MULTILINE))

    def download(self, names: Iterable[str]) -> None:
        """Fetches packages with all they need, compared with the signed lists. Raises DeployError."""
        self._run("apt-get", "--quiet", "--yes", "--download-only", "install", *names)

    def describe(self, packages: Iterable[tuple[str, str]]) -> list[str]:
        """The paragraphs of the lists about packages, given as (name, version)."""
        wanted = [f"{name}={version}" for name, version in packages]
        text = self._run("apt-cache", "--no-all-versions", "show", *wanted)
        return [paragraph for paragraph in text.split("\n\n") if paragraph.strip()]

    def _run(self, program: str, *arguments: str) -> str:
        ended = subprocess.run(
            [program, *self._options, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            # What it says is read here, and apt speaks its caller's language; LANGUAGE would win over LC_ALL.
            env={name: value for name, value in os.environ.items() if name != "LANGUAGE"}
            | {"LC_ALL": "C.UTF-8"},
            check=False,
        )
        if ended.returncode != 0:
            raise _failed(program, ended.stderr)
        return ended.stdout


def _failed(program: str, said: str) -> DeployError:
    reasons = [line for line in said.splitlines() if line.startswith(("E:", "W:"))]
    return error(
        "bundle-packages-failed",
        f"{program}: {' '.join(reasons[:3]) or said.strip()[-500:]}",
        hint="check that apt-get update works here: the bundle comes from the same mirror",
        exit_code=ExitCode.FAILED,
    )

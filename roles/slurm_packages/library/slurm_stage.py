#!/usr/bin/python
"""Ansible module: another release of Slurm, fetched, and unpacked beside the installed one."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.slurm_release import is_of

DOCUMENTATION = r"""
module: slurm_stage
short_description: Another release of Slurm, fetched, and unpacked beside the installed one
description:
  - Asks apt what it would install of the wanted release, fetches it, and changes nothing that is installed.
    apt gets the pin of the wanted release for this question alone.
  - Fails where the sources do not have the release, and where a package that is no part of it would go.
options:
  packages:
    description: The packages of Slurm's that this host wants.
    type: list
    elements: str
    required: true
  version:
    description: What their version begins with.
    type: str
    required: true
  also:
    description: Packages that change with them, where they are installed.
    type: list
    elements: str
    default: []
  replaced:
    description: >-
      Packages that were built for the installed release, and may go with it because the caller brings others.
    type: list
    elements: str
    default: []
  directory:
    description: Below it the release is unpacked in C(root), with its version in C(version).
    type: path
    required: true
  unpacks:
    description: Whether it is.
    type: bool
    default: false
author: [the maintainers of this project]
"""

RETURN = r"""
packages:
  description: >-
    What brings the wanted release, each as C(name=version): packages of another one, and missing ones.
  type: list
  returned: always
deploy_answer:
  description: C(packages), and C(version), the one that they would get.
  type: dict
  returned: always
"""

_SOURCES = ("slurm-wlm", "slurm-wlm-contrib", "slurm-smd")
_ARCHIVES = Path("/var/cache/apt/archives")
_PRIORITY = 1001  # above that of the release that is kept; an older one comes, too (apt_preferences(5))
_INSTALLED = "--showformat=${Package}\\t${source:Package}\\t${db:Status-Abbrev}\\t${Version}\\n"


def installed(text: str) -> dict[str, str]:
    """The installed packages of Slurm's, with their versions, from what dpkg-query prints."""
    rows = (line.split("\t") for line in text.splitlines())
    there = (
        (name, version) for name, source, status, version in rows if source in _SOURCES and status[:2] == "ii"
    )
    return dict(there)


def simulated(text: str) -> tuple[dict[str, str], list[str]]:
    """What apt would install, with versions, and what it would remove."""
    found = dict(re.findall(r"^Inst (\S+) (?:\[\S+\] )?\((\S+) ", text, re.MULTILINE))
    return found, re.findall(r"^Remv (\S+)", text, re.MULTILINE)


def unmet(text: str) -> list[str]:
    """The packages of which apt says that an installed version is too old."""
    found = re.findall(r"Depends: (\S+) \(>= \S+\) but \S+ is to be installed", text)
    return list(dict.fromkeys(found))


class Stage:
    """The wanted release on this host."""

    def __init__(self, module: AnsibleModule, pins: Path) -> None:
        self.module = module
        self.wanted, self.also = module.params["version"], module.params["also"]
        pins.write_text(
            "".join(
                f"Package: src:{source}\nPin: version {self.wanted}*\nPin-Priority: {_PRIORITY}\n\n"
                for source in _SOURCES
            ),
            encoding="utf-8",
        )
        self._options = ["--quiet", "--yes", "--no-install-recommends", "-o", f"Dir::Etc::Preferences={pins}"]
        # A node that goes back to the release of before an upgrade.
        self._options += ["--allow-downgrades", "-o", "DPkg::Lock::Timeout=300"]

    def others(self) -> list[str]:
        """What is of another release, or missing."""
        found = installed(self._must("dpkg-query", "--show", _INSTALLED))
        other = [name for name, version in found.items() if not is_of(version, self.wanted)]
        missing = [name for name in self.module.params["packages"] if name not in found]
        if not (other or missing):
            return []
        status = self._run(
            "dpkg-query", "--show", "--showformat=${Package} ${db:Status-Abbrev}\\n", *self.also
        )
        beside = (
            [line.split()[0] for line in status.splitlines() if line.split()[1:] == ["ii"]]
            if self.also
            else []
        )
        return sorted({*other, *missing, *beside})

    def fetch(self, names: list[str]) -> dict[str, str]:
        """The packages that came, with their versions."""
        come, go = simulated(self._must("apt-get", *self._options, "--simulate", "install", *names))
        # A library that another one replaces has no later version, and stays.
        wanted = [name for name in names if name in self.module.params["packages"]]
        wrong = [
            f"{name} {come.get(name, '')}" for name in wanted if not is_of(come.get(name, ""), self.wanted)
        ]
        if wrong:
            self.module.fail_json(
                msg=f"this host's package sources have no Slurm {self.wanted}: they have {', '.join(wrong)}"
            )
        if lost := [name for name in go if name not in self.module.params["replaced"]]:
            self.module.fail_json(
                msg=f"nothing was changed: with Slurm {self.wanted} these would go: {', '.join(lost)}"
            )
        self._must("apt-get", *self._options, "--download-only", "install", *names)
        return come

    def unpack(self, come: dict[str, str], directory: Path) -> None:
        """Unpacks packages below the directory's root."""
        root = directory / "root"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(mode=0o755, parents=True)
        for name, version in come.items():
            for path in _ARCHIVES.glob(f"{name}_{version.replace(':', '%3a')}_*.deb"):
                self._must("dpkg-deb", "--extract", str(path), str(root))
        versions = [version for version in come.values() if is_of(version, self.wanted)]
        (directory / "version").write_text(f"{versions[0]}\n", encoding="utf-8")

    def _run(self, *command: str) -> str:
        return str(self.module.run_command(list(command), environ_update={"LC_ALL": "C"})[1])

    def _must(self, *command: str) -> str:
        code, out, err = self.module.run_command(list(command), environ_update={"LC_ALL": "C"})
        if code != 0:
            short = unmet(out)
            why = (
                f"it needs a later {', '.join(short)} than the host's sources have; where the source of "
                f"Slurm has it, name it there: slurm_packages_repository: {{also: [{', '.join(short)}]}}"
                if short
                else f"{command[0]}: {(err or out).strip()[-600:]}"
            )
            self.module.fail_json(
                msg=f"Slurm {self.wanted} cannot be installed, so nothing was changed: {why}"
            )
        return str(out)


def main() -> None:
    """Look, fetch, unpack."""
    arguments: dict[str, Any] = {
        "packages": {"type": "list", "elements": "str", "required": True},
        "version": {"type": "str", "required": True},
        "also": {"type": "list", "elements": "str", "default": []},
        "replaced": {"type": "list", "elements": "str", "default": []},
        "directory": {"type": "path", "required": True},
        "unpacks": {"type": "bool", "default": False},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    with tempfile.TemporaryDirectory(prefix="slurm-stage-") as name:
        stage = Stage(module, Path(name) / "pins")
        others = stage.others()
        come = stage.fetch(others) if others else {}
    if module.params["unpacks"] and come:
        stage.unpack(come, Path(module.params["directory"]))
    others = [name for name in others if name in come]
    version = next((come[name] for name in others if is_of(come[name], module.params["version"])), "")
    wanted = [f"{name}={come[name]}" for name in others]
    module.exit_json(changed=False, packages=wanted, deploy_answer={"packages": wanted, "version": version})


if __name__ == "__main__":
    main()

#!/usr/bin/python
"""Ansible module: Slurm's packages by SchedMD's own Debian packaging, from a release tarball."""

from __future__ import annotations

import os
import re
import shlex
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.durable import keep_names
from ansible.module_utils.slurm_release import is_of

DOCUMENTATION = r"""
module: slurm_build
short_description: Slurm's packages by SchedMD's own Debian packaging, from a release tarball
description:
  - Bootstraps a Debian of this host's release in a directory of its own, from this host's package sources,
    installs there what C(debian/control) of the tarball asks for, has a user without rights or network build
    the packages there, and removes all of it again. On this host nothing is installed.
  - The packages and an index of them, by which apt takes their directory for a repository, are one
    archive. Where it is there nothing is built.
options:
  tarball:
    description: The release tarball on this host, whose checksum was compared already.
    type: path
    required: true
  version:
    description: The release of Slurm that it has to hold, 24.11, or a version of it, 24.11.5.
    type: str
    required: true
  archive:
    description: The archive of the packages.
    type: path
    required: true
  built_with:
    description: Packages that are there besides what C(debian/control) asks for.
    type: list
    elements: str
    default: []
  pending:
    description: Whether a task of this run brings what is built from. Only check mode needs it.
    type: bool
    default: false
author: [the maintainers of this project]
"""

RETURN = r"""
seconds:
  description: How long the build took.
  type: int
  returned: when packages were built
"""

_SOURCE = "slurm-smd"
_NEEDED = ("build-essential", "fakeroot")
_BUILDER = 65533
"""A user whom the host does not have (Debian's policy keeps the number free), so nobody shares its rights."""
_LEFT_OUT = ("*-dbgsym_*.deb", "slurm-smd-doc_*.deb")
_PLACE = "build"
_APT = Path("/etc/apt")
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def head_of_changelog(text: str) -> tuple[str, str]:
    """Source and version by the first line of debian/changelog; empty where it is none."""
    found = re.match(r"(\S+) \(([^)\s]+)\)", text)
    return (found[1], found[2]) if found else ("", "")


def sources_of(apt: Path, codename: str) -> list[Path]:
    """The files of apt's sources that have the suite of this release: those of others are of no use."""
    found = [apt / "sources.list", *sorted(apt.glob("sources.list.d/*.list"))]
    found += sorted(apt.glob("sources.list.d/*.sources"))
    word = re.compile(rf"^(?!\s*#).*\b{re.escape(codename)}\b", re.MULTILINE)
    return [path for path in found if path.is_file() and word.search(path.read_text(encoding="utf-8"))]


def proxies_of(apt: Path) -> list[Path]:
    """The files of apt's settings by which this host fetches packages."""
    settings = sorted(path for path in apt.glob("apt.conf.d/*") if path.is_file())
    word = re.compile(r"Proxy|Verify-Peer|CaInfo", re.IGNORECASE)
    return [path for path in settings if word.search(path.read_text(encoding="utf-8"))]


def steps(tarball: str, output: str, cores: int) -> list[str]:
    """What is done in the new system, as commands for a shell of which ``$1`` is the system's directory."""
    place = f'"$1"/{_PLACE}'
    told = f"parallel={cores} nocheck noautodbgsym"
    build = f"cd /{_PLACE}/source && dpkg-buildpackage --build=binary --no-sign"
    index = f"cd /{_PLACE}/packages && dpkg-scanpackages --multiversion . >Packages"
    user = f"--userspec={_BUILDER}:{_BUILDER}"
    clean = f"env --ignore-environment PATH={_PATH} HOME=/{_PLACE} LC_ALL=C.UTF-8"
    unpack = f"tar --extract --no-same-owner --strip-components=1 --file={shlex.quote(tarball)}"
    # apt of this host, by its sources and its network; dpkg of the new system.
    apt = 'APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get -o DPkg::Chroot-Directory="$1" --yes --quiet'
    alone = f'unshare --net -- chroot {user} "$1" {clean} DEB_BUILD_OPTIONS={shlex.quote(told)}'
    pack = f"tar --create --owner=root:0 --group=root:0 --mode=u=rwX,go=rX --file={shlex.quote(output)}"
    return [
        f"mkdir --parents {place}/source {place}/packages",
        f"{unpack} --directory={place}/source",
        f"{apt} --no-install-recommends build-dep {place}/source",
        f'echo "builder:x:{_BUILDER}:{_BUILDER}::/{_PLACE}:/bin/sh" >>"$1"/etc/passwd',
        f'echo "builder:x:{_BUILDER}:" >>"$1"/etc/group',
        f"chown --recursive {_BUILDER}:{_BUILDER} {place}",
        f"{alone} sh -ec {shlex.quote(build)}",
        f"cp {place}/*.deb {place}/packages",
        *(f"rm --force {place}/packages/{pattern}" for pattern in _LEFT_OUT),
        f'chroot "$1" {clean} sh -ec {shlex.quote(index)}',
        f"{pack} --directory={place}/packages .",
    ]


class Build:
    """One build on this machine."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module
        self._tarball = str(module.params["tarball"])
        self._archive = Path(module.params["archive"])

    def look(self) -> None:
        """Fails where the tarball is not what it has to be."""
        source, version = self._changelog()
        wanted = self._module.params["version"]
        if source != _SOURCE:
            what = f"packages {source}" if source else "no packaging (debian/changelog)"
            self._fail(f"it holds {what}; SchedMD's own, {_SOURCE}, is in release tarballs since Slurm 23.11")
        if not is_of(version, wanted):
            self._fail(f"it holds Slurm {version}, and slurm_packages_version is {wanted}")

    def _changelog(self) -> tuple[str, str]:
        try:
            with tarfile.open(self._tarball) as archive:
                for member in archive:
                    if re.fullmatch(r"(?:\./)?[^/]+/debian/changelog", member.name):
                        file = archive.extractfile(member)
                        return head_of_changelog(file.read(1000).decode(errors="replace") if file else "")
        except (OSError, tarfile.TarError) as problem:
            self._fail(f"it cannot be read: {problem}")
        return "", ""

    def make(self) -> int:
        """Builds; returns the seconds that it took."""
        codename = self._codename()
        sources = sources_of(_APT, codename)
        if not sources:
            self._fail(
                f"no package source of this host has {codename}, of which a clean system could be made"
            )
        cores = len(os.sched_getaffinity(0))
        began = os.times().elapsed
        with tempfile.TemporaryDirectory(prefix="build-", dir=self._archive.parent) as name:
            output = Path(name, "packages.tar")
            command = ["mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory"]
            command += [f"--include={','.join((*_NEEDED, *self._module.params['built_with']))}"]
            command += [f"--aptopt={path}" for path in proxies_of(_APT)]
            command += [f"--customize-hook={step}" for step in steps(self._tarball, str(output), cores)]
            command += [codename, f"{name}/system", *map(str, sources)]
            code, out, err = self._module.run_command(
                command, environ_update={"LC_ALL": "C.UTF-8", "TMPDIR": name}
            )
            if code != 0:
                self._fail(f"its packages cannot be built: {(out + err).strip()[-3000:]}")
            output.chmod(0o644)
            with output.open("rb") as file:
                os.fsync(file.fileno())
            output.replace(self._archive)
            keep_names(self._archive.parent)
        return int(os.times().elapsed - began)

    def _codename(self) -> str:
        found = re.search(
            r"^VERSION_CODENAME=\"?(\w+)", Path("/etc/os-release").read_text("utf-8"), re.MULTILINE
        )
        return found[1] if found else ""

    def _fail(self, why: str) -> None:
        self._module.fail_json(msg=f"Slurm is not built from {self._tarball}: {why}")


def main() -> None:
    """Look whether it is there, build."""
    arguments: dict[str, Any] = {
        "tarball": {"type": "path", "required": True},
        "version": {"type": "str", "required": True},
        "archive": {"type": "path", "required": True},
        "built_with": {"type": "list", "elements": "str", "default": []},
        "pending": {"type": "bool", "default": False},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    os.umask(0o022)
    archive = module.params["archive"]
    manages = {"files": [archive]}
    if Path(archive).is_file():
        module.exit_json(changed=False, deploy_manages=manages)
    if module.check_mode and module.params["pending"]:
        module.exit_json(changed=True, deploy_manages=manages)
    build = Build(module)
    build.look()
    said = {} if module.check_mode else {"seconds": build.make()}
    module.exit_json(changed=True, deploy_manages=manages, **said)


if __name__ == "__main__":
    main()

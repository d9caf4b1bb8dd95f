#!/usr/bin/python
"""Ansible module: a SPANK plugin as a package for the installed version of Slurm."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.slurm_release import is_of, upstream

DOCUMENTATION = r"""
module: spank_package
short_description: A SPANK plugin as a package for the installed version of Slurm
description:
  - Unpacks an archive, runs its Makefile as an ordinary user, and makes a .deb package of the plugin
    C(spank_pyxis.so) that comes out of it, and of what comes of C(source). Slurm loads no plugin that was
    built for another release, so the package depends on the version of Slurm that it was built for, and is
    made anew when another is installed.
  - Headers of another version than Slurm's are replaced by those that fit. For a release that is only
    unpacked (C(staged)) the headers there are taken, and nothing that is installed changes.
options:
  archive:
    description: The source archive on the host.
    type: path
    required: true
  source:
    description: A further plugin as one file of C on the host, which gives the plugin its name.
    type: path
    required: true
  version:
    description: The version of the archive's source.
    type: str
    required: true
  package:
    description: Where the package lies.
    type: path
    required: true
  staged:
    description: >-
      Where C(slurm_stage) unpacked the release C(wanted); the plugin is built for it where another one is
      installed.
    type: path
    default: ""
  wanted:
    description: The release that is unpacked there, 26.05, or a version of it, 26.05.5.
    type: str
    default: ""
  pending:
    description: Whether a task of this run changes what the package is built from. Only check mode needs it.
    type: bool
    default: false
author: [the maintainers of this project]
"""

RETURN = r"""
package_version:
  description: The package's version. It names the source, Slurm's version and the archive.
  type: str
  returned: always
"""

_NAME = "slurm-pyxis"
_PLUGIN = "spank_pyxis.so"
_PACKAGES = {
    "slurm-client": ("libslurm-dev", "slurm-wlm-basic-plugins"),
    "slurm-smd-client": ("slurm-smd-dev", "slurm-smd"),
}
"""By the package that every host of a cluster has, the distribution's or that of SchedMD's packaging, the
one with headers and the one with plugins."""
_BUILDER = "nobody"
_INCLUDES = "usr/include"
_SPANK = f"{_INCLUDES}/slurm/spank.h"


def next_version(version: str) -> str:
    """What every package of a version is older than: 24.11.5 -> 24.11.6~."""
    head, _, last = version.rpartition(".")
    return f"{head}.{int(last) + 1}~"


def package_version(source: str, slurm: str, digest: str) -> str:
    """A version that differs whenever the package has to be made anew."""
    return f"{source}+slurm{slurm}+{digest[:8]}"


def control(version: str, slurm: str, architecture: str, client: str = "slurm-client") -> str:
    """The package's control file; ``slurm`` is the full version of Slurm's package ``client``."""
    epoch = slurm.partition(":")[0] + ":" if ":" in slurm else ""
    lowest, above = f"{epoch}{upstream(slurm)}", f"{epoch}{next_version(upstream(slurm))}"
    return (
        f"Package: {_NAME}\n"
        f"Version: {version}\n"
        f"Architecture: {architecture}\n"
        "Section: net\n"
        "Priority: optional\n"
        "Maintainer: deploy <root@localhost>\n"
        f"Depends: libc6, {client} (>= {lowest}), {client} (<< {above})\n"
        "Description: Slurm plugins that run jobs in containers\n"
        f" Built by deploy for Slurm {upstream(slurm)}, and of use with no other version.\n"
    )


def plugin_directory(files: str) -> str:
    """Where Slurm's plugins lie, from the list of files of its package."""
    found = re.search(r"^(/\S+)/select_cons_tres\.so$", files, re.MULTILINE)
    return found[1] if found else ""


class Build:
    """One package, made by the module."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.archive = Path(module.params["archive"])
        self.source = Path(module.params["source"])
        self.package = Path(module.params["package"])
        self.client = "slurm-client"

    @property
    def headers(self) -> str:
        """The package of Slurm's headers."""
        return _PACKAGES[self.client][0]

    @property
    def plugins(self) -> str:
        """The package that has Slurm's plugins."""
        return _PACKAGES[self.client][1]

    def slurm(self) -> str:
        """The version of Slurm that is installed, whoever packaged it; empty when none is."""
        for self.client in _PACKAGES:
            if version := self.installed(self.client):
                return version
        return ""

    def beside(self, installed: str) -> str:
        """The version of Slurm that is unpacked and not installed; empty where the installed one is meant."""
        wanted, staged = self.module.params["wanted"], Path(self.module.params["staged"] or "/")
        if not wanted or is_of(installed, wanted):
            return ""
        try:
            version = (staged / "version").read_text(encoding="utf-8").strip()
        except OSError:
            version = ""
        if not is_of(version, wanted):
            self.module.fail_json(
                msg=f"Slurm {wanted} is not unpacked in {staged}: there is {version or 'none'}"
            )
        return version

    def installed(self, name: str) -> str:
        """The version of an installed package; empty when it is not there."""
        status = "--showformat=${db:Status-Abbrev} ${Version}"
        code, out, _ = self.module.run_command(["dpkg-query", "--show", status, name])
        return str(out).split()[1] if code == 0 and out.startswith("ii") else ""

    def made(self) -> str:
        """The version of the package that lies there."""
        if not self.package.is_file():
            return ""
        return self.must("dpkg-deb", "--field", str(self.package), "Version").strip()

    def must(self, *command: str, why: str = "") -> str:
        """Runs a command that has to succeed."""
        code, out, err = self.module.run_command(list(command))
        if code != 0:
            said = (out + err).strip()[-1500:]
            self.module.fail_json(msg=f"{why or 'the plugin cannot be built'}: {' '.join(command)}: {said}")
        return str(out)

    def fit_headers(self, slurm: str) -> None:
        """Installs the headers of the version of Slurm that is there."""
        if self.installed(self.headers) != slurm:
            self.must(
                *("apt-get", "--yes", "--quiet", "--no-install-recommends", "--allow-downgrades"),
                *("-o", "DPkg::Lock::Timeout=300", "install", f"{self.headers}={slurm}"),
                why=f"the headers of Slurm {slurm}, which is installed, are not to be had",
            )

    def compile(self, place: Path, headers: str) -> Path:
        """Unpacks the archive and runs its Makefile, perhaps with other headers; returns the plugin."""
        with tarfile.open(self.archive) as archive:
            tops = {member.name.split("/", 1)[0] for member in archive.getmembers()} - {"pax_global_header"}
            if len(tops) != 1:
                self.module.fail_json(
                    msg=f"{self.archive} does not hold one directory: {' '.join(sorted(tops))}"
                )
            self.must(
                "tar", "--extract", "--no-same-owner", "--file", str(self.archive), "--directory", str(place)
            )
        source = place / tops.pop()
        self.must("chown", "--recursive", _BUILDER, str(place))
        # gcc looks there before it looks where the system has its headers.
        told = ("env", f"C_INCLUDE_PATH={headers}") if headers else ()
        self.must("runuser", f"--user={_BUILDER}", "--", *told, "make", "--directory", str(source))
        if not (source / _PLUGIN).is_file():
            self.module.fail_json(msg=f"make ended well, but made no {_PLUGIN}")
        return source / _PLUGIN

    def compile_own(self, place: Path, headers: str) -> Path:
        """Compiles the further plugin."""
        source, plugin = place / self.source.name, place / f"{self.source.stem}.so"
        shutil.copyfile(self.source, source)
        source.chmod(0o644)
        told = (f"-I{headers}",) if headers else ()
        self.must(
            *("runuser", f"--user={_BUILDER}", "--", "gcc", "-std=gnu11", "-O2", "-Wall", "-shared", "-fPIC"),
            *(*told, "-o", str(plugin), str(source)),
        )
        return plugin

    def files(self, staged: Path | None) -> str:
        """The files of Slurm, one a line: of the package that has its plugins, or of what is unpacked."""
        if staged is None:
            return self.must("dpkg-query", "--listfiles", self.plugins)
        return "".join(
            f"/{path.relative_to(staged)}\n" for path in staged.glob("usr/lib/**/select_cons_tres.so")
        )

    def make(self, version: str, slurm: str, staged: Path | None) -> None:
        """Builds the package and puts it in place at once; ``staged`` has the release that it is for."""
        directory = plugin_directory(self.files(staged))
        if not directory:
            where = staged or f"the package {self.plugins}"
            self.module.fail_json(msg=f"where Slurm's plugins lie cannot be seen in {where}")
        if staged is not None and not (staged / _SPANK).is_file():
            self.module.fail_json(
                msg=f"{staged} has no {_SPANK}: {self.headers} did not come with Slurm {slurm}"
            )
        architecture = self.must("dpkg", "--print-architecture").strip()
        with tempfile.TemporaryDirectory(prefix="spank-", dir="/var/tmp") as name:
            Path(name).chmod(0o755)
            tree, source = Path(name, "tree"), Path(name, "source")
            source.mkdir()
            headers = str(staged / _INCLUDES) if staged else ""
            target = tree / directory.lstrip("/")
            target.mkdir(parents=True)
            for plugin in (self.compile(source, headers), self.compile_own(source, headers)):
                shutil.copyfile(plugin, target / plugin.name)
                (target / plugin.name).chmod(0o644)
            (tree / "DEBIAN").mkdir()
            (tree / "DEBIAN/control").write_text(
                control(version, slurm, architecture, self.client), encoding="utf-8"
            )
            fresh = self.package.with_suffix(".new")
            self.must("dpkg-deb", "--root-owner-group", "--build", str(tree), str(fresh))
            fresh.replace(self.package)


def main() -> None:
    """Compare versions, build."""
    arguments: dict[str, Any] = {
        "archive": {"type": "path", "required": True},
        "source": {"type": "path", "required": True},
        "version": {"type": "str", "required": True},
        "package": {"type": "path", "required": True},
        "staged": {"type": "path", "default": ""},
        "wanted": {"type": "str", "default": ""},
        "pending": {"type": "bool", "default": False},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    os.umask(0o022)
    build = Build(module)
    slurm = build.slurm()
    manages = {"files": [module.params["package"]]}
    if module.check_mode and (
        module.params["pending"] or not slurm or not (build.archive.is_file() and build.source.is_file())
    ):
        module.exit_json(changed=True, package_version="", deploy_manages=manages)
    if not slurm:
        module.fail_json(
            msg=f"neither {' nor '.join(_PACKAGES)} is on this host, so there is no Slurm to build for"
        )
    beside = build.beside(slurm)
    slurm = beside or slurm
    inputs = module.sha256(str(build.archive)) + module.sha256(str(build.source))
    version = package_version(
        module.params["version"], upstream(slurm), hashlib.sha256(inputs.encode()).hexdigest()
    )
    changed = build.made() != version
    if changed and not module.check_mode:
        if not beside:
            build.fit_headers(slurm)
        build.make(version, slurm, Path(module.params["staged"], "root") if beside else None)
    module.exit_json(changed=changed, package_version=version, deploy_manages=manages)


if __name__ == "__main__":
    main()

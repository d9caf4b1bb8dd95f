"""Software for users: a tree without an owner, and versions without the files that they come from."""

from collections.abc import Iterator

from deploy.errors import Finding, Severity
from deploy.site.inventory import Host, Site
from deploy.site.values import faults, opaque
from deploy.site.versions import catalogue

_TREE = "software_tree_directory"
_PARTS = {
    "software_tree_easybuild": ("EasyBuild", ("framework", "easyblocks", "easyconfigs")),
    "software_tree_spack": ("Spack", ("spack",)),
}
"""What a version needs, by what its variables begin with."""


def check_software(site: Site) -> Iterator[Finding]:
    """All of it, each once."""
    for host in (*site.logins, *site.nodes):
        if host in site.logins:
            yield from dict.fromkeys(_tree(host))
        yield from _conda(host)


def _tree(host: Host) -> Iterator[Finding]:
    if not host.variables.get(_TREE):
        set_alone = [name for name in host.variables if name.startswith("software_tree_") and name != _TREE]
        if set_alone:
            yield Finding(
                host.where(set_alone[0]),
                "software-tree-off",
                f"{set_alone[0]} is set for {host.name}, which has no tree of software",
                f"say where it lies: {_TREE}: /software",
                Severity.WARNING,
            )
        return
    if not host.value("software_tree_owner"):
        yield Finding(
            host.where(_TREE),
            "software-tree-without-owner",
            f"{host.value(_TREE)} would belong to root, and EasyBuild and Spack do not build as root",
            "name the account that builds: software_tree_owner: NAME",
        )
    for begins, (tool, parts) in _PARTS.items():
        version, variable = host.value(f"{begins}_version"), f"{begins}_archives"
        archives = host.variables.get(variable, catalogue().get(variable, []))
        if not version or opaque(archives) or faults(variable, archives):
            continue
        found = {each["part"] for each in archives if each["version"] == version}
        missing = [part for part in parts if part not in found]
        if missing:
            yield _without_file(host, f"{begins}_version", f"{tool} {version}", variable, missing)


def _conda(host: Host) -> Iterator[Finding]:
    version, files = host.variables.get("conda_version"), host.value("conda_files")
    if not version or opaque(files) or faults("conda_files", files):
        return
    if not any(each["version"] == version for each in files):
        yield _without_file(host, "conda_version", f"micromamba {version}", "conda_files", ["program"])


def _without_file(host: Host, variable: str, what: str, files: str, missing: list[str]) -> Finding:
    where = variable if variable in host.variables else _TREE
    return Finding(
        host.where(where),
        "software-without-file",
        f"{files} has no {' and no '.join(missing)} of {what}, so that nothing says where it comes from",
        f"add an entry to {files} with version, url and sha256, or another version",
    )

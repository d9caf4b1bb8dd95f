"""Which source of packages a host uses: a bundle alone, or what its own /etc/apt says."""

from pathlib import Path

from ansible.module_utils.durable import replace_file

_SETTING = "etc/apt/apt.conf.d/05deploy-archive"
_PARTS = "etc/apt/deploy.sources.d"
_SOURCE = f"{_PARTS}/archive.sources"
_OS_RELEASE = "etc/os-release"


def paths(archive: str) -> list[str]:
    """The files of a host that takes its packages from a bundle."""
    return [f"/{_SETTING}", f"/{_SOURCE}"] if archive else []


def system(os_release: str) -> str:
    """The directory of a host in a bundle, from /etc/os-release: ``debian-13``."""
    fields = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    return "-".join(fields.get(name, "").strip("\"'") for name in ("ID", "VERSION_ID"))


def source(archive: str, key: str, directory: str) -> str:
    """The source in the form of deb822, with the key that has to have signed it."""
    lines = [line if line.strip() else "." for line in key.strip().splitlines()]
    armour = "\n".join(f" {line}" for line in lines)
    return (
        "# Made by deploy; changes made here are undone by the next run.\n"
        f"Types: deb\nURIs: {archive.rstrip('/')}/{directory}/\nSuites: ./\nSigned-By:\n{armour}\n"
    )


def settle(root: Path, archive: str, key: str, *, writes: bool) -> bool:
    """Makes the bundle the only source, or the host's own sources count; returns whether that is a change."""
    wanted = {}
    if archive:
        directory = system((root / _OS_RELEASE).read_text(encoding="utf-8"))
        wanted = {
            _SOURCE: source(archive, key, directory),
            _SETTING: f'Dir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "/{_PARTS}";\n',
        }
    changed = False
    for name in (_SOURCE, _SETTING):
        path, text = root / name, wanted.get(name)
        if (path.read_text(encoding="utf-8") if path.is_file() else None) == text:
            continue
        changed = True
        if writes and text is None:
            path.unlink()
        elif writes and text is not None:
            path.parent.mkdir(mode=0o755, exist_ok=True)
            replace_file(path, text.encode(), 0o644)
    return changed

import io
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.roles.loading import load_module

build = load_module("roles/slurm_packages/library/slurm_build.py")


class Failed(Exception):  # noqa: N818 - it stands for a module's end
    pass


def fail_json(msg: str) -> None:
    raise Failed(msg)


def tarball(directory: Path, changelog: str | None) -> Path:
    path = directory / "slurm.tar.bz2"
    with tarfile.open(path, "w:bz2") as archive:
        for name, text in (("slurm-26.05.3/META", "x"), ("slurm-26.05.3/debian/changelog", changelog)):
            if text is not None:
                member = tarfile.TarInfo(name)
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
    return path


@pytest.mark.parametrize(
    ("changelog", "expected"),
    [
        ("slurm-smd (26.05.3-1) UNRELEASED; urgency=medium\n", ""),
        ("slurm-smd (24.11.5-1) UNRELEASED; urgency=medium\n", "holds Slurm 24.11.5-1, and .* is 26.05"),
        ("slurm-wlm (26.05.3-1) unstable; urgency=medium\n", "holds packages slurm-wlm; SchedMD's own"),
        (None, r"holds no packaging \(debian/changelog\)"),
    ],
)
def test_only_schedmds_packaging_of_the_wanted_release_is_built(
    tmp_path: Path, changelog: str | None, expected: str
) -> None:
    params = {"tarball": str(tarball(tmp_path, changelog)), "archive": "/a", "version": "26.05"}
    looked = build.Build(SimpleNamespace(params=params, fail_json=fail_json))
    if expected:
        with pytest.raises(Failed, match=expected):
            looked.look()
    else:
        looked.look()


def test_what_is_no_archive_is_said(tmp_path: Path) -> None:
    (tmp_path / "slurm").write_text("<html>")
    params = {"tarball": str(tmp_path / "slurm"), "archive": "/a", "version": "26.05"}
    with pytest.raises(Failed, match="it cannot be read"):
        build.Build(SimpleNamespace(params=params, fail_json=fail_json)).look()


def test_sources_and_proxies_of_the_host_are_taken_along(tmp_path: Path) -> None:
    for name, text in (
        ("sources.list", "# deb http://old/ trixie main\n"),
        ("sources.list.d/debian.sources", "URIs: http://deb/debian\nSuites: trixie trixie-updates\n"),
        ("sources.list.d/cuda.list", "deb http://nvidia/ /\n"),
        ("sources.list.d/other.list", "deb http://deb/debian forky main\n"),
        ("apt.conf.d/70debconf", "DPkg::Pre-Install-Pkgs {};\n"),
        ("apt.conf.d/proxy", 'Acquire::http::Proxy "http://p:3128";\n'),
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert build.sources_of(tmp_path, "trixie") == [tmp_path / "sources.list.d/debian.sources"]
    assert build.proxies_of(tmp_path) == [tmp_path / "apt.conf.d/proxy"]


def test_who_builds_has_no_rights_and_no_network() -> None:
    steps = build.steps("/a b.tar", "/out.tar", 2)
    assert "--file='/a b.tar'" in steps[1]
    (built,) = (step for step in steps if "dpkg-buildpackage" in step)
    assert built.startswith('unshare --net -- chroot --userspec=65533:65533 "$1" env --ignore-environment')
    assert "parallel=2" in built

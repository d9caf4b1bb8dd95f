import hashlib
from pathlib import Path
from typing import Any

import pytest

from deploy.site.versions import catalogue
from tests.unit.roles.loading import load_module

module = load_module("roles/gpu_exporter/library/wheel_environment.py")

PURE = {"url": "https://example.org/a-1-py3-none-any.whl", "sha256": "a" * 64, "architecture": None}
AMD = {"url": "https://example.org/b-1-amd.whl", "sha256": "b" * 64, "architecture": "amd64"}
ARM = {"url": "https://example.org/b-1-arm.whl", "sha256": "c" * 64, "architecture": "arm64"}


def test_wheels_of_other_machines_are_passed_over() -> None:
    assert module.fitting([PURE, AMD, ARM], "x86_64") == [PURE, AMD]
    assert module.fitting([PURE, AMD, ARM], "aarch64") == [PURE, ARM]


def test_a_machine_that_no_wheel_is_for_is_told() -> None:
    with pytest.raises(module.InstallError, match="nothing for riscv64"):
        module.fitting([AMD, ARM], "riscv64")


def test_what_would_be_installed_decides_where_it_lies() -> None:
    one = module.digest([PURE, AMD], "python3.11")
    assert one == module.digest([AMD, PURE], "python3.11")
    # A mirror has the same files.
    assert one == module.digest([{**PURE, "url": "https://mirror/a-1-py3-none-any.whl"}, AMD], "python3.11")
    assert len({one, module.digest([PURE, ARM], "python3.11"), module.digest([PURE, AMD], "python3.13")}) == 3


def test_a_wheel_keeps_its_name_and_has_to_be_the_one(tmp_path: Path) -> None:
    source = tmp_path / "a-1-py3-none-any.whl"
    source.write_bytes(b"wheel")
    wheel = {"url": source.as_uri(), "sha256": hashlib.sha256(b"wheel").hexdigest()}
    place = tmp_path / "fetched"
    place.mkdir()
    assert module.fetch(wheel, place) == place / "a-1-py3-none-any.whl"
    with pytest.raises(module.InstallError, match="its checksum is"):
        module.fetch({**wheel, "sha256": "0" * 64}, place)
    with pytest.raises(module.InstallError, match="is no wheel"):
        module.fetch({**wheel, "url": "https://example.org/a-1.tar.gz"}, place)
    with pytest.raises(module.InstallError, match=r"other.whl: .*No such file.* bootstrap_mirror"):
        module.fetch({**wheel, "url": (tmp_path / "other.whl").as_uri()}, place)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_catalogue_has_every_package_once_for_every_architecture(machine: str) -> None:
    wheels: list[dict[str, Any]] = catalogue()["gpu_exporter_wheels"]
    names = [wheel["url"].rpartition("/")[2].partition("-")[0] for wheel in module.fitting(wheels, machine)]
    assert sorted(names) == ["nvidia_ml_py", "nvitop", "nvitop_exporter", "prometheus_client", "psutil"]
    assert all(wheel["sha256"] and wheel["url"].endswith(".whl") for wheel in wheels)


def test_an_environment_is_on_disk_before_it_is_called_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut a stamp beside files without content would be believed for ever."""
    done: list[str] = []
    keep, point = module.replace_file, module.Installer._point

    def replace_file(path: Path, content: bytes, mode: int) -> None:
        done.append(f"stamp {path.name}")
        keep(path, content, mode)

    def points(self: Any, place: Path) -> None:  # noqa: ANN401 - a class that mypy does not see
        done.append("point")
        point(self, place)

    monkeypatch.setattr(module.os, "sync", lambda: done.append("sync"))
    monkeypatch.setattr(module, "replace_file", replace_file)
    monkeypatch.setattr(module.Installer, "_point", points)
    monkeypatch.setattr(module.Installer, "_must", lambda *_: None)
    place = tmp_path / "abc"
    place.mkdir()
    monkeypatch.setattr(module.shutil, "rmtree", lambda *_, **__: None)
    module.Installer(None, tmp_path).install([], place)
    assert done == ["sync", "stamp deploy.json", "point"]
    assert (tmp_path / "current" / "deploy.json").is_file()

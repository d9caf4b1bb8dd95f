"""Images that a rehearsal serves under the names that users type."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from deploy.errors import DeployError
from deploy.lab import registry
from deploy.lab.registry import ServedImage, ensure_image, served_images

_RUN = subprocess.run  # what a test takes the place of


class Builder:
    """mmdebstrap and podman, which do nothing, and the label that an image has."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commands: list[list[str]] = []
        self.labels: dict[str, str] = {}
        self.exit = 0
        monkeypatch.setattr(registry, "read_options", lambda: ['Acquire::http::Proxy "http://p";'])
        monkeypatch.setattr(registry, "read_sources", lambda *_: ["deb http://mirror trixie main"])
        monkeypatch.setattr(registry, "require_tools", lambda _: None)
        monkeypatch.setattr(registry, "label_of", lambda name, _: self.labels.get(name))
        monkeypatch.setattr(registry, "podman", self._import)
        monkeypatch.setattr(subprocess, "run", self._run)

    def _run(self, command: list[str], **_: object) -> Any:  # noqa: ANN401 - of subprocess
        self.commands.append(command)
        return subprocess.CompletedProcess(command, self.exit, "", "I: x\nE: Unable to locate package none\n")

    def _import(self, *words: str) -> str:
        label = next(word for word in words if "LABEL" in word)
        self.labels[words[-1]] = label.rpartition("=")[2]
        return ""


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    return Builder(monkeypatch)


def image(*packages: str) -> ServedImage:
    return ServedImage("nvcr.io/nvidia/pytorch", ("1",), packages)


@pytest.mark.parametrize(
    ("name", "registry_asked", "repository"),
    [
        ("nvcr.io/nvidia/pytorch", "nvcr.io", "nvidia/pytorch"),
        ("docker.io/library/ubuntu", "registry-1.docker.io", "library/ubuntu"),
    ],
)
def test_where_a_program_asks_for_it(name: str, registry_asked: str, repository: str) -> None:
    (served,) = served_images([{"image": name, "tags": ["1"], "packages": []}])
    assert (served.registry, served.repository) == (registry_asked, repository)


def test_an_image_is_made_once_for_a_recipe(builder: Builder) -> None:
    name = ensure_image(image("python3-torch"), "trixie")
    assert ensure_image(image("python3-torch"), "trixie") == name
    (command,) = builder.commands
    assert "--include=ca-certificates,python3-torch" in command
    assert '--aptopt=Acquire::http::Proxy "http://p";' in command
    assert (command[-3], Path(command[-2]).name, command[-1]) == (
        "trixie",
        "system.tar",
        "deb http://mirror trixie main",
    )
    ensure_image(image("python3-torch", "git"), "trixie")
    assert len(builder.commands) == 2


def test_why_an_image_could_not_be_made(builder: Builder) -> None:
    builder.exit = 1
    with pytest.raises(DeployError, match=r"Unable to locate package none.*\[lab-image-failed\]"):
        ensure_image(image("none"), "trixie")


def _changed(root: Path, builder: Builder) -> None:
    """A system after what is done to one, as mmdebstrap does it."""
    ensure_image(image("python3-torch"), "trixie")
    (command,) = builder.commands
    hook = next(word for word in command if word.startswith("--customize-hook=set -e\n"))
    text = hook.removeprefix("--customize-hook=")
    check = _RUN(["sh", "-c", text, "exec", str(root)], capture_output=True, text=True, check=False)
    assert (check.returncode, check.stdout, check.stderr) == (0, "", "")


def test_pip_replaces_what_debian_installed(builder: Builder, tmp_path: Path) -> None:
    packages = tmp_path / "usr/lib/python3/dist-packages"
    for name in ("typing_extensions-4.13.2.dist-info", "PyYAML-6.0.2.dist-info"):
        (packages / name).mkdir(parents=True)
    (packages / "PyYAML-6.0.2.dist-info/RECORD").write_text("yaml/__init__.py,,\n")
    managed = tmp_path / "usr/lib/python3.13/EXTERNALLY-MANAGED"
    managed.parent.mkdir()
    managed.touch()
    _changed(tmp_path, builder)
    assert (packages / "typing_extensions-4.13.2.dist-info/RECORD").read_text() == ""
    assert (packages / "PyYAML-6.0.2.dist-info/RECORD").read_text() == "yaml/__init__.py,,\n"
    assert not managed.exists()


def test_pytorchs_processes_meet_without_libuv(builder: Builder, tmp_path: Path) -> None:
    torch = tmp_path / "usr/lib/python3/dist-packages/torch"
    files = {
        "distributed/rendezvous.py": (
            'def chosen(query):\n    return query.get("use_libuv", os.environ.get("USE_LIBUV", "1")) == "1"\n'
            "store = TCPStore(\n    port=port,\n    is_master=False,\n)\n"
            "store = TCPStore(\n    multi_tenant=True,\n    use_libuv=use_libuv,\n)\n"
        ),
        "distributed/elastic/utils/distributed.py": 'use_libuv = os.environ.get("USE_LIBUV", "1") == "1"\n',
        "distributed/elastic/rendezvous/static.py": "store = TCPStore(\n    multi_tenant=True,\n)\n",
        "bin/test_api": "",
        "bin/torch_shm_manager": "",
    }
    for name, text in files.items():
        (torch / name).parent.mkdir(parents=True, exist_ok=True)
        (torch / name).write_text(text)
    _changed(tmp_path, builder)
    there = {str(path.relative_to(torch)): path.read_text() for path in torch.rglob("*") if path.is_file()}
    assert {*files} - {*there} == {"bin/test_api"}
    for name, text in there.items():
        assert '"USE_LIBUV", "1"' not in text
        compile(text, name, "exec")
        assert text.count("TCPStore(") == text.count("use_libuv=")


def test_a_system_without_python_is_left_as_it_is(builder: Builder, tmp_path: Path) -> None:
    (tmp_path / "usr/lib/x86_64-linux-gnu").mkdir(parents=True)
    _changed(tmp_path, builder)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []

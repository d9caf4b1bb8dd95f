"""Images that a rehearsal serves under the names that users type."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from deploy.errors import DeployError
from deploy.lab import registry
from deploy.lab.registry import ServedImage, ensure_image, served_images


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

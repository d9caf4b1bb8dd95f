"""Homes of members of a directory's groups: one that hangs or fails keeps nobody else from theirs."""

import importlib.machinery
import importlib.util
import pwd
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.roles.loading import ROOT


@pytest.fixture
def homes() -> Any:  # noqa: ANN401
    path = str(ROOT / "roles/sssd/files/deploy-directory-homes")
    loader = importlib.machinery.SourceFileLoader("deploy_directory_homes", path)
    spec = importlib.util.spec_from_loader("deploy_directory_homes", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_a_home_that_hangs_keeps_nobody_from_theirs(
    homes: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = []

    def run(command: list[str], **_: object) -> SimpleNamespace:
        if command[0] == "mkhomedir_helper":
            made.append(command[1])
            if command[1] == "adam":
                raise subprocess.TimeoutExpired(command, 60)
        return SimpleNamespace(returncode=1 if command[1] == "bea" else 0, stderr="no space")

    place = Path("/usr")
    people = {
        name: pwd.struct_passwd((name, "x", 20001, 20001, "", str(place / f"none-of-{name}"), "/bin/sh"))
        for name in ("adam", "bea", "lena")
    }
    monkeypatch.setattr(homes.subprocess, "run", run)
    monkeypatch.setattr(homes.grp, "getgrnam", lambda _: SimpleNamespace(gr_mem=[*people]))
    monkeypatch.setattr(homes.pwd, "getpwnam", people.__getitem__)
    assert homes.main("0077", ["research"]) == 1
    assert made == ["adam", "bea", "lena"]
    said = capsys.readouterr()
    assert said.out == "/usr/none-of-lena: made\n"
    assert said.err == (
        "/usr/none-of-adam: not made: no end after 60 seconds\n/usr/none-of-bea: not made: no space\n"
    )

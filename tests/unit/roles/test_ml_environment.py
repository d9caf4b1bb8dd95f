import os
import pwd
import subprocess
import sys
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/ml_stack/library/ml_environments.py")
ml = import_module("ansible.module_utils.ml_environment")
PYTHON = "/usr/bin/python3.13 python3.13"


def environment(**changes: object) -> object:
    entry = {"name": "torch", "version": "2.9", "requirements": ["torch==2.9.1"], "python": None}
    return ml.Environment.declared({**entry, **changes})


def place(**changes: object) -> Path:
    found: Path = environment(**changes).place(Path("/s"), PYTHON)  # type: ignore[attr-defined]
    return found


def test_what_would_be_installed_decides_where_an_environment_lies() -> None:
    assert place().parent == Path("/s/environments")
    assert place().name.startswith("torch-2.9-")
    assert place(requirements=["torch==2.9.2"]) != place()
    assert place(requirements=["b==1", "a==1"]) == place(requirements=["a==1", "b==1"])
    # Another mirror brings the same packages.
    assert place(index_url="https://mirror.example/simple") == place()
    assert environment().place(Path("/s"), "/usr/bin/python3.14 python3.14") != place()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("changes", "settings"),
    [
        ({}, {}),
        ({"find_links": "/wheels"}, {"PIP_FIND_LINKS": "/wheels", "PIP_NO_INDEX": "1"}),
        (
            {
                "index_url": "https://a.example",
                "extra_index_urls": ["https://b.example", "https://c.example"],
            },
            {
                "PIP_INDEX_URL": "https://a.example",
                "PIP_EXTRA_INDEX_URL": "https://b.example https://c.example",
            },
        ),
        (
            {"index_url": "https://a.example", "find_links": "/wheels"},
            {"PIP_INDEX_URL": "https://a.example", "PIP_FIND_LINKS": "/wheels"},
        ),
    ],
)
def test_where_pip_looks(changes: dict[str, object], settings: dict[str, str]) -> None:
    assert environment(**changes).pip_settings() == settings  # type: ignore[attr-defined]


def test_a_module_file_says_which_environment_it_loads() -> None:
    text = environment().module_text(Path("/s/environments/x"))  # type: ignore[attr-defined]
    assert text.startswith("#%Module")
    assert ml.place_of(text) == Path("/s/environments/x")
    assert ml.place_of("#%Module1.0\nsetenv A /b\n") is None


def test_only_module_files_of_ours_that_nothing_declares_go(tmp_path: Path) -> None:
    kept = environment().module_file(tmp_path)  # type: ignore[attr-defined]
    kept.parent.mkdir(parents=True)
    text = environment().module_text(tmp_path / "environments/x")  # type: ignore[attr-defined]
    old, foreign = kept.with_name("1.0"), kept.with_name("own")
    for path in (kept, old):
        path.write_text(text)
    foreign.write_text("#%Module1.0\n")
    assert ml.leftover_module_files(tmp_path, [kept]) == [old]


def test_an_environment_without_its_stamp_is_not_complete(tmp_path: Path) -> None:
    assert not ml.is_complete(tmp_path)
    (tmp_path / ml.STAMP).touch()
    assert ml.is_complete(tmp_path)


def test_an_update_of_python_makes_no_other_environment() -> None:
    """Debian's security updates keep the version, and have another date in sys.version."""

    def run_command(command: list[str], **_: object) -> tuple[int, str, str]:
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout, ended.stderr

    fake = SimpleNamespace(params={"directory": "/s", "owner": pwd.getpwuid(os.geteuid()).pw_name})
    fake.run_command = run_command
    minor = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    found = module.Builder(fake)._version(environment(python=sys.executable))
    assert found == f"{os.path.realpath(sys.executable)} {minor}"


@pytest.mark.parametrize(
    ("changes", "is_kept"),
    [
        ({}, True),
        ({"requirements": ["torch==2.9.2"]}, False),
        ({"version": "3.0"}, False),
    ],
)
def test_what_users_load_and_is_as_declared_stays(
    tmp_path: Path, *, changes: dict[str, object], is_kept: bool
) -> None:
    lies = tmp_path / "environments/torch-2.9-0123456789ab"
    (lies / "lib/python3.13").mkdir(parents=True)
    (lies / "bin").mkdir()
    (lies / "bin/python").symlink_to("/opt/python3.13")
    (lies / "requirements.txt").write_text("torch==2.9.1\n")
    file = environment().module_file(tmp_path)  # type: ignore[attr-defined]
    file.parent.mkdir(parents=True)
    file.write_text(environment().module_text(lies))  # type: ignore[attr-defined]
    wanted = environment(**changes)

    def kept(python: str = "/opt/python3.13 python3.13") -> object:
        return wanted.kept(tmp_path, python)  # type: ignore[attr-defined]

    assert kept() is None, "it is not complete"
    (lies / ml.STAMP).touch()
    assert kept() == (lies if is_kept else None)
    assert kept("/opt/python3.13 python3.14") is None
    assert kept("/other/python3.13 python3.13") is None


def test_a_host_that_does_not_see_an_environment_says_why(tmp_path: Path) -> None:
    wanted = environment()
    assert module.unseen(wanted, tmp_path) == f"{tmp_path}/modulefiles/torch/2.9 is not there"
    lies = tmp_path / "environments/x"
    file = wanted.module_file(tmp_path)  # type: ignore[attr-defined]
    file.parent.mkdir(parents=True)
    file.write_text(wanted.module_text(lies))  # type: ignore[attr-defined]
    assert module.unseen(wanted, tmp_path) == f"{lies} is not there, or not complete"
    (lies / "bin").mkdir(parents=True)
    (lies / ml.STAMP).touch()
    (lies / "bin/python").symlink_to("/no/such/python")
    assert "does not run: this host has no Python of that version" in module.unseen(wanted, tmp_path)
    (lies / "bin/python").unlink()
    (lies / "bin/python").symlink_to("/bin/sh")
    assert module.unseen(wanted, tmp_path) == ""


def test_an_environment_is_on_disk_before_it_is_called_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut a stamp beside files without content would be believed for ever."""
    done: list[str] = []
    me = pwd.getpwuid(os.geteuid())

    def install(*_: object) -> list[str]:
        done.append("installed")
        return ["torch==2.9.1"]

    monkeypatch.setattr(module, "_account", lambda _: me)
    monkeypatch.setattr(module.os, "sync", lambda: done.append("sync"))
    monkeypatch.setattr(module, "copy_tree", lambda *_: done.append("copied"))
    monkeypatch.setattr(module.BuildPlace, "made", lambda _: nullcontext())
    monkeypatch.setattr(module, "_write", lambda path, _: done.append(path.name))
    monkeypatch.setattr(module.Builder, "_install", install)
    fake = SimpleNamespace(params={"directory": str(tmp_path), "owner": "me", "builder": "me"})
    fake.params["build_directory"] = str(tmp_path / "build")
    target = tmp_path / "environments" / "torch"
    module.Builder(fake)._fill(environment(), target)
    assert done[:3] == ["installed", "copied", "sync"]
    assert done[-1] == ml.STAMP

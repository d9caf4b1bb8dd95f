"""Keys of Ceph's users are for root, and go when their users are declared no more."""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from tests.unit.roles.loading import load_module

module = load_module("roles/network_mounts/library/ceph_secrets.py")


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where files may be written by those who run the tests, and belong to them."""
    monkeypatch.setattr("ansible.module_utils.given.DIRECTORY", tmp_path / "given")
    for name in ("set_owner_if_different", "set_group_if_different"):
        monkeypatch.setattr(basic.AnsibleModule, name, lambda _self, _path, _owner, changed: changed)
    directory = tmp_path / "ceph"
    directory.mkdir()
    return directory


def run(
    directory: Path, monkeypatch: pytest.MonkeyPatch, *, check: bool = False, **secrets: str
) -> dict[str, Any]:
    arguments = {"path": str(directory), "secrets": secrets, "_ansible_check_mode": check}
    monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode())
    monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy")
    said = io.StringIO()
    with redirect_stdout(said), pytest.raises(SystemExit):
        module.main()
    return dict(json.loads(said.getvalue()))


def test_a_key_is_for_root_and_goes_with_its_user(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(host, monkeypatch, one="first", two="second")["changed"]
    assert (host / "one.secret").read_text() == "first\n"
    assert (host / "one.secret").stat().st_mode & 0o777 == 0o600
    assert not run(host, monkeypatch, one="first", two="second")["changed"]
    assert run(host, monkeypatch, check=True, one="first")["removed"] == ["two"]
    assert (host / "two.secret").exists()
    assert run(host, monkeypatch, one="first")["removed"] == ["two"]
    assert [path.name for path in host.iterdir()] == ["one.secret"]
    assert not run(host, monkeypatch, one="first")["changed"]


def test_files_of_others_stay(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (host / "theirs.secret").write_text("of somebody else\n")
    # What is there and as it is declared was not written for us.
    (host / "same.secret").write_text("first\n")
    assert run(host, monkeypatch, same="first")["changed"], "its mode"
    assert run(host, monkeypatch)["removed"] == []
    assert sorted(path.name for path in host.iterdir()) == ["same.secret", "theirs.secret"]


def test_the_answer_has_no_key(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "a-long-secret" not in json.dumps(run(host, monkeypatch, one="a-long-secret"))


def test_check_mode_needs_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(tmp_path / "missing", monkeypatch, check=True, one="first")["changed"]
    assert not (tmp_path / "missing").exists()

"""Files and directories become what is declared in one call, and systemd reads its units after a change."""

import io
import json
import os
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from tests.unit.roles.loading import load_module

module = load_module("playbooks/library/root_files.py")


@dataclass
class Host:
    """A place for files, and a systemctl of its own."""

    place: Path
    files: Path

    def run(self, declared: Mapping[str, object], *, check: bool = False) -> dict[str, Any]:
        """What the module says, called as Ansible calls it."""
        arguments = {**declared, "_ansible_check_mode": check, "_ansible_diff": True}
        said = io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode())
            patch.setattr(basic, "_ANSIBLE_PROFILE", "legacy")
            with redirect_stdout(said), pytest.raises(SystemExit):
                module.main()
        return dict(json.loads(said.getvalue()))

    def path(self, name: str) -> str:
        return str(self.files / name)

    def reloads(self) -> int:
        """How often systemctl was asked since the last time."""
        asked = self.place / "asked"
        count = len(asked.read_text().splitlines()) if asked.exists() else 0
        asked.unlink(missing_ok=True)
        return count

    def refuse(self, code: int) -> None:
        """What systemctl ends with from now on."""
        program = self.place / "systemctl"
        program.write_text(f"#!/bin/sh\necho $1 >>{self.place}/asked\nexit {code}\n")
        program.chmod(0o755)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Where files may be written by those who run the tests, and belong to them."""
    for name in ("set_owner_if_different", "set_group_if_different"):
        monkeypatch.setattr(basic.AnsibleModule, name, lambda _self, _path, _owner, changed: changed)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(module, "_TO_BE_READ", tmp_path / "run/units-changed")
    made = Host(tmp_path, tmp_path / "etc")
    made.refuse(0)
    return made


def test_files_and_directories_are_made_and_then_left_alone(host: Host) -> None:
    declared = {
        "directories": [host.path("empty")],
        "files": {host.path("d/one"): "1\n", host.path("two"): "2\n"},
        "modes": {host.path("two"): "0755"},
    }
    assert host.run(declared, check=True)["changed"]
    assert not host.files.exists()
    said = host.run(declared)
    assert said["changed"]
    assert [part["after"] for part in said["diff"]] == ["1\n", "2\n"]
    assert (host.files / "d/one").read_text() == "1\n"
    assert (host.files / "two").stat().st_mode & 0o777 == 0o755
    assert (host.files / "empty").is_dir()
    assert [*said["deploy_manages"]["files"]] == [host.path(name) for name in ("empty", "d/one", "two")]
    assert not host.run(declared)["changed"]
    (host.files / "empty").chmod(0o700)
    assert host.run(declared, check=True)["changed"]
    assert host.run(declared)["changed"]
    assert (host.files / "empty").stat().st_mode & 0o777 == 0o755


def test_what_files_say_is_not_in_the_journal_of_each_run(host: Host) -> None:
    said = host.run({"files": {host.path("one"): "much\n"}})
    assert said["invocation"]["module_args"]["files"] == [host.path("one")]
    del said["diff"]
    assert "much" not in json.dumps(said)


def test_one_that_keeps_its_content_is_written_where_it_is_missing(host: Host) -> None:
    """As /etc/default/locale of Debian 13: a link to a file that may be missing."""
    host.files.mkdir()
    (host.files / "link").symlink_to("target")
    declared = {"files": {host.path("link"): "ours\n"}, "keeps": [host.path("link")]}
    assert host.run(declared)["changed"]
    assert (host.files / "link").is_symlink()
    target = host.files / "target"
    assert target.read_text() == "ours\n"
    target.write_text("theirs\n")
    target.chmod(0o606)
    said = host.run(declared)
    assert said["changed"]
    assert said["diff"] == []
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("theirs\n", 0o644)
    assert not host.run(declared)["changed"]


@pytest.mark.parametrize("text", ["theirs\n", "ours\n"])
def test_a_link_in_the_place_of_a_file_is_replaced_and_leads_nowhere(host: Host, text: str) -> None:
    host.files.mkdir()
    (host.files / "of-others").write_text("theirs\n")
    (host.files / "one").symlink_to("of-others")
    declared = {"files": {host.path("one"): text}}
    assert host.run(declared, check=True)["changed"]
    assert host.run(declared)["changed"]
    assert not (host.files / "one").is_symlink()
    assert (host.files / "one").read_text() == text
    assert (host.files / "of-others").read_text() == "theirs\n"


def test_what_is_not_to_be_there_goes(host: Host) -> None:
    for name in ("user-1.d/x.conf", "user-2.d/x.conf", "user-.d/x.conf", "gone", "stays"):
        path = host.files / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    declared = {
        "files": {host.path("user-1.d/x.conf"): ""},
        "absent": [host.path("gone"), host.path("never")],
        "none_other": [host.path("user-[0-9]*.d/x.conf")],
    }
    assert host.run(declared, check=True)["changed"]
    assert (host.files / "gone").exists()
    said = host.run(declared)
    assert said["changed"]
    left = {str(path.relative_to(host.files)) for path in host.files.rglob("*") if path.is_file()}
    assert left == {"user-1.d/x.conf", "user-.d/x.conf", "stays"}
    managed = said["deploy_manages"]["files"]
    assert {name for name, state in managed.items() if state is None} == {
        host.path(name) for name in ("gone", "never", "user-2.d/x.conf")
    }
    assert not host.run(declared)["changed"]


def test_systemd_reads_its_units_after_a_change_and_at_no_other_time(host: Host) -> None:
    declared = {"files": {host.path("a.service.d/x.conf"): "1\n"}, "reloads_systemd": True}
    host.run(declared, check=True)
    assert host.reloads() == 0
    host.run(declared)
    assert host.reloads() == 1
    host.run(declared)
    assert host.reloads() == 0
    host.run({"absent": [host.path("a.service.d/x.conf")], "reloads_systemd": True})
    assert host.reloads() == 1


def test_a_reload_that_was_missed_is_made_up_for(host: Host) -> None:
    declared = {"files": {host.path("x.conf"): "1\n"}, "reloads_systemd": True}
    host.refuse(1)
    assert host.run(declared)["failed"]
    host.refuse(0)
    host.reloads()
    assert not host.run(declared)["changed"]
    assert host.reloads() == 1

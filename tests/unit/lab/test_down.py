"""What is left of a lab that is taken away, also where that is cut off."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.errors import DeployError
from deploy.lab import down, rehearsal, stage
from deploy.lab.directory import LabDirectory
from deploy.lab.rehearsed_site import Rehearsed
from deploy.lab.state import Lab
from tests.unit.lab.test_labs import lab_of
from tests.unit.site.test_rehearsed_site import SITE


def rehearsal_in(directory: Path) -> Lab:
    (directory / ".lab").mkdir(parents=True)
    (directory / "secrets.yml").write_text("munge_key: x\n")
    return replace(lab_of(), directory=directory, is_rehearsal=True)


def test_the_network_by_which_a_lab_is_known_goes_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = rehearsal_in(tmp_path / "stage")
    there: list[bool] = []
    monkeypatch.setattr(down, "inspect_machine", lambda: None)
    monkeypatch.setattr(down, "need_lab", lambda _name: lab)
    monkeypatch.setattr(down, "query", lambda *_: [])
    monkeypatch.setattr(down, "podman", lambda *_: there.append(lab.directory.exists()))
    monkeypatch.setattr(down, "drop_old_images", lambda: None)
    removal = down.take_down("two", delete_directory=True)
    assert there == [False]
    assert removal.kept == ()
    assert down.take_down("two", delete_directory=True).kept == ()


@pytest.mark.parametrize("name", ["inventory.ini", "group_vars/mine.yml"])
def test_what_was_left_is_a_site_only_if_it_was_before(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = LabDirectory(tmp_path)
    directory.write({"ctl1": "10.213.7.2"}, release="trixie", gpus=2, cgroup_v1=False)
    (tmp_path / name).write_text("mine: true\n")
    monkeypatch.setattr(down, "inspect_machine", lambda: None)
    monkeypatch.setattr(down, "need_lab", lambda _name: replace(lab_of(), directory=tmp_path))
    monkeypatch.setattr(down, "query", lambda *_: [])
    monkeypatch.setattr(down, "podman", lambda *_: None)
    monkeypatch.setattr(down, "drop_old_images", lambda: None)
    removal = down.take_down("two", delete_directory=True)
    assert removal.is_of_a_site == (name == "inventory.ini")
    assert removal.kept == (
        ("group_vars", "inventory.ini", "validation.yml") if removal.is_of_a_site else ("group_vars",)
    )


def test_a_rehearsal_leaves_the_lab_of_another_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which was made after this run looked, and before it had the lock."""
    other = rehearsal_in(tmp_path / "other")
    labs: list[Lab] = []
    taken: list[str] = []

    def set_up(*_words: object) -> None:
        labs.append(other)
        raise KeyboardInterrupt

    monkeypatch.setattr(stage, "find_lab", lambda _name: labs[0] if labs else None)
    monkeypatch.setattr(stage, "set_up", set_up)
    monkeypatch.setattr(stage, "take_down", lambda name, **_: taken.append(name))
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: str(tmp_path))
    what = Rehearsed(SITE, (), {}, ())
    with pytest.raises(KeyboardInterrupt), stage.staged(what, "two", "trixie", print, is_kept=False):
        pass
    assert taken == []


def test_a_rehearsal_takes_down_its_own_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = rehearsal_in(tmp_path / "own")
    taken: list[str] = []

    def set_up(*_words: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(stage, "find_lab", lambda _name: lab)
    monkeypatch.setattr(stage, "set_up", set_up)
    monkeypatch.setattr(stage, "take_down", lambda name, **_: taken.append(name))
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: str(lab.directory))
    what = Rehearsed(SITE, (), {}, ())
    with pytest.raises(KeyboardInterrupt), stage.staged(what, "two", "trixie", print, is_kept=False):
        pass
    assert taken == ["two"]


@pytest.mark.parametrize("is_rehearsal", [True, False])
def test_only_a_rehearsal_is_said_to_be_taken_down(
    *, is_rehearsal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another lab of the name the machines are somebody's."""
    monkeypatch.setattr(rehearsal, "inspect_machine", lambda: None)
    monkeypatch.setattr(rehearsal, "find_lab", lambda _name: replace(lab_of(), is_rehearsal=is_rehearsal))
    with pytest.raises(DeployError, match="rehearsal-exists") as caught:
        rehearsal.set_up(Rehearsed(SITE, (), {}, ()), "two", tmp_path, "trixie", print)
    assert ("deploy lab down" in str(caught.value)) == is_rehearsal

"""Who may have something started by cron and at, where a site has lists of its own and where not."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/job_ssh/library/job_ssh_timetables.py")
OWN = module._HEAD + "root\nops\n"


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    paths = (tmp_path / "cron.allow", tmp_path / "at.allow")
    monkeypatch.setattr(module, "_LISTS", paths)
    return paths


def run(monkeypatch: pytest.MonkeyPatch, state: str, *, check_mode: bool = False) -> dict[str, Any]:
    answers: list[dict[str, Any]] = []

    class Machine:
        """As much of AnsibleModule as is asked for."""

        def __init__(self, **_: object) -> None:
            self.check_mode, self.params = check_mode, {"users": ["ops"], "state": state}

        def exit_json(self, **answer: Any) -> None:  # noqa: ANN401
            answers.append(answer)

    def keep(_: object, path: Path, text: str) -> bool:
        differs = not path.exists() or path.read_text() != text
        if differs and not check_mode:
            path.write_text(text)
        return differs

    monkeypatch.setattr(module, "AnsibleModule", Machine)
    monkeypatch.setattr(module, "keep", keep)
    module.main()
    return answers[0]


def test_a_list_of_the_sites_stays_as_it_is(
    lists: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cron, at = lists
    at.write_text("alice\n")
    assert run(monkeypatch, "present", check_mode=True)["changed"]
    assert not cron.exists()
    assert [*run(monkeypatch, "present")["deploy_manages"]["files"]] == [str(cron), str(at)]
    assert (cron.read_text(), at.read_text()) == (OWN, "alice\n")
    assert not run(monkeypatch, "present")["changed"]
    assert run(monkeypatch, "absent")["changed"]
    assert (cron.exists(), at.read_text()) == (False, "alice\n")
    assert not run(monkeypatch, "absent")["changed"]


def test_what_somebody_adds_to_ours_goes(lists: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    cron, _ = lists
    cron.write_text(OWN + "alice\n")
    assert run(monkeypatch, "present")["changed"]
    assert cron.read_text() == OWN

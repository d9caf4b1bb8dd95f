"""The page of what is not watched is whole: every daemon can be asked, takes no orders, or has an entry."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.plan.probes import declared as probes
from docs.generators.unwatched import declared, kept_by, outputs
from tests.contract.content import ROOT, role_directories, tasks

_SERVICES = ("service_current", "ansible.builtin.systemd_service", "ansible.builtin.service")


def daemons(role: Path) -> Iterator[str]:
    """The services that a role sees to; a timer is no daemon."""
    for task in tasks(role):
        for module in _SERVICES:
            name = str(task.words.get(module, {}).get("name", ""))
            if name and not name.endswith(".timer"):
                yield name


@pytest.mark.parametrize("role", role_directories(), ids=lambda role: role.name)
def test_what_a_daemon_can_be_told_is_asked_or_said(role: Path) -> None:
    entries = declared(role)
    is_said = any(entry.get("running") or entry.get("takes_orders") is False for entry in entries)
    if [*daemons(role)] and not probes(role.name):
        assert is_said, "say in meta/unwatched.yml what its daemon can be told, or takes_orders: false"


@pytest.mark.parametrize("role", role_directories(), ids=lambda role: role.name)
def test_every_entry_has_a_reason(role: Path) -> None:
    for entry in declared(role):
        if "what" in entry:
            assert entry["what"][0] not in "A."
            assert entry["why"].endswith(".")
        elif entry.keys() <= {"edited", "kept"}:
            assert all(path.startswith("/etc/") for paths in entry.values() for path in paths)
        else:
            assert entry == {"takes_orders": False}
            assert [*daemons(role)] or role.name == "deploy_metrics"


def test_the_page_is_short() -> None:
    ((path, text),) = outputs(ROOT)
    assert path.name == "not-watched.md"
    assert len([line for line in text.splitlines() if line.startswith("| ")]) <= 35


def test_a_file_whose_content_stays_has_to_be_declared(tmp_path: Path) -> None:
    for place in ("tasks", "meta"):
        (tmp_path / place).mkdir()
    task = "- block: [{ansible.builtin.copy: {dest: '{{ a }}', content: '', force: false}}]\n"
    (tmp_path / "tasks" / "main.yml").write_text(task)
    with pytest.raises(ValueError, match=r"meta/unwatched.yml: its kept are not what the tasks have"):
        [*kept_by(tmp_path)]
    (tmp_path / "meta" / "unwatched.yml").write_text("- kept: [/etc/a]\n")
    assert [*kept_by(tmp_path)] == ["/etc/a"]


def test_a_daemon_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    text = "- {service_current: {name: a}}\n- {service_current: {name: b.timer}}\n"
    (tmp_path / "tasks" / "main.yml").write_text(text)
    assert [*daemons(tmp_path)] == ["a"]

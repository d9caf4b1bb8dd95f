"""What a role manages is recorded on its hosts, so that drift is found."""

from pathlib import Path

import pytest

from deploy.plan.probes import declared
from tests.contract.content import options, role_directories
from tests.contract.recorded import unrecorded


@pytest.mark.parametrize("role", role_directories(), ids=lambda role: role.name)
def test_everything_a_role_manages_is_recorded(role: Path) -> None:
    assert list(unrecorded(role)) == []


@pytest.mark.parametrize("role", role_directories(), ids=lambda role: role.name)
def test_probes_are_well_formed(role: Path) -> None:
    for probe in declared(role.name):
        assert probe.keys() - {"mended_by", "ignore"} in ({"name", "argv"}, {"name", "files"})
        assert probe.get("mended_by", f"{role.name}_").startswith(f"{role.name}_")
        assert probe.get("mended_by") in {None, *options(role)}
        assert probe["name"]
        assert all(isinstance(word, str) and word for word in probe.get("argv") or probe["files"])


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("{ansible.builtin.hostname: {name: x}}", "no recorder understands ansible.builtin.hostname"),
        ("{ansible.builtin.command: {argv: [x]}}", "what a command changes has to be asked"),
        ("{ansible.builtin.copy: {dest: /etc/x}, no_log: true}", "its result is hidden"),
        ("{unheard_of: {}}", "returns no deploy_manages"),
    ],
)
def test_what_is_not_recorded_is_noticed(tmp_path: Path, task: str, expected: str) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "main.yml").write_text(f"- {task}\n")
    assert expected in "\n".join(unrecorded(tmp_path))


def test_what_is_recorded_passes(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "main.yml").write_text(
        "- {ansible.builtin.copy: {dest: /etc/x}, no_log: true}\n"
        "- {service_current: {name: x, inputs: [/etc/x]}}\n"
        "- {ansible.builtin.command: {argv: [x]}, changed_when: false}\n"
        "- {ansible.builtin.wait_for: {port: 1}}\n"
    )
    assert list(unrecorded(tmp_path)) == []

"""What a role manages is recorded on its hosts, so that drift is found."""

import re
import subprocess
from pathlib import Path

import pytest

from deploy.plan.probes import declared, probes
from tests.contract.content import options, role_directories, tasks
from tests.contract.recorded import unrecorded


@pytest.mark.parametrize("role", role_directories(), ids=lambda role: role.name)
def test_everything_a_role_manages_is_recorded(role: Path) -> None:
    assert list(unrecorded(role)) == []


@pytest.mark.parametrize("role", role_directories(), ids=lambda role: role.name)
def test_probes_are_well_formed(role: Path) -> None:
    for probe in declared(role.name):
        kinds = ({"name", "argv"}, {"name", "files"}, {"name", "program"}, {"name", "program", "arguments"})
        assert probe.keys() - {"mended_by", "ignore", "must_be_empty"} in kinds
        assert probe.get("mended_by", f"{role.name}_").startswith(f"{role.name}_")
        assert probe.get("mended_by") in {None, *options(role)}
        assert probe["name"]
        words = probe.get("argv") or probe.get("files") or [probe["program"]]
        assert all(isinstance(word, str) and word for word in words)


@pytest.mark.parametrize("role", role_directories(), ids=lambda role: role.name)
def test_programs_of_probes_run_by_themselves(role: Path) -> None:
    for probe in probes(role.name):
        if probe.get("must_be_empty"):
            done = subprocess.run(probe["argv"], capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, "")


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


@pytest.mark.parametrize("role", role_directories(), ids=lambda role: role.name)
def test_a_line_of_the_environment_is_found_as_pam_reads_it(role: Path) -> None:
    """Otherwise deploy would write one, and another that is written otherwise would count instead."""
    for task in tasks(role):
        edit = task.words.get("ansible.builtin.lineinfile", {})
        if edit.get("path") == "/etc/environment":
            name = edit["line"].partition("=")[0]
            for line in (f"{name}=x", f"export {name}=x", f"\t {name}="):
                assert re.search(edit["regexp"], line), line
            assert not re.search(edit["regexp"], f"OTHER_{name}=x")


_FROM_FILES = re.compile(
    r"include_vars|with_(?:file|fileglob|lines|first_found)\b|\b(?:file|fileglob|lines)'"
)


@pytest.mark.parametrize("role", role_directories(), ids=lambda role: role.name)
def test_what_a_role_reads_is_its_own(role: Path) -> None:
    """A fingerprint has the files of a role; what the site looks up is resolved before (test_fingerprint)."""
    for place in ("tasks", "vars", "defaults"):
        for path in sorted((role / place).glob("*.yml")):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if _FROM_FILES.search(line):
                    is_own = "role_path" in line or f"__{role.name}_" in line
                    assert is_own, f"{path}:{number}: another file counts for no fingerprint"

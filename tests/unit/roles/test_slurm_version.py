from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

module = load_module("playbooks/module_utils/host_checks/slurm_version.py")
OFFERED = "slurm-client:\n  Installed: (none)\n  Candidate: 24.11.5-4\n  Version table:\n"


def answers(**outputs: str) -> object:
    return lambda program, *_: outputs.get(program.replace("-", "_"), "")


def test_what_is_installed_counts() -> None:
    assert module.slurm_version(answers(dpkg_query="ii  22.05.8-4+deb12u3", apt_cache=OFFERED)) == (
        "22.05.8-4+deb12u3"
    )


def test_else_what_the_archive_offers() -> None:
    assert module.slurm_version(answers(apt_cache=OFFERED)) == "24.11.5-4"
    assert module.slurm_version(answers(dpkg_query="rc  22.05.8", apt_cache=OFFERED)) == "24.11.5-4"


def test_what_is_built_for_the_host_counts_before_what_the_archive_offers() -> None:
    assert module.slurm_version(answers(apt_cache=OFFERED), "26.05") == "26.05"
    assert module.slurm_version(answers(dpkg_query="ii  24.11.5-1"), "26.05") == "24.11.5-1"


def test_a_machine_that_gets_another_source_is_not_judged_by_what_it_has_without() -> None:
    assert module.slurm_version(answers(apt_cache=OFFERED), has_other_source=True) == ""
    installed = answers(dpkg_query="ii  26.05.5-1", apt_cache=OFFERED)
    assert module.slurm_version(installed, has_other_source=True) == "26.05.5-1"


def test_nothing_to_be_had() -> None:
    assert module.slurm_version(answers(apt_cache=OFFERED.replace("24.11.5-4", "(none)"))) == ""
    assert module.slurm_version(answers()) == ""


NEED = {"since": "24.05", "setting": "x: y", "older": "it falls", "instead": "leave x out"}


def test_what_a_release_does_not_know_is_refused() -> None:
    (finding,) = module.check_needs("22.05.8-4+deb12u3", [NEED])
    assert (finding["severity"], finding["reference"]) == ("error", "slurm-too-old")
    assert finding["message"] == (
        "x: y takes Slurm 24.05 or later, and this host has 22.05.8-4+deb12u3: it falls"
    )
    assert finding["hint"] == "leave x out"
    assert [*module.check_needs("1:23.11.4-1.2ubuntu5", [NEED])]
    for version in ("24.05.0", "24.11.5-4", "26.05", ""):
        assert not [*module.check_needs(version, [NEED])]


@pytest.mark.parametrize(
    ("version", "is_unified", "is_refused"),
    [
        ("21.08.5-2ubuntu1", True, True),
        ("21.08.5-2ubuntu1", False, False),
        ("22.05.8-4+deb12u3", True, False),
        ("", True, False),
    ],
)
def test_a_slurmd_of_former_control_groups_alone(
    tmp_path: Path, version: str, *, is_unified: bool, is_refused: bool
) -> None:
    place = tmp_path / "sys/fs/cgroup"
    place.mkdir(parents=True)
    if is_unified:
        (place / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    found = [*module.check_control_groups(version, tmp_path)]
    assert [finding["reference"] for finding in found] == ["slurm-needs-cgroup-v1"] * is_refused
    assert all("systemd.unified_cgroup_hierarchy=0" in finding["hint"] for finding in found)

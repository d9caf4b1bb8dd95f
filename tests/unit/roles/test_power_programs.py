"""The programs by which slurmctld switches nodes: where they are, and which of a site's are refused."""

from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

program_paths = load_module("roles/slurmctld/filter_plugins/program_paths.py").program_paths
power_programs = load_module("roles/slurmctld/library/power_programs.py")


def test_a_text_has_a_place_and_a_path_is_one() -> None:
    said = {"suspend": {"text": "#!/bin/sh"}, "resume": {"path": "/opt/resume"}, "resume_fail": {}}
    assert program_paths(said, "/usr/lib/x") == {
        "suspend": "/usr/lib/x/suspend",
        "resume": "/opt/resume",
        "resume_fail": "",
    }


def test_a_program_of_roots_is_trusted() -> None:
    assert power_programs.why_not_trusted(Path("/bin/true")) == ""


@pytest.mark.parametrize(
    ("place", "why"), [("/usr/local/none", "it is not there: "), ("/usr", "it is no file")]
)
def test_what_is_no_program_is_not(place: str, why: str) -> None:
    assert power_programs.why_not_trusted(Path(place)).startswith(why)


def test_what_others_can_change_is_not(tmp_path: Path) -> None:
    program = tmp_path / "resume"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o777)
    assert power_programs.why_not_trusted(program) == f"others than root can change {program}"


def test_what_others_can_lead_elsewhere_is_not(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    link = tmp_path / "resume"
    link.symlink_to("/usr/bin/env")
    assert power_programs.why_not_trusted(link) == f"others than root can change {tmp_path}"
    assert power_programs.why_not_trusted(Path("/usr/bin/awk")) == ""

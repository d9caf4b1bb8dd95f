from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.roles.loading import load_module

stage = load_module("roles/slurm_packages/library/slurm_stage.py")

SIMULATED = """\
Inst libllhttp9.4 (9.4.3+~cs12.11.9-2 Debian:testing [amd64])
Inst slurmctld [24.11.5-4+deb13u1] (26.05.5-1 Debian:testing [amd64]) []
Remv slurm-pyxis [0.20.0]
Conf slurmctld (26.05.5-1 Debian:testing [amd64])
"""


class _Failed(Exception):  # noqa: N818 - the module ends there
    pass


@pytest.mark.parametrize(("replaced", "is_refused"), [([], True), (["slurm-pyxis"], False)])
def test_nothing_goes_but_what_others_come_for(
    tmp_path: Path, replaced: list[str], *, is_refused: bool
) -> None:
    def fail_json(msg: str) -> None:
        raise _Failed(msg)

    def run_command(_: list[str], **__: object) -> tuple[int, str, str]:
        return 0, SIMULATED, ""

    params = {"version": "26.05", "also": [], "packages": ["slurmctld"], "replaced": replaced}
    module = SimpleNamespace(params=params, fail_json=fail_json, run_command=run_command)
    made = stage.Stage(module, tmp_path / "pins")
    with pytest.raises(_Failed, match="would go: slurm-pyxis") if is_refused else nullcontext():
        assert made.fetch(["slurmctld"])["slurmctld"] == "26.05.5-1"


@pytest.mark.parametrize(
    ("version", "wanted", "expected"),
    [
        ("26.05.5-1", "26.05", True),
        ("1:26.05.5", "26.05.5", True),
        ("26.05.15", "26.05.1", False),
        ("", "26.05", False),
    ],
)
def test_versions_of_a_release(version: str, wanted: str, *, expected: bool) -> None:
    assert stage.is_of(version, wanted) is expected


def test_what_is_installed_of_slurm() -> None:
    rows = [
        "slurmd\tslurm-wlm\tii \t24.11.5-4",
        "slurmdbd\tslurm-wlm\trc \t24.11.5-4",
        "munge\tmunge\tii \t0.5",
    ]
    assert stage.installed("\n".join(rows)) == {"slurmd": "24.11.5-4"}


def test_what_apt_would_do() -> None:
    come, go = stage.simulated(SIMULATED)
    assert come == {"libllhttp9.4": "9.4.3+~cs12.11.9-2", "slurmctld": "26.05.5-1"}
    assert go == ["slurm-pyxis"]


def test_dependencies_that_are_too_old_are_named() -> None:
    said = " slurmd : Depends: libhwloc15 (>= 2.15.0) but 2.12.0-4 is to be installed\n"
    assert stage.unmet(said) == ["libhwloc15"]
    assert stage.unmet("E: Unable to correct problems") == []

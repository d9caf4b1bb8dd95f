import pytest

from tests.unit.roles.loading import load_module

pam = load_module("roles/user_environment/filter_plugins/pam_environment.py")


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("/tmp", '"/tmp"'),
        ("/work/$USER", '"/work/@{PAM_USER}"'),
        ("${HOME}/a b", '"@{HOME}/a b"'),
        ("$WORK/$SLURM_JOB_ID", '"${WORK}/${SLURM_JOB_ID}"'),
        ("a@b", r'"a\@b"'),
    ],
)
def test_a_line(value: str, line: str) -> None:
    assert pam.pam_environment_line({"name": "X", "value": value}) == f"X DEFAULT={line}"

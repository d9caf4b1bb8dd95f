from pathlib import Path

import pytest

from deploy.cli.files import refuse_unwritable
from deploy.cli.validate import _chosen
from deploy.engine.validation import refuse_second
from deploy.errors import DeployError, ExitCode
from deploy.run.lock import site_lock
from deploy.validate.answers import JOBS, LOOK, Answers


@pytest.mark.parametrize(
    ("only", "skip", "message"),
    [
        (["mung"], [], "--only: there is no check mung [invalid-option]\n  -> did you mean 'munge'?"),
        ([], ["zzz"], "--skip: there is no check zzz [invalid-option]"),
        (["munge"], ["munge"], "--skip: no check is left [invalid-option]"),
    ],
)
def test_a_wrong_choice_ends_before_anything_is_asked(only: list[str], skip: list[str], message: str) -> None:
    with pytest.raises(DeployError) as caught:
        _chosen(only, skip)
    assert str(caught.value).startswith(message)
    assert caught.value.exit_code is ExitCode.BAD_INPUT


def test_files_that_cannot_be_written_are_refused_before_minutes_are_spent(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none" / "v.xml"):
        with pytest.raises(DeployError, match="file-not-writable"):
            refuse_unwritable(path)
    for fine in (None, Path("-"), tmp_path / "v.xml"):
        refuse_unwritable(fine)
    assert not [*tmp_path.iterdir()]


def test_a_second_validation_of_a_site_is_refused(tmp_path: Path) -> None:
    with (
        site_lock(tmp_path, "validation"),
        pytest.raises(DeployError, match="another run is at work on this site"),
        site_lock(tmp_path, "validation"),
    ):
        pass


def test_a_second_validation_of_the_cluster_could_not_run() -> None:
    at_work = "another validation is at work on this host"
    with pytest.raises(DeployError) as caught:
        refuse_second(Answers(silent={(JOBS, "login1"): at_work}))
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    assert str(caught.value).startswith("login1: another validation of this cluster is at work")
    assert "[validation-at-work]\n  -> wait until it has ended" in str(caught.value)
    refuse_second(Answers(silent={(JOBS, "login1"): "sinfo: no controller", (LOOK, "login1"): at_work}))

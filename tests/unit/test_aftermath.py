"""What follows a failed test of a cluster takes no machine's silence for an error."""

import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

from tests.cluster import lab_cluster
from tests.cluster.aftermath import evidence, make_usable


def test_machines_that_do_not_answer_end_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(command: list[str], **_: object) -> NoReturn:
        raise subprocess.TimeoutExpired(command, 1)

    monkeypatch.setattr(subprocess, "run", hangs)
    silent = lab_cluster.Cluster("silent", Path("/nowhere"), "trixie")
    said = [*evidence(silent), *make_usable(silent, with_jobs=False)]
    assert said[0].startswith("ctl1: sinfo")
    assert all("no answer" in line for line in said[:-1])
    assert said[-1].startswith("not all of its machines could be started")

"""What is made of accounting's rows, and which of them are one request."""

from pathlib import Path
from typing import Any

import pytest

from deploy.run import replay

ROW = {
    "JobID": "7",
    "User": "root",
    "Account": "vision",
    "Partition": "gpu",
    "QOS": "normal",
    "TimelimitRaw": "90",
    "ReqTRES": "billing=4,cpu=4,gres/gpu=3,gres/gpu:a100=2,license/matlab=1,mem=1.50G,node=1",
    "NNodes": "2",
    "Constraints": "nvlink",
    "Reservation": "",
    "SubmitLine": "/usr/bin/srun --pty bash",
}


def rows(*given: dict[str, str]) -> dict[str, Any]:
    return replay.shapes_of([*(ROW | said).values()] for said in given)


def test_a_request_has_everything_that_accounting_keeps_of_it() -> None:
    assert rows({})["shapes"] == [
        {
            "user": "root",
            "account": "vision",
            "partition": "gpu",
            "qos": "normal",
            "minutes": 90,
            "nodes": 2,
            "cpus": 4,
            "memory_mb": 1536,
            "gres": {"gpu": 1, "gpu:a100": 2},
            "licenses": {"matlab": 1},
            "constraint": "nvlink",
            "command": "srun",
            "tasks": 0,
            "highest_task": 0,
            "jobs": 1,
        }
    ]


def test_identical_requests_are_one_with_a_count_those_of_most_jobs_first() -> None:
    found = rows({"QOS": "long"}, {"JobID": "8"}, {"JobID": "9", "SubmitLine": "srun --job-name=secret x"})
    assert [(shape["qos"], shape["jobs"]) for shape in found["shapes"]] == [("normal", 2), ("long", 1)]
    assert "secret" not in str(found)


def test_the_tasks_of_an_array_are_one_submission_and_as_many_jobs() -> None:
    found = rows({"JobID": "5_1"}, {"JobID": "5_2"}, {"JobID": "5_[10-14:2,20%3]"}, {"JobID": "6_3"})
    assert [(shape["tasks"], shape["highest_task"], shape["jobs"]) for shape in found["shapes"]] == [
        (6, 20, 6),
        (1, 3, 1),
    ]


@pytest.mark.parametrize(("limit", "minutes"), [("UNLIMITED", None), ("Partition_Limit", None), ("5", 5)])
def test_a_time_limit_that_is_none_is_not_asked_for(limit: str, minutes: int | None) -> None:
    assert rows({"TimelimitRaw": limit})["shapes"][0]["minutes"] == minutes


def test_what_nobody_can_be_asked_for_is_counted_apart() -> None:
    found = rows(
        {"User": "long-gone"}, {"User": "long-gone", "JobID": "8"}, {"ReqTRES": ""}, {"Reservation": "r"}
    )
    assert found["gone"] == {"long-gone": 2}
    assert (found["unread"], found["in_reservations"]) == (1, 1)
    assert [shape["user"] for shape in found["shapes"]] == ["root"]


def test_a_silent_accounting_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sacct = tmp_path / "sacct"
    sacct.write_text("#!/bin/sh\necho 'sacct: error: Connection refused' >&2; exit 1\n")
    sacct.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert replay.gather({"days": 1}) == {"trouble": "sacct: error: Connection refused"}


def test_line_breaks_in_a_submission_are_no_jobs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said = replay._SEPARATOR.join([*(ROW | {"SubmitLine": "sbatch --wrap first\nsecond\n"}).values()])
    (tmp_path / "said").write_text(said)
    sacct = tmp_path / "sacct"
    sacct.write_text(f"#!/bin/sh\ncat {tmp_path}/said\n")
    sacct.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = replay.gather({"days": 1})
    assert [shape["command"] for shape in found["shapes"]] == ["sbatch"]
    assert found["unread"] == 0

import os
from pathlib import Path

from tests.unit.roles.loading import load_module

service = load_module("playbooks/library/service_current.py")


def test_properties() -> None:
    text = "LoadState=loaded\nActiveState=active\nEnvironment=A=b\n"
    assert service.parse_properties(text) == {
        "LoadState": "loaded",
        "ActiveState": "active",
        "Environment": "A=b",
    }


def test_start_time_follows_the_present_clock() -> None:
    properties = {"InactiveExitTimestampMonotonic": "40000000"}
    assert service.started_at(properties, wall=1000.0, monotonic=100.0) == 940.0


def test_only_inputs_written_after_the_start_count(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for path, when in ((old, 900), (new, 950)):
        path.write_text("x")
        os.utime(path, (when, when))
    inputs = [str(old), str(new), str(tmp_path / "missing")]
    assert service.newer(inputs, 940.0) == [str(new)]

import os
from pathlib import Path

import pytest

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
    assert service.moment(properties, "InactiveExitTimestampMonotonic", wall=1000.0, monotonic=100.0) == 940.0


def test_a_unit_among_the_reasons_is_read() -> None:
    assert service.brings_a_unit(["/etc/default/x", "/etc/systemd/system/x.service"])
    assert not service.brings_a_unit(["/etc/default/x"])


def test_a_drop_in_that_systemd_has_not_read_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_UNITS", f"{tmp_path}/")
    there, missing = tmp_path / "a.service.d.conf", tmp_path / "missing.conf"
    there.touch()
    inputs = [str(there), str(missing), "/etc/hostname"]
    assert service.is_unknown(inputs, {"FragmentPath": "/lib/systemd/system/a.service", "DropInPaths": ""})
    assert not service.is_unknown(inputs, {"FragmentPath": "", "DropInPaths": f"/other {there}"})
    assert not service.is_unknown(inputs, {"FragmentPath": str(there)})


def test_only_inputs_written_after_the_start_count(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for path, when in ((old, 900), (new, 950)):
        path.write_text("x")
        os.utime(path, (when, when))
    inputs = [str(old), str(new), str(tmp_path / "missing")]
    assert service.newer(inputs, 940.0) == [str(new)]

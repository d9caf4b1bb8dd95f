from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/enroot/library/kernel_settings.py")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("kernel.a_b", "kernel/a_b"), ("net/ipv4/conf/eth0.1/forwarding", "net/ipv4/conf/eth0.1/forwarding")],
)
def test_where_the_kernel_keeps_a_setting(name: str, expected: str, tmp_path: Path) -> None:
    assert module.place_of(name, tmp_path) == tmp_path / expected


def test_only_what_the_kernel_knows_can_differ(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net/one").write_text("1\n")
    (tmp_path / "net/range").write_text("32768\t60999\n")
    wanted = {"net.one": "1", "net.range": "32768 60999", "net.unknown": "1"}
    assert module.differing(wanted, tmp_path) == []
    assert module.differing({**wanted, "net.one": "0"}, tmp_path) == ["net.one"]


def test_an_unknown_setting_does_not_stop_the_others_at_boot() -> None:
    assert module.file_text({"net.one": "1"}).splitlines()[1:] == ["-net.one = 1"]

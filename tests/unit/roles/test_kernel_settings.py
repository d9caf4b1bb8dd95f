from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

module = load_module("playbooks/library/kernel_settings.py")


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


def test_what_is_declared_no_more_gets_back_what_it_had(tmp_path: Path) -> None:
    """A file without a line changes nothing in the kernel before the next boot."""
    for name, value in {"one": "0", "two": "4\t5", "three": "7"}.items():
        (tmp_path / name).write_text(f"{value}\n")
    wanted = {"one": "1", "two": "8  9", "three": "8", "unknown": "1"}
    remembered = module.giving(wanted, {}, tmp_path)
    assert remembered == {
        "one": {"given": "1", "had": "0"},
        "two": {"given": "8 9", "had": "4 5"},
        "three": {"given": "8", "had": "7"},
    }
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"{wanted[name]}\n")
    (tmp_path / "three").write_text("9\n")
    # What it had is from before the first run, not from the last one; another's value stays.
    assert module.giving({"one": "2"}, remembered, tmp_path) == {"one": {"given": "2", "had": "0"}}
    assert module.former({"one": "2"}, remembered, tmp_path) == {"two": "4 5"}
    assert module.former({}, remembered, tmp_path) == {"one": "0", "two": "4 5"}


def test_an_unknown_setting_does_not_stop_the_others_at_boot() -> None:
    assert module.file_text({"net.one": "1"}).splitlines()[1:] == ["-net.one = 1"]


def test_each_file_has_its_own(tmp_path: Path) -> None:
    one, two = tmp_path / "one.conf", tmp_path / "two.conf"
    was = {"net.a": {"given": "1", "had": "0"}}
    remembered = {str(one): was, str(two): {"net.b": {"given": "5", "had": "15"}}}
    assert module.of_file(remembered, one) == was
    assert module.of_others(remembered, one) == {str(two): remembered[str(two)]}
    assert module.of_file(remembered, tmp_path / "three.conf") == {}


def test_what_was_remembered_when_there_was_but_one_is_that_files(tmp_path: Path) -> None:
    one, two = tmp_path / "one.conf", tmp_path / "two.conf"
    one.write_text(module.file_text({"net.a": "1"}))
    remembered = {"net.a": {"given": "1", "had": "0"}}
    assert module.of_file(remembered, two) == {}
    assert module.of_others(remembered, two) == remembered
    assert module.of_file(remembered, one) == remembered
    assert module.of_others(remembered, one) == {}

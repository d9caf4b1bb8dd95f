from pathlib import Path

import pytest

from deploy.errors import DeployError, ExitCode
from deploy.validate.thresholds import Thresholds, read_thresholds


def test_without_a_file_ours_count(tmp_path: Path) -> None:
    assert read_thresholds(tmp_path) == Thresholds()
    (tmp_path / "validation.yml").write_text("")
    assert read_thresholds(tmp_path) == Thresholds()


def test_the_sites_own(tmp_path: Path) -> None:
    (tmp_path / "validation.yml").write_text("slow_node_ratio: 2\nfree_percent: 0.5\n")
    assert read_thresholds(tmp_path) == Thresholds(slow_node_ratio=2.0, free_percent=0.5)
    (tmp_path / "validation.yml").write_text("alerts_that_may_fire: [HomeFull, DiskFull]\n")
    assert read_thresholds(tmp_path) == Thresholds(alerts_that_may_fire=("HomeFull", "DiskFull"))


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        (
            "slow_node_ration: 2\nspeed: 1\n",
            [
                "slow_node_ration is not a threshold, did you mean slow_node_ratio?",
                "speed is not a threshold; there are slow_node_ratio, free_percent, regression_percent",
            ],
        ),
        ("free_percent: lots\n", ["free_percent: 'lots' is not a number above zero"]),
        ("free_percent: 0\n", ["free_percent: 0 is not a number above zero"]),
        ("free_percent: -1\n", ["free_percent: -1 is not a number above zero"]),
        ("free_percent: yes\n", ["free_percent: True is not a number above zero"]),
        ("free_percent: .nan\n", ["free_percent: nan is not a number above zero"]),
        ("free_percent: .inf\n", ["free_percent: inf is not a number above zero"]),
        ("alerts_that_may_fire: DiskFull\n", ["alerts_that_may_fire: 'DiskFull' is not a list of names"]),
        ("alerts_that_may_fire: [1]\n", ["alerts_that_may_fire: [1] is not a list of names"]),
        ("1: 2\n", ["this file cannot be read: "]),
        ("- x\n", ["this file cannot be read: "]),
        ("a: [\n", ["this file cannot be read: "]),
    ],
)
def test_wrong_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, findings: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "validation.yml").write_text(text)
    with pytest.raises(DeployError) as caught:
        read_thresholds(tmp_path)
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    found = caught.value.findings
    assert [finding.message[: len(words)] for finding, words in zip(found, findings, strict=True)] == findings
    assert {finding.reference for finding in found} == {"invalid-thresholds"}
    assert {finding.hint for finding in found} == {"fix it, or remove validation.yml for the defaults"}
    assert all("validation.yml" in finding.where for finding in found)

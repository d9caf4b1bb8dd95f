"""promtool: the rules are valid, and every alert fires when it should and not otherwise."""

import subprocess
from pathlib import Path

import pytest
import yaml

from deploy.monitoring.alert import Chapter
from deploy.monitoring.alerts import CHAPTERS
from deploy.monitoring.rule_tests import test_file as rule_tests
from tests.integration.prometheus_programs import RULES, program


def promtool(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program("promtool"), *map(str, arguments)], capture_output=True, text=True, check=False
    )


def rules_of(chapter: Chapter) -> list[str]:
    return [str(path) for path in RULES if path.stem in {"recording", chapter.name}]


def test_rules_are_valid() -> None:
    answer = promtool("check", "rules", *RULES)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert len(RULES) == len(CHAPTERS) + 1


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_alerts_fire_when_they_should_and_not_otherwise(chapter: Chapter, tmp_path: Path) -> None:
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump(rule_tests(chapter, rules_of(chapter))))
    answer = promtool("test", "rules", file)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def fires(name: str, minute: int, **labels: str) -> dict[str, object]:
    """That an alert fires at a minute once with these labels; without labels that it does not."""
    shown = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    by = f"by ({', '.join(sorted(labels))}) " if labels else ""
    return {
        "expr": f'count {by}(ALERTS{{alertname="{name}",alertstate="firing"}})',
        "eval_time": f"{minute}m",
        "exp_samples": [{"labels": f"{{{shown}}}", "value": 1}] if labels else [],
    }


def test_an_xid_that_comes_again_is_told_again_and_none_hides_another(tmp_path: Path) -> None:
    """DCGM keeps the last one for ever; its exporter counts those of the last five minutes."""
    last, count = "DCGM_FI_DEV_XID_ERRORS", "DCGM_EXP_XID_ERRORS_COUNT"
    gpu = 'instance="node1",job="gpu",gpu="0"'
    own, other = "GpuXidOfItsOwn", "GpuXid"
    test = {
        "interval": "1m",
        "input_series": [
            # 94 at minute 20 and at 320, 31 at 322; the node boots at 340.
            {"series": f"{last}{{{gpu}}}", "values": "0x19 94x301 31x17 _x9 0x250"},
            {"series": f"{count}{{{gpu}}}", "values": "0x19 _x6 0x293 _x25 0x250"},
            {"series": f'{count}{{{gpu},xid="94"}}', "values": "_x20 1x5 _x294 1x5 _x270"},
            {"series": f'{count}{{{gpu},xid="31"}}', "values": "_x322 1x5 _x270"},
        ],
        "promql_expr_test": [
            fires(own, 10),
            fires(own, 25, instance="node1", gpu="0", xid="94"),
            fires(own, 80, instance="node1", gpu="0", xid="94"),
            fires(own, 200),
            fires(own, 330, instance="node1", gpu="0", xid="94"),
            fires(other, 330, instance="node1", gpu="0", xid="31"),
            fires(own, 360),
            fires(other, 360),
        ],
    }
    rules = [str(path) for path in RULES if path.stem in {"recording", "gpus"}]
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump({"rule_files": rules, "evaluation_interval": "1m", "tests": [test]}))
    answer = promtool("test", "rules", file)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_an_alert_that_does_not_fire_is_noticed(tmp_path: Path) -> None:
    chapter = CHAPTERS[0]
    tests = dict(rule_tests(chapter, rules_of(chapter)))
    tests["tests"] = [{**tests["tests"][0], "input_series": [{"series": "up", "values": "1x60"}]}]
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump(tests))
    assert promtool("test", "rules", file).returncode != 0

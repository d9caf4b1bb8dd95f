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


def test_an_alert_that_does_not_fire_is_noticed(tmp_path: Path) -> None:
    chapter = CHAPTERS[0]
    tests = dict(rule_tests(chapter, rules_of(chapter)))
    tests["tests"] = [{**tests["tests"][0], "input_series": [{"series": "up", "values": "1x60"}]}]
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump(tests))
    assert promtool("test", "rules", file).returncode != 0

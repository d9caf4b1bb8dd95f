import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deploy.cli.app import app
from deploy.errors import DeployError
from deploy.run.events import Event, Level, Notice, Status
from deploy.run.journal import Journal, RecordedRun, last_run
from deploy.show.page import as_html
from deploy.show.report import as_json, as_list_line, as_text, summary_of
from deploy.show.timeline import WIDTH, lanes, phases, ticks
from tests.unit.show.runs import WITH_FAILURE, ended, result

HOSTILE = "<script>alert(1)</script>\"'&"


def _record(site: Path, events: list[Event]) -> RecordedRun:
    journal = Journal.create(
        site, {"hosts": ["node1", "node2"], "arguments": ["cluster", "inv.ini"], "started": 1000.0}
    )
    for event in events:
        journal.append(event)
    journal.finish()
    run = last_run(site)
    assert run
    return run


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "inv.ini").touch()
    return tmp_path


@pytest.fixture
def run(site: Path) -> RecordedRun:
    return _record(site, WITH_FAILURE)


def test_text(run: RecordedRun) -> None:
    text = as_text(run)
    assert text.startswith(f"run {run.id}, 1970-01-01 00:16:40 UTC: deploy cluster inv.ini\n\nFAILED node2")
    assert "    2.0 s  munge : Install  node2" in text
    assert text.endswith("failed: what succeeded stays, and running again is safe (1 change, 10.0 s)")


def test_json(run: RecordedRun) -> None:
    report = as_json(run)
    assert report["outcome"] == "failed"
    assert report["seconds"] == 10.0
    assert report["hosts"]["node1"] == {
        "ok": 1,
        "changed": 1,
        "failed": 0,
        "unreachable": 0,
        "skipped": 1,
        "rescued": 0,
        "ignored": 0,
        "verified": 0,
        "not_run": 0,
        "pending": [],
        "unknown": False,
        "seconds": 1.1,
    }
    assert report["failures"][0]["message"] == "first\nsecond"
    assert report["slowest_tasks"][0] == {"task": "munge : Install", "seconds": 2.0, "host": "node2"}
    assert report["run"]["id"] == run.id
    assert report["run"]["arguments"] == ["cluster", "inv.ini"]


def test_a_list_has_a_line_per_run(run: RecordedRun) -> None:
    assert as_list_line(run).split() == [
        run.id, "failed", "1", "changed", "10.0", "s", "2", "hosts", "deploy", "cluster", "inv.ini"
    ]  # fmt: skip


class _Page(HTMLParser):
    _EMPTY = frozenset({"meta", "rect", "br", "link", "img"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]
        if tag not in self._EMPTY or tag == "rect":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def test_the_page_is_whole_and_loads_nothing(run: RecordedRun) -> None:
    text = as_html(run)
    page = _Page(text)
    assert page.links == []
    assert "script" not in page.tags
    assert not re.search(r"https?:|url\(|@import", text)
    assert text.index("first\nsecond") < text.index("<h2>Hosts</h2>") < text.index("<h2>Timeline</h2>")
    assert page.tags.count("svg") == 2
    assert page.tags.count("rect") == 3


def test_hostile_text_stays_text_on_the_page(site: Path) -> None:
    events = [
        result(
            "node1", Status.FAILED, task=HOSTILE, message=HOSTILE, role=HOSTILE, path=HOSTILE, play=HOSTILE
        )
    ]
    text = as_html(_record(site, [*events, Notice(1001.0, Level.WARNING, HOSTILE), ended(rc=2)]))
    assert "script" not in _Page(text).tags
    assert text.count("&lt;script&gt;") >= 5


def test_an_empty_run_has_a_page(site: Path) -> None:
    text = as_html(_record(site, [Notice(1001.0, Level.OUTPUT, "no such role"), ended(rc=1)]))
    assert "no such role" in text
    assert "Timeline" not in text
    _Page(text)


def test_the_same_journal_gives_the_same_report(run: RecordedRun) -> None:
    again = RecordedRun(run.path, dict(run.metadata))
    assert as_html(run) == as_html(again)
    assert as_json(run) == as_json(again)
    assert as_text(run) == as_text(again)


def test_bars_lie_where_tasks_ran(run: RecordedRun) -> None:
    summary = summary_of(run)
    node1, node2 = lanes(summary)
    assert [(bar.x, bar.width, bar.verdict) for bar in node1.bars] == [
        (100.0, 100.0, "changed"),
        (490.0, 10.0, "skipped"),
    ]
    assert [(bar.x, bar.width) for bar in node2.bars] == [(100.0, 200.0)]
    assert "munge : Install: failed, 2.0 s" in node2.bars[0].title
    assert [(bar.x, bar.width, bar.title) for bar in phases(summary)] == [
        (100.0, 300.0, "Base"),
        (400.0, 600.0, "Compute"),
    ]
    assert [(tick.x, tick.label) for tick in ticks(summary)][:2] == [(0.0, "0 s"), (200.0, "2 s")]
    assert all(tick.x < WIDTH for tick in ticks(summary))


def test_thousands_of_short_tasks_share_bars(site: Path) -> None:
    events: list[Event] = [result("node1", at=1 + number / 1000, seconds=0.001) for number in range(5000)]
    summary = summary_of(_record(site, [*events, ended()]))
    bars = lanes(summary)[0].bars
    assert len(bars) < 700
    assert "short tasks: ok" in bars[0].title


def _cli(*arguments: str) -> str:
    outcome = CliRunner().invoke(app, ["report", *arguments], catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    return outcome.stdout


def test_the_command_finds_runs(site: Path, run: RecordedRun) -> None:
    other = site / "other"
    other.mkdir()
    last = _record(other, [ended()])
    assert last.id in _cli()
    assert run.id in _cli(str(site / "inv.ini"))
    assert run.id in _cli(str(site), "--run", run.id[-4:])
    assert _cli(str(site), "--list").splitlines() == [as_list_line(run)]
    assert _cli("--list").splitlines() == [as_list_line(last)]
    assert f'"id": "{run.id}"' in _cli(str(site), "--json")
    page = site / "page.html"
    _cli(str(site), "--html", str(page))
    assert page.read_text() == as_html(run)


@pytest.mark.parametrize(
    ("arguments", "reference"),
    [
        (["nowhere.ini"], "inventory-not-found"),
        (["{site}", "--run", "x"], "run-not-found"),
        (["{empty}"], "run-not-found"),
        (["{site}", "--html", "/proc/nowhere/page.html"], "report-not-written"),
    ],
)
def test_what_the_command_cannot_do_it_says(
    site: Path, run: RecordedRun, arguments: list[str], reference: str
) -> None:
    assert run
    empty = site / "empty"
    empty.mkdir()
    given = [argument.format(site=site, empty=empty) for argument in arguments]
    with pytest.raises(DeployError) as refused:
        CliRunner().invoke(app, ["report", *given], catch_exceptions=False)
    assert refused.value.findings[0].reference == reference


def test_without_any_run(site: Path) -> None:
    assert site
    with pytest.raises(DeployError, match="run-not-found"):
        CliRunner().invoke(app, ["report"], catch_exceptions=False)

"""Whoever measured the same at several times is told with each of them."""

import runpy

import pytest

from tests.contract.content import ROOT

_THERE = {"machine": "a machine", "system": "Debian", "software": "deploy", "load": "1.0 2.0 at the start"}
_FIRST = {**_THERE, "measured": "2026-11-26T01:00:00", "labs": "seed 1"}
_SECOND = {**_THERE, "measured": "2026-11-27T01:00:00", "labs": "seed 2", "load": "3.0 4.0 at the start"}


def test_each_campaign_that_counted_rounds_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    machines = runpy.run_path(str(ROOT / "docs/generators/reliability.py"))["_machines"]
    parts = {"all": {**_SECOND, "before": [_FIRST]}, "node": _FIRST, "late": _SECOND}
    where = "a machine; Debian; deploy;"
    assert [*machines(parts)] == [
        ("2026-11-26", "all, node", f"{where} seed 1; load at the start of each: 1.0, 1.0"),
        ("2026-11-27", "all, late", f"{where} seed 2; load at the start of each: 3.0, 3.0"),
    ]

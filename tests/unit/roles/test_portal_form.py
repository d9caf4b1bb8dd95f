"""The page of the form: what stands in it by itself can be sent."""

import re
from typing import Any

import pytest

from tests.unit.roles.loading import ROOT, load_module
from tests.unit.roles.test_portal_choices import LIMITS, PLACE, offers


@pytest.fixture
def form(monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - a module
    """It lies beside what it imports."""
    monkeypatch.syspath_prepend(str(ROOT / PLACE))
    return load_module(f"{PLACE}/portal_form.py")


@pytest.mark.parametrize(
    "wanted",
    [
        {"gpus": 9, "cpus": 16, "memory_gb": 64, "minutes": 6000},
        {"gpus": "-1", "cpus": "many", "memory_gb": "", "minutes": "²"},
        {},
    ],
)
def test_no_number_is_more_than_the_most(form: Any, wanted: dict[str, object]) -> None:  # noqa: ANN401 - a module
    """Such a one stands there where a site lowers the most alone, or remembers what was allowed once."""
    shown = form.form_page(offers(), {**LIMITS, "defaults": wanted})
    fields = re.findall(r'type="number" [^>]*min="(\d+)" max="(\d+)" value="(\d+)"', shown)
    assert len(fields) == 4
    assert all(int(least) <= int(value) <= int(most) for least, most, value in fields)

"""Units of the pictures: what Grafana's own valueFormats (@grafana/data 13.2.3) make of the same numbers."""

import math

import pytest

from tests.pictures.units import written
from tests.unit.monitoring.test_dashboards import UNITS

GRAFANA: dict[str, dict[float, str]] = {
    "short": {
        0: "0",
        1: "1",
        12.345: "12.3",
        0.5: "0.500",
        1234: "1.23 K",
        1234567: "1.23 Mil",
        0.0123: "0.0123",
    },
    "none": {0: "0", 31: "31", 1.5: "1.50", 12345: "12345"},
    "percentunit": {0: "0%", 0.123456: "12.3%", 0.5: "50%", 1: "100%", 0.00123: "0.123%"},
    "bytes": {0: "0 B", 512: "512 B", 1536: "1.50 KiB", 1 << 30: "1 GiB", 123456789: "118 MiB"},
    "s": {
        0: "0 s",
        0.00001234: "12.3 µs",
        0.0123: "12.3 ms",
        1.5: "1.50 s",
        59: "59 s",
        60: "1 min",
        90: "1.50 mins",
        3600: "1 hour",
        7200: "2 hours",
        86400: "1 day",
        200000: "2.31 days",
        700000: "1.16 weeks",
        40000000: "1.27 years",
        -5: "-5 s",
    },
    "Bps": {0: "0 B/s", 999: "999 B/s", 1234: "1.23 kB/s", 5e6: "5 MB/s"},
    "pps": {0.5: "500 mp/s", 2000: "2 kp/s"},
    "iops": {3: "3 io/s", 1500: "1.50K io/s"},
    "reqps": {0.25: "0.250 req/s", 1234: "1.23K req/s"},
    "watt": {0: "0 W", 540.25: "540 W", 12000: "12 kW"},
    "celsius": {52: "52 °C", 61.5: "61.5 °C"},
    "hertz": {1.98e9: "1.98 GHz"},
    "bool_yes_no": {0: "No", 1: "Yes"},
}


@pytest.mark.parametrize("unit", sorted(GRAFANA))
def test_as_grafana_writes_it(unit: str) -> None:
    assert {value: written(value, unit) for value in GRAFANA[unit]} == GRAFANA[unit]


def test_every_unit_of_the_dashboards_is_known() -> None:
    assert set(GRAFANA) == UNITS


@pytest.mark.parametrize(("value", "text"), [(math.nan, "No data"), (math.inf, "∞")])
def test_what_is_no_number(value: float, text: str) -> None:
    assert written(value, "s") == text

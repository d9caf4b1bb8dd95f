"""Prometheus's own programs, which judge what we write for it; `make integration` gets them."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
_PLACE = ROOT / ".venv/prometheus"
RULES = sorted((ROOT / "roles/prometheus/files/rules").glob("*.yml"))


def program(name: str) -> str:
    """The path of promtool or prometheus. A test without it would prove nothing, so it fails."""
    path = _PLACE / name
    assert path.exists(), f"{path} is missing: run `make prometheus-programs`"
    return str(path)

"""Which metrics the exporters really tell, by what they told."""

import re
from functools import cache
from pathlib import Path

RECORDED = Path(__file__).parent / "recorded"
_NAME = re.compile(r"^([a-zA-Z_:][\w:]*)", re.MULTILINE)
_OF_PROMETHEUS = frozenset({"up", "ALERTS"})


@cache
def told() -> frozenset[str]:
    """The names of all metrics."""
    texts = (path.read_text(encoding="utf-8") for path in RECORDED.glob("*.prom"))
    return frozenset(name for text in texts for name in _NAME.findall(text)) | _OF_PROMETHEUS

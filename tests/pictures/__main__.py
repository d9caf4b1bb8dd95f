"""Draws every dashboard with what a live Prometheus answers: ``python -m tests.pictures http://ADDRESS:9090``."""

import argparse
import sys
import time
from functools import partial
from pathlib import Path

from deploy.monitoring.dashboards import DASHBOARDS
from tests.cluster.dashboard_queries import as_asked, ask, running_job
from tests.pictures.answers import Source, Span
from tests.pictures.page import drawn

_PLACE = Path(__file__).parents[2] / "docs/pictures"
_MOMENTS = 240


def main() -> int:
    """Writes a picture for each dashboard."""
    options = _options()
    step = max(1, round(options.minutes * 60 / _MOMENTS))
    end = time.time() // step * step
    span = Span(end - options.minutes * 60 // step * step, end, step)
    job = options.job or running_job(ask(options.url))
    options.directory.mkdir(parents=True, exist_ok=True)
    for dashboard in DASHBOARDS:
        source = Source(options.url, span, partial(as_asked, dashboard, job=job))
        path = options.directory / f"{dashboard.uid.removeprefix('deploy-')}.png"
        drawn(dashboard, source, job).save(path)
        sys.stdout.write(f"{path}: {path.stat().st_size // 1024} KiB\n")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.pictures", description=__doc__)
    parser.add_argument("url", help="address of Prometheus")
    parser.add_argument("--minutes", type=int, default=30, help="how much time is shown, until now (30)")
    parser.add_argument("--job", default="", help="the job that is shown; else the largest that runs")
    parser.add_argument("--directory", type=Path, default=_PLACE, help="where to write (docs/pictures)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

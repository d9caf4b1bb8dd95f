"""How much running jobs use of their GPUs, as Prometheus has it of the exporter that knows jobs."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlencode

from tornado.httpclient import AsyncHTTPClient, HTTPClientError

_NUMBER = re.compile(r"[0-9]{1,10}")
_SECONDS = 3
_MINUTES = "[5m]"
_MEAN = 'avg by (hpc_job) (avg_over_time(DCGM_FI_DEV_GPU_UTIL{{hpc_job=~"{jobs}"}}{minutes}))'


async def add_gpu_use(url: str, jobs: list[dict[str, Any]]) -> None:
    """Puts ``gpu`` beside what jobs use, percent in the last five minutes; nothing where nobody knows."""
    running = {job["raw"]: job for job in jobs if job["state"] == "RUNNING" and _NUMBER.fullmatch(job["raw"])}
    if not url or not running:
        return
    query = _MEAN.format(jobs="|".join(running), minutes=_MINUTES)
    try:
        said = await AsyncHTTPClient().fetch(
            f"{url}/api/v1/query?{urlencode({'query': query})}", request_timeout=_SECONDS
        )
        found = json.loads(said.body)["data"]["result"]
        used = {each["metric"]["hpc_job"]: float(each["value"][1]) for each in found}
    except (OSError, HTTPClientError, ValueError, KeyError, TypeError, IndexError):
        return
    for number, percent in used.items():
        if number in running:
            running[number]["gpu"] = percent

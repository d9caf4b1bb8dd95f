#!/usr/bin/python3
"""Serves what Slurm's commands say to Prometheus.

One thread asks Slurm, a command after the other, and keeps the answer; scrapes get what is kept. Of a
command that fails nothing is kept: its metrics are gone until it succeeds, which
slurm_exporter_collect_success says.

``slurm_metrics.py SETTINGS``: SETTINGS is JSON, written by the role.
"""

from __future__ import annotations

import json
import logging
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import budget_metrics
import job_metrics
import node_metrics
import scheduler_metrics
import site_metrics
from commands import Command, CommandError, output
from families import counter, gauge
from prometheus_client import CollectorRegistry, Metric, PlatformCollector, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

_LOG = logging.getLogger("slurm_metrics")
_CPU_SHARE = 0.01
"""How much of a core it may take, children included: a round that cost more makes the next one wait."""
_CONNECTION_SECONDS = 10.0


def commands(settings: Mapping[str, Any]) -> list[Command]:
    """What is asked, in this order."""
    slow = float(settings["slow_interval"])
    jobs = job_metrics.JobMetrics(int(settings["named_jobs"]))
    slurmctld = site_metrics.Slurmctld()
    budgets = budget_metrics.Budgets()
    listed = [
        Command("controllers", site_metrics.CONTROLLERS, site_metrics.controllers, may_fail=True),
        Command("nodes", node_metrics.ARGUMENTS, node_metrics.metrics),
        Command("jobs", job_metrics.ARGUMENTS, jobs.metrics),
        Command("scheduler", scheduler_metrics.ARGUMENTS, scheduler_metrics.metrics),
        Command("partitions", site_metrics.PARTITIONS, site_metrics.partitions, slow),
        Command("configuration", site_metrics.CONFIGURATION, slurmctld.configuration, slow),
    ]
    if settings["accounting"]:
        listed += [
            Command("accounting", site_metrics.ACCOUNTING, slurmctld.accounting),
            Command("shares", site_metrics.SHARES, site_metrics.shares, slow),
            Command("budgets", budget_metrics.GRANTED, budgets.granted, slow),
            Command("budget_use", budget_metrics.USED, budgets.used, slow),
        ]
    return listed


class Collection:
    """What was answered last, by command."""

    def __init__(self, listed: Sequence[Command], timeout: float, path: str) -> None:
        self._commands = listed
        self._timeout = timeout
        self._path = path
        self._metrics: dict[str, Sequence[Metric]] = {}
        self._success: dict[str, float] = {}
        self._seconds: dict[str, float] = {}
        self._answered: dict[str, float] = {}
        self._asked: dict[str, float] = {}

    def ask(self) -> None:
        """One round: every command that is due."""
        for command in self._commands:
            began = time.monotonic()
            # A command that failed is asked again in the next round, however rarely it is asked otherwise.
            due = self._asked.get(command.name, -command.every_seconds) + command.every_seconds
            if began < due and self._success.get(command.name):
                continue
            self._asked[command.name] = began
            self._ask_one(command)
            self._seconds[command.name] = time.monotonic() - began

    def _ask_one(self, command: Command) -> None:
        try:
            text = output(command, self._timeout, self._path)
            self._metrics[command.name] = command.parse(text, time.time())
        except CommandError as problem:
            self._failed(command, str(problem))
        except (ValueError, KeyError, IndexError) as problem:
            self._failed(command, f"its output was not understood: {problem!r}")
        else:
            if not self._success.get(command.name, 1):
                _LOG.info("%s: answers again", command.name)
            self._success[command.name] = 1
            self._answered[command.name] = time.time()

    def _failed(self, command: Command, why: str) -> None:
        # Once, and not every minute of a long night.
        if self._success.get(command.name, 1):
            _LOG.warning("%s: %s", command.name, why)
        self._success[command.name] = 0
        self._metrics.pop(command.name, None)

    def collect(self) -> Iterator[Metric]:
        """Everything that is known, and how it came to be known."""
        for command in self._commands:
            yield from self._metrics.get(command.name, ())

        def by_command(values: Mapping[str, float]) -> dict[tuple[str, ...], float]:
            return {(name,): value for name, value in values.items()}

        yield gauge(
            "slurm_exporter_collect_success",
            "Whether a command succeeded the last time; if not, its metrics are missing.",
            ["command"],
            by_command(self._success),
        )
        yield gauge(
            "slurm_exporter_collect_duration_seconds",
            "How long a command took the last time.",
            ["command"],
            by_command(self._seconds),
        )
        yield gauge(
            "slurm_exporter_collect_timestamp_seconds",
            "When a command succeeded last: the age of what it said.",
            ["command"],
            by_command(self._answered),
        )
        yield counter(
            "slurm_exporter_cpu_seconds_total",
            "CPU time of this exporter and of the commands that it ran.",
            [],
            {(): cpu_seconds()},
        )


def cpu_seconds() -> float:
    """CPU time of this process and of its children that ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


class Page:
    """What a scrape gets; made once a round, because rendering costs more than asking."""

    def __init__(self, collection: Collection) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        self._collection = collection
        self.text = b""

    def render(self) -> None:
        """Renders what is known now."""
        registry = CollectorRegistry()
        registry.register(self._collection)
        self.text = generate_latest(registry) + generate_latest(self._registry)


def pause(interval: float, cpu: float) -> float:
    """Seconds from one round to the next: the interval, or what makes this one's CPU time a small share."""
    return max(interval, cpu / _CPU_SHARE)


class _Handler(BaseHTTPRequestHandler):
    """Answers scrapes from the page; never asks Slurm."""

    timeout = _CONNECTION_SECONDS
    page: Page

    def do_GET(self) -> None:
        """/metrics and nothing else."""
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404, "Only /metrics is here")
            return
        text = self.page.text
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE_LATEST)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - its name there
        """Scrapes are no news."""


class _Server(ThreadingHTTPServer):
    """Listens on an address of either family; an empty one means all of both."""

    daemon_threads = True

    def __init__(self, address: str, port: int, handler: type[_Handler]) -> None:
        if not address or ":" in address:
            self.address_family = socket.AF_INET6
        super().__init__((address or "::", port), handler)

    def server_bind(self) -> None:
        """IPv4 comes through the same socket."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


def serve(settings: Mapping[str, Any], stop: threading.Event) -> None:
    """Asks and answers until it is told to stop."""
    collection = Collection(commands(settings), float(settings["timeout"]), str(settings["path"]))
    page = Page(collection)
    page.render()
    handler = type("Handler", (_Handler,), {"page": page})
    server = _Server(str(settings["listen_address"]), int(settings["port"]), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    interval = float(settings["interval"])
    while not stop.is_set():
        began = time.monotonic()
        before = cpu_seconds()
        collection.ask()
        page.render()
        took = time.monotonic() - began
        stop.wait(max(pause(interval, cpu_seconds() - before) - took, 0))
    server.shutdown()
    server.server_close()


def main(arguments: Sequence[str]) -> int:
    """Exit code 2 when the settings cannot be read or the address is not to be had."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        settings = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
        serve(settings, stop)
    except (OSError, ValueError, KeyError, IndexError) as problem:
        _LOG.error("slurm_metrics: %s: %s", type(problem).__name__, problem)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A real Prometheus behind TLS, a password and a path is asked as a validation asks it."""

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.validate.programs.monitoring import ask
from tests.integration.prometheus_programs import program

WORD = "a-word-of-this-scenario"
HASH = "$2b$04$0LUy8ptr.qHPQHToFWP39udwCIRwJyDKJ8f/SlDbIF9WRyD/vblce"
CONFIGURATION = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [rules.yml]
scrape_configs:
  - job_name: prometheus
    scheme: https
    metrics_path: /below/metrics
    basic_auth: {{username: watcher, password: {word}}}
    tls_config: {{insecure_skip_verify: true}}
    static_configs: [{{targets: ["127.0.0.1:{port}"], labels: {{instance: ctl1}}}}]
  - job_name: node
    static_configs: [{{targets: ["127.0.0.1:1"], labels: {{instance: node1}}}}]
"""
RULES = """
groups:
  - name: of the test
    rules:
      - {alert: NoExporter, expr: up == 0, labels: {severity: critical}, annotations: {summary: it is gone}}
"""
CERTIFICATE = (
    *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
    *("-days", "2", "-subj", "/CN=metric.example.org", "-keyout", "site.key", "-out", "site.pem"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Where it is, once it is ready."""
    directory = tmp_path_factory.mktemp("prometheus")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    subprocess.run(CERTIFICATE, cwd=directory, check=True, capture_output=True)
    tls = {"cert_file": "site.pem", "key_file": "site.key"}
    web = {"tls_server_config": tls, "basic_auth_users": {"watcher": HASH}}
    files = {"web.yml": json.dumps(web), "rules.yml": RULES}
    files["prometheus.yml"] = CONFIGURATION.format(port=port, word=WORD)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
    url = "https://metric.example.org/below/"
    argv = [program("prometheus"), "--config.file=prometheus.yml", "--storage.tsdb.path=data"]
    argv += [
        f"--web.listen-address=127.0.0.1:{port}",
        "--web.config.file=web.yml",
        f"--web.external-url={url}",
        "--web.route-prefix=/below",
    ]
    found = {"address": "127.0.0.1", "port": port, "has_tls": True, "arguments": argv}
    found["access"] = {"basic_auth": {"username": "watcher"}}
    with (directory / "log").open("w") as log, subprocess.Popen(argv, cwd=directory, stderr=log) as process:
        try:
            _wait_until_it_fires(found, directory / "log")
            yield found
        finally:
            process.terminate()


def asked(place: dict[str, Any], word: str = WORD) -> dict[str, Any]:
    return ask({"prometheus": place, "doors": [], "secrets": {"prometheus": {"password": word}}})


def _wait_until_it_fires(place: dict[str, Any], log: Path) -> None:
    ends = time.monotonic() + 60
    while not asked(place)["prometheus"]["alerts"]["data"]:
        assert time.monotonic() < ends, log.read_text()
        time.sleep(0.5)


def test_it_tells_who_has_its_password(place: dict[str, Any]) -> None:
    said = asked(place)
    answer = said["prometheus"]
    assert answer["url"] == f"https://127.0.0.1:{place['port']}/below"
    assert answer["ready"]["code"] == answer["runtime"]["code"] == 200
    assert answer["runtime"]["data"] == {"taken": True}
    health = {(t["job"], t["instance"]): t["health"] for t in answer["targets"]["data"]}
    assert health == {("prometheus", "ctl1"): "up", ("node", "node1"): "down"}
    alerts = [(a["name"], a["instance"], a["severity"], a["summary"]) for a in answer["alerts"]["data"]]
    assert alerts == [("NoExporter", "node1", "critical", "it is gone")]
    assert said["pages"]["Prometheus"]["code"] in {200, 302}
    assert WORD not in json.dumps(said)


def test_it_tells_nobody_else(place: dict[str, Any]) -> None:
    assert asked(place, "another")["prometheus"]["ready"]["code"] == 401
    plain = asked({**place, "has_tls": False})["prometheus"]["ready"]
    assert plain["code"] == 400

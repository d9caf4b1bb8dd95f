"""The program that asks the monitoring: answers of a real Prometheus, and those that Grafana's manual has."""

import base64
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from deploy.validate.programs import monitoring

RECORDED = Path(__file__).parents[1] / "recorded" / "prometheus-2.53"
PASSWORD = "a word that nobody may read"  # noqa: S105 - of this test
WORD = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
READY = (200, "Ready.\n")
GOOD = json.dumps({"message": "Successfully queried the Prometheus API.", "status": "OK"})
BAD = json.dumps({"message": "connect: connection refused", "status": "ERROR"})
HEALTH = json.dumps({"commit": "087143285", "database": "ok", "version": "11.2.0"})
Answers = dict[str, tuple[int, str]]


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.json").read_text(encoding="utf-8")


def prometheus() -> Answers:
    """What the real one said, while an exporter was down and an alert fired."""
    return {
        "/": (302, ""),
        "/-/ready": READY,
        "/api/v1/status/runtimeinfo": (200, recorded("runtimeinfo")),
        "/api/v1/targets?state=active": (200, recorded("targets")),
        "/api/v1/alerts": (200, recorded("alerts")),
    }


@contextmanager
def daemon(answers: Answers, word: str = "") -> Iterator[dict[str, Any]]:
    """Something that answers so; with a word only to who brings it. Where it is, as ``ask`` takes it."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, text = answers.get(self.path, (404, '{"message": "Not found"}'))
            if word and self.headers.get("Authorization") != word:
                code, text = 401, '{"message": "Invalid username or password"}'
            self.send_response(code)
            self.send_header("Location", "http://192.0.2.1/")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {"address": "127.0.0.1", "port": server.server_port, "has_tls": False}
    finally:
        server.shutdown()
        server.server_close()


def test_what_a_real_prometheus_says() -> None:
    with daemon(prometheus()) as place:
        said = monitoring.ask({"prometheus": place, "doors": []})
    answer = said["prometheus"]
    assert answer["ready"] == {"code": 200, "why": "", "data": None}
    assert answer["runtime"]["data"] == {"taken": True}
    found = answer["targets"]["data"]
    assert {(t["job"], t["instance"]) for t in found if t["health"] == "up"} == {
        *(("node", name) for name in ("ctl1", "login1", "node2")),
        *((job, "ctl1") for job in ("alertmanager", "blackbox", "mysqld", "prometheus", "slurm")),
        ("blackbox", "login1"),
    }
    assert [(t["job"], t["instance"], t["health"]) for t in found if t["health"] != "up"] == [
        ("node", "node1", "down")
    ]
    assert "connection refused" in next(t["error"] for t in found if t["health"] == "down")
    assert answer["alerts"]["data"] == [
        {
            "name": "SlurmdStopped",
            "instance": "node2",
            "severity": "critical",
            "since": "2026-11-22T04:50:42.790269085Z",
            "summary": "slurmd does not run on node2",
        }
    ]
    assert said["pages"] == {"Prometheus": {"code": 302, "why": "HTTP status 302", "data": None}}
    assert said["grafana"] is said["alertmanager"] is None


def test_the_alerts_of_nodes_that_are_to_be_repaired() -> None:
    marked = recorded("alerts").replace('"alertname":', '"repair":"node","alertname":', 3)
    with daemon({**prometheus(), "/api/v1/alerts": (200, marked)}) as place:
        said = monitoring.unfit({"prometheus": place})
    found = said["alerts"]["data"]
    assert [(it["labels"]["alertname"], it["fires"]) for it in found] == [
        ("SlurmdStopped", True),
        ("SlurmDaemonNotRunning", False),
        ("HostDown", False),
    ]
    assert found[0]["summary"] == "slurmd does not run on node2"
    assert [it["instance"] for it in said["targets"]["data"] if it["health"] != "up"] == ["node1"]


def test_a_prometheus_that_is_away_knows_of_nobody() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = {"address": "127.0.0.1", "port": server.getsockname()[1], "has_tls": False}
    refused = {"code": None, "why": "Connection refused", "data": None}
    said = monitoring.unfit({"prometheus": place})
    assert said["alerts"] == said["targets"] == refused


def test_targets_that_prometheus_has_not_read_yet_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    monkeypatch.setattr(monitoring, "_FIRST_SCRAPE_SECONDS", 0.2)
    with daemon(prometheus()) as place:
        there = len(monitoring.ask({"prometheus": place, "doors": []})["prometheus"]["targets"]["data"])
        assert pauses == []
        monitoring.ask({"prometheus": {**place, "promised": there}, "doors": []})
        assert pauses == []
        monitoring.ask({"prometheus": {**place, "promised": there + 1}, "doors": []})
    assert pauses


def test_who_does_not_answer_is_asked_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = {"address": "127.0.0.1", "port": server.getsockname()[1], "has_tls": False}
    said = monitoring.ask({"prometheus": place, "alertmanager": place, "grafana": place, "doors": []})
    refused = {"code": None, "why": "Connection refused", "data": None}
    assert {*map(str, said["prometheus"].values())} == {said["prometheus"]["url"], str(refused)}
    assert said["alertmanager"]["ready"] == said["grafana"]["health"] == refused
    assert said["pages"] == dict.fromkeys(("Prometheus", "Alertmanager", "Grafana"), refused)


@pytest.mark.parametrize(
    "text", ["", "<html>", "[]", "{}", '{"data": {"activeTargets": [{}]}}', '{"data": 1}']
)
def test_an_answer_that_is_not_understood_is_none(text: str) -> None:
    with daemon({"/api/v1/targets?state=active": (200, text), "/-/ready": READY}) as place:
        said = monitoring.ask({"prometheus": place, "doors": []})["prometheus"]
    assert said["targets"] == {"code": 200, "why": "its answer is not understood", "data": None}
    assert said["alerts"] == {"code": 404, "why": "HTTP status 404", "data": None}


def test_targets_that_were_not_asked_yet_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    new = recorded("targets").replace('"health":"up"', '"health":"unknown"')
    answers: Answers = {**prometheus(), "/api/v1/targets?state=active": (200, new)}
    monkeypatch.setattr("time.sleep", lambda _: answers.update(prometheus()))
    with daemon(answers) as place:
        said = monitoring.ask({"prometheus": place, "doors": []})["prometheus"]
    assert "unknown" not in {target["health"] for target in said["targets"]["data"]}
    monkeypatch.setattr(monitoring, "_FIRST_SCRAPE_SECONDS", 0)
    with daemon({**prometheus(), "/api/v1/targets?state=active": (200, new)}) as place:
        said = monitoring.ask({"prometheus": place, "doors": []})["prometheus"]
    assert "unknown" in {target["health"] for target in said["targets"]["data"]}


BASIC = {"basic_auth": {"username": "admin", "password_file": ""}, "authorization": {"credentials_file": ""}}


@pytest.mark.parametrize(
    ("access", "secrets", "word"),
    [
        (BASIC, {"password": PASSWORD}, f"Basic {WORD}"),
        ({"basic_auth": {"username": "admin", "password_file": "FILE"}}, {"password": ""}, f"Basic {WORD}"),
        ({"authorization": {"type": ""}}, {"credentials": PASSWORD}, f"Bearer {PASSWORD}"),
        ({"authorization": {"type": "Own", "credentials_file": "FILE"}}, {}, f"Own {PASSWORD}"),
    ],
)
def test_a_password_lets_in_and_is_not_repeated(
    tmp_path: Path, access: dict[str, Any], secrets: dict[str, str], word: str
) -> None:
    kept = tmp_path / "password"
    kept.write_text(f"{PASSWORD}\n")
    access = json.loads(json.dumps(access).replace("FILE", str(kept)))
    with daemon(prometheus(), word) as place:
        asked = {"prometheus": {**place, "access": access}, "doors": []}
        said = monitoring.ask({**asked, "secrets": {"prometheus": secrets}})
        assert said["prometheus"]["ready"]["code"] == 200
        assert PASSWORD not in json.dumps(said)
        assert word.partition(" ")[2] not in json.dumps(said)
        without = monitoring.ask({"prometheus": place, "doors": []})["prometheus"]["ready"]
        assert without == {"code": 401, "why": "HTTP status 401", "data": None}


@pytest.mark.parametrize(
    ("code", "text", "data"),
    [
        (200, GOOD, {"status": "OK", "message": "Successfully queried the Prometheus API."}),
        (400, BAD, {"status": "ERROR", "message": "connect: connection refused"}),
        (404, '{"message": "Data source not found"}', {"status": "", "message": "Data source not found"}),
    ],
)
def test_grafana_is_asked_with_the_password_of_its_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, text: str, data: dict[str, str]
) -> None:
    (tmp_path / "password").write_text(PASSWORD)
    monkeypatch.setattr(monitoring, "_GRAFANA_PASSWORD_FILE", str(tmp_path / "password"))
    source = "/api/datasources/uid/prometheus/health"
    answers = {"/api/health": (200, HEALTH), "/login": (200, "<html>"), source: (code, text)}
    with daemon(answers, f"Basic {WORD}") as place:
        said = monitoring.ask({"grafana": place, "doors": []})
        assert said["grafana"]["source"]["data"] == data
        assert said["grafana"]["health"]["code"] == 401
        assert PASSWORD not in json.dumps(said)
    with daemon(answers) as place:
        said = monitoring.ask({"grafana": place, "doors": []})
        assert said["grafana"]["health"]["data"] == {"database": "ok"}
        assert said["pages"]["Grafana"]["code"] == 200


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ({}, ""),
        ({"external_url": ""}, ""),
        ({"external_url": "https://metric.example.org/"}, ""),
        ({"external_url": "https://metric.example.org/prometheus/"}, "/prometheus"),
        ({"external_url": "https://x/p", "arguments": ["--web.route-prefix=/"]}, ""),
        ({"external_url": "https://x/p", "arguments": ["--log.level=warn"]}, "/p"),
    ],
)
def test_what_stands_before_its_paths(place: dict[str, Any], path: str) -> None:
    assert monitoring.prefix(place) == path


def test_where_a_daemon_is() -> None:
    place = {"address": "fd00::1", "port": 9090, "has_tls": True, "external_url": "https://x/p"}
    assert monitoring.Daemon(place, {}).url == "https://[fd00::1]:9090/p"


@pytest.mark.parametrize(
    ("said", "why"),
    [(b"SSH-2.0-x\r\n", ""), (b"220 mail\r\n", "somebody answers, but no sshd"), (b"", "no sshd")],
)
def test_doors(said: bytes, why: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            client, _ = server.accept()
            client.sendall(said)
            client.close()

        threading.Thread(target=answer, daemon=True).start()
        assert monitoring.refusal("127.0.0.1", server.getsockname()[1]).endswith(why)
        port = server.getsockname()[1]
    assert monitoring.ask({"doors": [["login1", "127.0.0.1", port]]})["doors"] == {
        "login1": "Connection refused"
    }

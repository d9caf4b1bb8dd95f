"""Every panel of every dashboard has an answer from a Prometheus that gets what exporters told."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from deploy.monitoring.dashboards import DASHBOARDS
from deploy.monitoring.dashboards.jobs import JOBS
from tests.cluster.dashboard_queries import Ask, ask, broken_rules, unanswered
from tests.integration.prometheus_programs import RULES, program

RECORDED = Path(__file__).parents[1] / "unit/monitoring/recorded"
# What is recorded of a machine is told under its name in the recordings of Slurm.
TARGETS = {
    "node": ("node.prom", "hardware.prom"),
    "slurm": ("slurm.prom",),
    "mysqld": ("mysqld.prom",),
    "prometheus": ("prometheus.prom",),
    "alertmanager": ("alertmanager.prom",),
}
GPUS = {"node1": "dcgm.prom", "node2": "nvitop.prom", "node3": "nvitop-h200.prom"}
# There need not be one; and recorded disks are written to no more.
MAY_BE_SILENT = frozenset({"an alert that fires", "disks that are written to"})


class Recordings(BaseHTTPRequestHandler):
    """Serves /NAME.prom,NAME.prom as an exporter would."""

    def do_GET(self) -> None:
        names = self.path.strip("/").split(",")
        text = "".join((RECORDED / name).read_text() for name in names).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def configuration(port: int) -> str:
    def job(name: str, path: str, instance: str) -> dict[str, object]:
        return {
            "job_name": f"{name}-{instance}",
            "metrics_path": path,
            "static_configs": [
                {"targets": [f"127.0.0.1:{port}"], "labels": {"job": name, "instance": instance}}
            ],
        }

    jobs = [job(name, f"/{','.join(files)}", "node1") for name, files in TARGETS.items()]
    jobs += [job("gpu", f"/{file}", instance) for instance, file in GPUS.items()]
    return yaml.safe_dump(
        {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(path) for path in RULES],
            "scrape_configs": jobs,
        }
    )


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("prometheus")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recordings)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (place / "prometheus.yml").write_text(configuration(server.server_address[1]))
    port = free_port()
    options = [f"--web.listen-address=127.0.0.1:{port}", f"--storage.tsdb.path={place}/data"]
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(
            [program("prometheus"), f"--config.file={place}/prometheus.yml", *options], stdout=log, stderr=log
        )
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 60
        while not has_started(ask(url)):
            assert process.poll() is None, (place / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.5)
        yield url
    finally:
        process.terminate()
        process.wait(30)
        server.shutdown()
        server.server_close()


def has_started(answers: Ask) -> bool:
    """Whether every target was asked several times, and rules that build on rules were evaluated."""
    try:
        return len(answers("count_over_time(up[1m]) >= 5")) == len(TARGETS) + len(GPUS)
    except OSError:
        return False
    except ValueError as problem:
        if "Service Unavailable" not in str(problem):
            raise
        return False  # it listens before it can answer


def test_every_panel_has_an_answer(prometheus: str) -> None:
    silent = [one for one in unanswered(ask(prometheus)) if one.needs not in MAY_BE_SILENT]
    assert silent == []


def test_every_dashboard_is_drawn(prometheus: str, tmp_path: Path) -> None:
    command = (sys.executable, "-m", "tests.pictures", prometheus, "--minutes", "1", "--directory", tmp_path)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    names = {f"{dashboard.uid.removeprefix('deploy-')}.png" for dashboard in DASHBOARDS}
    assert {path.name for path in tmp_path.iterdir()} == names


def test_both_exporters_of_gpus_are_told_under_the_same_names_and_units(prometheus: str) -> None:
    answers = ask(prometheus)

    def by_instance(expr: str) -> dict[str, float]:
        return {one["metric"]["instance"]: float(one["value"][1]) for one in answers(expr)}

    assert by_instance("gpu:utilization:ratio") == {"node1": 0.97, "node2": 0.87, "node3": 1}
    assert by_instance("gpu:memory_used:bytes") == {
        "node1": 61036 << 20,
        "node2": 61440 << 20,
        "node3": 1138.8125 * (1 << 20),
    }
    assert by_instance("gpu:power:watts") == {"node1": 540.25, "node2": 312, "node3": 691.795}
    assert by_instance("gpu:power_limit:watts") == {"node1": 700, "node2": 400, "node3": 700}
    assert by_instance("gpu:temperature:celsius") == {"node1": 52, "node2": 61, "node3": 57}
    assert by_instance("gpu:sm_clock:hertz") == {"node1": 1.98e9, "node2": 1.41e9, "node3": 1.47e9}
    assert by_instance("gpu:nvlink:bytes_per_second") == {"node1": 4e11, "node2": 300 << 20}
    assert {one["metric"]["gpu"] for one in answers("gpu:utilization:ratio")} == {"0"}


def test_what_a_gpu_cannot_tell_is_left_out_and_spoils_no_sum(prometheus: str) -> None:
    answers = ask(prometheus)
    assert answers("gpu_nvlink_total_tx_throughput_MiBps != gpu_nvlink_total_tx_throughput_MiBps"), "no NaN"
    assert not [one["metric"] for one in answers('{__name__=~"gpu:.+"}') if one["value"][1] == "NaN"]
    assert answers("sum(gpu:nvlink:bytes_per_second) >= 0")


def test_no_rule_fails(prometheus: str) -> None:
    assert broken_rules(prometheus) == {}


def test_a_query_that_prometheus_rejects_is_an_error(prometheus: str) -> None:
    with pytest.raises(ValueError, match="parse error"):
        ask(prometheus)("sum by (")


def test_a_gpu_is_that_of_the_job_whose_number_the_exporter_has(prometheus: str) -> None:
    (one,) = ask(prometheus)("gpu:job:info")
    assert {name: one["metric"][name] for name in ("instance", "gpu", "job_id")} == {
        "instance": "node1",
        "gpu": "0",
        "job_id": "11_1",
    }
    assert one["value"][1] == "1"


def test_a_job_is_not_shown_the_gpus_of_another_one(prometheus: str) -> None:
    (panel,) = [each for each in JOBS.panels if each.title == "GPU use"]

    def of_job(number: str) -> list[dict[str, str]]:
        return [one["metric"] for one in ask(prometheus)(panel.queries[0].expr.replace("$job_id", number))]

    assert of_job("11_1") == [{"instance": "node1", "gpu": "0"}]
    assert of_job("10") == []

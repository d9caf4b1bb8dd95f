"""The Slurm exporter, on what Slurm's commands printed on real controllers."""

import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.roles.loading import ROOT, load_module

PROGRAM = ROOT / "roles/slurm_metrics/files/usr/local/lib/slurm_metrics"
RECORDED = Path(__file__).parent / "slurm_metrics"
RELEASES = ["22.05", "24.11", "26.05"]
FILES = {
    "controllers": "controllers.txt",
    "nodes": "nodes.txt",
    "jobs": "jobs.txt",
    "scheduler": "scheduler.txt",
    "partitions": "partitions.txt",
    "configuration": "config.txt",
    "accounting": "clusters.txt",
    "shares": "shares.txt",
    "budgets": "budgets.txt",
    "budget_use": "budget_use.txt",
}
SETTINGS = {
    "slow_interval": 300,
    "named_jobs": 10,
    "accounting": True,
    "timeout": 5,
    "interval": 60,
    "path": "/usr/bin:/bin",
    "listen_address": "127.0.0.1",
    "port": 0,
}

Module = Any
Samples = Mapping[tuple[str, ...], float]


@pytest.fixture(scope="module", autouse=True)
def _as_on_a_controller() -> None:
    """The program's files lie in one directory there."""
    sys.path[:0] = [str(PROGRAM)]


@pytest.fixture(scope="module")
def program() -> Module:
    return load_module("roles/slurm_metrics/files/usr/local/lib/slurm_metrics/slurm_metrics.py")


@pytest.fixture(scope="module")
def nodes() -> Module:
    import node_metrics  # type: ignore[import-not-found]  # noqa: PLC0415

    return node_metrics


@pytest.fixture(scope="module")
def jobs() -> Module:
    import job_metrics  # type: ignore[import-not-found]  # noqa: PLC0415

    return job_metrics


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def recorded(release: str, name: str) -> str:
    return (RECORDED / release / FILES[name]).read_text(encoding="utf-8")


def samples(families: Any) -> dict[str, dict[tuple[str, ...], float]]:  # noqa: ANN401
    """Values by metric and by the values of its labels."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in families:
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


@pytest.fixture
def parsed(program: Module, release: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Everything that the recordings of a release say."""
    listed = program.commands(SETTINGS)
    return samples(
        family
        for command in listed
        if (RECORDED / release / FILES[command.name]).exists()
        for family in command.parse(recorded(release, command.name), 1795323000.0)
    )


def test_nodes_are_counted_once(parsed: Mapping[str, Samples]) -> None:
    assert {key: value for key, value in parsed["slurm_nodes"].items() if value} == {
        ("mixed",): 1,
        ("drained",): 1,
    }
    assert parsed["slurm_node_state"] == {("node1", "mixed"): 1, ("node2", "drained"): 1}
    assert parsed["slurm_cpus"] == {("allocated",): 1, ("idle",): 1, ("down",): 2}
    assert parsed["slurm_gpus"] == {("a100", "allocated"): 1, ("a100", "idle"): 1, ("a100", "down"): 2}
    assert parsed["slurm_memory_bytes"]["down",] == 1024 << 20
    assert parsed["slurm_partition_gpus"]["batch", "allocated"] == 1


def test_who_drained_a_node_and_why(parsed: Mapping[str, Samples]) -> None:
    [(node, reason, user)] = parsed["slurm_node_reason_timestamp_seconds"]
    assert (node, reason, user) == ("node2", "fan State=x [is] loud", "root")
    assert parsed["slurm_node_reason_timestamp_seconds"][node, reason, user] > 1.79e9


def test_queue(parsed: Mapping[str, Samples]) -> None:
    assert parsed["slurm_jobs"]["batch", "alice", "research", "running"] == 1
    # A job array of 25 tasks, a held job and one that begins later.
    assert parsed["slurm_jobs"]["batch", "bob", "research", "pending"] == 27
    assert parsed["slurm_jobs_gpus"]["batch", "bob", "research", "pending"] == 50
    assert parsed["slurm_jobs_gpus"]["batch", "alice", "research", "running"] == 1
    assert sum(parsed["slurm_jobs_pending"].values()) == 29
    assert parsed["slurm_jobs_pending"]["batch", "JobHeldUser"] == 1
    assert parsed["slurm_jobs_pending"]["batch", "BeginTime"] == 1
    assert 0 < parsed["slurm_jobs_pending_oldest_seconds"]["batch",] < 3600 * 24


def test_jobs_that_run_have_metrics_of_their_own(parsed: Mapping[str, Samples]) -> None:
    assert parsed["slurm_job_info"] == {("1", "1", "alice", "research", "batch", "normal"): 1}
    assert parsed["slurm_job_gpus"] == {("1",): 1}
    assert parsed["slurm_job_memory_bytes"] == {("1",): 500 << 20}
    assert parsed["slurm_job_node"] == {("1", "node1"): 1}


@pytest.mark.parametrize("release", ["22.05", "24.11"])
def test_budgets(parsed: Mapping[str, Samples]) -> None:
    assert parsed["slurm_budget_granted_hours"] == {
        ("laser", "gres/gpu"): 1,
        ("ice", "gres/gpu"): 1,
        ("ice", "cpu"): 100,
    }
    assert parsed["slurm_budget_used_hours"].keys() == parsed["slurm_budget_granted_hours"].keys()
    assert 0 < parsed["slurm_budget_used_hours"]["ice", "gres/gpu"] < 0.1


def test_scheduler(parsed: Mapping[str, Samples]) -> None:
    assert parsed["slurm_scheduler_threads"][()] >= 1
    assert parsed["slurm_scheduler_dbd_queue"][()] == 0
    assert 0 < parsed["slurm_scheduler_main_max_cycle_seconds"][()] < 1
    assert parsed["slurm_scheduler_jobs_started_total"][()] >= 1
    assert parsed["slurm_rpc_requests_total"]["REQUEST_SUBMIT_BATCH_JOB",] >= 7
    assert parsed["slurm_rpc_user_requests_total"]["alice",] >= 2
    assert parsed["slurm_rpc_seconds_total"]["REQUEST_SUBMIT_BATCH_JOB",] < 1


def test_a_round_of_backfill_that_goes_on_hides_nothing(program: Module, release: str) -> None:
    """sdiag has another heading while it does, which is most of the time where rounds are long."""
    (command,) = (each for each in program.commands(SETTINGS) if each.name == "scheduler")
    text = recorded(release, "scheduler")
    busy = text.replace(
        "Backfilling stats\n",
        "Backfilling stats (WARNING: data obtained in the middle of backfilling execution.)\n",
    )
    assert busy != text
    found = samples(command.parse(busy, 1795323000.0))
    assert found == samples(command.parse(text, 1795323000.0))
    assert "slurm_scheduler_backfill_last_cycle_seconds" in found


@pytest.mark.parametrize(
    ("version", "parameters", "cpus", "most"),
    [
        ("22.05.8", "enable_configless", 64, 256),
        ("24.05.1", "conmgr_threads=8", 64, 256),
        ("24.11.5", "enable_configless", 4, 64),
        ("24.11.5", "enable_configless,CONMGR_THREADS=200", 4, 200),
        ("25.05.3", "(null)", 64, 128),
        ("25.11.0", "(null)", 64, 32),
        ("26.05.5", "conmgr_threads=0", 8, 16),
    ],
)
def test_how_many_calls_are_answered_at_a_time(
    program: Module, version: str, parameters: str, cpus: int, most: int
) -> None:
    assert program.site_metrics.threads(version, parameters, cpus) == most


def test_limits_of_slurmctld(parsed: Mapping[str, Samples], release: str) -> None:
    assert parsed["slurm_scheduler_dbd_queue_max"] == {(): 20008}
    assert (parsed["slurm_scheduler_threads_max"][()] == 256) == (release == "22.05")


def test_requests_of_people_with_long_names(program: Module) -> None:
    """Slurm has a column of 16 letters for them, and no blank behind one that is full."""
    (command,) = (each for each in program.commands(SETTINGS) if each.name == "scheduler")
    text = recorded("24.11", "scheduler").replace("\talice           (", "\tfirstname.lastname(")
    text = text.replace("\tbob             (", "\tsixteen.letters1(")
    found = samples(command.parse(text, 1795323000.0))["slurm_rpc_user_requests_total"]
    assert {("firstname.lastname",), ("sixteen.letters1",)} < found.keys()


def test_site(parsed: Mapping[str, Samples], release: str) -> None:
    assert parsed["slurm_controller_up"] == {("ctl1", "primary"): 1}
    [(cluster, version)] = parsed["slurm_info"]
    assert cluster == "cluster"
    assert version.startswith(release)
    assert parsed["slurm_controller_start_timestamp_seconds"][()] > 1.79e9
    assert parsed["slurm_partition_state"]["batch", "up"] == 1
    assert parsed["slurm_fairshare_factor"].keys() == {
        ("root", "root"),
        ("research", "alice"),
        ("research", "bob"),
    }
    assert parsed["slurm_fairshare_shares_ratio"]["research", "alice"] == 0.5


@pytest.mark.parametrize(
    ("text", "state", "responds"),
    [
        ("IDLE", "idle", True),
        ("MIXED+PLANNED", "mixed", True),
        ("IDLE+PLANNED", "planned", True),
        ("IDLE+COMPLETING", "completing", True),
        ("ALLOCATED+DRAIN", "draining", True),
        ("IDLE+COMPLETING+DRAIN", "draining", True),
        ("IDLE+DRAIN", "drained", True),
        ("DOWN*+DRAIN", "drained", False),
        ("DOWN+DRAIN+NOT_RESPONDING", "drained", False),
        ("DOWN*", "down", False),
        ("IDLE*", "idle", False),
        ("IDLE~", "idle", True),
        ("IDLE+MAINTENANCE+RESERVED", "maint", True),
        ("IDLE+RESERVED", "reserved", True),
        ("IDLE+CLOUD+POWERED_DOWN", "powered_down", True),
        ("DOWN+REBOOT_ISSUED", "reboot", True),
        ("DOWN+CLOUD+POWERED_DOWN", "down", True),
        ("INVAL", "down", True),
        ("SOMETHING_NEW", "unknown", True),
        ("", "unknown", True),
    ],
)
def test_state_of_a_node(nodes: Module, text: str, state: str, responds: bool) -> None:  # noqa: FBT001
    assert nodes.effective_state(text) == (state, responds)
    assert state in nodes.STATES


@pytest.mark.parametrize(
    ("state", "is_off"),
    [
        ("IDLE+CLOUD+POWERED_DOWN", 1),
        ("IDLE+POWERING_DOWN", 1),
        ("ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP", 1),
        ("DOWN+CLOUD+POWERED_DOWN", 1),
        ("IDLE+CLOUD", 0),
        ("MIXED+POWER_DOWN", 0),
    ],
)
def test_a_node_that_power_saving_has_switched_off(nodes: Module, state: str, is_off: int) -> None:
    """One that is to be, when its job has ended, is not."""
    found = {family.name: family for family in nodes.metrics(f"NodeName=node1 State={state} CPUTot=2", 0.0)}
    assert [sample.value for sample in found["slurm_node_powered_down"].samples] == [is_off]


@pytest.mark.parametrize(
    ("gres", "count"),
    [
        ("(null)", {}),
        ("gpu:2", {"gpu": 2}),
        ("gpu:a100:2(S:0-1)", {"a100": 2}),
        ("gpu:a100:2(S:0,2),gpu:t4:1(S:1),nic:4", {"a100": 2, "t4": 1}),
        ("gpu:h100_1g.10gb:7(IDX:0-6)", {"h100_1g.10gb": 7}),
        ("gpu:a100:0(IDX:N/A),gpu:a100:1(IDX:3)", {"a100": 1}),
        ("gpu:3090:4(S:0-1)", {"3090": 4}),
        ("gpu:2080ti:4", {"2080ti": 4}),
        ("gpu:1g.10gb:7,gpu:7:1", {"1g.10gb": 7, "7": 1}),
        ("gpu:a100:2,gpu:4090:1,shard:16,gpu:_x:1", {"a100": 2, "4090": 1, "_x": 1}),
        ("shard:3090:4,mps:100", {}),
    ],
)
def test_gpus_of_a_node(nodes: Module, gres: str, count: Mapping[str, int]) -> None:
    assert nodes.gpus_of(gres) == count


@pytest.mark.parametrize(
    ("number", "tasks"),
    [
        ("12", 1),
        ("12_3", 1),
        ("12_[4]", 1),
        ("12_[1-10]", 10),
        ("12_[1-49:2%3]", 25),
        ("12_[1-3,7,9-13:2%4]", 7),
    ],
)
def test_tasks_of_an_array(jobs: Module, number: str, tasks: int) -> None:
    assert jobs.tasks_of(number) == tasks


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [("30:00", 1800), ("1:00:00", 3600), ("1-00:30:00", 88200), ("UNLIMITED", None), ("INVALID", None)],
)
def test_time_limit(jobs: Module, limit: str, seconds: float | None) -> None:
    assert jobs.seconds_of(limit) == seconds


@pytest.mark.parametrize(
    ("nodes", "names"),
    [
        ("", []),
        ("node1", ["node1"]),
        ("node[1-2,5],gpu01", ["node1", "node2", "node5", "gpu01"]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("r[1-2]n[3-4]", ["r1n3", "r1n4", "r2n3", "r2n4"]),
    ],
)
def test_nodes_of_a_job(jobs: Module, nodes: str, names: list[str]) -> None:
    assert list(jobs.expand(nodes)) == names


def test_tres(jobs: Module) -> None:
    assert jobs.resources_of("cpu=4,mem=1.50G,node=2,billing=4,gres/gpu=4,gres/gpu:a100=4") == (
        4,
        4,
        1536 << 20,
    )
    assert jobs.resources_of("cpu=1,mem=300,node=1") == (1, 0, 300 << 20)


def line(
    number: str,
    state: str,
    started: object = "N/A",
    ended: object = "N/A",
    *,
    reason: str = "None",
    eligible: object = 1100,
    nodes: str | None = None,
) -> str:
    head = f"{number}|{number}|{state}|batch|alice|research|normal|1000|{eligible}|{started}|{ended}|30:00"
    where = ("" if state == "PENDING" else "node1") if nodes is None else nodes
    return f"{head}|cpu=1,mem=1G,node=1|{where}|{reason}\n"


def test_starts_and_ends_are_counted_once_and_not_what_was_there_before(jobs: Module) -> None:
    kept = jobs.JobMetrics(10)
    before = line("1", "COMPLETED", 1200, 1300) + line("2", "RUNNING", 1200)
    pending = line("3", "PENDING", reason="Priority") + line("4", "PENDING", 9999, reason="Priority")
    first = samples(kept.metrics(before + pending, 1400))
    assert first["slurm_job_wait_seconds_count"] == {("batch",): 0}
    assert first["slurm_jobs_ended_total"]["batch", "completed"] == 0
    # 2 failed; 3 started and ran out of time between two rounds; 4 has only a prediction of its start.
    after = line("2", "FAILED", 1200, 1450) + line("3", "TIMEOUT", 1420, 1440) + line("4", "PENDING", 8888)
    for _ in range(2):
        second = samples(kept.metrics(after, 1500))
        assert second["slurm_job_wait_seconds_count"] == {("batch",): 1}
        assert second["slurm_job_wait_seconds_sum"] == {("batch",): 320}
        assert second["slurm_job_wait_seconds_bucket"]["batch", "300"] == 0
        assert second["slurm_job_wait_seconds_bucket"]["batch", "900"] == 1
        ended = {key[1]: value for key, value in second["slurm_jobs_ended_total"].items() if value}
        assert ended == {"failed": 1, "timeout": 1}


def test_who_is_cancelled_while_he_waits_did_not_start(jobs: Module) -> None:
    """As squeue shows it: started and ended in that second, without nodes."""
    kept = jobs.JobMetrics(10)
    kept.metrics(line("1", "PENDING", reason="Priority") + line("2", "RUNNING", 1200), 1300)
    after = line("1", "CANCELLED", 9000, 9000, nodes="") + line("2", "CANCELLED", 1200, 9000)
    found = samples(kept.metrics(after, 9001))
    assert found["slurm_job_wait_seconds_count"] == {("batch",): 0}
    assert found["slurm_jobs_ended_total"]["batch", "cancelled"] == 2


def test_how_long_slurm_has_not_looked_at_a_job(jobs: Module) -> None:
    """Where some are always young, none of them is old."""
    kept = jobs.JobMetrics(10)
    for minute in range(1, 60):
        now = 2000 + 60 * minute
        young = line(str(minute), "PENDING", eligible=now - 5) + line("500", "PENDING", reason="Priority")
        assert samples(kept.metrics(young, now))["slurm_jobs_unseen_oldest_seconds"] == {("batch",): 5}
    old = line("600", "PENDING", eligible=2000) + line("601", "PENDING", eligible="N/A")
    assert samples(kept.metrics(old, 2960))["slurm_jobs_unseen_oldest_seconds"] == {("batch",): 1960}
    assert samples(kept.metrics(line("1", "RUNNING", 1200), 2960))["slurm_jobs_unseen_oldest_seconds"] == {
        ("batch",): 0
    }


def test_a_job_that_does_not_end_is_seen(jobs: Module) -> None:
    found = samples(jobs.JobMetrics(1).metrics(line("1", "COMPLETING", 1200, 1300), 1900))
    assert found["slurm_jobs_completing_oldest_seconds"] == {(): 600}


def test_held_jobs_are_not_waiting_for_the_cluster(jobs: Module) -> None:
    found = samples(jobs.JobMetrics(1).metrics(line("1", "PENDING", reason="JobHeldUser"), 9000))
    assert found["slurm_jobs_pending_oldest_seconds"] == {("batch",): 0}
    assert found["slurm_jobs_pending"] == {("batch", "JobHeldUser"): 1}


def test_only_the_largest_jobs_have_metrics_of_their_own(jobs: Module) -> None:
    small = [line(str(number), "RUNNING", 1200) for number in range(1, 9)]
    large = line("9", "RUNNING", 1200).replace("cpu=1", "cpu=64")
    found = samples(jobs.JobMetrics(2).metrics("".join([*small, large]), 1900))
    assert {key[0] for key in found["slurm_job_info"]} == {"8", "9"}


Answer = Callable[[str], str]


@pytest.fixture
def collection(program: Module, monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], Any]:
    """A collection that asks a function instead of Slurm."""

    def make(answer: Answer) -> Any:  # noqa: ANN401
        monkeypatch.setattr(program, "output", lambda command, _seconds, _path: answer(command.name))
        return program.Collection(program.commands(SETTINGS), 5, "/bin")

    return make


def test_failed_command_is_told_and_leaves_nothing_stale(
    program: Module, collection: Callable[[Answer], Any]
) -> None:
    broken: set[str] = set()

    def answer(name: str) -> str:
        if name in broken:
            raise program.CommandError(name, "no answer")
        return recorded("24.11", name)

    asked = collection(answer)
    asked.ask()
    assert set(samples(asked.collect())["slurm_exporter_collect_success"].values()) == {1}
    broken |= {"nodes", "scheduler"}
    asked.ask()
    found = samples(asked.collect())
    assert {key[0] for key, value in found["slurm_exporter_collect_success"].items() if not value} == broken
    assert "slurm_nodes" not in found
    assert "slurm_scheduler_threads" not in found
    assert "slurm_jobs" in found
    assert ("nodes",) in found["slurm_exporter_collect_timestamp_seconds"]
    broken.clear()
    asked.ask()
    assert "slurm_nodes" in samples(asked.collect())


def test_output_that_makes_no_sense_is_a_failure_and_no_crash(collection: Callable[[Answer], Any]) -> None:
    asked = collection(lambda _name: "slurm|is\nunwell\n")
    asked.ask()
    success = samples(asked.collect())["slurm_exporter_collect_success"]
    assert {name for (name,), value in success.items() if not value} >= {
        "jobs",
        "controllers",
        "scheduler",
        "shares",
    }


def test_what_changes_rarely_is_asked_rarely_until_it_fails(
    program: Module, collection: Callable[[Answer], Any]
) -> None:
    asked_for: list[str] = []
    fails = True

    def answer(name: str) -> str:
        asked_for.append(name)
        if fails and name == "shares":
            raise program.CommandError(name, "no")
        return recorded("24.11", name)

    asked = collection(answer)
    for fails in (True, False, False):  # noqa: B007 - read by answer
        asked.ask()
    assert {name: asked_for.count(name) for name in ("jobs", "partitions", "shares")} == {
        "jobs": 3,
        "partitions": 1,
        "shares": 2,
    }


def test_a_costly_round_makes_the_next_one_wait(program: Module) -> None:
    assert program.pause(60, 0.2) == 60
    assert program.pause(60, 1.5) == pytest.approx(150)


def script(place: Path, name: str, text: str) -> None:
    path = place / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_hanging_command_is_killed_with_what_it_started(program: Module, tmp_path: Path) -> None:
    script(tmp_path, "scontrol", f"sleep 60 & echo $! > {tmp_path}/child; wait")
    command = program.Command("nodes", ["scontrol"], lambda *_: [])
    began = time.monotonic()
    with pytest.raises(program.CommandError, match="no answer within 2 s"):
        program.output(command, 2, f"{tmp_path}:/usr/bin:/bin")
    assert time.monotonic() - began < 50
    status = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    deadline = time.monotonic() + 60
    # Killed, and at most not yet waited for by whoever inherits it.
    while status.exists() and status.read_text().split()[2] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_complaint_of_a_command_is_the_reason(program: Module, tmp_path: Path) -> None:
    script(tmp_path, "squeue", "echo 'cannot contact controller' >&2; exit 1")
    with pytest.raises(program.CommandError, match="cannot contact controller"):
        program.output(program.Command("jobs", ["squeue"], lambda *_: []), 5, str(tmp_path))
    with pytest.raises(program.CommandError, match="sdiag: No such file"):
        program.output(program.Command("x", ["sdiag"], lambda *_: []), 5, str(tmp_path))


@pytest.fixture
def served(program: Module, tmp_path: Path) -> Iterator[str]:
    """The exporter's URL, with commands that print the recordings and note who runs beside them."""
    port = free_port()
    for name in ("scontrol", "squeue", "sdiag", "sshare", "sacctmgr"):
        script(
            tmp_path,
            name,
            f"mkdir {tmp_path}/lock || touch {tmp_path}/two; sleep 0.02; rmdir {tmp_path}/lock",
        )
    stop = threading.Event()
    settings = {**SETTINGS, "path": f"{tmp_path}:/usr/bin:/bin", "port": port, "interval": 0.01}
    thread = threading.Thread(target=program.serve, args=(settings, stop))
    thread.start()
    deadline = time.monotonic() + 60
    while not answers(port):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}"
    stop.set()
    thread.join(60)
    assert not thread.is_alive()


def answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_scrapes_never_ask_slurm_and_slurm_is_asked_one_thing_at_a_time(served: str, tmp_path: Path) -> None:
    deadline = time.monotonic() + 60
    text = ""
    while 'collect_success{command="shares"}' not in text:
        assert time.monotonic() < deadline, text
        time.sleep(0.05)
        with urllib.request.urlopen(f"{served}/metrics", timeout=30) as answer:  # noqa: S310
            text = answer.read().decode()
            assert answer.headers["Content-Type"].startswith("text/plain")
    for _ in range(50):
        urllib.request.urlopen(f"{served}/metrics", timeout=30).close()  # noqa: S310
    assert not (tmp_path / "two").exists()
    names = {family.name for family in text_string_to_metric_families(text)}
    assert {"slurm_exporter_collect_success", "slurm_exporter_cpu_seconds"} <= names


@pytest.mark.parametrize(
    ("listens", "asked"),
    [("", "127.0.0.1"), ("", "[::1]"), ("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")],
)
def test_it_listens_where_it_is_told(program: Module, listens: str, asked: str) -> None:
    stop = threading.Event()
    port = free_port()
    settings = {**SETTINGS, "path": "/nowhere", "port": port, "listen_address": listens}
    thread = threading.Thread(target=program.serve, args=(settings, stop))
    thread.start()
    try:
        deadline = time.monotonic() + 60
        text = ""
        while 'collect_success{command="shares"} 0.0' not in text:
            assert time.monotonic() < deadline, text
            time.sleep(0.05)
            with suppress(urllib.error.URLError):
                text = urllib.request.urlopen(f"http://{asked}:{port}/metrics", timeout=30).read().decode()
    finally:
        stop.set()
        thread.join(60)


def test_nothing_else_is_served(served: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{served}/etc/passwd", timeout=30)  # noqa: S310


def test_settings_that_cannot_be_read_end_it_with_a_line(
    program: Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert program.main([str(tmp_path / "missing.json")]) == 2
    assert "missing.json" in caplog.text


HOSTS = """\
BOOT_TIME               = 1795677181
ClusterName             = cluster
SlurmctldHost[0]        = ctl1(10.213.159.2)
SlurmctldHost[1]        = ctl2(10.213.159.4)
SLURM_VERSION           = 24.11.5
"""


@pytest.mark.parametrize(
    ("clusters", "leads"),
    [
        ("cluster|10.213.159.2\n", {("ctl1", "primary"): 1.0, ("ctl2", "backup"): 0.0}),
        ("other|10.9.9.9\ncluster|10.213.159.4\n", {("ctl1", "primary"): 0.0, ("ctl2", "backup"): 1.0}),
        # Nobody is registered, or somebody who is none of them: nobody knows who leads.
        ("cluster|\n", {}),
        ("cluster|10.9.9.9\n", {}),
        ("other|10.213.159.4\n", {}),
    ],
)
def test_of_several_controllers_slurmdbd_knows_who_leads(clusters: str, leads: Mapping[Any, float]) -> None:
    slurmctld = load_module(f"{PROGRAM.relative_to(ROOT)}/site_metrics.py").Slurmctld()
    slurmctld.configuration(HOSTS, 0.0)
    assert samples(slurmctld.accounting(clusters, 0.0)).get("slurm_controller_leads", {}) == leads


def test_where_there_is_one_controller_it_is_not_told_who_leads() -> None:
    slurmctld = load_module(f"{PROGRAM.relative_to(ROOT)}/site_metrics.py").Slurmctld()
    slurmctld.configuration("\n".join(HOSTS.splitlines()[:3] + HOSTS.splitlines()[4:]) + "\n", 0.0)
    assert slurmctld.accounting("cluster|10.213.159.2\n", 0.0) == []
    with pytest.raises(ValueError, match=r"^$"):
        slurmctld.accounting("", 0.0)

"""The portal's helper does for the hub what a person may do, and nothing else."""

import io
import json
import os
import pwd
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.loading import ROOT

PLACE = ROOT / "roles/slurm_portal/files/portal"
SLURM = """\
#!/bin/sh
me=$(basename "$0")
printf '%s' "$me" >> {log}
for word in "$@"; do printf '|%s' "$word" >> {log}; done
printf '\\n' >> {log}
case $me in
scontrol) echo 'PartitionName=gpu AllowAccounts=ALL AllowQos=ALL MaxTime=UNLIMITED State=UP' ;;
sinfo) echo 'gpu gpu:a100:2 node1' ;;
sacctmgr) echo 'physics||normal|normal' ;;
sbatch) cat > {script}; env > {environment}; echo '41;lab' ;;
squeue) cat {queue} ;;
sacct) echo '7|jupyter|gpu|physics|TIMEOUT|01:00:00|0:0' ;;
esac
"""
FORM = {
    "partition": "gpu",
    "account": "physics",
    "qos": "",
    "gpu_type": "a100",
    "gpus": "1",
    "cpus": "1",
    "memory_gb": "1",
    "minutes": "10",
    "environment": "torch",
}
SETTINGS: dict[str, Any] = {
    "groups": [],
    "admin_groups": [],
    "min_uid": 1,
    "validation_user": "",
    "partitions": [],
    "environments": [
        {"name": "plain", "title": "Plain", "modules": []},
        {"name": "torch", "title": "Torch", "modules": ["torch/2.9"]},
    ],
    "max_gpus": 2,
    "max_cpus": 8,
    "max_memory_gb": 16,
    "max_minutes": 600,
    "python": "/opt/jupyter-server/environment/bin/python",
    "program": "/usr/local/lib/jupyter-server/start_server.py",
    "apps": "/usr/local/lib/jupyter-server/jupyter_server_config.json",
}


class Cluster:
    """A helper with stand-ins for Slurm's commands, which write down what they were called with."""

    def __init__(self, module: Any, place: Path, person: str) -> None:  # noqa: ANN401 - loaded here
        self.module, self.place, self.person = module, place, person
        self.log = place / "log"
        self.log.touch()
        (place / "queue").touch()
        text = SLURM.format(**{name: place / name for name in ("log", "script", "environment", "queue")})
        for name in ("scontrol", "sinfo", "sacctmgr", "sbatch", "squeue", "sacct", "scancel"):
            (place / name).write_text(text)
            (place / name).chmod(0o755)

    def ask(self, do: str, **more: object) -> dict[str, Any]:
        helper = self.module.Helper(SETTINGS, f"{self.place}:/usr/bin:/bin")
        answer: dict[str, Any] = helper.answer({"do": do, "user": self.person, **more})
        return answer


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.syspath_prepend(str(PLACE))
    import portal_helper  # type: ignore[import-not-found]  # noqa: PLC0415 - on the path of this test

    person = pwd.getpwuid(os.getuid() or 1)
    made = pwd.struct_passwd(
        (person.pw_name, "x", os.getuid() or 1, person.pw_gid, "", "/home/her", "/bin/sh")
    )
    monkeypatch.setattr(portal_helper.pwd, "getpwnam", lambda _: made)
    # Root would become her; commands of this test stay whoever runs it.
    monkeypatch.setattr(portal_helper, "_as", lambda _: {})
    yield Cluster(portal_helper, tmp_path, person.pw_name)
    for name in [name for name in sys.modules if name.startswith("portal_")]:
        del sys.modules[name]


def test_a_job_is_submitted_with_what_was_chosen_and_nothing_of_the_hub(cluster: Cluster) -> None:
    answer = cluster.ask("submit", choices=FORM, environment={"JUPYTERHUB_API_TOKEN": "t0ken"})
    assert answer == {"ok": True, "job": "41"}
    said = cluster.log.read_text()
    assert "t0ken" not in said
    call = next(line for line in said.splitlines() if line.startswith("sbatch"))
    assert "|--partition=gpu|--account=physics|--gres=gpu:a100:1|" in call
    assert "|--output=/home/her/.slurm-portal.log|" in call
    environment = dict(
        line.split("=", 1) for line in (cluster.place / "environment").read_text().splitlines()
    )
    assert environment["JUPYTERHUB_API_TOKEN"].endswith("ken")
    assert environment["HOME"] == "/home/her"
    assert "PYTEST_CURRENT_TEST" not in environment
    script = (cluster.place / "script").read_text()
    assert script.startswith("#!/bin/bash -l\n")
    assert "module load torch/2.9 || exit 1\nexec /opt/jupyter-server" in script


def test_an_earlier_server_is_cancelled_and_no_other_job(cluster: Cluster) -> None:
    line = "|jupyter|gpu|physics|PENDING|Priority|N/A|1:00:00|n/a|"
    (cluster.place / "queue").write_text(f"5{line}slurm-portal\n6{line}(null)\n")
    assert cluster.ask("submit", choices=FORM, environment={})["ok"]
    assert [line for line in cluster.log.read_text().splitlines() if "scancel" in line] == ["scancel|5"]


@pytest.mark.parametrize(
    "more",
    [
        {"choices": FORM | {"account": "others"}, "environment": {}},
        {"choices": FORM | {"partition": "gpu --wrap=id"}, "environment": {}},
        {"choices": FORM | {"wrap": "id"}, "environment": {}},
        {"choices": FORM, "environment": {"LD_PRELOAD": "/tmp/x.so"}},
        {"choices": FORM, "environment": {"PATH": "/tmp"}},
        {"choices": FORM, "environment": {"SBATCH_UID": "0"}},
        {"choices": FORM, "environment": {"JUPYTERHUB_A\nB": "x"}},
        {"choices": FORM, "environment": {"JUPYTERHUB_A": 1}},
        {"choices": "gpu", "environment": {}},
        {},
    ],
)
def test_nothing_else_is_submitted(cluster: Cluster, more: dict[str, object]) -> None:
    answer = cluster.ask("submit", **more)
    assert not answer["ok"]
    assert answer["refused"]
    assert "sbatch" not in cluster.log.read_text()


@pytest.mark.parametrize("job", ["1 2", "-u bob", "--user=bob", "1_2", "", None, 7, "1;id"])
def test_a_job_has_a_number(cluster: Cluster, job: object) -> None:
    for do in ("cancel", "job"):
        assert cluster.ask(do, job=job)["refused"]
    assert cluster.log.read_text() == ""


def test_what_became_of_a_job(cluster: Cluster) -> None:
    (cluster.place / "queue").write_text(
        "41|jupyter|gpu|physics|PENDING|(Resources)|2026-11-26T12:00:00|10:00|n/a|slurm-portal\n"
    )
    job = cluster.ask("job", job="41")["job"]
    assert job["words"] == (
        "Job 41 waits: what you asked for is in use. Slurm expects it to start at 2026-11-26 12:00:00."
    )
    (cluster.place / "queue").write_text("")
    assert cluster.ask("job", job="7")["job"]["words"] == "Job 7 has ended: its time was over."
    (cluster.place / "sacct").write_text("#!/bin/sh\nexit 1\n")
    assert cluster.ask("job", job="7")["job"]["state"] == "UNKNOWN"
    (cluster.place / "squeue").write_text(
        "#!/bin/sh\necho 'Unable to contact slurm controller' >&2; exit 1\n"
    )
    answer = cluster.ask("job", job="7")
    assert (answer["ok"], answer["refused"]) == (False, False)


@pytest.mark.parametrize("name", ["root", "../alice", "alice bob", "", None, "Alice", "-alice", "a" * 80])
def test_people_alone_are_served(cluster: Cluster, name: object, monkeypatch: pytest.MonkeyPatch) -> None:
    root = pwd.struct_passwd(("root", "x", 0, 0, "", "/root", "/bin/sh"))
    monkeypatch.setattr(cluster.module.pwd, "getpwnam", lambda _: root)
    cluster.person = name  # type: ignore[assignment]
    for do in ("login", "offers", "submit", "jobs", "cancel"):
        assert cluster.ask(do, job="1")["refused"]
    assert cluster.log.read_text() == ""


def test_groups_of_the_site_decide(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETTINGS, "groups", ["a-group-that-is-not-there"])
    assert "none of the groups" in cluster.ask("jobs")["why"]


def test_what_is_no_request_gets_an_answer(cluster: Cluster) -> None:
    for line in (b"", b"{}\n", b"[]\n", b"nonsense\n", b'{"do": "shell", "user": "x"}\n', b"null\n"):
        sink = io.BytesIO()
        cluster.module.serve(io.BytesIO(line), sink, SETTINGS)
        assert json.loads(sink.getvalue())["refused"]

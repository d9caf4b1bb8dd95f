"""The portal's helper does for the hub what a person may do, and nothing else."""

import io
import json
import os
import pwd
import shlex
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
scontrol)
    case $* in
    *reservation*) echo 'ReservationName=service StartTime=2026-12-01T08:00:00 '\\
'EndTime=2026-12-01T12:00:00 Duration=04:00:00 Nodes=node1 Flags=MAINT,IGNORE_JOBS Users=root' ;;
    *'show job'*) cat {shown} || exit 1 ;;
    *batch_script*) echo '#!/bin/sh' ; echo 'echo hers' ;;
    *--all*) cat {hidden} ;;
    *) echo 'PartitionName=gpu AllowAccounts=ALL AllowQos=ALL MaxTime=UNLIMITED State=UP' ;;
    esac ;;
sinfo)
    case $* in
    *--Format*)
        echo 'gpu node1 mixed- gpu:a100:2(S:0-1) gpu:a100:1(IDX:0)'
        echo 'gpu node2 drained gpu:a100:2 gpu:a100:0(IDX:N/A)' ;;
    *) echo 'gpu gpu:a100:2 node1' ;;
    esac ;;
sacctmgr) echo 'physics||normal|normal' ;;
sbatch) cat > {script}; env > {environment}; echo '41;lab' ;;
squeue)
    case $* in
    *batchflag*) cat {batch} ;;
    *) cat {queue} ;;
    esac ;;
seff) cat {used} ;;
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
        {"name": "image:base", "title": "Base", "modules": [], "image": "/images/base.sqsh"},
    ],
    "own_images": True,
    "defaults": {"gpus": 1, "cpus": 2, "memory_gb": 4, "minutes": 60},
    "templates": [
        {"name": "gpu", "title": "With GPUs", "script": "nvidia-smi\n"},
        {"name": "other", "title": "Elsewhere", "script": "true\n", "partitions": ["elsewhere"]},
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
        for name in ("queue", "batch", "used", "hidden"):
            (place / name).touch()
        files = ("log", "script", "environment", "queue", "batch", "used", "shown", "hidden")
        text = SLURM.format(**{name: place / name for name in files})
        for name in ("scontrol", "sinfo", "sacctmgr", "sbatch", "squeue", "sacct", "scancel", "seff"):
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


@pytest.mark.parametrize(
    ("environment", "named", "image"),
    [
        ("image:base", "", "/images/base.sqsh"),
        ("own:image", "/home/her/mine.sqsh", "/home/her/mine.sqsh"),
        ("own:image", "registry.site.example#team/torch:2.9", "registry.site.example#team/torch:2.9"),
    ],
)
def test_a_server_in_an_image_is_a_step_of_pyxis(
    cluster: Cluster, environment: str, named: str, image: str
) -> None:
    form = FORM | {"environment": environment, "image": named}
    assert cluster.ask("submit", choices=form, environment={})["ok"]
    script = (cluster.place / "script").read_text()
    (line,) = [line for line in script.splitlines() if line.startswith("exec ")]
    words = shlex.split(line)
    assert words[1] == "srun"
    assert f"--container-image={image}" in words
    assert "--cpus-per-task=1" in words
    assert "--no-container-remap-root" in words
    place = "/usr/local/lib/jupyter-server"
    assert f"--container-mounts={place}:{place}:ro" in words
    assert words[-4:-2] == ["sh", f"{place}/start_in_image.sh"]
    assert "slurm_portal" not in script


def test_the_check_asks_for_its_own_partition(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETTINGS, "validation_user", cluster.person)
    monkeypatch.setitem(SETTINGS, "partitions", ["gpu"])
    kept = "AllowAccounts=ALL AllowQos=ALL MaxTime=00:10:00 State=UP"
    closed = f"PartitionName=gpu AllowGroups=staff {kept}\n"
    (cluster.place / "hidden").write_text(f"{closed}PartitionName={cluster.person} {kept}\n")
    names = [each["name"] for each in cluster.ask("offers")["partitions"]]
    assert names == [cluster.person]


def test_an_image_without_jupyter_is_named_as_the_reason(cluster: Cluster) -> None:
    (cluster.place / "queue").write_text(
        "41|jupyter|gpu|physics|FAILED|None|N/A|0:00|node1|41|slurm-portal\n"
    )
    (cluster.place / "shown").write_text("JobId=41 JobName=jupyter\n   ExitCode=78:0\n")
    assert "its image has no JupyterLab" in cluster.ask("job", job="41")["job"]["words"]
    (cluster.place / "shown").write_text("JobId=41 JobName=jupyter\n   ExitCode=1:0\n")
    assert "ended with an error" in cluster.ask("job", job="41")["job"]["words"]


def test_a_template_is_submitted_with_what_its_user_may_have(cluster: Cluster) -> None:
    (shown,) = cluster.ask("cluster")["templates"]
    assert (shown["name"], shown["partition"]) == ("gpu", "gpu")
    assert cluster.ask("template", name="gpu", partition="gpu") == {"ok": True, "job": "41"}
    script = (cluster.place / "script").read_text()
    assert script == shown["script"]
    lines = script.splitlines()
    assert lines[0] == "#!/bin/bash -l"
    for words in ("--partition=gpu", "--account=physics", "--gres=gpu:a100:1", "--mem=4G", "--time=60"):
        assert f"#SBATCH {words}" in lines
    assert lines[-1] == "nvidia-smi"


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("gpu", "theirs"),
        ("other", "gpu"),
        ("other", "elsewhere"),
        ("../gpu", "gpu"),
        ("gpu/../gpu", "gpu"),
        ("/etc/passwd", "gpu"),
        ("gpu\n#SBATCH --uid=0", "gpu"),
        ("gpu", "gpu --uid=0"),
        ("", ""),
        (None, None),
        (["gpu"], "gpu"),
    ],
)
def test_no_other_template_is_submitted(cluster: Cluster, name: object, partition: object) -> None:
    answer = cluster.ask("template", name=name, partition=partition)
    assert answer["refused"]
    assert "sbatch" not in cluster.log.read_text()


def test_an_earlier_server_is_cancelled_and_no_other_job(cluster: Cluster) -> None:
    line = "|jupyter|gpu|physics|PENDING|Priority|N/A|1:00:00|n/a|5|"
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


@pytest.mark.parametrize(
    "job", ["1 2", "-u bob", "--user=bob", "1_", "1_x", "1_[2", "1_[2]x", "", None, 7, "1;id", "1\n"]
)
def test_a_job_has_a_number(cluster: Cluster, job: object) -> None:
    for do in ("cancel", "job", "again"):
        assert cluster.ask(do, job=job)["refused"]
    assert cluster.log.read_text() == ""


@pytest.mark.parametrize("job", ["9", "9_2", "9_[3-4,7]"])
def test_tasks_of_an_array_are_cancelled_like_jobs(cluster: Cluster, job: str) -> None:
    assert cluster.ask("cancel", job=job)["ok"]
    assert cluster.log.read_text() == f"scancel|{job}\n"


def test_her_jobs_come_with_what_they_used(cluster: Cluster) -> None:
    used = {"cpu": 50.0, "memory": 25.0, "time": 10.0}
    (cluster.place / "used").write_text(json.dumps([{"job": "7", "elapsed_seconds": 60, "efficiency": used}]))
    (cluster.place / "batch").write_text("7 1 (null)\n8 1 slurm-portal\n9 0\n")
    answer = cluster.ask("jobs")
    assert [(job["number"], job["used"], job["again"]) for job in answer["ended"]] == [("7", used, True)]
    # Without the program, or with nonsense of it, there is the rest.
    (cluster.place / "seff").write_text("#!/bin/sh\necho nonsense\n")
    assert cluster.ask("jobs")["ended"][0]["used"] is None
    (cluster.place / "seff").unlink()
    assert cluster.ask("jobs")["ended"][0]["used"] is None


SHOWN = """\
JobId=7 JobName=a b --uid=0
   UserId={name}({uid}) GroupId=x(1) MCS_label=N/A
   Priority=1 Nice=0 Account=physics QOS=normal
   RunTime=00:00:08 TimeLimit=1-00:05:00 TimeMin=N/A
   Partition=gpu AllocNode:Sid=login1:2082
   NumNodes=2-2 NumCPUs=8 NumTasks=2 CPUs/Task=4 ReqB:S:C:T=0:0:*:*
   MinCPUsNode=4 MinMemoryNode=3G MinTmpDiskNode=0
   Features=(null) DelayBoot=00:00:00
   OverSubscribe=NO Contiguous=0 Licenses=(null) Network=(null)
   Command=/home/her/job.sh
   WorkDir=/home/her/a place
   StdOut=/home/her/slurm-7.out
   TresPerNode={gres}:gpu:a100:1

"""


def shown(cluster: Cluster, **changed: str) -> None:
    text = SHOWN.format(name=cluster.person, uid=os.getuid() or 1, gres="gres")
    for before, after in changed.items():
        assert before in text
        text = text.replace(f"{before}=", f"{before}={after} X=", 1)
    (cluster.place / "shown").write_text(text)


@pytest.mark.parametrize("gres", ["gres:gpu", "gres/gpu"])
def test_a_script_is_submitted_again_with_the_options_that_it_had(cluster: Cluster, gres: str) -> None:
    shown(cluster)
    file = cluster.place / "shown"
    file.write_text(file.read_text().replace("gres:gpu", gres))
    assert cluster.ask("again", job="7") == {"ok": True, "job": "41"}
    call = next(line for line in cluster.log.read_text().splitlines() if line.startswith("sbatch"))
    assert call.split("|")[2:] == [
        *("--get-user-env", "--partition=gpu", "--account=physics", "--qos=normal", "--time=1-00:05:00"),
        *("--nodes=2-2", "--ntasks=2", "--cpus-per-task=4", "--mem=3G", "--gpus-per-node=a100:1"),
        *("--exclusive", "--job-name=a b --uid=0", "--chdir=/home/her/a place"),
    ]
    assert (cluster.place / "script").read_text() == "#!/bin/sh\necho hers\n"


@pytest.mark.parametrize(("value", "is_alone"), [("NO", False), ("NODE", True), ("USER", False)])
def test_a_job_is_alone_again_where_it_was(cluster: Cluster, value: str, *, is_alone: bool) -> None:
    """As Slurm 26.05 says it, which has OverSubscribe=NO for others, too."""
    shown(cluster)
    file = cluster.place / "shown"
    file.write_text(file.read_text().replace("OverSubscribe=NO", f"OverSubscribe=NO Exclusive={value}"))
    assert cluster.ask("again", job="7")["ok"]
    assert ("--exclusive" in cluster.log.read_text()) == is_alone


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("UserId", "bob(4711)", "no job of yours"),
        ("Partition", "hidden", "may not use the partition 'hidden'"),
        ("Account", "others", "may not charge 'others'"),
        ("QOS", "high", "may not use the QOS 'high'"),
        ("Command", "x Comment=slurm-portal", "by the form of the portal"),
    ],
)
def test_a_script_is_not_submitted_again_with_what_she_has_no_more(
    cluster: Cluster, name: str, value: str, why: str
) -> None:
    shown(cluster, **{name: value})
    answer = cluster.ask("again", job="7")
    assert answer["refused"]
    assert why in answer["why"]
    assert "sbatch" not in cluster.log.read_text()


def test_of_a_job_that_slurm_forgot_she_reads_what_to_do(cluster: Cluster) -> None:
    answer = cluster.ask("again", job="7")
    assert answer["refused"]
    assert "submit it with sbatch" in answer["why"]


def test_the_cluster_as_she_may_see_it(cluster: Cluster) -> None:
    (cluster.place / "show-budget").write_text('#!/bin/sh\necho \'{"budgets": [{"project": "laser"}]}\'\n')
    (cluster.place / "show-budget").chmod(0o755)
    answer = cluster.ask("cluster")
    assert [each["name"] for each in answer.pop("templates")] == ["gpu"]
    assert answer == {
        "ok": True,
        "partitions": [
            {
                "name": "gpu",
                "idle": 0,
                "mixed": 1,
                "allocated": 0,
                "out": 1,
                "gpus": 4,
                "gpus_free": 1,
            }
        ],
        "reservations": [
            {
                "name": "service",
                "start": "2026-12-01 08:00:00",
                "end": "2026-12-01 12:00:00",
                "nodes": "node1",
                "what": "maintenance",
            }
        ],
        "budgets": [{"project": "laser"}],
        "quotas": [],
    }


def test_what_became_of_a_job(cluster: Cluster) -> None:
    (cluster.place / "queue").write_text(
        "41|jupyter|gpu|physics|PENDING|(Resources)|2026-11-26T12:00:00|10:00|n/a|41|slurm-portal\n"
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
    for do in ("login", "known", "offers", "submit", "jobs", "cancel", "again", "cluster"):
        assert cluster.ask(do, job="1")["refused"]
    assert cluster.log.read_text() == ""


def test_whom_a_provider_names_has_an_open_account(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: dict[str, str] = {}
    monkeypatch.setattr(cluster.module, "_closed", lambda name: closed.get(name, ""))
    assert cluster.ask("known") == {"ok": True, "admin": False}
    closed[cluster.person] = "The account is closed."
    assert cluster.ask("known") == {"ok": False, "refused": True, "why": "The account is closed."}


def test_groups_of_the_site_decide(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETTINGS, "groups", ["a-group-that-is-not-there"])
    assert "none of the groups" in cluster.ask("jobs")["why"]


def test_what_is_no_request_gets_an_answer(cluster: Cluster) -> None:
    for line in (b"", b"{}\n", b"[]\n", b"nonsense\n", b'{"do": "shell", "user": "x"}\n', b"null\n"):
        sink = io.BytesIO()
        cluster.module.serve(io.BytesIO(line), sink, SETTINGS)
        assert json.loads(sink.getvalue())["refused"]

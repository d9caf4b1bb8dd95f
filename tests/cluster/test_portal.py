"""A portal on a cluster: alice waits for a GPU, computes, stops; nobody comes into her server."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml

from tests.cluster.lab_cluster import Cluster, wait_until
from tests.cluster.portal_lab import HOST as _HOST
from tests.cluster.portal_lab import MANY as _MANY
from tests.cluster.portal_lab import MEMBER, PROJECT, ask, jobs, port_of_server
from tests.cluster.portal_lab import PYTHON as _PYTHON
from tests.cluster.standin_containers import make_image
from tests.cluster.validated import validated

pytestmark = [pytest.mark.one_release, pytest.mark.more]

_MOST_MEMORY = 500 << 20

_PROVIDER = """
import os, uvicorn
from oidc_provider_mock import User, app

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
people = {
    "1": {"preferred_username": "alice", "groups": ["cluster"]},
    "2": {"preferred_username": "bob", "groups": ["others"]},
    "3": {"preferred_username": "nobody-here", "groups": ["cluster"]},
    "4": {"preferred_username": "alice@elsewhere.example", "groups": ["cluster"]},
    "5": {"preferred_username": "Alice", "groups": ["cluster"]},
    "6": {"preferred_username": "root", "groups": ["cluster"]},
    "7": {"groups": ["cluster"]},
    "8": {"preferred_username": ["alice"], "groups": ["cluster"]},
    "9": {"preferred_username": "user1", "groups": "cluster"},
}
users = [User(sub=sub, claims=claims) for sub, claims in people.items()]
uvicorn.run(
    app(user_claims=users), interface="wsgi", host="0.0.0.0", port=9400,
    ssl_keyfile="/opt/provider/key", ssl_certfile="/opt/provider/crt",
)
"""
_MAKE_PROVIDER = """
set -eu
python3 -m venv /opt/provider
/opt/provider/bin/pip install --quiet oidc-provider-mock==0.3.4
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=node1 -addext subjectAltName=DNS:node1 \\
  -keyout /opt/provider/key -out /opt/provider/crt
"""
_RUN_PROVIDER = "systemd-run --unit=provider /opt/provider/bin/python /opt/provider/provider.py"
_LOG_IN = """
import json, sys, requests
url, authority, person = sys.argv[1:]
session = requests.Session()
session.verify = authority
page = session.get(f"{url}/hub/oauth_login", timeout=60)
done = session.post(page.url, data={"sub": person}, timeout=60)
print(json.dumps({"status": done.status_code, "said": done.text, "url": done.url,
                  "jobs": session.get(f"{url}/hub/jobs", timeout=60).url}))
"""
_OIDC = """
slurm_portal_oidc:
  {issuer: "https://node1:9400", client_id: portal, allowed_groups: [cluster], title: The site}
slurm_portal_oidc_secret: a-word-of-the-portal-5518
"""


@pytest.fixture
def browsers(portal: Cluster) -> Cluster:
    """Its nodes have what a browser is made of."""
    return portal


def test_the_cluster_has_a_portal_and_the_same_run_changes_nothing(browsers: Cluster) -> None:
    assert "slurm-portal" in browsers.status()[_HOST]["services"]
    started = browsers.on(_HOST, "systemctl", "show", "--property=InvocationID", "slurm-portal")
    browsers.deploy("--full")
    assert browsers.report()["outcome"] == "converged"
    assert browsers.on(_HOST, "systemctl", "show", "--property=InvocationID", "slurm-portal") == started


def test_alice_waits_for_a_gpu_computes_and_stops(browsers: Cluster) -> None:
    held = browsers.as_user(
        "sbatch --parsable --array=0-1 --gpus=1 --time=30 --wrap 'sleep 900'", user="bob"
    ).strip()
    wait_until("bob has both GPUs", lambda: jobs(browsers, "bob", "%T").split() == ["RUNNING"] * 2, 120)
    form = {"gpus": "1", "gpu_type": "a100", "minutes": "10"}
    page = ask(browsers, "alice", "get", "/hub/spawn/alice")["said"]
    assert "a100" in page
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(ask, browsers, "alice", "start", json.dumps(form))
        wait_until("her job waits", lambda: jobs(browsers, "alice", "%T") == "PENDING", 120)
        said = " ".join(ask(browsers, "alice", "progress"))
        assert "waits: " in said
        browsers.on("ctl1", "scancel", held)
        assert started.result()["server"]["ready"]
    code = "import os, socket; print(os.environ['CUDA_VISIBLE_DEVICES'], socket.gethostname())"
    devices, host = ask(browsers, "alice", "run", code).split()
    assert devices == "0"
    assert host in {"node1", "node2"}
    assert ask(browsers, "alice", "get", "/user/alice/tensorboard/")["status"] == 200
    job = jobs(browsers, "alice")
    # A program of the site's own, in her job.
    own = ask(browsers, "alice", "get", "/user/alice/site/her/page")
    assert (own["status"], own["said"]) == (200, f"alice at /her/page in job {job}")
    assert ask(browsers, "bob", "get", "/user/alice/site/")["status"] in {403, 404}
    sockets = browsers.on(host, "sh", "-c", "ss --listening --unix --no-header | grep -o '/[^ ]*proxy[^ ]*'")
    assert sockets
    for path in sockets.split():
        reached = f"import socket; socket.socket(socket.AF_UNIX).connect('{path}')"
        said = browsers.as_user(f'python3 -c "{reached}"', user="bob", host=host, expect=1)
        # Jobs have a /tmp of their own; where they have not, the directory is hers.
        assert "PermissionError" in said or "FileNotFoundError" in said, said
    # From a node, and by its port, bob does not come in.
    assert ask(browsers, "bob", "get", "/user/alice/api/kernels")["status"] in {403, 404}
    port = port_of_server(browsers, host, "alice")
    attempt = f"import requests; requests.get('https://{host}:{port}/', verify=False, timeout=20)"
    said = browsers.as_user(f'{_PYTHON} -I -W ignore -c "{attempt}"', user="bob", host="node2", expect=1)
    assert "certificate required" in said or "SSLError" in said, said[-500:]
    assert ask(browsers, "alice", "stop")["server"] == {}
    wait_until("her job is gone", lambda: not jobs(browsers, "alice"), 60)
    row = ("sacct", "-nXP", f"--jobs={job}", "--format=User,Account,JobName,AllocTRES")

    def accounted() -> bool:
        return browsers.on("ctl1", *row).startswith("alice|research|jupyter|")

    wait_until("sacct has the job", accounted, 60)
    assert "gres/gpu=1" in browsers.on("ctl1", *row)
    assert browsers.on(host, "pgrep", "--uid=alice", expect=None) == ""


def accounted(cluster: Cluster, job: str) -> tuple[float, float]:
    """The seconds that a job's processes ran on processors, and those that it had; by sacct."""
    fields = "--format=JobID,TotalCPU,CPUTimeRAW"
    said = cluster.on("ctl1", "sacct", "--noheader", "--parsable2", "--jobs", job, fields)
    used, had = next(rest for name, *rest in (line.split("|") for line in said.splitlines()) if name == job)
    return sum(float(part) * 60**place for place, part in enumerate(reversed(used.split(":")))), float(had)


def test_her_page_says_what_jobs_used_and_submits_a_script_again(browsers: Cluster) -> None:
    def page(user: str = "alice") -> str:
        text: str = ask(browsers, user, "get", "/hub/jobs")["said"]
        return text

    busy = "srun timeout 40 sh -c 'while :; do :; done'"
    script = f"#!/bin/sh\n#SBATCH --time=5\n{busy}\nhostname >again.$SLURM_JOB_ID\n"
    browsers.as_user(f"cat >busy.sh <<'end'\n{script}end")
    job = browsers.as_user("sbatch --parsable --gpus=1 --mem=200M --job-name='a <b>' busy.sh").strip()
    wait_until("her job runs", lambda: jobs(browsers, "alice", "%T") == "RUNNING", 120)
    wait_until("its node says what it uses", lambda: "Until now it used" in page(), 60)
    wait_until("her job has ended", lambda: not jobs(browsers, "alice"), 180)
    row = (
        rf'<th scope="row">{job}</th><td>a &lt;b&gt;</td>.*?<td>(\d+) %</td><td>(\d+) %</td><td>(\d+) %</td>'
    )
    wait_until("accounting has it", lambda: bool(re.search(row, page(), re.DOTALL)), 120)
    found = re.search(row, page(), re.DOTALL)
    assert found
    processors, _, time = map(int, found.groups())
    # As much as it had of a machine that others use, too; and 40 seconds of 5 minutes.
    ran, had = accounted(browsers, job)
    assert ran > 0
    assert processors == pytest.approx(100 * ran / had, abs=2)
    assert 10 <= time <= 50
    assert f"Submit job {job} again" in page()
    # Of somebody else's job he gets nothing.
    refused = ask(browsers, "bob", "again", job)
    assert refused["status"] == 502
    assert jobs(browsers, "bob") == ""
    assert f"Submit job {job} again" not in page("bob")
    answer = ask(browsers, "alice", "again", job)
    assert f"has the script of job {job}" in answer["said"]
    new = jobs(browsers, "alice")
    said = browsers.on("ctl1", "scontrol", "show", "job", new)
    for words in ("JobName=a <b>\n", "TimeLimit=00:05:00", "MinMemoryNode=200M", "TresPerJob=gres/gpu:1"):
        assert words in said
    wait_until("it has ended, too", lambda: not jobs(browsers, "alice"), 180)
    assert browsers.as_user(f"cat again.{new}").strip() in {"node1", "node2"}


def test_her_page_shows_the_cluster_and_what_is_planned(browsers: Cluster) -> None:
    words = "starttime=now+2days duration=60 user=root flags=maint nodes=node1 reservationname=service"
    browsers.on("ctl1", "scontrol", "create", "reservation", *words.split())
    page = ask(browsers, "alice", "get", "/hub/jobs")["said"]
    assert "service (maintenance): " in page
    assert "Service on &lt;Monday&gt;" in page
    assert re.search(
        r'<th scope="row">batch</th><td>2</td><td>0</td><td>0</td><td>0</td>\s*<td>2 of 2</td>', page
    )
    assert "deploy-validate" not in page
    browsers.on("ctl1", "scontrol", "delete", "reservationname=service")
    array = browsers.as_user("sbatch --parsable --hold --array=1-3%1 --wrap 'sleep 60'").strip()
    assert f"Cancel job {array}_[1-3%1]" in ask(browsers, "alice", "get", "/hub/jobs")["said"]
    assert ask(browsers, "alice", "cancel", f"{array}_[1-3]")["status"] == 200
    assert jobs(browsers, "alice") == ""


def test_a_page_shows_the_budget_of_a_project_and_quotas(browsers: Cluster) -> None:
    """A lab's file systems have no quotas, so a program says some in the words of show-quotas."""
    said = {"file_system": "/home", "owner": f"user {MEMBER}", "used": "9.0 GiB", "limit": "10.0 GiB"}
    said |= {
        "used_share": "90 %",
        "files": "5",
        "files_limit": "none",
        "files_share": "",
        "warning": "<soon>",
    }
    program = "/usr/local/bin/show-quotas"
    script = f"#!/bin/sh\ncat <<'said'\n{json.dumps([said])}\nsaid\n"
    browsers.on(_HOST, "sh", "-c", f"cat >{program} <<'end'\n{script}end")
    browsers.on(_HOST, "chmod", "755", program)
    try:
        page = ask(browsers, MEMBER, "get", "/hub/jobs")["said"]
    finally:
        browsers.on(_HOST, "rm", program)
    assert re.search(rf'<th scope="row">{PROJECT}</th><td>cpu</td><td>50(\.0)?</td>', page), page
    assert "<td>9.0 GiB 90 %</td><td>10.0 GiB</td>" in page
    assert "&lt;soon&gt;" in page
    # Nobody else is of that project.
    assert PROJECT not in ask(browsers, "bob", "get", "/hub/jobs")["said"]


def test_her_page_says_what_a_job_uses_of_its_gpus(browsers: Cluster) -> None:
    """Prometheus asks a node, where the numbers of the exporter for DCGM stand that no lab has."""
    job = browsers.as_user(
        "sbatch --parsable --gpus=1 --time=10 --output=/dev/null --wrap 'sleep 600'"
    ).strip()
    wait_until("her job runs", lambda: jobs(browsers, "alice", "%T") == "RUNNING", 120)
    metric = "DCGM_FI_DEV_GPU_UTIL"
    rows = [f'{metric}{{gpu="0",hpc_job="{job}"}} 83', f'{metric}{{gpu="1",hpc_job="{job}0"}} 7']
    text = "\n".join([f"# TYPE {metric} gauge", *rows, ""])
    place = "/var/lib/prometheus/node-exporter/standin.prom"
    browsers.on("node1", "sh", "-c", f"cat >{place} <<'end'\n{text}end")

    def page(user: str) -> str:
        shown: str = ask(browsers, user, "get", "/hub/jobs")["said"]
        return shown

    try:
        words = "In the last five minutes it used 83 % of its GPUs."
        wait_until("the page has it", lambda: words in page("alice"), 120)
        assert words not in page("bob")
        # While Prometheus is away the page is as it was.
        browsers.on("ctl1", "systemctl", "stop", "prometheus")
        assert f"Cancel job {job}" in page("alice")
        assert words not in page("alice")
    finally:
        browsers.on("ctl1", "systemctl", "start", "prometheus")
        browsers.on("node1", "rm", place)
        browsers.on("ctl1", "scancel", job)


def test_a_template_of_the_page_becomes_a_job_of_hers(browsers: Cluster) -> None:
    page = ask(browsers, "alice", "get", "/hub/jobs")["said"]
    assert "#SBATCH --partition=batch\n#SBATCH --account=research\n#SBATCH --gres=gpu:a100:1\n" in page
    answer = ask(browsers, "alice", "template", "gpu", "batch")
    new = re.search(r"Job (\d+) is submitted", answer["said"])
    assert new, answer
    row = ("sacct", "-nXP", f"--jobs={new[1]}", "--format=User,Account,JobName,AllocTRES")
    wait_until("sacct has it", lambda: "gres/gpu=1" in browsers.on("ctl1", *row), 120)
    assert browsers.on("ctl1", *row).startswith("alice|research|gpu|")
    wait_until("it has ended", lambda: not jobs(browsers, "alice"), 120)
    assert "NVIDIA-SMI" in browsers.as_user(f"cat gpu-{new[1]}.out")


def test_a_server_runs_in_an_image_and_one_without_jupyter_is_named(browsers: Cluster) -> None:
    make_image(browsers, "node1", "/home/base.sqsh", "NAME=ImageOfTheTest")
    form = json.dumps({"environment": "image:base"})
    # The plugin that stands in leaves the node's programs in place, where none of these is on the PATH.
    assert ask(browsers, "alice", "post", form)["server"].get("ready") is not True
    needs = "its image has no JupyterLab; it needs python3, jupyterhub-singleuser and jupyter-lab"
    wait_until("she reads why", lambda: needs in ask(browsers, "alice", "get", "/hub/home")["said"], 120)
    assert "This image has no jupyterhub-singleuser" in browsers.as_user("cat .slurm-portal.log")
    for host in ("node1", "node2"):
        for program in ("jupyterhub-singleuser", "jupyter-lab"):
            browsers.on(host, "ln", "-s", f"/opt/jupyter-server/environment/bin/{program}", "/usr/local/bin")
    assert ask(browsers, "alice", "start", form)["server"]["ready"]
    code = "import os; print(open('/etc/os-release').read(), os.environ['SLURM_STEP_ID'], os.getcwd())"
    assert ask(browsers, "alice", "run", code).split() == ["NAME=ImageOfTheTest", "0", "/home/alice"]
    assert "start_in_image.sh" in browsers.on(
        "ctl1", "scontrol", "write", "batch_script", jobs(browsers, "alice"), "-"
    )
    assert ask(browsers, "alice", "stop")["server"] == {}
    wait_until("her job is gone", lambda: not jobs(browsers, "alice"), 60)


def test_what_a_user_may_not_have_starts_nothing(browsers: Cluster) -> None:
    for form in ({"partition": "deploy-validate"}, {"account": "deploy-validate"}, {"gpus": "2"}):
        assert ask(browsers, "bob", "post", json.dumps(form))["server"] == {}
    assert jobs(browsers, "bob") == ""


def test_ten_users_at_once(browsers: Cluster) -> None:
    with ThreadPoolExecutor(len(_MANY)) as pool:
        started = [pool.submit(ask, browsers, name, "start", '{"gpus": "0"}') for name in _MANY]
        came = [one.result()["server"]["ready"] for one in started]
        at_their_work = memory_of_hub(browsers)
        stopped = [pool.submit(ask, browsers, name, "stop") for name in _MANY]
        went = [one.result()["server"] for one in stopped]
    assert came == [True] * len(_MANY)
    assert went == [{}] * len(_MANY)
    for used in (at_their_work, memory_of_hub(browsers)):
        assert 0 < used < _MOST_MEMORY, used


def memory_of_hub(cluster: Cluster) -> int:
    """In bytes; with the proxy, and what looks for idle servers."""
    said = cluster.on(_HOST, "ps", "--no-headers", "--user=slurm-portal", "--format=rss,args")
    assert "/bin/jupyterhub " in said, said
    return sum(int(line.split()[0]) for line in said.splitlines()) << 10


def test_prometheus_asks_for_the_page_and_counts_servers_that_fail(browsers: Cluster) -> None:
    def number(query: str) -> str:
        asked = ("promtool", "query", "instant", "--format=json", "http://127.0.0.1:9090", query)
        found = json.loads(browsers.on("ctl1", *asked))
        return str(found[0]["value"][1]) if found else ""

    page = 'probe_success{service="portal"}'
    wait_until("the page is asked for", lambda: number(page) == "1", 180)
    browsers.on(_HOST, "systemctl", "stop", "slurm-portal-proxy")
    wait_until("its absence is seen", lambda: number(page) == "0", 180)
    browsers.on(_HOST, "systemctl", "start", "slurm-portal-proxy")
    wait_until("it is back", lambda: number(page) == "1", 180)
    errors = 'sum(jupyterhub_server_spawn_duration_seconds_count{status="error"})'
    before = float(number(errors))
    program = "/usr/local/lib/jupyter-server/start_server.py"
    for host in ("node1", "node2"):
        browsers.on(host, "mv", program, f"{program}.away")
    try:
        assert ask(browsers, "bob", "post", "{}")["server"].get("ready") is not True
        wait_until("it has failed", lambda: float(number(errors)) == before + 1, 180)
    finally:
        for host in ("node1", "node2"):
            browsers.on(host, "mv", f"{program}.away", program)


def test_a_hub_that_lost_its_database_leaves_no_server_behind(browsers: Cluster) -> None:
    assert ask(browsers, "alice", "start")["server"]["ready"]
    lost = jobs(browsers, "alice")
    browsers.on(_HOST, "systemctl", "stop", "slurm-portal")
    browsers.on(_HOST, "sh", "-c", "rm /var/lib/slurm-portal/portal.sqlite*")
    browsers.on(_HOST, "systemctl", "start", "slurm-portal")
    # Nobody can reach it; it ends by itself, and its GPUs are free.
    wait_until("her server has ended", lambda: not jobs(browsers, "alice"), 300)
    said = browsers.as_user("cat .slurm-portal.log")
    assert "The portal knows nothing of this server any more" in said, said[-2000:]
    assert ask(browsers, "alice", "start")["server"]["ready"]
    assert jobs(browsers, "alice") != lost
    assert ask(browsers, "alice", "stop")["server"] == {}


def test_the_validation_asks_it_for_a_server(browsers: Cluster) -> None:
    (verdict,) = validated(browsers, "--only", "portal", expect=0)["portal"]["verdicts"]
    assert verdict["outcome"] == "passed", verdict
    assert jobs(browsers, "deploy-validate") == ""


def test_a_hub_that_moves_says_so_of_servers_that_cannot_find_it_any_more(browsers: Cluster) -> None:
    assert ask(browsers, "alice", "start")["server"]["ready"]
    job = jobs(browsers, "alice")
    settings = browsers.directory / "group_vars/slurm-portal.yml"
    before = settings.read_text()
    settings.write_text(f"{before}slurm_portal_hub_port: 445\n")
    try:
        browsers.deploy()
        browsers.deploy("--full")
        assert browsers.report()["outcome"] == "converged"
        # Her job computes on, until she or what looks for idle ones stops it.
        assert jobs(browsers, "alice", "%i %T") == f"{job} RUNNING"
        words = "it lets nobody in any more"
        wait_until("she reads it", lambda: words in ask(browsers, "alice", "get", "/hub/home")["said"], 120)
        assert ask(browsers, "alice", "stop")["server"] == {}
        assert ask(browsers, "alice", "start")["server"]["ready"]
        assert ask(browsers, "alice", "run", "print(1 + 1)") == "2\n"
        assert words not in ask(browsers, "alice", "get", "/hub/home")["said"]
        assert ask(browsers, "alice", "stop")["server"] == {}
    finally:
        settings.write_text(before)
        browsers.deploy()


@pytest.fixture
def provider(browsers: Cluster) -> Cluster:
    """A site's OpenID provider on a node, which the portal's host and browsers trust."""
    script = f"{_MAKE_PROVIDER}cat >/opt/provider/provider.py <<'end'\n{_PROVIDER}end\n{_RUN_PROVIDER}"
    browsers.on("node1", "bash", "-c", script, seconds=300)
    certificate = browsers.on("node1", "cat", "/opt/provider/crt")
    trusted = "/usr/local/share/ca-certificates/provider.crt"
    write = f"cat >{trusted} <<'end'\n{certificate}end\nupdate-ca-certificates"
    browsers.on(_HOST, "sh", "-c", write)
    browsers.on("node2", "sh", "-c", f"cat /root/authority.crt - >/root/both.crt <<'end'\n{certificate}end")
    settings = browsers.directory / "group_vars/slurm-portal.yml"
    settings.chmod(0o600)
    settings.write_text(settings.read_text() + _OIDC)
    browsers.deploy()
    return browsers


def test_people_come_by_the_sites_provider_and_are_accounts_of_the_cluster(provider: Cluster) -> None:
    def logs_in(person: str) -> Any:  # noqa: ANN401 - JSON
        words = (_PYTHON, "-c", _LOG_IN, f"https://{_HOST}", "/root/both.crt", person)
        return json.loads(provider.on("node2", *words, seconds=300))

    page = ask(provider, "alice", "login")
    # Her password is asked for no more.
    assert page["login"] != 302
    came = logs_in("1")
    assert came["status"] == 200, came
    assert came["jobs"] == f"https://{_HOST}/hub/jobs"
    refused = {
        "2": "none of the groups",
        "3": "no such account",
        "4": "no name of an account",
        "5": "no name of an account",
        "6": "account is the system",
        "7": "no name of an account",
        "8": "no name of an account",
        "9": "none of the groups",
    }
    for person, why in refused.items():
        answer = logs_in(person)
        assert answer["status"] == 403, answer
        assert why in answer["said"], answer
        assert answer["jobs"] != f"https://{_HOST}/hub/jobs", answer
    # While the provider is away a hub that is started again knows where it is.
    provider.on("node1", "systemctl", "stop", "provider")
    provider.on(_HOST, "systemctl", "restart", "slurm-portal")
    page = "import urllib.request, ssl; print(urllib.request.urlopen('https://login1/hub/login', "
    page += "context=ssl.create_default_context(cafile='/root/both.crt')).read().decode())"

    def shown() -> str:
        return provider.on("node2", "python3", "-c", page, expect=None)

    wait_until("the hub answers", lambda: "The site" in shown(), 180)
    secret = yaml.safe_load(_OIDC)["slurm_portal_oidc_secret"]
    assert secret not in provider.on(_HOST, "journalctl", "--no-pager", "--unit=slurm-portal")
    assert secret not in json.dumps(provider.report())

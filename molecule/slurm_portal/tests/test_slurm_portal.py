# ruff: noqa: S106 - passwords of this scenario
"""A portal on a machine that is controller and node: people have servers, and nobody has another's."""

import json
import re
import time
from pathlib import Path

import pytest

from molecule.conftest import Converge, On

_CLIENT = (Path(__file__).parents[2] / "shared/portal_client.py").read_text(encoding="utf-8")
_PYTHON = "/opt/jupyter-server/environment/bin/python"
_AUTHORITY = "/etc/slurm-portal/authority.crt"
_SECONDS = 180


def word_of(name: str) -> str:
    return f"a word of {name} 7391"


class Portal:
    """A browser on the machine."""

    def __init__(self, on: On, machine: str) -> None:
        self.on, self.machine = on, machine
        self.url = f"https://{on(machine, 'hostname').stdout.strip()}"

    def client(self, name: str, *words: str, password: str = "") -> object:
        said = self.on(
            self.machine,
            *(_PYTHON, "-c", _CLIENT, self.url, _AUTHORITY, name, password or word_of(name), *words),
        )
        return json.loads(said.stdout.splitlines()[-1])

    def ask(self, name: str, method: str, path: str, **more: object) -> int:
        answer = self.client(name, "ask", method, path, json.dumps(more))
        assert isinstance(answer, dict)
        return int(answer["status"])

    def status(self, *options: str) -> str:
        """Of an answer without a login; 000 where no connection came about."""
        command = ("curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", *options)
        return self.on(self.machine, *command, check=False).stdout


@pytest.fixture
def portal(on: On, machine: str) -> Portal:
    found = Portal(on, machine)
    deadline = time.monotonic() + _SECONDS
    while found.status("--cacert", _AUTHORITY, f"{found.url}/hub/login") != "200":
        assert time.monotonic() < deadline, on(machine, "journalctl", "--unit=slurm-portal").stdout[-2000:]
        time.sleep(1)
    return found


@pytest.fixture
def server(portal: Portal) -> Portal:
    """Alice's server runs."""
    answer = portal.client("alice", "server")
    if not (isinstance(answer, dict) and answer.get("ready")):
        portal.client("alice", "start")
    return portal


def test_the_login_page_comes_with_tls_and_the_right_certificate(portal: Portal) -> None:
    assert portal.status("--cacert", _AUTHORITY, f"{portal.url}/hub/login") == "200"
    assert portal.status("--cacert", "/etc/ssl/certs/of-the-tests.crt", f"{portal.url}/hub/login") == "000"
    assert portal.status(f"http://{portal.url[8:]}:443/hub/login") == "000"


def test_a_wrong_password_is_refused_and_the_right_one_is_not(portal: Portal) -> None:
    assert portal.client("alice", "login", password="wrong") == {"login": 403}
    assert portal.client("root", "login", password="wrong") == {"login": 403}
    assert portal.client("nobody", "login", password="wrong") == {"login": 403}
    assert portal.client("alice", "login") == {"login": 302}


def test_the_hub_is_not_root_and_only_it_reaches_the_helper(portal: Portal) -> None:
    on, machine = portal.on, portal.machine
    owners = on(machine, "ps", "-o", "user=", "-C", "jupyterhub").stdout.split()
    assert set(owners) == {"slurm-portal"}
    assert on(machine, "stat", "--format=%a %U %G", "/run/slurm-portal-helper.socket").stdout == (
        "660 root slurm-portal\n"
    )
    assert on(machine, "stat", "--format=%a %U", "/etc/slurm-portal/token").stdout == "600 root\n"
    command = "import socket; socket.socket(socket.AF_UNIX).connect('/run/slurm-portal-helper.socket')"
    refused = on(machine, "setpriv", "--reuid=alice", "--clear-groups", "python3", "-c", command, check=False)
    assert "Permission denied" in refused.stderr
    for name in ("settings.json", "cookie_secret", "token", "tls.key"):
        path = f"/etc/slurm-portal/{name}"
        read = on(machine, "setpriv", "--reuid=alice", "--clear-groups", "cat", path, check=False)
        assert "Permission denied" in read.stderr


def test_everybody_may_read_the_authority_and_nobody_else_its_key(portal: Portal) -> None:
    on, machine = portal.on, portal.machine
    shown = "/usr/local/lib/slurm-portal/authority.crt"
    as_alice = ("setpriv", "--reuid=alice", "--clear-groups", "cat")
    assert on(machine, *as_alice, shown).stdout == on(machine, "cat", _AUTHORITY).stdout
    refused = on(machine, *as_alice, "/etc/slurm-portal/authority.key", check=False)
    assert "Permission denied" in refused.stderr


def test_a_template_is_submitted_and_no_other(portal: Portal) -> None:
    answer = portal.client("alice", "template", "gpu", "none")
    assert isinstance(answer, dict)
    assert answer["status"] == 502
    page = portal.client("alice", "get", "/hub/jobs")
    assert isinstance(page, dict)
    (partition,) = set(re.findall(r"#SBATCH --partition=(\S+)", page["said"]))
    answer = portal.client("alice", "template", "gpu", partition)
    assert isinstance(answer, dict)
    submitted = re.search(r"Job (\d+) is submitted", answer["said"])
    assert submitted
    waiting = ("squeue", "--noheader", "--states=PD,R,CF,CG", f"--jobs={submitted[1]}")
    deadline = time.monotonic() + _SECONDS
    while portal.on(portal.machine, *waiting, check=False).stdout:
        assert time.monotonic() < deadline
        time.sleep(1)


def test_a_server_is_a_job_of_its_user_and_computes(server: Portal) -> None:
    code = "import os; print(1 + 1, os.environ['USER'], os.environ['SLURM_JOB_ID'])"
    said = server.client("alice", "run", code)
    job = server.on(server.machine, "squeue", "--noheader", "--user=alice", "--format=%i").stdout.strip()
    assert said == f"2 alice {job}\n"
    page = server.client("alice", "get", "/user/alice/tensorboard/")
    assert isinstance(page, dict)
    assert page["status"] == 200
    assert "TensorBoard" in page["said"]
    jobs = server.client("alice", "get", "/hub/jobs")
    assert isinstance(jobs, dict)
    assert f"Cancel job {job}" in jobs["said"]
    theirs = server.client("bob", "get", "/hub/jobs")
    assert isinstance(theirs, dict)
    assert f"Cancel job {job}" not in theirs["said"]


def test_nobody_breaks_in(server: Portal) -> None:
    on, machine = server.on, server.machine
    line = on(machine, "ss", "--listening", "--tcp", "--numeric", "--processes", "--no-header").stdout
    port = next(
        words.split()[3].rpartition(":")[2] for words in line.splitlines() if "jupyterhub-sin" in words
    )
    node = server.url
    # Another's address, his page of progress, his tokens; paths that lead there another way.
    asked: list[tuple[str, str, dict[str, object]]] = [
        ("GET", "/user/alice/lab", {}),
        ("GET", "/user/alice/api/kernels", {}),
        ("GET", "/user/alice/files/", {}),
        ("GET", "/user/alice/terminals/websocket/1", {}),
        ("GET", "/user/bob/../alice/api/kernels", {}),
        ("GET", "/user/alice%2Fapi/kernels", {}),
        ("GET", "/user//alice/api/kernels", {}),
        ("GET", "/hub/api/users/alice", {}),
        ("GET", "/hub/api/users/alice/tokens", {}),
        ("GET", "/hub/api/users/alice/server/progress", {}),
        ("GET", "/hub/api/users", {}),
        ("GET", "/hub/admin", {}),
        ("DELETE", "/hub/api/users/alice/server", {}),
        ("POST", "/hub/api/users/alice/server", {"json": {}}),
        ("POST", "/hub/api/users/alice/tokens", {"json": {}}),
        ("POST", "/hub/api/portal/port", {"json": {"port": 2222}}),
        # Headers that say who comes.
        ("GET", "/user/alice/api/kernels", {"headers": {"X-Forwarded-User": "alice"}}),
        ("GET", "/user/alice/api/kernels", {"headers": {"Remote-User": "alice"}}),
        ("GET", "/user/alice/api/kernels", {"headers": {"X-JupyterHub-User": "alice"}}),
        ("GET", "/user/alice/api/kernels", {"headers": {"Authorization": "token alice"}}),
    ]
    answers = server.client("bob", "many", json.dumps(asked))
    assert isinstance(answers, list)
    came_in = [
        words for words, status in zip(asked, answers, strict=True) if status not in {403, 404, 405, 409}
    ]
    assert came_in == []
    # Without the token against forged requests, and from another page.
    assert server.ask("alice", "DELETE", "/hub/api/users/alice/server", headers={"X-XSRFToken": "x"}) == 403
    # The server's and the hub's own ports want a certificate of the hub's authority.
    for place in (
        f"{node}:{port}/user/alice/api",
        f"{node}:444/hub/api",
        "https://127.0.0.1:8001/api/routes",
    ):
        assert server.status("--insecure", place) == "000", place
        assert server.status(place.replace("https", "http", 1)) == "000", place
    # The token of her job, and its key, are hers alone.
    process = on(machine, "pgrep", "--newest", "--full", "jupyterhub-singleuser").stdout.strip()
    for path in (f"/proc/{process}/environ", "/home/alice/.slurm-portal.log"):
        read = on(machine, "setpriv", "--reuid=bob", "--clear-groups", "cat", path, check=False)
        assert "Permission denied" in read.stderr, path
    # Her job is not his to end.
    job = on(machine, "squeue", "--noheader", "--user=alice", "--format=%i").stdout.strip()
    xsrf = server.client("bob", "cancel", job)
    assert isinstance(xsrf, dict)
    assert xsrf["status"] == 502
    assert on(machine, "squeue", "--noheader", "--user=alice", "--format=%T").stdout.strip() == "RUNNING"


def test_admins_see_servers_and_open_none(server: Portal) -> None:
    assert server.ask("mallory", "GET", "/hub/admin") == 200
    assert server.ask("mallory", "GET", "/hub/api/users") == 200
    assert server.ask("mallory", "GET", "/user/alice/api/kernels") in {403, 404}
    assert server.ask("mallory", "POST", "/hub/api/users/alice/tokens", json={}) in {403, 404}


@pytest.mark.parametrize(
    "form",
    [
        {"partition": "none"},
        {"partition": "batch --uid=0"},
        {"account": "others"},
        {"cpus": "2"},
        {"gpus": "1"},
        {"minutes": "31"},
        {"memory_gb": "2"},
        {"environment": "other"},
        {"wrap": "id"},
        {"qos": "normal\n#SBATCH --uid=0"},
    ],
)
def test_a_form_with_anything_else_starts_nothing(portal: Portal, form: dict[str, str]) -> None:
    answer = portal.client("bob", "post", json.dumps(form))
    assert isinstance(answer, dict)
    assert answer["server"] == {}
    assert portal.on(portal.machine, "squeue", "--noheader", "--user=bob").stdout == ""
    # The hub's API takes options that no form has seen.
    portal.ask("bob", "POST", "/hub/api/users/bob/server", json=form)
    assert portal.on(portal.machine, "squeue", "--noheader", "--user=bob").stdout == ""


def test_somebody_without_an_account_reads_whom_to_ask(portal: Portal) -> None:
    page = portal.client("mallory", "get", "/hub/spawn/mallory")
    assert isinstance(page, dict)
    assert "your account in Slurm is missing" in page["said"]


def test_a_hub_that_is_started_again_loses_no_session(server: Portal) -> None:
    on, machine = server.on, server.machine
    job = on(machine, "squeue", "--noheader", "--user=alice", "--format=%i %T").stdout
    on(machine, "systemctl", "restart", "slurm-portal")
    # The proxy goes on meanwhile.
    assert server.status("--cacert", _AUTHORITY, f"{server.url}/user/alice/api") == "200"
    deadline = time.monotonic() + _SECONDS
    while server.status("--cacert", _AUTHORITY, f"{server.url}/hub/login") != "200":
        assert time.monotonic() < deadline
        time.sleep(1)
    found = server.client("alice", "server")
    assert isinstance(found, dict)
    assert found["ready"]
    assert on(machine, "squeue", "--noheader", "--user=alice", "--format=%i %T").stdout == job


def test_stop_ends_the_job_and_leaves_nothing(server: Portal) -> None:
    server.client("alice", "stop")
    assert server.on(server.machine, "squeue", "--noheader", "--user=alice").stdout == ""
    kept = "ls -d /tmp/portal-* /tmp/jupyter-server-proxy-* 2>/dev/null || true"
    assert server.on(server.machine, "sh", "-c", kept).stdout == ""
    assert server.on(server.machine, "pgrep", "--uid=alice", "--full", "python", check=False).stdout == ""


def test_the_hub_has_numbers_for_prometheus(portal: Portal) -> None:
    said = portal.on(portal.machine, "curl", "--silent", "http://127.0.0.1:9108/metrics").stdout
    assert "jupyterhub_running_servers" in said
    assert "alice" not in said


def test_the_check_starts_a_server_computes_and_ends_it(portal: Portal) -> None:
    python, check = "/opt/slurm-portal/environment/bin/python", "/usr/local/lib/slurm-portal/portal_check.py"
    said = json.loads(portal.on(portal.machine, python, "-sE", check, "bob", "180").stdout)
    assert said["why"] == ""
    assert portal.on(portal.machine, "squeue", "--noheader", "--user=bob").stdout == ""
    # Its token is for this user alone.
    theirs = json.loads(portal.on(portal.machine, python, "-sE", check, "alice", "20").stdout)
    assert "403" in theirs["why"] or "404" in theirs["why"]


def test_many_wrong_passwords_close_the_way_for_a_while(portal: Portal, converge: Converge) -> None:
    answers = [portal.client("mallory", "login", password=f"wrong {number}") for number in range(7)]
    assert answers[0] == {"login": 403}
    assert answers[-1] == {"login": 429}
    assert portal.client("mallory", "login") == {"login": 429}
    # Members of other groups do not come in, whatever their password.
    done = converge(only=portal.machine, groups_of_portal=["operators"])
    assert done.returncode == 0, done.stdout
    deadline = time.monotonic() + _SECONDS
    while portal.status("--cacert", _AUTHORITY, f"{portal.url}/hub/login") != "200":
        assert time.monotonic() < deadline
        time.sleep(1)
    assert portal.client("alice", "login") == {"login": 403}

"""The cluster of the portal's tests: two nodes with a GPU each, a portal, and people with passwords."""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.lab.state import container_name
from tests.cluster import standin_containers
from tests.cluster.lab_cluster import Cluster, booted, run, wait_until

HOST = "login1"
AUTHORITY = "/etc/slurm-portal/authority.crt"
PYTHON = "/opt/jupyter-server/environment/bin/python"
MANY = [f"user{number}" for number in range(10)]
MEMBER = "user9"
"""One of them, who has a project with a budget besides."""
PROJECT = "laser"
STRANGER = "carol"
"""Has an account on the hosts, and none in Slurm."""
_CLIENT = (Path(__file__).parents[2] / "molecule/shared/portal_client.py").read_text(encoding="utf-8")
_SITE_APP = """\
import http.server, os, socketserver, sys

class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"{os.environ['USER']} at {self.path} in job {os.environ['SLURM_JOB_ID']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "socket"

os.umask(0o077)
socketserver.ThreadingUnixStreamServer(sys.argv[1], Page).serve_forever()
"""
_APPS = """
jupyter_server_apps:
  - name: tensorboard
    title: TensorBoard
    command:
      - /opt/jupyter-server/environment/bin/python
      - -I
      - /usr/local/lib/jupyter-server/tensorboard_on_socket.py
      - "{unix_socket}"
      - .
  - name: site
    title: Our own
    command: [python3, /opt/site/page.py, "{unix_socket}"]
"""
_TRUST = "/etc/ssl/certs/ca-certificates.crt"
# Ten servers on the few CPUs of this machine.
_MASTER = """
slurmctld_partitions:
  - {name: batch, default: true, parameters: {OverSubscribe: "FORCE:6"}}
  - {name: theirs, parameters: {AllowAccounts: others}}
slurmctld_private_data: [jobs, usage, users]
"""
_PORTAL = """
slurm_portal_most: {gpus: 1, cpus: 1, memory_gb: 1, minutes: 120}
slurm_portal_message: Service on <Monday>
slurm_portal_images:
  - {name: base, title: An image, image: /home/base.sqsh}
slurm_portal_own_images: true
slurm_portal_prometheus_url: http://ctl1:9090
"""


@contextmanager
def deployed(places: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The login node has the portal, and its users have passwords."""
    with booted("portal", places, "--nodes", "2", "--gpus", "1", "--monitoring") as made:
        prepare(made)
        yield made


def prepare(made: Cluster) -> None:
    """Deploys a fresh lab."""
    trust = made.directory / "trusted.crt"
    shutil.copyfile(_TRUST, trust)
    for host in ("ctl1", HOST, "node1", "node2"):
        container = container_name(made.name, host)
        run("podman", "cp", str(trust), f"{container}:/etc/ssl/certs/of-the-tests.crt")
        made.on(
            host, "sh", "-c", "printf '[global]\ncert = /etc/ssl/certs/of-the-tests.crt\n' >/etc/pip.conf"
        )
    inventory = made.inventory.read_text()
    child = "[slurm-cluster:children]\n"
    assert child in inventory
    made.inventory.write_text(inventory.replace(child, f"[slurm-portal]\n{HOST}\n\n{child}slurm-portal\n"))
    variables = made.directory / "group_vars/all.yml"
    site = yaml.safe_load(variables.read_text())
    site["users_accounts"] += [{"name": name, "uid": 3000 + n} for n, name in enumerate([*MANY, STRANGER])]
    site["slurm_accounts_users"] += [
        {"name": name, "accounts": ["research", *([PROJECT] if name == MEMBER else [])]} for name in MANY
    ]
    site["slurm_accounts_accounts"] += [
        {"name": "others", "description": "Not hers"},
        {"name": PROJECT, "description": "Has hours", "budget": {"hours": "cpu=50", "period": "month"}},
    ]
    variables.write_text(yaml.safe_dump(site))
    (made.directory / "group_vars/slurm-portal.yml").write_text(_PORTAL)
    nodes = made.directory / "group_vars/slurm-node.yml"
    text = nodes.read_text()
    assert "memory_mb: 1024" in text
    nodes.write_text(text.replace("memory_mb: 1024", "memory_mb: 6144") + _APPS)
    for host in ("node1", "node2"):
        made.on(host, "sh", "-c", f"mkdir /opt/site; cat >/opt/site/page.py <<'end'\n{_SITE_APP}end")
    with (made.directory / "group_vars/slurm-master.yml").open("a") as file:
        file.write(_MASTER)
    standin_containers.declare(made)
    made.deploy()
    for name in ("alice", "bob", STRANGER, *MANY):
        made.on(HOST, "sh", "-c", f"echo '{name}:{password_of(name)}' | chpasswd")
    told = made.on(HOST, "cat", AUTHORITY)
    for host in ("node1", "node2"):
        made.on(host, "sh", "-c", f"cat >/root/authority.crt <<'end'\n{told}end")


def password_of(name: str) -> str:
    return f"a word of {name} 7391"


def address(cluster: Cluster, host: str) -> str:
    """The address that the inventory has."""
    found = re.search(rf"^{host} .*ansible_host=(\S+)", cluster.inventory.read_text(), re.MULTILINE)
    assert found
    return found[1]


def ask(cluster: Cluster, name: str, *words: str) -> Any:  # noqa: ANN401 - JSON
    """What a browser on a node of the cluster meets."""
    url, authority = f"https://{HOST}", "/root/authority.crt"
    command = (PYTHON, "-c", _CLIENT, url, authority, name, password_of(name))
    return json.loads(cluster.on("node2", *command, *words, seconds=600).splitlines()[-1])


def jobs(cluster: Cluster, user: str, what: str = "%i") -> str:
    return cluster.on("ctl1", "squeue", "--all", "--noheader", f"--user={user}", f"--format={what}").strip()


def end_servers(cluster: Cluster) -> None:
    """Those of alice and bob, which a test that failed may have left."""
    for name in ("alice", "bob"):
        end_server(cluster, name)


def end_server(cluster: Cluster, name: str) -> None:
    """With its job; until the hub knows it."""
    cluster.on("ctl1", "scancel", f"--user={name}")
    wait_until(f"{name} has no server", lambda: not ask(cluster, name, "server"), 120)


def port_of_server(cluster: Cluster, node: str, user: str) -> str:
    """Where somebody's server on a node listens."""
    listening = cluster.on(node, "ss", "--listening", "--tcp", "--numeric", "--processes", "--no-header")
    theirs = cluster.on(node, "pgrep", f"--uid={user}", expect=None).split()
    lines = (line for line in listening.splitlines() if "jupyterhub-sin" in line)
    return next(
        line.split()[3].rpartition(":")[2] for line in lines if any(f"pid={one}," in line for one in theirs)
    )

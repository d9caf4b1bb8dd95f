"""The machine on which deploy was typed falls asleep in the midst of a run."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.errors import ExitCode
from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run, wait_until

pytestmark = [pytest.mark.one_release, pytest.mark.more]


@pytest.fixture(scope="module")
def one_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with booted("asleep", tmp_path_factory, "--nodes", "1", "--gpus", "0") as made:
        yield made


def test_another_admin_goes_on_and_the_one_who_wakes_stops(one_node: Cluster, tmp_path: Path) -> None:
    colleague = replace(one_node, directory=tmp_path / "site")
    words = ("cluster", str(one_node.inventory), "--output", "plain", "--no-validate")
    started = subprocess.Popen(
        [*DEPLOY, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with started as first:
        assert first.stdout
        assert any(line.startswith("== Base") for line in first.stdout)
        with asleep(first.pid):
            # By now the site has its secrets.
            shutil.copytree(one_node.directory, colleague.directory)
            said = colleague.deploy_refused(expect=ExitCode.BAD_INPUT)
            assert "[cluster-locked]" in said
            theirs = [*DEPLOY, "cluster", str(colleague.inventory), "--output", "plain", "--no-validate"]

            def goes_on() -> bool:
                return run(*theirs, expect=None, seconds=900).returncode == ExitCode.OK

            wait_until("a colleague's run goes on", goes_on, seconds=600)
        rest = first.stdout.read()
        assert first.wait(timeout=120) == ExitCode.INTERRUPTED, rest
    assert "ctl1: the connection that holds the cluster's lock ended" in rest
    assert "deploy cluster" in rest.rpartition("next:")[2]
    one_node.deploy("--yes")
    one_node.deploy()
    assert not any(host["changed"] for host in one_node.report()["hosts"].values())
    assert "node1" in one_node.as_user("srun hostname")


@contextmanager
def asleep(pid: int) -> Iterator[None]:
    """No process of a run does anything meanwhile."""
    stopped: set[int] = set()
    while new := {pid, *_below(pid)} - stopped:
        for number in new:
            os.kill(number, signal.SIGSTOP)
        stopped |= new
    try:
        yield
    finally:
        for number in stopped:
            os.kill(number, signal.SIGCONT)


def _below(pid: int) -> Iterator[int]:
    listing = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listing.splitlines()]
    parents = [pid]
    for parent in parents:
        parents += [child for child, above in pairs if above == parent]
    yield from parents[1:]

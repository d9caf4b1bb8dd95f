"""`deploy validate` on a lab, and the faults of faults.py made there."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from deploy.lab.state import container_name
from tests.cluster.faults import Fault
from tests.cluster.lab_cluster import DEPLOY, Cluster, run
from tests.containers import in_network_of


def validated(cluster: Cluster, *options: str, expect: int) -> dict[str, Any]:
    """What `deploy validate --json` says, by check; on another exit code the test fails, with it."""
    argv = [*DEPLOY, "validate", str(cluster.inventory), "--json", "-", *options]
    done = run(*argv, expect=None, seconds=300)
    checks = json.loads(done.stdout)["checks"] if done.stdout else []
    if done.returncode != expect:
        told = [f"{' '.join(argv)}", done.stderr[-3000:], f"ended with {done.returncode}, not {expect}:"]
        pytest.fail("\n".join([*told, *_not_passed(checks)]), pytrace=False)
    return {check["check"]: check for check in checks}


def _not_passed(checks: list[dict[str, Any]]) -> Iterator[str]:
    """What was found wrong or not measured, a line each; last, because the end of a log is kept."""
    for outcome in ("not measured", "failed"):
        for check in checks:
            for verdict in check["verdicts"]:
                if verdict["outcome"] == outcome:
                    yield f"{outcome}: {check['check']}: {verdict['where']}: {verdict['message']}"


def expect_found(cluster: Cluster, faults: tuple[Fault, ...], *options: str) -> None:
    """Makes the faults at once: each is found by its check, where it is and nowhere else."""
    with broken(cluster, faults):
        found = validated(cluster, *chosen(faults), *options, expect=1)
    for fault in faults:
        failed = {
            v["where"]: v["message"] for v in found[fault.check]["verdicts"] if v["outcome"] == "failed"
        }
        assert failed.keys() == {*fault.where}, (fault.what, failed)
        assert all(fault.says in message for message in failed.values()), (fault.what, failed)


def chosen(faults: tuple[Fault, ...]) -> list[str]:
    """The options that ask for nothing but the checks of some faults."""
    return [word for check in dict.fromkeys(fault.check for fault in faults) for word in ("--only", check)]


@contextmanager
def broken(cluster: Cluster, faults: tuple[Fault, ...]) -> Iterator[None]:
    """Makes faults; fixes them in any case, the last first."""
    try:
        for fault in faults:
            for line in fault.breaks:
                do(cluster, line)
        yield
    finally:
        for fault in reversed(faults):
            for line in fault.fixes:
                do(cluster, line)


def do(cluster: Cluster, line: str) -> None:
    """``HOST: SCRIPT``, ``podman: COMMAND HOST``, or ``network: COMMAND HOST``: in its network, from here."""
    host, _, script = line.partition(": ")
    *words, name = script.split()
    if host == "podman":
        run("podman", *words, container_name(cluster.name, name))
    elif host == "network":
        run(*in_network_of(container_name(cluster.name, name), *words))
    else:
        cluster.on(host, "sh", "-c", script)

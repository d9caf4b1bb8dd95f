from typing import Any

import pytest

from deploy.judge.drift import HostState, host_state
from deploy.run.ssh import Unanswered

EXPECTED = {"base": "f1", "names": "f2", "packages": "f3"}


def answer(**drift: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        phase: {"fingerprint": value, "at": 1.0, "version": "1", "drift": drift.get(phase, [])}
        for phase, value in EXPECTED.items()
    }


def entry(kind: str, name: str, recorded: object, found: object, **more: object) -> dict[str, Any]:
    return {"kind": kind, "name": name, "recorded": recorded, "found": found, **more}


FILE = {"type": "file", "content": "a", "mode": "0644", "owner": "root", "group": "root"}
UP = {"runs": True, "at boot": "enabled"}


def test_a_host_as_it_was_recorded_is_converged() -> None:
    state = host_state(answer(), EXPECTED)
    assert state.converged == set(EXPECTED)
    assert state == HostState(state.phases, at=1.0, version="1")


def test_another_fingerprint_or_none_is_work() -> None:
    said = answer()
    said["base"]["fingerprint"] = "old"
    del said["names"]
    state = host_state(said, EXPECTED)
    assert state.converged == {"packages"}
    assert state.outdated == ("base",)
    assert state.unrecorded == ("names",)


def test_drift_is_work_for_its_phase() -> None:
    state = host_state(answer(names=[entry("files", "/etc/hosts", FILE, None)]), EXPECTED)
    assert state.converged == {"base", "packages"}
    assert [str(drift) for drift in state.drift] == ["/etc/hosts is missing"]


@pytest.mark.parametrize(("kind", "name"), [("packages", "munge"), ("system", "")])
def test_other_packages_are_work_for_all_phases(kind: str, name: str) -> None:
    state = host_state(answer(base=[entry(kind, name, "2", "1")]), EXPECTED)
    assert state.converged == frozenset()


def test_a_driver_of_another_version_is_not_replaced_before_its_node_is_drained() -> None:
    driver = ("libcuda1", "nvidia-smi", "libnvidia-ml1")
    of_cuda = (
        "libcudnn9-cuda-12",
        "libnccl2",
        "libcublas-12-4",
        "libcudart12",
        "libnvinfer10",
        "cuda-toolkit-12-4",
    )
    drift = [entry("packages", name, "550", "535") for name in (*driver, *of_cuda)]
    assert host_state(answer(base=drift), EXPECTED).repairs == {}
    others = [entry("packages", name, "2", "1") for name in ("libcurl4", "libcups2", "libnuma1")]
    assert len(host_state(answer(base=others), EXPECTED).repairs["bootstrap_restore_versions"]) == len(others)


def test_a_package_of_another_version_is_to_be_brought_back() -> None:
    drift = [entry("packages", "munge", "2-1", "1-1"), entry("packages", "chrony", "4", None)]
    assert host_state(answer(base=drift), EXPECTED).repairs == {"bootstrap_restore_versions": ["munge=2-1"]}
    assert host_state(answer(), EXPECTED).repairs == {}


def test_what_overrides_is_to_be_put_aside_where_every_host_begins() -> None:
    file = "/etc/systemd/system/munge.service.d/x.conf"
    drift = [entry("beside", file, None, FILE), entry("beside", "/etc/old.conf.d/x", FILE, None)]
    state = host_state(answer(packages=drift), EXPECTED)
    assert state.repairs == {"bootstrap_put_aside": [file]}
    assert state.converged == {"names"}
    assert str(state.drift[0]) == f"{file} is there, and was not"


def test_what_runs_otherwise_is_restarted_where_every_host_begins() -> None:
    was, runs = {**UP, "command": "/x"}, {**UP, "command": "/x -v"}
    state = host_state(answer(packages=[entry("services", "x", was, runs)]), EXPECTED)
    assert state.repairs == {"bootstrap_restart": ["x"]}
    assert state.converged == {"names"}
    stopped = host_state(answer(packages=[entry("services", "x", was, {**UP, "runs": False})]), EXPECTED)
    assert stopped.repairs == {}
    assert stopped.converged == {"base", "names"}


def test_a_daemon_that_was_told_otherwise_is_to_read_again() -> None:
    expected = {**EXPECTED, "controller": "f4"}
    drift = entry("probe", "partitions as slurmctld has them", "h1", "h2")
    said = {**answer(), "controller": {**answer()["base"], "fingerprint": "f4", "drift": [drift]}}
    state = host_state(said, expected)
    assert state.repairs == {"slurmctld_told_otherwise": True}
    assert "controller" not in state.converged
    said["controller"]["drift"] = [{**drift, "found": "failed"}]
    assert host_state(said, expected).repairs == {"slurmctld_told_otherwise": True}


def test_a_host_without_an_answer_has_nothing_converged() -> None:
    state = host_state(Unanswered("refused"), EXPECTED)
    assert (state.converged, state.why) == (frozenset(), "refused")


@pytest.mark.parametrize(
    ("drift", "expected"),
    [
        (entry("files", "/x", FILE, {**FILE, "content": "b"}), "/x differs"),
        (entry("files", "/x", FILE, {**FILE, "mode": "0600"}), "/x has mode 0600, had 0644"),
        (entry("files", "/x", None, FILE), "/x is there, and was not"),
        (entry("files", "/x", FILE, {"type": "no answer"}), "/x does not answer"),
        (entry("packages", "x", "2", "1"), "package x is 1, was 2"),
        (entry("packages", "x", "2", None), "package x is missing"),
        (entry("services", "x", UP, {**UP, "runs": False}), "service x is stopped"),
        (entry("services", "x", UP, {**UP, "at boot": "masked"}), "service x is masked at boot, was enabled"),
        (
            entry("services", "x", {**UP, "command": "/x"}, {**UP, "command": "/x -v"}),
            "service x runs as /x -v, ran as /x",
        ),
        (entry("services", "x", {**UP, "command": "/x"}, {**UP, "runs": False}), "service x is stopped"),
        (entry("users", "x", {"groups": ["a"]}, {"groups": ["a", "b"]}), "user x has groups a,b, had a"),
        (entry("modules", "x", True, False), "kernel module x is missing"),  # noqa: FBT003
        (entry("sysctls", "a.b", "1", "0"), "kernel setting a.b is 0, was 1"),
        (entry("hardware", "gpus", 8, 7), "hardware: gpus is 7, was 8"),
        (entry("probe", "the ruleset", "h1", "h2"), "the ruleset differs"),
        (entry("probe", "the ruleset", "h1", "failed"), "the ruleset cannot be asked"),
    ],
)
def test_drift_in_words(drift: dict[str, Any], expected: str) -> None:
    (found,) = host_state(answer(base=[drift]), EXPECTED).drift
    assert str(found) == expected


def test_a_file_says_when_it_changed() -> None:
    drift = entry("files", "/x", FILE, {**FILE, "content": "b"}, changed=1_000_000.0)
    (found,) = host_state(answer(base=[drift]), EXPECTED).drift
    assert str(found).startswith("/x differs, changed 1970-01-1")


def test_what_was_left_to_a_later_run_is_of_phases_without_a_record() -> None:
    told = {"base": ["of another time"], "packages": ["not done"]}
    said = {name: of for name, of in answer().items() if name != "packages"}
    assert host_state(said, EXPECTED, (), told).pending == {"packages": ["not done"]}

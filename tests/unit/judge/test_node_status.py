import pytest

from deploy.judge.node_status import Clock, Reach, SlurmNode, answer_of, slurm_nodes
from deploy.run.events import Status
from tests.unit.judge.statuses import answered, lost, slurm_node


def test_an_answer() -> None:
    status = answer_of("node1", answered("node1", shortfalls=["cpus: less"], failed_units=["odd.service"]))
    assert status.reach is Reach.ANSWERED
    assert [service.name for service in status.services if service.is_up] == ["chrony", "munge"]
    assert status.shortfalls == ("cpus: less",)
    assert status.failed_units == ("odd.service",)
    assert status.clock == Clock(-0.004, 0.009, synchronized=True, chrony_ahead=0.00001)


def test_a_chrony_that_does_not_say_leaves_the_clock_known() -> None:
    clock = answer_of("node1", answered("node1", clock={"error": "chronyc: no"})).clock
    assert clock == Clock(-0.004, 0.009)


@pytest.mark.parametrize(
    ("status", "reach"), [(Status.UNREACHABLE, Reach.UNREACHABLE), (Status.FAILED, Reach.FAILED)]
)
def test_no_answer(status: Status, reach: Reach) -> None:
    found = answer_of("node1", lost("node1", "first\nsecond", status))
    assert (found.reach, found.trouble) == (reach, "first second")


def test_what_is_known_of_a_lost_host_is_said_in_its_own_words() -> None:
    (cause,) = answer_of("node1", lost("node1", "Host key verification failed"), "10.0.0.11").causes
    assert (cause.where, cause.reference) == ("node1", "host-key-wrong")
    assert "10.0.0.11" in cause.hint
    assert answer_of("node1", lost("node1", "lscpu: broken", Status.FAILED)).causes == ()


def test_a_host_that_ansible_never_came_to() -> None:
    assert answer_of("node1", None).reach is Reach.FAILED


@pytest.mark.parametrize(
    ("least", "most", "certain"), [(-0.1, 0.2, 0.0), (4.8, 5.1, 4.8), (-5.1, -4.8, -4.8), (0.0, 0.0, 0.0)]
)
def test_what_is_certain_of_a_clock(least: float, most: float, certain: float) -> None:
    assert Clock(least, most).certain == certain


def test_nodes_of_a_controller() -> None:
    told = {"nodes": {"node1": slurm_node("IDLE+DRAIN", "bad\x1b[31m disk", "root", 60.0)}}
    assert slurm_nodes(answered("ctl1", slurm=told)) == {
        "node1": SlurmNode(("IDLE", "DRAIN"), "bad disk", "root", 999_940.0)
    }


def test_a_controller_that_does_not_tell() -> None:
    silent = answered("ctl1", slurm={"error": "scontrol: no answer within 4 s"})
    assert slurm_nodes(silent) is None
    assert answer_of("ctl1", silent).slurm_silence == "scontrol: no answer within 4 s"
    assert slurm_nodes(answered("node1")) is None
    assert slurm_nodes(lost("ctl1")) is None
    assert slurm_nodes(None) is None


@pytest.mark.parametrize(
    ("state", "word", "is_drained", "is_down"),
    [
        ("IDLE", "idle", False, False),
        ("MIXED+PLANNED", "mixed+planned", False, False),
        ("IDLE+DRAIN", "drained", True, False),
        ("ALLOCATED+DRAIN", "draining", True, False),
        ("IDLE+COMPLETING+DRAIN", "draining+completing", True, False),
        ("DOWN+NOT_RESPONDING", "down*", False, True),
        ("DOWN*", "down*", False, True),
        ("IDLE*", "idle*", False, True),
        ("DOWN+DRAIN+NOT_RESPONDING", "down+drained*", True, True),
        ("UNKNOWN", "unknown", False, True),
        ("IDLE+CLOUD+POWERED_DOWN", "idle+cloud+powered_down", False, False),
        ("", "unknown", False, True),
    ],
)
def test_states(state: str, word: str, is_drained: bool, is_down: bool) -> None:  # noqa: FBT001
    nodes = slurm_nodes(answered("ctl1", slurm={"nodes": {"n": slurm_node(state)}}))
    assert nodes
    assert (nodes["n"].word, nodes["n"].is_drained, nodes["n"].is_down) == (word, is_drained, is_down)

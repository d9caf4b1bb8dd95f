import pytest

from deploy.validate import slurm_text


def test_values_may_have_blanks_and_equals_signs() -> None:
    line = (
        "NodeName=node1 Arch=x86_64 OS=Linux 6.1.0 #1 SMP Debian (2026-01-01) State=IDLE+DRAIN Partitions=a "
        "Reason=bad disk | sdb=7 é [root@2026-11-21T13:21:52] Comment=ask ann"
    )
    (record,) = slurm_text.records(f"{line}\n\nNo nodes in the system\n")
    assert record["OS"] == "Linux 6.1.0 #1 SMP Debian (2026-01-01)"
    assert record["State"] == "IDLE+DRAIN"
    # What looks like a key of its own ends the value before it; the keys that count come earlier.
    assert record["Reason"] == "bad disk |"
    assert record["Comment"] == "ask ann"


def test_a_reason_cannot_change_what_was_said_before_it() -> None:
    line = "NodeName=node1 CPUTot=4 State=DOWN Reason=he says State=IDLE CPUTot=64"
    (record,) = slurm_text.records(line)
    assert (record["State"], record["CPUTot"]) == ("DOWN", "4")


def test_empty_values_and_other_lines() -> None:
    assert slurm_text.records("NodeName=n1 Gres= Comment=\n") == [
        {"NodeName": "n1", "Gres": "", "Comment": ""}
    ]
    assert slurm_text.records("slurm_load_node error: Unable to contact slurm controller\n") == []
    assert slurm_text.first_of([{"NodeName": "n1"}, {"Other": "x"}], "NodeName") == {"n1": {"NodeName": "n1"}}


@pytest.mark.parametrize(
    ("gres", "found"),
    [
        ("gpu:a100:4(S:0-1)", {"a100": 4}),
        ("gpu:a100:4(S:0-1),gpu:v100:2,bandwidth:10G", {"a100": 4, "v100": 2}),
        ("gpu:a100:1,gpu:a100:1", {"a100": 2}),
        ("gpu:2", {"": 2}),
        ("gpu:2(S:0)", {"": 2}),
        ("gpu:a100_3g.20gb:2(S:0),gpu:a100_1g.5gb:7(S:1)", {"a100_3g.20gb": 2, "a100_1g.5gb": 7}),
        ("gpu:1g.5gb:7", {"1g.5gb": 7}),
        ("gpu:nvidia_h100_80gb_hbm3:8(S:0-7)", {"nvidia_h100_80gb_hbm3": 8}),
        ("shard:8,gpu:a100:2", {"a100": 2}),
        ("(null)", {}),
        ("", {}),
    ],
)
def test_gpus_by_type(gres: str, found: dict[str, int]) -> None:
    assert slurm_text.gpus(gres) == found


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("30", 30),
        ("30:30", 30.5),
        ("1:30:00", 90),
        ("1:00:30", 60.5),
        ("1-0", 1440),
        ("1-2:30", 1590),
        ("7-00:00:00", 10080),
        ("00:10:00", 10),
        ("UNLIMITED", None),
        ("infinite", None),
        ("NONE", None),
        ("-1", None),
        ("", None),
    ],
)
def test_time_limits(text: str, minutes: float | None) -> None:
    assert slurm_text.minutes(text) == minutes


@pytest.mark.parametrize("text", ["soon", "1-", "1:2:3:4", "1d", "-5"])
def test_no_time_limits(text: str) -> None:
    with pytest.raises(ValueError, match=text):
        slurm_text.minutes(text)


def test_controllers() -> None:
    said = "Slurmctld(primary) at ctl1 is UP\nSlurmctld(backup) at ctl2.example.org is DOWN\n*** !\n"
    assert slurm_text.controllers(said) == {"ctl1": True, "ctl2.example.org": False}
    assert slurm_text.controllers("") == {}


def test_associations() -> None:
    said = "cluster|root|||normal\ncluster|research|ann||normal\n\ncluster|short\n"
    assert list(slurm_text.associations(said)) == [
        ("cluster", "root", ""),
        ("cluster", "research", "ann"),
        ("cluster", "short", ""),
    ]


def test_resources() -> None:
    assert slurm_text.tres("billing=1,cpu=1,gres/gpu:a100=2,gres/gpu=2") == {
        "billing": "1",
        "cpu": "1",
        "gres/gpu:a100": "2",
        "gres/gpu": "2",
    }
    assert slurm_text.tres("") == {}


def test_lists_of_names() -> None:
    assert slurm_text.words("ann, bob") == {"ann", "bob"}
    assert slurm_text.words("ALL") == slurm_text.words(None) == slurm_text.words("(null)") == frozenset()

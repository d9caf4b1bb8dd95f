"""What sbatch, srun and salloc say of a site's cli_filter.lua; Molecule's slurmctld has them."""

import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/slurmctld/library/cli_filter_check.py")
ENDS = "sbatch: error: cli_filter plugin terminated with error\n"


def told(what: str, *words: str) -> str:
    """As the trial writes it."""
    return "\1".join(["", what, *words]) + "\2\n"


def test_lines_keep_their_numbers() -> None:
    assert "first\nsecond" in module.trial_of("first\nsecond")
    assert "first" in module.trial_of("first\nsecond").splitlines()[0]


def test_each_command_has_something_to_run() -> None:
    assert module.words_of({"options": "--comment='a b' -N2"}) == [
        "sbatch",
        "--wrap=true",
        "--comment=a b",
        "-N2",
    ]
    assert module.words_of({"command": "srun", "options": "-N2"}) == ["srun", "-N2", "true"]
    assert module.words_of({"command": "salloc"}) == ["salloc"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (told("came", "0", "long") + ENDS, []),
        (told("came", "0.0", "long") + ENDS, []),
        # What returns nothing, Slurm takes for success.
        (told("came", "nil", "long") + ENDS, []),
        (told("came", "0", "nil") + ENDS, ["example a: qos is nil, and should be long"]),
        (
            "sbatch: error: lua: ask for less\n" + told("came", "-1", "long") + ENDS,
            ["example a: it is refused (sbatch: error: lua: ask for less), and should be accepted"],
        ),
        (told("broken", "/tmp/x/cli_filter.lua:3: no field"), ["example a: cli_filter.lua:3: no field"]),
        ("sbatch: unrecognized option '--nodez=2'\n", ["example a: sbatch: unrecognized option '--nodez=2'"]),
        ("", ["example a: it ended without a word"]),
    ],
)
def test_what_came_is_compared(said: str, expected: list[str]) -> None:
    example = {"name": "a", "expect": "accepted", "sets": {"qos": "long"}}
    assert list(module.complaints(example, said)) == expected


def test_the_user_has_to_read_why() -> None:
    example = {"name": "a", "expect": "refused", "says": "ask for less"}
    assert list(module.complaints(example, told("came", "-1") + ENDS)) == [
        "example a: the user reads 'nothing', without 'ask for less'"
    ]


def test_a_bare_command_may_be_refused_but_not_broken() -> None:
    assert list(module.complaints({"command": "srun"}, told("came", "-1"))) == []
    assert list(
        module.complaints({"command": "srun"}, "srun: error: /tmp/x/cli_filter.lua:1: '=' expected")
    ) == ["srun: srun: error: cli_filter.lua:1: '=' expected"]

import pytest

from tests.unit.roles.loading import load_module

module = load_module("playbooks/library/daemon_arguments.py")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], 'ARGS=""\n'),
        (["--a=1", "", "--b"], 'ARGS="--a=1 --b"\n'),
        (["--a=x y"], 'ARGS="--a=x\\\\ y"\n'),
        (["--a=^/(dev|run)($|/)"], 'ARGS="--a=^/(dev|run)(\\$|/)"\n'),
        ([r"--a=b\.c"], 'ARGS="--a=b\\\\\\\\.c"\n'),
    ],
)
def test_what_is_written(arguments: list[str], line: str) -> None:
    assert module.arguments_line(arguments) == line

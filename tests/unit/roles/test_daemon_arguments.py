import pytest

from tests.unit.roles.loading import load_module

module = load_module("playbooks/filter_plugins/daemon_arguments.py")


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
    assert module.daemon_arguments(arguments).splitlines(keepends=True)[1:] == [line]


def test_variables_of_its_environment_come_beside() -> None:
    text = module.daemon_arguments(["--a"], {"NAME": "user@unix(/run/x.sock)/"})
    assert text.endswith('ARGS="--a"\nNAME="user@unix(/run/x.sock)/"\n')

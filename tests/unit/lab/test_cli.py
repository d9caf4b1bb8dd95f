from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deploy.cli import lab as verbs
from deploy.lab.up import Outcome, Wish
from tests.unit.lab.test_labs import lab_of

RUNNER = CliRunner()


@pytest.mark.parametrize(
    "words",
    [
        ["exec", "--name", "two", "--user", "bob", "node1", "--", "ls", "--all", "--", "x"],
        ["exec", "--name", "two", "--user", "bob", "node1", "ls", "--all", "--", "x"],
    ],
)
def test_exec_hands_over_the_words_and_the_exit_code(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(name: str, host: str, command: Sequence[str], *, user: str | None, terminal: bool) -> int:
        assert (name, host, command) == ("two", "node1", ["ls", "--all", "--", "x"])
        assert (user, terminal) == ("bob", False)
        return 7

    monkeypatch.setattr(verbs, "execute", execute)
    result = RUNNER.invoke(verbs.lab_app, words)
    assert result.exit_code == 7, result.output


def test_up_says_what_the_inventory_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    wishes: list[Wish] = []

    def bring_up(wish: Wish, _say: object) -> Outcome:
        wishes.append(wish)
        return Outcome(
            lab=lab_of(("ctl1", "running")),
            inventory=Path("/sites/two/inventory.ini"),
            made=(),
            started=(),
            to_add="[all]\nnode3 ansible_host=10.213.7.13",
            to_change="ctl1 ansible_host=10.213.7.2",
        )

    monkeypatch.setattr(verbs, "bring_up", bring_up)
    result = RUNNER.invoke(verbs.lab_app, ["up", "--name", "two", "--nodes", "3", "--dir", "/sites/two"])
    assert wishes == [Wish("two", directory=Path("/sites/two"), nodes=3)]
    assert "Add these lines to /sites/two/inventory.ini" in result.output
    assert "node3 ansible_host=10.213.7.13\n" in result.output
    assert "these are right:\n\nctl1 ansible_host=10.213.7.2\n" in result.output
    assert result.output.endswith("Next: deploy cluster /sites/two/inventory.ini\n")

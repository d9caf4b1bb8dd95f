"""With which configuration of several controllers one may lead; files alone."""

import contextlib
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.loading import load_module

last_deployed = load_module("roles/slurmctld/module_utils/slurm_last_deployed.py")
standing = load_module("roles/slurmctld/module_utils/slurm_standing.py")
guard = load_module("roles/slurmctld/files/usr/local/lib/slurmctld/may_start.py")

A, B, C = ({"slurm.conf": f"# {name}\n"} for name in "abc")


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no user slurm here; the files are ours."""

    @contextlib.contextmanager
    def as_ourselves() -> Iterator[None]:
        yield

    for module in (last_deployed, standing):
        monkeypatch.setattr(module, "as_slurm", as_ourselves)


class Controllers:
    """Some that share a state: what a run does on each, in its order, and which may start."""

    def __init__(self, directory: Path, *names: str) -> None:
        self.directory = directory
        self.names = names
        self.state = directory / "state"
        self.state.mkdir()
        self.lead("ctl1")

    def lead(self, name: str) -> None:
        place = self.names.index(name)
        (self.state / "heartbeat").write_bytes(struct.pack(">QQ", 1795632973, place))

    def last(self, name: str) -> Any:  # noqa: ANN401
        return last_deployed.LastDeployed(self.state, self.directory / name)

    def identity(
        self,
        name: str,
        files: dict[str, str],
        monkeypatch: pytest.MonkeyPatch,
        *,
        follows: bool | None,
        runs: bool = True,
    ) -> Any:  # noqa: ANN401
        monkeypatch.setattr(standing.socket, "gethostname", lambda: name)
        conf = "".join(f"SlurmctldHost={each}\n" for each in self.names) + f"StateSaveLocation={self.state}\n"
        stands = standing.Standing(conf, conf, conf, runs=runs, follows=follows)
        several = len(self.names) > 1
        return last_deployed.Identity(self.last(name), files, is_one_of_several=several, standing=stands)

    def may_start(self) -> set[str]:
        return {
            name
            for name in ("ctl1", "ctl2", "ctl3")
            if not guard.configuration_trouble(self.state, self.last(name).own())
        }

    def give(self, files: dict[str, str], monkeypatch: pytest.MonkeyPatch, *reached: str) -> list[set[str]]:
        """A whole run; who may start before and after each of its steps."""
        seen = [self.may_start()]
        for name in reached:
            follows = None if name == self.names[0] else name != reached[0]
            identity = self.identity(name, files, monkeypatch, follows=follows)
            identity.allow()
            seen.append(self.may_start())
            identity.have()
            seen.append(self.may_start())
        self.settle(reached[0])
        return [*seen, self.may_start()]

    def settle(self, name: str) -> None:
        last = self.last(name)
        if not last.is_settled():
            last.settle()


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Controllers:
    made = Controllers(tmp_path, "ctl1", "ctl2")
    made.give(A, monkeypatch, "ctl1", "ctl2")
    return made


def test_while_all_are_there_each_may_start_at_any_time(
    two: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever the power is cut, and whichever of them comes back."""
    for files in (B, A, B):
        assert all(seen >= {"ctl1", "ctl2"} for seen in two.give(files, monkeypatch, "ctl1", "ctl2"))
    assert two.last("ctl1").allowed() == [last_deployed.id_of(B)] == [two.last("ctl2").own()]


def test_a_first_deployment_and_that_of_an_older_deploy_start_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Controllers(tmp_path, "ctl1", "ctl2")
    seen = made.give(A, monkeypatch, "ctl1", "ctl2")
    assert all(each >= {"ctl1", "ctl2"} for each in seen)


@pytest.mark.parametrize("away", ["ctl1", "ctl2"])
def test_one_that_was_away_waits_until_it_is_given_the_last_one(
    two: Controllers, monkeypatch: pytest.MonkeyPatch, away: str
) -> None:
    there = ({"ctl1", "ctl2"} - {away}).pop()
    two.lead(there)
    seen = two.give(B, monkeypatch, there)
    assert all(there in each for each in seen)
    assert away in seen[1], "the run may be cut off yet"
    assert away not in seen[-1]
    seen = two.give(B, monkeypatch, "ctl1", "ctl2")
    assert {"ctl1", "ctl2"} <= seen[-1]


def test_one_that_comes_back_to_what_it_had_waits_for_nothing(
    two: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    two.lead("ctl2")
    two.give(B, monkeypatch, "ctl2")
    two.give(A, monkeypatch, "ctl2")
    assert "ctl1" in two.may_start()


def test_one_that_left_does_not_lead(two: Controllers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine took its place; or the other one is alone, and writes no heartbeat."""
    two.names = ("ctl3", "ctl2")
    assert all({"ctl2"} <= each for each in two.give(B, monkeypatch, "ctl3", "ctl2"))
    assert "ctl1" not in two.may_start()
    two.names = ("ctl2",)
    two.give(C, monkeypatch, "ctl2")
    assert {"ctl1", "ctl3"}.isdisjoint(two.may_start())
    assert "ctl2" in two.may_start()


def test_one_alone_needs_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Controllers(tmp_path, "ctl1")
    made.give(A, monkeypatch, "ctl1")
    assert (made.last("ctl1").own(), made.last("ctl1").allowed()) == ("", [])


def test_files_that_are_given_back_may_lead_on(two: Controllers, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = two.identity("ctl1", B, monkeypatch, follows=None)
    assert identity.differs
    identity.allow()
    identity.have()
    identity.give_back()
    assert two.last("ctl1").own() == last_deployed.id_of(A)
    # The other one did not take it either.
    two.settle("ctl2")
    assert two.last("ctl2").allowed() == [last_deployed.id_of(A)]


def test_one_that_waits_for_the_leading_one_keeps_its_name(
    two: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not two.identity("ctl2", B, monkeypatch, follows=False).differs


def test_a_state_that_lost_it_is_told_again(two: Controllers, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not two.identity("ctl1", A, monkeypatch, follows=None).differs
    (two.state / last_deployed.LAST_DEPLOYED).unlink()
    identity = two.identity("ctl1", A, monkeypatch, follows=None)
    assert identity.differs
    identity.allow()
    assert two.last("ctl1").allowed() == [last_deployed.id_of(A)]
    assert not two.identity("ctl1", A, monkeypatch, follows=None).differs


def test_what_a_run_left_open_is_not_ended_by_one_that_lacks_it(
    two: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = two.identity("ctl1", B, monkeypatch, follows=None)
    identity.allow()
    identity.have()
    two.settle("ctl2")
    assert {"ctl1", "ctl2"} <= two.may_start()
    two.give(B, monkeypatch, "ctl1", "ctl2")
    assert two.last("ctl1").allowed() == [last_deployed.id_of(B)]


def test_the_same_files_have_the_same_name() -> None:
    assert last_deployed.id_of({"a": "1", "b": "2"}) == last_deployed.id_of({"b": "2", "a": "1"})
    assert last_deployed.id_of({"a": "12"}) != last_deployed.id_of({"a": "1", "b": "2"})

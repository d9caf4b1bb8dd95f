"""What a controller is among several, and how its state comes to another directory; files alone."""

import contextlib
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.unit.roles.loading import load_module

state = load_module("roles/slurmctld/module_utils/slurm_state.py")
standing = load_module("roles/slurmctld/module_utils/slurm_standing.py")
config = load_module("roles/slurmctld/library/slurmctld_config.py")
shared = load_module("roles/slurmctld/library/slurmctld_shared_state.py")

CHANGE = {"parameter": "StateSaveLocation"}


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no user slurm here; the files are ours, and this machine is ctl1."""

    @contextlib.contextmanager
    def as_ourselves() -> Iterator[None]:
        yield

    for module in (state, standing, shared):
        monkeypatch.setattr(module, "as_slurm", as_ourselves)
    monkeypatch.setattr(standing.socket, "gethostname", lambda: "ctl1.example.org")


class Module:
    """Runs commands here, but for the change of the user."""

    def __init__(self, code: int = 0) -> None:
        self.commands: list[list[str]] = []
        self.code = code

    def run_command(self, command: list[str], *, cwd: str | None = None) -> tuple[int, str, str]:
        assert command[0] != "runuser" or cwd == "/", "a home that slurm may not enter"
        self.commands.append(command)
        if command[0] == "runuser" and not self.code:
            source, target = Path(command[command.index("find") + 1]), Path(command[-3])
            for file in source.resolve().iterdir():
                (target / file.name).write_bytes(file.read_bytes())
        return self.code, "", "no space left"

    def fail_json(self, **said: Any) -> NoReturn:  # noqa: ANN401
        raise SystemExit(said["msg"])


def conf(directory: Path, *names: str) -> str:
    lines = [f"SlurmctldHost={name}(10.0.0.{place})" for place, name in enumerate(names, 1)]
    return "\n".join([*lines, f"StateSaveLocation={directory}\n"])


def beat(directory: Path, place: int) -> None:
    (directory / "heartbeat").write_bytes(struct.pack(">QQ", 1795632973, place))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    place = tmp_path / "old"
    place.mkdir()
    (place / "job_state").write_text("the queue")
    return place


@pytest.fixture
def new(tmp_path: Path) -> Path:
    place = tmp_path / "new"
    place.mkdir()
    return place


def moving(old: Path, new: Path) -> Any:  # noqa: ANN401
    return state.ControllerState.of(conf(old, "ctl1"), conf(new, "ctl1"), [new])


def test_the_state_moves_once(old: Path, new: Path) -> None:
    it = moving(old, new)
    assert it.moves
    assert it.takes(CHANGE)
    it.move(Module())
    assert (new / "job_state").read_text() == "the queue"
    # Cut off before the daemon started: what it wrote since is not replaced by what is old.
    again = moving(old, new)
    assert not again.moves
    assert again.takes(CHANGE)
    assert not again.takes({"parameter": "ClusterName"})


def test_a_state_that_is_there_is_not_overwritten_but_by_its_successor(old: Path, new: Path) -> None:
    (new / "job_state").write_text("of another time")
    assert not moving(old, new).takes(CHANGE)
    (new / "deploy_moved").write_text(f"{old}\n")
    back = moving(old, new)
    assert back.takes(CHANGE)
    back.move(Module())
    assert (new / "job_state").read_text() == "the queue"
    assert (old / "deploy_moved").read_text() == f"{new}\n"


def test_a_directory_that_nobody_makes_gets_no_state(old: Path, new: Path) -> None:
    it = state.ControllerState.of(conf(old, "ctl1"), conf(new, "ctl1"), [])
    assert not it.moves
    assert not it.takes(CHANGE)


def test_a_state_that_is_away_is_lost_as_ever(tmp_path: Path, new: Path) -> None:
    it = moving(tmp_path / "not-mounted", new)
    assert not it.moves
    assert not it.takes(CHANGE)


def test_a_copy_that_fails_starts_the_daemon_where_it_was(old: Path, new: Path) -> None:
    module = Module(code=1)
    with pytest.raises(SystemExit, match=r"could not be copied to .*no space left"):
        moving(old, new).move(module)
    assert module.commands[-1] == ["systemctl", "start", "slurmctld"]
    assert moving(old, new).moves


def test_what_is_not_taken_is_given_back(old: Path, new: Path) -> None:
    it = moving(old, new)
    it.move(Module())
    it.give_back()
    again = moving(old, new)
    assert again.moves
    assert again.takes(CHANGE)
    # Where nothing moved there is nothing to give back.
    moving(old, old).give_back()
    assert not (old / "deploy_moved").exists()


def test_one_controller_leads_where_it_runs() -> None:
    text = conf(Path("/nowhere"), "ctl1")
    it = standing.Standing(text, text, runs=True, follows=None)
    assert (it.leads, it.stands_by, it.waits, it.others) == (True, False, False, [])
    assert not standing.Standing(text, text, runs=False, follows=None).leads


@pytest.mark.parametrize(
    ("place", "follows", "stands_by", "waits"),
    [
        (1, True, True, False),
        (1, False, True, True),
        # It leads, so that it is asked about jobs, whatever became of the first.
        (0, False, False, False),
        (None, True, True, False),
        (7, True, True, False),
    ],
)
def test_one_of_several_follows_the_first_unless_it_leads(
    tmp_path: Path,
    place: int | None,
    follows: bool,  # noqa: FBT001
    stands_by: bool,  # noqa: FBT001
    waits: bool,  # noqa: FBT001
) -> None:
    if place is not None:
        beat(tmp_path, place)
    text = conf(tmp_path, "ctl1", "ctl2")
    it = standing.Standing(text, text, runs=True, follows=follows)
    assert (it.stands_by, it.waits) == (stands_by, waits)


def test_who_is_gone_from_the_controllers(tmp_path: Path) -> None:
    before, after = conf(tmp_path, "ctl1", "ctl2", "ctl3"), conf(tmp_path, "ctl1", "ctl3")
    it = standing.Standing(before, after, runs=True, follows=None)
    assert (it.others, it.gone) == (["ctl2", "ctl3"], ["ctl2"])


def test_the_throwaway_daemon_is_the_only_controller(tmp_path: Path) -> None:
    text = conf(tmp_path, "ctl1", "ctl2")
    kept = [line for line in config.isolated(text, "/tmp/x", "ctl2").splitlines() if "Host" in line]
    assert kept == ["SlurmctldHost=ctl2(10.0.0.2)"]
    # Slurm itself says so where a host calls itself otherwise.
    assert config.isolated(text, "/tmp/x", "else").count("SlurmctldHost") == 2


@pytest.mark.parametrize(
    ("said", "up"),
    [
        ("Slurmctld(primary) at ctl1 is UP\nSlurmctld(backup) at ctl2 is DOWN\n", ["ctl1"]),
        ("Slurmctld(primary) at ctl1 is DOWN\nSlurmctld(backup1) at ctl2 is UP\n", ["ctl2"]),
        ("scontrol: error: nobody\n", []),
    ],
)
def test_who_answers(said: str, up: list[str]) -> None:
    assert config._UP.findall(said) == up


def test_a_directory_knows_itself_from_its_copy(tmp_path: Path, new: Path) -> None:
    assert not shared.has_mark(new)
    shared.mark(new)
    assert shared.has_mark(new)
    assert shared.is_whole(new)
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "deploy_shared").write_text((new / "deploy_shared").read_text())
    assert not shared.is_whole(copy)
    # The first controller takes it for its own.
    shared.mark(copy)
    assert shared.is_whole(copy)

"""What a controller is among several, and how its state comes to another directory; files alone."""

import contextlib
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import jinja2
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
    monkeypatch.setattr(config, "Standing", standing.Standing)
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
            subprocess.run(command[command.index("find") :], check=True)
        return self.code, "", "no space left"

    def fail_json(self, **said: Any) -> NoReturn:  # noqa: ANN401
        raise SystemExit(said["msg"])


def conf(directory: Path, *names: str) -> str:
    lines = [f"SlurmctldHost={name}(10.0.0.{place})" for place, name in enumerate(names, 1)]
    return "\n".join([*lines, f"StateSaveLocation={directory}\n"])


def stood(before: str, after: str, in_place: str = "", **given: Any) -> Any:  # noqa: ANN401
    """Of one that has the files in place that it runs with, unless it is said otherwise."""
    return standing.Standing(before, after, in_place or before, **given)


def beat(directory: Path, place: int, when: int = 1795632973) -> None:
    (directory / "heartbeat").write_bytes(struct.pack(">QQ", when, place))


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


def test_what_names_a_directory_does_not_go_along(old: Path, new: Path) -> None:
    for place in (old, new):
        shared.mark(place)
    (old / "deploy_configuration").write_text("of the old place\n")
    moving(old, new).move(Module())
    assert shared.is_whole(new)
    assert not (new / "deploy_configuration").exists()


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
    it = stood(text, text, runs=True, follows=None)
    assert (it.leads, it.stands_by, it.waits, it.others) == (True, False, False, [])
    assert not stood(text, text, runs=False, follows=None).leads


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
    it = stood(text, text, runs=True, follows=follows)
    assert (it.stands_by, it.waits) == (stands_by, waits)


def test_who_is_gone_from_the_controllers(tmp_path: Path) -> None:
    before, after = conf(tmp_path, "ctl1", "ctl2", "ctl3"), conf(tmp_path, "ctl1", "ctl3")
    it = stood(before, after, runs=True, follows=None)
    assert (it.others, it.gone) == (["ctl2", "ctl3"], ["ctl2"])


@pytest.mark.parametrize(
    ("place", "meanwhile", "names"),
    [
        (1, True, ["ctl2"]),
        (1, False, []),
        # It is asked about others.
        (2, True, []),
        (0, True, []),
        (None, True, []),
    ],
)
def test_who_leads_and_cannot_be_reached(
    tmp_path: Path,
    place: int | None,
    meanwhile: bool,  # noqa: FBT001
    names: list[str],
) -> None:
    text = conf(tmp_path, "ctl1", "ctl2", "ctl3") + "SlurmctldTimeout=40\n"
    it = stood(text, text, runs=False, follows=None)
    if place is not None:
        beat(tmp_path, place)
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if meanwhile:
            beat(tmp_path, 1, when=1795632983)

    assert it.who_beats(["ctl2"], sleep) == names
    assert waited == ([13] if place == 1 else [])


def test_a_place_counts_by_the_list_of_the_one_that_leads(tmp_path: Path) -> None:
    """The place of a heartbeat is one in that list, which is another one where a controller left."""
    three, two = conf(tmp_path, "ctl2", "ctl3", "ctl1"), conf(tmp_path, "ctl3", "ctl1")
    beat(tmp_path, 0)

    def sleep(_: float) -> None:
        beat(tmp_path, 0, when=1795632983)

    assert stood(three, two, runs=False, follows=None).who_beats(["ctl2"], sleep) == ["ctl2"]
    # It was away meanwhile: ctl3 leads by the other list.
    beat(tmp_path, 0)
    assert stood(three, two, runs=False, follows=None, is_leaders=False).who_beats(["ctl2"], sleep) == []
    # Its run was cut off: ctl1 has the other list in place, and leads by that.
    was, cut_off = conf(tmp_path, "ctl2", "ctl1"), conf(tmp_path, "ctl1", "ctl3")
    it = stood(was, cut_off, cut_off, runs=True, follows=None)
    assert (it.gone, it.leads) == (["ctl2"], True)
    assert it.who_beats(it.gone, sleep) == []


class Others:
    """Controllers that answer this one, and such that it cannot reach and that lead."""

    def __init__(self, *up: str, beat: tuple[str, ...] = ()) -> None:
        self.up, self.beat = up, beat
        self.module = SimpleNamespace(fail_json=Module().fail_json, params={"database_was_on": ""})
        self.who_runs: Callable[..., Any] = lambda *given: config.Slurmctld.who_runs(self, *given)
        self.refuse_others: Callable[..., Any] = lambda *given: config.Slurmctld.refuse_others(self, *given)

    def who_is_up(self) -> list[str]:
        return [*self.up]

    def refuse(self, it: Any, before: str, after: str, *, moves: bool = False) -> None:  # noqa: ANN401
        it.who_beats = lambda names: [name for name in self.beat if name in names]
        config.refuse(self.module, self, it, [before, after], moves=moves)


@pytest.mark.parametrize("runs", [True, False])
@pytest.mark.parametrize("others", [Others("ctl2"), Others(beat=("ctl2",))], ids=["answers", "beats"])
def test_whether_it_runs_or_not_what_would_harm_is_refused(
    tmp_path: Path,
    others: Others,
    runs: bool,  # noqa: FBT001
) -> None:
    two, one = conf(tmp_path, "ctl1", "ctl2"), conf(tmp_path, "ctl1")
    it = stood(two, one, runs=runs, follows=None)
    with pytest.raises(SystemExit, match="slurmctld runs on ctl2, and it would take over"):
        others.refuse(it, two, one)
    it = stood(two, two, runs=runs, follows=None)
    with pytest.raises(SystemExit, match="slurmctld runs on ctl2, and the state is to be in another"):
        others.refuse(it, two, two, moves=True)
    here, there = (f"{one}AccountingStorageHost={name}\n" for name in ("ctl1", "login1"))
    it = stood(here, there, runs=runs, follows=None)
    with pytest.raises(SystemExit, match="the accounting database is on ctl1"):
        others.refuse(it, here, there)


def test_what_the_cluster_has_for_long_is_not_asked_again(tmp_path: Path) -> None:
    here, there = (f"{conf(tmp_path, 'ctl1', 'ctl2')}AccountingStorageHost={at}\n" for at in ("a", "b"))
    it = stood(here, there, runs=False, follows=None, is_given=True)
    assert it.catches_up
    Others("ctl2").refuse(it, here, there)
    # Nor of one that left, which does not harm any more.
    alone = conf(tmp_path, "ctl1")
    it = stood(here, alone, runs=False, follows=None, is_given=True)
    Others("ctl2").refuse(it, here, alone)
    with pytest.raises(SystemExit, match="the state is to be in another directory"):
        Others("ctl2").refuse(it, here, alone, moves=True)
    # One that runs goes by the other configuration until now.
    assert not stood(here, there, runs=True, follows=None, is_given=True).catches_up


def test_what_a_client_had_says_nothing_of_a_controller(tmp_path: Path) -> None:
    """A login node that becomes the controller; what is lost by that is asked elsewhere."""
    before, after = conf(tmp_path, "ctl0"), conf(tmp_path, "ctl1")
    it = stood(before, after, runs=False, follows=None)
    Others("ctl0").refuse(it, f"{before}AccountingStorageHost=ctl0\n", f"{after}AccountingStorageHost=ctl1\n")


def test_one_that_stands_by_takes_what_the_cluster_was_given(tmp_path: Path) -> None:
    text = conf(tmp_path, "ctl0", "ctl1")
    it = stood(text, text, runs=False, follows=False, is_given=True)
    assert (it.stands_by, it.waits) == (True, False)


@pytest.mark.parametrize(
    ("others", "own", "is_alone"),
    [
        (Others(), "b", True),
        (Others(), "a", True),
        (Others(), "other", False),
        (Others(), "", False),
        (Others("ctl0"), "b", False),
        (Others(beat=("ctl0",)), "b", False),
    ],
)
def test_one_that_stood_by_leads_where_nobody_does(
    tmp_path: Path,
    others: Others,
    own: str,
    is_alone: bool,  # noqa: FBT001
) -> None:
    text = conf(tmp_path, "ctl0", "ctl1")
    it = stood(text, text, runs=False, follows=False)
    assert it.waits
    it.who_beats = lambda names: [name for name in others.beat if name in names]
    last = SimpleNamespace(own=lambda: own, allowed=lambda: ["b", "a"])
    assert config.Slurmctld.is_left_alone(others, it, last) is is_alone
    it.lead()
    assert (it.leads, it.stands_by, it.waits) == (True, False, False)


def test_one_that_runs_and_stands_by_takes_over_by_itself(tmp_path: Path) -> None:
    beat(tmp_path, 0)
    text = conf(tmp_path, "ctl0", "ctl1")
    it = stood(text, text, runs=True, follows=False)
    last = SimpleNamespace(own=lambda: "a", allowed=lambda: ["a"])
    assert not config.Slurmctld.is_left_alone(Others(), it, last)


@pytest.mark.parametrize(("jobs", "is_refused"), [([], False), (["7"], True), (None, True)])
def test_who_leads_is_asked_for_jobs_also_by_one_that_does_not_run(
    jobs: list[str] | None,
    is_refused: bool,  # noqa: FBT001
) -> None:
    module = SimpleNamespace(params={"may_lose_jobs": False}, fail_json=Module().fail_json)
    daemon = SimpleNamespace(module=module, lost_jobs=lambda _: jobs)
    lost = [{"parameter": "NodeName", "before": "node7", "after": ""}]
    with pytest.raises(SystemExit, match="node7") if is_refused else contextlib.nullcontext():
        config.Slurmctld.refuse_to_lose(daemon, lost)


@pytest.mark.parametrize(
    ("runs", "is_one_of_several", "code", "oldest"),
    [
        (True, False, 0, (22, 5, 8)),
        (False, True, 0, (22, 5, 8)),
        (False, False, 0, (24, 11, 5)),
        # What an error says is no version.
        (True, True, 1, (24, 11, 5)),
    ],
)
def test_who_leads_knows_the_versions_of_nodes(
    runs: bool,  # noqa: FBT001
    is_one_of_several: bool,  # noqa: FBT001
    code: int,
    oldest: tuple[int, ...],
) -> None:
    daemon = SimpleNamespace(
        is_one_of_several=lambda: is_one_of_several, _run=lambda _: (code, "24.11.5\n22.05.8\n")
    )
    assert config.Slurmctld.oldest_version(daemon, (24, 11, 5), runs=runs) == oldest


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


_GUARD = Path("roles/slurmctld/templates/etc/systemd/system/slurmctld.service.d/deploy-state.conf.j2")


def guard(tmp_path: Path, directory: Path, number: int) -> str:
    """The file by which systemd asks, as the role writes it."""
    file = tmp_path / "deploy-state.conf"
    given = {
        "__slurmctld_guard": "/usr/local/lib/slurmctld/may_start.py",
        "slurmctld_state_save_location": directory,
        "__slurmctld_mark": number,
    }
    file.write_text(jinja2.Template(_GUARD.read_text()).render(given))
    return str(file)


def test_a_directory_below_storage_that_is_not_mounted_is_not_taken(tmp_path: Path, new: Path) -> None:
    """Whether it is empty, as at boot, or was taken once, before the storage was there."""
    known = shared.known_number(guard(tmp_path, new, 77), new)
    assert known == 77
    assert shared.is_another(tmp_path / "nowhere", known)
    assert shared.is_another(new, known)
    (new / "deploy_ledger").mkdir()
    assert shared.is_another(new, known)
    shared.mark(new)
    (new / "job_state").write_text("of another time")
    assert shared.is_another(new, known)
    assert not shared.is_another(new, shared.number(new))


def test_a_state_that_was_copied_by_hand_is_taken_by_the_mark_of_the_old_place(new: Path) -> None:
    for file in ("clustername", "job_state"):
        (new / file).write_text("of one controller, before the storage was mounted here")
    assert shared.is_another(new, 77)
    (new / "deploy_shared").write_text("77\n")
    assert not shared.is_another(new, 77)


def test_a_state_that_was_restored_is_taken(new: Path) -> None:
    (new / "deploy_shared").touch()
    assert not shared.is_another(new, 77)


@pytest.mark.parametrize("which", ["no guard", "another directory"])
def test_a_host_that_had_none_makes_it(tmp_path: Path, new: Path, which: str) -> None:
    file = "" if which == "no guard" else guard(tmp_path, tmp_path / "before", 77)
    assert shared.known_number(file, new) == 0
    assert not shared.is_another(new, 0)


class Said(Exception):  # noqa: N818 - the end of a module, good or bad
    """What the module answers."""


def looked(
    monkeypatch: pytest.MonkeyPatch, directory: Path, guard: str = "", *, makes: bool, check: bool = False
) -> dict[str, Any]:
    """The whole module's answer."""

    def ends(**said: Any) -> NoReturn:  # noqa: ANN401
        raise Said(said)

    params = {"directory": str(directory), "makes": makes, "guard": guard}
    module = SimpleNamespace(params=params, check_mode=check, fail_json=ends, exit_json=ends)
    monkeypatch.setattr(shared, "AnsibleModule", lambda **_: module)
    with pytest.raises(Said) as found:
        shared.main()
    return dict(found.value.args[0])


def test_a_preview_refuses_nothing(tmp_path: Path, new: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The storage may be mounted before, and a copy be taken by the first one."""
    file = guard(tmp_path, new, 77)
    (new / "deploy_shared").write_text("77\n")
    for directory in (new, tmp_path / "not-mounted"):
        for makes in (True, False):
            assert "msg" not in looked(monkeypatch, directory, file, makes=makes, check=True)
    assert (new / "deploy_shared").read_text() == "77\n"


def test_another_directory_stays_as_it_is(tmp_path: Path, new: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = guard(tmp_path, new, 77)
    for makes in (True, False):
        said = looked(monkeypatch, new, file, makes=makes)["msg"]
        assert "mount it there" in said
        assert f"rm {file}" in said
        assert [*new.iterdir()] == []
    assert "is another directory than on the first" in looked(monkeypatch, new, makes=False)["msg"]
    # By the command that the refusal names, also where there is nothing yet.
    Path(file).unlink()
    made = looked(monkeypatch, new, file, makes=True)
    assert made == {"changed": True, "mark": (new / "deploy_shared").stat().st_ino}
    assert looked(monkeypatch, new, makes=False) == {**made, "changed": False}


def test_where_the_first_one_is_not_there_others_go_by_what_they_knew(
    tmp_path: Path, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of another time, with a mark of its own; with the first one there, its choice counts."""
    shared.mark(new)
    assert "mount it there" in looked(monkeypatch, new, guard(tmp_path, new, 77), makes=False)["msg"]
    assert "msg" not in looked(monkeypatch, new, makes=False)


@pytest.mark.parametrize("makes", [True, False])
def test_a_preview_of_a_host_without_slurm_refuses_nothing(
    new: Path,
    monkeypatch: pytest.MonkeyPatch,
    makes: bool,  # noqa: FBT001
) -> None:
    def nobody() -> NoReturn:
        raise KeyError

    monkeypatch.setattr(shared, "as_slurm", nobody)
    assert looked(monkeypatch, new, makes=makes, check=True) == {"changed": makes, "mark": 0}
    assert "the user slurm cannot use" in looked(monkeypatch, new, makes=makes)["msg"]


def test_what_was_given_before_the_state_came_back_is_not_what_the_cluster_has(old: Path, new: Path) -> None:
    files = {"slurm.conf": conf(new, "ctl1", "ctl2")}
    texts = [conf(old, "ctl1", "ctl2"), files["slurm.conf"], conf(old, "ctl1", "ctl2")]
    daemon = SimpleNamespace(module=SimpleNamespace(params={"files": files, "follows": None}))
    last = SimpleNamespace(own=lambda: "", allowed=lambda: [config.id_of(files)])
    assert config.standing_of(daemon, texts, moving(old, new), last, runs=False).catches_up
    (new / "deploy_moved").write_text(f"{old}\n")
    assert not config.standing_of(daemon, texts, moving(old, new), last, runs=False).catches_up


@pytest.mark.parametrize(
    ("own", "allowed", "names"),
    [("a", ["a"], ["ctl2"]), ("", [], ["ctl2"]), ("a", ["b"], []), ("", ["b"], [])],
)
def test_a_heartbeat_says_something_by_the_configuration_that_may_lead(
    new: Path, own: str, allowed: list[str], names: list[str]
) -> None:
    text = conf(new, "ctl1", "ctl2")
    beat(new, 1)
    daemon = SimpleNamespace(module=SimpleNamespace(params={"files": {"slurm.conf": text}, "follows": None}))
    last = SimpleNamespace(own=lambda: own, allowed=lambda: allowed)
    it = config.standing_of(daemon, [text] * 3, moving(new, new), last, runs=False)
    assert it.who_beats(["ctl2"], lambda _: beat(new, 1, when=1795632983)) == names

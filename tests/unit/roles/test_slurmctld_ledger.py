"""The ledger of drains, from one controller to several and back; cut off anywhere, swapped by others."""

import contextlib
import json
import os
from collections.abc import Iterator
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.loading import load_module

deploys = import_module("ansible.module_utils.drain_ledger")
module = load_module("roles/slurmctld/library/slurmctld_ledger.py")
metrics = load_module("roles/deploy_metrics/files/usr/local/lib/deploy_metrics/deploy_metrics.py")
backup = load_module("roles/backup/files/usr/local/lib/backup/backup.py")

DRAINS = [{"node": "node1", "who": "alice", "why": "fan", "since": 5}]


class Host:
    """A controller, by its own directory."""

    def __init__(self, local: Path) -> None:
        self.local = local
        self.local.mkdir()

    def has(self, drains: Any = DRAINS) -> None:  # noqa: ANN401 - JSON
        (self.local / "drains.json").write_text(json.dumps(drains))

    def share(self, state: Path, *, makes: bool = False, dry: bool = False) -> bool:
        return bool(module.Ledger(self.local, is_dry=dry).share(state, makes=makes))

    def come_back(self, *, dry: bool = False) -> bool:
        return bool(module.Ledger(self.local, is_dry=dry).come_back())

    @property
    def drains(self) -> Any:  # noqa: ANN401
        """Of the ledger in force; None where there is no file yet."""
        file = deploys.place(self.local) / "drains.json"
        return json.loads(file.read_text()) if file.exists() else None


@pytest.fixture
def ctl1(tmp_path: Path) -> Host:
    return Host(tmp_path / "ctl1")


@pytest.fixture
def ctl2(tmp_path: Path) -> Host:
    return Host(tmp_path / "ctl2")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    made = tmp_path / "state"
    made.mkdir()
    return made


def test_one_controller_has_it_where_it_was(ctl1: Host) -> None:
    ctl1.has()
    assert not ctl1.come_back()
    assert ctl1.drains == DRAINS
    assert [path.name for path in ctl1.local.iterdir()] == ["drains.json"]


def test_two_have_the_same_with_what_was_there_and_one_takes_it_back(
    ctl1: Host, ctl2: Host, state: Path
) -> None:
    ctl1.has()
    (ctl1.local / "reservations.json").write_text('{"deploy_1": {"who": "alice"}}')
    assert [ctl1.share(state, dry=True), ctl1.drains] == [True, DRAINS]
    assert [host.share(state) for host in (ctl1, ctl2)] == [True, True]
    assert [ctl1.share(state, makes=True), ctl2.share(state), ctl1.share(state, dry=True)] == [False] * 3
    assert (state / "deploy_ledger").stat().st_mode & 0o777 == 0o700
    assert not (ctl1.local / "drains.json").exists()
    with deploys.locked(ctl2.local) as place:
        (place / "drains.json").write_text("[]")
    assert [ctl1.drains, ctl2.drains] == [[], []]
    assert ctl1.come_back(dry=True)
    assert ctl1.come_back()
    assert [ctl1.drains, (ctl1.local / "ledger.json").exists(), [*state.iterdir()]] == [[], False, []]
    assert json.loads((ctl1.local / "reservations.json").read_text()) == {"deploy_1": {"who": "alice"}}
    with pytest.raises(deploys.AwayError, match="mount it"):
        deploys.place(ctl2.local)


def test_of_none_the_first_makes_one(ctl1: Host, ctl2: Host, state: Path) -> None:
    assert not ctl2.share(state)
    assert ctl1.share(state, makes=True)
    assert ctl2.share(state)
    assert ctl2.drains == []


def test_it_goes_along_with_the_state(ctl1: Host, ctl2: Host, state: Path, tmp_path: Path) -> None:
    ctl1.has()
    for host in (ctl1, ctl2):
        host.share(state)
    other = tmp_path / "other"
    other.mkdir()
    assert not ctl2.share(other)  # while the first is away, it stays
    assert ctl2.drains == DRAINS
    assert ctl1.share(other, makes=True)
    assert ctl2.share(other)
    assert [ctl1.drains, ctl2.drains, [*state.iterdir()]] == [DRAINS, DRAINS, []]


def test_a_controller_whose_disk_was_lost_takes_what_is_there(
    ctl1: Host, state: Path, tmp_path: Path
) -> None:
    ctl1.has()
    ctl1.share(state)
    new = Host(tmp_path / "new")
    assert new.share(state, makes=True)
    assert new.drains == DRAINS


def test_two_ledgers_are_not_made_one(ctl1: Host, ctl2: Host, state: Path) -> None:
    for host in (ctl1, ctl2):
        host.has()
    ctl1.share(state)
    with pytest.raises(deploys.AwayError, match="is the ledger of other controllers"):
        ctl2.share(state)
    assert ctl2.drains == DRAINS


class KilledError(Exception):
    """As if the power was cut."""


@pytest.fixture
def kill(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Kills before the change with this number."""
    left = [10**6]

    def counted(change: Any) -> Any:  # noqa: ANN401
        def change_or_die(*arguments: Any, **more: Any) -> Any:  # noqa: ANN401
            if not left[0]:
                raise KilledError
            left[0] -= 1
            return change(*arguments, **more)

        return change_or_die

    monkeypatch.setattr(module, "replace_file", counted(module.replace_file))
    monkeypatch.setattr(Path, "unlink", counted(Path.unlink))
    monkeypatch.setattr(Path, "mkdir", counted(Path.mkdir))
    monkeypatch.setattr(Path, "rmdir", counted(Path.rmdir))
    yield lambda number: left.__setitem__(0, number)
    left[0] = 10**6


@pytest.mark.parametrize("goes", [True, False])
def test_a_move_that_is_killed_anywhere_loses_and_doubles_nothing(
    tmp_path: Path,
    kill: Any,  # noqa: ANN401
    goes: bool,  # noqa: FBT001
) -> None:
    for number in count():
        place = tmp_path / str(number)
        place.mkdir()
        host, state = Host(place / "ctl1"), place / "state"
        state.mkdir()
        host.has()
        if not goes:
            host.share(state)
        move = (lambda host=host, state=state: host.share(state)) if goes else host.come_back
        kill(number)
        try:
            move()
        except KilledError:
            kill(10**6)
        else:
            kill(10**6)
            assert number > 5
            return
        with contextlib.suppress(deploys.AwayError):
            assert host.drains == DRAINS
        # The next run ends it, or takes it back, where the site says something else by then.
        if number % 2:
            host.share(state)
        else:
            host.come_back()
        assert host.drains == DRAINS
        assert (host.local / "drains.json").exists() == (number % 2 == 0)


def test_what_was_resumed_after_a_killed_move_does_not_come_back(
    ctl1: Host,
    state: Path,
    kill: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ctl1.has()
    monkeypatch.setattr(module.Ledger, "_leave_to", lambda *_: kill(0) or module.replace_file())
    with pytest.raises(KilledError):
        ctl1.share(state)
    kill(10**6)
    monkeypatch.undo()
    assert (ctl1.local / "drains.json").exists()
    with deploys.locked(ctl1.local) as place:
        (place / "drains.json").write_text("[]")
    assert ctl1.share(state)
    assert ctl1.drains == []


def _gone(shared: Path) -> None:
    shared.rename(shared.with_name("elsewhere"))


def _another(shared: Path) -> None:
    _gone(shared)
    shared.mkdir(mode=0o700)
    (shared / "id").write_text("0123456789abcdef")


def _empty(shared: Path) -> None:
    _gone(shared)
    shared.mkdir(mode=0o700)


def _open_to_others(shared: Path) -> None:
    shared.chmod(0o755)


def _link(shared: Path) -> None:
    _gone(shared)
    shared.symlink_to(shared.with_name("elsewhere"))


@pytest.mark.parametrize("harm", [_gone, _another, _empty, _open_to_others, _link])
def test_what_is_put_in_its_place_is_not_taken(ctl1: Host, ctl2: Host, state: Path, harm: Any) -> None:  # noqa: ANN401
    ctl1.has()
    for host in (ctl1, ctl2):
        host.share(state)
    harm(state / "deploy_ledger")
    for host in (ctl1, ctl2):
        with pytest.raises(deploys.AwayError):
            host.share(state, makes=True)
        with pytest.raises(deploys.AwayError):
            host.come_back()
        with pytest.raises(deploys.AwayError), deploys.locked(host.local):
            pass
        assert not (host.local / "drains.json").exists()


def test_what_is_swapped_while_it_is_used_is_still_the_right_one(ctl1: Host, state: Path) -> None:
    ctl1.has()
    ctl1.share(state)
    with deploys.locked(ctl1.local) as place:
        _link(state / "deploy_ledger")
        assert json.loads((place / "drains.json").read_text()) == DRAINS


def test_where_root_may_not_write_it_stays(ctl1: Host, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ctl1.has()

    def refuse(*_: Any, **__: Any) -> None:  # noqa: ANN401
        raise PermissionError

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert not ctl1.share(state, makes=True)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert not ctl1.share(state, makes=True, dry=True)
    monkeypatch.undo()
    monkeypatch.setattr(module.os, "geteuid", lambda: 2**20)
    assert not ctl1.share(state, makes=True)
    monkeypatch.undo()
    assert [ctl1.drains, [*state.iterdir()]] == [DRAINS, []]


def test_one_that_was_alone_hands_its_ledger_over_where_another_is_the_first_now(
    ctl1: Host, ctl2: Host, state: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text("SlurmctldHost=ctl1\nSlurmctldHost=ctl2\n")
    monkeypatch.setattr(deploys, "CONFIGURATION", conf)
    monkeypatch.setattr(deploys.socket, "gethostname", lambda: "ctl2")
    ctl2.has()
    assert ctl2.share(state)
    assert ctl2.drains == DRAINS
    assert ctl1.share(state, makes=True)
    assert ctl1.drains == DRAINS


def test_a_second_controller_without_it_says_who_has_it(
    ctl2: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=c\nSlurmctldHost=ctl1(10.0.0.1)\nSlurmctldHost=ctl2(10.0.0.2)\n")
    monkeypatch.setattr(deploys, "CONFIGURATION", conf)
    monkeypatch.setattr(deploys.socket, "gethostname", lambda: "ctl2.example.org")
    with pytest.raises(deploys.AwayError, match="that is on ctl1"):
        deploys.place(ctl2.local)
    monkeypatch.setattr(deploys.socket, "gethostname", lambda: "ctl1.example.org")
    assert deploys.place(ctl2.local) == ctl2.local


def test_who_has_the_lock_holds_others_back_for_a_while(
    ctl1: Host, ctl2: Host, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for host in (ctl1, ctl2):
        host.share(state, makes=host is ctl1)
    monkeypatch.setattr(deploys, "_SECONDS", 0.1)
    with (
        deploys.locked(ctl1.local),
        pytest.raises(deploys.AwayError, match="another command"),
        deploys.locked(ctl2.local),
    ):
        pass


def test_metrics_and_backups_read_the_same(
    ctl1: Host, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "PLACE", ctl1.local)
    monkeypatch.setattr(metrics, "_OF_DRAINS", ctl1.local.relative_to(tmp_path))

    def read() -> list[Any]:
        return [
            json.loads(dict(backup.records())["drains.json"]),
            "node1" in metrics.text(tmp_path, munge_works=None),
        ]

    ctl1.has()
    assert read() == [DRAINS, True]
    ctl1.share(state)
    assert read() == [DRAINS, True]
    ctl1.come_back()
    assert read() == [DRAINS, True]
    ctl1.share(state)
    _open_to_others(state / "deploy_ledger")
    assert "node1" not in metrics.text(tmp_path, munge_works=None)
    with pytest.raises(backup.NoBackupError, match="not root's alone"):
        dict(backup.records())

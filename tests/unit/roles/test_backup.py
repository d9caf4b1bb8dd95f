"""The program that makes backups on a controller, and the one that puts them back, on files alone."""

import fcntl
import io
import json
import os
import pwd
import struct
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.roles.loading import load_module

_PLACE = "roles/backup/files/usr/local/lib/backup"
_DAY = 86400
_NOON = 1_700_000_000 // _DAY * _DAY + _DAY / 2


@pytest.fixture(scope="module")
def backup() -> ModuleType:
    return load_module(f"{_PLACE}/backup.py")


@pytest.fixture
def restore(backup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setitem(sys.modules, "backup", backup)
    return load_module(f"{_PLACE}/restore.py")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    root = tmp_path / "state"
    (root / "hash.7" / "job.17").mkdir(parents=True)
    (root / "job_state").write_bytes(job_state(18))
    (root / "job_state.old").write_bytes(job_state(17))
    (root / "node_state.new").write_bytes(b"half of i")
    (root / "node_state").write_bytes(b"nodes")
    (root / "hash.7" / "job.17" / "script").write_bytes(b"#!/bin/sh\n")
    (root / ".before-restore-1").mkdir()
    (root / ".before-restore-1" / "job_state").write_bytes(b"of another time")
    return root


def job_state(following: int) -> bytes:
    """How slurmctld 22.05 to 26.05 begins its list of jobs, and something behind it."""
    return struct.pack(">I17sHQI", 17, b"PROTOCOL_VERSION\0", 0x2A00, 1_700_000_000, following) + b"jobs"


def copied(backup: ModuleType, state: Path) -> tuple[dict[str, bytes], list[str]]:
    """The files in a copy of the state, and their names in the order of the copy."""
    out = io.BytesIO()
    members = backup.Members(out)
    backup.state(members, str(state))
    members.end({})
    pieces = unpacked(out.getvalue())
    inner = b"".join(content for name, content in pieces.items() if name.startswith("state.tar.gz/"))
    with tarfile.open(fileobj=io.BytesIO(inner), mode="r:gz") as tar:
        files = [entry for entry in tar.getmembers() if entry.isfile()]
        content = {entry.name: tar.extractfile(entry) for entry in files}
        return {name: file.read() for name, file in content.items() if file}, [*content]


def unpacked(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        found = {entry.name: tar.extractfile(entry) for entry in tar.getmembers()}
        return {name: file.read() for name, file in found.items() if file}


def test_a_copy_has_whole_files_the_list_of_jobs_before_their_scripts(backup: Any, state: Path) -> None:  # noqa: ANN401
    files, order = copied(backup, state)
    assert files == {
        "job_state": job_state(18),
        "node_state": b"nodes",
        "hash.7/job.17/script": b"#!/bin/sh\n",
    }
    assert order[0] == "job_state"
    assert order[-1] == "hash.7/job.17/script"


def test_a_file_that_changes_its_name_is_waited_for(
    backup: Any,  # noqa: ANN401
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """slurmctld links the new file to the name only after it took the name from the old one."""
    (state / "job_state").rename(state / "job_state.new")
    monkeypatch.setattr(backup, "_PAUSE", 0.01)
    is_waiting = threading.Event()
    monkeypatch.setattr(backup.time, "sleep", lambda _: is_waiting.set())
    monkeypatch.setattr(backup, "_PAUSES", 10**9)

    def finish() -> None:
        assert is_waiting.wait(60)
        (state / "job_state.new").rename(state / "job_state")

    writer = threading.Thread(target=finish)
    writer.start()
    files, _ = copied(backup, state)
    writer.join()
    assert files["job_state"] == job_state(18)


def test_without_a_list_of_jobs_there_is_no_backup(backup: Any, tmp_path: Path) -> None:  # noqa: ANN401
    with pytest.raises(backup.NoBackupError, match="job_state"):
        backup.state(backup.Members(io.BytesIO()), str(tmp_path))


def test_large_members_are_cut_and_all_have_their_checksum(
    backup: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backup, "_PIECE", 4)
    out = io.BytesIO()
    members = backup.Members(out)
    with members.pieces("large") as pieces:
        pieces.write(b"01234")
        pieces.write(b"56789")
    with members.pieces("empty"):
        pass
    members.end({"cluster": "c"})
    found = unpacked(out.getvalue())
    assert [*found] == ["large/00000", "large/00001", "large/00002", "empty/00000", "manifest.json"]
    assert found["large/00002"] == b"89"
    manifest = json.loads(found["manifest.json"])
    assert manifest["cluster"] == "c"
    assert manifest["members"].keys() == found.keys() - {"manifest.json"}


@pytest.mark.parametrize(
    ("loaded", "why"),
    [
        ({"tables": 3, "jobs": 5, "associations": 2}, None),
        ({"tables": 3, "jobs": 6, "associations": 2}, None),
        ({"tables": 3, "jobs": 4, "associations": 2}, "4 jobs"),
        ({"tables": 3, "jobs": 5, "associations": 1}, "1 associations"),
        ({"tables": 2, "jobs": 5, "associations": 2}, "2 tables"),
    ],
)
def test_what_was_loaded_is_what_the_database_had_meanwhile(
    backup: Any,  # noqa: ANN401
    loaded: dict[str, int],
    why: str | None,
) -> None:
    before, after = ({"tables": 3, "jobs": jobs, "associations": 2} for jobs in (5, 6))
    if why is None:
        backup.compare(before, loaded, after)
        return
    with pytest.raises(backup.NoBackupError, match=why):
        backup.compare(before, loaded, after)


def test_the_last_of_each_day_and_week_is_kept(backup: Any) -> None:  # noqa: ANN401
    hours = range(0, 60 * 24, 12)
    found = {f"c-{hour}": _NOON - hour * 3600.0 for hour in hours}
    outlived = backup.outlived(found, {"daily": 3, "weekly": 3})
    # On Tuesday: all of a day, Monday's and Sunday's last, and the last of the Sunday before.
    assert [int(name[2:]) for name in found if name not in outlived] == [0, 12, 24, 48, 216]
    assert backup.outlived({}, {"daily": 3, "weekly": 2}) == []


def test_the_timers_never_take_the_place_of_those_that_have_the_sites_files(backup: Any) -> None:  # noqa: ANN401
    keep = {"daily": 7, "weekly": 4}
    manual = backup.name_of("c", _NOON)
    timers = {backup.name_of("c", _NOON + day * _DAY, by_timer=True): _NOON + day * _DAY for day in range(60)}
    found = backup.archives([manual, *timers], "c")
    assert found == {manual: _NOON, **timers}
    outlived = backup.outlived(found, keep)
    assert manual not in outlived
    assert outlived == backup.outlived(timers, keep)


def test_archives_of_another_cluster_are_nobodys_business(backup: Any) -> None:  # noqa: ANN401
    names = (backup.name_of("a", _NOON), backup.name_of("a-b", _NOON), "a-notes.age", "a-1.age")
    assert backup.archives(names, "a") == {backup.name_of("a", _NOON): _NOON}


def test_metrics_tell_age_and_size_also_where_there_is_none(backup: Any, tmp_path: Path) -> None:  # noqa: ANN401
    def told() -> dict[str, float]:
        found = backup.archives([path.name for path in tmp_path.iterdir()], "a")
        text = backup.metrics(found, tmp_path, 2)
        return {family.name: family.samples[0].value for family in text_string_to_metric_families(text)}

    assert told()["deploy_backup_timestamp_seconds"] == 0
    (tmp_path / backup.name_of("a", _NOON)).write_bytes(b"123")
    assert told() == {
        "deploy_backup_timestamp_seconds": _NOON,
        "deploy_backup_size_bytes": 3,
        "deploy_backup_count": 1,
        "deploy_backup_alert_age_seconds": 2 * _DAY,
    }


def test_the_next_job_id_goes_up_and_never_down(restore: Any) -> None:  # noqa: ANN401
    assert restore.with_next_job_id(job_state(18), 40) == job_state(40)
    assert restore.with_next_job_id(job_state(18), 3) == job_state(18)
    with pytest.raises(restore.NoBackupError, match="does not begin"):
        restore.with_next_job_id(b"something else, and long enough for a header", 3)


class _Input:
    """Standard input that gives these bytes."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


@pytest.fixture
def host(restore: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401
    """The program on a host whose daemons do not run and that has no user slurm."""
    monkeypatch.setattr(restore, "PLACE", tmp_path / "deploy")
    monkeypatch.setattr(restore, "own", lambda _: None)
    monkeypatch.setattr(restore, "_runs", lambda _: False)
    return restore


def packed(**files: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o600
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def test_a_state_takes_the_place_of_another_which_stays_beside(
    host: Any,  # noqa: ANN401
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host.sys, "stdin", _Input(packed(job_state=job_state(9), clustername=b"c|1")))
    answer = host.put_state(str(state), 12, {"drains.json": "[]"}, "now")
    # The former slurmctld had given ids up to 17.
    assert (state / "job_state").read_bytes() == job_state(18)
    assert (state / "clustername").read_bytes() == b"c|1"
    assert not (state / "node_state").exists()
    aside = Path(answer["aside"])
    assert (aside / "job_state").read_bytes() == job_state(18)
    assert (aside / "hash.7" / "job.17" / "script").exists()
    assert (host.PLACE / "drains.json").read_text() == "[]"


@pytest.mark.parametrize("broken", [b"", bytes(4096), b"PK"])
@pytest.mark.parametrize(("old", "following"), [(None, 12), (18, 18)])
def test_a_state_is_put_in_the_place_of_a_broken_one(
    host: Any,  # noqa: ANN401
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    broken: bytes,
    old: int | None,
    following: int,
) -> None:
    (state / "job_state").write_bytes(broken)
    (state / "job_state.old").unlink(missing_ok=True)
    if old:
        (state / "job_state.old").write_bytes(job_state(old))
    monkeypatch.setattr(host.sys, "stdin", _Input(packed(job_state=job_state(9), clustername=b"c|1")))
    answer = host.put_state(str(state), 12, {}, "now")
    assert (state / "job_state").read_bytes() == job_state(following)
    assert (Path(answer["aside"]) / "job_state").read_bytes() == broken
    assert answer["are_ids_known"] == bool(old)


def test_drains_that_several_controllers_share_are_not_put_beside(
    host: Any,  # noqa: ANN401
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host.PLACE.mkdir()
    (host.PLACE / "ledger.json").write_text("{}")
    monkeypatch.setattr(host.sys, "stdin", _Input(packed(job_state=job_state(9))))
    host.put_state(str(tmp_path / "new"), 12, {"drains.json": "[]", "hosts.json": "{}"}, "now")
    assert sorted(path.name for path in host.PLACE.iterdir()) == ["hosts.json", "ledger.json"]


@pytest.mark.parametrize(("is_new", "known"), [(True, {"gone7": 0, "ctl1": 1}), (False, {"ctl1": 1})])
def test_a_new_controller_knows_the_hosts_that_left_before_the_backup(
    host: Any,  # noqa: ANN401
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_new: bool,
    known: dict[str, int],
) -> None:
    host.PLACE.mkdir()
    (host.PLACE / "hosts.json").write_text('{"ctl1": 1}')
    monkeypatch.setattr(host.sys, "stdin", _Input(packed(job_state=job_state(9))))
    records = {"hosts.json": '{"gone7": 0, "ctl1": 0}'}
    host.put_state(str(tmp_path / "new"), 12, records, "now", is_new=is_new)
    assert json.loads((host.PLACE / "hosts.json").read_text()) == known


@pytest.mark.parametrize("parts", [{"state"}, {"database"}, {"state", "database"}])
def test_what_roles_gave_is_kept_with_what_has_it_and_put_back(
    backup: Any,  # noqa: ANN401
    host: Any,  # noqa: ANN401
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    parts: set[str],
) -> None:
    monkeypatch.setattr(backup, "PLACE", tmp_path / "there")
    (tmp_path / "there" / "given").mkdir(parents=True)
    for name in backup.GIVEN.values():
        (tmp_path / "there" / name).write_text(name)
    for asked in ("state", "database", "must"):
        monkeypatch.setattr(backup, asked, lambda *_: "")
    monkeypatch.setattr(backup, "fair_share", dict)
    out = io.BytesIO()
    members = backup.Members(out)
    members.end(backup.add_parts(members, dict.fromkeys(parts, "")))
    kept = {name: content.decode() for name, content in unpacked(out.getvalue()).items() if "/" in name}
    assert kept == {f"records/{name}": name for part, name in backup.GIVEN.items() if part in parts}
    for name in kept.values():
        host.put_given(name, "then")
        assert (host.PLACE / name).read_text() == "then"
        assert (host.PLACE / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("verb", ["put_database", "try_database"])
def test_a_database_that_has_no_room_is_refused_before_anything_is_loaded(
    backup: Any,  # noqa: ANN401
    host: Any,  # noqa: ANN401
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(backup, "PLACE", tmp_path)
    monkeypatch.setattr(host, "must", lambda *words: asked.append(words[-1]))
    monkeypatch.setattr(host, "rows", lambda _: [str(tmp_path)])
    monkeypatch.setattr(host, "_load", lambda *_: pytest.fail("it was loaded"))
    when = {"when": "now"} if verb == "put_database" else {}
    with pytest.raises(host.NoBackupError, match=f"{tmp_path} has .* MiB free"):
        getattr(host, verb)(name="db", expected={}, size=1 << 60, **when)
    assert not [statement for statement in asked if statement.startswith("CREATE")]


def test_what_deploy_has_in_the_state_stays_as_it_is(
    host: Any,  # noqa: ANN401
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = state / "deploy_ledger" / "drains.json"
    ledger.parent.mkdir()
    ledger.write_text("[1]")
    (state / "deploy_shared").write_text("17")
    (state / "deploy_configuration").write_text("now")
    came = packed(job_state=job_state(9), deploy_shared=b"4", deploy_configuration=b"then")
    monkeypatch.setattr(host.sys, "stdin", _Input(came))
    host.put_state(str(state), 12, {}, "now")
    assert ledger.read_text() == "[1]"
    assert (state / "deploy_shared").read_text() == "17"
    assert (state / "deploy_configuration").read_text() == "now"


def test_a_restored_state_can_be_taken_for_the_controllers(
    host: Any,  # noqa: ANN401
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By an empty mark, where the one of then is lost with its storage."""
    monkeypatch.setattr(host.sys, "stdin", _Input(packed(job_state=job_state(9), deploy_shared=b"4")))
    host.put_state(str(tmp_path / "new"), 12, {}, "now")
    assert (tmp_path / "new" / "deploy_shared").read_text() == ""


def test_what_is_deploys_in_the_state_is_not_given_away(
    restore: Any,  # noqa: ANN401
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (state / "deploy_ledger").mkdir()
    (state / "deploy_ledger" / "drains.json").touch()
    given: list[str] = []
    monkeypatch.setattr(restore.pwd, "getpwnam", lambda _: pwd.struct_passwd(("s", "x", 64, 64, "", "", "")))
    monkeypatch.setattr(restore.os, "chown", lambda path, *_, **__: given.append(str(path)))
    restore.own(str(state))
    assert str(state / "job_state") in given
    assert not [path for path in given if "deploy_ledger" in path]


def test_a_state_on_a_bare_host_gives_no_id_that_a_node_still_runs(
    host: Any,  # noqa: ANN401
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host.sys, "stdin", _Input(packed(job_state=job_state(9))))
    assert host.put_state(str(tmp_path / "new"), 12, {}, "now") == {"aside": "", "are_ids_known": True}
    assert (tmp_path / "new" / "job_state").read_bytes() == job_state(12)


@pytest.mark.parametrize("name", ["../job_state", "/etc/shadow"])
def test_a_state_that_leads_elsewhere_is_refused(
    host: Any,  # noqa: ANN401
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.setattr(host.sys, "stdin", _Input(packed(**{"job_state": job_state(9), name: b"x"})))
    with pytest.raises(host.NoBackupError, match="StateSaveLocation"):
        host.put_state(str(state), 1, {}, "now")
    assert (state / "job_state").read_bytes() == job_state(18)


def test_a_state_that_is_cut_off_changes_nothing(
    host: Any,  # noqa: ANN401
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = packed(job_state=job_state(9) + bytes(range(256)) * 500)
    monkeypatch.setattr(host.sys, "stdin", _Input(whole[: len(whole) // 2]))
    with pytest.raises((EOFError, tarfile.TarError)):
        host.put_state(str(state), 1, {}, "now")
    assert (state / "job_state").read_bytes() == job_state(18)


@pytest.fixture
def age(backup: Any, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    """A program of this name that makes something else of what it gets."""
    _have_age(backup, monkeypatch, tmp_path_factory.mktemp("age") / "bin", "exec tr a-z n-za-m")


def _have_age(backup: Any, monkeypatch: pytest.MonkeyPatch, place: Path, program: str) -> None:  # noqa: ANN401
    place.mkdir()
    (place / "age").write_text(f"#!/bin/sh\n{program}\n")
    (place / "age").chmod(0o755)
    monkeypatch.setitem(backup.ENVIRONMENT, "PATH", f"{place}:{os.environ['PATH']}")


@pytest.mark.usefixtures("age")
def test_an_archive_has_its_name_only_when_it_is_whole(backup: Any, tmp_path: Path) -> None:  # noqa: ANN401
    path = tmp_path / "c.age"

    def cut_off() -> None:
        with backup.encrypted(path, ["age1"]) as out:
            out.write(b"half")
            backup.give_up("the disk is gone")

    with pytest.raises(backup.NoBackupError, match="the disk is gone"):
        cut_off()
    assert [*tmp_path.iterdir()] == []
    with backup.encrypted(path, ["age1"]) as out:
        out.write(b"secret")
    assert [*tmp_path.iterdir()] == [path]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes() == b"frperg"


@pytest.mark.usefixtures("age")
def test_what_a_killed_backup_left_of_an_archive_goes_with_the_next(
    backup: Any,  # noqa: ANN401
    tmp_path: Path,
) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    stamp = "20260101T000000Z.age"
    left = [f".c-{stamp}.{ended.pid}", f".c-{stamp}.{os.getpid()}"]
    stays = [f".c-d-{stamp}.{ended.pid}", f".c-{stamp}.part", f".c-{stamp}.1.x", f"c-{stamp}", ".c-x.age.1"]
    written = f".c-{stamp}.1"
    for name in (*left, *stays, written):
        (tmp_path / name).touch()
    with (tmp_path / written).open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with backup.encrypted(tmp_path / "c-20260102T000000Z.age", ["age1"]) as out:
            out.write(b"secret")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {*stays, written, "c-20260102T000000Z.age"}


@pytest.mark.parametrize("program", ["exec 0<&-; >{begun}; exec sleep 60", ">{begun}; exec cat >/dev/null"])
def test_an_archive_that_is_given_up_says_why_whatever_its_program_does(
    backup: Any,  # noqa: ANN401
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
) -> None:
    _have_age(backup, monkeypatch, tmp_path / "bin", program.format(begun=tmp_path / "bin" / "begun"))

    def cut_off() -> None:
        with backup.encrypted(tmp_path / "c.age", ["age1"]) as out:
            out.write(b"half")
            while not (tmp_path / "bin" / "begun").exists():
                time.sleep(0.01)
            backup.give_up("the disk is gone")

    with pytest.raises(backup.NoBackupError, match="the disk is gone"):
        cut_off()
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


@pytest.mark.parametrize("size", [1, 8192, 1 << 20])
def test_a_program_that_ends_before_it_has_read_all_says_why(
    backup: Any,  # noqa: ANN401
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
) -> None:
    _have_age(
        backup, monkeypatch, tmp_path / "bin", "exec 0<&-; echo unknown recipient >&2; >$0.over; exit 1"
    )

    def write() -> None:
        with backup.encrypted(tmp_path / "c.age", ["age1"]) as out:
            while not (tmp_path / "bin" / "age.over").exists():
                time.sleep(0.01)
            for _ in range(9):
                out.write(bytes(size))

    with pytest.raises(backup.NoBackupError, match="unknown recipient"):
        write()
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


def test_a_member_joins_and_is_counted(restore: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    done: list[str] = []
    said = iter([["wsrep_local_state_comment\tJoined"], ["wsrep_local_state_comment\tSynced"]])

    def must(*words: str) -> str:
        done.append(" ".join(words))
        return ""

    monkeypatch.setattr(restore, "must", must)
    monkeypatch.setattr(restore, "rows", lambda _: next(said))
    monkeypatch.setattr(restore, "_PAUSE", 0)
    monkeypatch.setattr(restore, "counts", lambda _: {"tables": 2, "jobs": 3, "associations": 4})
    restore.leave()
    assert done[-2:] == ["systemctl disable slurmdbd", "systemctl stop mariadb"]
    done.clear()
    restore.join("db", {"tables": 2, "jobs": 3, "associations": 4})
    assert done == ["systemctl start mariadb", "systemctl enable slurmdbd"]
    said = iter([["wsrep_local_state_comment\tSynced"]])
    with pytest.raises(restore.NoBackupError, match="3 jobs of 5"):
        restore.join("db", {"tables": 2, "jobs": 5, "associations": 4})
    monkeypatch.setattr(restore, "_SECONDS_TO_ANSWER", 0)
    monkeypatch.setattr(restore, "rows", lambda _: [])
    with pytest.raises(restore.NoBackupError, match="not yet what the other members have"):
        restore.join("db", {"tables": 2, "jobs": 3, "associations": 4})
    # Where nothing was loaded it only comes back.
    done.clear()
    restore.join("db", {})
    assert done == ["systemctl start mariadb", "systemctl enable slurmdbd"]


@pytest.mark.parametrize(
    ("state", "is_stopped"),
    # One that may not start yet is tried again every five seconds, and would write as soon as it may.
    [("active", True), ("activating", True), ("inactive", False), ("failed", False)],
)
def test_what_is_about_to_run_is_stopped_too(
    restore: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
    *,
    state: str,
    is_stopped: bool,
) -> None:
    done: list[str] = []

    def must(*words: str) -> str:
        done.append(" ".join(words))
        return f"{state}\n"

    monkeypatch.setattr(restore, "must", must)
    restore.stop()
    assert ("systemctl stop slurmctld" in done) is is_stopped


def test_the_timer_makes_nothing_in_the_place_of_a_mount_that_is_missing(
    backup: Any,  # noqa: ANN401
    tmp_path: Path,
) -> None:
    settings = {
        "directory": str(tmp_path / "mount" / "backups"),
        "cluster": "c",
        "recipients": ["age1"],
        "metrics": str(tmp_path / "backup.prom"),
    }
    with pytest.raises(FileNotFoundError):
        backup.by_timer(settings)
    assert [*tmp_path.iterdir()] == []

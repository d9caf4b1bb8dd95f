import grp
import hashlib
import os
import pwd
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from deploy.plan import probes
from deploy.run import host_records

ME = pwd.getpwuid(os.getuid()).pw_name
MY_GROUP = grp.getgrgid(os.getgid()).gr_name


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_records, "DIRECTORY", str(tmp_path / "converged"))


def recorded(*files: Path, probes: tuple[dict[str, Any], ...] = ()) -> None:
    told = {
        "fingerprint": "f",
        "managed": {"files": {str(path): {} for path in files}},
        "probes": list(probes),
    }
    host_records.record({"base": told}, ["base"], ["base"], "1.0")


def drift() -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = host_records.look(["base"])["records"]["base"]["drift"]
    return answer


def test_what_stays_as_it_was_has_not_drifted(tmp_path: Path) -> None:
    file, link, missing = tmp_path / "file", tmp_path / "link", tmp_path / "missing"
    file.write_text("x")
    link.symlink_to(file)
    recorded(file, link, missing, tmp_path)
    assert drift() == []
    assert host_records.look(["base"])["records"]["base"]["fingerprint"] == "f"


def test_every_change_of_a_file_is_found(tmp_path: Path) -> None:
    names = ("content", "mode", "removed", "link", "appears")
    paths = {name: tmp_path / name for name in names}
    for name in ("content", "mode", "removed"):
        paths[name].write_text("x")
        paths[name].chmod(0o644)
    paths["link"].symlink_to("content")
    recorded(*paths.values())
    paths["content"].write_text("y")
    paths["mode"].chmod(0o600)
    paths["removed"].unlink()
    paths["link"].unlink()
    paths["link"].symlink_to("mode")
    paths["appears"].write_text("x")
    found = {Path(entry["name"]).name: entry for entry in drift()}
    assert set(found) == set(names)
    assert found["mode"]["recorded"]["mode"] == "0644"
    assert found["mode"]["found"]["mode"] == "0600"
    assert found["removed"]["found"] is None
    assert found["appears"]["recorded"] is None
    assert found["content"]["changed"] == pytest.approx(paths["content"].stat().st_ctime)


def as_left(path: Path, **state: object) -> dict[str, Any]:
    """What record answers of a file that a module said it left in a state."""
    told = {"fingerprint": "f", "managed": {"files": {str(path): state or None}}, "probes": []}
    found: list[dict[str, Any]] = host_records.record({"base": told}, ["base"], ["base"], "1.0")["differing"]
    assert len(found) <= 1
    return found[0] if found else {}


def sha1(text: str) -> str:
    return f"sha1:{hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()}"


def test_what_the_run_left_is_recorded_and_not_what_became_of_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("x")
    path.chmod(0o644)
    assert as_left(path, type="file", content=sha1("x"), mode="0644", owner=ME, group=MY_GROUP) == {}
    assert drift() == []
    path.write_text("edited between the task and the end of the run")
    assert as_left(path, type="file", content=sha1("x"), mode="0644")["name"] == str(path)
    assert [entry["name"] for entry in drift()] == [str(path)]
    path.write_text("x")
    # The run itself changed it once more, in place.
    assert as_left(path, type="file", content=None, mode="0644") == {}
    path.chmod(0o666)
    assert as_left(path, type="file", mode="0644")["found"]["mode"] == "0666"
    path.chmod(0o644)
    assert drift() == []
    path.unlink()
    assert as_left(path, type="file", mode="0644")["found"] is None
    assert as_left(path) == {}
    path.write_text("again")
    assert as_left(path)["recorded"] is None


def test_a_secret_is_known_by_when_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("x")
    written = path.stat().st_mtime_ns
    assert as_left(path, type="file", written=written) == {}
    assert as_left(path, type="file", written=written - 1)["name"] == str(path)
    assert [entry["name"] for entry in drift()] == [str(path)]
    # The task that wrote it again after that said what it wrote.
    assert as_left(path, type="file", written=written - 1, content=sha1("x")) == {}


def test_a_directory_behind_a_link_is_recorded_as_the_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert as_left(tmp_path / "link", type="directory", mode="0700") == {}
    assert drift() == []


def test_a_part_that_was_never_recorded_is_no_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(Path("/x"))
    monkeypatch.setitem(host_records.LOOKS, "files", lambda names: {name: {"mode": "1"} for name in names})
    recorded(Path("/x"))
    monkeypatch.setitem(
        host_records.LOOKS, "files", lambda names: {name: {"mode": "1", "new": 2} for name in names}
    )
    assert drift() == []


def test_what_others_say_against_it_is_named_until_it_is_gone(tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    answer.write_text("")
    probe = {"name": "p", "argv": ["cat", str(answer)], "must_be_empty": True}
    recorded(probes=(probe,))
    assert drift() == []
    answer.write_text("/etc/x:1 says a\n/etc/x:2 says b\n")
    said = [("objection", "/etc/x:1 says a"), ("objection", "/etc/x:2 says b")]
    assert [(each["kind"], each["name"]) for each in drift()] == said
    told = {"fingerprint": "f", "managed": {}, "probes": [probe]}
    differing = host_records.record({"base": told}, ["base"], ["base"], "1.0")["differing"]
    assert [(each["kind"], each["name"]) for each in differing] == said, "the run that records it says so"
    assert [(each["kind"], each["name"]) for each in drift()] == said, "and it is never taken for right"
    answer.write_text("")
    assert drift() == []
    answer.unlink()
    assert [each["kind"] for each in drift()] == ["probe"], "and what cannot be asked is not known"


def test_a_probe_is_compared_without_the_lines_that_change_by_themselves(tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    answer.write_text("a\ntime 1\n")
    recorded(probes=({"name": "p", "argv": ["cat", str(answer)], "ignore": ["^time"]},))
    answer.write_text("a\ntime 2\n")
    assert drift() == []
    answer.write_text("b\ntime 2\n")
    assert [entry["name"] for entry in drift()] == ["p"]
    answer.unlink()
    assert [entry["found"] for entry in drift()] == ["failed"]


def test_probes_are_asked_at_once(tmp_path: Path) -> None:
    come = tmp_path / "come"
    waits = {"name": "waits", "argv": ["sh", "-c", f"until [ -e {come} ]; do sleep 0.05; done; echo come"]}
    comes = {"name": "comes", "argv": ["touch", str(come)]}
    recorded(probes=(waits, comes))
    assert [probe["state"] == "failed" for probe in host_records._records()["base"]["probes"]] == [False] * 2
    come.unlink()
    assert drift() == []


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nprint('ü', __name__)",
        "import os, sys\nprint(os.environ['LC_ALL'], sys.stdin.read())",
        "print('half')\nraise SystemExit(1)",
        "raise SystemExit('why')",
        "raise SystemExit",
        "print('half')\nraise ValueError",
        "this is none",
        "import subprocess\nprint(subprocess.run(['true']).returncode)",
    ],
)
def test_a_program_answers_as_if_a_python_of_its_own_ran_it(
    text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    argv = [*probes._PYTHON, text]
    environment = {**host_records._ENVIRONMENT, "PYTHONUTF8": "1"}
    alone = subprocess.run(
        argv, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, check=False
    )
    assert host_records._said(*argv) == (alone.stdout, alone.returncode == 0)
    assert capfd.readouterr() == ("", "")


def test_a_program_that_cannot_say_it_never_goes_on_as_whoever_asked() -> None:
    """Its output is closed, so flushing fails; what went on from there would be this test once more."""
    asked_by = os.getpid()
    text = "import os, sys\nsys.stdout.write('x')\nos.close(1)"
    answer = host_records._said(*probes._PYTHON, text)
    if os.getpid() != asked_by:
        os._exit(7)
    assert answer == ("", True)


def test_for_a_program_that_hangs_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_records, "_PROBE_SECONDS", 0.2)
    assert host_records._said(*probes._PYTHON, "import time; time.sleep(60)") == ("TimeoutExpired", False)


def test_a_probe_that_always_fails_is_never_unchanged() -> None:
    probe = {"name": "p", "argv": ["false"]}
    told = {"fingerprint": "f", "managed": {}, "probes": [probe]}
    assert [
        entry["name"] for entry in host_records.record({"base": told}, ["base"], ["base"], "1.0")["differing"]
    ] == ["p"]
    assert [entry["found"] for entry in drift()] == ["failed"]


def test_what_comes_to_lie_beside_and_overrides_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {
        name: tmp_path / name
        for name in ("etc/x.conf.d", "run/x.conf.d", "etc/cron.d", "etc/systemd/system/s.service.d")
    }
    for place in places.values():
        place.mkdir(parents=True)
    monkeypatch.setattr(host_records, "_ROOTS", (f"{tmp_path}/etc/", f"{tmp_path}/run/"))
    monkeypatch.setattr(host_records, "_UNITS", (f"{tmp_path}/etc/systemd/system",))
    ours, theirs = places["etc/x.conf.d"] / "deploy.conf", places["etc/x.conf.d"] / "before.conf"
    of_package = places["etc/x.conf.d"] / "package.conf"
    for path in (ours, theirs):
        path.write_text("x")
    monkeypatch.setattr(host_records, "of_packages", lambda paths: {str(of_package)} & set(paths))
    files: dict[str, Any] = {str(ours): {}, str(places["etc/cron.d"] / "deploy"): {}}
    told = {"fingerprint": "f", "managed": {"files": files, "services": {"s": {}}}, "probes": []}
    host_records.record({"base": told}, ["base"], ["base"], "1.0")
    assert drift() == []
    of_package.write_text("x")
    (places["etc/cron.d"] / "more").write_text("adds, and changes nothing")
    (places["etc/x.conf.d"] / "x.conf.dpkg-old").write_text("is not read")
    assert drift() == []
    theirs.write_text("y")
    new = [
        places["etc/x.conf.d"] / "zz.conf",
        places["run/x.conf.d"] / "zz.conf",
        places["etc/systemd/system/s.service.d"] / "override.conf",
        tmp_path / "etc/systemd/system/s.service",
    ]
    for path in new:
        path.write_text("x")
    found = {entry["name"]: entry for entry in drift()}
    assert found.keys() == {str(theirs), *map(str, new)}
    assert all(entry["kind"] == "beside" for entry in found.values())
    assert [found[str(path)]["recorded"] for path in new] == [None] * len(new)


def test_what_packages_bring_is_theirs() -> None:
    mine = Path(host_records.__file__)
    owned = host_records.of_packages([str(mine), "/etc/debian_version"])
    assert owned <= {"/etc/debian_version"}


def test_records_are_private_and_forgotten(tmp_path: Path) -> None:
    recorded(tmp_path)
    place = Path(host_records.DIRECTORY)
    assert place.stat().st_mode & 0o777 == 0o700
    assert (place / "base.json").stat().st_mode & 0o777 == 0o600
    host_records.forget(["base", "never"])
    assert host_records.look(["base"])["records"] == {}


def test_a_phase_that_the_host_left_has_no_record_any_more() -> None:
    told = {"fingerprint": "f", "managed": {}, "probes": []}
    host_records.record({"base": told, "login": told}, ["base", "login"], ["base", "login"], "1.0")
    host_records.record({"base": told}, ["base"], ["base"], "1.0")
    assert list(host_records.look(["base"])["records"]) == ["base"]


def test_a_record_that_cannot_be_read_is_none() -> None:
    recorded()
    (Path(host_records.DIRECTORY) / "base.json").write_text('{"finger')
    assert host_records.look(["base"])["records"] == {}


def test_another_release_of_the_system_is_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded()
    monkeypatch.setattr(host_records, "system", lambda: "debian 99")
    assert [entry["kind"] for entry in drift()] == ["system"]


def test_accounts() -> None:
    found = host_records.users([ME, "nobody-here"])
    assert found[ME]["home"] == pwd.getpwnam(ME).pw_dir
    assert found["nobody-here"] is None
    assert host_records.groups([MY_GROUP, "nothing-here"]) == {MY_GROUP: os.getgid(), "nothing-here": None}


def test_places_of_mounts_are_as_they_are_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "mountinfo"
    line = "36 35 0:32 / {} rw,relatime shared:1 - nfs4 ctl1:/srv rw\n"
    table.write_text("".join(map(line.format, ("/srv/données", "/srv/two\\040words"))))
    monkeypatch.setattr(host_records, "_MOUNTINFO", str(table))
    found = host_records.mounts(["/srv/données", "/srv/two words", "/srv"])
    assert {path: bool(of) for path, of in found.items()} == {
        "/srv/données": True,
        "/srv/two words": True,
        "/srv": False,
    }


def test_kernel() -> None:
    found = host_records.sysctls(["kernel.ostype", "kernel.no_such_thing"])
    assert found == {"kernel.ostype": "Linux", "kernel.no_such_thing": None}
    assert host_records.mounts(["/proc", "/nowhere"])["/proc"]["type"] == "proc"
    assert "rw" in host_records.mounts(["/proc"])["/proc"]["options"]
    assert host_records.mounts(["/nowhere"]) == {"/nowhere": None}
    assert host_records.modules(["no-such-module"]) == {"no-such-module": False}


def test_hardware() -> None:
    found = host_records.hardware(["cpus", "memory", "gpus"])
    assert found["cpus"] >= 1
    assert found["memory"] >= 0
    assert found["gpus"] >= 0
    assert host_records.hardware([]) == {}


def test_packages_by_what_dpkg_says(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "munge ii 0.5.16-1\nchrony rc 4.6\n"
    monkeypatch.setattr(host_records, "_said", lambda *_: (text, False))
    assert host_records.packages(["munge", "chrony", "never"]) == {
        "munge": "0.5.16-1",
        "chrony": None,
        "never": None,
    }


def test_services_by_what_systemd_says(monkeypatch: pytest.MonkeyPatch) -> None:
    def block(load: str, active: str, sub: str, at_boot: str) -> str:
        return f"LoadState={load}\nActiveState={active}\nSubState={sub}\nUnitFileState={at_boot}"

    blocks = [
        block("loaded", "active", "running", "enabled"),
        block("masked", "inactive", "dead", "masked"),
        block("loaded", "activating", "auto-restart", "enabled"),
        block("not-found", "inactive", "dead", ""),
        block("loaded", "activating", "auto-restart-queued", "enabled"),
        block("loaded", "refreshing", "refreshing", "enabled"),
    ]
    monkeypatch.setattr(host_records, "_said", lambda *_: ("\n\n".join(blocks) + "\n", True))
    assert host_records.services(["a", "b", "c", "d", "e", "f"]) == {
        "a": {"runs": True, "at boot": "enabled"},
        "b": {"runs": False, "at boot": "masked"},
        "c": {"runs": False, "at boot": "enabled"},
        "d": None,
        "e": {"runs": False, "at boot": "enabled"},
        "f": {"runs": True, "at boot": "enabled"},
    }


def test_a_service_is_known_by_how_it_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        text = f"LoadState=loaded\nActiveState=active\nMainPID={process.pid}\n"
        monkeypatch.setattr(host_records, "_said", lambda *_: (text, True))
        # While a program takes the place of its parent's, it has no command line for a moment.
        while not Path(f"/proc/{process.pid}/cmdline").read_bytes():
            time.sleep(0.01)
        assert host_records.services(["a"])["a"]["command"] == "/bin/sleep 60"
        process.kill()


def test_what_a_service_is_told_of_this_start_alone_is_no_other_way_to_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = ("--wsrep-new-cluster", "--wsrep_start_position=f6a8e2c3-ead7-11f1-b1d3-7ae8badd5cc6:1898")
    words = ["/bin/sh", "-c", "read nothing", *told]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        text = f"LoadState=loaded\nActiveState=active\nMainPID={process.pid}\n"
        monkeypatch.setattr(host_records, "_said", lambda *_: (text, True))
        while b"wsrep" not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
            time.sleep(0.01)
        assert host_records.services(["mariadb"])["mariadb"]["command"] == "/bin/sh -c read nothing"
        process.kill()


@pytest.mark.parametrize(("program", "differs"), [("/usr/sbin/mariadbd", False), ("/usr/sbin/other", True)])
def test_what_was_recorded_of_one_start_alone_is_no_drift(
    monkeypatch: pytest.MonkeyPatch, program: str, *, differs: bool
) -> None:
    """As earlier versions did."""
    words = f"{program} --wsrep_start_position=f6a8e2c3-ead7-11f1-b1d3-7ae8badd5cc6:1898"
    service = {"runs": True, "at boot": "enabled", "command": words}
    monkeypatch.setitem(host_records.LOOKS, "services", lambda names: dict.fromkeys(names, service))
    told = {"fingerprint": "f", "managed": {"services": {"mariadb": {}}}, "probes": []}
    host_records.record({"base": told}, ["base"], ["base"], "1.0")
    now = {**service, "command": "/usr/sbin/mariadbd"}
    monkeypatch.setitem(host_records.LOOKS, "services", lambda names: dict.fromkeys(names, now))
    assert bool(drift()) is differs


def test_a_file_where_a_file_server_is_gone_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote, here, pipe = tmp_path / "home", tmp_path / "here", tmp_path / "pipe"
    remote.mkdir()
    for file in (remote / "a", remote / "b", here):
        file.write_text("x")
    recorded(remote / "a", remote / "b", here)
    monkeypatch.setattr(host_records, "_remote_places", lambda: [str(remote)])
    assert drift() == []
    os.mkfifo(pipe)
    look = host_records._file
    monkeypatch.setattr(host_records, "_PROBE_SECONDS", 1.0)
    monkeypatch.setattr(
        host_records, "_file", lambda path: look(path) if path == str(here) else os.open(pipe, os.O_RDONLY)
    )
    assert [(entry["name"], entry["found"]) for entry in drift()] == [
        (str(remote / name), {"type": "no answer"}) for name in ("a", "b")
    ]
    recorded(remote / "a", remote / "b", here)
    assert len(drift()) == 2, "what did not answer when it was recorded is not known to be right"


def test_a_record_is_written_where_a_file_server_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written is forced to disk, and what lies on a server is not touched for that."""
    remote, here = tmp_path / "home", tmp_path / "here"
    remote.mkdir()
    for file in (remote / "keys", here):
        file.write_text("x")
    monkeypatch.setattr(host_records, "_remote_places", lambda: [str(remote)])
    monkeypatch.setattr(
        host_records, "_in_time", lambda paths: {path: {"type": "no answer"} for path in paths}
    )
    opened: list[str] = []
    really = os.open

    def watched(path: str, *more: Any) -> int:  # noqa: ANN401
        opened.append(str(path))
        return really(path, *more)

    monkeypatch.setattr(os, "open", watched)
    recorded(remote / "keys", here)
    assert str(here) in opened
    assert not [path for path in opened if path.startswith(str(remote))]


@pytest.mark.skipif(os.getuid() != 0, reason="only root has files of others")
def test_what_is_large_and_a_users_own_is_not_forced_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda number: forced.append(str(Path(f"/proc/self/fd/{number}").readlink()))
    )
    home, large, small = (tmp_path / name for name in ("home", "large", "small"))
    with large.open("wb") as file:
        file.truncate(10 << 30)
    small.write_text("x")
    home.mkdir()
    (home / ".ssh").symlink_to("/etc")
    for path in (home, home / ".ssh", large, small):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    host_records._force_files_to_disk({*map(str, (large, small, home / ".ssh/hostname"))})
    assert sorted(forced) == sorted(map(str, (small, tmp_path)))


def test_what_its_owner_takes_away_meanwhile_is_still_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may remove a file can do so between two looks at it."""
    file = tmp_path / "file"
    file.write_text("x")
    recorded(file)
    look = host_records._file

    def looked_at(path: str) -> Any:  # noqa: ANN401
        file.write_text("y")
        found = look(path)
        file.unlink()
        return found

    monkeypatch.setattr(host_records, "_file", looked_at)
    (entry,) = drift()
    assert (entry["name"], "changed" in entry) == (str(file), False)


def test_what_may_not_answer_is_told_by_its_kind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        "".join(
            f"1 1 0:1 / /{kind} rw - {kind} source rw\n"
            for kind in ("ext4", "xfs", "overlay", "tmpfs", "nfs4", "fuse.sshfs", "lustre")
        )
    )
    with table.open("a") as file:
        file.write("1 1 0:1 / /data\\040of\\040all rw - nfs4 source rw\n")
    monkeypatch.setattr(host_records, "_MOUNTINFO", str(table))
    assert host_records._remote_places() == ["/nfs4", "/fuse.sshfs", "/lustre", "/data of all"]


def test_a_mount_is_found_whatever_letters_its_path_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = tmp_path / "mountinfo"
    paths = ("/données", "/data of all")
    escaped = (path.replace(" ", "\\040") for path in paths)
    table.write_text("".join(f"1 1 0:1 / {path} rw - nfs4 server:/x rw\n" for path in escaped))
    monkeypatch.setattr(host_records, "_MOUNTINFO", str(table))
    found = host_records.mounts([*paths, "/absent"])
    assert [found[path] and found[path]["source"] for path in found] == ["server:/x", "server:/x", None]


@pytest.mark.skipif(os.getuid() != 0, reason="only root has files of others")
def test_what_users_put_in_the_way_is_neither_read_nor_followed(tmp_path: Path) -> None:
    pipe, sparse, device, home = (tmp_path / name for name in ("pipe", "sparse", "device", "home"))
    os.mkfifo(pipe)
    with sparse.open("wb") as file:
        file.truncate(10 << 30)
    device.symlink_to("/dev/zero")
    home.mkdir()
    (home / ".ssh").symlink_to("/etc")
    for path in (pipe, sparse, device, home, home / ".ssh"):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    found = host_records.files(map(str, (pipe, sparse, device, home / ".ssh/hostname")))
    assert found[str(pipe)]["type"] == "other"
    assert found[str(sparse)]["content"] == f"{10 << 30} bytes"
    assert found[str(device)] == {"type": "link", "target": "/dev/zero"}
    assert found[str(home / ".ssh/hostname")] == {"type": "behind a link that is not root's"}


def test_what_a_run_leaves_to_a_later_one_is_kept_until_it_is_done(tmp_path: Path) -> None:
    def told(*phases: str, **pending: list[str]) -> Any:  # noqa: ANN401
        done = {phase: {"fingerprint": "f", "managed": {}, "probes": []} for phase in phases}
        host_records.record(done, [*phases], ["base", "other"], "1.0", pending)
        return host_records.look(["base", "other"])["pending"]

    assert told("base") == {}
    assert not (tmp_path / "pending.json").exists(), "where nothing is left nothing is written"
    assert told(base=["one"]) == {"base": ["one"]}
    assert told("other") == {"base": ["one"]}, "a run on other phases says nothing of it"
    assert told("other", base=["two"]) == {"base": ["two"]}
    assert told("base") == {}
    host_records.record({}, [], ["base"], "1.0", {"base": ["one"]})
    host_records.record({}, [], ["other"], "1.0")
    assert host_records.look([])["pending"] == {}, "the host takes part in it no more"


def left(*phases: str) -> list[str]:
    return [entry["name"] for entry in host_records.left_over(phases)]


def manage(phase: str, *files: Path, only: tuple[str, ...] = ("base", "other")) -> list[str]:
    told = {"fingerprint": "f", "managed": {"files": {str(path): {} for path in files}}, "probes": []}
    said = host_records.record({phase: told}, [*only], [*only], "1.0")
    return [entry["name"] for entry in said["left"]]


def test_what_is_managed_no_more_is_left_over_until_it_is_gone(tmp_path: Path) -> None:
    kept, dropped = tmp_path / "kept", tmp_path / "dropped"
    for file in (kept, dropped):
        file.write_text("x")
    assert manage("base", kept, dropped, tmp_path) == []
    assert manage("base", kept) == [str(dropped)]
    host_records.forget(["base"])
    assert manage("base", kept) == left("base", "other") == [str(dropped)]
    dropped.unlink()
    assert left("base", "other") == []
    assert manage("base", kept) == []
    dropped.write_text("x")
    assert left("base", "other") == []


def test_what_was_changed_by_hand_or_is_declared_again_is_not_left_over(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    manage("base", file)
    assert manage("base") == [str(file)]
    assert manage("other", file) == []
    assert manage("other") == [str(file)]
    file.write_text("mine now")
    assert left("base", "other") == []


def test_a_phase_that_is_being_worked_on_leaves_nothing_over(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    manage("base", file)
    assert host_records.record({}, [], ["base"], "1.0")["left"] == [], "it could not be settled"
    assert host_records.look(["base"])["records"] == {}
    assert left("base", "other") == []
    assert manage("other") == []
    assert manage("base", file) == []


def test_a_phase_that_a_host_takes_no_part_in_any_more_is_left_over(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    manage("other", file)
    manage("base")
    assert left("base", "other") == []
    assert left("base") == [str(file)]
    assert manage("base", only=("base",)) == [str(file)]
    assert list(host_records.look(["base"])["records"]) == ["base"]
    assert left("base") == [str(file)]


def test_accounts_and_services_are_left_over_while_they_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    service = {"runs": True, "at boot": "enabled"}
    monkeypatch.setitem(host_records.LOOKS, "services", lambda names: dict.fromkeys(names, service))
    managed: dict[str, dict[str, Any]] = {
        "users": {ME: {}, "nobody-here": {}},
        "services": {"a.service": {}, "b": {}},
        "packages": {"p": {}},
    }
    told = {"fingerprint": "f", "managed": managed, "probes": []}
    host_records.record({"base": told}, ["base"], ["base"], "1.0")
    fewer = {"base": {**told, "managed": {"services": {"a": {}}}}}
    found = host_records.record(fewer, ["base"], ["base"], "1.0")["left"]
    assert found == [{"kind": "services", "name": "b"}, {"kind": "users", "name": ME}]
    service |= {"runs": False, "at boot": "disabled"}
    assert host_records.left_over(["base"]) == [{"kind": "users", "name": ME}]


def test_a_controller_knows_the_hosts_of_the_cluster() -> None:
    assert host_records.look([])["hosts"] == {}
    host_records.know({"node1": {"groups": []}})
    assert host_records.look([])["hosts"] == {"node1": {"groups": []}}
    place = Path(host_records.DIRECTORY).parent / "hosts.json"
    assert place.stat().st_mode & 0o077 == 0


def test_what_a_role_asked_for_itself_is_left_over_while_it_is_answered_the_same(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.write_text("accept\n")
    probe = {"name": "firewall rules", "argv": ["cat", str(rules)]}
    told = {"fingerprint": "f", "managed": {}, "probes": [probe]}
    host_records.record({"firewall": told}, ["firewall"], ["firewall"], "1.0")
    assert left("firewall") == []
    assert left("base") == ["firewall rules"]
    rules.write_text("")
    assert left("base") == []
    rules.unlink()
    assert left("base") == []


def test_what_only_hosts_remember_is_on_disk_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is of the cluster, and what was managed once, no later run could find out again."""
    done: list[str] = []
    sync, rename = os.fsync, os.rename

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        content = "" if path.is_dir() else path.read_text()
        done.append(f"sync {path.name}{' whole' if content.endswith('}') else ''}")
        sync(descriptor)

    def renamed(old: str, new: str) -> None:
        done.append(f"rename to {Path(new).name}")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", renamed)
    host_records.know({"node1": {"groups": []}})
    assert done == ["sync hosts.json.new whole", "rename to hosts.json", f"sync {tmp_path.name}"]
    recorded()
    done.clear()
    recorded()
    assert done[:3] == ["sync base.json.new whole", "rename to base.json", "sync converged"]
    done.clear()
    host_records.forget(["base"])
    assert done == ["rename to base.was", "sync converged"]
